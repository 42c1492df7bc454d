"""Queries of a table: a problem, the allowed error, and what should be cheap."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import get_args

from accounting.base.enclosure import exactly
from accounting.base.errors import InvalidParameter
from accounting.base.validation import one_of, positive
from accounting.model.change import SUBSTITUTION, covers
from accounting.model.costs import central_rmse
from accounting.model.laws.noise import NoiseLaw
from accounting.model.problem import Problem
from paramsearch.request import DEFAULT_CENTRAL_FRACTION, Objective, Request, error_ratio
from paramsearch.tables.index import Row


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
        """Return the value that comes closest to meeting the bound."""
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
        noise: The law of the noise that a file must have; by default it may have any.  Clients that
            know only formats 1 to 4 need "negative-binomial".

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
    noise: NoiseLaw | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, usual in (("dimension", 1), ("releases", 1), ("honest", 1.0)):
            if getattr(self, name) != usual:
                raise InvalidParameter(
                    f"{name} = {getattr(self, name)}: tables hold files for one release of numbers "
                    "with noise from all users; generate a file for this problem"
                )
        if self.max_rmse is not None:
            object.__setattr__(self, "max_rmse", positive("max_rmse", self.max_rmse))
            if self.max_error_ratio is not None:
                raise InvalidParameter("give one of max_rmse and max_error_ratio, not both")
        if self.max_error_ratio is not None:
            error_ratio(self.max_error_ratio)
        one_of("objective", self.objective, get_args(Objective))
        if self.noise is not None:
            one_of("noise", self.noise, get_args(NoiseLaw))

    def requirements(self) -> Iterator[Requirement]:
        """The bounds that a row of the index has to meet."""
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
            asked = f"max_rmse = {self.max_rmse}"
            if self.max_error_ratio is not None:
                asked = f"max_error_ratio = {self.max_error_ratio}"
            yield Requirement("rmse", self.largest_rmse, asked=asked, extreme="smallest RMSE")

    @property
    def largest_rmse(self) -> float | None:
        """The error that is allowed, if the query says."""
        if self.max_error_ratio is not None:
            return self.max_error_ratio * self.central_rmse
        return self.max_rmse

    def as_private(self, row: Row) -> bool:
        """Tell whether the file of a row has at least this privacy, whatever its error is."""
        covered = self.suits(row) and row.max_value >= self.max_value
        return covered and row.eps <= self.eps and row.delta <= self.delta

    def suits(self, row: Row) -> bool:
        """Tell whether the file of a row has the adjacency and the law of the noise."""
        return covers(row.adjacency, self.adjacency) and self.noise in (None, row.noise)

    @property
    def central_rmse(self) -> float:
        """The error of the central mechanism at this eps."""
        return central_rmse(self)

    def served_by(self, row: Row) -> bool:
        """Tell whether the file of a row has at least this privacy and at most this error."""
        met = all(requirement.met_by(row) for requirement in self.requirements())
        return met and self.suits(row)

    def request(self) -> Request:
        """The request that generates a file for exactly this problem.

        Returns:
            The request, with the usual error and law if the query does not say.

        Raises:
            InvalidParameter: If no search accepts the numbers.
        """
        given = {name: value for name, value in vars(self).items() if value is not None}
        return Request(**given)  # a request has all fields of a query

    def command(
        self,
        central_fraction: float = DEFAULT_CENTRAL_FRACTION,
        noise: NoiseLaw = "negative-binomial",
    ) -> str | None:
        """The command that makes a file for exactly this problem.

        Args:
            central_fraction: What the command allows as error if the query does not say.
            noise: The law of the noise if the query does not say.

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
            + (" --noise burst" if (self.noise or noise) == "burst" else "")
        )
