"""Work in threads: order, errors, and how the other tasks end."""

from __future__ import annotations

from threading import Event

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from accounting.base import threads
from accounting.base.arrays import distinct
from accounting.base.deadline import OutOfTime, check_time, unless
from accounting.base.threads import in_chunks, in_threads


@pytest.fixture(autouse=True)
def two_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "cores", lambda: 2)


def test_results_are_in_the_order_of_the_items() -> None:
    assert in_threads(lambda item: item * item, range(50)) == [item**2 for item in range(50)]
    assert in_threads(str, []) == []


def test_chunks_cover_the_range_once() -> None:
    for size in (0, 1, 2, 3, 31, 32, 1000):
        seen = np.zeros(size, int)

        def work(a: int, b: int, seen: np.ndarray = seen) -> None:
            seen[a:b] += 1

        in_chunks(work, size)
        assert seen.tolist() == [1] * size


def test_an_error_ends_the_tasks_that_run() -> None:
    running, ended = Event(), Event()

    def endless() -> None:
        running.set()
        try:
            while True:
                check_time()
        except OutOfTime:
            ended.set()
            raise

    def fail() -> None:
        assert running.wait(10)
        raise ValueError("the first error is the one that is raised")

    for tasks in ([fail, endless], [endless, fail]):
        running.clear()
        ended.clear()
        with pytest.raises(ValueError, match="the first error"):
            in_threads(lambda task: task(), tasks)
        assert ended.is_set()


def test_an_event_ends_calls_inside_of_others() -> None:
    outer, inner = Event(), Event()
    with unless(outer), unless(inner):
        check_time()
        outer.set()
        with pytest.raises(OutOfTime):
            check_time()
    check_time()


@given(st.lists(st.integers(-(2**40), 2**40) | st.integers(-5, 5), max_size=30))
def test_distinct_keys_are_those_of_numpy(keys: list[int]) -> None:
    array = np.array(keys, np.int64)
    found, inverse = distinct(array)
    expected, places = np.unique(array, return_inverse=True)
    assert found.tolist() == expected.tolist()
    assert inverse.tolist() == places.tolist()
