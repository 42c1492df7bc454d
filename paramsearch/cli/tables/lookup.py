"""``paramsearch lookup`` and ``audit-table``, for people and for machines."""

from __future__ import annotations

import json
import random
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import BrokenExecutor, Future, as_completed
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import Any, get_args

from accounting.base.enclosure import at_most, exactly
from accounting.base.errors import InvalidConfiguration, InvalidParameter
from accounting.base.strict_json import read_text
from accounting.base.validation import one_of, whole
from accounting.model.proof_types import Tier
from paramsearch.cli.output import Fact, progress, show
from paramsearch.files import check_writable
from paramsearch.parameters.parameter_file import save
from paramsearch.tables.grid import Cell, harder
from paramsearch.tables.index import FILES, Row
from paramsearch.tables.lookup import Found, Query, Table
from paramsearch.tables.pools import LocalPool
from paramsearch.tables.worker import Check, Verdict, check

_SHOWN = 4
"""Dearer files with less error that are mentioned."""
MONOTONE = 0.02
"""A problem may cost this much more than a harder one."""


def run_lookup(table: Path | None, query: Query, *, output: Path | None, as_json: bool) -> int:
    """The answer on stdout, the file to ``output`` if that is given."""
    if output is not None:
        check_writable(output, "--output")
    found = Table.open(table).lookup(query)
    file = found.file
    if output is not None:
        save(file, output)
    if as_json:
        print(json.dumps(_machine(found, output), allow_nan=False))
    else:
        show(_person(found, output))
    return 0


def _machine(found: Found, output: Path | None) -> dict[str, Any]:
    return {
        "request": asdict(found.query),
        "exact": found.exact,
        "table_file": str(found.table.path / found.row.file),
        "output": None if output is None else str(output),
        "sha256": found.file.sha256,
        "found": {key: value for key, value in asdict(found.row).items() if key != "sha256"},
        "less_error": [asdict(row) for row in found.others],
        "generate": found.command(),
    }


def _person(found: Found, output: Path | None) -> Iterator[Fact]:
    row = found.row
    made = f"({exactly(row.eps)}, {row.delta!r}) for one release of inputs up to {row.max_value:,}"
    yield "certified", made, "bold green"
    yield "request", _distance(found)
    yield "delta", f"at most {at_most(row.delta_upper)} at eps = {exactly(row.eps)}"
    yield (
        "cost",
        f"{row.noise_messages:,.1f} noise messages in all; {row.messages_per_user:.6g} messages "
        f"and {row.bits_per_user:.6g} bits per user (n = {row.n:,})",
    )
    yield "error", f"RMSE {row.rmse:.6g} of the sum"
    for other in found.others[:_SHOWN]:
        yield (
            "less error",
            f"--max-rmse {at_most(other.rmse)}: {other.noise_messages:,.1f} noise messages",
        )
    if not found.exact and (command := found.command()) is not None:
        yield "exactly that", f"{command} -o FILE"
    yield "from", str(found.table.path / row.file)
    if output is None:
        yield "note", "add -o FILE for the parameter file"
    else:
        yield "file", str(output)


def _distance(found: Found) -> str:
    """How far the file is from what was asked for."""
    row, query = found.row, found.query
    parts = []
    if row.eps < query.eps:
        parts.append(f"eps {exactly(row.eps)} for {exactly(query.eps)}")
    if row.delta < query.delta:
        parts.append(f"delta {exactly(row.delta)} for {exactly(query.delta)}")
    if row.max_value > query.max_value:
        parts.append(f"max_value {row.max_value:,} for {query.max_value:,}")
    return "stricter than asked: " + ", ".join(parts) if parts else "exactly what was asked for"


def run_audit_table(
    table: Path | None, *, sample: int | None, seed: int, tier: Tier, as_json: bool
) -> int:
    """Prove every file of a table, or some of them, anew; and check that costs are monotone."""
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
    dear = [f"{cell.name} / {other.name}" for cell, other in dearer(opened.rows, MONOTONE)]
    counts = Counter(verdict.verdict for verdict in verdicts)
    bad = [verdict for verdict in verdicts if verdict.verdict != "certified"]
    if as_json:
        out = {"files": len(rows), "verdicts": counts, "not_certified": [asdict(v) for v in bad]}
        rest = {"dearer_than_a_harder_problem": dear, "not_in_the_index": unknown}
        print(json.dumps({**out, **rest}))
    else:
        show(_verdict_facts(opened, counts, bad, dear, time.monotonic() - begun))
        if unknown:
            some = f"{len(unknown)} files are not in the index, such as {unknown[0]}"
            show([("note", f"{some}; `paramsearch table` makes it anew", "yellow")])
    if counts["violated"] or counts["changed"]:
        return 1
    return 3 if counts["undecided"] else 0


def _verdicts(table: Table, rows: list[Row], tier: Tier, say: Any) -> Iterator[Verdict]:
    with closing(LocalPool()) as pool:
        jobs: dict[Future[Verdict], str] = {}
        for row in rows:
            try:
                text = read_text(table.path / row.file)
            except InvalidConfiguration as error:
                yield Verdict(row.file, "changed", str(error))
                continue
            jobs[pool.submit(check, Check(row, text, tier))] = row.file
        for done, job in enumerate(as_completed(jobs), 1):
            try:
                verdict = job.result()
            except BrokenExecutor:
                verdict = Verdict(jobs[job], "undecided", "a process was killed; run it again")
            say(f"{done} of {len(jobs)}, {verdict.name}: {verdict.verdict}")
            yield verdict


def _verdict_facts(
    table: Table, counts: Counter[str], bad: list[Verdict], dear: list[str], seconds: float
) -> Iterator[Fact]:
    total = counts.total()
    style = "bold red" if bad else "bold green"
    yield "certified", f"{counts['certified']:,} of {total:,} files audited", style
    for verdict in bad[:10]:
        yield verdict.verdict, f"{verdict.name}: {verdict.because}", "red"
    known = f"{len(table.rows):,} files in the index"
    if dear:
        yield "dearer", f"{len(dear)} of the {known} by over 2% than a harder problem: {dear[0]}"
    else:
        yield "monotone", f"no problem of the {known} is dearer by over 2% than a harder one"
    yield "time", f"{seconds:.1f} s"
    yield "folder", str(table.path)


def dearer(rows: tuple[Row, ...], tolerance: float) -> Iterator[tuple[Cell, Cell]]:
    """Problems that cost more than a harder one."""
    cost = {
        Cell(row.max_value, row.eps, row.delta, row.central_fraction): row.noise_messages
        for row in rows
    }
    for cell, other in harder(cost):
        if cost[cell] > cost[other] * (1 + tolerance):
            yield cell, other
