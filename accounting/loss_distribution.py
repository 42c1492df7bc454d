"""The privacy loss of one user in releases of several mechanisms, and beside other accountants.

A loss distribution stands for a number of independent releases of mechanisms that the same people
take part in, in any order, with any change of one user's input in each, chosen adaptively
(composition/releases.md).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Literal

import numpy as np

from accounting.base.bisection import arithmetic_mean, bisection
from accounting.base.enclosure import Enclosure, Summarized, monotone, readings
from accounting.base.errors import InvalidParameter
from accounting.base.progress import Progress, silent
from accounting.base.validation import (
    gap_width,
    instance,
    not_negative,
    probability,
    whole,
)
from accounting.composition.all_releases import AllReleases
from accounting.composition.any_sequence import MOST_STEPS
from accounting.composition.export import checked_interval, exported
from accounting.composition.several_mechanisms import Releases
from accounting.evaluator.view_pairs import ViewPairs
from accounting.model.change import SUBSTITUTION, Adjacency, check_adjacency
from accounting.model.mechanism import Mechanism
from accounting.model.proof_types import MOST_RELEASES
from accounting.proof.directed_rounding import configuration, geometric
from accounting.protocol import Protocol

if TYPE_CHECKING:
    from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution

GAP = 1e-4
"""Share of delta that the grid of an upper bound should add at most."""
_STEP_GAP, _NARROW = 1e-3, 1e-3
"""Relative gap of the induction's grid; relative width at which its search for eps ends."""


@dataclass(frozen=True, repr=False)
class LossDistribution(Summarized):
    """The privacy loss of one user in independent releases, in any order, with any change in each.

    Args:
        mechanisms: What is deployed, in exact numbers; all different, with one dimension.
        times: Number of releases of each of them.
        adjacency: Which data sets are neighbors: "substitution" or "zero-out".

    Raises:
        InvalidParameter: If a number is outside its domain, the dimensions differ, or only a
            fraction of the central noise is there.
        InvalidFamily: If the atoms of a mechanism do not protect every input.

    >>> from fractions import Fraction
    >>> from accounting import ExactCentral, ExactNoise, LossDistribution, Mechanism
    >>> noise = ExactNoise(p=Fraction(96, 100), r=Fraction(12))
    >>> daily, weekly = (
    ...     LossDistribution.of(Mechanism(1, {(-1, 1): (noise,)}, ExactCentral(step=step)))
    ...     for step in (Fraction(9, 10), Fraction(1, 2))
    ... )
    >>> print(daily.delta(1.0))  # doctest: +ELLIPSIS
    [1.57...e-06, 1.57...e-06]
    >>> month = daily.power(30).compose(weekly.power(4))
    >>> found = month.epsilon(1e-5)
    >>> 27.4 < found.lower <= found.upper < 27.5
    True
    >>> month
    <LossDistribution 30 + 4 releases of 2 mechanisms, any change in each
     max_value 1, 1; dimension 1; substitution>
    """

    mechanisms: tuple[Mechanism, ...]
    times: tuple[int, ...]
    adjacency: Adjacency = SUBSTITUTION

    def __post_init__(self) -> None:
        check_adjacency(self.adjacency)
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
    def of(
        mechanism: Mechanism, times: int = 1, *, adjacency: Adjacency = SUBSTITUTION
    ) -> LossDistribution:
        """Return the loss distribution of one mechanism.

        Args:
            mechanism: What is deployed, in exact numbers.
            times: Number of releases.
            adjacency: Which data sets are neighbors.

        Returns:
            The loss distribution of so many releases.

        Raises:
            InvalidParameter: If a number is outside its domain.
        """
        return LossDistribution((mechanism,), (times,), adjacency)

    def compose(self, *others: LossDistribution) -> LossDistribution:
        """Return the loss of these releases together with others, in any order.

        Args:
            others: What the same people take part in as well, with independent noise.

        Returns:
            The loss distribution of all of them.

        Raises:
            InvalidParameter: If the dimensions or the adjacencies differ, or there are too many
                releases.
        """
        mechanisms, times = list(self.mechanisms), list(self.times)
        for other in others:
            instance("other", other, (LossDistribution,), "LossDistribution.of makes one")
            if other.adjacency != self.adjacency:
                raise InvalidParameter(
                    f"adjacencies {self.adjacency} and {other.adjacency} are mixed: they compare "
                    "different data sets; compose releases of one adjacency"
                )
            for mechanism, count in zip(other.mechanisms, other.times, strict=True):
                if mechanism in mechanisms:
                    times[mechanisms.index(mechanism)] += count
                else:
                    mechanisms.append(mechanism)
                    times.append(count)
        return replace(self, mechanisms=tuple(mechanisms), times=tuple(times))

    def power(self, times: int) -> LossDistribution:
        """Repeat all of these releases.

        Args:
            times: How often.

        Returns:
            The loss distribution of all of them.

        Raises:
            InvalidParameter: If it is not at least once, or there are too many releases.
        """
        times = whole("times", times, least=1)
        return replace(self, times=tuple(count * times for count in self.times))

    @property
    def releases(self) -> int:
        """Number of releases in all."""
        return sum(self.times)

    def delta(self, eps: float, *, gap: float = GAP, progress: Progress = silent) -> Enclosure:
        """delta(eps) of all releases together, whether eps is read as a double or as a decimal.

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
        low, high = readings(eps)
        bounds = self._all.near(low, gap=gap, progress=progress)
        found = Enclosure(bounds(high).lower, bounds(low).upper)
        if not self._inductive:
            return found
        return Enclosure(found.lower, min(found.upper, self._by_induction(low)))

    def profile(
        self, grid: Sequence[float], *, gap: float = GAP, progress: Progress = silent
    ) -> list[tuple[float, Enclosure]]:
        """Bound delta on a grid of eps.

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

    def epsilon(self, delta: float, *, gap: float = GAP, progress: Progress = silent) -> Enclosure:
        """The smallest eps >= 0 with delta(eps) <= delta, the smaller reading of that number.

        Args:
            delta: The delta of the guarantee, a double or the decimal that it is written as.
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
        delta, gap = readings(probability("delta", delta))[0], gap_width(gap)
        found = self._all.epsilon(delta, gap=gap, progress=progress)
        if not self._inductive:
            return found
        _, high = bisection(
            lambda eps: self._by_induction(eps) <= delta,
            found.lower,
            found.upper,
            mean=arithmetic_mean,
            narrow=lambda below, above: above - below <= _NARROW * above,
        )
        return Enclosure(found.lower, high)

    @property
    def _inductive(self) -> bool:
        """Whether these are few releases of one mechanism, whose order does not matter: then the
        induction over them gives less than the product of pairs (releases.md, Theorem 1)."""
        return len(self.mechanisms) == 1 and 1 < self.releases <= MOST_STEPS

    def _by_induction(self, eps: float) -> float:
        """Return an upper bound of delta(eps)."""
        ((less, _),) = self._protocols
        return replace(less, releases=self.releases).delta(eps, gap=_STEP_GAP).enclosure.upper

    def to_dp_accounting(
        self, value_discretization_interval: float = 1e-4
    ) -> PrivacyLossDistribution:
        """Export the loss to google's dp_accounting, to compose with its mechanisms.

        What is proved: the masses of one release of each mechanism, as the doubles they are, have a
        delta of at least the true one at every eps, alone and composed with anything.  What is
        not: dp_accounting's own arithmetic, which composes in plain floating point, with errors of
        about 1e-16 in delta, and truncates tails of 1e-15, which it adds to delta.  Several
        releases are composed by dp_accounting.  What it is composed with must be for the same
        neighbors: under substitution, noise for the change of one user's data, not for its removal.

        Args:
            value_discretization_interval: Step of the grid of losses; both libraries must use the
                same one.

        Returns:
            A ``dp_accounting.pld.privacy_loss_distribution.PrivacyLossDistribution``, pessimistic,
            with one law for both directions of a change; under zero-out one for removing one
            user's data and one for adding it.

        Raises:
            InvalidParameter: If the interval is outside its domain, or dp_accounting is missing.
            TooLarge: If the interval makes too fine a grid.

        >>> from accounting import LossDistribution
        >>> from paramsearch import load
        >>> from paramsearch.tables.lookup import shipped_folder
        >>> from dp_accounting.pld import privacy_loss_distribution as pld
        >>> file = load(shipped_folder() / "files" / "5-1-1e-06-0.9.json")
        >>> ours = LossDistribution.of(file.mechanism()).to_dp_accounting()
        >>> theirs = pld.from_gaussian_mechanism(standard_deviation=4.0)
        >>> 1.0 < ours.compose(theirs).get_epsilon_for_delta(1e-5) < 2.0
        True
        """
        interval = checked_interval(value_discretization_interval)
        singles = [LossDistribution.of(m, adjacency=self.adjacency) for m in self.mechanisms]
        return exported([single._all.on_grid(interval) for single in singles], self.times)

    def summary(self) -> tuple[str, str]:
        """Return the number of releases of each mechanism, and what they are about."""
        counts = " + ".join(f"{times:,}" for times in self.times)
        several = f" of {len(self.mechanisms)} mechanisms" if len(self.mechanisms) > 1 else ""
        plural = "s" * (self.releases > 1)
        values = ", ".join(f"{mechanism.max_value:,}" for mechanism in self.mechanisms)
        return (
            f"{counts} release{plural}{several}, any change in each",
            f"max_value {values}; dimension {self.mechanisms[0].dimension:,}; {self.adjacency}",
        )

    @cached_property
    def _protocols(self) -> list[tuple[Protocol, Protocol]]:
        """Each mechanism in doubles, with at most and with at least its noise."""
        return [
            (self._protocol(mechanism, "less"), self._protocol(mechanism, "more"))
            for mechanism in self.mechanisms
        ]

    def _protocol(self, mechanism: Mechanism, noise: Literal["less", "more"]) -> Protocol:
        config = configuration(geometric(mechanism, noise=noise), noise=noise)
        return Protocol(config, adjacency=self.adjacency)

    @cached_property
    def _all(self) -> AllReleases:
        directions = []
        for chosen in zip(
            *(less.one_release.directions for less, _ in self._protocols), strict=True
        ):
            views = [
                [_part(protocol.view_pairs, direction) for protocol in both]
                for both, direction in zip(self._protocols, chosen, strict=True)
            ]
            directions.append(
                [
                    Releases(less, more, times)
                    for (less, more), times in zip(views, self.times, strict=True)
                ]
            )
        # the eps of the central noise in a few releases, or of the square root of many
        typical_eps = sum(
            less.configuration.eps_central * min(times, 5 * math.sqrt(times))
            for (less, _), times in zip(self._protocols, self.times, strict=True)
        )
        exact = all(less.configuration.family.exact for less, _ in self._protocols)
        return AllReleases(directions, exact, typical_eps)


def _part(views: ViewPairs, changes: Sequence[int]) -> ViewPairs:
    """Keep only these changes."""
    return views if len(changes) == views.pair_count else views.subset(np.array(changes))
