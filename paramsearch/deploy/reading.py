"""Messages from files, a portion at a time: text, CSV, Parquet and Arrow.

Text has one symbol on each line.  The others have a column ``symbol`` (or only one column), and may
have a column ``id`` that no two messages share.  What is not an integer is passed on as -1, which
is no symbol of any file.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from io import TextIOWrapper
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import numpy as np

from accounting.arrays import IntArray
from accounting.errors import InvalidParameter

if TYPE_CHECKING:
    import pyarrow as pa

Portion = tuple[IntArray, Sequence[object] | None]
_LINES = 1 << 16
_LONGEST = 19
_LARGEST = 1 << 62


def portions(path: Path) -> Iterator[Portion]:
    """Symbols, and ids where there are any."""
    kind = path.suffix.lower()
    if kind in {".parquet", ".arrow", ".feather"}:
        yield from _columnar(path)
    elif str(path) == "-":
        yield from _lines(standard_input())
    else:
        with path.open(encoding="utf-8-sig", errors="replace") as file:
            yield from _rows(file, path) if kind == ".csv" else _lines(file)


def standard_input() -> TextIO:
    """Bytes that are no text become characters that are in no number."""
    if sys.stdin is None:
        raise InvalidParameter("standard input is closed: there is nothing to read")
    if isinstance(sys.stdin, TextIOWrapper):
        sys.stdin.reconfigure(errors="replace")
    return sys.stdin


def _lines(file: TextIO) -> Iterator[Portion]:
    lines = (line.strip() for line in file)
    yield from _symbols(((text, None) for text in lines if text), with_ids=False)


def _rows(file: TextIO, path: Path) -> Iterator[Portion]:
    header = [name.strip().strip('"') for name in file.readline().split(",")]
    where = column(header, path)
    name = header.index("id") if "id" in header else None

    def entries() -> Iterator[tuple[str, str | None]]:
        for line in file:
            if line.strip():
                row = [cell.strip().strip('"') for cell in line.split(",")]
                symbol = row[where] if where < len(row) else ""
                yield symbol, row[name] if name is not None and name < len(row) else None

    yield from _symbols(entries(), with_ids=name is not None)


def column(names: Sequence[str], path: Path) -> int:
    """Which one has the symbols."""
    if "symbol" in names:
        return list(names).index("symbol")
    if len(names) == 1 and names[0] != "id" and _integer(names[0]) < 0:
        return 0
    shown = ", ".join(repr(name) for name in names)
    raise InvalidParameter(f"{path} has the columns {shown:.200}: one must be 'symbol'")


def _symbols(entries: Iterable[tuple[str, str | None]], *, with_ids: bool) -> Iterator[Portion]:
    stream = iter(entries)
    while portion := list(islice(stream, _LINES)):
        symbols = np.array([_integer(text) for text, _ in portion], np.int64)
        yield symbols, [name for _, name in portion] if with_ids else None


def _integer(text: str) -> int:
    """Digits and nothing else; what is too long to be a symbol is none either."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < _LONGEST else -1


def _columnar(path: Path) -> Iterator[Portion]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        if path.suffix.lower() == ".parquet":
            file = pq.ParquetFile(path)
            names = file.schema_arrow.names
            wanted = [names[column(names, path)], *(["id"] if "id" in names else [])]
            batches: Iterable[pa.RecordBatch] = file.iter_batches(1 << 20, columns=wanted)
        else:
            stored = pa.ipc.open_file(pa.memory_map(str(path)))
            batches = (stored.get_batch(i) for i in range(stored.num_record_batches))
        yield from (from_arrow(batch, path) for batch in batches)
    except (pa.ArrowException, OSError) as error:
        raise InvalidParameter(f"{path} cannot be read: {error}") from error


def from_arrow(batch: Any, path: Path = Path("the batch")) -> Portion:
    """The symbols of an Arrow record batch; nulls are no symbols."""
    names = batch.schema.names
    found = batch.column(column(names, path))
    if found.type not in _integer_types():
        raise InvalidParameter(f"{path}: the symbols are {found.type}, not integers")
    symbols = found.fill_null(0).to_numpy(zero_copy_only=False)
    if found.null_count:
        if symbols.dtype == np.uint64:
            symbols = np.minimum(symbols, np.uint64(_LARGEST))
        symbols = symbols.astype(np.int64)
        symbols[~np.asarray(found.is_valid())] = -1
    return symbols, batch.column(names.index("id")).to_pylist() if "id" in names else None


def _integer_types() -> Sequence[Any]:
    import pyarrow as pa

    return (*(getattr(pa, f"{sign}int{size}")() for sign in ("", "u") for size in (8, 16, 32, 64)),)
