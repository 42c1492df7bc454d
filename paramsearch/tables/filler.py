"""Filling a table: cells in an order in which they start each other, then repairs.

A cell that is harder than another one in eps, delta or max_value, and cheaper, shows that the other
one is a poor local optimum: that is searched for again from the cheaper one's file.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, CancelledError, Future, wait
from contextlib import suppress
from dataclasses import dataclass, field, replace

from accounting.base.errors import AccountingError, Undecided
from accounting.base.progress import Progress, silent
from paramsearch.tables.folder import Folder
from paramsearch.tables.grid import Cell, Grid, harder
from paramsearch.tables.pools import GONE, Pool
from paramsearch.tables.worker import Job, Outcome, solve

TOLERANCE = 0.002
"""Relative excess over a harder cell's cost that is worth a repair."""
_ROUNDS = 4
_POLL = 0.5
_PATIENCE = 30.0
"""Seconds without an event after which a reason is looked for."""
_SAVE = 20.0
"""Seconds between two versions of the index."""


@dataclass(frozen=True)
class Task:
    """A cell, and the one it starts from; a repair replaces a file that is there.

    ``text`` and ``sha256`` are the file to start from, once that is decided.
    """

    cell: Cell
    start: Cell | None
    repair: bool = False
    text: str | None = field(default=None, repr=False)
    sha256: str | None = None


@dataclass(frozen=True)
class Event:
    """One job ended."""

    task: Task
    done: int
    failed: int
    total: int
    seconds_left: float | None
    note: str


@dataclass
class Summary:
    """What a run did, and what there is in all."""

    cells: int
    done: int = 0
    made: int = 0
    repaired: int = 0
    failures: dict[str, str] = field(default_factory=dict)
    violations: list[str] = field(default_factory=list)
    otherwise: int = 0
    """Files with another objective than the grid's."""
    interrupted: bool = False


def violations(folder: Folder, tolerance: float) -> list[Task]:
    """Where a cell costs more than a harder one, from which it should start."""
    price = {
        cell: folder.price(folder.rows[cell.name])
        for cell in folder.grid.cells
        if cell.name in folder.rows
    }
    cheapest: dict[Cell, Cell] = {}
    for cell, other in harder(price):
        if price[other] < price[cheapest.setdefault(cell, other)]:
            cheapest[cell] = other
    return [
        Task(cell, other, repair=True)
        for cell, other in cheapest.items()
        if price[cell] > price[other] * (1 + tolerance)
    ]


class Filling:
    """One run over the grid of a folder."""

    def __init__(
        self,
        folder: Folder,
        pool: Pool,
        *,
        retry: bool = False,
        on_event: Callable[[Event], None] = lambda _: None,
        progress: Progress = silent,
    ) -> None:
        self.folder, self.pool, self.on_event, self.progress = folder, pool, on_event, progress
        self.grid: Grid = folder.grid
        if retry:
            folder.failures.clear()
        self.summary = Summary(len(self.grid.cells))
        self.running: dict[Future[Outcome], Task] = {}
        self.suspects: list[Task] = []
        """In the pool when a worker died; they run alone, so that the guilty one is known."""
        self.deaths = Counter[Cell]()
        """Of workers, with no other job in the pool."""
        self.pace = _Pace()
        self.saved = self.active = time.monotonic()

    def run(self) -> Summary:
        """All of it; an interrupt ends it with everything finished on disk."""
        summary, folder = self.summary, self.folder
        try:
            self._do([Task(cell, self.grid.parent(cell)) for cell in self.grid.cells])
            for _ in range(_ROUNDS):
                # what a round starts from is decided before it, so that no order matters
                repairs = [self._started(task) for task in violations(folder, TOLERANCE)]
                repairs = [task for task in repairs if not self._settled(task)]
                if not repairs:
                    break
                self._do(repairs)
        except KeyboardInterrupt:
            summary.interrupted = True
        except BaseException:
            with suppress(Exception):  # what went wrong first is what counts
                folder.write_index()
            raise
        folder.write_index()
        names = {cell.name for cell in self.grid.cells}
        summary.done = len(names & folder.rows.keys())
        summary.failures = {name: folder.failures[name] for name in names & folder.failures.keys()}
        summary.otherwise = len(names & folder.otherwise)
        summary.violations = [task.cell.name for task in violations(folder, 0.02)]
        return summary

    def _started(self, task: Task) -> Task:
        """With the file to start from, if there is one."""
        if task.start is None or task.text is not None or self.folder.look(task.start) is None:
            return task
        text = self.folder.file(task.start).read_text("utf-8")
        return replace(task, text=text, sha256=self.folder.rows[task.start.name].sha256)

    def _do(self, tasks: list[Task]) -> None:
        """Every task whose cell is not done, each after the one it starts from."""
        while True:
            busy = {task.cell for task in (*self.running.values(), *self.suspects)}
            waiting = [t for t in tasks if t.cell not in busy and not self._settled(t)]
            if not waiting and not busy:
                return
            if self.suspects and not self.running:
                self._submit(self.suspects[-1])
            room = 0 if self.suspects else self.pool.slots() - len(self.running)
            for task in waiting:
                if room <= 0:
                    break
                if self._ready(task) and self.folder.claim(task.cell):
                    if self._settled(task):  # by another run, between two looks
                        self.folder.release(task.cell)
                        continue
                    self._submit(task)
                    room -= 1
            self._collect()

    def _settled(self, task: Task) -> bool:
        folder = self.folder
        if task.repair:
            return (task.cell.name, task.sha256) in folder.tried
        return task.cell.name in folder.failures or folder.look(task.cell) is not None

    def _ready(self, task: Task) -> bool:
        start = task.start
        return (
            start is None
            or start.name in self.folder.failures
            or self.folder.look(start) is not None
        )

    def _submit(self, task: Task) -> None:
        task = self._started(task)
        job = Job(self.grid.request(task.cell), task.text)
        try:
            self.running[self.pool.submit(solve, job)] = task
        except BrokenExecutor:  # a worker died that had nothing to do, or just now
            self._broken([])

    def _collect(self) -> None:
        """What has ended within a moment."""
        self._mind()
        if not self.running:
            time.sleep(_POLL)  # another run has the cells that are left
            return
        done, _ = wait(self.running, timeout=_POLL, return_when=FIRST_COMPLETED)
        broken = []
        for future in done:
            task = self.running.pop(future)
            try:
                outcome = future.result()
            except BrokenExecutor:
                broken.append(task)
                continue
            except CancelledError:
                raise Undecided(GONE) from None
            except Exception as error:  # of the pool or of ours: the cell has failed, not the run
                outcome = Outcome(None, f"{type(error).__name__}: {error}", 0.0)
            self._end(task, outcome)
        if broken:
            self._broken(broken)
        if done and time.monotonic() > self.saved + _SAVE:
            self.folder.write_index()
            self.saved = time.monotonic()

    def _mind(self) -> None:
        """Say why nothing happens."""
        now = time.monotonic()
        if now < self.active + _PATIENCE:
            return
        trouble = self.pool.trouble()
        if trouble is None and not self.running:
            trouble = "another run works on the problems that are left; waiting for it"
        if trouble is not None:
            self.progress(trouble)
        self.active = now

    def _broken(self, tasks: list[Task]) -> None:
        """A worker died: whose fault was it?  One that dies alone with a job twice tells."""
        tasks += self.running.values()
        self.running.clear()
        self.pool.renew()
        alone = len(tasks) == 1
        self.deaths.update(task.cell for task in tasks if alone)
        if alone and self.deaths[tasks[0].cell] > 1:
            reason = "the process that worked on it was killed; was there too little memory?"
            self._end(tasks[0], Outcome(None, reason, 0.0))
        else:
            self.suspects += [task for task in tasks if task not in self.suspects]

    def _end(self, task: Task, outcome: Outcome) -> None:
        cell, folder = task.cell, self.folder
        self.suspects = [other for other in self.suspects if other.cell != cell]
        self.active = time.monotonic()
        try:
            note = self._kept(task, outcome)
        except AccountingError as error:
            note = f"what the worker sent is refused: {error}"
            folder.fail(cell, note, start=task.sha256)
        folder.release(cell)
        cells = self.grid.cells
        failed = sum(cell.name in folder.failures for cell in cells)
        undone = [
            Task(cell, self.grid.parent(cell))
            for cell in cells
            if cell.name not in folder.rows and cell.name not in folder.failures
        ]
        done = len(cells) - len(undone) - failed
        left = self.pace.left(undone, self.pool.slots())
        self.on_event(Event(task, done, failed, len(cells), left, note))

    def _kept(self, task: Task, outcome: Outcome) -> str:
        """What came out of it, in words, after it is in the folder."""
        cell, folder, seconds = task.cell, self.folder, outcome.seconds
        if outcome.text is None:
            reason = outcome.failure or "no reason is known"
            folder.fail(cell, reason, start=task.sha256)
            return reason
        better = folder.succeed(cell, outcome.text, seconds=seconds, start=task.sha256)
        self.pace.add(task, seconds)
        self.summary.made += not task.repair
        self.summary.repaired += task.repair and better
        note = f"{folder.rows[cell.name].noise_messages:,.1f} noise messages, {seconds:.1f} s"
        return ("repaired: " if better else "no better: ") + note if task.repair else note


class _Pace:
    """How long the rest will take, from what was done: cost grows about like max_value^1.7."""

    def __init__(self) -> None:
        self.seconds = self.weight = 0.0

    def add(self, task: Task, seconds: float) -> None:
        self.seconds += seconds
        self.weight += _weight(task)

    def left(self, tasks: list[Task], workers: int) -> float | None:
        if not self.weight:
            return None
        return self.seconds / self.weight * sum(map(_weight, tasks)) / workers


def _weight(task: Task) -> float:
    return float((task.cell.max_value + 8) ** 1.7 * (6 if task.start is None else 1))
