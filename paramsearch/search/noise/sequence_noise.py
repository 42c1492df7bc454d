"""The cheapest noise against any sequence of changes, for one family.

With many releases, fixed sequences say little about adaptive ones.  So the bound of any sequence
itself is lowered: its gradient by differences, and steps as in ``local``.
"""

from __future__ import annotations

import math
import time

import numpy as np

from accounting.base.arrays import FloatArray
from accounting.base.errors import AccountingError
from accounting.composition.any_sequence import rough_upper
from accounting.protocol import Protocol
from paramsearch.search.noise.noise_model import Model
from paramsearch.search.noise.noise_optimizer import Program

_DIFFERENCE = 0.05
"""Of log mean or log r: large next to the noise that grids leave in the bound."""
_RADIUS, _SMALLEST_RADIUS = 0.4, 0.02
_STEPS = 12
_WORTH = 1e-3
"""Relative gain of a step below which the descent ends."""


class _Bound:
    """log of the bound over delta, and how long one takes."""

    def __init__(self, model: Model) -> None:
        self.model, self.seconds = model, 0.0

    def __call__(self, x: FloatArray) -> float:
        begun, target = time.monotonic(), self.model.target
        one = Protocol(self.model.configuration(x)).view_pairs
        found = rough_upper(one, target.problem.eps, target.problem.releases)
        self.seconds = time.monotonic() - begun
        return math.log(found) - math.log(target.problem.delta)

    def scaled(self, x: FloatArray, slope: float) -> FloatArray:
        """All means scaled so that the bound meets delta, about."""
        last: tuple[float, float] | None = None
        for _ in range(8):
            excess = self(x)
            if last is not None:
                seen = (last[0] - excess) / last[1]
                slope = seen if 1 < seen < 300 else slope
            change = min(max(excess / slope, -0.3), 0.3)
            x = x + np.array([[change], [0.0]])
            if abs(excess) < 0.02:
                break
            last = excess, change
        return x

    def gradient(self, x: FloatArray) -> FloatArray:
        here = self(x)
        out = np.empty_like(x)
        for place in np.ndindex(*x.shape):
            moved = x.copy()
            moved[place] += _DIFFERENCE
            out[place] = (self(moved) - here) / _DIFFERENCE
        return out


def descended(model: Model, x: FloatArray, *, deadline: float) -> FloatArray:
    """Noise that meets delta for any sequence, about, for fewer messages.

    No step is begun that would end after the ``deadline``.
    """
    bound, radius = _Bound(model), _RADIUS
    x = bound.scaled(x, 15.0)
    messages = model.messages(x)
    for _ in range(_STEPS):
        if time.monotonic() + bound.seconds * (x.size + 4) > deadline:
            break
        try:
            gradient = bound.gradient(x)
        except AccountingError:
            break
        slope = max(-float(gradient[0].sum()), 2.0)
        cost = np.concatenate([model.size * np.exp(x[0]), np.zeros(x.shape[1])])
        program = Program(
            cost=cost,
            curvature=cost + 0.05 * cost.mean(),
            gradient=gradient.reshape(1, -1),
            room=np.zeros(1),
        )
        gain = 0.0
        while radius > _SMALLEST_RADIUS and gain <= 0:
            step, _ = program.solve(radius)
            moved = bound.scaled(x + step.reshape(x.shape), slope)
            gain = (messages - model.messages(moved)) / messages
            radius = min(_RADIUS, 1.5 * radius) if gain > 0 else radius / 2.5
        if gain > 0:
            x, messages = moved, model.messages(moved)
        if gain < _WORTH:
            break
    return x
