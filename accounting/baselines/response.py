"""Generalized randomized response: one message, the value or, with probability g, a random one.

A vector with at most one non-zero coordinate has one of dimension * max_value + 1 values.

As for RAPPOR, the probability is optimistic: the smallest at which one explicit pair of datasets
passes, in which one user changes from j to k and all others have a third value v (0 if max_value is
1), and the view is the counts of j and k.  Without that one user, the counts are trinomial; with
u = g / (max_value + 1) and T the law of n users who all have v, the law with a j is
T(a, b) L(a, b) with

    L(a, b) = ((1 - g + u) a + u b) / (n u) + (g - 2u) (n - a - b) / (n (1 - 2u)),

and with a k it is T(a, b) L(b, a).  For given b the difference L(a, b) - e^eps L(b, a) is linear
and increasing in a, so its positive part over the binomial law of a is two binomial tails.  For
vectors max_value here is the number of values that are not 0; if only some users are honest, n is
their number.  0 is sent like any other value, and k may be 0: zero-out needs as much noise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import stats

from accounting.base.arrays import IntArray
from accounting.base.bisection import bisection, geometric_mean
from accounting.base.errors import InvalidParameter
from accounting.baselines.interface import ForProblem, Run, for_one_release
from accounting.baselines.rappor import binomial, single_divergence
from accounting.model.costs import bits_per_message

_FINEST = 1e-6
"""Relative accuracy of the probability g."""


def divergence(n: int, g: float, max_value: int, eps: float) -> float:
    """Return the divergence d_eps of the counts of j and k."""
    u = g / (max_value + 1)
    if max_value == 1:
        return single_divergence(n, u, eps)  # the others have 0: the count of ones
    b, mass = binomial(n, u)
    scale = math.exp(eps)
    rest = (g - 2 * u) / (n * (1 - 2 * u))
    slope = ((1 - g + u) / u - scale) / n + rest * (scale - 1)
    if slope <= 0:
        return 0.0
    level = (1 - scale * (1 - g + u) / u) * b / n - rest * (scale - 1) * (n - b)
    least = np.floor(-level / slope) + 1
    p = u / (1 - u)  # probability of j, for a user whose message is not k
    count = stats.binom.sf(least - 1, n - b, p)
    moment = (n - b) * p * stats.binom.sf(least - 2, np.maximum(n - b - 1, 0), p)
    return float(np.sum(mass * np.clip(slope * moment + level * count, 0, None)))


@dataclass(frozen=True)
class RandomizedResponse(ForProblem):
    """Randomized response: every user sends one of 0..max_value, with a coordinate unless it is
    0."""

    name = "randomized response"
    guarantee = "optimistic: one pair of datasets passes (eps, delta)"

    def __post_init__(self) -> None:
        super().__post_init__()
        for_one_release(self.name, self.problem)

    @property
    def values(self) -> int:
        """Number of values that are not 0."""
        return self.problem.dimension * self.problem.max_value

    @cached_property
    def chance(self) -> float:
        """The probability g of a random message, with a relative accuracy of 1e-6."""
        p, n = self.problem, self.honest_users
        low, high = 1e-3 / n, 1.0
        if divergence(n, low, self.values, p.eps) <= p.delta:
            raise InvalidParameter(f"delta = {p.delta:g}: no noise at all passes with n = {n}")
        return bisection(
            lambda g: divergence(n, g, self.values, p.eps) <= p.delta,
            low,
            high,
            mean=geometric_mean,
            narrow=lambda low, high: high - low <= _FINEST * high,
        )[1]

    @property
    def mse(self) -> float:
        """The mean squared error for the worst inputs, all of them 0 or max_value in a
        coordinate."""
        g, top = self.chance, self.problem.max_value
        if g == 1:
            return math.inf
        # of a random message: the mean and the mean square of its value in the coordinate
        mean = top * (top + 1) / 2 / (self.values + 1)
        square = mean * (2 * top + 1) / 3
        noise = g * square - (g * mean) ** 2  # the variance of a user with 0
        one = noise + g * (1 - g) * top * max(0.0, top - 2 * mean)
        return self.problem.n * one / (1 - g) ** 2

    @property
    def messages(self) -> float:
        return 1.0

    @property
    def bits(self) -> float:
        return float(bits_per_message(self.values + 1))

    def run(self, values: IntArray, random: np.random.Generator) -> Run:
        g, top = self.chance, self.problem.max_value
        randomized = random.random(len(values)) < g
        sent = np.where(randomized, random.integers(top + 1, size=len(values)), values)
        estimate = (float(sent.sum()) - len(values) * g * top / 2) / (1 - g)
        return Run(estimate, len(sent))
