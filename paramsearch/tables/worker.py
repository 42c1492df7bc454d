"""What a worker does: one cell, from values to values.  It needs no disk and no other worker."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeVar

from accounting.base import strict_json
from accounting.base.errors import AccountingError, InvalidConfiguration
from accounting.base.threads import use_cores
from accounting.model.proof_types import Tier
from paramsearch.certification.audit import audit
from paramsearch.generation.generate import generate
from paramsearch.parameters.parameter_file import ParameterFile, dumps, from_json
from paramsearch.problem import Request
from paramsearch.tables.index import Row, row_of

Item = TypeVar("Item")
Result = TypeVar("Result")
_ONE_AT_A_TIME = threading.Lock()
"""The precision of ball arithmetic belongs to the process, and a worker may have many threads."""


@dataclass(frozen=True)
class Job:
    """A problem, and the text of the file to start from, if there is one."""

    request: Request
    start: str | None = None


@dataclass(frozen=True)
class Outcome:
    """The text of a certified file, or why there is none."""

    text: str | None
    failure: str | None
    seconds: float


def solve(job: Job) -> Outcome:
    """A search; what is wrong with the problem is an outcome."""
    return _alone(_solve, job)


def _alone(work: Callable[[Item], Result], item: Item) -> Result:
    """With one core, and nothing beside it in this process."""
    with _ONE_AT_A_TIME:
        use_cores(1)
        try:
            return work(item)
        finally:
            use_cores(None)


def _solve(job: Job) -> Outcome:
    begun = time.perf_counter()
    text = failure = None
    try:
        if job.start is None:
            made = generate(job.request)
        else:
            start = _file(job.start)
            settings = {**job.request.settings, "start": start.sha256}
            made = generate(replace(job.request, settings=settings), resume=start, near=True)
        text = dumps(made.file)
    except (AccountingError, MemoryError) as error:
        failure = _because(error)
    return Outcome(text, failure, time.perf_counter() - begun)


@dataclass(frozen=True)
class Check:
    """A row of the index, the text of its file, and how to audit that."""

    row: Row
    text: str
    tier: Tier


@dataclass(frozen=True)
class Verdict:
    """``verdict`` is that of the audit, or "changed" for a file that is not what it was."""

    name: str
    verdict: str
    because: str


def check(job: Check) -> Verdict:
    """An audit that trusts nothing in the file."""
    return _alone(_check, job)


def _check(job: Check) -> Verdict:
    name = job.row.file
    try:
        file = _file(job.text)
        told = row_of(file, name=name)
        if told is None or not job.row.says(told):
            return Verdict(name, "changed", "it is not what the index says")
        found = audit(file, tier=job.tier, explain=False)  # of the claim alone
    except InvalidConfiguration as error:
        return Verdict(name, "changed", _because(error))
    except AccountingError as error:
        return Verdict(name, "undecided", _because(error))
    return Verdict(name, found.verdict, found.reason)


def _file(text: str) -> ParameterFile:
    return from_json(strict_json.parse(text, source="the file"), source="the file")


def _because(error: BaseException) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())
