"""A local search for the cheapest noise against arbitrary sequences of changes, for one family.

With many releases, fixed sequences say little about adaptive ones.  So the bound for arbitrary
sequences itself is lowered, with a gradient from finite differences and steps as in
``noise_optimizer``.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import suppress

import numpy as np

from accounting.base.arrays import FloatArray
from accounting.base.deadline import OutOfTime, check_time, until
from accounting.base.errors import AccountingError
from accounting.composition.any_sequence import rough_uppers
from accounting.protocol import Protocol
from paramsearch.search.noise.mean_scaling import TYPICAL_SLOPE, MeanScaling
from paramsearch.search.noise.noise_model import NoiseModel
from paramsearch.search.noise.noise_optimizer import SMALLEST_SLOPE, QuadraticProgram

_DIFFERENCE = 0.05
"""Finite difference in log mean or log r; large compared with the error of the bound's grids."""
_LARGEST_RADIUS, _SMALLEST_RADIUS = 0.4, 0.02
"""Trust radii in log mean and log r; rule of thumb."""
_MOST_STEPS = 12
_SMALLEST_GAIN = 1e-3
"""Relative gain of a step below which the descent ends."""
_SCALING = MeanScaling(
    steps=8, longest_step=0.3, close=lambda excess: abs(excess) < 0.02, last_secant=True
)


class _SequenceBound:
    """The function log(bound / delta) of the noise, for arbitrary sequences of every direction."""

    def __init__(self, model: NoiseModel) -> None:
        self.model = model
        self.seconds = 0.0
        """Time that the latest evaluation took."""

    def each(self, x: FloatArray) -> FloatArray:
        check_time()
        begun, problem = time.monotonic(), self.model.target.problem
        protocol = Protocol(self.model.configuration(x), adjacency=problem.adjacency)
        bounds = rough_uppers(protocol.one_release, problem.eps, problem.releases)
        self.seconds = time.monotonic() - begun
        return np.asarray(np.log(bounds) - math.log(problem.delta))

    def excess(self, x: FloatArray) -> float:
        return float(self.each(x).max())

    def scaled(self, x: FloatArray, slope: float) -> FloatArray:
        """Scale all means so that the bound approximately meets delta."""
        found = _SCALING.run(x, self.excess, slope)
        return _SCALING.extrapolated(found) if found.close else found.x

    def gradient(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the excess of every direction, and its gradient."""
        here = self.each(x)
        gradient = np.empty((len(here), *x.shape))
        for place in np.ndindex(*x.shape):
            moved = x.copy()
            moved[place] += _DIFFERENCE
            gradient[:, *place] = (self.each(moved) - here) / _DIFFERENCE
        return here, gradient


def optimize_sequence_noise(model: NoiseModel, x: FloatArray, *, deadline: float) -> FloatArray:
    """Find noise with fewer messages that approximately meets delta for arbitrary sequences.

    No step begins that is expected to end after the ``deadline``; one that does all the same is
    taken back.
    """
    with until(deadline), suppress(OutOfTime):
        for better in _descent(model, x, deadline):
            x = better
    return x


def _descent(model: NoiseModel, x: FloatArray, deadline: float) -> Iterator[FloatArray]:
    """Yield the noise after each step."""
    bound, radius = _SequenceBound(model), _LARGEST_RADIUS
    x = bound.scaled(x, TYPICAL_SLOPE)
    yield x
    messages = model.messages(x)
    for _ in range(_MOST_STEPS):
        if time.monotonic() + bound.seconds * (x.size + 4) > deadline:
            break
        try:
            excess, gradient = bound.gradient(x)
        except AccountingError:
            break
        slope = max(-float(gradient[excess.argmax(), 0].sum()), SMALLEST_SLOPE)
        cost = np.concatenate([model.size * np.exp(x[0]), np.zeros(x.shape[1])])
        program = QuadraticProgram(
            cost=cost,
            curvature=cost + 0.05 * cost.mean(),
            gradient=gradient.reshape(len(excess), -1),
            slack=excess.max() - excess,
        )
        gain = 0.0
        while radius > _SMALLEST_RADIUS and gain <= 0:
            step, _ = program.solve(radius)
            moved = bound.scaled(x + step.reshape(x.shape), slope)
            gain = (messages - model.messages(moved)) / messages
            radius = min(_LARGEST_RADIUS, 1.5 * radius) if gain > 0 else radius / 2.5
        if gain > 0:
            x, messages = moved, model.messages(moved)
            yield x
        if gain < _SMALLEST_GAIN:
            break
