"""How many cores to use, and threads over a range: kernels release the interpreter lock."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from itertools import pairwise

from accounting.base.deadline import check_time, limited

_PIECES = 256
"""Pieces into which work is divided if there is a deadline, which is checked before each piece."""
_allowed: int | None = None


def cores() -> int:
    """Number of cores that this process may use."""
    given = (
        len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    )
    return given if _allowed is None else min(given, _allowed)


def use_cores(count: int | None) -> None:
    """Use at most this many cores from now on, for processes that share a machine."""
    global _allowed  # noqa: PLW0603 - a property of the process
    _allowed = count


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

    def piece(a: int, b: int) -> None:
        check_time()
        work(a, b)

    if workers == 1:
        for a, b in pairwise(edges):
            if a < b:
                piece(a, b)
        return
    with ThreadPoolExecutor(workers) as pool:
        jobs = [pool.submit(copy_context().run, piece, a, b) for a, b in pairwise(edges)]
        try:
            for job in jobs:
                job.result()
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
