"""A deadline for everything that is called inside a block.

``with until(deadline): ...`` sets it for all calls inside, in this thread and in the threads of
``threads.in_chunks``; ``check_time()`` in a loop raises OutOfTime once it has passed, or once
``with unless(event): ...`` around it has its event.  Deadlines refer to the clock of
``time.monotonic``.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from threading import Event
from typing import ParamSpec, TypeVar, cast

from accounting.base.errors import Undecided
from accounting.base.validation import instance

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


class OutOfTime(Undecided):
    """The deadline has passed."""


_deadline: ContextVar[float] = ContextVar("deadline", default=math.inf)
_events: ContextVar[tuple[Event, ...]] = ContextVar("events", default=())


@contextmanager
def until(deadline: float) -> Iterator[None]:
    """Set the deadline of the calls inside; it cannot be later than a deadline around it."""
    before = _deadline.set(min(deadline, _deadline.get()))
    try:
        yield
    finally:
        _deadline.reset(before)


@contextmanager
def unless(event: Event) -> Iterator[None]:
    """End the calls inside once the event is set."""
    before = _events.set((*_events.get(), event))
    try:
        yield
    finally:
        _events.reset(before)


def check_time() -> None:
    """Raise OutOfTime once the current deadline has passed, or an event ends the current calls."""
    check_deadline(_deadline.get())
    if any(event.is_set() for event in _events.get()):
        raise OutOfTime("something else ended this calculation")


def check_deadline(deadline: float) -> None:
    """Raise OutOfTime once this deadline has passed, whatever the current one is."""
    if time.monotonic() > deadline:
        raise OutOfTime(
            "the budget was used up before every pair had a bound; a larger --budget, or none, "
            "may decide it"
        )


def limited() -> bool:
    """Tell whether there is a deadline."""
    return _deadline.get() < math.inf


def seconds_left() -> float:
    """Return the seconds until the current deadline, at least 0."""
    return max(0.0, _deadline.get() - time.monotonic())


def sets_deadline(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Make the keyword ``deadline`` of a function hold for everything that the function calls."""

    @wraps(function)
    def timed(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
        deadline = kwargs.get("deadline", math.inf)
        instance("deadline", deadline, (int, float), "give a number on the clock time.monotonic")
        with until(cast(float, deadline)):
            return function(*args, **kwargs)

    return timed
