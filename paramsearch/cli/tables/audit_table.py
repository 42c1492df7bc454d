"""``paramsearch audit-table``: every file of a table, proved again."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import BrokenExecutor, Future, as_completed
from contextlib import closing
from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Annotated, get_args

import typer

from accounting.base.enclosure import counted
from accounting.base.errors import InvalidConfiguration, InvalidParameter
from accounting.base.progress import Progress
from accounting.base.strict_json import read_text
from accounting.base.validation import one_of, whole
from accounting.model.proof_types import Tier
from paramsearch.cli import options
from paramsearch.cli.exit_codes import ExitCode
from paramsearch.cli.output import Fact, print_json, progress, show

if TYPE_CHECKING:
    from paramsearch.filling.worker import AuditResult
    from paramsearch.tables.cell import Cell
    from paramsearch.tables.index import Row
    from paramsearch.tables.lookup import Table

_TOLERANCE = 0.02
"""A problem may cost this much more than a harder one, relative to the latter."""
_SHOWN = 10
"""Number of files that are not certified and are shown."""


def audit_table(
    table: options.TableFolder = None,
    sample: Annotated[
        int | None, typer.Option(help="Audit only this many files, chosen at random.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the sample.")] = 0,
    tier: options.Tier = "fast",
    as_json: options.AsJson = False,
) -> None:
    """Prove the files of a table again, and check that no problem costs more than a harder one.

    Exit code 1 if a claim is violated or a certificate is false; else 2 if a file cannot be read,
    is rejected or differs from the index; else 3 if one is undecided.
    """
    from paramsearch.tables.index import FILES
    from paramsearch.tables.lookup import Table

    one_of("tier", tier, get_args(Tier))
    opened = Table.open(table)
    rows = sorted(opened.rows, key=lambda row: (-row.max_value, row.file))
    if not rows:
        raise InvalidParameter(f"the table {opened.path} is empty; `paramsearch table` fills it")
    known = {row.file for row in rows}
    present = {f"{FILES}/{path.name}" for path in (opened.path / FILES).glob("*.json")}
    unknown = sorted(present - known)
    if sample is not None:
        whole("sample", sample, least=1)
        rows = random.Random(seed).sample(rows, min(sample, len(rows)))
    begun = time.monotonic()
    with progress("audit-table") as say:
        verdicts = list(_verdicts(opened, rows, tier, say))
    expensive = [
        f"{cell.name} / {other.name}" for cell, other in costing_more(opened.rows, _TOLERANCE)
    ]
    counts = Counter(verdict.verdict for verdict in verdicts)
    bad = [verdict for verdict in verdicts if verdict.verdict != "certified"]
    if as_json:
        print_json(
            {
                "files": len(rows),
                "verdicts": counts,
                "not_certified": [asdict(verdict) for verdict in bad],
                "dearer_than_a_harder_problem": expensive,
                "not_in_the_index": unknown,
            }
        )
    else:
        show(_facts(opened, counts, bad, expensive, time.monotonic() - begun))
        if unknown:
            are = "is" if len(unknown) == 1 else "are"
            some = f"{counted(len(unknown), 'file')} {are} not in the index, such as {unknown[0]}"
            show([("note", f"{some}; `paramsearch table` makes a new index", "yellow")])
    if counts["violated"] or counts["misstated"]:
        raise typer.Exit(ExitCode.VIOLATED)
    if counts["changed"] or counts["rejected"]:  # nothing is known to be false
        raise typer.Exit(ExitCode.BAD_INPUT)
    if counts["undecided"]:
        raise typer.Exit(ExitCode.UNDECIDED)


def _verdicts(table: Table, rows: list[Row], tier: Tier, say: Progress) -> Iterator[AuditResult]:
    """Yield the verdicts in the order in which the proofs end."""
    from paramsearch.filling.pools import LocalPool
    from paramsearch.filling.worker import AuditJob, AuditResult, run_audit

    with closing(LocalPool()) as pool:
        jobs: dict[Future[AuditResult], str] = {}
        for row in rows:
            try:
                text = read_text(table.path / row.file)
            except InvalidConfiguration as error:
                yield AuditResult(row.file, "changed", str(error))
                continue
            jobs[pool.submit(run_audit, AuditJob(row, text, tier))] = row.file
        for done, job in enumerate(as_completed(jobs), 1):
            try:
                verdict = job.result()
            except BrokenExecutor:
                why = "a process was killed; audit it again"
                verdict = AuditResult(jobs[job], "undecided", why)
            say(f"{done} of {len(jobs)}, {verdict.name}: {verdict.verdict}")
            yield verdict


def _facts(
    table: Table, counts: Counter[str], bad: list[AuditResult], expensive: list[str], seconds: float
) -> Iterator[Fact]:
    total = counts.total()
    style = "bold red" if bad else "bold green"
    yield "certified", f"{counts['certified']:,} of {counted(total, 'file')} audited", style
    for verdict in bad[:_SHOWN]:
        yield verdict.verdict, f"{verdict.name}: {verdict.because}", "red"
    known = f"the {counted(len(table.rows), 'file')} in the index"
    more = f"over {_TOLERANCE:.0%} more than a harder one"
    if expensive:
        yield "expensive", f"{len(expensive):,} of {known} at a cost {more}: {expensive[0]}"
    else:
        yield "monotone", f"no problem of {known} costs {more}"
    yield "time", f"{seconds:.1f} s"
    yield "folder", str(table.path)


def costing_more(rows: tuple[Row, ...], tolerance: float) -> Iterator[tuple[Cell, Cell]]:
    """Yield problems that cost more than a harder one, by more than the relative ``tolerance``."""
    from paramsearch.tables.cell import Cell, harder_neighbors

    cost = {
        Cell(**{known.name: getattr(row, known.name) for known in fields(Cell)}): row.cost(
            row.objective
        )
        for row in rows
    }
    for cell, other in harder_neighbors(cost):
        if cost[cell] > cost[other] * (1 + tolerance):
            yield cell, other
