"""Noise on one atom: a sum of independent negative binomials.

The rest of the package needs only this of a noise: moments, a bound on the tail, and the supremum
of the loss of a shift; tables of masses are in evaluator/noise_tables.py.  Another infinitely
divisible noise would be another class with these members.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from accounting.base.arrays import UNIT_ROUNDOFF, FloatArray
from accounting.base.deadline import check_time
from accounting.base.errors import InvalidParameter
from accounting.model.negative_binomial import NegativeBinomial

_SLACKS = np.geomspace(0.999, 1e-4, 32)
"""Tilts t that are tried in Chernoff's bound, as (1 - p_max t) / (1 - p_max)."""
_MOST_SHOWN = 3
"""Parts that ``repr`` lists."""
_LONGEST_PRODUCT = 100_000
"""Largest shift whose loss is bounded by a product with as many terms."""


@dataclass(frozen=True)
class NoiseSum:
    """The sum of independent negative binomials.

    Args:
        parts: The negative binomials.
        p_ulps: A bound on the relative distance, in units of 2^-53, of every true p from the double
            that stands for it: 0 for parameters that are doubles by definition.

    Raises:
        InvalidParameter: If there are no parts, or r or p is outside the range of the evaluators.

    >>> noise = NoiseSum.of([NegativeBinomial(12.0, 0.75), NegativeBinomial(4.0, 0.75)])
    >>> noise, noise.mean
    (NoiseSum(NB(r=12, p=0.75) + NB(r=4, p=0.75)), 48.0)
    """

    parts: tuple[NegativeBinomial, ...]
    p_ulps: float = 0.0

    def __post_init__(self) -> None:
        if not self.parts:
            raise InvalidParameter("a noise needs at least one negative binomial")
        for part in self.parts:
            if not (1e-9 <= part.r <= 1e9 and part.p >= 1e-30):
                raise InvalidParameter(
                    f"{part} is outside the range of the evaluators: 1e-9 <= r <= 1e9, p >= 1e-30"
                )

    @staticmethod
    def of(parts: NegativeBinomial | Iterable[NegativeBinomial]) -> NoiseSum:
        """The sum of one or several negative binomials."""
        return NoiseSum((parts,) if isinstance(parts, NegativeBinomial) else tuple(parts))

    @property
    def mean(self) -> float:
        return math.fsum(part.mean for part in self.parts)

    @property
    def variance(self) -> float:
        return math.fsum(part.variance for part in self.parts)

    @property
    def log_concave(self) -> bool:
        """Whether every r is at least 1 (evaluator/covered_pairs.md, Lemma 1)."""
        return all(part.r >= 1 for part in self.parts)

    @cached_property
    def _chernoff(self) -> tuple[FloatArray, FloatArray]:
        """(log t, log E t^Z) on a grid of t in (1, 1/p_max), rounded up."""
        p_max = max(part.p for part in self.parts)
        slack = (1 - p_max) * _SLACKS  # 1 - p_max * t
        log_t = np.log1p(-slack) - math.log(p_max)
        log_moment = np.zeros_like(slack)
        size = np.zeros_like(slack)
        for part in self.parts:
            # 1 - p t = (1 - p) - p (t - 1), and p = p_max gives the slack itself
            left = slack if part.p == p_max else 1 - part.p * np.exp(log_t)
            term = part.r * (np.log(left) - math.log1p(-part.p))
            log_moment -= term
            size += part.r * (np.abs(np.log(left)) + abs(math.log1p(-part.p)) + 8)
        inexact = 2 * self.p_ulps + (16 if len(self.parts) > 1 else 0)
        margin = (16 + inexact / slack) * UNIT_ROUNDOFF * size
        usable = margin < 1
        if not usable.any():
            raise InvalidParameter(
                f"p = {p_max!r} is too close to 1 to bound the tail of {self}; lower p or r"
            )
        return log_t[usable] * (1 - 1e-12), (log_moment + margin)[usable]

    def tail_bound(self, n: int) -> float:
        """An upper bound on Pr[Z >= n] (Markov's inequality for t^Z; floating_point.md, F2)."""
        log_t, log_moment = self._chernoff
        exponent = log_moment - n * log_t
        exponent += 8 * UNIT_ROUNDOFF * (np.abs(log_moment) + n * log_t)
        return min(1.0, math.exp(min(0.0, float(exponent.min()))) * (1 + 1e-12) + 5e-324)

    def length(self, tail: float) -> int:
        """A table length beyond which at most about ``tail`` is left."""
        log_t, log_moment = self._chernoff
        return max(2, math.ceil(float(((log_moment - math.log(tail)) / log_t).min())) + 1)

    def largest_loss(self, shift: int) -> float:
        """An upper bound on sup_z log f(z) - log f(z + shift) (exact_view.md, Lemma 5).

        Infinite for a negative shift, because f(0) > 0.
        """
        if shift < 0:
            return math.inf
        if shift == 0:
            return 0.0
        best = math.inf
        for part in self.parts:
            check_time()
            terms = [-shift * math.log(part.p)]
            if part.r < 1 and shift <= _LONGEST_PRODUCT:
                terms += [math.log((i + 1) / (i + part.r)) for i in range(shift)]
            elif part.r < 1:
                continue
            size = math.fsum(abs(term) for term in terms)
            best = min(
                best,
                math.fsum(terms)
                + (8 + self.p_ulps * shift + 2 * shift) * UNIT_ROUNDOFF * (1 + size),
            )
        return best

    def __repr__(self) -> str:
        many = len(self.parts) > _MOST_SHOWN
        return f"NoiseSum({f'{len(self.parts)} parts, mean={self.mean:.6g}' if many else self})"

    def __str__(self) -> str:
        return " + ".join(f"NB(r={part.r:.6g}, p={part.p:.9g})" for part in self.parts)
