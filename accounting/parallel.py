"""How many cores to use, and threads over a range: kernels release the interpreter's lock."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

_allowed: int | None = None


def cores() -> int:
    """What this process may use: what the system gives it, or less."""
    given = (
        len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    )
    return given if _allowed is None else min(given, _allowed)


def use_cores(count: int | None) -> None:
    """From now on at most so many; for processes that share a machine."""
    global _allowed  # noqa: PLW0603 - a property of the process
    _allowed = count


def in_chunks(work: Callable[[int, int], None], size: int, *, smallest: int = 1) -> None:
    """Call ``work(begin, end)`` over 0..size, in as many threads as there are cores."""
    workers = max(1, min(cores(), size // max(1, smallest)))
    if workers == 1:
        if size:
            work(0, size)
        return
    pieces = 4 * workers if size >= 16 * workers else workers
    edges = [size * i // pieces for i in range(pieces + 1)]
    with ThreadPoolExecutor(workers) as pool:
        for done in [pool.submit(work, a, b) for a, b in pairwise(edges)]:
            done.result()
