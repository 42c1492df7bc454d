"""The masses of a sum of negative binomials: as doubles for planning and as balls for proofs.

With G(x) = prod ((1 - p_i) / (1 - p_i x))^{r_i}, G' = G sum r_i p_i / (1 - p_i x) gives
    (k + 1) g_{k+1} = sum r_i p_i T_i(k),   T_i(k) = g_k + p_i T_i(k - 1),
a recurrence in positive terms.  The doubles use the form that is divided by g_k, a recurrence for
the ratios g_{k+1} / g_k, which neither overflow nor underflow.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from flint import arb

from accounting.base.arrays import FloatArray, IntArray
from accounting.base.deadline import check_time
from accounting.base.errors import TooLarge, Undecided

_LONGEST = 1 << 23
"""Most masses in one table."""
_LARGEST_P, _SMALLEST_R = 1 - 1e-12, 1e-100
_SMALLEST_WEIGHT = 1e-290
"""Smallest r p, so that the ratio of two masses is a double."""
_CLOCK_MASK = (1 << 12) - 1
"""Bit mask: the deadline is checked whenever these bits of the index are 0."""
_LARGEST_TILT = 700.0
"""Largest tilt of a Chernoff bound: its exponential is a double."""


@dataclass(frozen=True)
class Points:
    """Masses and sums of masses at chosen points, as balls."""

    mass: dict[int, arb]
    total: dict[int, arb]


class NoiseTable:
    """The sum of NB(r_i, p_i), parameters given as balls."""

    def __init__(self, parts: Sequence[tuple[arb, arb]]) -> None:
        self.parts = tuple(parts)

    @cached_property
    def monotone(self) -> bool:
        """Whether the loss of a shift is proven to be monotone in the outcome (notary.md, Lemma 4):
        for one negative binomial, and for log-concave parts (r_i >= 1)."""
        return len(self.parts) == 1 or all(r >= 1 for r, _ in self.parts)

    @cached_property
    def _doubles(self) -> list[tuple[float, float]]:
        return [(float(r.mid()), float(p.mid())) for r, p in self.parts]

    def log_masses(self, tail: float, beyond: int) -> FloatArray:
        """Estimates of log g_0, log g_1, ...: ``beyond`` entries more than leave about ``tail``."""
        parts = self._doubles
        mean = sum(r * p / (1 - p) if p < 1 else math.inf for r, p in parts)
        if not mean < _LONGEST or max(p for _, p in parts) > _LARGEST_P:
            raise TooLarge(f"a noise with mean {mean:.4g} is more than the notary can tabulate")
        if min(r for r, _ in parts) < _SMALLEST_R:
            raise Undecided(f"r below {_SMALLEST_R:g} is out of range; r = 0 is no noise at all")
        if min(r * p for r, p in parts) < _SMALLEST_WEIGHT:
            raise Undecided(f"r p below {_SMALLEST_WEIGHT:g} is out of range: it is hardly a noise")
        start = sum(r * math.log1p(-p) for r, p in parts)
        size = self._length(tail) + beyond
        if size > _LONGEST:
            raise TooLarge(
                f"a noise with mean {mean:.4g} needs a table of {size:,} masses; the notary's "
                f"limit is {_LONGEST:,}"
            )
        if len(parts) == 1:
            ((r, p),) = parts
            count = np.arange(1, size)
            rises = np.log(p * (count - 1 + r) / count)
            return start + np.concatenate([[0.0], np.cumsum(rises)])
        ratios = np.empty(size)
        ratios[0] = 1.0
        weights = [r * p for r, p in parts]
        decays = [p for _, p in parts]
        inner = [1.0] * len(parts)
        for k in range(1, size):
            if not k & _CLOCK_MASK:
                check_time()
            ratio = sum(map(float.__mul__, weights, inner)) / k
            ratios[k] = ratio
            inner = [1.0 + p * t / ratio for p, t in zip(decays, inner, strict=True)]
        return start + np.cumsum(np.log(ratios))

    def _length(self, tail: float) -> int:
        """A length beyond which at most about ``tail`` is left, by Chernoff's bound:
        P[Z >= k] <= G(x) x^-k for 1 < x < 1 / max p."""
        parts = self._doubles
        limit = -math.log(max(p for _, p in parts))
        best = math.inf
        for share in np.geomspace(1e-4, 0.999, 48):
            s = min(limit * share, _LARGEST_TILT)
            log_g = sum(r * (math.log1p(-p) - math.log1p(-p * math.exp(s))) for r, p in parts)
            best = min(best, (log_g - math.log(tail)) / s)
        return math.ceil(max(best, 1.0)) + 2

    def at(self, points: IntArray) -> Points:
        """Masses and P[Z <= k] at the given points; -1 stands for the empty sum."""
        wanted = np.unique(points)
        mass: dict[int, arb] = {-1: arb(0)}
        total: dict[int, arb] = {-1: arb(0)}
        value = arb(1)
        for r, p in self.parts:
            value *= (1 - p) ** r
        whole = value
        k = 0
        if len(self.parts) == 1:
            ((r, p),) = self.parts
            rise = p * r
            for point in wanted[wanted >= 0].tolist():
                while k < point:
                    k += 1
                    if not k & _CLOCK_MASK:
                        check_time()
                    value = value * rise / k
                    whole = whole + value
                    rise = rise + p
                mass[point], total[point] = value, whole
            return Points(mass, total)
        weights = [r * p for r, p in self.parts]
        decays = [p for _, p in self.parts]
        inner = [value] * len(self.parts)
        for point in wanted[wanted >= 0].tolist():
            while k < point:
                k += 1
                if not k & _CLOCK_MASK:
                    check_time()
                value = sum((w * t for w, t in zip(weights, inner, strict=True)), arb(0)) / k
                inner = [value + p * t for p, t in zip(decays, inner, strict=True)]
                whole = whole + value
            mass[point], total[point] = value, whole
        return Points(mass, total)
