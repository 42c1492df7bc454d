"""Noise on one atom: a sum of independent noises, each of one of the laws that are known.

The rest of the package needs only this of a law: moments, a bound on the tail, the supremum of the
loss of a shift, and the weights of a recurrence for its masses (tables of them are in
evaluator/noise_tables.py).  Another infinitely divisible noise would be another class with the
members that ``NegativeBinomial`` and ``Burst`` share.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal

from accounting.base.arrays import UNIT_ROUNDOFF
from accounting.base.errors import InvalidParameter
from accounting.model.laws.burst import Burst
from accounting.model.laws.negative_binomial import NegativeBinomial

Law = NegativeBinomial | Burst
"""The law of one noise."""
NoiseLaw = Literal["negative-binomial", "burst"]
"""What files and options call a law: the paper's, or bursts, which take fewer messages."""
NEGATIVE_BINOMIAL: Final = "negative-binomial"
BURST: Final = "burst"
_NARROWEST_SLACK, _WIDEST_SLACK = 1e-4, 0.99
"""Range of the t of Chernoff's bound, as (1 - p_max t) / (1 - p_max)."""
_LEAST_OF_BURSTS = 0.25
"""Smallest p_max of Chernoff's bound for bursts; rule of thumb."""
_SLACK_STEPS, _LENGTH_STEPS = 12, 8
"""Bisections for the best t of a sum, and largest number of lengths of a table that are tried."""
_MOST_SHOWN = 3
"""Parts that ``repr`` lists."""


@dataclass(frozen=True)
class NoiseSum:
    """A sum of independent noises.

    Args:
        parts: The noises.
        p_ulps: A bound on the relative distance, in units of 2^-53, of the true p of every negative
            binomial from the double that stands for it: 0 for parameters that are doubles by
            definition.  A burst has a bound of its own.

    Raises:
        InvalidParameter: If there are no parts, or one is outside the range of the evaluators.

    >>> noise = NoiseSum.of([NegativeBinomial(12.0, 0.75), NegativeBinomial(4.0, 0.75)])
    >>> noise, noise.mean
    (NoiseSum(NB(r=12, p=0.75) + NB(r=4, p=0.75)), 48.0)
    """

    parts: tuple[Law, ...]
    p_ulps: float = 0.0

    def __post_init__(self) -> None:
        if not self.parts:
            raise InvalidParameter("a noise needs at least one part")
        for part in self.parts:
            part.check_range()

    @staticmethod
    def of(parts: Law | Iterable[Law]) -> NoiseSum:
        """Return the sum of one or several noises."""
        return NoiseSum((parts,) if isinstance(parts, Law) else tuple(parts))

    @property
    def mean(self) -> float:
        return math.fsum(part.mean for part in self.parts)

    @property
    def variance(self) -> float:
        return math.fsum(part.variance for part in self.parts)

    @property
    def log_concave(self) -> bool:
        """Whether the law is log-concave because every part is (covered_pairs.md, Lemma 1)."""
        return all(part.log_concave for part in self.parts)

    @property
    def roundings(self) -> float:
        """Roundings per outcome in the recurrence of the masses (floating_point.md, F1)."""
        extra = max(self._extra_roundings(part) for part in self.parts)
        return len(self.parts) + 4 + extra

    def _extra_roundings(self, part: Law) -> float:
        return part.extra_roundings if isinstance(part, Burst) else self.p_ulps

    @property
    def _largest_ulps(self) -> float:
        return max([self.p_ulps, *(part.p_ulps for part in self.parts if isinstance(part, Burst))])

    def _chernoff(self, n: float) -> tuple[float, float]:
        """Return (log t, log E t^Z rounded up) for about the t that bounds Pr[Z >= n] best.

        t lies in (1, 1/p_max) and is given through the slack 1 - p_max t (floating_point.md, F2).
        """
        p_max = self._largest_p
        widest = _WIDEST_SLACK * (1 - p_max)
        slack = min(max(self._best_slack(n, p_max), _NARROWEST_SLACK * (1 - p_max)), widest)
        while True:
            first, second = math.log1p(-slack), math.log(p_max)
            log_t = first - second
            log_moment = size = 0.0
            for part in self.parts:
                moment, of_part = part.log_moment(log_t, _log_rest(part.p, p_max, slack))
                log_moment += moment
                size += of_part
            size *= 1 + abs(first) + abs(second) if self._has_bursts else 1
            others = any(part.p != p_max for part in self.parts)
            inexact = 2 * self._largest_ulps + (16 if others else 0)
            margin = (16 + inexact / slack) * UNIT_ROUNDOFF * size
            if margin < 1:
                return log_t * (1 - 1e-12), log_moment + margin
            if slack == widest:
                raise InvalidParameter(
                    f"p = {p_max!r} is too close to 1 to bound the tail of {self}; lower p or the "
                    "number of noise events"
                )
            slack = min(2 * slack, widest)

    @property
    def _largest_p(self) -> float:
        """The largest p, or more: bursts with a small p are as good as Poisson, and then the best t
        is far below 1 / p."""
        largest = max(part.p for part in self.parts)
        return max(largest, _LEAST_OF_BURSTS) if self._has_bursts else largest

    @property
    def _has_bursts(self) -> bool:
        return any(isinstance(part, Burst) for part in self.parts)

    def _best_slack(self, n: float, p_max: float) -> float:
        """Estimate the slack at which the mean under the weights t^Z is n; for a single negative
        binomial that is r / (n + r)."""
        if len(self.parts) == 1 and isinstance(self.parts[0], NegativeBinomial):
            return self.parts[0].r / (n + self.parts[0].r)
        low, high = _NARROWEST_SLACK * (1 - p_max), 1 - p_max
        for _ in range(_SLACK_STEPS):
            slack = math.sqrt(low * high)
            log_t = math.log1p(-slack) - math.log(p_max)
            mean = math.fsum(
                part.tilted_mean(log_t, _log_rest(part.p, p_max, slack)) for part in self.parts
            )
            low, high = (slack, high) if mean > n else (low, slack)
        return high

    def tail_bound(self, n: int) -> float:
        """An upper bound on Pr[Z >= n] (Markov's inequality for t^Z; floating_point.md, F2)."""
        log_t, log_moment = self._chernoff(n)
        exponent = log_moment - n * log_t
        exponent += 8 * UNIT_ROUNDOFF * (abs(log_moment) + n * log_t)
        return min(1.0, math.exp(min(0.0, exponent)) * (1 + 1e-12) + 5e-324)

    def length(self, tail: float) -> int:
        """Return a table length beyond which at most about ``tail`` is left."""
        log_tail, scale = math.log(tail), 1 / (1 - self._largest_p)
        guess = self.mean + math.sqrt(-2 * log_tail * self.variance) - 0.75 * log_tail * scale
        for _ in range(_LENGTH_STEPS):  # the length for the t that is best for the last one
            log_t, log_moment = self._chernoff(guess)
            n = max((log_moment - log_tail) / log_t, 1.0)
            if abs(n - guess) < 0.02 * n:
                break
            guess = n
        return max(2, math.ceil(n) + 1)

    def largest_loss(self, shift: int) -> float:
        """An upper bound on sup_z log f(z) - log f(z + shift) (exact_view.md, Lemma 3).

        Infinite for a negative shift, because f(0) > 0.
        """
        if shift < 0:
            return math.inf
        if shift == 0:
            return 0.0
        inexact = self.p_ulps * shift * UNIT_ROUNDOFF
        return min(part.largest_loss(shift) * (1 + inexact) + inexact for part in self.parts)

    def __repr__(self) -> str:
        many = len(self.parts) > _MOST_SHOWN
        return f"NoiseSum({f'{len(self.parts)} parts, mean={self.mean:.6g}' if many else self})"

    def __str__(self) -> str:
        return " + ".join(map(str, self.parts))


def _log_rest(p: float, p_max: float, slack: float) -> float:
    """Return log(1 - p t) for the t with 1 - p_max t = slack: p t = (p / p_max) (1 - slack)."""
    return math.log(slack if p == p_max else 1 - p / p_max * (1 - slack))
