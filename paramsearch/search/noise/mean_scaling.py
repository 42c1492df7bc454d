"""Scale all noise means by one factor until a bound or estimate of delta meets its goal.

The secant method in the logarithm of the means.  "Excess" is log delta minus its goal, and "slope"
is how much the excess falls per unit of log mean.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from accounting.base.arrays import FloatArray
from accounting.base.errors import TooLarge

TYPICAL_SLOPE = 15.0
"""Slope to begin with; rule of thumb."""
_SLOPES = (1.0, 300.0)
"""Slopes measured outside this range come from rounding or a plateau, and are ignored."""
_SMALLEST_RETREAT = 0.05
"""A step in log mean below this is not to blame for tables that are too large."""


@dataclass(frozen=True)
class ScaledMeans:
    """The result of a scaling: noise, its excess, whether that is close enough, and the slope."""

    x: FloatArray
    excess: float
    close: bool
    slope: float


@dataclass(frozen=True, kw_only=True)
class MeanScaling:
    """A way to scale means.

    Attributes:
        steps: Largest number of evaluations.
        longest_step: Largest change of log mean in one step.
        close: Whether an excess is good enough to stop.
        aim: Excess that each step aims at.
        last_secant: Whether the final evaluation still corrects the slope.
        retreats: Whether to take back two thirds of a step that made the tables too large.
    """

    steps: int
    longest_step: float
    close: Callable[[float], bool]
    aim: float = 0.0
    last_secant: bool = False
    retreats: bool = False

    def run(
        self, x: FloatArray, excess_of: Callable[[FloatArray], float], slope: float = TYPICAL_SLOPE
    ) -> ScaledMeans:
        """Scale the means of ``x`` until ``excess_of`` is close to the goal."""
        close, change = False, 0.0
        excess_before: float | None = None
        for _ in range(self.steps):
            try:
                excess = excess_of(x)
            except TooLarge:
                if not self.retreats or excess_before is None or change < _SMALLEST_RETREAT:
                    raise
                x = shifted_means(x, -(change * 2 / 3))
                change /= 3
                continue
            close = self.close(excess)
            if excess_before is not None and (self.last_secant or not close):
                measured = (excess_before - excess) / change
                slope = measured if _SLOPES[0] < measured < _SLOPES[1] else slope
            if close:
                break
            change = self._change(excess, slope)
            excess_before = excess
            x = shifted_means(x, change)
        return ScaledMeans(x, excess, close, slope)

    def extrapolated(self, found: ScaledMeans) -> FloatArray:
        """Return the noise after one more step, without evaluating it."""
        return shifted_means(found.x, self._change(found.excess, found.slope))

    def _change(self, excess: float, slope: float) -> float:
        return min(max((excess - self.aim) / slope, -self.longest_step), self.longest_step)


def shifted_means(x: FloatArray, change: float) -> FloatArray:
    """Return the noise with ``change`` added to every log mean, and the same r."""
    shifted: FloatArray = x + np.array([[change], [0.0]])
    return shifted
