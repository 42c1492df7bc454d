"""``paramsearch table``: certified files for a grid of problems."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict
from pathlib import Path
from textwrap import shorten
from typing import TYPE_CHECKING, Annotated

import typer

from accounting.base.enclosure import counted
from accounting.base.errors import InvalidConfiguration, InvalidParameter
from accounting.base.validation import whole
from paramsearch.cli import options
from paramsearch.cli.exit_codes import ExitCode
from paramsearch.cli.output import Fact, note, print_json, show

if TYPE_CHECKING:
    from paramsearch.filling.filler import Event, Summary
    from paramsearch.filling.folder import Folder
    from paramsearch.filling.pools import Pool


def table(
    grid: Annotated[
        Path, typer.Argument(help="TOML: eps, delta, max_value, central_fraction, n as lists.")
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="The folder of the table.")],
    workers: Annotated[
        int | None, typer.Option(help="Processes on this machine, by default one for each core.")
    ] = None,
    scheduler: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="Run on a Dask cluster, e.g. tcp://host:8786."),
    ] = None,
    retry: Annotated[
        bool, typer.Option("--retry", help="Try again the problems that failed before.")
    ] = False,
    as_json: options.AsJson = False,
) -> None:
    """Make certified parameter files for a grid of problems; run it again to continue or extend it.

    Files are for one release; several runs may share a folder. Ctrl-C ends it, and keeps the best
    of every search in progress as a certified file until the next run has finished that search.
    """
    from paramsearch.filling.filler import Filler
    from paramsearch.filling.folder import Folder
    from paramsearch.filling.grid import Grid
    from paramsearch.filling.pools import DaskPool, LocalPool

    problems = Grid.read(grid)
    if workers is not None:
        if scheduler is not None:
            raise InvalidParameter("--workers is for this machine; leave it out with --scheduler")
        whole("workers", workers, least=1, most=1024)
    begun = time.monotonic()
    pool: Pool = LocalPool(workers) if scheduler is None else DaskPool(scheduler)
    with (
        closing(pool),
        closing(Folder(output, problems)) as folder,
        _progress(folder) as (report, say),
    ):
        summary = Filler(folder, pool, retry=retry, on_event=report, progress=say).run()
        invalid = list(folder.invalid_files.values())
    seconds = time.monotonic() - begun
    if as_json:
        print_json({"table": str(output), "seconds": seconds, **asdict(summary)})
    else:
        show(_facts(summary, output, seconds))
    if invalid:
        raise InvalidConfiguration(invalid[0])
    if summary.interrupted:
        raise typer.Exit(ExitCode.INTERRUPTED)
    if summary.failures:
        raise typer.Exit(ExitCode.UNDECIDED)


def _facts(summary: Summary, output: Path, seconds: float) -> Iterator[Fact]:
    have = "has" if summary.cells == 1 else "have"
    yield (
        "table",
        f"{summary.done:,} of {counted(summary.cells, 'problem')} {have} a certified file: "
        f"{summary.made:,} new, {summary.repaired:,} repaired",
        "bold green" if summary.done == summary.cells else "bold",
    )
    for name, reason in sorted(summary.failures.items())[:5]:
        yield "failed", f"{name}: {reason}", "yellow"
    if summary.failures:
        yield "note", f"{len(summary.failures):,} failed; --retry tries them again", "yellow"
    if summary.violations:
        some = ", ".join(summary.violations[:3])
        yield "note", f"costs over 2% more than a harder problem: {some}", "yellow"
    if summary.cut_short:
        files = counted(summary.cut_short, "file")
        which = f"{files}: certified, but the search was cut short"
        yield "note", f"{which}; the same command repeats it", "yellow"
    if summary.interrupted:
        yield "note", "interrupted: the same command continues from here", "yellow"
    yield "time", f"{seconds:.1f} s"
    yield "folder", str(output)


@contextmanager
def _progress(folder: Folder) -> Iterator[tuple[Callable[[Event], None], Callable[[str], None]]]:
    """Return functions that report an event and a remark: by a bar on a terminal, elsewhere by a
    line for each."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda event: note(_line(event)), note
        return
    columns = (
        TextColumn("table"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.description}"),
    )
    with Progress(*columns, console=console) as bar:
        cells = folder.grid.cells
        done = sum(map(folder.known, cells))
        job = bar.add_task("starting", total=len(cells), completed=done)

        def report(event: Event) -> None:
            bar.update(
                job,
                completed=event.done + event.failed,
                total=event.total,
                description=f"{_left(event)}; {event.task.cell.name}: {shorten(event.note, 60)}",
            )

        yield report, lambda text: bar.console.print(text, markup=False, highlight=False)


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
