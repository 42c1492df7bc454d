"""Fragmented RAPPOR: a one-hot string of max_value bits, each flipped with probability f; only the
positions of ones are sent.  For vectors the string has max_value bits for each coordinate.

The flip probability is the paper's "optimistic" one (after Ghazi, Kumar, Manurangsi and Pagh 2020,
appendix G.3): the smallest f at which one explicit pair of datasets passes, in which one user
changes from j to k and all others have the value 0.  The counts at the two positions then are

    D = Ber(1 - f) + Bin(n - 1, f)  and  Bin(n, f),  and after the change the other way round,

so d_eps(D x Bin || Bin x D) <= delta is necessary for (eps, delta)-privacy, not sufficient.  With
B = Bin(n, f) the ratio D(a) / B(a) is linear and increasing in a,

    R(a) = (1 - f) a / (n f) + f (n - a) / (n (1 - f)),

so the divergence is the sum over a, b of B(a) B(b) (R(a) - e^eps R(b))_+, by prefix sums.  Under
zero-out the user changes from j to 0 or back, which touches one position: the divergences are those
of D and B, in both directions.  If only some users are honest, n is their number.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np
from scipy import stats

from accounting.base.arrays import FloatArray, IntArray
from accounting.base.bisection import bisection, geometric_mean
from accounting.base.errors import InvalidParameter
from accounting.baselines.interface import ForProblem, Run, for_one_release, value_bits
from accounting.model.change import SUBSTITUTION, Adjacency

_TAIL = 1e-20
"""Mass of a binomial tail that is left out."""
_FINEST = 1e-12
"""Relative accuracy of the flip probability."""


def divergence(n: int, f: float, eps: float) -> float:
    """Return the divergence d_eps of the two counts, exact up to rounding and tails of 1e-20."""
    a, mass = binomial(n, f)
    ratio = (1 - f) * a / (n * f) + f * (n - a) / (n * (1 - f))
    scale = math.exp(eps)
    # for outcome a, the b with R(b) < R(a) / e^eps
    count = np.searchsorted(ratio, ratio / scale, side="left")
    below = np.concatenate([[0.0], np.cumsum(mass)])
    moment = np.concatenate([[0.0], np.cumsum(mass * ratio)])
    return float(np.sum(mass * (ratio * below[count] - scale * moment[count])))


def single_divergence(n: int, f: float, eps: float) -> float:
    """Return the larger d_eps, of both directions, of the count at one position with and without
    one user's value."""
    a, mass = binomial(n, f)
    ratio = (1 - f) * a / (n * f) + f * (n - a) / (n * (1 - f))
    return max(
        float(np.sum(mass * np.clip(ratio - math.exp(eps), 0, None))),
        float(np.sum(mass * np.clip(1 - math.exp(eps) * ratio, 0, None))),
    )


def binomial(n: int, f: float) -> tuple[FloatArray, FloatArray]:
    """Return the outcomes of Bin(n, f) and their masses, without tails below 1e-20."""
    rare = -math.log(_TAIL)  # Bernstein: both tails are below e^-rare
    reach = rare / 3 + math.sqrt(rare**2 / 9 + 2 * rare * n * f * (1 - f))
    first, last = math.floor(n * f - reach), math.ceil(n * f + reach)
    a = np.arange(max(0, first), min(n, last) + 1, dtype=np.float64)
    return a, np.asarray(stats.binom.pmf(a, n, f))


@cache
def flip_probability(n: int, eps: float, delta: float, adjacency: Adjacency) -> float:
    """Find the smallest f that passes, to a relative 1e-12; the divergence decreases in f."""
    low, high = 1e-6 / n, 0.5
    reached = divergence if adjacency == SUBSTITUTION else single_divergence
    if reached(n, low, eps) <= delta:
        raise InvalidParameter(f"delta = {delta:g}: no flipping at all passes with n = {n}")
    return bisection(
        lambda f: reached(n, f, eps) <= delta,
        low,
        high,
        mean=geometric_mean,
        narrow=lambda low, high: high - low <= _FINEST * high,
    )[1]


@dataclass(frozen=True)
class FragmentedRappor(ForProblem):
    """Fragmented RAPPOR, whose analyzer debiases the counts and weights them by their values."""

    name = "fragmented RAPPOR"
    guarantee = "optimistic: one pair of datasets passes (eps, delta)"

    def __post_init__(self) -> None:
        super().__post_init__()
        for_one_release(self.name, self.problem)

    @cached_property
    def flip(self) -> float:
        problem = self.problem
        return flip_probability(self.honest_users, problem.eps, problem.delta, problem.adjacency)

    @property
    def mse(self) -> float:
        """The mean squared error, n f (1 - f) / (1 - 2f)^2 times the sum of the squares of the
        values."""
        top, f = self.problem.max_value, self.flip
        squares = top * (top + 1) * (2 * top + 1) / 6
        return self.problem.n * f * (1 - f) / (1 - 2 * f) ** 2 * squares

    @property
    def messages(self) -> float:
        positions = self.problem.dimension * self.problem.max_value
        return 1 - self.flip + (positions - 1) * self.flip

    @property
    def bits(self) -> float:
        return self.messages * value_bits(self.problem)

    def run(self, values: IntArray, random: np.random.Generator) -> Run:
        top, f, n = self.problem.max_value, self.flip, len(values)
        own = np.bincount(values, minlength=top + 1)[1:]
        counts = random.binomial(own, 1 - f) + random.binomial(n - own, f)
        levels = np.arange(1, top + 1)
        estimate = float(levels @ ((counts - n * f) / (1 - 2 * f)))
        return Run(estimate, int(counts.sum()))
