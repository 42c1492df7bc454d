"""Independent proofs on all cores, in processes: python-flint holds the interpreter lock."""

from __future__ import annotations

import math
import multiprocessing
import signal
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Any, TypeVar, cast

from accounting.base.deadline import check_time, limited, seconds_left
from accounting.base.errors import Undecided
from accounting.base.threads import can_fork, cores

Item = TypeVar("Item")
Result = TypeVar("Result")

_WORTHWHILE = 0.2
"""Seconds of work after which starting processes pays off; a rule of thumb."""
_task: Callable[[int], Any] | None = None
"""What a forked worker does for the item of this index: items need not be picklable."""


def _ignore_interrupts() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends its workers
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # that is how it does so


def _run_all(indices: Sequence[int]) -> list[Any]:
    assert _task is not None
    return [_task(index) for index in indices]


def in_processes(
    task: Callable[[Item], Result],
    items: Sequence[Item],
    report: Callable[[int], None] = lambda _: None,
) -> list[Result]:
    """``task`` of every item, in order; ``report`` is called now and then with how many are done.

    The first items run in this process, which is enough for quick ones.  Workers are forked, so
    they see the task, the items and everything these refer to without copying; results are
    pickled.  If the system cannot fork, or there is only one core, everything runs in this process.
    """
    global _task  # noqa: PLW0603 - forked workers inherit it
    workers = cores()
    alone = workers < 2 or not can_fork()
    until = time.monotonic() + (math.inf if alone else _WORTHWHILE)
    first: list[Result] = []
    for item in items:
        if time.monotonic() > until and len(items) > len(first) + 1:
            break
        first.append(task(item))
        report(len(first))
    rest = range(len(first), len(items))
    if not rest:
        return first
    _task = lambda index: task(items[index])  # noqa: E731 - it is not called here
    others = set(multiprocessing.active_children())
    try:
        context = multiprocessing.get_context("fork")
        chunk = max(1, min(256, len(rest) // (8 * workers)))
        with ProcessPoolExecutor(workers, context, initializer=_ignore_interrupts) as pool:
            begins = range(0, len(rest), chunk)
            futures = [pool.submit(_run_all, rest[i : i + chunk]) for i in begins]
            found = first
            try:
                for future in futures:
                    found += future.result()
                    report(len(found))
                return found
            except BaseException:
                # no future is canceled: that would make the pool's own thread fail with a traceback
                for child in set(multiprocessing.active_children()) - others:
                    child.terminate()
                raise
    except BrokenProcessPool as error:
        raise Undecided("a worker process was killed; was there too little memory?") from error
    finally:
        _task = None


def in_a_process(task: Callable[[], int | None]) -> int | None:
    """``task()``, in a process that is killed at the deadline, for tasks that never check it."""
    if not limited() or not can_fork():
        return task()
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe(duplex=False)

    def run() -> None:
        _ignore_interrupts()
        there.send(task())

    child = context.Process(target=run)
    child.start()
    there.close()
    try:
        while not here.poll(seconds_left() + 0.01):
            check_time()
        return cast("int | None", here.recv())
    except EOFError:
        raise Undecided("a worker process was killed; was there too little memory?") from None
    finally:
        here.close()
        child.kill()
        child.join()
