"""Messages read from text, CSV, Parquet and Arrow files, one portion at a time.

A text file has one symbol per line.  The other formats have a column ``symbol`` (or a single
column), and may have a column ``id`` whose entries are unique.  Anything that is not an integer is
passed on as -1, which is not a symbol of any file.  Every line of a CSV file is a message of its
own: entries in quotes may have commas and doubled quotes, but no line breaks, and a line whose
quotes do not match has no symbol, so that no user's message changes what another one is.

Packed messages, as ``Codec.pack`` writes them, have no mark by which they could be told from
anything else, and do not say how many they are: up to seven messages may hide in the padding.  They
are read as such only where somebody says their number, and only if it fits the bytes exactly.

The files are untrusted.  Lines have bounded length, and Arrow batches are validated before their
offsets are used: an offset out of bounds would crash the process.
"""

from __future__ import annotations

import csv
import io
import os
import stat
import sys
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TextIO

import numpy as np

from accounting.base.arrays import IntArray
from accounting.base.enclosure import counted
from accounting.base.errors import AccountingError, InvalidParameter

if TYPE_CHECKING:
    import pyarrow as pa

Portion = tuple[IntArray, Sequence[object] | None]
"""Symbols, and their ids if there are any."""
_ROWS = 1 << 16
"""Number of messages in a portion."""
_BLOCK = 1 << 20
"""Number of characters read at a time."""
_LONGEST_LINE = 1 << 20
"""Largest number of characters in a line."""
_LONGEST_SYMBOL = 18
"""Largest number of digits of a symbol, so that it fits into 64 bits."""
_LARGEST_SYMBOL = 1 << 62
"""Larger than every symbol; larger unsigned integers are replaced by it to fit into 64 bits."""
_COLUMNAR = {".parquet", ".arrow", ".feather"}


def portions(path: Path) -> Iterator[Portion]:
    """All messages of a file; ``-`` is standard input."""
    kind = path.suffix.lower()
    if str(path) == "-":
        yield from _lines(standard_input(), path)
        return
    _check_kind(path, may_be_piped=kind not in _COLUMNAR)
    if kind in _COLUMNAR:
        yield from _columnar(path)
        return
    with path.open(encoding="utf-8-sig", errors="replace") as file:
        yield from _rows(file, path) if kind == ".csv" else _lines(file, path)


def packed_portions(path: Path, *, bits: int, count: int) -> Iterator[Portion]:
    """All messages of a file that ``Codec.pack`` wrote; ``-`` is standard input.

    Args:
        path: The file.
        bits: Number of bits of a message.
        count: Number of messages.

    Returns:
        An iterator over portions of the messages, without ids.

    Raises:
        InvalidParameter: If the bytes are not those of this many messages.
    """
    size = -(-count * bits // 8)
    need = (
        f"{counted(count, 'packed message')} of {counted(bits, 'bit')} "
        f"take{'s' * (count == 1)} {counted(size, 'byte')}"
    )
    name = "standard input" if str(path) == "-" else str(path)
    if str(path) == "-":
        if sys.stdin is None:
            raise InvalidParameter("standard input is closed: there is nothing to read")
        yield from _unpacked(sys.stdin.buffer, name, need, bits=bits, count=count)
        return
    if path.suffix.lower() in {*_COLUMNAR, ".csv"}:
        raise InvalidParameter(f"{path} has the ending of another format than packed messages")
    _check_kind(path, may_be_piped=True)
    if path.is_file() and path.stat().st_size != size:
        raise InvalidParameter(f"{path} has {path.stat().st_size:,} bytes, but {need}")
    with path.open("rb") as file:
        yield from _unpacked(file, name, need, bits=bits, count=count)


def _unpacked(file: BinaryIO, name: str, need: str, *, bits: int, count: int) -> Iterator[Portion]:
    places = 1 << np.arange(bits, dtype=np.int64)[::-1]
    for begin in range(0, count, _ROWS):  # a multiple of eight, which fill whole bytes
        rows = min(_ROWS, count - begin)
        size = -(-rows * bits // 8)
        data = file.read(size)
        if len(data) < size:
            raise InvalidParameter(f"{name} has too few bytes: {need}")
        found = np.unpackbits(np.frombuffer(data, np.uint8))
        if found[rows * bits :].any():
            raise InvalidParameter(
                f"{name} has bits other than 0 after {counted(count, 'packed message')} of "
                f"{counted(bits, 'bit')}: their number is another one"
            )
        yield found[: rows * bits].reshape(rows, bits).astype(np.int64) @ places, None
    if file.read(1):
        raise InvalidParameter(f"{name} has too many bytes: {need}")


def standard_input() -> TextIO:
    """Standard input as text; invalid bytes become characters that no number contains."""
    if sys.stdin is None:
        raise InvalidParameter("standard input is closed: there is nothing to read")
    if isinstance(sys.stdin, io.TextIOWrapper):
        return io.TextIOWrapper(sys.stdin.buffer, encoding="utf-8-sig", errors="replace")
    return sys.stdin


def _check_kind(path: Path, *, may_be_piped: bool) -> None:
    """Refuse devices, which may never end, and pipes where the format needs random access."""
    try:
        mode = os.stat(path).st_mode
    except (OSError, ValueError) as error:
        raise InvalidParameter(f"cannot read {str(path)!r:.200}: {error}") from None
    if not stat.S_ISREG(mode) and not (may_be_piped and stat.S_ISFIFO(mode)):
        remedy = "; take - for standard input" if may_be_piped else ""
        raise InvalidParameter(f"{path} is not a regular file{remedy}")


def bounded_lines(file: TextIO, path: Path) -> Iterator[str]:
    """The lines of a file, each of bounded length; reading blocks is also faster than lines."""
    rest = ""
    while block := file.read(_BLOCK):
        *lines, rest = (rest + block).split("\n")
        if max(map(len, lines), default=0) > _LONGEST_LINE or len(rest) > _LONGEST_LINE:
            raise InvalidParameter(
                f"{path} has a line of more than {_LONGEST_LINE:,} characters; messages have "
                "one symbol per line"
            )
        yield from lines
    if rest:
        yield rest


def _lines(file: TextIO, path: Path) -> Iterator[Portion]:
    lines = (line.strip() for line in bounded_lines(file, path))
    yield from _symbols(((text, None) for text in lines if text), with_ids=False)


def _rows(file: TextIO, path: Path) -> Iterator[Portion]:
    lines = bounded_lines(file, path)
    header = _cells(next(lines, ""))
    where = column(header, path)
    name = header.index("id") if "id" in header else None

    def entries() -> Iterator[tuple[str, str | None]]:
        for line in lines:
            if line.strip():
                row = _cells(line)
                symbol = row[where] if where < len(row) else ""
                yield symbol, row[name] if name is not None and name < len(row) else None

    yield from _symbols(entries(), with_ids=name is not None)


def _cells(line: str) -> list[str]:
    """Return the entries of a line of a CSV file, none if its quotes do not match."""
    if '"' not in line:
        return [cell.strip() for cell in line.split(",")]
    try:
        (row,) = csv.reader([line.strip()], skipinitialspace=True, strict=True)
    except csv.Error:
        return []
    return [cell.strip() for cell in row]


def column(names: Sequence[str], path: Path) -> int:
    """The index of the column with the symbols."""
    if "symbol" in names:
        return list(names).index("symbol")
    if len(names) == 1 and names[0] != "id" and _integer(names[0]) < 0:
        return 0
    shown = ", ".join(repr(name) for name in names)
    raise InvalidParameter(f"{path} has the columns {shown:.200}: one must be 'symbol'")


def _symbols(entries: Iterable[tuple[str, str | None]], *, with_ids: bool) -> Iterator[Portion]:
    stream = iter(entries)
    while portion := list(islice(stream, _ROWS)):
        symbols = np.array([_integer(text) for text, _ in portion], np.int64)
        yield symbols, [name for _, name in portion] if with_ids else None


def _integer(text: str) -> int:
    """A text of digits as an integer; -1 for any other text, and for one that is too long."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= _LONGEST_SYMBOL else -1


def _columnar(path: Path) -> Iterator[Portion]:
    import pyarrow as pa

    try:
        for batch in _parquet(path) if path.suffix.lower() == ".parquet" else _arrow(path):
            batch.validate(full=True)
            yield from_arrow(batch, path)
    except AccountingError:
        raise
    except MemoryError:
        raise InvalidParameter(
            f"{path} has a batch that does not fit into memory; write smaller ones"
        ) from None
    except (pa.ArrowException, OSError, ValueError, ArithmeticError) as error:
        raise InvalidParameter(f"{path} cannot be read: {error}") from error


def _parquet(path: Path) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pq.read_schema(path)
    names = schema.names
    wanted = [names[column(names, path)], *(["id"] if "id" in names else [])]
    # a text that is stored once for many rows is not copied for each row
    shared = [name for name in wanted[1:] if pa.types.is_string(schema.field(name).type)]
    with pq.ParquetFile(path, read_dictionary=shared) as file:
        yield from file.iter_batches(_ROWS, columns=wanted, use_threads=False)


def _arrow(path: Path) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa

    # not memory-mapped: a file that becomes shorter would crash the process
    with pa.OSFile(str(path)) as source, pa.ipc.open_file(source) as stored:
        for i in range(stored.num_record_batches):
            yield stored.get_batch(i)


def from_arrow(batch: Any, path: Path = Path("the batch")) -> Portion:
    """The messages of an Arrow record batch; a null becomes -1."""
    names = batch.schema.names
    found = batch.column(column(names, path))
    if found.type not in _integer_types():
        raise InvalidParameter(f"{path}: the symbols are {found.type}, not integers")
    symbols = found.fill_null(0).to_numpy(zero_copy_only=False)
    if found.null_count:
        if symbols.dtype == np.uint64:
            symbols = np.minimum(symbols, np.uint64(_LARGEST_SYMBOL))
        symbols = symbols.astype(np.int64)
        symbols[~np.asarray(found.is_valid())] = -1
    return symbols, _ids(batch.column(names.index("id"))) if "id" in names else None


def _ids(found: Any) -> Sequence[object]:
    import pyarrow as pa

    if not pa.types.is_dictionary(found.type):
        names: Sequence[object] = found.to_pylist()
        return names
    known = found.dictionary.to_pylist()
    return [None if i is None else known[i] for i in found.indices.to_pylist()]


def _integer_types() -> Sequence[Any]:
    import pyarrow as pa

    return (*(getattr(pa, f"{sign}int{size}")() for sign in ("", "u") for size in (8, 16, 32, 64)),)
