"""The number of cores to use, and work in threads: kernels release the interpreter lock."""

from __future__ import annotations

import multiprocessing
import os
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextvars import copy_context
from itertools import pairwise
from threading import Event
from typing import TypeVar

from accounting.base.deadline import check_time, limited, unless

_PIECES = 256
"""Pieces into which work is divided if there is a deadline, which is checked before each piece."""
_allowed: int | None = None
Item = TypeVar("Item")
Result = TypeVar("Result")


def cores() -> int:
    """Return the number of cores that this process may use."""
    given = (
        len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    )
    return given if _allowed is None else min(given, _allowed)


def can_fork() -> bool:
    """Tell whether processes can be forked: Windows has no such processes, and on macOS they may
    crash in libraries of the system."""
    return "fork" in multiprocessing.get_all_start_methods() and sys.platform != "darwin"


def use_cores(count: int | None) -> None:
    """Use at most this many cores from now on, for processes that share a machine."""
    global _allowed  # noqa: PLW0603 - a property of the process
    _allowed = count


def in_threads(
    task: Callable[[Item], Result], items: Sequence[Item], workers: int | None = None
) -> list[Result]:
    """Return ``task`` of every item, in order, in as many threads as cores.

    An error or an interrupt ends the other tasks when they next check the time.
    """
    failed = Event()

    def timed(item: Item) -> Result:
        with unless(failed):
            check_time()
            return task(item)

    workers = min(cores() if workers is None else workers, len(items))
    if workers < 2:
        return [timed(item) for item in items]
    with ThreadPoolExecutor(workers) as pool:
        jobs = [pool.submit(copy_context().run, timed, item) for item in items]
        try:
            finished, _ = wait(jobs, return_when=FIRST_EXCEPTION)
            for job in finished:
                job.result()
            return [job.result() for job in jobs]
        except BaseException:
            failed.set()
            pool.shutdown(cancel_futures=True)
            raise


def in_chunks(work: Callable[[int, int], None], size: int, *, smallest: int = 1) -> None:
    """Call ``work(begin, end)`` for pieces that cover 0..size, in as many threads as cores."""
    most = size // max(1, smallest)
    if most <= 1 and not limited():
        if size:
            work(0, size)
        return
    workers = max(1, min(cores(), most))
    pieces = 4 * workers if size >= 16 * workers > 16 else workers
    if limited():
        pieces = max(pieces, min(_PIECES, most))
    edges = [size * i // pieces for i in range(pieces + 1)]

    in_threads(lambda piece: work(*piece), [(a, b) for a, b in pairwise(edges) if a < b], workers)
