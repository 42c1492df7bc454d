"""The folder of a table, which any number of runs may share.

``files/NAME.json``   certified parameter files, each complete or absent: a cell with one is done,
                      unless an interrupt ended its search, or it was made for another version of
                      the table.  Such a file serves, and says so in its provenance; the next run
                      searches again, as if it were absent.
``index.parquet``     rebuilt from the files from time to time.
``state.sqlite``      one row for each job that ended, with its time or the reason of its failure.
``lock``              a run locks one byte of it for each cell it works on; the operating system
                      unlocks them when the run ends for whatever reason, which a row in a database
                      would not survive.

Folders of earlier versions have ``journal.jsonl`` in the place of the database, which takes it in.
"""

from __future__ import annotations

import errno
import hashlib
import json
import math
import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from accounting.base import strict_json
from accounting.base.errors import AccountingError, InvalidConfiguration, InvalidParameter
from paramsearch.filling.grid import Grid
from paramsearch.parameters.assembly import consistent
from paramsearch.parameters.parameter_file import ParameterFile, from_json, load, save
from paramsearch.tables import index
from paramsearch.tables.cell import Cell
from paramsearch.tables.index import FILES, INDEX, Row

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]  # a module where there is one

_ENDED = """
CREATE TABLE IF NOT EXISTS ended (
    id INTEGER PRIMARY KEY,
    cell TEXT NOT NULL,  -- the name of the cell
    start TEXT,          -- sha256 of the file from which the search started
    failure TEXT,        -- why there is no file; null if there is one
    sha256 TEXT,         -- of the file that was made
    seconds REAL         -- that this took
)
"""
"""The jobs that ended, in their order."""
_COLUMNS = "cell, start, failure, sha256, seconds"
_INSERT = f"INSERT INTO ended ({_COLUMNS}) VALUES (?, ?, ?, ?, ?)"
_SELECT = f"SELECT id, {_COLUMNS} FROM ended WHERE id > ? ORDER BY id"
_BUSY = 30.0
"""Seconds to wait while another run writes to the database."""
_STALE = 3600
"""Age in seconds from which on a temporary file is certainly not being written any more."""


@dataclass
class Folder:
    """A table that is being filled; the keys of ``rows`` and ``failures`` are names of cells."""

    path: Path
    grid: Grid
    rows: dict[str, Row] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)
    tried: set[tuple[str, str]] = field(default_factory=set)
    """Names of cells, each with the sha256 of a file from which a search for it has started."""

    def __post_init__(self) -> None:
        if fcntl is None:
            raise InvalidParameter(
                "this system has no locks on parts of a file (fcntl), with which the processes "
                "that fill a table agree who does what: fill tables on Linux or macOS; every other "
                "command works here"
            )
        try:
            (self.path / FILES).mkdir(parents=True, exist_ok=True)
            self._lock = os.open(self.path / "lock", os.O_RDWR | os.O_CREAT, 0o666)
        except OSError as error:
            raise InvalidParameter(f"--output {self.path}: {error.strerror}") from error
        with self._database() as database:
            database.execute(_ENDED)
        self._take_in_journal()
        self._versions: dict[str, tuple[int, int]] = {}
        self._seconds: dict[str, float] = {}
        with suppress(InvalidConfiguration):  # it will be rebuilt
            for row in index.read(self.path / INDEX):
                if row.seconds is not None:
                    self._seconds[row.sha256] = row.seconds
        self._rows_read = 0
        self.invalid_files: dict[str, str] = {}
        """Names of files that are not the file of their cell, with the reason."""
        self.cut_short: set[str] = set()
        """Names of cells whose file has the best noise of a search that an interrupt ended."""
        self.outdated: set[str] = set()
        """Names of cells whose file was made for another version of the table."""
        self._remove_partial_files()
        self._read_state()
        self.scan()
        for reason in self.invalid_files.values():
            raise InvalidConfiguration(reason)

    def close(self) -> None:
        os.close(self._lock)  # which releases all claims

    def claim(self, cell: Cell) -> bool:
        """Lock a cell for this run; return whether no other run has locked it."""
        try:
            fcntl.lockf(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, _place(cell))
        except OSError as error:
            if error.errno in (errno.EACCES, errno.EAGAIN):
                return False
            raise InvalidParameter(
                f"--output {self.path}: its file system has no locks ({error.strerror}); use a "
                "folder on a local disk"
            ) from error
        self._read_state()  # another run may have finished the cell just now
        return True

    def release(self, cell: Cell) -> None:
        fcntl.lockf(self._lock, fcntl.LOCK_UN, 1, _place(cell))

    @contextmanager
    def _database(self) -> Iterator[sqlite3.Connection]:
        """Open the database for one transaction; another run may use it in between."""
        try:
            connection = sqlite3.connect(self.path / "state.sqlite", timeout=_BUSY)
            try:
                with connection:  # commits, or rolls back
                    yield connection
            finally:
                connection.close()
        except sqlite3.Error as error:
            raise InvalidParameter(
                f"--output {self.path}: its database state.sqlite cannot be used ({error}); use a "
                "folder on a local disk, or remove that file: only failures and times are lost"
            ) from error

    def file(self, cell: Cell) -> Path:
        return self.path / FILES / f"{cell.name}.json"

    def scan(self) -> None:
        """Update the rows from all files that are new, changed or gone."""
        names = set()
        for path in sorted((self.path / FILES).glob("*.json")):
            names.add(path.stem)
            try:
                self._refresh(path)
            except AccountingError as error:
                self.invalid_files[path.name] = f"{error}; remove the file to have it made again"
        for name in self.rows.keys() - names:
            self._forget(name)

    def row(self, cell: Cell) -> Row | None:
        """Return the row of a cell if it has a file, of this run or another one.

        The file with the fewest messages also serves for the fewest bits if no message is shorter.
        """
        try:
            return self._refresh(self.file(cell))
        except FileNotFoundError:
            self._forget(cell.name)
        if cell.objective == "bits":
            other = self.row(cell.for_messages)
            if other is not None and other.has_shortest_messages:
                return other
        return None

    def done(self, cell: Cell) -> bool:
        """Tell whether this run or another one has finished a cell."""
        row = self.row(cell)
        return row is not None and not self._serves_for_now(Path(row.file).stem)

    def known(self, cell: Cell) -> bool:
        """Tell whether a cell was finished when its files were last looked at."""
        names = [cell.name]
        other = self.rows.get(cell.for_messages.name)
        if other is not None and other.has_shortest_messages:
            names.append(cell.for_messages.name)
        return any(name in self.rows and not self._serves_for_now(name) for name in names)

    def _serves_for_now(self, name: str) -> bool:
        return name in self.cut_short or name in self.outdated

    def _forget(self, name: str) -> None:
        self.rows.pop(name, None)
        self._versions.pop(name, None)
        self.cut_short.discard(name)
        self.outdated.discard(name)

    def _refresh(self, path: Path) -> Row:
        status = path.stat()
        version = status.st_mtime_ns, status.st_size
        if self._versions.get(path.stem) != version:
            file = load(path)
            self.rows[path.stem] = self._row(path.stem, file)
            self._versions[path.stem] = version
            self.cut_short.discard(path.stem)
            self.outdated.discard(path.stem)
            if self.grid.version is not None and self.grid.version != index.version_of(file):
                self.outdated.add(path.stem)
            elif _is_cut_short(file):
                self.cut_short.add(path.stem)
            else:
                self.failures.pop(path.stem, None)
        return self.rows[path.stem]

    def _row(self, name: str, file: ParameterFile) -> Row:
        place = f"{FILES}/{name}.json"
        row = index.row_of(file, name=place, seconds=self._seconds.get(file.sha256))
        if row is None:
            raise InvalidConfiguration(f"{self.path / place} is not a certified file for {name}")
        return row

    def store(self, cell: Cell, text: str, *, seconds: float, start: str | None) -> bool:
        """Store a new file unless there is one as cheap; return whether it was stored.

        The result of a search that was cut short never replaces a finished one, and always makes
        way for it, so that the finished table does not depend on interrupts.
        """
        source = f"the file for {cell}"
        file = from_json(strict_json.parse(text, source=source), source=source)
        consistent(file)
        self._seconds[file.sha256] = seconds
        new, old = self._row(cell.name, file), self.row(cell)
        better = old is None or new.cost(cell.objective) < old.cost(cell.objective)
        only_rest = _is_cut_short(file)
        if self._serves_for_now(cell.name):
            better = better or not only_rest
        elif only_rest:
            better = old is None
        if better:
            save(file, self.file(cell))
            self.row(cell)
        if only_rest:
            return better
        self._write(cell.name, start, None, file.sha256, seconds)
        return better

    def record_failure(self, cell: Cell, reason: str, *, start: str | None) -> None:
        """Record that a search failed, for the next run and for others."""
        self._write(cell.name, start, reason, None, None)

    def write_index(self) -> None:
        """Write the index, with one row for each file and number of users."""
        self.scan()
        rows = sorted(
            self.rows.values(),
            key=lambda row: (row.max_value, row.eps, row.delta, row.central_fraction, row.file),
        )
        index.write(self.path / INDEX, [row.for_users(n) for row in rows for n in self.grid.n])

    def _remove_partial_files(self) -> None:
        """Remove temporary files that a killed run has left."""
        for path in (self.path / FILES).glob("tmp*"):
            with suppress(OSError):
                if time.time() - path.stat().st_mtime > _STALE:
                    path.unlink()

    def _take_in_journal(self) -> None:
        """Take in the journal of an earlier version, once."""
        journal = self.path / "journal.jsonl"
        if not journal.exists():
            return
        keys = ("cell", "start", "failure", "sha256", "seconds")
        rows = []
        for line in journal.read_bytes().splitlines():
            with suppress(ValueError, RecursionError, AttributeError):  # a partial line
                rows.append(tuple(json.loads(line).get(key) for key in keys))
        with self._database() as database:
            database.executemany(_INSERT, [row for row in rows if _is_entry(row)])
        journal.unlink(missing_ok=True)  # another run may have taken it in as well

    def _read_state(self) -> None:
        """Read what this run and others have written since the last time."""
        with self._database() as database:
            found = database.execute(_SELECT, (self._rows_read,)).fetchall()
        for number, *row in found:
            self._rows_read = number
            if not _is_entry(tuple(row)):  # nothing that a run has written
                continue
            cell, start, failure, sha256, seconds = row
            if start is not None:
                self.tried.add((cell, start))
            if failure is None:
                self.failures.pop(cell, None)
            elif cell not in self.rows or self._serves_for_now(cell):
                self.failures[cell] = failure
            if sha256 is not None and seconds is not None:
                self._seconds[sha256] = seconds

    def _write(
        self,
        cell: str,
        start: str | None,
        failure: str | None,
        sha256: str | None,
        seconds: float | None,
    ) -> None:
        with self._database() as database:
            database.execute(_INSERT, (cell, start, failure, sha256, seconds))
        self._read_state()


def _is_entry(row: tuple[object, ...]) -> bool:
    """Tell whether these are the columns of a job that ended."""
    cell, *texts, seconds = row
    times = seconds is None or (isinstance(seconds, float) and math.isfinite(seconds))
    return times and isinstance(cell, str) and all(isinstance(t, str | None) for t in texts)


def _is_cut_short(file: ParameterFile) -> bool:
    return file.provenance.settings.get("ended_by") == "interrupt"


def _place(cell: Cell) -> int:
    """The byte of the lock file that stands for a cell."""
    return int.from_bytes(hashlib.sha256(cell.name.encode()).digest()[:7], "big")
