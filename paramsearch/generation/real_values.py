"""Real values in [0, 1]: how finely to round, and how much of the error to spend on rounding.

A value is rounded at random to a multiple of 1 / max_value, which adds a variance of at most 1/4 in
units of that step for each user, and the integers are summed.  In units of the values, the mean
squared error is at most

    n / (4 max_value^2) + (variance of DLap(eps* / max_value)) / max_value^2.

For each max_value this determines the largest central noise that an error allows.  Coarser rounding
means shorter messages; finer rounding leaves more of eps for the atoms, so that they need fewer
messages.  The paper takes max_value = ceil(eps/2 sqrt(n / zeta)).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from accounting.base.bisection import first_integer
from accounting.base.errors import InvalidParameter
from accounting.base.progress import Progress, silent
from accounting.base.validation import positive, probability
from accounting.model.costs import bits_per_message, discrete_laplace_variance
from accounting.model.problem import Problem
from accounting.model.proof_types import LARGEST_VALUE
from paramsearch.search.families import hub_families
from paramsearch.search.target import Target

_GROWTH = 1.12
"""Exponent of max_value with which messages are predicted to grow beyond small problems; rule of
thumb."""
_LARGEST_SHARE = 0.99
"""Largest share of eps for the central noise."""
_HUBS_PER_LOG = 2
"""Predicted number of hubs in an alphabet, per unit of log max_value; rule of thumb."""
_FACTORS = (1.0, 1.03, 1.1, 1.25, 1.5, 2.0, 3.0)
"""Values of max_value that are tried, as multiples of the smallest possible one; rule of thumb."""
_MOST_BITS = 12
"""Bits per message up to which the largest max_value of each number of bits is tried as well."""


@dataclass(frozen=True)
class Rounding:
    """A choice of max_value; ``messages`` of noise and ``bits`` per user are predictions."""

    max_value: int
    eps_central: float
    messages: float
    bits: float

    def error(self, n: int) -> tuple[float, float]:
        """The variance of rounding (at most) and that of the noise, in units of the values."""
        step = self.eps_central / self.max_value
        noise = discrete_laplace_variance(step)
        return n / (4 * self.max_value**2), noise / self.max_value**2


@dataclass(frozen=True)
class RealTarget:
    """The sum of values in [0, 1] with a mean squared error of at most ``mse``.

    The max_value of ``problem`` is not used.
    """

    problem: Problem
    mse: float

    @staticmethod
    def of(problem: Problem, *, zeta: float | None, max_rmse: float | None) -> RealTarget:
        """The target for a root mean square error, or for the error of the Laplace mechanism with
        (1 - zeta) eps."""
        if (zeta is None) == (max_rmse is None):
            raise InvalidParameter("give either zeta or max rmse")
        if zeta is not None:
            rest = 1 - probability("zeta", zeta)
            return RealTarget(problem, 2 / (rest * problem.eps) ** 2)
        return RealTarget(problem, positive("max rmse", max_rmse) ** 2)

    def eps_central(self, max_value: int) -> float:
        """The smallest eps* that meets the error at this max_value; infinite if none does."""
        variance = self.mse * max_value**2 - self.problem.n / 4
        if variance <= 0:
            return math.inf
        return 2 * max_value * math.asinh(1 / math.sqrt(2 * variance))

    def coarsest(self) -> int:
        """The smallest max_value that leaves the atoms a part of eps."""
        problem = self.problem

        def too_coarse(max_value: int) -> bool:
            return self.eps_central(max_value) > _LARGEST_SHARE * problem.eps

        low, high = 0, 1
        while high <= LARGEST_VALUE and too_coarse(high):
            low, high = high, 2 * high
        if high > LARGEST_VALUE and too_coarse(LARGEST_VALUE):
            least = math.sqrt(problem.n / (4 * LARGEST_VALUE**2) + 2 / problem.eps**2)
            raise InvalidParameter(
                f"an RMSE of {math.sqrt(self.mse):.4g} is out of reach for n = {problem.n:,} "
                f"values rounded to at most {LARGEST_VALUE} steps; about {1.02 * least:.4g} is "
                "possible"
            )
        return min(first_integer(lambda size: not too_coarse(size), low, high), LARGEST_VALUE)

    def predicted(self, max_value: int) -> Rounding:
        """The predicted cost of a rounding, from a small problem with the same slack."""
        eps_central = self.eps_central(max_value)
        small = min(max_value, hub_families.SMALL_PROBLEM)
        target = Target(replace(self.problem, max_value=small), eps_central)
        messages = hub_families.predicted_messages(target) * (max_value / small) ** _GROWTH
        alphabet = max_value + 2 + _HUBS_PER_LOG * math.log(max_value)
        return Rounding(
            max_value,
            eps_central,
            messages,
            bits_per_message(math.ceil(alphabet)) * (1 + messages / self.problem.n),
        )

    def paper_max_value(self) -> int:
        """The paper's max_value, ceil(eps/2 sqrt(n / zeta)), for the zeta of this error."""
        zeta = 1 - math.sqrt(2 / self.mse) / self.problem.eps
        if zeta <= 0:
            raise InvalidParameter("the error is below that of the central Laplace mechanism")
        return math.ceil(self.problem.eps / 2 * math.sqrt(self.problem.n / zeta))

    def choose(self, progress: Progress = silent) -> Rounding:
        """The rounding with the fewest predicted bits per user."""
        least = self.coarsest()
        sizes = {math.ceil(least * factor) for factor in _FACTORS}
        for bits in range(1, _MOST_BITS + 1):
            largest = (1 << bits) - 2 - math.ceil(_HUBS_PER_LOG * math.log(1 << bits))
            sizes.add(largest)  # any larger one needs messages of one more bit
        found = []
        for size in sorted(size for size in sizes if least <= size <= LARGEST_VALUE):
            found.append(self.predicted(size))
            progress(f"max_value {size}: about {found[-1].bits:.4f} bits per user")
        return min(found, key=lambda choice: (choice.bits, choice.max_value))
