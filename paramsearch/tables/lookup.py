"""Looking up: the cheapest file of a table that serves a request.

(eps', delta')-privacy for inputs 0..K' is (eps, delta)-privacy for inputs 0..K whenever
eps' <= eps, delta' <= delta and K' >= K, and the noise does not depend on n: all such files serve,
and the cost and the error are those of the file.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from importlib import resources
from pathlib import Path
from typing import get_args

from accounting.base.enclosure import exactly
from accounting.base.errors import InvalidConfiguration, InvalidParameter
from accounting.base.validation import one_of, positive
from accounting.model.problem import Problem
from paramsearch.parameters.assembly import for_users
from paramsearch.parameters.parameter_file import ParameterFile, load
from paramsearch.problem import Objective, Request
from paramsearch.tables import index
from paramsearch.tables.index import INDEX, Row

_SIMILAR = 1.3
"""Ratio of max_value up to which a family without its largest values is a good start."""


@dataclass(frozen=True, kw_only=True)
class Query(Problem):
    """What is asked for: a problem, an error to allow, and what should be cheap.

    Args:
        max_rmse: The error of the sum to allow; by default any.
        objective: Whether messages or bits should be few.

    The other arguments are those of ``Problem``.

    Raises:
        InvalidParameter: If a number is outside its domain.
    """

    max_rmse: float | None = None
    objective: Objective = "messages"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.max_rmse is not None:
            object.__setattr__(self, "max_rmse", positive("max rmse", self.max_rmse))
        one_of("objective", self.objective, get_args(Objective))

    def price(self, row: Row) -> float:
        return row.noise_messages if self.objective == "messages" else row.bits_per_user

    def served_by(self, row: Row) -> bool:
        return (
            row.max_value >= self.max_value
            and row.eps <= self.eps
            and row.delta <= self.delta
            and (self.max_rmse is None or row.rmse <= self.max_rmse)
        )

    def command(self, central_fraction: float = 0.9) -> str | None:
        """That makes a file for just this; None if no search takes such numbers."""
        try:
            Request(n=self.n, eps=self.eps, delta=self.delta, max_value=self.max_value)
        except InvalidParameter:
            return None
        error = f"--central-fraction {exactly(central_fraction)}"
        if self.max_rmse is not None:
            error = f"--max-rmse {exactly(self.max_rmse)}"
        return (
            f"paramsearch generate --n {self.n} --eps {exactly(self.eps)} "
            f"--delta {exactly(self.delta)} --max-value {self.max_value} {error}"
            + (" --objective bits" if self.objective == "bits" else "")
        )


@dataclass(frozen=True)
class Found:
    """``row`` is what the index says, for the number of users asked for, and ``file`` refuses it if
    that is not true; ``others`` are dearer and have less error."""

    table: Table
    query: Query
    row: Row
    others: tuple[Row, ...]

    @cached_property
    def file(self) -> ParameterFile:
        """The certified file for the number of users asked for."""
        return self.table.load(self.row, self.query)

    def command(self) -> str | None:
        """That makes a file for just what was asked for, with the error of this one."""
        return self.query.command(self.row.central_fraction)

    @property
    def exact(self) -> bool:
        """Whether the file was made for just this eps, delta and max_value."""
        query, row = self.query, self.row
        return (row.eps, row.delta, row.max_value) == (query.eps, query.delta, query.max_value)


@dataclass(frozen=True)
class Table:
    """A folder that ``paramsearch table`` made; one row for each of its files."""

    path: Path
    rows: tuple[Row, ...]

    @staticmethod
    def open(path: Path | str | None = None) -> Table:
        """The table in a folder, by default the one that comes with this package."""
        place = shipped() if path is None else Path(path)
        rows = {row.file: row for row in index.read(place / INDEX)}
        return Table(place, tuple(rows.values()))

    def lookup(self, query: Query) -> Found:
        """The cheapest file that serves; InvalidParameter if there is none."""
        rows = [row.for_users(query.n) for row in self._serving(query)]
        best = min(rows, key=lambda row: (query.price(row), row.rmse))
        others, error = [], best.rmse
        for row in sorted(rows, key=lambda row: (query.price(row), row.rmse)):
            if row.rmse < error * 0.999:
                others.append(row)
                error = row.rmse
        return Found(self, query, best, tuple(others))

    def _serving(self, query: Query) -> list[Row]:
        rows = list(self.rows)
        if not rows:
            raise InvalidParameter(f"the table {self.path} is empty")
        tests: list[tuple[str, str, Callable[[Row], bool], Callable[[list[Row]], float]]] = [
            (
                f"max_value = {query.max_value:,}",
                "largest max_value",
                lambda row: row.max_value >= query.max_value,
                lambda rows: max(row.max_value for row in rows),
            ),
            (
                f"eps = {exactly(query.eps)}",
                "smallest eps",
                lambda row: row.eps <= query.eps,
                lambda rows: min(row.eps for row in rows),
            ),
            (
                f"delta = {exactly(query.delta)}",
                "smallest delta",
                lambda row: row.delta <= query.delta,
                lambda rows: min(row.delta for row in rows),
            ),
            (
                f"max rmse = {query.max_rmse}",
                "smallest RMSE",
                lambda row: query.max_rmse is None or row.rmse <= query.max_rmse,
                lambda rows: min(row.rmse for row in rows),
            ),
        ]
        for asked, what, serves, least in tests:
            left = [row for row in rows if serves(row)]
            if not left:
                command = query.command()
                remedy = "" if command is None else f"; make one: {command} -o FILE"
                raise InvalidParameter(
                    f"{asked}: no file of the table serves; the {what} that is left there is "
                    f"{least(rows):g}{remedy}"
                )
            rows = left
        return rows

    def nearest(
        self, *, eps: float, delta: float, max_value: int, central_fraction: float
    ) -> ParameterFile | None:
        """The file of the most similar problem, to start a search from; None if all are far."""
        rows = [row for row in self.rows if 1 <= row.max_value / max_value <= _SIMILAR]

        def distance(row: Row) -> float:
            return (
                abs(math.log(row.eps / eps))
                + abs(math.log(math.log(row.delta) / math.log(delta)))
                + 4 * abs(row.central_fraction - central_fraction)
                + 4 * math.log(row.max_value / max_value)
            )

        return load(self.path / min(rows, key=distance).file) if rows else None

    def load(self, row: Row, query: Query) -> ParameterFile:
        """A file for as many users as asked, after the index is found to tell the truth.

        Everything but the certificate is computed from the rationals; that one is trusted here, and
        proved anew by ``paramsearch audit`` and ``audit-table``.
        """
        path = self.path / row.file
        known = load(path)
        file = for_users(known, query.n)
        told = index.row_of(known, name=row.file)
        computed = index.row_of(file, name=row.file)
        if told is None or computed is None or not row.says(told):
            raise InvalidConfiguration(
                f"{path} is not what the index says; run `paramsearch table` again"
            )
        if not query.served_by(computed):
            raise InvalidConfiguration(f"{path} is forged: it does not serve what it claims to")
        return file


def shipped() -> Path:
    """The folder of the table that comes with this package."""
    return Path(str(resources.files("paramsearch") / "data"))
