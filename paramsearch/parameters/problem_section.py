"""What a parameter file guarantees, and for whom."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag

from accounting.model.change import LARGEST_DIMENSION, Adjacency
from accounting.model.proof_types import MOST_RELEASES


class Part(BaseModel):
    """A section of a parameter file: immutable, with strict types and no unknown fields."""

    model_config = ConfigDict(
        frozen=True,
        strict=True,
        extra="forbid",
        allow_inf_nan=False,
        defer_build=True,  # what only imports a client does not pay for the schema
    )


class ProblemSection(Part, title="Problem"):
    """What is guaranteed: (eps, delta) for every change of one user's input that ``adjacency``
    allows, as long as the fraction ``honest`` of the n users adds its noise, and all of it arrives.
    Who is missing must not depend on the noise that was drawn.

    With ``releases`` > 1 the guarantee covers all of them together, but only for a user who makes
    the same change, from one value to another, in every release.
    """

    n: Annotated[int, Field(ge=1, lt=1 << 53)]
    """Number of users."""
    max_value: Annotated[int, Field(ge=1, le=1 << 20)]
    """Inputs are the integers 0..max_value."""
    eps: Annotated[float, Field(ge=0, le=1000)]
    """The eps of the guarantee."""
    delta: Annotated[float, Field(gt=0, lt=1)]
    """The delta of the guarantee."""
    adjacency: Adjacency
    """Under substitution one user's input becomes any other; under zero-out it becomes 0, or
    appears in the place of 0, and everybody's noise stays."""
    releases: Annotated[int, Field(ge=1, lt=1 << 31)]
    """Number of releases that the guarantee covers together."""
    honest: Annotated[float, Field(gt=0, le=1)]
    """Fraction of the users whose noise suffices for the guarantee; who is missing must not depend
    on the noise that was drawn."""

    @property
    def same_change(self) -> bool:
        """Whether several releases are covered only where the same change is made in each."""
        return self.releases > 1 and not hasattr(self, "changes")


class VectorSection(ProblemSection, title="VectorProblem"):
    """The same for vectors of this dimension with at most one non-zero coordinate: a change removes
    the value of one coordinate and puts a value into the same or another coordinate; under zero-out
    it does one of the two."""

    dimension: Annotated[int, Field(ge=2, le=LARGEST_DIMENSION)]
    """Number of coordinates of a vector."""


class SequenceSection(ProblemSection, title="SequenceProblem"):
    """What is guaranteed for several releases together: (eps, delta) when one user's whole sequence
    of inputs is replaced by any other, under zero-out by none, chosen adaptively from release to
    release."""

    releases: Annotated[int, Field(ge=2, le=MOST_RELEASES)]
    """Number of releases that the guarantee covers together."""
    changes: Literal["any"]
    """One user's inputs may change in any way from release to release."""


class VectorSequenceSection(VectorSection, title="VectorSequenceProblem"):
    """The same for sequences of vectors with at most one non-zero coordinate."""

    releases: Annotated[int, Field(ge=2, le=MOST_RELEASES)]
    """Number of releases that the guarantee covers together."""
    changes: Literal["any"]
    """One user's inputs may change in any way from release to release."""


TAGS = {"integers", "vectors", "sequences", "vector sequences"}


def _kind(problem: Any) -> str:
    def stated(name: str) -> bool:
        return name in problem if isinstance(problem, dict) else hasattr(problem, name)

    if stated("changes"):
        return "vector sequences" if stated("dimension") else "sequences"
    return "vectors" if stated("dimension") else "integers"


AnyProblem = Annotated[
    Annotated[ProblemSection, Tag("integers")]
    | Annotated[VectorSection, Tag("vectors")]
    | Annotated[SequenceSection, Tag("sequences")]
    | Annotated[VectorSequenceSection, Tag("vector sequences")],
    Discriminator(_kind),
]


def problem_of(*, dimension: int, same_change: bool, **fields: Any) -> ProblemSection:
    """Of integers or of vectors; several releases are for any changes unless it is said that they
    are for the same change."""
    any_sequence = fields["releases"] > 1 and not same_change
    if any_sequence:
        fields["changes"] = "any"
    if dimension == 1:
        return SequenceSection(**fields) if any_sequence else ProblemSection(**fields)
    kind = VectorSequenceSection if any_sequence else VectorSection
    return kind(**fields, dimension=dimension)
