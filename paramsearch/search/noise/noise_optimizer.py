"""Stage 2: a local search for the cheapest noise of one family, by sequential quadratic
programming.

The unknown d is the change of (log mean, log r) of every atom.  Each step solves

    minimize   sum of size * mean * (d + d^2/2) + curvature of the constraints,
    subject to log delta_i + gradient_i d <= log delta for the pairs near delta,  |d| <= radius,

then scales all means so that the worst pair meets delta: every iterate is feasible according to the
estimates.  The curvature of the Lagrangian is a diagonal, from differences of gradients.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy import sparse

from accounting.base.arrays import FloatArray, IntArray
from accounting.base.deadline import check_time
from accounting.base.errors import required
from accounting.base.progress import Progress, silent
from paramsearch.search.noise.mean_scaling import TYPICAL_SLOPE, MeanScaling
from paramsearch.search.noise.noise_model import NoiseModel
from paramsearch.search.noise.watched_pairs import near_pairs

SMALLEST_SLOPE = 2.0
"""Smallest decrease of log delta per unit of log mean that a scaling of the means starts with."""
_NEAR = 2.5
"""Pairs enter the program when log delta is at most this far below the target."""
_MOST_PAIRS = 3000
"""Largest number of pairs in one program."""
_FIRST_RADIUS, _LARGEST_RADIUS, _SMALLEST_RADIUS = 0.5, 0.7, 1e-3
"""Trust radii in log mean and log r; rule of thumb."""
_LAST_RADIUS = 0.3
"""Trust radius of the program whose multipliers are returned."""
_SCALING = MeanScaling(
    steps=16, longest_step=0.7, close=lambda excess: abs(excess) < 0.02, retreats=True
)
_LOOK_AROUND_AFTER = (1, 2, 4)
"""First steps of a large problem after which the pairs near delta are searched for; later, whenever
the number of the step is a multiple of the last."""
_LAST_LOOKS = 2
"""Number of times that all pairs of a large problem are looked at in the end; steps go on where one
of them exceeds delta."""
_CAREFUL_RADIUS = 0.25
"""Largest trust radius of a large problem, where most pairs are not watched."""
_MOST_WATCHED = 30_000
"""Pairs that are watched in between."""
_KEPT_EXCESS = -1.5
"""Log delta minus its goal above which pairs stay watched; rule of thumb."""
_SURPRISE = 0.02
"""Log delta minus its goal above which pairs that were not watched call for more noise."""
_STEEPEST = 16.0
"""Largest change of log delta of a pair per unit of the trust radius; rule of thumb."""
_ACTIVE = 1e-6
"""Multiplier, relative to the largest, from which a pair counts as active in a step."""
_EARLY_HOPE, _LATER_HOPE, _LARGEST_HOPE = 6, 3, 0.5
"""Gain that all further steps may bring together, in gains of the latest one: in the first two
steps, and later; and the largest such gain as a share of the messages.  Rules of thumb."""


@dataclass(frozen=True)
class Solution:
    """Noise of a model that is feasible according to estimates; ``multipliers`` are in messages per
    unit of log delta of those ``pairs`` of the model. ``gave_up`` means that the descent ended
    early as hopeless."""

    model: NoiseModel
    x: FloatArray
    messages: float
    pairs: IntArray
    multipliers: FloatArray
    gave_up: bool = False


def optimize_noise(
    model: NoiseModel,
    x: FloatArray,
    *,
    tolerance: float = 1e-3,
    steps: int = 60,
    give_up: float = math.inf,
    deadline: float = math.inf,
    progress: Progress = silent,
) -> Solution:
    """Descend from ``x`` to a local optimum.

    Args:
        model: The family and the target.
        x: Noise to start from.
        tolerance: Relative gain in messages below which steps are not worth taking.
        steps: Largest number of steps.
        give_up: Stop early when fewer messages than this are out of reach.
        deadline: Time of the monotonic clock after which no step begins.
        progress: Called with one line of text after every step in a large problem.
    """
    return _Descent(model, x, progress).run(tolerance, steps, give_up, deadline)


@dataclass(frozen=True)
class _Step:
    """An accepted step: its change of the noise, the multipliers of its program, and the relative
    gain in messages, as found and as the program expected."""

    change: FloatArray
    multipliers: FloatArray
    gain: float
    expected: float

    @property
    def length(self) -> float:
        return float(np.abs(self.change).max())


@dataclass(frozen=True)
class _ActivePairs:
    """The pairs with multipliers in the latest step, their gradients before it, and its change."""

    pairs: IntArray
    multipliers: FloatArray
    gradient: FloatArray
    change: FloatArray


class _Safe(NamedTuple):
    """Noise that meets delta for all pairs of a large problem, as far as estimates tell."""

    x: FloatArray
    messages: float


class _Descent:
    def __init__(self, model: NoiseModel, x: FloatArray, progress: Progress) -> None:
        self.model, self.progress = model, progress
        self.slope = TYPICAL_SLOPE
        self.largest_radius = _CAREFUL_RADIUS if model.large else _LARGEST_RADIUS
        self.radius = min(_FIRST_RADIUS, self.largest_radius)
        if model.large:
            self.model = model.watching(
                near_pairs(model, x, self.watched_excess, _MOST_WATCHED, sampled=True)
            )
        self.x, self.excess = self.scaled(x)
        self.messages = model.messages(self.x)
        self.curvature = np.zeros(2 * len(model.size))
        self.surprised = False
        self.safe = _Safe(self.x, math.inf)
        self.latest: tuple[IntArray, QuadraticProgram] | None = None

    @property
    def watched_excess(self) -> float:
        """The excess from which a step may make a pair matter."""
        return _KEPT_EXCESS - _STEEPEST * self.radius

    def look_around(
        self, active: _ActivePairs | None, *, sampled: bool = False
    ) -> _ActivePairs | None:
        """Choose the pairs to watch in a large problem: those near delta, and the watched ones that
        still are; out of all pairs, or in a very large problem of a sample.

        Where other pairs turn out to exceed delta, enough noise is added, or, if a sample shows it,
        the steps since the latest look around are taken back.  Returns the active pairs with their
        new numbers.
        """
        model = self.model
        pairs = required(model.pairs, "the pairs to watch")
        mine = pairs[:0] if active is None else pairs[active.pairs]
        found = near_pairs(model, self.x, self.watched_excess, _MOST_WATCHED, sampled=sampled)
        kept = pairs[self.excess > _KEPT_EXCESS]
        self.model = model.watching(np.unique(np.concatenate([found, kept, mine]), axis=0))
        self.excess = self.model.excess(self.x)
        self.surprised = float(self.excess.max()) > _SURPRISE
        if self.surprised:
            self.x, self.excess = self.scaled(self.x)
        self.messages = self.model.messages(self.x)
        if sampled and self.messages > self.safe.messages:
            self.x, self.messages = self.safe
            self.excess = self.model.excess(self.x)
            self.radius /= 3
            return None
        self.safe = _Safe(self.x, self.messages)
        return None if active is None else replace(active, pairs=self.model.places(mine))

    def scaled(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Scale all means so that the worst pair meets delta; return the noise and the excess of
        each pair."""
        excess = np.empty(0)

        def worst(x: FloatArray) -> float:
            nonlocal excess
            excess = self.model.excess(x)
            return float(excess.max())

        found = _SCALING.run(self.model.with_enough_bursts(x), worst, self.slope)
        return _SCALING.extrapolated(found), excess - found.excess

    def run(self, tolerance: float, steps: int, give_up: float, deadline: float) -> Solution:
        gave_up = self.descend(tolerance, steps, give_up, deadline)
        for _ in range(_LAST_LOOKS if self.model.large else 0):
            self.look_around(None)
            if not self.surprised or gave_up or time.monotonic() > deadline:
                break
            gave_up = self.descend(tolerance, steps, give_up, deadline)
        if self.model.large or self.latest is None:
            pairs = self.program_pairs(None)
            program = self.program(pairs, None)
        else:
            pairs, program = self.latest
        _, multipliers = program.solve(_LAST_RADIUS)
        return Solution(self.model, self.x, self.messages, pairs, multipliers, gave_up)

    def descend(self, tolerance: float, steps: int, give_up: float, deadline: float) -> bool:
        """Take steps while they gain; return whether it gave up."""
        active: _ActivePairs | None = None
        small_gains = 0
        for index in range(steps):
            check_time()
            pairs = self.program_pairs(active)
            program = self.program(pairs, active)
            self.latest = pairs, program
            step = self.step(program, tolerance)
            if step is None:
                break
            used = step.multipliers > _ACTIVE * step.multipliers.max()
            active = _ActivePairs(
                pairs[used], step.multipliers[used], program.gradient[used], step.change
            )
            self.adapt_radius(step)
            small_gains = small_gains + 1 if step.gain < tolerance else 0
            ends = small_gains >= 2 or (small_gains > 0 and step.expected < 3 * tolerance)
            count = index + 1
            if self.model.large:
                self.progress(f"stage 2, step {count} of a family: {self.messages:,.0f} messages")
            if self.model.large and (
                ends or count in _LOOK_AROUND_AFTER or count % _LOOK_AROUND_AFTER[-1] == 0
            ):
                active = self.look_around(active, sampled=True)
                ends = ends and not self.surprised
            hope = _EARLY_HOPE if index < 2 else _LATER_HOPE
            hoped_gain = min(_LARGEST_HOPE, step.gain * hope)
            if index > 0 and self.messages * (1 - hoped_gain) > give_up:
                return True
            if ends or time.monotonic() > deadline:
                break
        return False

    def program_pairs(self, active: _ActivePairs | None) -> IntArray:
        """List the pairs near delta, and the pairs that were active in the latest step."""
        places = np.flatnonzero(self.excess > -_NEAR)
        if len(places) > _MOST_PAIRS:
            places = np.sort(places[np.argsort(-self.excess[places])[:_MOST_PAIRS]])
        return places if active is None else np.union1d(places, active.pairs)

    def adapt_radius(self, step: _Step) -> None:
        if step.gain > 0.5 * step.expected:
            self.radius = min(max(self.radius, 2 * step.length), self.largest_radius)
        elif step.gain < 0.2 * step.expected:
            self.radius = step.length / 2

    def program(self, pairs: IntArray, active: _ActivePairs | None) -> QuadraticProgram:
        """Build the program of the next step, with the curvature that the latest step revealed."""
        model = self.model
        log_delta, gradient = model.estimator.gradient(self.x, pairs)
        rows = gradient.reshape(len(pairs), -1)
        if active is not None:
            self.update_curvature(active, rows[np.searchsorted(pairs, active.pairs)])
        cost = model.size * np.exp(self.x[0])
        return QuadraticProgram(
            cost=np.concatenate([cost, np.zeros_like(cost)]),
            curvature=np.concatenate([cost, np.zeros_like(cost)])
            + np.maximum(self.curvature, 1e-3 * cost.mean()),
            gradient=rows,
            slack=math.log(model.target.goal) - log_delta,
        )

    def update_curvature(self, active: _ActivePairs, gradient: FloatArray) -> None:
        """Update the curvature by a secant: from the gradients of the active pairs after the latest
        step."""
        difference = active.multipliers @ (gradient - active.gradient)
        changed = np.abs(active.change) > 1e-3
        secant = np.clip(difference / np.where(changed, active.change, 1.0), 0, None)
        mixed = (self.curvature + secant) / 2 if self.curvature.any() else secant
        self.curvature = np.where(changed, mixed, self.curvature)

    def step(self, program: QuadraticProgram, tolerance: float) -> _Step | None:
        """Take the first step that gains, with smaller and smaller radii; None if none does."""
        tightest = program.gradient[np.argmin(program.slack)].reshape(2, -1)
        self.slope = max(-float(tightest[0].sum()), SMALLEST_SLOPE)
        while self.radius > _SMALLEST_RADIUS:
            d, multipliers = program.solve(self.radius)
            expected = program.gain(d) / self.messages
            x, excess = self.scaled(self.x + d.reshape(2, -1))
            messages = self.model.messages(x)
            gain = (self.messages - messages) / self.messages
            if gain > 0:
                change = (x - self.x).ravel()
                self.x, self.excess, self.messages = x, excess, messages
                return _Step(change, multipliers, gain, expected)
            self.radius = min(self.radius, float(np.abs(d).max())) / 3
            if expected < tolerance / 3:
                return None
        return None


@dataclass(frozen=True)
class QuadraticProgram:
    """The program of one step: a quadratic cost with diagonal curvature, and log delta to first
    order.

    ``slack`` is how much log delta of each pair may rise.
    """

    cost: FloatArray
    curvature: FloatArray
    gradient: FloatArray
    slack: FloatArray

    def gain(self, d: FloatArray) -> float:
        return -float(self.cost @ d + d @ (self.curvature * d) / 2)

    def solve(self, radius: float) -> tuple[FloatArray, FloatArray]:
        """Return the best step within ``radius``, and the multipliers.

        A last variable relaxes all pairs, at a high price, so that the program has a solution.
        """
        import clarabel

        n, m = len(self.cost), len(self.slack)
        identity, zeros = sparse.identity(n, format="csc"), sparse.csc_matrix((n, 1))
        gradient = sparse.csc_matrix(self.gradient)
        rows = sparse.vstack(
            [
                sparse.hstack([gradient, sparse.csc_matrix(-np.ones((m, 1)))]),
                sparse.hstack([identity, zeros]),
                sparse.hstack([-identity, zeros]),
                sparse.csc_matrix(([-1.0], ([0], [n])), shape=(1, n + 1)),
            ],
            format="csc",
        )
        bound = np.concatenate([self.slack, np.full(2 * n, radius), [0.0]])
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
