"""The working precision of ball arithmetic, which python-flint keeps once for the whole process.

A ball is right at any precision, but it is only as small as the precision allows, and threads that
set it one after the other would leave each other's behind.  So a thread that works with balls has
the setting to itself: others wait.  They lose nothing, since python-flint holds the interpreter's
lock; who wants to prove several things at once takes processes.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from flint import ctx

_turn = threading.RLock()


@contextmanager
def precision(bits: int) -> Iterator[None]:
    """Work with this many bits, alone among the threads; the setting before is restored."""
    with _turn:
        before = ctx.prec
        ctx.prec = bits
        try:
            yield
        finally:
            ctx.prec = before


def _forget() -> None:
    """In a forked process the thread that had the turn may be missing."""
    global _turn  # noqa: PLW0603 - a property of the process
    _turn = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
