"""The masses of a sum of noises: as doubles for planning and as balls for proofs.

Every part is compound Poisson, with a generating function exp(phi(x)) of which

    x phi'(x) = x (v + w x) / (1 - p x)^n:

NB(r, p) has n = 1, v = r p and w = 0; bursts have n = m + 1, v = rate (1 - p)^m and
w = v (m - 1) p.  With G the product and T_j = G / (1 - p x)^j, x G' = G sum x phi' gives

    (k + 1) g_{k+1} = sum v T_n(k) + w T_n(k - 1),   T_j(k) = T_{j-1}(k) + p T_j(k - 1),   T_0 = g,

a recurrence in positive terms.  The doubles use the form that is divided by g_k, a recurrence for
the ratios g_{k+1} / g_k, which neither overflow nor underflow.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from flint import arb

from accounting.base.arrays import FloatArray, IntArray
from accounting.base.balls import ball
from accounting.base.deadline import check_time
from accounting.base.errors import TooLarge, Undecided
from accounting.model.mechanism import ExactBurst, ExactLaw

_LONGEST = 1 << 23
"""Most masses in one table."""
_LARGEST_P, _SMALLEST_R = 1 - 1e-12, 1e-100
_SMALLEST_WEIGHT = 1e-290
"""Smallest v, so that the ratio of two masses is a double."""
_CLOCK_MASK = (1 << 12) - 1
"""Bit mask: the deadline is checked whenever these bits of the index are 0."""
_LARGEST_TILT = 700.0
"""Largest tilt of a Chernoff bound: its exponential is a double."""


@dataclass(frozen=True)
class Points:
    """Masses and sums of masses at chosen points, as balls."""

    mass: dict[int, arb]
    total: dict[int, arb]


@dataclass(frozen=True)
class NegativeBinomialPart:
    """NB(r, p), parameters given as balls."""

    r: arb
    p: arb

    @property
    def order(self) -> int:
        return 1

    @property
    def weights(self) -> tuple[arb, arb]:
        return self.r * self.p, arb(0)

    @property
    def none(self) -> arb:
        """The mass at 0."""
        return (1 - self.p) ** self.r

    def log_moment(self, s: float) -> float:
        """Estimate log E e^{sZ}."""
        r, p = float(self.r.mid()), float(self.p.mid())
        return r * (math.log1p(-p) - math.log1p(-p * math.exp(s)))

    def check_range(self) -> None:
        if float(self.r.mid()) < _SMALLEST_R:
            raise Undecided(f"r below {_SMALLEST_R:g} is out of range; r = 0 is no noise at all")

    @property
    def mean(self) -> float:
        return float((self.r * self.p / (1 - self.p)).mid())


@dataclass(frozen=True)
class BurstPart:
    """Poisson(rate) many bursts of 1 + NB(m, p) copies, parameters given as balls."""

    rate: arb
    p: arb
    m: int

    @property
    def order(self) -> int:
        return self.m + 1

    @property
    def weights(self) -> tuple[arb, arb]:
        single = self.rate * (1 - self.p) ** self.m
        return single, single * (self.m - 1) * self.p

    @property
    def none(self) -> arb:
        """The mass at 0."""
        return (-self.rate).exp()

    def log_moment(self, s: float) -> float:
        """Estimate log E e^{sZ}."""
        rate, p = float(self.rate.mid()), float(self.p.mid())
        power = s + self.m * (math.log1p(-p) - math.log1p(-p * math.exp(s)))
        return rate * math.expm1(power) if power < _LARGEST_TILT else math.inf

    def check_range(self) -> None:
        pass

    @property
    def mean(self) -> float:
        return float((self.rate * (1 + self.m * self.p / (1 - self.p))).mid())


Part = NegativeBinomialPart | BurstPart


class NoiseTable:
    """The sum of independent noises."""

    def __init__(self, parts: Sequence[Part]) -> None:
        self.parts = tuple(parts)
        self._compared = 0, 0

    @staticmethod
    def of(parts: Iterable[ExactLaw]) -> NoiseTable:
        """From exact parameters, at the working precision."""
        return NoiseTable(
            [
                BurstPart(ball(part.rate), ball(part.p), part.m)
                if isinstance(part, ExactBurst)
                else NegativeBinomialPart(part.shape(), ball(part.p))
                for part in parts
            ]
        )

    @cached_property
    def _alone(self) -> NegativeBinomialPart | None:
        """The only part, if it is a negative binomial."""
        only = self.parts[0] if len(self.parts) == 1 else None
        return only if isinstance(only, NegativeBinomialPart) else None

    def monotone_from(self, size: int) -> int:
        """An outcome such that the loss of a shift is proven to be monotone where it compares only
        outcomes from this one to ``size`` - 1 (notary.md, Lemma 4).

        It is 0 for one negative binomial, and for several that are log-concave (r_i >= 1); for
        others the masses are compared, one after the other.
        """
        if self._alone is not None or all(
            isinstance(part, NegativeBinomialPart) and part.r >= 1 for part in self.parts
        ):
            return 0
        if size > self._compared[0]:
            self._compared = size, self._last_convex(size)
        return self._compared[1]

    def _last_convex(self, size: int) -> int:
        """The last of the outcomes 1..size - 2 at which g_k^2 >= g_{k-1} g_{k+1} is not proven, or
        0: the ratios of neighboring masses from there on do not increase.

        Where a part is geometric, g_k = (1 - p) f_k + p g_{k-1} with the masses f of the others,
        and the same inequality is g_k f_k >= g_{k-1} f_{k+1}.  Nothing cancels there, while far out
        the g themselves are a geometric sequence as far as their digits tell.
        """
        geometric = next((part for part in self.parts if _is_geometric(part)), None)
        others = [part for part in self.parts if part is not geometric]
        p = arb(0) if geometric is None else geometric.p
        recurrence = _Recurrence(others)
        f = arb(1)
        for part in others:
            f *= part.none
        found, before, g = 0, arb(0), (1 - p) * f
        for k in range(1, size):
            if not k & _CLOCK_MASK:
                check_time()
            after = recurrence.after(f) / k
            if k > 1 and not g * f >= before * after:
                found = k - 1
            f, before, g = after, g, (1 - p) * after + p * g
        return found

    def _none(self) -> arb:
        """The mass at 0."""
        found = arb(1)
        for part in self.parts:
            found *= part.none
        return found

    def log_masses(self, tail: float, beyond: int) -> FloatArray:
        """Estimates of log g_0, log g_1, ...: ``beyond`` entries more than leave about ``tail``."""
        mean = sum(part.mean for part in self.parts)
        if not mean < _LONGEST or max(float(part.p.mid()) for part in self.parts) > _LARGEST_P:
            raise TooLarge(f"a noise with mean {mean:.4g} is more than the notary can tabulate")
        for part in self.parts:
            part.check_range()
        weights = [[float(weight.mid()) for weight in part.weights] for part in self.parts]
        if min(first for first, _ in weights) < _SMALLEST_WEIGHT:
            raise Undecided(
                f"a noise that sends single copies at a rate below {_SMALLEST_WEIGHT:g} is out of "
                "range: it is hardly a noise"
            )
        start = sum(float(part.none.log().mid()) for part in self.parts)
        size = self._length(tail) + beyond
        if size > _LONGEST:
            raise TooLarge(
                f"a noise with mean {mean:.4g} needs a table of {size:,} masses; the notary's "
                f"limit is {_LONGEST:,}"
            )
        if self._alone is not None:
            r, p = float(self._alone.r.mid()), float(self._alone.p.mid())
            count = np.arange(1, size)
            rises = np.log(p * (count - 1 + r) / count)
            return start + np.concatenate([[0.0], np.cumsum(rises)])
        ratios = np.empty(size)
        ratios[0] = ratio = 1.0
        # sums[i][j] is T_j(k - 1) / g_{k-1} of part i; there is none before k = 1
        sums = [[0.0] * part.order for part in self.parts]
        decays = [float(part.p.mid()) for part in self.parts]
        for k in range(1, size):
            if not k & _CLOCK_MASK:
                check_time()
            total = 0.0
            for (v, w), p, own in zip(weights, decays, sums, strict=True):
                scale = 1.0 / ratio
                total += w * own[-1] * scale
                decay, carried = p * scale, 1.0
                for j, before in enumerate(own):
                    carried += decay * before
                    own[j] = carried
                total += v * carried
            ratios[k] = ratio = total / k
        return start + np.cumsum(np.log(ratios))

    def _length(self, tail: float) -> int:
        """A length beyond which at most about ``tail`` is left, by Chernoff's bound:
        P[Z >= k] <= G(x) x^-k for 1 < x < 1 / max p."""
        limit = -math.log(max(float(part.p.mid()) for part in self.parts))
        best = math.inf
        for share in np.geomspace(1e-4, 0.999, 48):
            s = min(limit * share, _LARGEST_TILT)
            log_g = sum(part.log_moment(s) for part in self.parts)
            best = min(best, (log_g - math.log(tail)) / s)
        return math.ceil(max(best, 1.0)) + 2

    def at(self, points: IntArray) -> Points:
        """Masses and P[Z <= k] at the given points; -1 stands for the empty sum."""
        wanted = np.unique(points)
        mass: dict[int, arb] = {-1: arb(0)}
        total: dict[int, arb] = {-1: arb(0)}
        value = whole = self._none()
        k = 0
        if self._alone is not None:
            p = self._alone.p
            rise = p * self._alone.r
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
        recurrence = _Recurrence(self.parts)
        for point in wanted[wanted >= 0].tolist():
            while k < point:
                k += 1
                if not k & _CLOCK_MASK:
                    check_time()
                value = recurrence.after(value) / k
                whole = whole + value
            mass[point], total[point] = value, whole
        return Points(mass, total)


def _is_geometric(part: Part) -> bool:
    return isinstance(part, NegativeBinomialPart) and bool(part.r == 1)


class _Recurrence:
    """The sums T_j of all parts, as balls."""

    def __init__(self, parts: Sequence[Part]) -> None:
        self._parts = [(*part.weights, part.p, [arb(0)] * part.order) for part in parts]

    def after(self, mass: arb) -> arb:
        """k g_k, given g_{k-1}; called for k = 1, 2, ..."""
        found = arb(0)
        for v, w, p, sums in self._parts:
            if not w.is_zero():
                found += w * sums[-1]
            carried = mass
            for j, before in enumerate(sums):
                sums[j] = carried = carried + p * before
            found += v * carried
        return found
