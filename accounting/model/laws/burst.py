"""The law of bursts: Poisson many of them, each of 1 + NB(m, p) copies (bursts.md).

The law of Z = sum over i <= N of (1 + G_i) with N ~ Poisson(rate) and G_i ~ NB(m, p), m a whole
number, all independent.  m = 1 is the law of Polya and Aeppli.  Its generating function is

    exp(rate (x ((1 - p) / (1 - p x))^m - 1)),

so it is infinitely divisible: one of n users draws Poisson(rate / n) bursts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from accounting.base.arrays import UNIT_ROUNDOFF
from accounting.base.errors import InvalidParameter
from accounting.base.validation import positive, probability, whole

if TYPE_CHECKING:
    import numpy as np

LARGEST_M = 64
"""Largest m: beyond it the sizes of bursts hardly differ, and recurrences have m + 1 terms."""
_SMALLEST_SINGLE = 1e-60
"""Smallest rate (1 - p)^m, the rate of bursts of one copy, that recurrences can begin with."""
_LARGEST_EXPONENT = 700.0
"""Exponent up to which exp is a double."""


@dataclass(frozen=True)
class Burst:
    """A law of noise that comes in bursts.

    Args:
        rate: Expected number of bursts, greater than 0.
        p: The parameter p of their sizes, strictly between 0 and 1.
        m: The parameter m of their sizes, a whole number from 1 to 64.
        p_ulps: A bound on the relative distance, in units of 2^-53, of the true p from the double:
            0 if p is that double by definition.

    Raises:
        InvalidParameter: If a number is outside its domain.

    >>> noise = Burst(rate=30.0, p=0.5, m=3)
    >>> noise.mean, noise.variance
    (120.0, 660.0)
    """

    rate: float
    p: float
    m: int
    p_ulps: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "rate", positive("rate", self.rate))
        object.__setattr__(self, "p", probability("p", self.p))
        object.__setattr__(self, "m", whole("m", self.m, least=1, most=LARGEST_M))

    @staticmethod
    def from_mean(*, mean: float, r: float, m: int) -> Burst:
        """Return the law with this mean, about as spread out as NB(r, p) with the same mean.

        With rho = r (m + 1) / m there are mean rho / (mean + rho) bursts of 1 + mean / rho copies:
        where bursts are large, their number is about rho and the variance about mean^2 / r.

        Args:
            mean: The mean, greater than 0.
            r: The spread, greater than 0: the larger, the smaller the variance.
            m: The parameter m of the sizes.

        Returns:
            The law, with rate and p rounded to doubles.

        Raises:
            InvalidParameter: If a number is outside its domain.

        >>> Burst.from_mean(mean=120.0, r=30.0, m=3)
        Burst(rate=30.0, p=0.5, m=3, p_ulps=0.0)
        """
        mean, r = positive("mean", mean), positive("r", r)
        rho = r * (m + 1) / whole("m", m, least=1, most=LARGEST_M)
        return Burst(rate=mean * rho / (mean + rho), p=mean / (mean + rho * m), m=m)

    @property
    def r(self) -> float:
        """The spread for which ``from_mean`` gives this law."""
        return self.mean * (1 - self.p) / ((self.m + 1) * self.p)

    @property
    def mean(self) -> float:
        return self.rate * self._size

    @property
    def variance(self) -> float:
        return self.rate * (self._size**2 + self.m * self.p / (1 - self.p) ** 2)

    def times(self, factor: float) -> Burst:
        """Return the noise of this multiple of the users."""
        return replace(self, rate=self.rate * factor)

    def sample(self, random: np.random.Generator) -> int:
        """Draw a number for simulations: it protects nobody."""
        bursts = int(random.poisson(self.rate))
        return bursts + int(random.negative_binomial(self.m * bursts, 1 - self.p) if bursts else 0)

    @property
    def _size(self) -> float:
        """Expected copies of a burst."""
        return 1 + self.m * self.p / (1 - self.p)

    @property
    def single(self) -> float:
        """The rate of bursts of one copy, rate (1 - p)^m, within ``3 m + 1`` roundings."""
        found = self.rate
        for _ in range(self.m):
            found *= 1 - self.p
        return found

    @property
    def order(self) -> int:
        """Number of sums that the recurrence of the masses keeps."""
        return self.m + 1

    @property
    def weights(self) -> tuple[float, float]:
        """Weights of the recurrence of the masses (bursts.md, Lemma 1)."""
        single = self.single
        return single, single * (self.m - 1) * self.p

    @property
    def extra_roundings(self) -> float:
        """By how much more than 4u + u per part an error of the masses grows per outcome
        (floating_point.md, F1)."""
        return 3 * self.m + 2 + self.p_ulps * (1 + self.m * self.p / (1 - self.p))

    @property
    def log_concave(self) -> bool:
        """False: the law need not be log-concave near 0 (bursts.md, section 3)."""
        return False

    def check_range(self) -> None:
        """Refuse what the evaluators cannot tabulate.

        Raises:
            InvalidParameter: If they cannot.
        """
        if not (self.p >= 1e-30 and self.rate <= 1e9 and self.single >= _SMALLEST_SINGLE):
            raise InvalidParameter(
                f"{self} is outside the range of the evaluators: p >= 1e-30, rate <= 1e9, "
                f"rate (1 - p)^m >= {_SMALLEST_SINGLE:g}"
            )

    def log_moment(self, log_t: float, log_rest: float) -> tuple[float, float]:
        """(log E t^Z, a bound on the size of the numbers that its rounding errors are relative to),
        given log t and log(1 - p t); infinite beyond doubles."""
        right = math.log1p(-self.p)
        exponent = log_t + self.m * (right - log_rest)
        if exponent > _LARGEST_EXPONENT:
            return math.inf, math.inf
        logarithms = 8 + abs(log_t) + self.m * (abs(log_rest) + abs(right) + 8)
        return (
            self.rate * math.expm1(exponent),
            self.rate * (1 + math.exp(exponent)) * logarithms,
        )

    def tilted_mean(self, log_t: float, log_rest: float) -> float:
        """Estimate the mean under the weights t^Z."""
        exponent = log_t + self.m * (math.log1p(-self.p) - log_rest)
        if exponent > _LARGEST_EXPONENT:
            return math.inf
        size = 1 + self.m * self.p * math.exp(log_t - log_rest)
        return self.rate * math.exp(exponent) * size

    def largest_loss(self, shift: int) -> float:
        """An upper bound on sup_z log f(z) - log f(z + shift), for a positive shift: each unit
        costs at most -log p, but the first may cost -log(rate (1 - p)^m) at z = 0 (bursts.md,
        Lemma 2)."""
        unit = -math.log(self.p)
        first = max(unit, -math.log(self.rate) - self.m * math.log1p(-self.p))
        size = shift * unit + abs(first) + abs(math.log(self.rate))
        inexact = self.p_ulps * (shift + self.m * self.p / (1 - self.p))
        margin = (16 + 16 * self.m) * (1 + size) + inexact
        return (shift - 1) * unit + first + margin * UNIT_ROUNDOFF

    def __str__(self) -> str:
        return f"Burst(rate={self.rate:.6g}, p={self.p:.9g}, m={self.m})"
