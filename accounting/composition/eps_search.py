"""A search for the smallest eps of a delta whose bounds do not come as close as one likes."""

from __future__ import annotations

import math
from collections.abc import Callable

from accounting.base.bisection import arithmetic_mean, bisection
from accounting.base.enclosure import Enclosure
from accounting.base.errors import Undecided

_LARGEST_EPS = 1e4
"""Largest eps that is tried."""
LARGEST_TRIAL = 1e5
"""The same for releases of several mechanisms."""


def eps_around(
    between: float,
    bounds: Callable[[float], Enclosure],
    delta: float,
    *,
    gap: float,
    low: float,
    high: float | None,
) -> Enclosure:
    """Enclose eps for any sequence, where the bounds at ``between`` contain delta.

    Search upwards from ``between`` for where the upper bound falls to delta, and downwards for
    where the lower bound exceeds it; ``low`` and ``high`` are known ends.
    """
    top = high if high is not None else 2 * between
    while bounds(top).upper > delta:
        if top > _LARGEST_EPS:
            raise Undecided(f"no eps up to {top!r} has delta <= {delta!r}")
        top *= 2

    def narrow(below: float, above: float) -> bool:
        return above - below <= gap * max(above, 1.0) / 4

    _, last = bisection(
        lambda eps: bounds(eps).upper <= delta, between, top, mean=arithmetic_mean, narrow=narrow
    )
    begin, _ = bisection(
        lambda eps: not bounds(eps).lower > delta, low, between, mean=arithmetic_mean, narrow=narrow
    )
    return Enclosure(begin, last)


def first_eps(holds: Callable[[float], bool], near: float) -> float:
    """Find from above where a condition that holds from some eps on begins to hold; infinity if
    nowhere."""
    if holds(0.0):
        return 0.0
    low, high = 0.0, max(near, 0.01)
    while not holds(high):
        if high > LARGEST_TRIAL:
            return math.inf
        low, high = high, 2 * high
    return bisection(holds, low, high, mean=arithmetic_mean, narrow=_narrow)[1]


def last_eps(holds: Callable[[float], bool], near: float) -> float:
    """Find from below where a condition that holds up to some eps ceases to hold."""
    if not holds(0.0):
        return 0.0
    low, high = 0.0, max(near, 0.01)
    while holds(high) and high <= LARGEST_TRIAL:
        low, high = high, 2 * high
    return bisection(lambda eps: not holds(eps), low, high, mean=arithmetic_mean, narrow=_narrow)[0]


def _narrow(low: float, high: float) -> bool:
    return high - low <= 1e-7 * max(high, 1e-3)
