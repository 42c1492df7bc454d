"""The folder of a table, which any number of runs may share.

``files/NAME.json``   certified parameter files, each complete or absent: what is there is done.
``index.parquet``     made from the files, again and again.
``journal.jsonl``     one line for each job that ended: its time, or why it failed.
``lock``              bytes of it are locked by the runs that work on a cell; the system unlocks
                      them when a run ends, however it ends.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
from contextlib import suppress
from dataclasses import astuple, dataclass, field
from pathlib import Path
from typing import Any

from accounting import strict_json
from accounting.errors import InvalidConfiguration, InvalidParameter
from paramsearch.auditor import consistent
from paramsearch.parameter_file import ParameterFile, from_json, load, save
from paramsearch.tables import index
from paramsearch.tables.grid import Cell, Grid
from paramsearch.tables.index import Row

INDEX, FILES = "index.parquet", "files"


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
        self._mend_journal()
        self._read_journal()
        self.scan()

    def close(self) -> None:
        os.close(self._lock)  # and with it all claims

    # cells

    def claim(self, cell: Cell) -> bool:
        """Whether this run may work on the cell: no other one does."""
        try:
            fcntl.lockf(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, _place(cell))
        except OSError:
            return False
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
        """Take note of all files that are new or changed."""
        for path in sorted((self.path / FILES).glob("*.json")):
            self._look(path)

    def look(self, cell: Cell) -> Row | None:
        """The row of a cell, if it is done, by whomever."""
        path = self.file(cell)
        return self._look(path) if path.exists() else None

    def _look(self, path: Path) -> Row:
        status = path.stat()
        version = status.st_mtime_ns, status.st_size
        if self._seen.get(path.stem) != version:
            self.rows[path.stem] = self._row(path.stem, load(path))
            self._seen[path.stem] = version
            self.failures.pop(path.stem, None)
        return self.rows[path.stem]

    def _row(self, name: str, file: ParameterFile) -> Row:
        cell = Cell.of(file)
        problem = file.problem
        usual = (problem.releases, problem.honest, file.dimension) == (1, 1.0, 1)
        if file.certificate is None or not usual or cell.name != name:
            raise InvalidConfiguration(
                f"{self.path / FILES / name}.json is no certified file for {name}; take it away"
            )
        return index.row_of(
            file,
            name=f"{FILES}/{name}.json",
            fraction=cell.central_fraction,
            seconds=self._seconds.get(file.sha256),
        )

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
        self._write({"cell": cell.name, "seconds": seconds, "sha256": file.sha256, "start": start})
        return better

    def fail(self, cell: Cell, reason: str, *, start: str | None) -> None:
        self._write({"cell": cell.name, "failure": reason, "start": start})

    def write_index(self) -> None:
        """One row for each file and number of users."""
        self.scan()
        rows = sorted(self.rows.values(), key=lambda row: astuple(row)[:4])
        index.write(self.path / INDEX, [row.for_users(n) for row in rows for n in self.grid.n])

    # the journal

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
            with suppress(ValueError):  # the end of a run that was killed
                self._note(json.loads(line))

    def _write(self, entry: dict[str, Any]) -> None:
        line = json.dumps(entry).encode() + b"\n"
        with self._journal.open("ab", buffering=0) as journal:
            journal.write(line)
            os.fsync(journal.fileno())
        self._read_journal()

    def _note(self, entry: dict[str, Any]) -> None:
        cell, start = entry["cell"], entry.get("start")
        if start is not None:
            self.tried.add((cell, start))
        if "failure" in entry:
            if cell not in self.rows:
                self.failures[cell] = entry["failure"]
            return
        self.failures.pop(cell, None)
        self._seconds[entry["sha256"]] = entry["seconds"]


def _place(cell: Cell) -> int:
    """A byte of the lock file for each cell."""
    return int.from_bytes(hashlib.sha256(cell.name.encode()).digest()[:7], "big")
