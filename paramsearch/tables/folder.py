"""The folder of a table, which any number of runs may share.

``files/NAME.json``   certified parameter files, each complete or absent: what is there is done.
``index.parquet``     made from the files, again and again.
``journal.jsonl``     one line for each job that ended: its time, or why it failed.
``lock``              bytes of it are locked by the runs that work on a cell; the system unlocks
                      them when a run ends, however it ends.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import time
from contextlib import suppress
from dataclasses import astuple, dataclass, field
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from accounting.base import strict_json
from accounting.base.errors import AccountingError, InvalidConfiguration, InvalidParameter
from paramsearch.parameters.assembly import consistent
from paramsearch.parameters.parameter_file import ParameterFile, from_json, load, save
from paramsearch.tables import index
from paramsearch.tables.grid import Cell, Grid
from paramsearch.tables.index import FILES, INDEX, Row

_OLD = 3600
"""Seconds after which nobody is writing to a temporary file any more."""


@dataclass
class Folder:
    """A table that is being made; ``rows`` and ``failures`` are by the name of the cell."""

    path: Path
    grid: Grid
    rows: dict[str, Row] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)
    tried: set[tuple[str, str]] = field(default_factory=set)
    """Cells with the sha256 of a file that did not help."""

    def __post_init__(self) -> None:
        try:
            (self.path / FILES).mkdir(parents=True, exist_ok=True)
            self._lock = os.open(self.path / "lock", os.O_RDWR | os.O_CREAT, 0o666)
        except OSError as error:
            raise InvalidParameter(f"--output {self.path}: {error.strerror}") from error
        self._seen: dict[str, tuple[int, int]] = {}
        self._seconds: dict[str, float] = {}
        with suppress(InvalidConfiguration):  # it is made again
            for row in index.read(self.path / INDEX):
                if row.seconds is not None:
                    self._seconds[row.sha256] = row.seconds
        self._read = 0
        self.strangers: dict[str, str] = {}
        """Files that are not what their names say, with the reason."""
        self.otherwise: set[str] = set()
        """Cells whose file was made with another objective."""
        self._sweep()
        self._mend_journal()
        self._read_journal()
        self.scan()
        for reason in self.strangers.values():
            raise InvalidConfiguration(reason)

    def close(self) -> None:
        os.close(self._lock)  # and with it all claims

    # cells

    def claim(self, cell: Cell) -> bool:
        """Whether this run may work on the cell: no other one does."""
        try:
            fcntl.lockf(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, _place(cell))
        except OSError as error:
            if error.errno in (errno.EACCES, errno.EAGAIN):
                return False
            raise InvalidParameter(
                f"--output {self.path}: its file system has no locks ({error.strerror}); take a "
                "folder on a local disk"
            ) from error
        self._read_journal()  # another run may have ended the cell just now
        return True

    def release(self, cell: Cell) -> None:
        fcntl.lockf(self._lock, fcntl.LOCK_UN, 1, _place(cell))

    @property
    def _journal(self) -> Path:
        return self.path / "journal.jsonl"

    def file(self, cell: Cell) -> Path:
        return self.path / FILES / f"{cell.name}.json"

    def scan(self) -> None:
        """Take note of all files that are new, changed or gone."""
        names = set()
        for path in sorted((self.path / FILES).glob("*.json")):
            names.add(path.stem)
            try:
                self._look(path)
            except AccountingError as error:
                self.strangers[path.name] = f"{error}; take the file away, and it is made again"
        for name in self.rows.keys() - names:
            del self.rows[name], self._seen[name]

    def look(self, cell: Cell) -> Row | None:
        """The row of a cell, if it is done, by whomever."""
        try:
            return self._look(self.file(cell))
        except FileNotFoundError:
            self.rows.pop(cell.name, None)
            self._seen.pop(cell.name, None)
            return None

    def _look(self, path: Path) -> Row:
        status = path.stat()
        version = status.st_mtime_ns, status.st_size
        if self._seen.get(path.stem) != version:
            file = load(path)
            self.rows[path.stem] = self._row(path.stem, file)
            self._seen[path.stem] = version
            if file.provenance.settings.get("objective") != self.grid.objective:
                self.otherwise.add(path.stem)
            self.failures.pop(path.stem, None)
        return self.rows[path.stem]

    def _row(self, name: str, file: ParameterFile) -> Row:
        place = f"{FILES}/{name}.json"
        row = index.row_of(file, name=place, seconds=self._seconds.get(file.sha256))
        if row is None:
            raise InvalidConfiguration(f"{self.path / place} is no certified file for {name}")
        return row

    def price(self, row: Row) -> float:
        """What the search makes small."""
        return row.noise_messages if self.grid.objective == "messages" else row.bits_per_user

    # what is written

    def succeed(self, cell: Cell, text: str, *, seconds: float, start: str | None) -> bool:
        """Keep a new file, unless there is one as cheap; whether it was kept."""
        source = f"the file for {cell}"
        file = from_json(strict_json.parse(text, source=source), source=source)
        consistent(file)
        self._seconds[file.sha256] = seconds
        new, old = self._row(cell.name, file), self.look(cell)
        better = old is None or self.price(new) < self.price(old)
        if better:
            save(file, self.file(cell))
            self.look(cell)
        entry = _Entry(cell=cell.name, start=start, sha256=file.sha256, seconds=seconds)
        self._write(entry)
        return better

    def fail(self, cell: Cell, reason: str, *, start: str | None) -> None:
        self._write(_Entry(cell=cell.name, start=start, failure=reason))

    def write_index(self) -> None:
        """One row for each file and number of users."""
        self.scan()
        rows = sorted(self.rows.values(), key=lambda row: astuple(row)[:4])
        index.write(self.path / INDEX, [row.for_users(n) for row in rows for n in self.grid.n])

    # the journal

    def _sweep(self) -> None:
        """Parts of files that a killed run has left."""
        for path in (self.path / FILES).glob("tmp*"):
            with suppress(OSError):
                if time.time() - path.stat().st_mtime > _OLD:
                    path.unlink()

    def _mend_journal(self) -> None:
        """A run that was killed while it wrote leaves a part of a line: end it."""
        with self._journal.open("ab+") as journal:
            if journal.tell():
                journal.seek(-1, os.SEEK_END)
                if journal.read(1) != b"\n":
                    journal.write(b"\n")

    def _read_journal(self) -> None:
        """What was written since the last time, by whomever."""
        with self._journal.open("rb") as journal:
            journal.seek(self._read)
            lines, _, rest = journal.read().rpartition(b"\n")
            self._read = journal.tell() - len(rest)
        for line in lines.splitlines():
            with suppress(ValueError, RecursionError):  # damaged, as by a run that was killed
                self._note(_Entry.model_validate_json(line))

    def _write(self, entry: _Entry) -> None:
        line = entry.model_dump_json(exclude_none=True).encode() + b"\n"
        with self._journal.open("ab", buffering=0) as journal:
            journal.write(line)
            os.fsync(journal.fileno())
        self._read_journal()

    def _note(self, entry: _Entry) -> None:
        if entry.start is not None:
            self.tried.add((entry.cell, entry.start))
        if entry.failure is None:
            self.failures.pop(entry.cell, None)
        elif entry.cell not in self.rows:
            self.failures[entry.cell] = entry.failure
        if entry.sha256 is not None and entry.seconds is not None:
            self._seconds[entry.sha256] = entry.seconds


class _Entry(BaseModel):
    """A line of the journal."""

    model_config = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False)

    cell: str
    start: str | None = None
    failure: str | None = None
    sha256: str | None = None
    seconds: float | None = None


def _place(cell: Cell) -> int:
    """A byte of the lock file for each cell."""
    return int.from_bytes(hashlib.sha256(cell.name.encode()).digest()[:7], "big")
