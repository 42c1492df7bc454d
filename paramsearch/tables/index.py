"""The index of a table: a Parquet file with one row for each file and number of users."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields, replace
from io import BytesIO
from pathlib import Path
from typing import get_args, get_type_hints

import pyarrow as pa
import pyarrow.parquet as pq

from accounting.base.errors import InvalidConfiguration
from accounting.base.strict_json import read_bytes
from accounting.model.change import SUBSTITUTION, Adjacency
from accounting.model.costs import bits_per_message
from accounting.model.laws.noise import NoiseLaw
from paramsearch.files import write_atomically
from paramsearch.parameters.parameter_file import ParameterFile
from paramsearch.request import Objective
from paramsearch.tables.cell import Cell

VERSION = "table_version"
"""Name of the version of a table in the provenance of its files."""
INDEX, FILES = "index.parquet", "files"
"""Names of the index and of the folder of parameter files in a table's folder."""
_MOST_ROWS = 1 << 22
"""Largest number of rows of an index."""


@dataclass(frozen=True, kw_only=True)
class Row(Cell):
    """A row of the index: the cost and error that the file of a cell states, for n users.

    The names of the attributes are the columns of the index.
    """

    n: int
    """Number of users."""
    noise_messages: float
    """Expected number of noise messages of all users together."""
    messages_per_user: float
    """Expected number of messages of a user whose input is not 0."""
    bits_per_message: int
    """Length of a message."""
    bits_per_user: float
    """Expected number of bits of a user whose input is not 0."""
    rmse: float
    """Root mean square error of the sum."""
    rmse_over_central: float
    """``rmse`` in units of that of the Discrete Laplace mechanism."""
    delta_lower: float
    """Lower bound of delta that the file's certificate states."""
    delta_upper: float
    """Upper bound of delta that the file's certificate states."""
    symbols: int
    """Number of different messages."""
    atoms: int
    """Number of atoms with noise."""
    seconds: float | None
    """Time of the search; None if it is not known."""
    file: str
    """Path of the file in the table's folder."""
    sha256: str
    """Hash of the file."""
    version: str | None = None
    """Version of the table that the file was made for; None if the table has no versions."""

    def for_users(self, n: int) -> Row:
        """Return the row for another number of users, who share the same noise."""
        messages = 1 + self.noise_messages / n
        return replace(
            self,
            n=n,
            messages_per_user=messages,
            bits_per_user=self.bits_per_message * messages,
        )

    def cost(self, objective: Objective) -> float:
        """Return the number that a search with this objective minimizes."""
        return self.noise_messages if objective == "messages" else self.bits_per_user

    @property
    def has_shortest_messages(self) -> bool:
        """Whether no alphabet has shorter messages."""
        return self.bits_per_message == bits_per_message(self.max_value + 1)

    def describes(self, file: ParameterFile) -> bool:
        """Tell whether this is the row of the file, for any number of users."""
        other = row_of(file, name=self.file, seconds=self.seconds)
        return other is not None and self.for_users(1) == other.for_users(1)

    def check(self, file: ParameterFile, path: Path) -> None:
        """Raise ``InvalidConfiguration`` if this is not the row of the file read from ``path``."""
        if not self.describes(file):
            raise InvalidConfiguration(
                f"{path} is not what the index says; run `paramsearch table` again"
            )


def row_of(file: ParameterFile, *, name: str, seconds: float | None = None) -> Row | None:
    """Return the row of a file whose path in the table's folder is ``name``.

    It is None if the file is not certified, has another name than its problem's, or is not for
    integers, one release and honest users only.
    """
    certificate, cost, problem = file.certificate, file.cost, file.problem
    cell = Cell.of(file)
    usual = (problem.releases, problem.honest, file.dimension) == (1, 1.0, 1)
    if certificate is None or not usual or name != f"{FILES}/{cell.name}.json":
        return None
    return Row(
        **asdict(cell),
        n=problem.n,
        noise_messages=cost.noise_messages,
        messages_per_user=cost.messages_per_user,
        bits_per_message=cost.bits_per_message,
        bits_per_user=cost.bits_per_user,
        rmse=file.error.rmse,
        rmse_over_central=file.error.rmse_over_central,
        delta_lower=certificate.delta_lower,
        delta_upper=certificate.delta_upper,
        symbols=len(file.alphabet),
        atoms=len(file.atoms),
        seconds=seconds,
        file=name,
        sha256=file.sha256,
        version=version_of(file),
    )


def version_of(file: ParameterFile) -> str | None:
    """Return the version of the table that a file was made for, if its provenance says."""
    version = file.provenance.settings.get(VERSION)
    return version if isinstance(version, str) else None


_NOT_NUMBERS = {"file", "sha256", "seconds", "objective", "adjacency", "noise", "version"}
"""Columns that are texts or may be absent."""
_NEWER: dict[str, str | None] = {
    "objective": "messages",
    "adjacency": SUBSTITUTION,
    "noise": "negative-binomial",
    "version": None,
}
"""Columns that earlier indexes do not have, and what they would have had in them."""
_FILE = re.compile(r"files/[^/\\\0]+\.json")
_ARROW = {
    int: pa.int64(),
    float: pa.float64(),
    str: pa.string(),
    Objective: pa.string(),
    Adjacency: pa.string(),
    NoiseLaw: pa.string(),
    float | None: pa.float64(),
    str | None: pa.string(),
}
_SCHEMA = pa.schema([(name, _ARROW[kind]) for name, kind in get_type_hints(Row).items()])


def write(path: Path, rows: Iterable[Row]) -> None:
    """Write an index atomically."""
    out = BytesIO()
    pq.write_table(pa.Table.from_pylist([asdict(row) for row in rows], schema=_SCHEMA), out)
    write_atomically(path, out.getvalue())


def read(path: Path) -> Sequence[Row]:
    """Read an index; anything wrong with it raises ``InvalidConfiguration``."""
    if not os.path.exists(path):
        raise InvalidConfiguration(
            f"{path.parent} is no table: it has no {path.name}; `paramsearch table` creates one"
        )
    try:
        # no threads: those of pyarrow may abort a process that exits right after
        stored = pq.ParquetFile(pa.BufferReader(read_bytes(path)), pre_buffer=False)
        if stored.metadata.num_rows > _MOST_ROWS:
            raise InvalidConfiguration(f"{path} has more than {_MOST_ROWS:,} rows")
        found = stored.read(use_threads=False)
        found.validate(full=True)
    except (OSError, pa.ArrowException, UnicodeDecodeError) as error:
        raise InvalidConfiguration(f"{path} cannot be read: {error}") from None
    for name, value in _NEWER.items():
        if name not in found.schema.names:
            column = pa.array([value] * found.num_rows, pa.string())
            found = found.add_column(
                min(_SCHEMA.names.index(name), len(found.schema)), name, column
            )
    if sorted(found.schema.names) == sorted(_SCHEMA.names):
        found = found.select(_SCHEMA.names)
    if not found.schema.equals(_SCHEMA):
        raise InvalidConfiguration(
            f"{path} must have the columns {', '.join(field.name for field in fields(Row))}"
        )
    rows = [Row(**values) for values in found.to_pylist()]
    for row in rows:
        if not _possible(row):
            raise InvalidConfiguration(
                f"{path} has an impossible row, for {row.file!r:.80}; `paramsearch table` rebuilds "
                "the index"
            )
    return rows


def _possible(row: Row) -> bool:
    """Tell whether all numbers are positive where they must be, and the file is in the folder."""
    numbers = [value for name, value in asdict(row).items() if name not in _NOT_NUMBERS]
    return (
        None not in (row.file, row.sha256, *numbers)
        and all(math.isfinite(number) and number >= 0 for number in numbers)
        and min(row.max_value, row.eps, row.delta, row.n, row.noise_messages, row.rmse) > 0
        and row.objective in get_args(Objective)
        and row.adjacency in get_args(Adjacency)
        and row.noise in get_args(NoiseLaw)
        and _FILE.fullmatch(row.file) is not None
    )
