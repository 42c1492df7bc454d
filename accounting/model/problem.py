"""The problem: what is to be guaranteed, and for whom."""

from __future__ import annotations

from dataclasses import dataclass

from accounting.base.validation import positive, probability, share, whole
from accounting.model.change import (
    SUBSTITUTION,
    Adjacency,
    check_adjacency,
    dimension_of,
    touched_coordinates,
)


@dataclass(frozen=True, kw_only=True)
class Problem:
    """A problem: sum the inputs 0..max_value of n users with (eps, delta)-privacy.

    Args:
        n: Number of users.
        eps: The eps of the guarantee.
        delta: The delta of the guarantee.
        max_value: Inputs are the integers 0..max_value.
        dimension: More than 1 for vectors of this dimension with at most one non-zero coordinate.
        releases: Number of releases that the guarantee covers together.
        same_change: Whether several releases are covered only for a user who makes the same change
            in every one; otherwise a user's inputs may change in any way from release to release.
        honest: Fraction of the users who add noise; who is missing must not depend on the noise.
        adjacency: Which data sets are neighbors: "substitution", where one user's input becomes any
            other, or "zero-out", where it becomes none or appears in the place of none.

    Raises:
        InvalidParameter: If a number is outside its domain.

    >>> Problem(n=1000, eps=1.0, delta=1e-6, max_value=5).changed_coordinates
    1
    >>> histogram = {"n": 1000, "eps": 1.0, "delta": 1e-6, "max_value": 1, "dimension": 100}
    >>> Problem(**histogram).changed_coordinates
    2
    >>> Problem(**histogram, adjacency="zero-out").changed_coordinates
    1
    """

    n: int
    eps: float
    delta: float
    max_value: int
    dimension: int = 1
    releases: int = 1
    same_change: bool = False
    honest: float = 1.0
    adjacency: Adjacency = SUBSTITUTION

    def __post_init__(self) -> None:
        checked = {
            "n": whole("n", self.n, least=1),
            "eps": positive("eps", self.eps),
            "delta": probability("delta", self.delta),
            "max_value": whole("max_value", self.max_value, least=1),
            "dimension": dimension_of(self.dimension),
            "releases": whole("releases", self.releases, least=1),
            "honest": share("honest", self.honest),
        }
        check_adjacency(self.adjacency)
        for name, value in checked.items():
            object.__setattr__(self, name, value)  # plain numbers, whatever was given
        object.__setattr__(self, "same_change", bool(self.same_change) and self.releases > 1)

    @property
    def any_sequence(self) -> bool:
        """Whether one user's inputs may change differently from release to release."""
        return self.releases > 1 and not self.same_change

    @property
    def changed_coordinates(self) -> int:
        """The most coordinates that the change of one input touches."""
        return touched_coordinates(self.dimension, self.adjacency)
