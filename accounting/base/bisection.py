"""Bisection: halve an interval until the point is known where a condition begins to hold."""

import math
from collections.abc import Callable
from typing import TypeVar

Number = TypeVar("Number", int, float)


def arithmetic_mean(low: float, high: float) -> float:
    return (low + high) / 2


def geometric_mean(low: float, high: float) -> float:
    return math.sqrt(low * high)


def bisection(
    holds: Callable[[Number], bool],
    low: Number,
    high: Number,
    *,
    mean: Callable[[Number, Number], Number],
    narrow: Callable[[Number, Number], bool] = lambda low, high: False,
    halvings: int = 10_000,
) -> tuple[Number, Number]:
    """Move ``high`` down where ``holds`` is true and ``low`` up where it is false, until the
    interval is ``narrow`` or was halved a given number of times. The given ends are not tested.

    >>> bisection(lambda x: x * x >= 50.0, 0.0, 64.0, mean=arithmetic_mean, halvings=6)
    (7.0, 8.0)
    """
    for _ in range(halvings):
        if narrow(low, high):
            break
        middle = mean(low, high)
        low, high = (low, middle) if holds(middle) else (middle, high)
    return low, high


def first_integer(holds: Callable[[int], bool], low: int, high: int) -> int:
    """Find the least integer above ``low`` for which a monotone condition holds; it does at
    ``high``.

    >>> first_integer(lambda x: x * x >= 50, 0, 64)
    8
    """

    def middle(low: int, high: int) -> int:
        return (low + high) // 2

    return bisection(holds, low, high, mean=middle, narrow=lambda low, high: high - low <= 1)[1]
