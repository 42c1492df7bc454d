"""Workers of the notary: every thread's workers do that thread's task."""

from __future__ import annotations

import multiprocessing
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest

from accounting.base.deadline import OutOfTime, until
from accounting.base.threads import can_fork
from accounting.notary import processes

pytestmark = pytest.mark.skipif(not can_fork(), reason="workers are forked")


@pytest.fixture(autouse=True)
def _workers_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "cores", lambda: 2)
    monkeypatch.setattr(processes, "_WORTHWHILE", -1.0)


def test_two_threads_at_once_get_the_results_of_their_own_tasks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Both know their task before either has workers, as far as the code lets them."""
    both, context = threading.Barrier(2), multiprocessing.get_context

    def together(method: str) -> object:
        with suppress(threading.BrokenBarrierError):
            both.wait(0.5)
        return context(method)

    monkeypatch.setattr(multiprocessing, "get_context", together)

    def times(factor: int) -> list[int]:
        return processes.in_processes(lambda item: factor * item, range(6))

    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(times, [3, 5]))
    assert found == [[3 * item for item in range(6)], [5 * item for item in range(6)]]


def test_a_thread_that_fails_does_not_end_the_workers_of_another() -> None:
    """Its workers began first, and fail while those of the other thread would be at work."""

    def failing(_: int) -> int:
        time.sleep(0.4)
        raise KeyError("the first item fails")

    def slow(item: int) -> int:
        time.sleep(0.05)
        return item

    def fail() -> str:
        with pytest.raises(KeyError):
            processes.in_processes(failing, range(6))
        return "failed"

    with ThreadPoolExecutor(1) as pool:
        other = pool.submit(fail)
        time.sleep(0.2)
        assert processes.in_processes(slow, range(24)) == list(range(24))
        assert other.result() == "failed"


def test_a_thread_that_waits_for_workers_keeps_its_deadline() -> None:
    with processes._alone(), ThreadPoolExecutor(1) as pool:

        def late() -> None:
            with until(0.0), pytest.raises(OutOfTime):
                processes.in_processes(lambda item: item, range(6))

        pool.submit(late).result(10)
