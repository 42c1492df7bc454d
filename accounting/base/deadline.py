"""A time limit that loops look at, wherever they are.

``with until(deadline): ...`` sets it for everything that is called inside, in this thread and in
those of ``parallel.in_chunks``; ``check_time()`` in a loop raises OutOfTime once it has passed.
Deadlines are on the clock of ``time.monotonic``.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from typing import ParamSpec, TypeVar

from accounting.base.errors import Undecided

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


class OutOfTime(Undecided):
    """The time limit has passed."""


_deadline: ContextVar[float] = ContextVar("deadline", default=math.inf)


@contextmanager
def until(deadline: float) -> Iterator[None]:
    """A limit inside another one cannot be later."""
    before = _deadline.set(min(deadline, _deadline.get()))
    try:
        yield
    finally:
        _deadline.reset(before)


def check_time() -> None:
    """Raise OutOfTime once the limit has passed."""
    check_deadline(_deadline.get())


def check_deadline(deadline: float) -> None:
    """Raise OutOfTime once this deadline has passed, whatever the limit around it is."""
    if time.monotonic() > deadline:
        raise OutOfTime("the budget was used up before every pair had a bound")


def limited() -> bool:
    """Whether there is any limit."""
    return _deadline.get() < math.inf


def seconds_left() -> float:
    """Until the limit, not negative."""
    return max(0.0, _deadline.get() - time.monotonic())


def keeps_time(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """The keyword ``deadline`` of this function holds for everything that it calls."""

    @wraps(function)
    def timed(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
        deadline = kwargs.get("deadline", math.inf)
        assert isinstance(deadline, (int, float))
        with until(deadline):
            return function(*args, **kwargs)

    return timed
