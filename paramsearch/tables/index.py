"""The index of a table: one row for each file and number of users, kept as Parquet."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields, replace
from io import BytesIO
from pathlib import Path
from typing import get_type_hints

import pyarrow as pa
import pyarrow.parquet as pq

from accounting.errors import InvalidConfiguration
from paramsearch.files import write_atomically
from paramsearch.parameter_file import ParameterFile


@dataclass(frozen=True)
class Row:
    """What a file says, for n users; ``seconds`` is the time of its search, if that is known."""

    max_value: int
    eps: float
    delta: float
    central_fraction: float
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


def row_of(file: ParameterFile, *, name: str, fraction: float, seconds: float | None) -> Row:
    """The row of a certified file of integers."""
    certificate, cost, problem = file.certificate, file.cost, file.problem
    assert certificate is not None
    return Row(
        max_value=problem.max_value,
        eps=problem.eps,
        delta=problem.delta,
        central_fraction=fraction,
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


_ARROW = {int: pa.int64(), float: pa.float64(), str: pa.string(), float | None: pa.float64()}
_SCHEMA = pa.schema([(name, _ARROW[kind]) for name, kind in get_type_hints(Row).items()])


def write(path: Path, rows: Iterable[Row]) -> None:
    """Atomically."""
    out = BytesIO()
    pq.write_table(pa.Table.from_pylist([asdict(row) for row in rows], schema=_SCHEMA), out)
    write_atomically(path, out.getvalue())


def read(path: Path) -> Sequence[Row]:
    try:
        found = pq.read_table(pa.BufferReader(path.read_bytes()))
    except FileNotFoundError:
        raise InvalidConfiguration(
            f"{path.parent} is no table: it has no {path.name}; `paramsearch table` makes one"
        ) from None
    except (OSError, pa.ArrowException) as error:
        raise InvalidConfiguration(f"{path} cannot be read: {error}") from None
    if not found.schema.equals(_SCHEMA):
        raise InvalidConfiguration(
            f"{path} has other columns than {', '.join(field.name for field in fields(Row))}"
        )
    columns = [found.column(name).to_pylist() for name in _SCHEMA.names]
    return [Row(*values) for values in zip(*columns, strict=True)]
