"""Filling a table: cells in an order in which they start each other, then repairs.

A cell that is harder than another one in eps, delta or max_value, and cheaper, shows that the other
one is a poor local optimum: that is searched for again from the cheaper one's file.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, CancelledError, Future, wait
from dataclasses import dataclass, field

from accounting.errors import Undecided
from paramsearch.tables.folder import Folder
from paramsearch.tables.grid import Cell, Grid, harder
from paramsearch.tables.jobs import Job, Outcome, solve
from paramsearch.tables.pools import Pool

TOLERANCE = 0.002
"""Relative excess over a harder cell's cost that is worth a repair."""
_ROUNDS = 4
_POLL = 0.5
_SAVE = 20.0
"""Seconds between two versions of the index."""


@dataclass(frozen=True)
class Task:
    """A cell, and the one it starts from; a repair replaces a file that is there."""

    cell: Cell
    start: Cell | None
    repair: bool = False


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
        report: Callable[[Event], None] = lambda _: None,
    ) -> None:
        self.folder, self.pool, self.report = folder, pool, report
        self.grid: Grid = folder.grid
        if retry:
            folder.failures.clear()
        self.summary = Summary(len(self.grid.cells))
        self.running: dict[Future[Outcome], Task] = {}
        self.suspects: list[Task] = []
        """In the pool when a worker died; they run alone, so that the guilty one is known."""
        self.pace = _Pace()
        self.saved = time.monotonic()

    def run(self) -> Summary:
        """All of it; an interrupt ends it with everything finished on disk."""
        summary, folder = self.summary, self.folder
        try:
            self._do([Task(cell, self.grid.parent(cell)) for cell in self.grid.cells])
            for _ in range(_ROUNDS):
                repairs = [
                    task
                    for task in violations(folder, TOLERANCE)
                    if (task.cell.name, self._sha(task.start)) not in folder.tried
                ]
                if not repairs:
                    break
                self._do(repairs)
        except KeyboardInterrupt:
            summary.interrupted = True
        finally:
            folder.write_index()
        names = {cell.name for cell in self.grid.cells}
        summary.done = len(names & folder.rows.keys())
        summary.failures = {name: folder.failures[name] for name in names & folder.failures.keys()}
        summary.violations = [task.cell.name for task in violations(folder, 0.02)]
        return summary

    def _sha(self, cell: Cell | None) -> str | None:
        row = None if cell is None else self.folder.rows.get(cell.name)
        return None if row is None else row.sha256

    def _do(self, tasks: list[Task]) -> None:
        """Every task whose cell is not done, each after the one it starts from."""
        waiting = tasks
        while waiting or self.running or self.suspects:
            waiting = [task for task in waiting if not self._settled(task)]
            self._submit_suspect()
            room = 0 if self.suspects else self.pool.slots() - len(self.running)
            for task in list(waiting):
                if room <= 0:
                    break
                if self._ready(task) and self.folder.claim(task.cell):
                    waiting.remove(task)
                    if self._settled(task):  # by another run, between two looks
                        self.folder.release(task.cell)
                        continue
                    self._submit(task)
                    room -= 1
            self._collect()

    def _settled(self, task: Task) -> bool:
        folder = self.folder
        if task.repair:
            return (task.cell.name, self._sha(task.start)) in folder.tried
        return task.cell.name in folder.failures or folder.look(task.cell) is not None

    def _ready(self, task: Task) -> bool:
        start = task.start
        return (
            start is None
            or start.name in self.folder.failures
            or self.folder.look(start) is not None
        )

    def _submit(self, task: Task) -> None:
        text = None
        if self._sha(task.start) is not None:
            assert task.start is not None
            text = self.folder.file(task.start).read_text("utf-8")
        job = Job(self.grid.request(task.cell), text)
        self.running[self.pool.submit(solve, job)] = task

    def _submit_suspect(self) -> None:
        if self.suspects and not self.running:
            self._submit(self.suspects[-1])

    def _collect(self) -> None:
        """What has ended within a moment."""
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
                raise Undecided(
                    "the scheduler is gone; what is finished is kept, run it again to go on"
                ) from None
            except Exception as error:  # of the pool or of ours: the cell has failed, not the run
                outcome = Outcome(None, f"{type(error).__name__}: {error}", 0.0)
            self._end(task, outcome)
        if broken:
            self._broken(broken)
        if done and time.monotonic() > self.saved + _SAVE:
            self.folder.write_index()
            self.saved = time.monotonic()

    def _broken(self, tasks: list[Task]) -> None:
        """A worker died: whose fault was it?"""
        tasks += self.running.values()
        self.running.clear()
        self.pool.renew()
        if len(tasks) > 1:
            self.suspects += tasks
            return
        reason = "the process that worked on it was killed; was there too little memory?"
        self._end(tasks[0], Outcome(None, reason, 0.0))

    def _end(self, task: Task, outcome: Outcome) -> None:
        cell, folder = task.cell, self.folder
        if task in self.suspects:
            self.suspects.remove(task)
        start = self._sha(task.start)
        if outcome.text is None:
            note = outcome.failure or ""
            folder.fail(cell, note, start=start)
        else:
            seconds = outcome.seconds
            better = folder.succeed(cell, outcome.text, seconds=seconds, start=start)
            self.pace.add(task, seconds)
            self.summary.made += not task.repair
            self.summary.repaired += task.repair and better
            note = f"{folder.rows[cell.name].noise_messages:,.1f} noise messages, {seconds:.1f} s"
            note = ("repaired: " if better else "no better: ") + note if task.repair else note
        folder.release(cell)
        total = len(self.grid.cells)
        undone = [
            Task(cell, self.grid.parent(cell))
            for cell in self.grid.cells
            if cell.name not in folder.rows and cell.name not in folder.failures
        ]
        self.report(
            Event(
                task,
                total - len(undone) - len(folder.failures),
                len(folder.failures),
                total,
                self.pace.left(undone, self.pool.slots()),
                note,
            )
        )


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
