"""``paramsearch table``, for people and for machines."""

from __future__ import annotations

import json
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict
from pathlib import Path

from accounting.base.errors import InvalidConfiguration, InvalidParameter
from accounting.base.validation import whole
from paramsearch.cli.output import Fact, show
from paramsearch.tables.filler import Event, Filling, Summary
from paramsearch.tables.folder import Folder
from paramsearch.tables.grid import Grid
from paramsearch.tables.pools import DaskPool, LocalPool, Pool

_INTERRUPTED, _UNDECIDED = 130, 3


def run_table(
    grid: Path,
    *,
    output: Path,
    workers: int | None,
    scheduler: str | None,
    retry: bool,
    as_json: bool,
) -> int:
    """Fill a table; what is finished stays, whatever happens."""
    problems = Grid.read(grid)
    if workers is not None:
        if scheduler is not None:
            raise InvalidParameter("--workers is for this machine; a scheduler knows its own")
        whole("workers", workers, least=1, most=1024)
    begun = time.monotonic()
    pool: Pool = LocalPool(workers) if scheduler is None else DaskPool(scheduler)
    with (
        _ended_like_an_interrupt(),
        closing(pool),
        closing(Folder(output, problems)) as folder,
        _progress(folder) as (report, say),
    ):
        summary = Filling(folder, pool, retry=retry, on_event=report, progress=say).run()
        strangers = list(folder.strangers.values())
    seconds = time.monotonic() - begun
    if as_json:
        print(json.dumps({"table": str(output), "seconds": seconds, **asdict(summary)}))
    else:
        show(_facts(summary, output, seconds))
    if strangers:
        raise InvalidConfiguration(strangers[0])
    if summary.interrupted:
        return _INTERRUPTED
    return _UNDECIDED if summary.failures else 0


@contextmanager
def _ended_like_an_interrupt() -> Iterator[None]:
    """What batch systems and closed terminals send ends a run in order, too."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    usual = {kind: signal.signal(kind, interrupt) for kind in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for kind, handler in usual.items():
            signal.signal(kind, handler)


def _facts(summary: Summary, output: Path, seconds: float) -> Iterator[Fact]:
    yield (
        "table",
        f"{summary.done:,} of {summary.cells:,} problems have a certified file: {summary.made:,} "
        f"new, {summary.repaired:,} repaired",
        "bold green" if summary.done == summary.cells else "bold",
    )
    for name, reason in sorted(summary.failures.items())[:5]:
        yield "failed", f"{name}: {reason}", "yellow"
    if summary.failures:
        yield "note", f"{len(summary.failures):,} failed; --retry tries them again", "yellow"
    if summary.violations:
        some = ", ".join(summary.violations[:3])
        yield "note", f"dearer than a harder problem by more than 2%: {some}", "yellow"
    if summary.otherwise:
        which = f"{summary.otherwise:,} files were made with another objective and are kept"
        yield "note", f"{which}; take them away, or take another folder", "yellow"
    if summary.interrupted:
        yield "note", "interrupted: the same command goes on from here", "yellow"
    yield "time", f"{seconds:.1f} s"
    yield "folder", str(output)


@contextmanager
def _progress(folder: Folder) -> Iterator[tuple[Callable[[Event], None], Callable[[str], None]]]:
    """Reports and remarks: a bar with the time left on a terminal, elsewhere a line for each."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda event: _log(_line(event)), _log
        return
    columns = (
        TextColumn("table"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.description}"),
    )
    with Progress(*columns, console=console) as bar:
        cells = folder.grid.cells
        done = sum(cell.name in folder.rows for cell in cells)
        job = bar.add_task("starting", total=len(cells), completed=done)

        def report(event: Event) -> None:
            bar.update(
                job,
                completed=event.done + event.failed,
                total=event.total,
                description=f"{_left(event)}; {event.task.cell.name}: {event.note:.60}",
            )

        yield report, bar.console.print


def _log(line: str) -> None:
    with suppress(OSError):  # nobody reads it any more, which is no reason to end
        print(line, file=sys.stderr, flush=True)


def _line(event: Event) -> str:
    return f"{event.done + event.failed}/{event.total} {event.task.cell.name}: {event.note}"


def _left(event: Event) -> str:
    seconds = event.seconds_left
    if seconds is None:
        return "time left unknown"
    if seconds < 90:
        return f"about {seconds:.0f} s left"
    return (
        f"about {seconds / 60:.0f} min left"
        if seconds < 5400
        else f"about {seconds / 3600:.1f} h left"
    )
