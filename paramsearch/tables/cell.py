"""One problem of a table, for any number of users."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

from accounting.base.enclosure import exactly
from accounting.model.change import SUBSTITUTION, Adjacency
from accounting.model.laws.noise import NoiseLaw
from paramsearch.parameters.parameter_file import ParameterFile
from paramsearch.request import Objective

_NEAR = 1e-9
"""Relative tolerance of the central fraction; rounding of the central noise changes it by less."""


@dataclass(frozen=True)
class Cell:
    """A problem of a grid, for any number of users, and what its file minimizes.

    Attributes:
        max_value: Inputs are the integers 0..max_value.
        eps: The eps of the guarantee.
        delta: The delta of the guarantee.
        central_fraction: eps of the central noise as a fraction of eps.
        objective: Whether its file has the fewest messages or the fewest bits.
        adjacency: Which data sets are neighbors.
        noise: The law of the noise on the atoms.
    """

    max_value: int
    eps: float
    delta: float
    central_fraction: float
    objective: Objective = "messages"
    adjacency: Adjacency = SUBSTITUTION
    noise: NoiseLaw = "negative-binomial"

    @property
    def name(self) -> str:
        """The name of its file, without the suffix."""
        numbers = map(exactly, (self.eps, self.delta, self.central_fraction))
        bits = ["bits"] if self.objective == "bits" else []
        other = [] if self.adjacency == SUBSTITUTION else [self.adjacency]
        law = ["burst"] if self.noise == "burst" else []
        return "-".join([str(self.max_value), *numbers, *bits, *other, *law])

    def __str__(self) -> str:
        return (
            f"max_value {self.max_value}, eps {exactly(self.eps)}, delta {exactly(self.delta)}, "
            f"central fraction {exactly(self.central_fraction)}"
            + (", fewest bits" if self.objective == "bits" else "")
            + ("" if self.adjacency == SUBSTITUTION else f", {self.adjacency}")
            + (", bursts" if self.noise == "burst" else "")
        )

    @property
    def for_messages(self) -> Cell:
        """The same problem, for the file with the fewest messages."""
        return replace(self, objective="messages")

    @staticmethod
    def of(file: ParameterFile) -> Cell:
        """Return the problem of a file; its central fraction as the provenance states it, if that
        is close to the true one."""
        problem = file.problem
        share = file.central.eps_central / problem.eps
        stated = file.provenance.settings.get("central_fraction")
        if not isinstance(stated, float) or abs(stated - share) > _NEAR * share:
            stated = float(f"{share:.9g}")
        bits = file.provenance.settings.get("objective") == "bits"
        objective: Objective = "bits" if bits else "messages"
        numbers = problem.max_value, problem.eps, problem.delta, stated
        return Cell(*numbers, objective, problem.adjacency, file.noise)


def harder_neighbors(cells: Iterable[Cell]) -> Iterator[tuple[Cell, Cell]]:
    """Yield pairs of a cell and the next one with smaller eps, with smaller delta, or with larger
    max_value, all else being equal. The second cell is harder, so it must not be cheaper."""
    lines = defaultdict[tuple[object, ...], list[Cell]](list)
    for cell in cells:
        lines["eps", replace(cell, eps=1.0)].append(cell)
        lines["delta", replace(cell, delta=1.0)].append(cell)
        lines["max_value", replace(cell, max_value=1)].append(cell)
    for line in lines.values():
        line.sort(key=lambda cell: (-cell.eps, -cell.delta, cell.max_value))
        yield from pairwise(line)
