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

from accounting.checks import positive, probability, whole
from accounting.enclosure import exactly
from accounting.errors import InvalidConfiguration, InvalidParameter
from paramsearch.certification import for_users
from paramsearch.parameter_file import ParameterFile, load
from paramsearch.search.target import Objective
from paramsearch.tables import index
from paramsearch.tables.folder import INDEX
from paramsearch.tables.index import Row

_SIMILAR = 1.3
"""Ratio of max_value up to which a family without its largest values is a good start."""


@dataclass(frozen=True)
class Query:
    """What is asked for; checked when it is made."""

    n: int
    eps: float
    delta: float
    max_value: int
    max_rmse: float | None = None
    objective: Objective = "messages"

    def __post_init__(self) -> None:
        whole("n", self.n, least=1)
        positive("eps", self.eps)
        probability("delta", self.delta)
        whole("max value", self.max_value, least=1)
        if self.max_rmse is not None:
            positive("max rmse", self.max_rmse)
        if self.objective not in get_args(Objective):
            raise InvalidParameter(
                f"objective = {self.objective!r}; known: " + ", ".join(get_args(Objective))
            )

    def price(self, row: Row) -> float:
        return row.noise_messages if self.objective == "messages" else row.bits_per_user

    def command(self) -> str:
        """That makes a file for just this."""
        error = "" if self.max_rmse is None else f" --max-rmse {exactly(self.max_rmse)}"
        return (
            f"paramsearch generate --n {self.n} --eps {exactly(self.eps)} "
            f"--delta {exactly(self.delta)} --max-value {self.max_value}{error}"
        )


@dataclass(frozen=True)
class Found:
    """``row`` is for the number of users asked for; ``others`` are dearer and have less error."""

    table: Table
    query: Query
    row: Row
    others: tuple[Row, ...]

    @cached_property
    def file(self) -> ParameterFile:
        """The certified file for the number of users asked for."""
        return self.table.load(self.row, self.query)

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

    def lookup(
        self,
        *,
        n: int,
        eps: float,
        delta: float,
        max_value: int,
        max_rmse: float | None = None,
        objective: Objective = "messages",
    ) -> Found:
        """The cheapest file that serves; InvalidParameter if there is none."""
        query = Query(n, eps, delta, max_value, max_rmse, objective)
        rows = [row.for_users(n) for row in self._serving(query)]
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
                raise InvalidParameter(
                    f"{asked}: no file of the table serves; the {what} that is left there is "
                    f"{least(rows):g}; make one: {query.command()} -o FILE"
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
        if known.sha256 != row.sha256 or known.certificate is None:
            raise InvalidConfiguration(
                f"{path} is not the certified file of the index; run `paramsearch table` again"
            )
        file = for_users(known, query.n)
        problem = file.problem
        serves = (
            problem.max_value >= query.max_value
            and problem.eps <= query.eps
            and problem.delta <= query.delta
            and (query.max_rmse is None or file.error.rmse <= query.max_rmse)
        )
        if not serves:
            raise InvalidConfiguration(
                f"{path} does not serve the request, though the index says so; run "
                "`paramsearch table` again"
            )
        return file


def shipped() -> Path:
    """The folder of the table that comes with this package."""
    return Path(str(resources.files("paramsearch") / "data"))
