"""A grid of problems, read from TOML, and the order in which its cells are solved.

    eps = [0.5, 1, 2]
    delta = [1e-6, 1e-8]
    max_value = [1, 2, 5]        # solved in this order
    central_fraction = [0.9]
    n = [100_000, 10_000_000]    # optional: rows of the index; the noise does not depend on it

Also optional: ``objective``, ``tries``, ``seed`` and ``tier``, as for ``paramsearch generate``.

For every max_value and central fraction, the search for the cell with the eps nearest to 1 and the
largest delta starts from scratch.  Every other search starts from the file of the preceding cell on
the path from there, first along eps, then along delta: the best family hardly changes on such a
step.  The grid alone decides which cell starts from which, so files do not depend on the number of
workers or on their speed.
"""

from __future__ import annotations

import json
import math
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise, product
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from accounting.base.enclosure import exactly
from accounting.base.errors import InvalidConfiguration
from accounting.base.strict_json import read_text
from accounting.model.proof_types import Tier
from paramsearch.parameters.parameter_file import ParameterFile, refusals
from paramsearch.problem import DEFAULT_TRIES, Objective, Request
from paramsearch.search.central_noise import by_fraction

LARGEST_GRID = 100_000
"""Largest number of cells."""
_NEAR = 1e-9
"""Relative tolerance of the central fraction; rounding of the central noise changes it by less."""


@dataclass(frozen=True)
class Cell:
    """One problem of a grid, for any number of users."""

    max_value: int
    eps: float
    delta: float
    central_fraction: float

    @property
    def name(self) -> str:
        """The name of its file, without the suffix."""
        numbers = map(exactly, (self.eps, self.delta, self.central_fraction))
        return "-".join([str(self.max_value), *numbers])

    def __str__(self) -> str:
        return (
            f"max_value {self.max_value}, eps {exactly(self.eps)}, delta {exactly(self.delta)}, "
            f"central fraction {exactly(self.central_fraction)}"
        )

    @staticmethod
    def of(file: ParameterFile) -> Cell:
        """The problem of a file; its central fraction as the provenance states it, if that is
        close to the true one."""
        problem = file.problem
        share = file.central.eps_central / problem.eps
        stated = file.provenance.settings.get("central_fraction")
        if not isinstance(stated, float) or abs(stated - share) > _NEAR * share:
            stated = float(f"{share:.9g}")
        return Cell(problem.max_value, problem.eps, problem.delta, stated)


def harder_neighbors(cells: Iterable[Cell]) -> Iterator[tuple[Cell, Cell]]:
    """Pairs of a cell and the next one with smaller eps, with smaller delta, or with larger
    max_value, all else being equal.  The second one is harder, so it must not be cheaper."""
    lines = defaultdict[tuple[object, ...], list[Cell]](list)
    for cell in cells:
        lines["eps", replace(cell, eps=1.0)].append(cell)
        lines["delta", replace(cell, delta=1.0)].append(cell)
        lines["max_value", replace(cell, max_value=1)].append(cell)
    for line in lines.values():
        line.sort(key=lambda cell: (-cell.eps, -cell.delta, cell.max_value))
        yield from pairwise(line)


def _unique(values: tuple[float, ...]) -> tuple[float, ...]:
    for value, count in Counter(values).items():
        if count > 1:
            raise ValueError(f"{value} is listed twice")
    return values


Axis = Annotated[tuple[float, ...], Field(min_length=1), AfterValidator(_unique)]
Counts = Annotated[tuple[int, ...], Field(min_length=1), AfterValidator(_unique)]


class Grid(BaseModel):
    """A grid of problems; the docstring of this module describes its file."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", allow_inf_nan=False)

    eps: Axis
    delta: Axis
    max_value: Counts
    central_fraction: Axis = (0.9,)
    n: Counts = (1_000_000,)
    objective: Objective = "messages"
    tries: int = DEFAULT_TRIES
    seed: int = 0
    tier: Tier = "auto"

    @staticmethod
    def read(path: Path) -> Grid:
        """Read a grid from a file; an error names the wrong entry and its value."""
        try:
            text = json.dumps(tomllib.loads(read_text(path)), default=str)
        except (tomllib.TOMLDecodeError, RecursionError) as error:
            raise InvalidConfiguration(f"{path} is not TOML: {error}") from None
        with refusals(str(path)):
            grid = Grid.model_validate_json(text)
        axes = grid.max_value, grid.central_fraction, grid.eps, grid.delta
        if (size := math.prod(map(len, axes))) > LARGEST_GRID:
            raise InvalidConfiguration(
                f"{path} has {size:,} cells, more than {LARGEST_GRID:,}; split it into several"
            )
        grid._check()
        return grid

    def _check(self) -> None:
        """Check every value in a problem before any is solved."""
        for fraction in self.central_fraction:
            by_fraction(fraction, 1.0)
        first = Cell(self.max_value[0], self.eps[0], self.delta[0], self.central_fraction[0])
        for name in ("eps", "delta", "max_value"):
            for value in getattr(self, name):
                self.request(replace(first, **{name: value}))
        for n in self.n:
            self.request(first, n)

    @cached_property
    def cells(self) -> tuple[Cell, ...]:
        """All cells, each after the one that its search starts from."""
        order = sorted(
            product(enumerate(self._eps), enumerate(self._deltas)),
            key=lambda place: abs(place[0][0] - self._middle) + place[1][0],
        )
        return tuple(
            Cell(top, eps, delta, fraction)
            for top, fraction in product(self.max_value, self.central_fraction)
            for (_, eps), (_, delta) in order
        )

    @cached_property
    def _eps(self) -> list[float]:
        """In increasing order."""
        return sorted(self.eps)

    @cached_property
    def _deltas(self) -> list[float]:
        """In decreasing order."""
        return sorted(self.delta, reverse=True)

    @cached_property
    def _middle(self) -> int:
        """The index of the eps nearest to 1."""
        return min(range(len(self._eps)), key=lambda i: abs(math.log(self._eps[i])))

    def parent(self, cell: Cell) -> Cell | None:
        """The cell from whose file the search starts; None if it starts from scratch."""
        place = self._deltas.index(cell.delta)
        if place:
            return replace(cell, delta=self._deltas[place - 1])
        place = self._eps.index(cell.eps)
        if place == self._middle:
            return None
        return replace(cell, eps=self._eps[place + (1 if place < self._middle else -1)])

    def request(self, cell: Cell, n: int | None = None) -> Request:
        """The search for the file of a cell, by default for the grid's first number of users."""
        return Request(
            n=self.n[0] if n is None else n,
            eps=cell.eps,
            delta=cell.delta,
            max_value=cell.max_value,
            central_fraction=cell.central_fraction,
            objective=self.objective,
            tries=self.tries,
            seed=self.seed,
            tier=self.tier,
            cold=True,
            settings={"central_fraction": cell.central_fraction},
        )
