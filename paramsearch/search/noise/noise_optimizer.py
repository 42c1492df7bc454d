"""Stage 2: the cheapest noise for one family, by sequential quadratic programming.

Unknowns are d = change of (log mean, log r) of every atom.  Each step solves

    minimise   sum of size * mean * (d + d^2/2) + curvature of the constraints,
    subject to log delta_i + gradient_i d <= log delta for the pairs near delta,  |d| <= radius,

then all means are scaled so that the worst pair meets delta: every iterate is feasible (by the
estimates).  The curvature of the Lagrangian is a diagonal, from differences of gradients.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from accounting.base.arrays import FloatArray, IntArray
from accounting.base.errors import TooLarge
from paramsearch.search.noise.noise_model import Model

_NEAR = 2.5
"""Pairs enter the program when log delta is at most this far below the target."""
_MOST_PAIRS = 3000
_LARGEST_RADIUS = 0.7
_SMALLEST_RADIUS = 1e-3
_LONGEST = 0.7
"""Of one step of that scaling."""
_CLOSE = 0.02
"""The last scaling is extrapolated from an excess of at most this."""
_ALL_AT_ONCE = 60_000
"""Workloads with more pairs are looked at as a whole only now and then."""
_WATCHED = 30_000


@dataclass(frozen=True)
class Solution:
    """Feasible noise; ``multipliers`` are in messages per unit of log delta of ``pairs``."""

    x: FloatArray
    messages: float
    pairs: IntArray
    multipliers: FloatArray


def minimise(
    model: Model,
    x: FloatArray,
    *,
    tolerance: float = 1e-3,
    steps: int = 60,
    give_up: float = math.inf,
    deadline: float = math.inf,
) -> Solution:
    """From ``x`` to a local optimum, to a relative ``tolerance``.

    Stops early when it will hardly get below ``give_up`` messages.
    """
    return _Descent(model, x).run(tolerance, steps, give_up, deadline)


class _Descent:
    def __init__(self, model: Model, x: FloatArray) -> None:
        self.model = model
        self.watched: IntArray | None = None
        self.slope = 15.0
        self.x, self.excess = self.scaled(x)
        self.messages = model.messages(self.x)
        self.look()
        self.curvature = np.zeros(2 * len(model.size))
        self.radius = 0.5

    def look(self) -> None:
        """Evaluate every pair, and watch those near delta, and those watched before, until the next
        look.  Where some exceed delta, the messages are what repairing that would cost."""
        if self.model.workload.pair_count <= _ALL_AT_ONCE:
            return
        excess = self.model.excess(self.x)
        near = np.argpartition(-excess, _WATCHED)[:_WATCHED]
        near = near[excess[near] > -6.0]
        if self.watched is not None:
            near = np.union1d(near, self.watched[self.excess > -1.5])
        self.watched = np.sort(near)
        self.excess = excess[self.watched]
        missing = max(0.0, float(self.excess.max()))
        self.messages = self.model.messages(self.x + np.array([[missing / self.slope], [0.0]]))

    def scaled(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """All means scaled so that the worst watched pair meets delta; and the excess of each."""
        slope = self.slope
        last: tuple[float, float] | None = None
        for _ in range(16):
            try:
                excess = self.model.excess(x, self.watched)
            except TooLarge:
                if last is None or last[1] < 0.05:
                    raise
                # the step was too large, not the noise that is needed
                x = x - np.array([[last[1] * 2 / 3], [0.0]])
                last = last[0], last[1] / 3
                continue
            worst = float(excess.max())
            if abs(worst) < _CLOSE:
                break
            if last is not None:
                seen = (last[0] - worst) / last[1]
                slope = seen if 1 < seen < 300 else slope
            change = min(max(worst / slope, -_LONGEST), _LONGEST)
            last = worst, change
            x = x + np.array([[change], [0.0]])
        change = min(max(worst / slope, -_LONGEST), _LONGEST)
        return x + np.array([[change], [0.0]]), excess - worst

    def run(self, tolerance: float, steps: int, give_up: float, deadline: float) -> Solution:
        n = len(self.model.size)
        known: tuple[IntArray, FloatArray, FloatArray, FloatArray] | None = None
        small = 0
        for step in range(steps):
            places = np.flatnonzero(self.excess > -_NEAR)
            if len(places) > _MOST_PAIRS:
                places = np.sort(places[np.argsort(-self.excess[places])[:_MOST_PAIRS]])
            pairs = places if self.watched is None else self.watched[places]
            if known is not None:
                pairs = np.union1d(pairs, known[0])
            program = self.program(pairs, known)
            moved = self.step(program, tolerance)
            if moved is None:
                break
            change, multipliers, gain, expected = moved
            used = multipliers > 1e-6 * multipliers.max()
            known = pairs[used], multipliers[used], program.gradient[used], change
            length = float(np.abs(change).max())
            if gain > 0.5 * expected:
                self.radius = min(max(self.radius, 2 * length), _LARGEST_RADIUS)
            elif gain < 0.2 * expected:
                self.radius = length / 2
            if step % 4 == 3:
                self.look()
            hope = min(0.5, gain * (6 if step < 2 else 3))
            small = small + 1 if gain < tolerance else 0
            if (step and self.messages * (1 - hope) > give_up) or time.monotonic() > deadline:
                break
            if small >= 2 or (small and expected < 3 * tolerance):
                break
        if self.watched is not None:
            self.watched = None
            self.x, self.excess = self.scaled(self.x)
            self.messages = self.model.messages(self.x)
        _, multipliers = program.solve(0.3)
        return Solution(self.x.reshape(2, n), self.messages, pairs, multipliers)

    def program(
        self, pairs: IntArray, known: tuple[IntArray, FloatArray, FloatArray, FloatArray] | None
    ) -> Program:
        model = self.model
        log_delta, gradient = model.estimator.gradient(self.x, pairs)
        rows = gradient.reshape(len(pairs), -1)
        if known is not None:
            old, multipliers, old_rows, change = known
            difference = multipliers @ (rows[np.searchsorted(pairs, old)] - old_rows)
            told = np.abs(change) > 1e-3
            fresh = np.clip(difference / np.where(told, change, 1.0), 0, None)
            mixed = (self.curvature + fresh) / 2 if self.curvature.any() else fresh
            self.curvature = np.where(told, mixed, self.curvature)
        cost = model.size * np.exp(self.x[0])
        return Program(
            cost=np.concatenate([cost, np.zeros_like(cost)]),
            curvature=np.concatenate([cost, np.zeros_like(cost)])
            + np.maximum(self.curvature, 1e-3 * cost.mean()),
            gradient=rows,
            room=math.log(model.target.goal) - log_delta,
        )

    def step(
        self, program: Program, tolerance: float
    ) -> tuple[FloatArray, FloatArray, float, float] | None:
        """The first step that gains: the change, multipliers, relative gain and expectation."""
        model = self.model
        tightest = program.gradient[np.argmin(program.room)].reshape(2, -1)
        self.slope = max(-float(tightest[0].sum()), 2.0)
        while self.radius > _SMALLEST_RADIUS:
            d, multipliers = program.solve(self.radius)
            expected = program.gain(d) / self.messages
            x, excess = self.scaled(self.x + d.reshape(2, -1))
            messages = model.messages(x)
            gain = (self.messages - messages) / self.messages
            if gain > 0:
                change = (x - self.x).ravel()
                self.x, self.excess, self.messages = x, excess, messages
                return change, multipliers, gain, expected
            self.radius = min(self.radius, float(np.abs(d).max())) / 3
            if expected < tolerance / 3:
                return None
        return None


@dataclass(frozen=True)
class Program:
    """One step: linear in the cost and in log delta, with a diagonal curvature."""

    cost: FloatArray
    curvature: FloatArray
    gradient: FloatArray
    room: FloatArray

    def gain(self, d: FloatArray) -> float:
        return -float(self.cost @ d + d @ (self.curvature * d) / 2)

    def solve(self, radius: float) -> tuple[FloatArray, FloatArray]:
        """The step within ``radius``, and the multipliers; room that is missing is paid dearly."""
        import clarabel

        n, m = len(self.cost), len(self.room)
        unit, none = sparse.identity(n, format="csc"), sparse.csc_matrix((n, 1))
        gradient = sparse.csc_matrix(self.gradient)
        rows = sparse.vstack(
            [
                sparse.hstack([gradient, sparse.csc_matrix(-np.ones((m, 1)))]),
                sparse.hstack([unit, none]),
                sparse.hstack([-unit, none]),
                sparse.csc_matrix(([-1.0], ([0], [n])), shape=(1, n + 1)),
            ],
            format="csc",
        )
        bound = np.concatenate([self.room, np.full(2 * n, radius), [0.0]])
        settings = clarabel.DefaultSettings()
        settings.verbose = False
        settings.max_threads = 1
        solver = clarabel.DefaultSolver(
            sparse.diags(np.append(self.curvature, 0.0), format="csc"),
            np.append(self.cost, 10 * self.cost.sum()),
            rows,
            bound,
            [clarabel.NonnegativeConeT(len(bound))],
            settings,
        )
        found = solver.solve()
        return np.array(found.x)[:n], np.array(found.z)[:m]
