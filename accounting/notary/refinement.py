"""Finer and finer grids until the bounds on delta are close enough (notary.md, section 4).

For one change in all releases, the changes that can still be the worst are kept from grid to grid;
for any sequence of changes, all of them are.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain, starmap

import numpy as np
from flint import arb

from accounting.base.arrays import FloatArray
from accounting.base.balls import above, below
from accounting.base.deadline import OutOfTime, check_deadline
from accounting.base.enclosure import counted
from accounting.base.errors import TooLarge, Undecided
from accounting.base.progress import Progress
from accounting.model.change import Adjacency, Change, Repeated, directions
from accounting.model.mechanism import Atom
from accounting.model.proof_types import LOOSE
from accounting.notary.columns import UNIT
from accounting.notary.dropouts.thinned import ThinnedCentral
from accounting.notary.factors import TooFine
from accounting.notary.grid import CoordinateShift, Grid, Noises, ShiftedChange
from accounting.notary.processes import in_processes
from accounting.notary.sequences import SequenceFinding, sequence_bounds, worst_of

# All thresholds below are rules of thumb: they decide how long a proof takes, not what it says.
_LOOSE_COUPLED = 0.05
"""Relative gap that is enough for a decided claim if the central noises are coupled."""
_CHEAP = 200_000
"""Changes times grid cells up to which a decided claim is still refined to the full gap."""
_FIRST_CELLS = 6.0
"""Grid cells per standard deviation of the loss on the first grid."""
_FINEST = 1 << 21
"""Grid cells between 0 and eps at which refining ends."""
_STALLED = 0.9
"""Share of the gap that a finer grid may leave; if it leaves more, rounding errors dominate."""
_FIRST_SEQUENCE_CELLS, _FINEST_SEQUENCE_CELLS = 24.0, 1000.0
"""Grid cells per standard deviation of the loss of one release, for any sequence of changes: on the
first grid, and at which refining ends."""
_CANDIDATES = 2
"""Changes per grid whose lower bound is computed: those with the largest upper bounds."""
_COARSENING, _COARSEST = 64, 1 << 40
"""Factor by which the grid step grows while the losses do not fit on the first grid, and the
largest ratio of that step to the loss of one unit."""
_SMALLEST_VARIANCE = 1e-12
"""Variance of the loss that is assumed at least, so that the first grid has a step."""


@dataclass(frozen=True)
class Goal:
    """A goal: what is to be proved about delta(eps), and how hard to try."""

    eps: arb
    releases: int
    adjacency: Adjacency
    gap: float
    """Relative gap between the bounds that is asked for."""
    claim: float | None
    """A delta; once the bounds decide whether it holds, less accuracy is enough."""
    scale: float
    """Size of delta that is resolved; refining ends if delta turns out to be far below it."""
    clip: float
    """Mass that each noise may lose at either end, roughly."""
    deadline: float
    progress: Progress

    def decided(self, bounds: ProvedSoFar) -> bool:
        claim = self.claim
        return claim is not None and (bounds.upper <= claim or bounds.lower > claim)

    def scale_too_large(self, bounds: ProvedSoFar) -> bool:
        """Tell whether delta is so small that the goal has to be asked with a smaller scale."""
        return bounds.upper < self.scale / 8


@dataclass
class ProvedSoFar:
    """Bounds so far; ``met`` once the gap is as small as was asked for."""

    worst: Change
    upper: float = 1.0
    lower: float = 0.0
    met: bool = False
    sequence: tuple[Repeated, ...] = ()
    """A fixed sequence of changes that is bad, if any sequence is allowed."""
    sequence_lower: float = 0.0
    """Lower bound on delta for that sequence."""


class _Refinement:
    """A goal about these changes, the noises they shift, and the bounds so far."""

    def __init__(self, goal: Goal, noises: Noises, changes: Sequence[ShiftedChange]) -> None:
        self.goal, self.noises, self.changes = goal, noises, changes
        self.bounds = ProvedSoFar(changes[0].change)
        self.log_masses = {}
        if noises.thinned is not None:
            goal.progress("coupling the central noises")
            noises.thinned.prepare({c.distance for one in changes for c in one.shifts})
        for atom, shift in _largest_shifts(changes, noises.thinned).items():
            check_deadline(goal.deadline)
            self.log_masses[atom] = noises.tables[atom].log_masses(goal.clip / 4, shift)

    def _grid(self, ratio: Fraction, releases: int) -> Grid:
        return Grid(
            self.noises, self.log_masses, ratio=ratio, clip=self.goal.clip, releases=releases
        )

    def _ratio(self, width: float, cells: float) -> Fraction:
        """The grid step, in units of the central loss, at which ``width`` is ``cells`` cells."""
        return _tidy(width / (cells * float(self.noises.loss.mid())))


class SameChangeRefinement(_Refinement):
    """Bounds for one change that is made in every release."""

    def run(self) -> ProvedSoFar:
        goal, bounds = self.goal, self.bounds
        spread = _spread(self.log_masses, self.changes) * math.sqrt(goal.releases)
        ratio = self._ratio(spread, _FIRST_CELLS)
        upper = {shifted.change: 1.0 for shifted in self.changes}
        before = math.inf
        pending = self.changes
        while True:
            grid = self._grid(ratio, goal.releases)
            try:
                pending = self._narrowed(grid, pending, upper)
            except (TooLarge, Undecided) as refusal:
                if before == math.inf:
                    if not isinstance(refusal, TooFine) or ratio > _COARSEST:
                        raise
                    ratio = _tidy(_COARSENING * float(ratio))
                    continue
                return bounds  # what coarser grids have proved stands
            cells = float(goal.eps.mid() / grid.h.mid()) + 1
            if self._enough(len(pending) * cells):
                return bounds
            width = bounds.upper - bounds.lower
            if cells > _FINEST or width > _STALLED * before or time.monotonic() > goal.deadline:
                return bounds
            before = width
            error = width / bounds.upper
            # the error of the grid falls with the square of its step; 1.2 is a margin
            ratio = _tidy(float(ratio) / min(max(1.2 * math.sqrt(error / goal.gap), 2), 4))

    def _narrowed(
        self, grid: Grid, pending: Sequence[ShiftedChange], upper: dict[Change, float]
    ) -> list[ShiftedChange]:
        """Compute bounds on one grid; return the changes that could still be the worst."""
        goal, bounds = self.goal, self.bounds
        where = f"of {counted(len(pending), 'pair')} bounded on a grid of {float(grid.h.mid()):.3g}"
        goal.progress(f"0 {where}")
        grid.prepare(pending, goal.deadline)
        # neighbors share their central terms
        ordered = sorted(pending, key=lambda shifted: [c.central for c in shifted.shifts])
        found = in_processes(
            lambda shifted: self._upper(grid, shifted),
            ordered,
            lambda done: goal.progress(f"{done:,} {where}"),
        )
        for shifted, bound in zip(ordered, found, strict=True):
            upper[shifted.change] = min(upper[shifted.change], bound)
        bounds.upper = max(upper.values())
        pending = sorted(pending, key=lambda shifted: -upper[shifted.change])
        for shifted in pending[:_CANDIDATES]:
            bound = below(grid.lower(shifted.shifts, goal.eps))
            if bound > bounds.lower:
                bounds.lower, bounds.worst = bound, shifted.change
        return [
            shifted for shifted in pending if upper[shifted.change] * (1 - goal.gap) > bounds.lower
        ]

    def _upper(self, grid: Grid, shifted: ShiftedChange) -> float:
        try:
            check_deadline(self.goal.deadline)
            return above(grid.upper(shifted.shifts, self.goal.eps))
        except OutOfTime:
            return 1.0

    def _enough(self, work: float) -> bool:
        goal, bounds = self.goal, self.bounds
        if goal.scale_too_large(bounds):
            return True
        gap = bounds.upper - bounds.lower
        bounds.met = gap <= goal.gap * bounds.upper
        thinned = self.noises.thinned
        if thinned is not None and thinned.coupled is not None:  # finer grids gain little
            loose = gap <= _LOOSE_COUPLED * bounds.upper
        else:
            loose = gap <= LOOSE * bounds.upper and work > _CHEAP
        return bounds.met or (goal.decided(bounds) and loose)


class AnySequenceRefinement(_Refinement):
    """Bounds for changes that may differ in any way from release to release."""

    def run(self) -> ProvedSoFar:
        goal, bounds = self.goal, self.bounds
        spread = _spread(self.log_masses, self.changes)
        cells, before = _FIRST_SEQUENCE_CELLS, math.inf
        while True:
            grid = self._grid(self._ratio(spread, cells), 1)
            goal.progress(
                f"{counted(goal.releases, 'release')} of {counted(len(self.changes), 'change')}, "
                f"grid {float(grid.h.mid()):.3g}"
            )
            try:
                found = worst_of(
                    self._bounds(grid, direction)
                    for direction in directions([c.change for c in self.changes], goal.adjacency)
                )
            except (TooLarge, Undecided):
                if before == math.inf:
                    raise
                return bounds  # what a coarser grid has proved stands
            self._take(found)
            # the error of the grid falls with the square of its step
            settled = before - found.upper <= 3 * goal.gap * found.upper
            bounds.met = bounds.upper - bounds.lower <= goal.gap * bounds.upper
            if settled or goal.decided(bounds) or bounds.met or goal.scale_too_large(bounds):
                return bounds
            if cells > _FINEST_SEQUENCE_CELLS or time.monotonic() > goal.deadline:
                return bounds
            before, cells = found.upper, 2 * cells

    def _bounds(self, grid: Grid, direction: list[int]) -> SequenceFinding:
        """Bounds for sequences of these changes."""
        goal, changes = self.goal, [self.changes[index] for index in direction]
        found = sequence_bounds(grid, changes, goal.eps, goal.releases, deadline=goal.deadline)
        return found.renumbered(direction)

    def _take(self, found: SequenceFinding) -> None:
        bounds = self.bounds
        bounds.upper = min(bounds.upper, found.upper)
        if found.lower >= bounds.lower:
            bounds.lower, bounds.worst = found.lower, self.changes[found.begin].change
        if found.fixed > bounds.sequence_lower:
            bounds.sequence_lower = found.fixed
            bounds.sequence = tuple(
                Repeated(self.changes[index].change, times) for index, times in found.witness
            )


def _largest_shifts(
    changes: Sequence[ShiftedChange], thinned: ThinnedCentral | None
) -> dict[Atom, int]:
    """The largest shift of every noise, in either direction."""
    largest = {UNIT: 0}
    for c in chain.from_iterable(shifted.shifts for shifted in changes):
        for atom, shift in c.shifts:
            largest[atom] = max(largest.get(atom, 0), abs(shift))
        mixed = [0, c.distance] if thinned is None else [0, c.distance, *thinned.shifts(c.distance)]
        for shift in (min(mixed), max(mixed)):
            largest[UNIT] = max(largest[UNIT], abs(c.first_shift + shift))
    return largest


def _spread(log_masses: dict[Atom, FloatArray], changes: Sequence[ShiftedChange]) -> float:
    """The largest standard deviation, over the changes, of the loss that the noises contribute."""
    seen: dict[tuple[Atom, int], float] = {}

    def variance(atom: Atom, shift: int) -> float:
        if (atom, shift) not in seen:
            log = log_masses[atom]
            first, last = max(0, -shift), len(log) - max(0, shift)
            if first >= last:
                return 0.0
            loss = log[first:last] - log[first + shift : last + shift]
            mass = np.exp(log[first:last])
            mean = float(mass @ loss)
            seen[atom, shift] = float(mass @ (loss - mean) ** 2)
        return seen[atom, shift]

    def total_variance(c: CoordinateShift) -> float:
        return variance(UNIT, c.first_shift) + sum(starmap(variance, c.shifts))

    largest = max(sum(map(total_variance, shifted.shifts)) for shifted in changes)
    return math.sqrt(max(largest, _SMALLEST_VARIANCE))


def _tidy(ratio: float) -> Fraction:
    """Round a ratio to an integer or the reciprocal of one."""
    return Fraction(round(ratio)) if ratio >= 1 else Fraction(1, math.ceil(1 / ratio))
