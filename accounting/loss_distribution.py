"""What one user loses in releases of several mechanisms together, and with other accountants.

A loss distribution stands for a number of independent releases of mechanisms that the same people
take part in, in any order, with any change of one user's input in each, chosen adaptively
(composition/releases.md).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from accounting.base.balls import above, precision
from accounting.base.bisection import arithmetic_mean, bisection
from accounting.base.enclosure import Enclosure, Summarized, monotone
from accounting.base.errors import InvalidParameter, Undecided
from accounting.base.progress import Progress, silent
from accounting.base.validation import gap_width, instance, not_negative, probability, whole
from accounting.composition.any_sequence import MOST_STEPS, sequence_bounds
from accounting.composition.several_mechanisms import Composed, Releases, compose
from accounting.model.mechanism import Mechanism
from accounting.model.proof_types import MOST_RELEASES
from accounting.proof.deviation import Deviation
from accounting.proof.directed_rounding import configuration
from accounting.protocol import Protocol

if TYPE_CHECKING:
    from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution

GAP = 1e-4
"""Share of delta that the grid of an upper bound should add at most."""
_LARGEST_EPS = 1e5
"""Largest eps that is tried."""
_CLOSE = 1e-4
"""Relative change of eps at which the search for it ends."""
_ROUNDS = 40
"""Most grids that are made in a search for eps."""


@dataclass(frozen=True)
class _Rounded:
    """One mechanism in doubles: with at most and with at least its noise."""

    less: Protocol
    more: Protocol
    helps: bool
    """Whether the distance of the central noise from NB(1, q) is more noise."""
    distance: float
    """That distance in one release, in both worlds."""

    @staticmethod
    def of(mechanism: Mechanism) -> _Rounded:
        less, more = (Protocol(configuration(mechanism, noise=n)) for n in ("less", "more"))
        deviation = Deviation.of(mechanism, 0.0, 1)  # (1 + e^0) times the distance
        return _Rounded(less, more, deviation.helps, deviation.size / 2)

    def releases(self, times: int) -> Releases:
        added = 0.0 if self.helps else self.distance
        return Releases(self.less.view_pairs, self.more.view_pairs, times, added)


@dataclass(frozen=True, repr=False)
class LossDistribution(Summarized):
    """The privacy loss of one user in independent releases, in any order, with any change in each.

    Args:
        mechanisms: What is deployed, in exact numbers; all different, with one dimension.
        times: Number of releases of each of them.

    Raises:
        InvalidParameter: If a number is outside its domain, the dimensions differ, or only a
            fraction of the central noise is there.
        InvalidFamily: If the atoms of a mechanism do not protect every input.

    >>> from fractions import Fraction
    >>> from accounting import ExactCentral, ExactNoise, LossDistribution, Mechanism
    >>> noise = ExactNoise(p=Fraction(96, 100), r=Fraction(12))
    >>> daily = LossDistribution.of(Mechanism(1, {(-1, 1): (noise,)}, ExactCentral(step=Fraction(9, 10))))
    >>> weekly = LossDistribution.of(Mechanism(1, {(-1, 1): (noise,)}, ExactCentral(step=Fraction(1, 2))))
    >>> print(daily.delta(1.0))  # doctest: +ELLIPSIS
    [1.56...e-06, 1.56...e-06]
    >>> month = daily.power(30).compose(weekly.power(4))
    >>> found = month.epsilon(1e-5)
    >>> 15 < found.lower <= found.upper < 25
    True
    >>> month
    <LossDistribution 30 + 4 releases of 2 mechanisms, any change in each
     max_value 1, 1; dimension 1>
    """

    mechanisms: tuple[Mechanism, ...]
    times: tuple[int, ...]

    def __post_init__(self) -> None:
        if not self.mechanisms or len(self.mechanisms) != len(self.times):
            raise InvalidParameter(
                f"{len(self.mechanisms)} mechanisms with {len(self.times)} numbers of releases: "
                "give at least one, and as many of both"
            )
        for mechanism in self.mechanisms:
            instance("mechanism", mechanism, (Mechanism,), "file.mechanism() makes one")
            if not mechanism.central.whole():
                raise InvalidParameter(
                    "a loss distribution needs the full central noise, and this mechanism has that "
                    "of a fraction of the users: make a file for that fraction with --honest"
                )
        checked = tuple(whole("times", t, least=1, most=MOST_RELEASES) for t in self.times)
        object.__setattr__(self, "times", checked)
        whole("times", sum(checked), least=1, most=MOST_RELEASES)
        dimensions = sorted({mechanism.dimension for mechanism in self.mechanisms})
        if len(dimensions) > 1:
            raise InvalidParameter(
                f"dimensions {dimensions[0]:,} and {dimensions[1]:,} are mixed: one change of a "
                "user is of a number or of a vector; compose releases of one dimension"
            )

    @staticmethod
    def of(mechanism: Mechanism, times: int = 1) -> LossDistribution:
        """That of one mechanism.

        Args:
            mechanism: What is deployed, in exact numbers.
            times: Number of releases.

        Returns:
            The loss distribution of so many releases.

        Raises:
            InvalidParameter: If a number is outside its domain.
        """
        return LossDistribution((mechanism,), (times,))

    def compose(self, *others: LossDistribution) -> LossDistribution:
        """These releases together with others, in any order.

        Args:
            others: What the same people take part in as well, with independent noise.

        Returns:
            The loss distribution of all of them.

        Raises:
            InvalidParameter: If the dimensions differ, or there are too many releases.
        """
        mechanisms, times = list(self.mechanisms), list(self.times)
        for other in others:
            instance("other", other, (LossDistribution,), "LossDistribution.of makes one")
            for mechanism, count in zip(other.mechanisms, other.times, strict=True):
                if mechanism in mechanisms:
                    times[mechanisms.index(mechanism)] += count
                else:
                    mechanisms.append(mechanism)
                    times.append(count)
        return LossDistribution(tuple(mechanisms), tuple(times))

    def power(self, times: int) -> LossDistribution:
        """All of these releases, so many times.

        Args:
            times: How often.

        Returns:
            The loss distribution of all of them.

        Raises:
            InvalidParameter: If it is not at least once, or there are too many releases.
        """
        times = whole("times", times, least=1)
        return LossDistribution(self.mechanisms, tuple(count * times for count in self.times))

    @property
    def releases(self) -> int:
        """Number of releases in all."""
        return sum(self.times)

    def delta(
        self, eps: float, *, gap: float = GAP, progress: Progress = silent
    ) -> Enclosure:
        """delta(eps) of all releases together.

        Args:
            eps: The eps of the guarantee.
            gap: Share of delta that the grid of the upper bound should add at most.
            progress: Called with one line of text now and then.

        Returns:
            No sequence of changes, however adaptive, exceeds ``upper``; some fixed one attains
            ``lower``, which an adaptive one may exceed.

        Raises:
            InvalidParameter: If a number is outside its domain.
            TooLarge: If the computation would not fit into memory.
        """
        eps, gap = not_negative("eps", eps), gap_width(gap)
        return self._near(eps, gap, progress).enclosure(eps)

    def profile(
        self, grid: Sequence[float], *, gap: float = GAP, progress: Progress = silent
    ) -> list[tuple[float, Enclosure]]:
        """Enclosures of delta on a grid of eps.

        Args:
            grid: Values of eps, in any order.
            gap: As for ``delta``.
            progress: Called with one line of text now and then.

        Returns:
            Pairs (eps, enclosure) by increasing eps; both bounds are monotone.

        Raises:
            InvalidParameter: If a number is outside its domain.
            TooLarge: If the computation would not fit into memory.
        """
        points = sorted({not_negative("eps", eps) for eps in grid})
        found = [self.delta(eps, gap=gap, progress=progress) for eps in points]
        return list(zip(points, monotone(found), strict=True))

    def epsilon(
        self, delta: float, *, gap: float = GAP, progress: Progress = silent
    ) -> Enclosure:
        """The smallest eps >= 0 with delta(eps) <= delta.

        Args:
            delta: The delta of the guarantee.
            gap: As for ``delta``.
            progress: Called with one line of text now and then.

        Returns:
            (``upper``, delta) holds for all releases together; (eps, delta) does not hold for any
            eps below ``lower``.

        Raises:
            InvalidParameter: If a number is outside its domain.
            TooLarge: If the computation would not fit into memory.
            Undecided: If no such eps is found.
        """
        delta, gap = probability("delta", delta), gap_width(gap)
        low, high = 0.0, math.inf
        trial = 1.0
        for _ in range(_ROUNDS):
            near = self._near(trial, gap, progress)
            low = max(low, _last(lambda eps: near.enclosure(eps).lower > delta, trial))
            found = _first(lambda eps: near.enclosure(eps).upper <= delta, trial)
            settled = abs(found - trial) <= _CLOSE * max(found, 0.01) if found < math.inf else False
            high = min(high, found)
            if settled:
                return Enclosure(min(low, high), high)
            if high == math.inf and trial > _LARGEST_EPS:
                break
            trial = high if high < math.inf else 2 * trial
        if high < math.inf:
            return Enclosure(min(low, high), high)
        raise Undecided(
            f"no eps up to {trial:g} has delta <= {delta!r}: some outcome gives an input away with "
            "a larger probability; ask for a larger delta or for fewer releases"
        )

    def summary(self) -> tuple[str, str]:
        """How many releases of what."""
        counts = " + ".join(f"{times:,}" for times in self.times)
        several = f" of {len(self.mechanisms)} mechanisms" if len(self.mechanisms) > 1 else ""
        plural = "s" * (self.releases > 1)
        values = ", ".join(f"{mechanism.max_value:,}" for mechanism in self.mechanisms)
        return (
            f"{counts} release{plural}{several}, any change in each",
            f"max_value {values}; dimension {self.mechanisms[0].dimension:,}",
        )

    @cached_property
    def _rounded(self) -> list[_Rounded]:
        return [_Rounded.of(mechanism) for mechanism in self.mechanisms]

    @cached_property
    def _parts(self) -> list[Releases]:
        return [
            rounded.releases(times)
            for rounded, times in zip(self._rounded, self.times, strict=True)
        ]

    def _near(self, eps: float, gap: float, progress: Progress) -> _Near:
        """Bounds that are close at ``eps``."""
        parts = self._parts
        found = compose(parts, eps, gap=gap, progress=progress)
        exact = all(rounded.less.configuration.family.exact for rounded in self._rounded)
        return _Near(self, found, exact)


@dataclass(frozen=True)
class _Near:
    """Bounds of delta at every eps, close near one."""

    distribution: LossDistribution
    found: Composed
    exact: bool

    def enclosure(self, eps: float) -> Enclosure:
        upper = self.found.pair.delta(eps)
        if not self.exact:
            return Enclosure(0.0, upper)
        lower = self.found.law.delta(eps) - self._deviation(eps)
        return Enclosure(min(max(0.0, math.nextafter(lower, -1.0)), upper), upper)

    def _deviation(self, eps: float) -> float:
        """What the distance of the deployed central noise from NB(1, q) may subtract."""
        if eps > 700:
            return 1.0
        total = 0.0
        for mechanism, times in zip(
            self.distribution.mechanisms, self.distribution.times, strict=True
        ):
            with precision(128):
                total += above(mechanism.deviation(eps, times)) * (1 + 1e-9)
        return total


def _first(holds: Callable[[float], bool], near: float) -> float:
    """Where a condition that holds from some eps on begins to hold, from above; or infinity."""
    if holds(0.0):
        return 0.0
    low, high = 0.0, max(near, 0.01)
    while not holds(high):
        if high > _LARGEST_EPS:
            return math.inf
        low, high = high, 2 * high
    return bisection(holds, low, high, mean=arithmetic_mean, narrow=_narrow)[1]


def _last(holds: Callable[[float], bool], near: float) -> float:
    """Where a condition that holds up to some eps ceases to hold, from below."""
    if not holds(0.0):
        return 0.0
    low, high = 0.0, max(near, 0.01)
    while holds(high) and high <= _LARGEST_EPS:
        low, high = high, 2 * high
    return bisection(lambda eps: not holds(eps), low, high, mean=arithmetic_mean, narrow=_narrow)[0]


def _narrow(low: float, high: float) -> bool:
    return high - low <= 1e-7 * max(high, 1e-3)
