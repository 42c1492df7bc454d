"""The notary: bounds on delta over all ordered pairs, proved in ball arithmetic (notary.md).

It shares no evaluation code with the fast evaluators: it reads exact parameters, rebuilds the
columns, tabulates the noises with its own recurrence and works with polynomials over balls.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property
from itertools import chain, starmap

import numpy as np
from flint import arb

from accounting.base.arrays import FloatArray
from accounting.base.balls import above, ball, below, precision
from accounting.base.deadline import OutOfTime, check_deadline, check_time, keeps_time
from accounting.base.enclosure import Enclosure
from accounting.base.errors import TooLarge, Undecided
from accounting.base.progress import Progress, silent
from accounting.model.change import Change, Repeated
from accounting.model.mechanism import Atom, Mechanism
from accounting.model.proof_types import BALL, BALL_2D, DISJOINT, GAP, LOOSE
from accounting.notary.columns import UNIT, Columns, columns, silent_value
from accounting.notary.factors import TooFine
from accounting.notary.grid import CoordinateShift, Grid, Step
from accounting.notary.processes import in_processes
from accounting.notary.sequences import SequenceFinding, sequence_bounds
from accounting.notary.tables import NoiseTable
from accounting.notary.thinned import ThinnedCentral

_CHEAP = 200_000
"""Pairs times grid cells."""
_COARSE = 6.0
"""Grid cells per standard deviation of the loss to begin with."""
_FINEST = 1 << 21
"""Grid cells up to eps at which refining ends."""
_STALLED = 0.9
"""A finer grid that leaves more of the gap than this does not help: rounding dominates."""
_FINE_ENOUGH, _FINEST_CELLS = 24.0, 1000.0
"""Grid cells per standard deviation of the loss of one release, for any sequence of changes: to
begin with, and at which refining ends."""
_SMALLEST = 1e-280
_SMALLEST_LOSS, _LARGEST_EPS = 1e-9, 1e4
_CANDIDATES = 2
"""Pairs per grid that are tried as the worst one."""
_COARSER, _COARSEST = 64, 1 << 40
"""By this factor, where the losses lie too far apart for the first grid; and the last ratio."""
_MOST_SHIFTS = 1 << 24
"""Of all pairs together: about a hundred bytes each."""


@dataclass(frozen=True)
class Finding:
    """delta at one eps over all ordered pairs that were asked for.

    ``worst_change`` attains the lower bound; no change exceeds the upper one.  ``exact`` is False
    for a set of atoms with more atoms than values, where only upper bounds mean anything (the lower
    one is 0).  ``deviation`` is what the deployed sampler adds, inside the bounds already.
    """

    eps: float
    enclosure: Enclosure
    worst_change: Change
    met: bool
    exact: bool
    method: str
    pairs: int
    precision: int
    deviation: float
    worst_sequence: tuple[Repeated, ...] = ()
    """For any sequence of changes: a fixed one that is bad, as changes and how often each is made.
    The lower bound is that of an adaptive one, which begins with ``worst_change``."""
    sequence_lower: float = 0.0
    """What ``worst_sequence`` attains by itself."""


@dataclass(frozen=True)
class Notary:
    """Proofs about one mechanism, for T releases in which one user's value changes.

    It may change in any way from release to release; with ``same_change``, it changes from the same
    value to the same other one every time.
    """

    mechanism: Mechanism
    releases: int = 1
    same_change: bool = False

    @property
    def any_sequence(self) -> bool:
        return self.releases > 1 and not self.same_change

    @cached_property
    def disclosed(self) -> Change | None:
        """A change that every view gives away: delta = 1 whatever eps is."""
        try:
            _ = self.columns
        except Undecided:  # with columns, every input is a combination of noisy atoms
            value = silent_value(self.mechanism.max_value, self._noisy)
            return None if value is None else Change(value, 0)
        return None

    @cached_property
    def columns(self) -> Columns:
        return columns(self.mechanism.max_value, [UNIT, *self._noisy])

    @property
    def _noisy(self) -> list[Atom]:
        return [atom for atom, parts in self.mechanism.atoms.items() if parts]

    def steps(self, changes: Collection[Change] | None = None) -> list[Step]:
        """Everything that one user can change, or these changes, with what they shift."""
        cs = self.columns.of_input
        top = self.mechanism.max_value
        shifts = top * (2 * sum(map(len, cs)) + 4 * (top + 1) * self.mechanism.coordinates)
        if changes is not None:
            shifts = sum(len(cs[j]) + 4 for change in changes for j in change.listed)
        if shifts > _MOST_SHIFTS:
            raise TooLarge(
                f"the pairs of inputs up to {top:,} shift {shifts:,} noises, more than the notary "
                f"takes at once ({_MOST_SHIFTS:,}): ask for --tier fast"
            )

        @cache
        def one(before: int, after: int) -> CoordinateShift:
            check_time()
            return CoordinateShift.of(before, after, cs)

        if changes is None:
            changes = self.mechanism.changes()
        return [Step(change, tuple(starmap(one, change.coordinates))) for change in changes]

    @keeps_time
    def enclose(
        self,
        eps: float,
        *,
        gap: float = GAP,
        claim: float | None = None,
        changes: Collection[Change] | None = None,
        guess: Callable[[], float] | None = None,
        deadline: float = math.inf,
        progress: Progress = silent,
    ) -> Finding:
        """delta(eps), to relative gap ``gap`` if ``met``.

        A claim that is decided ends expensive work at a gap of ``LOOSE``.  ``changes`` restricts
        the proof to these; ``guess`` is asked for delta's size where it is far below the claim, and
        nothing rests on it.  ``deadline`` is on the clock of ``time.monotonic``.
        """
        if self.disclosed is not None:
            return Finding(
                eps, Enclosure(1.0, 1.0), self.disclosed, True, True, DISJOINT, 1, 0, 0.0
            )
        steps = self.steps(changes)
        loss = float(self.mechanism.central.loss().mid())
        if loss < _SMALLEST_LOSS or eps > _LARGEST_EPS:
            raise TooLarge(
                f"eps = {eps:g} with central noise of mean {1 / max(loss, 1e-300):.3g} is more "
                "than the notary can tabulate"
            )
        scale = max(claim if claim is not None else 1e-6, _SMALLEST)
        terms = max(sum(2 + len(c.shifts) for c in step.shifts) for step in steps)
        while True:
            clip = scale * gap / (20 * terms * self.releases)
            bits = max(128, 96 + math.ceil(-1.25 * math.log2(clip)))
            with precision(bits):
                extra = self.mechanism.deviation(eps, self.releases)
                thinned = None
                if above(extra) > gap * scale / 20 and not self.mechanism.central.whole():
                    thinned, extra = self._thinned(clip), arb(0)
                kind = _AnySearch if self.any_sequence else _Search
                search = kind(self, ball(eps), gap, claim, clip, scale, thinned, deadline, progress)
                search.run(steps)
                if search.upper < scale / 8 and scale > _SMALLEST and time.monotonic() < deadline:
                    scale = max(search.upper, min(scale**2, scale / 100), _SMALLEST)
                    if guess is not None:
                        scale, guess = max(min(4 * guess(), search.upper), _SMALLEST), None
                    continue
                lower = max(0.0, below(ball(search.lower) - extra)) if self.columns.exact else 0.0
                # a share above 1 is NB(1, q) and more noise (notary.md, section 6)
                added = arb(0) if self.mechanism.central.share() >= 1 else extra
                return Finding(
                    eps=eps,
                    enclosure=Enclosure(lower, min(1.0, above(ball(search.upper) + added))),
                    worst_change=search.worst,
                    met=search.met,
                    exact=self.columns.exact,
                    method=BALL if thinned is None else BALL_2D,
                    pairs=len(steps),
                    precision=bits,
                    deviation=min(1.0, above(extra)),
                    worst_sequence=search.sequence if self.columns.exact else (),
                    sequence_lower=max(0.0, below(ball(search.fixed) - extra)),
                )

    def _thinned(self, clip: float) -> ThinnedCentral:
        central = self.mechanism.central
        parts = self.mechanism.atoms.get(UNIT, ())
        unit = NoiseTable([(part.shape(), ball(part.p)) for part in parts]) if parts else None
        shift = max(abs(c.unit_shift) for step in self.steps() for c in step.shifts)
        reach = shift + self.mechanism.max_value
        return ThinnedCentral(central.share(), central.loss(), unit, clip, reach)

    def tables(self) -> dict[Atom, NoiseTable]:
        """The noises at the working precision; W = M + noise of {-1, +1} in place of the latter."""
        atoms = self.mechanism.atoms
        out = {
            atom: NoiseTable([(part.shape(), ball(part.p)) for part in parts])
            for atom, parts in atoms.items()
            if parts
        }
        unit = out[UNIT].parts if UNIT in out else ()
        out[UNIT] = NoiseTable([*unit, (arb(1), (-2 * self.mechanism.central.loss()).exp())])
        return out


class _Search:
    """Finer and finer grids for the pairs that can still be the worst one."""

    def __init__(
        self,
        notary: Notary,
        eps: arb,
        gap: float,
        claim: float | None,
        clip: float,
        scale: float,
        thinned: ThinnedCentral | None,
        deadline: float,
        progress: Progress,
    ) -> None:
        self.notary, self.eps, self.gap, self.claim = notary, eps, gap, claim
        self.clip, self.scale, self.thinned, self.deadline = clip, scale, thinned, deadline
        self.progress = progress
        self.upper, self.lower, self.met = 1.0, 0.0, False
        self.worst = Change(0, 1)
        self.sequence: tuple[Repeated, ...] = ()
        self.fixed = 0.0

    def run(self, steps: list[Step]) -> None:
        notary = self.notary
        tables, logs = self._noises(steps)
        loss = notary.mechanism.central.loss()
        spread = _spread(logs, steps) * math.sqrt(notary.releases)
        ratio = _tidy(spread / (_COARSE * float(loss.mid())))
        upper = {step.change: 1.0 for step in steps}
        before = math.inf
        self.worst = steps[0].change
        pending = steps
        while True:
            grid = Grid(tables, logs, loss, ratio, self.clip, notary.releases, self.thinned)
            try:
                pending = self._narrowed(grid, pending, upper)
            except (TooLarge, Undecided) as refusal:
                if before == math.inf:
                    if not isinstance(refusal, TooFine) or ratio > _COARSEST:
                        raise
                    ratio = _tidy(_COARSER * float(ratio))
                    continue
                return  # what coarser grids have proved stands
            cells = float(self.eps.mid() / grid.h.mid()) + 1
            if self._enough(len(pending) * cells):
                return
            width = self.upper - self.lower
            if cells > _FINEST or width > _STALLED * before or time.monotonic() > self.deadline:
                return
            before = width
            error = width / self.upper
            ratio = _tidy(float(ratio) / min(max(1.2 * math.sqrt(error / self.gap), 2), 4))

    def _noises(self, steps: list[Step]) -> tuple[dict[Atom, NoiseTable], dict[Atom, FloatArray]]:
        tables, logs = self.notary.tables(), {}
        for atom, shift in _reach(steps).items():
            check_deadline(self.deadline)
            logs[atom] = tables[atom].log_masses(self.clip / 4, shift)
        return tables, logs

    def _narrowed(self, grid: Grid, pending: list[Step], upper: dict[Change, float]) -> list[Step]:
        """Bounds on one grid; the steps that could still be the worst."""
        self.progress(f"{len(pending):,} of {len(upper):,} pairs, grid {float(grid.h.mid()):.3g}")
        grid.prepare(pending, self.deadline)
        found = in_processes(lambda step: self._upper(grid, step), pending)
        for step, bound in zip(pending, found, strict=True):
            upper[step.change] = min(upper[step.change], bound)
        self.upper = max(upper.values())
        pending = sorted(pending, key=lambda step: -upper[step.change])
        for step in pending[:_CANDIDATES]:
            bound = below(grid.lower(step.shifts, self.eps))
            if bound > self.lower:
                self.lower, self.worst = bound, step.change
        return [step for step in pending if upper[step.change] * (1 - self.gap) > self.lower]

    def _upper(self, grid: Grid, step: Step) -> float:
        try:
            check_deadline(self.deadline)
            return above(grid.upper(step.shifts, self.eps))
        except OutOfTime:
            return 1.0

    def _enough(self, work: float) -> bool:
        if self.upper < self.scale / 8:
            return True  # the caller goes on with a smaller scale
        gap = self.upper - self.lower
        self.met = gap <= self.gap * self.upper
        claim = self.claim
        decided = claim is not None and (self.upper <= claim or self.lower > claim)
        return self.met or (decided and gap <= LOOSE * self.upper and work > _CHEAP)


class _AnySearch(_Search):
    """Finer and finer grids for all changes, which may follow each other in any way."""

    def run(self, steps: list[Step]) -> None:
        notary = self.notary
        tables, logs = self._noises(steps)
        loss = notary.mechanism.central.loss()
        spread = _spread(logs, steps)
        cells, before = _FINE_ENOUGH, math.inf
        self.worst = steps[0].change
        while True:
            ratio = _tidy(spread / (cells * float(loss.mid())))
            grid = Grid(tables, logs, loss, ratio, self.clip, 1, self.thinned)
            self.progress(
                f"{notary.releases:,} releases of {len(steps):,} changes, "
                f"grid {float(grid.h.mid()):.3g}"
            )
            try:
                found = sequence_bounds(
                    grid, steps, self.eps, notary.releases, deadline=self.deadline
                )
            except (TooLarge, Undecided):
                if before == math.inf:
                    raise
                return  # what a coarser grid has proved stands
            self._take(found, steps)
            # the error of the grid falls with the square of its step
            settled = before - found.upper <= 3 * self.gap * found.upper
            self.met = self.upper - self.lower <= self.gap * self.upper
            claim = self.claim
            decided = claim is not None and (self.upper <= claim or self.lower > claim)
            if settled or decided or self.met or self.upper < self.scale / 8:
                return
            if cells > _FINEST_CELLS or time.monotonic() > self.deadline:
                return
            before, cells = found.upper, 2 * cells

    def _take(self, found: SequenceFinding, steps: list[Step]) -> None:
        self.upper = min(self.upper, found.upper)
        if found.lower >= self.lower:
            self.lower, self.worst = found.lower, steps[found.begin].change
        if found.fixed > self.fixed:
            self.fixed = found.fixed
            self.sequence = tuple(Repeated(steps[q].change, times) for q, times in found.witness)


def _reach(steps: list[Step]) -> dict[Atom, int]:
    """The largest shift of every noise, either way."""
    reach = {UNIT: 0}
    for c in chain.from_iterable(step.shifts for step in steps):
        for atom, shift in c.shifts:
            reach[atom] = max(reach.get(atom, 0), abs(shift))
        first = c.first_shift
        reach[UNIT] = max(reach[UNIT], abs(first), abs(first + c.distance))
    return reach


def _spread(logs: dict[Atom, FloatArray], steps: list[Step]) -> float:
    """The standard deviation of the noises' part of the loss, largest over the steps."""
    seen: dict[tuple[Atom, int], float] = {}

    def variance(atom: Atom, shift: int) -> float:
        if (atom, shift) not in seen:
            log = logs[atom]
            first, last = max(0, -shift), len(log) - max(0, shift)
            if first >= last:
                return 0.0
            loss = log[first:last] - log[first + shift : last + shift]
            mass = np.exp(log[first:last])
            mean = float(mass @ loss)
            seen[atom, shift] = float(mass @ (loss - mean) ** 2)
        return seen[atom, shift]

    def width(c: CoordinateShift) -> float:
        return variance(UNIT, c.first_shift) + sum(starmap(variance, c.shifts))

    widest = max(sum(map(width, step.shifts)) for step in steps)
    return math.sqrt(max(widest, 1e-12))


def _tidy(ratio: float) -> Fraction:
    """About this ratio, and a whole number or one over a whole number."""
    return Fraction(round(ratio)) if ratio >= 1 else Fraction(1, math.ceil(1 / ratio))
