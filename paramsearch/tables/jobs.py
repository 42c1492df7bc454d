"""What a worker does: one cell, from values to values.  It needs no disk and no other worker."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, replace

from accounting import AccountingError, strict_json
from accounting.parallel import use_cores
from paramsearch.generation import Request, generate
from paramsearch.parameter_file import dumps, from_json

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
    """The whole of a search with one core; what is wrong with the problem is an outcome."""
    with _ONE_AT_A_TIME:
        use_cores(1)
        begun = time.perf_counter()
        text = failure = None
        try:
            text = _solved(job)
        except (AccountingError, MemoryError) as error:
            failure = " ".join(f"{type(error).__name__}: {error}".split())
        finally:
            use_cores(None)
        return Outcome(text, failure, time.perf_counter() - begun)


def _solved(job: Job) -> str:
    if job.start is None:
        return dumps(generate(job.request).file)
    start = from_json(strict_json.parse(job.start, source="the start"), source="the start")
    settings = {**job.request.settings, "start": start.sha256}
    return dumps(generate(replace(job.request, settings=settings), resume=start, near=True).file)
