"""Lookups: the cheapest file of a table that serves a request.

(eps', delta')-privacy for inputs 0..K' is (eps, delta)-privacy for inputs 0..K whenever
eps' <= eps, delta' <= delta and K' >= K, and the noise does not depend on n: all such files serve,
and the cost and the error are those of the file.  A file for substitution serves a request for
zero-out, never the other way round.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import resources
from pathlib import Path
from typing import get_args

from accounting.base.enclosure import Summarized, exactly
from accounting.base.errors import InvalidConfiguration, InvalidParameter
from accounting.base.validation import AnyPath, as_path, instance, one_of, positive
from accounting.model.change import SUBSTITUTION, covers
from accounting.model.costs import central_rmse
from accounting.model.problem import Problem
from paramsearch.parameters.assembly import consistent, for_users
from paramsearch.parameters.parameter_file import ParameterFile, load
from paramsearch.request import DEFAULT_CENTRAL_FRACTION, Objective, Request, error_ratio
from paramsearch.tables import index
from paramsearch.tables.index import INDEX, Row

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


@dataclass(frozen=True)
class Requirement:
    """A bound of a query on one column of the index: an upper bound, or a lower one."""

    column: str
    bound: float
    asked: str
    """The bound as the query states it."""
    extreme: str
    """What the least demanding value of the column is called."""
    lower: bool = False

    def met_by(self, row: Row) -> bool:
        value: float = getattr(row, self.column)
        return value >= self.bound if self.lower else value <= self.bound

    def best(self, rows: Sequence[Row]) -> float:
        """The value that comes closest to meeting the bound."""
        values: list[float] = [getattr(row, self.column) for row in rows]
        return max(values) if self.lower else min(values)


@dataclass(frozen=True, kw_only=True)
class Query(Problem):
    """A problem to find a file for, with the allowed error and what should be cheap.

    Args:
        max_rmse: Largest root mean square error of the sum.
        max_error_ratio: The same, in units of the error of the central mechanism.  If neither is
            given, about 1.11 as in ``Request``, or the least that the table has.
        objective: Whether the number of messages or the number of bits should be small.

    The other arguments are those of ``Problem``.

    Raises:
        InvalidParameter: If a number is outside its domain.

    >>> query = Query(n=100_000, eps=1.0, delta=1e-6, max_value=5, max_rmse=9.0)
    >>> query.command()
    'paramsearch generate --n 100000 --eps 1 --delta 1e-06 --max-value 5 --max-rmse 9'
    """

    max_rmse: float | None = None
    max_error_ratio: float | None = None
    objective: Objective = "messages"

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, usual in (("dimension", 1), ("releases", 1), ("honest", 1.0)):
            if getattr(self, name) != usual:
                raise InvalidParameter(
                    f"{name} = {getattr(self, name)}: tables hold files for one release of numbers "
                    "with noise from all users; generate a file for this problem"
                )
        if self.max_rmse is not None:
            object.__setattr__(self, "max_rmse", positive("max rmse", self.max_rmse))
            if self.max_error_ratio is not None:
                raise InvalidParameter("give either a max rmse or a max error ratio, not both")
        if self.max_error_ratio is not None:
            error_ratio(self.max_error_ratio)
        one_of("objective", self.objective, get_args(Objective))

    def requirements(self) -> Iterator[Requirement]:
        """What a row of the index has to meet."""
        yield Requirement(
            "max_value",
            self.max_value,
            asked=f"max_value = {self.max_value:,}",
            extreme="largest max_value",
            lower=True,
        )
        for name, bound in (("eps", self.eps), ("delta", self.delta)):
            asked = f"{name} = {exactly(bound)}"
            yield Requirement(name, bound, asked=asked, extreme=f"smallest {name}")
        if self.largest_rmse is not None:
            asked = f"max rmse = {self.max_rmse}"
            if self.max_error_ratio is not None:
                asked = f"max error ratio = {self.max_error_ratio}"
            yield Requirement("rmse", self.largest_rmse, asked=asked, extreme="smallest RMSE")

    @property
    def largest_rmse(self) -> float | None:
        """The error that is allowed, if the query says."""
        if self.max_error_ratio is not None:
            return self.max_error_ratio * self.central_rmse
        return self.max_rmse

    def as_private(self, row: Row) -> bool:
        """Whether the file of a row has at least this privacy, whatever its error is."""
        covered = covers(row.adjacency, self.adjacency) and row.max_value >= self.max_value
        return covered and row.eps <= self.eps and row.delta <= self.delta

    @property
    def central_rmse(self) -> float:
        """The error of the central mechanism at this eps."""
        return central_rmse(self)

    def served_by(self, row: Row) -> bool:
        """Whether the file of a row has at least this privacy and at most this error."""
        met = all(requirement.met_by(row) for requirement in self.requirements())
        return met and covers(row.adjacency, self.adjacency)

    def request(self) -> Request:
        """The request that generates a file for exactly this problem.

        Returns:
            The request, with the usual error if the query does not say.

        Raises:
            InvalidParameter: If no search accepts the numbers.
        """
        return Request(**vars(self))  # a request has all fields of a query

    def command(self, central_fraction: float = DEFAULT_CENTRAL_FRACTION) -> str | None:
        """The command that makes a file for exactly this problem.

        Args:
            central_fraction: What the command allows as error if the query does not say.

        Returns:
            The command without an output file; None if ``generate`` refuses it.
        """
        try:
            self.request()
        except InvalidParameter:
            return None
        error = f"--central-fraction {exactly(central_fraction)}"
        if self.max_rmse is not None:
            error = f"--max-rmse {exactly(self.max_rmse)}"
        if self.max_error_ratio is not None:
            error = f"--max-error-ratio {exactly(self.max_error_ratio)}"
        return (
            f"paramsearch generate --n {self.n} --eps {exactly(self.eps)} "
            f"--delta {exactly(self.delta)} --max-value {self.max_value} {error}"
            + (" --objective bits" if self.objective == "bits" else "")
            + ("" if self.adjacency == SUBSTITUTION else f" --adjacency {self.adjacency}")
        )


@dataclass(frozen=True, repr=False)
class Found(Summarized):
    """The result of a lookup.

    Attributes:
        table: The table.
        query: The request.
        row: The row of the cheapest file that serves, for the requested number of users.
        others: Rows of more expensive files, each with less error than all before it.
        cheaper: Rows of cheaper files, each with less error than all before it, but more than is
            allowed.

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

    @property
    def error_ratio(self) -> float:
        """The error in units of that of the central mechanism at the requested eps."""
        return self.row.rmse / self.query.central_rmse

    def summary(self) -> tuple[str, str]:
        """The file, and its cost and error beside the other choices."""
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
        return self.query.command(self.row.central_fraction)

    @property
    def exact(self) -> bool:
        """Whether the file was made for exactly the requested eps, delta, max_value and
        adjacency."""
        names = ("eps", "delta", "max_value", "adjacency")
        return all(getattr(self.row, name) == getattr(self.query, name) for name in names)


@dataclass(frozen=True, repr=False)
class Table(Summarized):
    """A folder that ``paramsearch table`` made, or the table that comes with this package.

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
        """The folder, and the ranges of its problems."""
        ranges = []
        for column in ("eps", "delta", "max_value", "central_fraction") if self.rows else ():
            values = [getattr(row, column) for row in self.rows]
            ranges.append(f"{column} {exactly(min(values))} to {exactly(max(values))}")
        return f"{self.path}: {len(self.rows):,} files", ", ".join(ranges) or "empty"

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
        return Found(self, query, rows[best], others, cheaper)

    def _serving(self, query: Query) -> Sequence[Row]:
        """All rows that meet the requirements; an error names the first one that none meets."""
        rows: Sequence[Row] = self.rows
        if not rows:
            raise InvalidParameter(f"the table {self.path} is empty")
        rows = [row for row in rows if covers(row.adjacency, query.adjacency)]
        if not rows:
            raise InvalidParameter(
                f"adjacency = {query.adjacency}: no file in the table serves; all are for "
                f"{self.rows[0].adjacency}, which does not cover it; {_remedy(query)}"
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
    ) -> ParameterFile | None:
        """Find the file of the most similar problem, from which a search can start.

        Args:
            eps: The eps of the problem.
            delta: The delta of the problem.
            max_value: The largest value of the problem.
            central_fraction: The eps of its central noise as a fraction of eps.
            objective: What should be small; decides between files for the same problem.

        Returns:
            The file; None if no file has this max_value or a slightly larger one.
        """
        rows = [row for row in self.rows if 1 <= row.max_value / max_value <= _SIMILAR]

        def distance(row: Row) -> tuple[float, bool]:
            numbers = (
                abs(math.log(row.eps / eps))
                + abs(math.log(math.log(row.delta) / math.log(delta)))
                + _WEIGHT * abs(row.central_fraction - central_fraction)
                + _WEIGHT * math.log(row.max_value / max_value)
            )
            return numbers, row.objective != objective

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
    """How to make a file that serves, or why there can be none."""
    try:
        query.request()
    except InvalidParameter as error:
        return f"none can be generated: {error}"
    return f"make one: {query.command()} -o FILE"


def _less_and_less_error(rows: Sequence[Row], error: float) -> tuple[Row, ...]:
    """The rows, in their order, with less error than all before them and than ``error``."""
    found = []
    for row in rows:
        if row.rmse < error * _LESS_ERROR:
            found.append(row)
            error = row.rmse
    return tuple(found)


def shipped_folder() -> Path:
    """The folder of the table that comes with this package."""
    return Path(str(resources.files("paramsearch") / "data"))
