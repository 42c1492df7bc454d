"""The index of a table: one row for each file and number of users, kept as Parquet."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields, replace
from io import BytesIO
from pathlib import Path
from typing import get_type_hints

import pyarrow as pa
import pyarrow.parquet as pq

from accounting.base.errors import InvalidConfiguration
from accounting.base.strict_json import read_bytes
from paramsearch.files import write_atomically
from paramsearch.parameters.parameter_file import ParameterFile
from paramsearch.tables.grid import Cell

INDEX, FILES = "index.parquet", "files"
"""Their names in a table's folder."""
_MOST_ROWS = 1 << 22


@dataclass(frozen=True)
class Row(Cell):
    """What the file of a cell says, for n users.

    ``seconds`` is the time of its search, if that is known.
    """

    n: int
    noise_messages: float
    messages_per_user: float
    bits_per_message: int
    bits_per_user: float
    rmse: float
    rmse_over_central: float
    delta_lower: float
    delta_upper: float
    symbols: int
    atoms: int
    seconds: float | None
    file: str
    sha256: str

    def for_users(self, n: int) -> Row:
        """The noise is that of all users together."""
        messages = 1 + self.noise_messages / n
        return replace(
            self,
            n=n,
            messages_per_user=messages,
            bits_per_user=self.bits_per_message * messages,
        )

    def says(self, other: Row) -> bool:
        """Whether it is the same, for whatever number of users and seconds."""
        return self.for_users(1) == replace(other.for_users(1), seconds=self.seconds)


def row_of(file: ParameterFile, *, name: str, seconds: float | None = None) -> Row | None:
    """The row of a file in ``files``; None if it is no certified one of integers, for one release
    by honest users, or if its name is another one's."""
    certificate, cost, problem = file.certificate, file.cost, file.problem
    cell = Cell.of(file)
    usual = (problem.releases, problem.honest, file.dimension) == (1, 1.0, 1)
    if certificate is None or not usual or name != f"{FILES}/{cell.name}.json":
        return None
    return Row(
        max_value=problem.max_value,
        eps=problem.eps,
        delta=problem.delta,
        central_fraction=cell.central_fraction,
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
    )


_TEXTS = {"file", "sha256", "seconds"}
_FILE = re.compile(r"files/[^/\\\0]+\.json")
_ARROW = {int: pa.int64(), float: pa.float64(), str: pa.string(), float | None: pa.float64()}
_SCHEMA = pa.schema([(name, _ARROW[kind]) for name, kind in get_type_hints(Row).items()])


def write(path: Path, rows: Iterable[Row]) -> None:
    """Atomically."""
    out = BytesIO()
    pq.write_table(pa.Table.from_pylist([asdict(row) for row in rows], schema=_SCHEMA), out)
    write_atomically(path, out.getvalue())


def read(path: Path) -> Sequence[Row]:
    if not os.path.exists(path):
        raise InvalidConfiguration(
            f"{path.parent} is no table: it has no {path.name}; `paramsearch table` makes one"
        )
    try:
        # no threads: pyarrow's own may abort a process that ends at once
        stored = pq.ParquetFile(pa.BufferReader(read_bytes(path)), pre_buffer=False)
        if stored.metadata.num_rows > _MOST_ROWS:
            raise InvalidConfiguration(f"{path} has more than {_MOST_ROWS:,} rows")
        found = stored.read(use_threads=False)
        found.validate(full=True)
    except (OSError, pa.ArrowException, UnicodeDecodeError) as error:
        raise InvalidConfiguration(f"{path} cannot be read: {error}") from None
    if not found.schema.equals(_SCHEMA):
        raise InvalidConfiguration(
            f"{path} has other columns than {', '.join(field.name for field in fields(Row))}"
        )
    columns = [found.column(name).to_pylist() for name in _SCHEMA.names]
    rows = [Row(*values) for values in zip(*columns, strict=True)]
    for row in rows:
        if not _sensible(row):
            raise InvalidConfiguration(
                f"{path} has a row that cannot be, for {row.file!r:.80}; `paramsearch table` makes "
                "the index anew"
            )
    return rows


def _sensible(row: Row) -> bool:
    """Numbers that are positive, and a file of the folder."""
    numbers = [value for name, value in asdict(row).items() if name not in _TEXTS]
    return (
        None not in (row.file, row.sha256, *numbers)
        and all(math.isfinite(number) and number >= 0 for number in numbers)
        and min(row.max_value, row.eps, row.delta, row.n, row.noise_messages, row.rmse) > 0
        and _FILE.fullmatch(row.file) is not None
    )
