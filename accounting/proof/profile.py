"""The privacy profile of exact parameters: bounds of delta at any eps, for people who explore.

The fast evaluators are used where the central noise is NB(1, q) up to rounding, and the notary
where only a fraction of the users adds it.  Parameters are rounded towards less noise for upper
bounds and towards more for lower ones, as in ``fast_proof``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from accounting.base.enclosure import readings
from accounting.base.progress import Progress, silent
from accounting.base.validation import gap_width, not_negative
from accounting.model.change import SUBSTITUTION, Adjacency, Change
from accounting.model.delta import Delta
from accounting.model.mechanism import Mechanism
from accounting.model.proof import Proof
from accounting.model.question import Question
from accounting.notary.notary import Notary
from accounting.proof.both_readings import proof_for_both
from accounting.proof.deviation import Deviation
from accounting.proof.fast_proof import rounded_protocol
from accounting.protocol import Protocol


@dataclass(frozen=True)
class Profile:
    """The privacy profile of one mechanism: bounds of delta(eps).

    Args:
        mechanism: What is deployed, in exact numbers.
        releases: Number of releases that are seen together.
        same_change: Whether a user makes the same change in every release.
        adjacency: Which data sets are neighbors.

    Raises:
        InvalidParameter: If ``releases`` or ``adjacency`` is outside its domain.

    >>> from fractions import Fraction
    >>> from accounting import ExactCentral, ExactNoise, Mechanism
    >>> noise = ExactNoise(p=Fraction(96, 100), r=Fraction(12))
    >>> mechanism = Mechanism(1, {(-1, 1): (noise,)}, ExactCentral(step=Fraction(9, 10)))
    >>> print(Profile(mechanism).delta(1.0))  # doctest: +ELLIPSIS
    delta(1) in [1.56...e-06, 1.57...e-06], worst where input 0 becomes 1
    """

    mechanism: Mechanism
    releases: int = 1
    same_change: bool = False
    adjacency: Adjacency = SUBSTITUTION

    def __post_init__(self) -> None:
        _ = self._question  # refuses what is outside its domain

    @property
    def _question(self) -> Question:
        return Question(
            eps=0.0,
            releases=self.releases,
            same_change=self.same_change,
            adjacency=self.adjacency,
        )

    @property
    def any_sequence(self) -> bool:
        """Whether one user's inputs may change differently from release to release."""
        return self._question.any_sequence

    @cached_property
    def _whole(self) -> bool:
        return self.mechanism.central.whole()

    @cached_property
    def _rounded(self) -> tuple[Protocol, Protocol]:
        """With at most and with at least the noise of the mechanism."""
        less = rounded_protocol(self.mechanism, self._question, noise="less")
        more = rounded_protocol(self.mechanism, self._question, noise="more")
        return less, less if less == more else more

    def delta(
        self,
        eps: float,
        *,
        change: Change | None = None,
        gap: float = 0.01,
        absolute: float = 0.0,
        progress: Progress = silent,
    ) -> Delta:
        """Bounds at one eps, for both of its readings (``both_readings``).

        Args:
            eps: The eps of the guarantee.
            change: The only change to consider, made in every release; by default all.
            gap: Relative gap between the bounds at which refining ends.
            absolute: Width of the enclosure at which refining may end as well.
            progress: Called with one line of text now and then.

        Returns:
            The bounds, and the change that attains the lower one.

        Raises:
            InvalidParameter: If a number is outside its domain, or one change is asked about where
                the changes in several releases may differ.
            TooLarge: If the computation would not fit into memory.
        """
        eps, gap = not_negative("eps", eps), gap_width(gap)
        if change is not None:
            self._question.check_about(change, self.mechanism.max_value)
        if not self._whole:
            return self._by_notary(eps, change, gap, progress)
        less, more = self._rounded
        low, high = readings(eps)

        def bounds(protocol: Protocol, at: float) -> Delta:
            if change is not None:
                return protocol.delta_of(change, at, gap=gap, absolute=absolute)
            return protocol.delta(at, gap=gap, absolute=absolute, progress=progress)

        upper = bounds(less, low)
        lower = upper if less is more and low == high else bounds(more, high)
        deviation = Deviation.of(self.mechanism, high, self.releases, self.adjacency)
        enclosure = deviation.widened(lower.enclosure.lower, upper.enclosure.upper)
        return replace(
            upper,
            eps=eps,
            enclosure=enclosure,
            worst_change=lower.worst_change,
            worst_sequence=lower.worst_sequence,
            met=upper.met and lower.met,
        )

    def _by_notary(
        self, eps: float, change: Change | None, gap: float, progress: Progress
    ) -> Delta:
        notary = Notary(self.mechanism, self.releases, self.same_change, self.adjacency)
        changes = None if change is None else [change]

        def at(point: float) -> Proof:
            return notary.enclose(point, gap=gap, changes=changes, progress=progress)

        found = proof_for_both(eps, at, gap=gap)
        every = () if self.any_sequence else changes or self.mechanism.changes(self.adjacency)
        return Delta(
            eps=eps,
            enclosure=found.enclosure,
            worst_change=found.worst_change,
            exact=found.exact,
            met=found.met or not found.exact,
            changes=every,
            lower=np.zeros(0),
            upper=np.zeros(0),
            worst_sequence=found.worst_sequence,
        )
