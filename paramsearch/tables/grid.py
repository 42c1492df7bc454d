"""A grid of problems, read from TOML, and the order in which its cells start each other.

    eps = [0.5, 1, 2]
    delta = [1e-6, 1e-8]
    max_value = [1, 2, 5]        # solved in this order
    central_fraction = [0.9]
    n = [100_000, 10_000_000]    # optional: rows of the index; the noise does not depend on it

Optional, too: ``objective``, ``tries``, ``seed`` and ``tier``, as for ``paramsearch generate``.

For every max_value and central fraction, the cell with the eps nearest to 1 and the largest delta
is searched for from nothing.  Every other one starts from the cell before it on the way from there,
first along eps, then along delta: the best family hardly changes on such a step.  What starts what
is fixed by the grid, so files do not depend on the number of workers or on who was first.
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
_NEAR = 1e-9
"""The central noise is rounded, so that its fraction of eps is off by much less than this."""


@dataclass(frozen=True)
class Cell:
    """One problem of a grid, for any number of users."""

    max_value: int
    eps: float
    delta: float
    central_fraction: float

    @property
    def name(self) -> str:
        numbers = map(exactly, (self.eps, self.delta, self.central_fraction))
        return "-".join([str(self.max_value), *numbers])

    def __str__(self) -> str:
        return (
            f"max_value {self.max_value}, eps {exactly(self.eps)}, delta {exactly(self.delta)}, "
            f"central fraction {exactly(self.central_fraction)}"
        )

    @staticmethod
    def of(file: ParameterFile) -> Cell:
        """The problem of a file; its central fraction as it says, if that is near the truth."""
        problem = file.problem
        share = file.central.eps_central / problem.eps
        said = file.provenance.settings.get("central_fraction")
        if not isinstance(said, float) or abs(said - share) > _NEAR * share:
            said = float(f"{share:.9g}")
        return Cell(problem.max_value, problem.eps, problem.delta, said)


def harder(cells: Iterable[Cell]) -> Iterator[tuple[Cell, Cell]]:
    """Each cell with the next one of less eps, of less delta and of larger values: that must not be
    cheaper."""
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
    """See the module's text."""

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
        """From a file; anything wrong is one error that names the place and the value."""
        try:
            text = json.dumps(tomllib.loads(read_text(path)), default=str)
        except (tomllib.TOMLDecodeError, RecursionError) as error:
            raise InvalidConfiguration(f"{path} is not TOML: {error}") from None
        with refusals(str(path)):
            grid = Grid.model_validate_json(text)
        if (size := math.prod(map(len, grid._axes))) > LARGEST_GRID:
            raise InvalidConfiguration(
                f"{path} has {size:,} cells, more than {LARGEST_GRID:,}; divide it into several"
            )
        grid._check()
        return grid

    def _check(self) -> None:
        """Every value in a problem, before any is solved."""
        for fraction in self.central_fraction:
            by_fraction(fraction, 1.0)
        first = Cell(self.max_value[0], self.eps[0], self.delta[0], self.central_fraction[0])
        for name in ("eps", "delta", "max_value"):
            for value in getattr(self, name):
                self.request(replace(first, **{name: value}))
        for n in self.n:
            self.request(first, n)

    @property
    def _axes(self) -> tuple[tuple[float, ...], ...]:
        return self.max_value, self.central_fraction, self.eps, self.delta

    @cached_property
    def cells(self) -> tuple[Cell, ...]:
        """Each after the one it starts from."""
        deltas, sizes, middle = self._lines
        steps = [
            (abs(i - middle) + j, eps, delta)
            for i, eps in enumerate(sizes)
            for j, delta in enumerate(deltas)
        ]
        steps.sort(key=lambda step: step[0])
        return tuple(
            Cell(top, eps, delta, fraction)
            for top, fraction in product(self.max_value, self.central_fraction)
            for _, eps, delta in steps
        )

    @cached_property
    def _lines(self) -> tuple[list[float], list[float], int]:
        """delta from the largest, eps from the smallest, and the place of the eps nearest to 1."""
        sizes = sorted(self.eps)
        middle = min(range(len(sizes)), key=lambda i: abs(math.log(sizes[i])))
        return sorted(self.delta, reverse=True), sizes, middle

    def parent(self, cell: Cell) -> Cell | None:
        """The cell it starts from."""
        deltas, sizes, middle = self._lines
        place = deltas.index(cell.delta)
        if place:
            return replace(cell, delta=deltas[place - 1])
        place = sizes.index(cell.eps)
        if place == middle:
            return None
        return replace(cell, eps=sizes[place + (1 if place < middle else -1)])

    def request(self, cell: Cell, n: int | None = None) -> Request:
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
