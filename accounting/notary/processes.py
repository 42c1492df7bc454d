"""Independent proofs on all cores, in processes: python-flint holds the interpreter lock."""

from __future__ import annotations

import math
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from typing import Any, TypeVar, cast

from accounting.base.deadline import check_time, limited, seconds_left
from accounting.base.errors import Undecided, required
from accounting.base.threads import can_fork, cores

Item = TypeVar("Item")
Result = TypeVar("Result")

_WORTHWHILE = 0.2
"""Seconds of work after which starting processes pays off; a rule of thumb."""
_LOOK = 0.1
"""Seconds between two looks at the clock while another thread has workers."""
_task: Callable[[int], Any] | None = None
"""In a forked worker, what it does for the item of this index; None in every other process."""
_turn = threading.Lock()
"""Held by the thread that has workers: when it fails, it ends all that were started meanwhile."""


def _new_lock() -> None:
    """In a forked process, the thread that held the lock may be missing."""
    global _turn  # noqa: PLW0603 - a property of the process
    _turn = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_new_lock)


@contextmanager
def _alone() -> Iterator[None]:
    """Wait until no other thread has workers."""
    lock = _turn
    while not lock.acquire(timeout=_LOOK):
        check_time()
    try:
        yield
    finally:
        lock.release()


def _ignore_interrupts() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends its workers
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # that is how it does so


def _begin(task: Callable[[int], Any]) -> None:
    """Tell a new worker its task, which a fork need not pickle."""
    global _task  # noqa: PLW0603 - a property of the worker
    _ignore_interrupts()
    _task = task


def _run_all(indices: Sequence[int]) -> list[Any]:
    task = required(_task, "the task of a worker process")
    return [task(index) for index in indices]


def in_processes(
    task: Callable[[Item], Result],
    items: Sequence[Item],
    report: Callable[[int], None] = lambda _: None,
) -> list[Result]:
    """``task`` of every item, in order; ``report`` is called now and then with how many are done.

    The first items run in this process, which is enough for quick ones.  Workers are forked, so
    they see the task, the items and everything these refer to without copying; results are
    pickled.  If the system cannot fork, or there is only one core, everything runs in this process.
    One thread at a time has workers; the others wait.
    """
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
    try:
        with _alone():
            return first + _in_workers(lambda index: task(items[index]), rest, workers, report)
    except BrokenProcessPool as error:
        raise Undecided("a worker process was killed; was there too little memory?") from error


def _in_workers(
    task: Callable[[int], Result], rest: range, workers: int, report: Callable[[int], None]
) -> list[Result]:
    """``task`` of the last items, in forked processes."""
    others = set(multiprocessing.active_children())
    context = multiprocessing.get_context("fork")
    chunk = max(1, min(256, len(rest) // (8 * workers)))
    found: list[Result] = []
    with ProcessPoolExecutor(workers, context, initializer=_begin, initargs=(task,)) as pool:
        begins = range(0, len(rest), chunk)
        futures = [pool.submit(_run_all, rest[i : i + chunk]) for i in begins]
        try:
            for future in futures:
                found += future.result()
                report(rest.start + len(found))
            return found
        except BaseException:
            # no future is canceled: that would make the pool's own thread fail with a traceback
            for child in set(multiprocessing.active_children()) - others:
                child.terminate()
            raise


def in_a_process(task: Callable[[], int | None]) -> int | None:
    """``task()``, in a process that is killed at the deadline, for tasks that never check it."""
    if not limited() or not can_fork():
        return task()
    with _alone():
        return _in_a_child(task)


def _in_a_child(task: Callable[[], int | None]) -> int | None:
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
