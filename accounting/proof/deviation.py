"""The distance of the deployed central noise from NB(1, q), and what it adds to delta.

The fast evaluators know NB(1, q) only.  A deployed rate is rounded, so its share of NB(1, q) is not
exactly 1; the total variation distance between the two is added to the bounds.
"""

from __future__ import annotations

from dataclasses import dataclass

from accounting.base.balls import above, ball, below, precision
from accounting.base.enclosure import Enclosure
from accounting.model.change import Adjacency
from accounting.model.mechanism import Mechanism
from accounting.model.question import Question

_BITS = 128
"""Working precision."""


@dataclass(frozen=True)
class Deviation:
    """At most ``size`` at one eps; ``helps`` if the share is at least 1, which is more noise."""

    size: float
    helps: bool

    @staticmethod
    def of(mechanism: Mechanism, eps: float, releases: int, adjacency: Adjacency) -> Deviation:
        """Bound the deviation of all releases together."""
        with precision(_BITS):
            # no two deltas differ by more than 1
            size = min(1.0, above(mechanism.deviation(eps, releases, adjacency)))
            return Deviation(size, bool(mechanism.central.share() >= 1))

    @property
    def added(self) -> float:
        """The part of the deviation that an upper bound has to allow for."""
        return 0.0 if self.helps else self.size

    def widened(self, lower: float, upper: float) -> Enclosure:
        """Turn bounds for NB(1, q) into bounds for the deployed noise."""
        with precision(_BITS):
            low = below(ball(lower) - ball(self.size))
            high = above(ball(upper) + ball(self.added))
        return Enclosure(max(0.0, low), min(1.0, high))


def is_thinned(mechanism: Mechanism, question: Question, tolerated: float) -> bool:
    """Tell whether the central noise is too far from NB(1, q) to count its deviation."""
    with precision(_BITS):
        whole = mechanism.central.whole()
    if whole:
        return False
    deviation = Deviation.of(mechanism, question.eps, question.releases, question.adjacency)
    return deviation.size > tolerated
