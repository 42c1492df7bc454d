"""Two cores, no processes: kernels release the interpreter's lock."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

CORES = os.cpu_count() or 1


def in_chunks(work: Callable[[int, int], None], size: int, *, smallest: int = 1) -> None:
    """Call ``work(begin, end)`` over 0..size, in as many threads as there are cores."""
    workers = max(1, min(CORES, size // max(1, smallest)))
    if workers == 1:
        if size:
            work(0, size)
        return
    pieces = 4 * workers if size >= 16 * workers else workers
    edges = [size * i // pieces for i in range(pieces + 1)]
    with ThreadPoolExecutor(workers) as pool:
        for done in [pool.submit(work, a, b) for a, b in pairwise(edges)]:
            done.result()
