"""The whole problem in one shape: what every answer in JSON has under ``problem``, and what a gate
compares, field by field, with the problem that was agreed on.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields
from fractions import Fraction
from typing import Any, Literal

from accounting.base.enclosure import exactly
from accounting.model.change import Adjacency
from accounting.model.configuration import Proposal
from accounting.model.problem import Problem
from paramsearch.parameters.claim import Claim
from paramsearch.parameters.parameter_file import ParameterFile
from paramsearch.parameters.real_range import stated_range

Changes = Literal["any", "same"]
_WEAK = Fraction(1, 10)
"""From this product of n and delta on, delta draws a warning."""


@dataclass(frozen=True, kw_only=True)
class StatedProblem:
    """What is guaranteed, and for whom; the fields are those of a file's ``problem``, all of them.

    Attributes:
        n: Number of users; None if a configuration does not say.
        max_value: Inputs are the integers 0..max_value.
        dimension: More than 1 for vectors of this dimension.
        eps: The eps of the guarantee; None if a configuration does not say.
        delta: The delta of the guarantee; None if nobody says.
        adjacency: Which data sets are neighbors; None if several are compared.
        releases: Number of releases that the guarantee covers together.
        changes: Whether one user's input may change in any way from release to release.
        honest: Fraction of the users whose noise suffices.
        low: For real values, the lower end of their range.
        high: The upper end.
    """

    n: int | None
    max_value: int
    dimension: int
    eps: float | None
    delta: float | None
    adjacency: Adjacency | None
    releases: int
    changes: Changes
    honest: float
    low: float | None
    high: float | None

    @staticmethod
    def of(document: ParameterFile | Proposal, claim: Claim | None = None) -> StatedProblem:
        """Return the problem of a document, with the numbers of another claim if one is given.

        >>> from paramsearch.parameters.parameter_file import load
        >>> from paramsearch.tables.lookup import shipped_folder
        >>> file = load(shipped_folder() / "files" / "5-1-1e-06-0.9.json")
        >>> found = StatedProblem.of(file)
        >>> found.n, found.max_value, found.dimension, found.changes
        (1000000, 5, 1, 'any')
        """
        stated = document.problem if isinstance(document, ParameterFile) else document
        low, high = None, None
        if isinstance(document, ParameterFile) and (ends := stated_range(document)) is not None:
            low, high = ends
        if claim is None and isinstance(document, ParameterFile):
            claim = Claim.of(document)
        return StatedProblem(
            n=stated.n,
            max_value=stated.max_value,
            dimension=document.dimension,
            eps=stated.eps if claim is None else claim.eps,
            delta=stated.delta if claim is None else claim.delta,
            adjacency=stated.adjacency if claim is None else claim.adjacency,
            releases=1 if claim is None else claim.releases,
            changes="same" if claim is not None and claim.same_change else "any",
            honest=1.0 if claim is None else claim.honest,
            low=low,
            high=high,
        )

    @staticmethod
    def of_problem(problem: Problem) -> StatedProblem:
        """Return the same for a problem that no file has yet."""
        return StatedProblem(
            n=problem.n,
            max_value=problem.max_value,
            dimension=problem.dimension,
            eps=problem.eps,
            delta=problem.delta,
            adjacency=problem.adjacency,
            releases=problem.releases,
            changes="same" if problem.same_change else "any",
            honest=problem.honest,
            low=None,
            high=None,
        )

    def as_json(self) -> dict[str, Any]:
        """Return the object that every answer in JSON has under ``problem``."""
        return asdict(self)

    @property
    def warnings(self) -> list[str]:
        """Texts about what is allowed, but hardly meant."""
        if self.n is None or self.delta is None:
            return []
        product = self.n * Fraction(repr(self.delta))
        if product < _WEAK:
            return []
        return [
            f"delta times n is {float(product):.6g} (n = {self.n:,}): delta should be far below "
            "1/n, since a mechanism that publishes each input with probability delta would meet "
            "the claim"
        ]


@dataclass(frozen=True)
class Difference:
    """A field in which a file is not what is required.

    Attributes:
        field: Its name.
        required: What is required.
        found: What the file has.
    """

    field: str
    required: Any
    found: Any

    def __str__(self) -> str:
        """One sentence without its end.

        >>> str(Difference("n", 100_000, 1_000_000_000))
        'required n = 100,000, the file has 1,000,000,000'
        """
        return f"required {self.field} = {_shown(self.required)}, the file has {_shown(self.found)}"


def _shown(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, float):
        return exactly(value)
    return f"{value:,}" if isinstance(value, int) else str(value)


def differences(required: StatedProblem, found: StatedProblem) -> Iterator[Difference]:
    """Yield every field in which a problem is not the one that is required."""
    for known in fields(StatedProblem):
        wanted, has = (getattr(one, known.name) for one in (required, found))
        if wanted != has:
            yield Difference(known.name, wanted, has)
