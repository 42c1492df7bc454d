"""Real values in [0, 1]: how fine to round, and how much of the error to spend on rounding.

A value is rounded at random to a multiple of 1 / max_value, which adds a variance of at most 1/4 in
units of that step for each user, and the integers are summed.  In units of the values the mean
squared error is at most

    n / (4 max_value^2) + (variance of DLap(eps* / max_value)) / max_value^2.

For each max_value this fixes the largest central noise that an error allows; a coarser rounding
means shorter messages, a finer one more of eps for the atoms and so fewer of them.  The paper takes
max_value = ceil(eps/2 sqrt(n / zeta)).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from accounting.base.errors import InvalidParameter
from accounting.base.progress import Progress, silent
from accounting.base.validation import positive, real
from accounting.protocol import LARGEST_VALUE
from paramsearch.search import hub_families as hubs
from paramsearch.search.target import Target

_SMALL = 24
"""Costs are foretold from problems of this max_value."""
_GROWTH = 1.12
"""Exponent with which the messages are taken to grow from there."""
_MOST_SHARE = 0.99
"""Of eps for the central noise."""


@dataclass(frozen=True)
class Rounding:
    """A choice; ``bits`` per user and ``messages`` of noise are foretold, not proved."""

    max_value: int
    eps_central: float
    messages: float
    bits: float

    def error(self, n: int) -> tuple[float, float]:
        """The variances of rounding (at most) and of the noise, in units of the values."""
        step = self.eps_central / self.max_value
        noise = 0.5 / math.sinh(step / 2) ** 2
        return n / (4 * self.max_value**2), noise / self.max_value**2


@dataclass(frozen=True)
class RealProblem:
    """An error ``mse`` in units of the values."""

    n: int
    eps: float
    delta: float
    mse: float

    @staticmethod
    def of(
        *, n: int, eps: float, delta: float, zeta: float | None, max_rmse: float | None
    ) -> RealProblem:
        """``zeta``: as the Laplace mechanism with (1 - zeta) eps."""
        if (zeta is None) == (max_rmse is None):
            raise InvalidParameter("give either zeta or max rmse")
        if zeta is not None:
            share = real("zeta", zeta)
            if not 0 < share < 1:
                raise InvalidParameter(f"zeta = {share:g} must lie strictly between 0 and 1")
            return RealProblem(n, eps, delta, 2 / ((1 - share) * positive("eps", eps)) ** 2)
        assert max_rmse is not None
        return RealProblem(n, eps, delta, positive("max rmse", max_rmse) ** 2)

    def eps_central(self, max_value: int) -> float:
        """The smallest eps* that the error allows at this rounding; infinite if none does."""
        variance = self.mse * max_value**2 - self.n / 4
        if variance <= 0:
            return math.inf
        return 2 * max_value * math.asinh(1 / math.sqrt(2 * variance))

    def coarsest(self) -> int:
        """The smallest max_value that leaves the atoms a part of eps."""
        low, high = 0, 1
        while high <= LARGEST_VALUE and self.eps_central(high) > _MOST_SHARE * self.eps:
            low, high = high, 2 * high
        if high > LARGEST_VALUE and self.eps_central(LARGEST_VALUE) > _MOST_SHARE * self.eps:
            least = math.sqrt(self.n / (4 * LARGEST_VALUE**2) + 2 / self.eps**2)
            raise InvalidParameter(
                f"an RMSE of {math.sqrt(self.mse):.4g} is out of reach for n = {self.n:,} values "
                f"rounded to at most {LARGEST_VALUE} steps; about {1.02 * least:.4g} is possible"
            )
        while high - low > 1:
            middle = (low + high) // 2
            if self.eps_central(middle) > _MOST_SHARE * self.eps:
                low = middle
            else:
                high = middle
        return min(high, LARGEST_VALUE)

    def foretold(self, max_value: int) -> Rounding:
        """What a rounding will cost, from a small problem with the same slack."""
        eps_central = self.eps_central(max_value)
        small = min(max_value, _SMALL)
        target = Target(small, self.eps, self.delta, eps_central, self.n)
        messages = hubs.foretold(target) * (max_value / small) ** _GROWTH
        alphabet = max_value + 2 + 2 * math.log(max_value)
        return Rounding(
            max_value,
            eps_central,
            messages,
            math.ceil(math.log2(alphabet)) * (1 + messages / self.n),
        )

    def paper(self) -> int:
        """ceil(eps/2 sqrt(n / zeta)) for the zeta that this error amounts to."""
        zeta = 1 - math.sqrt(2 / self.mse) / self.eps
        if zeta <= 0:
            raise InvalidParameter("the error is below that of the central Laplace mechanism")
        return math.ceil(self.eps / 2 * math.sqrt(self.n / zeta))

    def choose(self, progress: Progress = silent) -> Rounding:
        """The rounding with the fewest bits per user, as foretold."""
        least = self.coarsest()
        sizes = {math.ceil(least * factor) for factor in (1.0, 1.03, 1.1, 1.25, 1.5, 2.0, 3.0)}
        for bits in range(1, 13):
            largest = (1 << bits) - 2 - math.ceil(2 * math.log(1 << bits))
            sizes.add(largest)  # just before a message needs one bit more
        found = []
        for size in sorted(size for size in sizes if least <= size <= LARGEST_VALUE):
            found.append(self.foretold(size))
            progress(f"max_value {size}: about {found[-1].bits:.4f} bits per user")
        return min(found, key=lambda choice: (choice.bits, choice.max_value))
