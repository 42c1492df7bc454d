"""Lookups: the cheapest file of a table that serves a request.

(eps', delta')-privacy for inputs 0..K' is (eps, delta)-privacy for inputs 0..K whenever
eps' <= eps, delta' <= delta and K' >= K, and the noise does not depend on n: all such files serve,
and the cost and the error are those of the file.  A file for substitution serves a request for
zero-out, never the other way round.  The law of the noise is free unless the request names one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import resources
from pathlib import Path

from accounting.base.enclosure import Summarized, counted, exactly
from accounting.base.errors import InvalidConfiguration, InvalidParameter
from accounting.base.validation import AnyPath, as_path, instance
from accounting.model.change import covers
from accounting.model.laws.noise import NoiseLaw
from paramsearch.parameters.assembly import consistent, for_users
from paramsearch.parameters.parameter_file import ParameterFile, load
from paramsearch.request import Objective
from paramsearch.tables import index
from paramsearch.tables.index import INDEX, Row
from paramsearch.tables.query import Query

_SIMILAR = 1.3
"""Largest ratio of max_value at which a family without its largest values is a good start of a
search; rule of thumb."""
_WEIGHT = 4.0
"""Weight of the central fraction and of log max_value, relative to log eps and log log delta, in
the distance of two problems; rule of thumb."""
_LESS_ERROR = 0.999
"""Ratio of errors from which on one counts as smaller."""
_USUAL_RATIO = 1.15
"""Error in units of that of the central mechanism that is allowed if no other is asked for; files
of the default central fraction have about 1.11."""


@dataclass(frozen=True, repr=False)
class Found(Summarized):
    """A file that serves a request, and the rows that were considered beside it.

    Attributes:
        table: The table.
        query: The request.
        row: The row of the cheapest file that serves, for the requested number of users.
        others: Rows of more expensive files, each with less error than all before it.
        cheaper: Rows of cheaper files, each with less error than all before it, but more than is
            allowed.
        fewer_bits: If messages count: the row with the fewest bits that is allowed, if it has fewer
            than the cheapest one, whose messages are fewer but longer.

    >>> found = Table.open().lookup(Query(n=100_000, eps=1.1, delta=1e-6, max_value=5))
    >>> found
    <Found files/5-1-1e-06-0.9.json, stricter than asked, for n = 100,000
     5,479.7 noise messages, 1.0548 messages per user; RMSE 7.84615; 0 with less error, 2 cheaper>
    >>> len(found.cheaper)
    2
    >>> found.exact, found.file.problem.n
    (False, 100000)
    """

    table: Table
    query: Query
    row: Row
    others: tuple[Row, ...]
    cheaper: tuple[Row, ...] = ()
    fewer_bits: Row | None = None

    @property
    def error_ratio(self) -> float:
        """The error in units of that of the central mechanism at the requested eps."""
        return self.row.rmse / self.query.central_rmse

    def summary(self) -> tuple[str, str]:
        """Return the file, and its cost and error beside the other choices."""
        row, fit = self.row, "just as asked" if self.exact else "stricter than asked"
        return f"{row.file}, {fit}, for n = {row.n:,}", (
            f"{row.noise_messages:,.1f} noise messages, {row.messages_per_user:.6g} messages per "
            f"user; RMSE {row.rmse:.6g}; {len(self.others):,} with less error, "
            f"{len(self.cheaper):,} cheaper"
        )

    @cached_property
    def file(self) -> ParameterFile:
        """The certified file for the requested number of users.

        Raises:
            InvalidConfiguration: If the file is not what the index says.
        """
        return self.table.load(self.row, self.query)

    def command(self) -> str | None:
        """The command that makes a file for exactly the request, with the error of this file."""
        return self.query.command(self.row.central_fraction, self.row.noise)

    @property
    def exact(self) -> bool:
        """Whether the file was made for exactly the requested eps, delta, max_value and
        adjacency."""
        names = ("eps", "delta", "max_value", "adjacency")
        return all(getattr(self.row, name) == getattr(self.query, name) for name in names)


@dataclass(frozen=True, repr=False)
class Table(Summarized):
    """A table of certified files: a folder that ``paramsearch table`` made, or the package's own.

    Attributes:
        path: The folder.
        rows: One row of the index for each file.

    >>> table = Table.open()
    >>> len(table.rows) > 400
    True
    >>> table.lookup(Query(n=100_000, eps=1.0, delta=1e-6, max_value=5, max_rmse=9.0)).row.file
    'files/5-1-1e-06-0.9.json'
    """

    path: Path
    rows: tuple[Row, ...]

    @property
    def version(self) -> str | None:
        """The version of the table; None if it has none, or files of several."""
        versions = {row.version for row in self.rows}
        return versions.pop() if len(versions) == 1 else None

    def summary(self) -> tuple[str, str]:
        """Return the folder, and the ranges of its problems."""
        ranges = []
        for column in ("eps", "delta", "max_value", "central_fraction") if self.rows else ():
            values = [getattr(row, column) for row in self.rows]
            ranges.append(f"{column} {exactly(min(values))} to {exactly(max(values))}")
        return f"{self.path}: {counted(len(self.rows), 'file')}", ", ".join(ranges) or "empty"

    @staticmethod
    def open(path: AnyPath | None = None) -> Table:
        """Open the table in a folder.

        Args:
            path: The folder; by default the table that comes with this package.

        Returns:
            The table; its files are read when they are needed.

        Raises:
            InvalidConfiguration: If the folder has no index, or one that cannot be read.
        """
        folder = shipped_folder() if path is None else as_path(path)
        rows = {row.file: row for row in index.read(folder / INDEX)}
        return Table(folder, tuple(rows.values()))

    def lookup(self, query: Query) -> Found:
        """Find the cheapest file that serves a request.

        Args:
            query: The request.

        Returns:
            The row of the file, those of more expensive ones with less error, and of cheaper ones.

        Raises:
            InvalidParameter: If no file serves; the message has a command that makes one.
        """
        instance("query", query, Query, "give a Query(n=..., eps=..., delta=..., max_value=...)")
        self._serving(query)  # refuses a query that no file serves
        rows = [row.for_users(query.n) for row in self.rows if query.as_private(row)]
        rows.sort(key=lambda row: (row.cost(query.objective), row.rmse))
        allowed = query.largest_rmse
        if allowed is None:
            least = min(row.rmse for row in rows)
            allowed = max(_USUAL_RATIO * query.central_rmse, least)
        best = next(i for i, row in enumerate(rows) if row.rmse <= allowed)
        others = _less_and_less_error(rows[best + 1 :], rows[best].rmse)
        cheaper = _less_and_less_error(rows[:best], math.inf)
        shortest = min(
            (row for row in rows if row.rmse <= allowed),
            key=lambda row: (row.cost("bits"), row.rmse),
        )
        fewer = shortest.bits_per_user < rows[best].bits_per_user
        return Found(self, query, rows[best], others, cheaper, shortest if fewer else None)

    def _serving(self, query: Query) -> Sequence[Row]:
        """List all rows that meet the requirements; an error names the first requirement that none
        meets."""
        rows: Sequence[Row] = self.rows
        if not rows:
            raise InvalidParameter(f"the table {self.path} is empty")
        rows = [row for row in rows if covers(row.adjacency, query.adjacency)]
        if not rows:
            raise InvalidParameter(
                f"adjacency = {query.adjacency}: no file in the table serves; all are for "
                f"{self.rows[0].adjacency}, which does not cover it; {_remedy(query)}"
            )
        rows = [row for row in rows if query.suits(row)]
        if not rows:
            raise InvalidParameter(
                f"noise = {query.noise}: no file in the table has this law; leave it out, so that "
                f"any serves, or {_remedy(query)}"
            )
        for requirement in query.requirements():
            left = [row for row in rows if requirement.met_by(row)]
            if not left:
                raise InvalidParameter(
                    f"{requirement.asked}: no file in the table serves; the {requirement.extreme} "
                    f"among the remaining files is {requirement.best(rows):g}; {_remedy(query)}"
                )
            rows = left
        return rows

    def nearest(
        self,
        *,
        eps: float,
        delta: float,
        max_value: int,
        central_fraction: float,
        objective: Objective = "messages",
        noise: NoiseLaw = "negative-binomial",
    ) -> ParameterFile | None:
        """Find the file of the most similar problem, from which a search can start.

        Args:
            eps: The eps of the problem.
            delta: The delta of the problem.
            max_value: The largest value of the problem.
            central_fraction: The eps of its central noise as a fraction of eps.
            objective: What should be small; decides between files for the same problem.
            noise: The law of the noise; decides between files for the same problem and objective.

        Returns:
            The file; None if no file has this max_value or a slightly larger one.
        """
        rows = [row for row in self.rows if 1 <= row.max_value / max_value <= _SIMILAR]

        def distance(row: Row) -> tuple[float, bool, bool]:
            numbers = (
                abs(math.log(row.eps / eps))
                + abs(math.log(math.log(row.delta) / math.log(delta)))
                + _WEIGHT * abs(row.central_fraction - central_fraction)
                + _WEIGHT * math.log(row.max_value / max_value)
            )
            return numbers, row.objective != objective, row.noise != noise

        return load(self.path / min(rows, key=distance).file) if rows else None

    def load(self, row: Row, query: Query) -> ParameterFile:
        """Load the file of a row, for the requested number of users.

        Everything but the certificate is recomputed from the file's rationals and compared.  The
        certificate is trusted here; ``paramsearch audit`` and ``audit-table`` prove it again.

        Args:
            row: A row of this table.
            query: The request that the file has to serve.

        Returns:
            The certified file.

        Raises:
            InvalidConfiguration: If the file is not what the row says, or does not serve.
        """
        path = self.path / row.file
        known = load(path)
        consistent(known)
        row.check(known, path)
        file = for_users(known, query.n)
        computed = index.row_of(file, name=row.file)
        if computed is None or not query.served_by(computed):
            raise InvalidConfiguration(
                f"{path} has been altered: it does not satisfy its index entry"
            )
        return file


def _remedy(query: Query) -> str:
    """Say how to make a file that serves, or why there can be none."""
    try:
        query.request()
    except InvalidParameter as error:
        return f"none can be generated: {error}"
    return f"make one: {query.command()} -o FILE"


def _less_and_less_error(rows: Sequence[Row], error: float) -> tuple[Row, ...]:
    """Return the rows, in their order, with less error than all before them and than ``error``."""
    found = []
    for row in rows:
        if row.rmse < error * _LESS_ERROR:
            found.append(row)
            error = row.rmse
    return tuple(found)


def shipped_folder() -> Path:
    """Return the folder of the table that comes with this package."""
    return Path(str(resources.files("paramsearch") / "data"))
