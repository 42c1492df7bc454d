"""The jobs of a worker: a search or an audit, which need no disk and no other worker."""

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
from paramsearch.request import Request
from paramsearch.search.budget import never
from paramsearch.tables.index import Row

Item = TypeVar("Item")
Result = TypeVar("Result")
_ONE_AT_A_TIME = threading.Lock()
"""The precision of ball arithmetic is global to the process, and a Dask worker may have several
threads."""

_stop: Callable[[], bool] = never
"""Whether searches are to end, and to certify what they have."""


def stop_searches_when(condition: Callable[[], bool]) -> None:
    """End the searches of this process, now and later, once the condition is true."""
    global _stop  # noqa: PLW0603 - a property of the process
    _stop = condition


@dataclass(frozen=True)
class SearchJob:
    """A problem, and the text of the parameter file to start from, if there is one."""

    request: Request
    start: str | None = None


@dataclass(frozen=True)
class SearchResult:
    """The text of a certified parameter file, or why there is none.

    The provenance of a file also says if its search was cut short.
    """

    text: str | None
    failure: str | None
    seconds: float
    cut_short: bool = False


def run_search(job: SearchJob) -> SearchResult:
    """Search for a file; an error is part of the result."""
    return _alone(_search, job)


def _alone(work: Callable[[Item], Result], item: Item) -> Result:
    """Do the work on one core, one job at a time in this process."""
    with _ONE_AT_A_TIME:
        use_cores(1)
        try:
            return work(item)
        finally:
            use_cores(None)


def _search(job: SearchJob) -> SearchResult:
    begun = time.perf_counter()
    text, failure, cut_short = None, None, False
    try:
        if job.start is None:
            made = generate(job.request, stop=_stop)
        else:
            start = _file(job.start)
            request = replace(job.request, settings={**job.request.settings, "start": start.sha256})
            made = generate(request, resume=start, refine_only=True, stop=_stop)
        text, cut_short = dumps(made.file), made.interrupted
    except (AccountingError, MemoryError) as error:
        failure = _because(error)
    return SearchResult(text, failure, time.perf_counter() - begun, cut_short)


@dataclass(frozen=True)
class AuditJob:
    """A row of the index, the text of its parameter file, and the proof to use."""

    row: Row
    text: str
    tier: Tier


@dataclass(frozen=True)
class AuditResult:
    """The result of an audit: ``name`` is the file, ``because`` the reason, and ``verdict`` that of
    the audit, or "changed" for a file that cannot be read or is not what the index describes."""

    name: str
    verdict: str
    because: str


def run_audit(job: AuditJob) -> AuditResult:
    """Audit a file, trusting nothing in it."""
    return _alone(_audit, job)


def _audit(job: AuditJob) -> AuditResult:
    name = job.row.file
    try:
        file = _file(job.text)
        if not job.row.describes(file):
            return AuditResult(name, "changed", "it is not what the index says")
        found = audit(file, tier=job.tier, explain=False)  # the verdict alone
    except InvalidConfiguration as error:
        return AuditResult(name, "changed", _because(error))
    except AccountingError as error:
        return AuditResult(name, "undecided", _because(error))
    return AuditResult(name, found.verdict, found.reason)


def _file(text: str) -> ParameterFile:
    return from_json(strict_json.parse(text, source="the file"), source="the file")


def _because(error: BaseException) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())
