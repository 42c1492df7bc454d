"""The tuned numbers of the search over families: what each is, in which unit, where it comes from.

All of them are rules of thumb, found by trying problems with max_value 1 to 1,000 at eps = 1 and
delta = 1e-6.  They decide how fast and how well a search ends, never what is certified.
"""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class ScreeningSettings:
    """Settings of stage 1."""

    gap: float = 5e-4
    """Relative duality gap of a program."""
    coarse_from: int = 150
    """The max_value from which the gap grows in proportion, because solutions take longer."""
    largest_gap: float = 3e-3
    """Relative duality gap that is never exceeded."""
    rough_gap: float = 4.0
    """Gap of the first solution for a random change, in units of the gap."""
    smallest_gain: float = 0.6
    """Relative gain in value from which a change of an atom is tried, in units of the gap."""
    promising: float = 1.1
    """Random changes within this ratio of the value before are improved."""
    promising_among_few: float = 1.2
    """The same where there are few families."""
    few_families_until: int = 12
    """Largest max_value with few families."""
    small: int = 64
    """Largest max_value that is searched without the shapes of a smaller one."""
    largest_ratio: float = 4.0
    """Largest ratio of a max_value and the smaller one whose shapes it takes."""
    rescaled: int = 4
    """Number of shapes that a larger max_value takes."""
    few_hubs_until: int = 1500
    """Largest max_value at which families with a few hubs are starts."""
    spacings: tuple[float, ...] = (0.7, 1.0, 1.4, 2.0)
    """Spacings of evenly spaced hubs, in units of the square root of max_value."""
    starts: int = 10
    """Number of the best starts that are improved where that is quick."""
    start_values: int = 3000
    """max_value times the number of starts that are improved where that takes minutes."""
    quick_changes: int = 40
    """Random changes of a quick prediction."""
    quick_starts: int = 2
    """Starts that a quick prediction improves."""
    changes_per_try: int = 9
    """Random changes for each try of the budget."""
    changes_per_pair: int = 8
    """Most random changes for each pair of inputs."""
    quick_until: int = 50
    """The max_value below which there are more changes, in inverse proportion."""
    most_often: float = 2.5
    """Largest factor by which there are more."""
    pool: int = 40
    """Number of families that are kept."""
    near_best: int = 12
    """Number of the best families that random changes begin with."""
    at_once: int = 16
    """Random changes that begin with the same best families, for threads to share."""
    few_at_once: int = 4
    """The same where there are few changes."""
    batches: int = 16
    """Number of such batches that is worth having."""
    patience: int = 3
    """Number of single changes of atoms in a row that may fail, for a start."""
    little_patience: int = 2
    """The same for a random change."""

    def gap_at(self, max_value: int) -> float:
        """Return the relative duality gap for a max_value."""
        return min(self.largest_gap, self.gap * max(1.0, max_value / self.coarse_from))

    def improved_starts(self, max_value: int) -> int:
        """Return how many of the best starts are improved."""
        return max(2, min(self.starts, self.start_values // max_value))

    def changes(self, max_value: int, tries: int) -> int:
        """Return the number of random changes: fewer where each takes longer, or there are few
        families."""
        quick = max(1.0, min(self.most_often, self.quick_until / max_value))
        share = quick * min(1.0, self.small / max_value)
        wanted = math.ceil(self.changes_per_try * tries * share)
        return min(wanted, self.changes_per_pair * max_value**2)

    def batch(self, changes: int) -> int:
        """Return how many random changes begin with the same best families."""
        return min(self.at_once, max(self.few_at_once, changes // self.batches))


@dataclass(frozen=True)
class SearchSettings:
    """Settings of stage 2, and how it shares a budget in seconds with stage 1."""

    screening_until: float = 0.35
    """Share of the budget after which the first round of stage 1 ends."""
    solving_until: float = 0.55
    """Share after which no family that stage 1 passes on is solved any more."""
    atoms_until: float = 0.8
    """Share after which single atoms no longer change."""
    random_until: float = 0.95
    """Share after which hubs no longer change at random."""
    worthwhile_gain: float = 2e-4
    """Relative gain in price from which a change is worthwhile."""
    promising: float = 1.006
    """A randomly changed family within this ratio of the price before is improved."""
    similar: float = 1.01
    """Random changes go to stage 2 up to this ratio of the messages that stage 1 predicts."""
    give_up: float = 1.01
    """Stage 2 ends early for a family that is unlikely to come within this ratio of the best."""
    fewest_ranked: int = 5
    """Number of families from which a rank correlation says something."""
    at_once: int = 8
    """Families that are solved with the same best one in mind, for threads to share."""
    patience: int = 12
    """Number of single changes of atoms in a row that may fail where a search refines a file."""
