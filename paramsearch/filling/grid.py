"""A grid of problems, read from TOML, and the order in which its cells are solved.

    eps = [0.5, 1, 2]
    delta = [1e-6, 1e-8]
    max_value = [1, 2, 5]        # solved in this order
    central_fraction = [0.9]
    n = [100_000, 10_000_000]    # optional: rows of the index; the noise does not depend on it

Also optional: ``adjacency``, ``objective``, ``noise``, ``tries``, ``seed`` and ``tier``, as for
``paramsearch generate``; ``objective`` and ``noise`` may be lists.  A problem whose file with the
fewest messages also has the shortest ones needs no other file for the fewest bits.  With another
``version``, a text, files of earlier versions serve until they are made again.

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
from collections import Counter
from dataclasses import replace
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Annotated, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from accounting.base.errors import InvalidConfiguration
from accounting.base.strict_json import read_text
from accounting.model.change import SUBSTITUTION, Adjacency
from accounting.model.costs import central_by_fraction
from accounting.model.laws.noise import NoiseLaw
from accounting.model.proof_types import Tier
from paramsearch.refusals import refused_in_words
from paramsearch.request import DEFAULT_CENTRAL_FRACTION, DEFAULT_TRIES, Objective, Request
from paramsearch.tables.cell import Cell
from paramsearch.tables.index import VERSION

Entry = TypeVar("Entry")
LARGEST_GRID = 100_000
"""Largest number of cells."""


def _unique(values: tuple[Entry, ...]) -> tuple[Entry, ...]:
    for value, count in Counter(values).items():
        if count > 1:
            raise ValueError(f"{value} is listed twice")
    return values


Axis = Annotated[tuple[float, ...], Field(min_length=1), AfterValidator(_unique)]
Counts = Annotated[tuple[int, ...], Field(min_length=1), AfterValidator(_unique)]
_one_or_several = BeforeValidator(
    lambda asked: tuple(asked) if isinstance(asked, list | tuple) else (asked,)
)
Objectives = Annotated[
    tuple[Objective, ...],
    _one_or_several,
    Field(min_length=1),
    AfterValidator(_unique),
    # messages first, since the file with the fewest of them may have the fewest bits as well
    AfterValidator(lambda asked: tuple(sorted(asked, reverse=True))),
]
Laws = Annotated[
    tuple[NoiseLaw, ...], _one_or_several, Field(min_length=1), AfterValidator(_unique)
]


class Grid(BaseModel):
    """A grid of problems; the docstring of this module describes its file."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", allow_inf_nan=False)

    eps: Axis
    delta: Axis
    max_value: Counts
    central_fraction: Axis = (DEFAULT_CENTRAL_FRACTION,)
    n: Counts = (1_000_000,)
    objective: Objectives = ("messages",)
    noise: Laws = ("negative-binomial",)
    adjacency: Adjacency = SUBSTITUTION
    tries: int = DEFAULT_TRIES
    seed: int = 0
    tier: Tier = "auto"
    version: Annotated[str, Field(min_length=1, max_length=40)] | None = None

    @staticmethod
    def read(path: Path) -> Grid:
        """Read a grid from a file; an error names the wrong entry and its value."""
        try:
            text = json.dumps(tomllib.loads(read_text(path)), default=str)
        except (tomllib.TOMLDecodeError, RecursionError) as error:
            raise InvalidConfiguration(f"{path} is not TOML: {error}") from None
        except ValueError:  # the only other one of tomllib, and of json, is about long integers
            raise InvalidConfiguration(
                f"{path} has a whole number of thousands of digits: correct it"
            ) from None
        with refused_in_words(str(path), hint=f"a grid has {', '.join(Grid.model_fields)}"):
            grid = Grid.model_validate_json(text)
        numbers = grid.max_value, grid.central_fraction, grid.eps, grid.delta
        axes = *numbers, grid.objective, grid.noise
        if (size := math.prod(map(len, axes))) > LARGEST_GRID:
            raise InvalidConfiguration(
                f"{path} has {size:,} cells, more than {LARGEST_GRID:,}; split it into several"
            )
        grid._check()
        return grid

    def _check(self) -> None:
        """Check every value in a problem before any is solved."""
        for fraction in self.central_fraction:
            central_by_fraction(fraction, 1.0)
        first = Cell(self.max_value[0], self.eps[0], self.delta[0], self.central_fraction[0])
        first = replace(first, adjacency=self.adjacency)
        for name in ("eps", "delta", "max_value"):
            for value in getattr(self, name):
                self.request(replace(first, **{name: value}))
        for n in self.n:
            self.request(first, n)
        for cell in self.cells:
            self.request(cell)

    @cached_property
    def cells(self) -> tuple[Cell, ...]:
        """All cells, each after the cell that its search starts from."""
        order = sorted(
            product(enumerate(self._eps), enumerate(self._deltas)),
            key=lambda place: abs(place[0][0] - self._middle) + place[1][0],
        )
        return tuple(
            Cell(top, eps, delta, fraction, objective, self.adjacency, law)
            for top, fraction in product(self.max_value, self.central_fraction)
            for objective, law in product(self.objective, self.noise)
            for (_, eps), (_, delta) in order
        )

    @cached_property
    def _eps(self) -> list[float]:
        """The eps in increasing order."""
        return sorted(self.eps)

    @cached_property
    def _deltas(self) -> list[float]:
        """The delta in decreasing order."""
        return sorted(self.delta, reverse=True)

    @cached_property
    def _middle(self) -> int:
        """The index of the eps nearest to 1."""
        return min(range(len(self._eps)), key=lambda i: abs(math.log(self._eps[i])))

    def parent(self, cell: Cell) -> Cell | None:
        """Return the cell from whose file the search starts; None if it starts from scratch."""
        place = self._deltas.index(cell.delta)
        if place:
            return replace(cell, delta=self._deltas[place - 1])
        place = self._eps.index(cell.eps)
        if place == self._middle:
            return None
        return replace(cell, eps=self._eps[place + (1 if place < self._middle else -1)])

    def request(self, cell: Cell, n: int | None = None) -> Request:
        """Return the search for the file of a cell, by default for the grid's first number of
        users."""
        return Request(
            n=self.n[0] if n is None else n,
            eps=cell.eps,
            delta=cell.delta,
            max_value=cell.max_value,
            central_fraction=cell.central_fraction,
            objective=cell.objective,
            adjacency=cell.adjacency,
            noise=cell.noise,
            tries=self.tries,
            seed=self.seed,
            tier=self.tier,
            cold=True,
            settings={
                "central_fraction": cell.central_fraction,
                **({} if self.version is None else {VERSION: self.version}),
            },
        )
