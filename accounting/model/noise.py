"""Noise on one atom: a sum of independent negative binomials.

The rest of the package needs only this of a noise: moments, a bound on the tail, and the supremum
of the loss of a shift; tables of masses are in evaluator/noise_tables.py.  Another infinitely
divisible noise would be another class with these members.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from accounting.base.arrays import UNIT_ROUNDOFF
from accounting.base.deadline import check_time
from accounting.base.errors import InvalidParameter
from accounting.model.negative_binomial import NegativeBinomial

_NARROWEST_SLACK, _WIDEST_SLACK = 1e-4, 0.99
"""Range of the t of Chernoff's bound, as (1 - p_max t) / (1 - p_max)."""
_SLACK_STEPS, _LENGTH_STEPS = 12, 8
"""Bisections for the best t of a sum, and largest number of lengths of a table that are tried."""
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

    def _chernoff(self, n: float) -> tuple[float, float]:
        """(log t, log E t^Z rounded up) for about the t that bounds Pr[Z >= n] best.

        t lies in (1, 1/p_max) and is given through the slack 1 - p_max t (floating_point.md, F2).
        """
        p_max = max(part.p for part in self.parts)
        widest = _WIDEST_SLACK * (1 - p_max)
        slack = min(max(self._best_slack(n, p_max), _NARROWEST_SLACK * (1 - p_max)), widest)
        while True:
            log_t = math.log1p(-slack) - math.log(p_max)
            log_moment = size = 0.0
            for part in self.parts:
                # p t = (p / p_max) (1 - slack), and p = p_max gives the slack itself
                left = math.log(slack if part.p == p_max else 1 - part.p / p_max * (1 - slack))
                right = math.log1p(-part.p)
                log_moment -= part.r * (left - right)
                size += part.r * (abs(left) + abs(right) + 8)
            inexact = 2 * self.p_ulps + (16 if len(self.parts) > 1 else 0)
            margin = (16 + inexact / slack) * UNIT_ROUNDOFF * size
            if margin < 1:
                return log_t * (1 - 1e-12), log_moment + margin
            if slack == widest:
                raise InvalidParameter(
                    f"p = {p_max!r} is too close to 1 to bound the tail of {self}; lower p or r"
                )
            slack = min(2 * slack, widest)

    def _best_slack(self, n: float, p_max: float) -> float:
        """About the slack at which the mean under the weights t^Z, sum of r p t / (1 - p t), is n;
        for a single part that is r / (n + r)."""
        if len(self.parts) == 1:
            return self.parts[0].r / (n + self.parts[0].r)
        low, high = _NARROWEST_SLACK * (1 - p_max), 1 - p_max
        for _ in range(_SLACK_STEPS):
            slack = math.sqrt(low * high)
            t = (1 - slack) / p_max
            mean = sum(part.r * part.p * t / max(1 - part.p * t, slack) for part in self.parts)
            low, high = (slack, high) if mean > n else (low, slack)
        return high

    def tail_bound(self, n: int) -> float:
        """An upper bound on Pr[Z >= n] (Markov's inequality for t^Z; floating_point.md, F2)."""
        log_t, log_moment = self._chernoff(n)
        exponent = log_moment - n * log_t
        exponent += 8 * UNIT_ROUNDOFF * (abs(log_moment) + n * log_t)
        return min(1.0, math.exp(min(0.0, exponent)) * (1 + 1e-12) + 5e-324)

    def length(self, tail: float) -> int:
        """A table length beyond which at most about ``tail`` is left."""
        log_tail, scale = math.log(tail), 1 / (1 - max(part.p for part in self.parts))
        guess = self.mean + math.sqrt(-2 * log_tail * self.variance) - 0.75 * log_tail * scale
        for _ in range(_LENGTH_STEPS):  # the length for the t that is best for the last one
            log_t, log_moment = self._chernoff(guess)
            n = max((log_moment - log_tail) / log_t, 1.0)
            if abs(n - guess) < 0.02 * n:
                break
            guess = n
        return max(2, math.ceil(n) + 1)

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
