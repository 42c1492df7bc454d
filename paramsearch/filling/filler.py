"""The run that fills a table: a search for every cell in the order of the grid, then repairs.

If a cell is harder than another one in eps, delta or max_value, and yet cheaper, the other one is a
poor local optimum: its search is repeated, starting from the file of the cheaper cell.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import (
    FIRST_COMPLETED,
    BrokenExecutor,
    CancelledError,
    Future,
    as_completed,
    wait,
)
from contextlib import suppress
from dataclasses import dataclass, field, replace

from accounting.base.errors import AccountingError, Undecided
from accounting.base.progress import Progress, silent
from paramsearch.filling.folder import Folder
from paramsearch.filling.grid import Grid
from paramsearch.filling.pools import GONE, Pool
from paramsearch.filling.worker import SearchJob, SearchResult, run_search
from paramsearch.tables.cell import Cell, harder_neighbors

TOLERANCE = 0.002
"""Largest relative excess over a harder cell's cost that is not repaired; rule of thumb."""
_REPORTED = 0.02
"""Largest relative excess over a harder cell's cost that the summary does not report."""
_ROUNDS = 4
"""Largest number of rounds of repairs; rule of thumb."""
_POLL = 0.5
"""Longest wait for a job to end, in seconds, before the folder is looked at again."""
_PATIENCE = 30.0
"""Seconds without the end of a job after which the reason is reported."""
_SAVE = 20.0
"""Seconds between two versions of the index."""
_FROM_SCRATCH = 6.0
"""Time of a search from scratch relative to one that starts from a file; rule of thumb."""


@dataclass(frozen=True)
class Task:
    """The search for a cell, starting from another one; a repair replaces an existing file.

    ``text`` and ``sha256`` are those of the file to start from, once that is decided.
    """

    cell: Cell
    start: Cell | None
    repair: bool = False
    text: str | None = field(default=None, repr=False)
    sha256: str | None = None


@dataclass(frozen=True)
class Event:
    """The end of one job, with the numbers of cells so far and an estimate of the time left."""

    task: Task
    done: int
    failed: int
    total: int
    seconds_left: float | None
    note: str


@dataclass
class Summary:
    """The result of a run, and the state of the whole table; its attributes are keys of the
    command's JSON."""

    cells: int
    done: int = 0
    cut_short: int = 0
    """Number of files with the best noise of a search that an interrupt ended."""
    made: int = 0
    repaired: int = 0
    failures: dict[str, str] = field(default_factory=dict)
    violations: list[str] = field(default_factory=list)
    interrupted: bool = False


def violations(folder: Folder, tolerance: float) -> list[Task]:
    """List repairs of all cells that cost more than a harder one, which the search is to start
    from."""
    cost = {
        cell: row.cost(cell.objective)
        for cell in folder.grid.cells
        if folder.done(cell) and (row := folder.row(cell)) is not None
    }
    cheapest: dict[Cell, Cell] = {}
    for cell, other in harder_neighbors(cost):
        if cost[other] < cost[cheapest.setdefault(cell, other)]:
            cheapest[cell] = other
    return [
        Task(cell, other, repair=True)
        for cell, other in cheapest.items()
        if cost[cell] > cost[other] * (1 + tolerance)
    ]


class Filler:
    """One run that fills the table in a folder."""

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
        self.running: dict[Future[SearchResult], Task] = {}
        self.suspects: list[Task] = []
        """Tasks that were in the pool when a worker died; each is run alone, to find the one that
        killed it."""
        self.deaths = Counter[Cell]()
        """How often a worker died while a cell was alone in the pool."""
        self.times = _TimeEstimate()
        self.saved = self.active = time.monotonic()

    def run(self) -> Summary:
        """Fill the table.

        After an interrupt everything that is finished is on disk, and so is the best of every
        search that was running, certified; the next run repeats those searches from the beginning,
        so that the finished table is the same.  A second interrupt gives them up.
        """
        summary, folder = self.summary, self.folder
        try:
            self._run_tasks([Task(cell, self.grid.parent(cell)) for cell in self.grid.cells])
            for _ in range(_ROUNDS):
                # the files to start from are read first, so that the order does not matter
                repairs = [self._with_start(task) for task in violations(folder, TOLERANCE)]
                repairs = [task for task in repairs if not self._finished(task)]
                if not repairs:
                    break
                self._run_tasks(repairs)
        except KeyboardInterrupt:
            summary.interrupted = True
            with suppress(KeyboardInterrupt):
                self._let_searches_end()
        except BaseException:
            with suppress(Exception):  # the first error is the one to report
                folder.write_index()
            raise
        folder.write_index()
        names = {cell.name for cell in self.grid.cells}
        summary.done = sum(map(folder.done, self.grid.cells))
        summary.cut_short = len(names & folder.cut_short)
        summary.failures = {name: folder.failures[name] for name in names & folder.failures.keys()}
        summary.violations = [task.cell.name for task in violations(folder, _REPORTED)]
        return summary

    def _let_searches_end(self) -> None:
        """Keep what the running searches have; whether they failed is for the next run to say."""
        self.folder.write_index()  # the next signal may leave no time for it
        if not self.running or not self.pool.stop():
            return
        self.progress(
            "interrupted: the best of what is being searched for is certified now; interrupt again "
            "to give it up"
        )
        for future in as_completed(list(self.running)):
            task = self.running.pop(future)
            with suppress(Exception):  # the worker died
                result = future.result()
                if result.text is not None:
                    self._end(task, result)

    def _with_start(self, task: Task) -> Task:
        """The task with the file to start from, if there is one."""
        row = None if task.start is None else self.folder.row(task.start)
        if row is None or task.text is not None:
            return task
        text = (self.folder.path / row.file).read_text("utf-8")
        return replace(task, text=text, sha256=row.sha256)

    def _run_tasks(self, tasks: list[Task]) -> None:
        """Run every task whose cell is not finished, each after the one it starts from."""
        while True:
            busy = {task.cell for task in (*self.running.values(), *self.suspects)}
            waiting = [t for t in tasks if t.cell not in busy and not self._finished(t)]
            if not waiting and not busy:
                return
            if self.suspects and not self.running:
                self._submit(self.suspects[-1])
            room = 0 if self.suspects else self.pool.slots() - len(self.running)
            for task in waiting:
                if room <= 0:
                    break
                if self._ready(task) and self.folder.claim(task.cell):
                    if self._finished(task):  # by another run, just now
                        self.folder.release(task.cell)
                        continue
                    self._submit(task)
                    room -= 1
            self._collect()

    def _finished(self, task: Task) -> bool:
        folder = self.folder
        if task.repair:
            return (task.cell.name, task.sha256) in folder.tried
        return task.cell.name in folder.failures or folder.done(task.cell)

    def _ready(self, task: Task) -> bool:
        before = [] if task.start is None else [task.start]
        if task.cell.objective == "bits" and "messages" in self.grid.objective:
            before.append(task.cell.for_messages)  # which may serve for both
        return all(cell.name in self.folder.failures or self.folder.done(cell) for cell in before)

    def _submit(self, task: Task) -> None:
        task = self._with_start(task)
        job = SearchJob(self.grid.request(task.cell), task.text)
        try:
            self.running[self.pool.submit(run_search, job)] = task
        except BrokenExecutor:  # a worker died while it was idle, or just now
            self._after_death([])

    def _collect(self) -> None:
        """Process the jobs that end within a moment."""
        self._report_trouble()
        if not self.running:
            time.sleep(_POLL)  # another run has locked the remaining cells
            return
        done, _ = wait(self.running, timeout=_POLL, return_when=FIRST_COMPLETED)
        broken = []
        for future in done:
            task = self.running.pop(future)
            try:
                result = future.result()
            except BrokenExecutor:
                broken.append(task)
                continue
            except CancelledError:
                raise Undecided(GONE) from None
            except Exception as error:  # the cell has failed, not the run
                result = SearchResult(None, f"{type(error).__name__}: {error}", 0.0)
            self._end(task, result)
        if broken:
            self._after_death(broken)
        if done and time.monotonic() > self.saved + _SAVE:
            self.folder.write_index()
            self.saved = time.monotonic()

    def _report_trouble(self) -> None:
        """Report why no job has ended for a while, if the reason is known."""
        now = time.monotonic()
        if now < self.active + _PATIENCE:
            return
        trouble = self.pool.trouble()
        if trouble is None and not self.running:
            trouble = "another run is working on the remaining problems; waiting for it"
        if trouble is not None:
            self.progress(trouble)
        self.active = now

    def _after_death(self, tasks: list[Task]) -> None:
        """Renew the pool after a worker died; a task that kills a worker alone twice has failed."""
        tasks += self.running.values()
        self.running.clear()
        self.pool.renew()
        alone = len(tasks) == 1
        self.deaths.update(task.cell for task in tasks if alone)
        if alone and self.deaths[tasks[0].cell] > 1:
            reason = "the process that worked on it was killed; was there too little memory?"
            self._end(tasks[0], SearchResult(None, reason, 0.0))
        else:
            self.suspects += [task for task in tasks if task not in self.suspects]

    def _end(self, task: Task, result: SearchResult) -> None:
        cell, folder = task.cell, self.folder
        self.suspects = [other for other in self.suspects if other.cell != cell]
        self.active = time.monotonic()
        try:
            note = self._store(task, result)
        except AccountingError as error:
            note = f"the worker's result is refused: {error}"
            folder.record_failure(cell, note, start=task.sha256)
        folder.release(cell)
        cells = self.grid.cells
        failed = sum(cell.name in folder.failures for cell in cells)
        undone = [
            Task(cell, self.grid.parent(cell))
            for cell in cells
            if cell.name not in folder.failures and not folder.known(cell)
        ]
        done = len(cells) - len(undone) - failed
        left = self.times.left(undone, self.pool.slots())
        self.on_event(Event(task, done, failed, len(cells), left, note))

    def _store(self, task: Task, result: SearchResult) -> str:
        """Record a result in the folder, and return it in words."""
        cell, folder, seconds = task.cell, self.folder, result.seconds
        if result.text is None:
            reason = result.failure or "the reason is unknown"
            folder.record_failure(cell, reason, start=task.sha256)
            return reason
        better = folder.store(cell, result.text, seconds=seconds, start=task.sha256)
        if result.cut_short:
            return "the search was cut short; " + ("its best is kept" if better else "not kept")
        self.times.add(task, seconds)
        self.summary.made += not task.repair
        self.summary.repaired += task.repair and better
        note = f"{folder.rows[cell.name].noise_messages:,.1f} noise messages, {seconds:.1f} s"
        return ("repaired: " if better else "no better: ") + note if task.repair else note


class _TimeEstimate:
    """Predicts the time left from the searches so far; it grows about like max_value^1.7."""

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
    return float((task.cell.max_value + 8) ** 1.7 * (_FROM_SCRATCH if task.start is None else 1))
