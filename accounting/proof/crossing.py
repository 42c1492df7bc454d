"""A search for the point where a falling function that is known only by bounds crosses a level."""

from __future__ import annotations

import math
from collections.abc import Callable

from accounting.base.deadline import OutOfTime
from accounting.base.enclosure import Enclosure

_NEXT_TO_IT = 0.3
"""How far from the estimated crossing a trial lies, as a share of the gap: if the estimate is good,
two trials, one on either side, are enough."""
_MARGIN = 0.05
"""Least distance of a trial from the ends of the interval, as a share of it."""
_FIRST_STEP = 0.1
"""Size of the first step to the other side of the level, relative above 1 and absolute below."""
_SMALLEST = 1e-300
"""Smaller values are taken for this one, which has a logarithm."""


def crossing(
    bounds: Callable[[float], Enclosure],
    level: float,
    *,
    near: float,
    largest: float,
    gap: float,
) -> Enclosure | None:
    """Enclose the point where a falling function of x >= 0 reaches a level.

    Args:
        bounds: Bounds of the function at x; each call may take long.
        level: A positive number.
        near: Where to begin.
        largest: The largest x that matters.
        gap: Width of the enclosure, relative above 1 and absolute below.  Where the bounds are far
            apart, it is the accuracy of either end.

    Returns:
        The enclosure: at its upper end the upper bound is at most the level, and at its lower end,
        unless that is 0, the lower bound exceeds it.  None if no such upper end was found.

    Raises:
        OutOfTime: If the bounds ran out of time before such an upper end was found; later, the
            enclosure is what is known by then.

    >>> found = crossing(lambda x: Enclosure(2**-x, 2**-x), 1e-6, near=1.0, largest=500.0, gap=1e-3)
    >>> found.lower < math.log2(1e6) <= found.upper <= found.lower + 0.02
    True
    """
    known: dict[float, Enclosure] = {}

    def ends(value: Callable[[Enclosure], float]) -> tuple[float, float]:
        search = _Search(level, near=near, largest=largest, gap=gap)
        for x, found in known.items():
            search.add(x, value(found))
        while (trial := search.next_trial()) is not None:
            known[trial] = bounds(trial)
            search.add(trial, value(known[trial]))
        return search.low, search.high

    try:
        _, high = ends(lambda found: found.upper)
        low, _ = ends(lambda found: found.lower) if high < math.inf else (0.0, high)
    except OutOfTime:
        high = min((x for x, found in known.items() if found.upper <= level), default=math.inf)
        low = max((x for x, found in known.items() if found.lower > level), default=0.0)
        if high == math.inf:
            raise
    return None if high == math.inf else Enclosure(low, high)


class _Search:
    """The interval in which a falling function crosses the level: by secants of its logarithm, and
    by halves where these are slow."""

    def __init__(self, level: float, *, near: float, largest: float, gap: float) -> None:
        self.level, self.near, self.largest, self.gap = level, near, largest, gap
        self.low, self.high = 0.0, math.inf
        self._logs: dict[float, float] = {}
        self._step = _FIRST_STEP * max(1.0, near)
        self._widths = [math.inf]

    def add(self, x: float, value: float) -> None:
        """Add the bounds at x."""
        self._logs[x] = math.log(max(value, _SMALLEST) / self.level)
        if value > self.level:
            self.low = max(self.low, x)
        else:
            self.high = min(self.high, x)

    def next_trial(self) -> float | None:
        """Return where to evaluate next; None once the interval is narrow, or leaves the range."""
        low, high = self.low, self.high
        if high - low <= self.gap * max(1.0, low) or (high == math.inf and low >= self.largest):
            return None
        if not self._logs:
            return self.near
        if low not in self._logs or high == math.inf:
            return self._outwards()
        self._widths.append(high - low)
        if len(self._widths) > 2 and self._widths[-1] > self._widths[-3] / 2:
            self._widths = [math.inf]
            return (low + high) / 2
        root, beside = self._secant(low, high), _NEXT_TO_IT * self.gap * max(1.0, low)
        trial = root - beside if root - low > high - root else root + beside
        margin = _MARGIN * (high - low)
        return min(max(trial, low + margin), high - margin)

    def _secant(self, a: float, b: float) -> float:
        left, right = self._logs[a], self._logs[b]
        return a + (b - a) * left / (left - right) if left > right else (a + b) / 2

    def _outwards(self) -> float:
        """Return a point beyond everything known, on the side where the level must be."""
        upwards, self._step = self.high == math.inf, 2 * self._step
        *_, before, last = (-math.inf, *sorted(self._logs, reverse=not upwards))
        far = last + self._step if upwards else max(0.0, last - self._step)
        if math.isinf(before) or self._logs[before] == self._logs[last]:
            return min(far, self.largest) if upwards else far
        root, beside = self._secant_beyond(before, last), _NEXT_TO_IT * self.gap * max(1.0, last)
        if upwards:
            return min(max(root + beside, last + beside), far, self.largest)
        return max(min(root - beside, last - beside), far)

    def _secant_beyond(self, a: float, b: float) -> float:
        return b - self._logs[b] * (b - a) / (self._logs[b] - self._logs[a])
