"""Questions about a mechanism."""

from __future__ import annotations

from dataclasses import dataclass

from accounting.base.errors import InvalidParameter
from accounting.base.validation import not_negative, whole
from accounting.model.change import SUBSTITUTION, Adjacency, Change, check_adjacency
from accounting.model.proof_types import MOST_RELEASES


@dataclass(frozen=True, kw_only=True)
class Question:
    """A question about a mechanism: how large is delta at ``eps``, and is it at most ``claim``?

    Args:
        eps: The eps of the guarantee.
        releases: Number of releases that are seen together.
        same_change: Whether a user makes the same change in every release; otherwise the inputs of
            one user may change in any way, chosen adaptively (composition/releases.md).
        claim: The delta to decide about; None asks for the bounds alone.
        adjacency: Which data sets are neighbors.

    Raises:
        InvalidParameter: If a number is outside its domain.

    >>> Question(eps=1.0, releases=10).any_sequence
    True
    """

    eps: float
    releases: int = 1
    same_change: bool = False
    claim: float | None = None
    adjacency: Adjacency = SUBSTITUTION

    def __post_init__(self) -> None:
        check_adjacency(self.adjacency)
        object.__setattr__(self, "eps", not_negative("eps", self.eps))
        object.__setattr__(self, "releases", whole("releases", self.releases, least=1))
        if self.claim is not None:
            object.__setattr__(self, "claim", not_negative("claim", self.claim))
        if self.any_sequence and self.releases > MOST_RELEASES:
            raise InvalidParameter(
                f"releases = {self.releases:,} is more than {MOST_RELEASES:,}, the most for any "
                "sequence of changes; ask for fewer, or for --same-change if that is what is meant"
            )

    @property
    def any_sequence(self) -> bool:
        """Whether one user's inputs may change differently from release to release."""
        return self.releases > 1 and not self.same_change

    def check_about(self, change: Change, max_value: int) -> None:
        """Refuse to ask about one change alone, within a coordinate of inputs 0..max_value, if
        nobody makes it or several releases may have different ones.

        Raises:
            InvalidParameter: In either case.
        """
        if self.any_sequence:
            raise InvalidParameter(
                f"{change} is one change, and {self.releases:,} releases may have different ones: "
                "ask with same_change=True"
            )
        change.check_within_a_coordinate(max_value, self.adjacency)

    def decided_by(self, lower: float, upper: float) -> bool:
        """Tell whether these bounds of delta settle the claim; without one they always do."""
        return self.claim is None or upper <= self.claim or lower > self.claim
