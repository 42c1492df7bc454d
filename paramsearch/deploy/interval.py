"""Confidence intervals: the tails of the central noise and of random rounding.

The central noise of m users is Z = z+ - z-, two independent NB(R, q) with R = central.r m / n.

*Fewer users, less error.*  P(|Z| > t) increases with R.  Z is symmetric and unimodal: for R <= 1
the masses p(k) of NB(R, q) fall, so P(Z = d) = sum p(k) p(k + d) falls in d >= 0; for R >= 1 they
are log-concave, and so is the law of the difference.  The noise of further users is independent of
Z, and among all windows of 2 t + 1 integers the one around 0 has the greatest probability.  So an
interval for m users covers for every smaller number: the one for all participants covers whether
all of them add their noise, only the honest fraction, or fewer.  By symmetry P(Z > t) increases
with R as well, for every t >= 0.

*By convolution.*  P(Z > t) = sum_k p(k) P(z+ > k + t).  The masses are products of the ratios
p(k+1) / p(k) = q (R + k) / (k + 1), divided by their sum.  What is left out on either side is at
most a geometric series.  All terms are positive, so relative rounding errors add up: at most 14 for
each mass in the numerator and 14 in the denominator; the code allows for 32.

*Real values* are rounded to neighbouring steps, which adds W, the sum of B_i - b_i, with B_i a
Bernoulli variable of mean b_i that depends on the value.  Whatever the values of the U users are,
for x >= 1

    P(|W| >= x) <= 2 Phi(-2 (x - 1) / sqrt(U)).

Among all b_i of the same sum, equal ones have the largest P(W >= x) if x >= 1 (Hoeffding 1956,
theorem 4).  A binomial variable S of mean U b has P(S >= c) <= Phi(-sqrt(2 U H)) if c - 1 >= U b,
with H the divergence of (c - 1)/U from b (Zubkov and Serov 2013), and H >= 2 ((x - 1)/U)^2 if
c >= U b + x (Pinsker).  Hoeffding's inequality (1963) is P(|W| >= x) <= 2 e^(-2 x^2 / U), for any
x.  The smaller of the two bounds is V(x).

On a grid of steps B, with s = SB, P(|Z + w| > s) is at most P(Z > (S-i-1) B) + P(Z > (S+i) B) for
|w| in (iB, (i+1)B] and i < S, and at most 1 beyond.  Let G_i be the largest of these bounds up to
i, and G_S = 1.  Then P(|Z + W| > s) <= G_0 + sum over i of (G_i - G_(i-1)) V(iB).  The tails are at
t >= 0, so here as well the interval covers for every smaller number of users.  It is at most a few
percent longer than the one for values halfway between steps.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import cache

import numpy as np

from accounting.base.bisection import first_integer
from accounting.base.errors import InvalidParameter, Undecided
from paramsearch.parameters.parameter_file import ParameterFile

_LARGEST_SUPPORT = 1 << 21
"""Largest number of masses kept in memory; a wider law is bounded by formulas."""
_DEPTH = 70.0
"""Masses below about e^-70 of the largest are left out; a bound on their sum is added."""
_TINY = 1e-300
"""Larger than everything lost to underflow."""
_STEPS = 256
"""Number of grid steps on which the interval of real values is searched for; rule of thumb."""
_ABOVE = 1 + 2e-12
"""Factor that covers the r of a file, which is within a relative 1e-12 of what its rationals give
(``parameters.assembly.consistent``)."""
_FEW_ROUNDINGS = 1 + 1e-12
"""Factor that covers the rounding errors of a short formula."""


class CentralTails:
    """Upper bounds on the tails of Z for this number of users of a file."""

    def __init__(self, file: ParameterFile, users: int) -> None:
        exact = Fraction(file.central.r) * users / file.problem.n
        self.r = float(exact) * _ABOVE
        self.q = float(Fraction(file.central.p))
        self._one_minus_q = float(1 - Fraction(file.central.p))
        if not (0 < self.q < 1 and 0 < self._one_minus_q < 1 and math.isfinite(self.r)):
            raise InvalidParameter(
                f"the file has central noise with p = {file.central.p:.40}, too close to 0 or 1 "
                "for an interval to be computed; choose a p further away from 0 and 1"
            )
        self.loss = -math.log1p(-self._one_minus_q)
        spread = math.sqrt(2 * _DEPTH * self.r) + _DEPTH
        self._mode = max(0, math.floor((self.q * self.r - 1) / self._one_minus_q))
        self._reach = math.ceil(spread / self.loss) + 1
        below = min(self._mode, self._reach)
        self.exact = below + self._reach < _LARGEST_SUPPORT
        self.above: Callable[[int], float] = cache(
            self._convolution(below) if self.exact else self._formulas
        )
        """An upper bound on P(Z > t), t >= 0, for at most this number of users."""

    def quantile(self, miss: float) -> int:
        """The least t that the bounds show to have P(|Z| > t) <= ``miss``."""
        low, high = -1, 1
        while 2 * self.above(high) > miss:
            low, high = high, 2 * high
        return first_integer(lambda t: not 2 * self.above(t) > miss, low, high)

    def _convolution(self, below: int) -> Callable[[int], float]:
        r, q, mode = self.r, self.q, self._mode
        k = np.arange(mode, mode + self._reach, dtype=np.float64)
        rising = np.cumprod(q * (r + k) / (k + 1))
        k = np.arange(mode, mode - below, -1, dtype=np.float64)
        falling = np.cumprod(k / (q * ((r - 1) + k)))  # r > 1 where there are any
        mass = np.concatenate([falling[::-1], [1.0], rising])
        last, first = mode + self._reach, mode - below
        dropped = _rest(float(mass[-1]), max(q, q * (r + last) / (last + 1)))
        if first:
            dropped += _rest(float(mass[0]), first / (q * (r - 1 + first)))
        beyond = np.concatenate([np.cumsum(mass[:0:-1])[::-1], [0.0]])  # sums of all later masses
        whole = float(mass[0] + beyond[0])
        error = 32 * len(mass) * 2.0**-53
        lost = 2 * dropped / whole * (1 + error)

        def tail(t: int) -> float:
            if t >= len(mass):
                return lost + _TINY
            found = float(np.dot(mass[: len(mass) - t], beyond[t:])) / whole**2
            return min(1.0, found * (1 + error) + lost + _TINY)

        return tail

    def _formulas(self, t: int) -> float:
        """The smaller one of Chernoff's bound and a bound by the discrete Laplace law of R = 1.

        Less noise has smaller tails, and the compound Poisson events that R has in excess of 1
        occur with probability at most 2 (R - 1) log(1 / (1 - q)).
        """
        one_minus_q, q = self._one_minus_q, self.q
        laplace = math.exp(-self.loss * (t + 1)) / (1 + q) * _FEW_ROUNDINGS
        laplace += 2 * max(0.0, self.r - 1) * -math.log(one_minus_q)
        steps = self.loss * np.arange(1, 256) / 256
        moment = -np.log1p(-q * np.expm1(steps) / one_minus_q) - np.log1p(
            -q * np.expm1(-steps) / one_minus_q
        )
        chernoff = math.exp(min(0.0, float((self.r * moment - steps * t).min())))
        return min(1.0, laplace, chernoff * (1 + 1e-9))


def _rest(mass: float, ratio: float) -> float:
    """The sum of all masses after this one, if each is at most ``ratio`` times the one before."""
    if not ratio < 1:
        raise Undecided(
            f"beyond the table of the central noise its masses fall by a factor of {ratio:g} or "
            "less: the interval is not known; ask about fewer users"
        )
    return mass * ratio / (1 - ratio) * (1 + 1e-6) + _TINY


def half_width(noise: CentralTails, miss: float, *, rounded: int = 0) -> int:
    """A number of steps that the error exceeds with probability at most ``miss``.

    ``rounded`` users have rounded a real value at random.  If there are none, it is the least such
    number.
    """
    if not rounded:
        return noise.quantile(miss)
    # where each of the two errors has half the probability, the interval is wide enough
    hoeffding = math.sqrt(rounded * math.log(4 / miss) / 2) * _FEW_ROUNDINGS
    most = noise.quantile(miss / 2) + math.ceil(hoeffding)
    step = max(1, most // _STEPS)
    size = first_integer(
        lambda size: _miss_of_reals(noise, size, step, rounded) <= miss, -1, -(-most // step)
    )
    return min(most, size * step)


def _miss_of_reals(noise: CentralTails, size: int, step: int, rounded: int) -> float:
    """An upper bound on P(|Z + W| > size * step) for this number of rounded values."""
    at = np.array([noise.above(i * step) for i in range(2 * size)])
    apart = np.minimum(np.append(at[:size][::-1] + at[size:], 1.0), 1.0)
    growth = np.diff(np.maximum.accumulate(apart))
    beyond = [rounding_tail(i * step, rounded) for i in range(1, size + 1)]
    return float(apart[0] + growth @ np.array(beyond)) * _FEW_ROUNDINGS


def rounding_tail(x: float, users: int) -> float:
    """An upper bound on P(|W| >= x), x >= 0, for any real values of this number of users."""
    hoeffding = 2 * math.exp(-2 * x * x / users)
    normal = math.erfc((x - 1) * math.sqrt(2 / users)) if x > 1 else 1.0
    return min(1.0, hoeffding, normal)
