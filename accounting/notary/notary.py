"""The notary: bounds on delta over all ordered pairs, proved in ball arithmetic (notary.md).

It shares no evaluation code with the fast evaluators: it reads exact parameters, computes the
columns and the tables of the noises itself and works with polynomials over balls.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import starmap

from flint import arb

from accounting.base.balls import above, ball, below, precision
from accounting.base.deadline import check_time, sets_deadline
from accounting.base.enclosure import Enclosure
from accounting.base.errors import TooLarge, Undecided
from accounting.base.progress import Progress, silent
from accounting.model.change import SUBSTITUTION, Adjacency, Change
from accounting.model.mechanism import Atom, ExactLaw, Mechanism
from accounting.model.proof import Proof
from accounting.model.proof_types import (
    BALL,
    BALL_2D,
    BALL_COUPLED,
    DISJOINT,
    GAP,
    TYPICAL_DELTA,
)
from accounting.notary.columns import UNIT, Columns, columns, revealed_value
from accounting.notary.dropouts.thinned import ThinnedCentral
from accounting.notary.grid import CoordinateShift, Noises, ShiftedChange
from accounting.notary.refinement import AnySequenceRefinement, Goal, SameChangeRefinement
from accounting.notary.tables import NegativeBinomialPart, NoiseTable

_SMALLEST = 1e-280
"""Smallest delta that is resolved: doubles end near 1e-308.  The evaluator has a limit of its own:
the two proofs stay independent."""
_SMALLEST_LOSS = 1e-9
"""Smallest loss of one unit of the sum: below it, the central noise fits into no table."""
_LARGEST_EPS = 1e4
"""Largest eps: losses up to a larger one do not fit into the tables."""
_PARTS_OF_GAP = 20
"""One part of the gap is for the mass that is clipped, and one for the sampler's deviation."""
_MOST_SHIFTS = 1 << 24
"""Shifts of all changes together, at about a hundred bytes each."""


@dataclass(frozen=True)
class Notary:
    """Proofs about one mechanism, for several releases in which one user's value changes.

    The value may change in any way from release to release; with ``same_change``, the same change
    is made in every release.  ``adjacency`` says which changes one user can make.
    """

    mechanism: Mechanism
    releases: int = 1
    same_change: bool = False
    adjacency: Adjacency = SUBSTITUTION

    @property
    def any_sequence(self) -> bool:
        return self.releases > 1 and not self.same_change

    @cached_property
    def disclosed(self) -> Change | None:
        """A change that every view reveals, so that delta = 1 for every eps."""
        try:
            _ = self.columns
        except Undecided:  # with columns, every input is a combination of noisy atoms
            value = revealed_value(self.mechanism.max_value, self._noisy)
            return None if value is None else Change(value, 0)
        return None

    @cached_property
    def columns(self) -> Columns:
        return columns(self.mechanism.max_value, [UNIT, *self._noisy])

    @property
    def _noisy(self) -> list[Atom]:
        return [atom for atom, parts in self.mechanism.atoms.items() if parts]

    @cached_property
    def laws(self) -> dict[Atom, Atom]:
        """Per noisy atom, the first one with the same exact noise: it stands for their law."""
        first: dict[tuple[ExactLaw, ...], Atom] = {}
        atoms = self.mechanism.atoms
        return {atom: first.setdefault(atoms[atom], atom) for atom in self._noisy if atom != UNIT}

    def shifted_changes(self, changes: Collection[Change] | None = None) -> list[ShiftedChange]:
        """These changes, or all that one user can make, with the shifts of the noises."""
        cs = self.columns.of_input
        top = self.mechanism.max_value
        if changes is None and self.adjacency == SUBSTITUTION:  # too many to count one by one
            coordinates = self.mechanism.coordinates(self.adjacency)
            shifts = top * (2 * sum(map(len, cs)) + 4 * (top + 1) * coordinates)
            changes = self.mechanism.changes(self.adjacency)
        else:
            changes = self.mechanism.changes(self.adjacency) if changes is None else changes
            shifts = sum(len(cs[j]) + 4 for change in changes for j in change.listed)
        if shifts > _MOST_SHIFTS:
            raise TooLarge(
                f"the pairs of inputs up to {top:,} shift {shifts:,} noises, more than the notary "
                f"takes at once ({_MOST_SHIFTS:,}): ask for --tier fast"
            )

        @cache
        def one(before: int, after: int) -> CoordinateShift:
            check_time()
            return CoordinateShift.of(before, after, cs).by_law(self.laws)

        return [
            ShiftedChange(change, tuple(starmap(one, change.coordinates))) for change in changes
        ]

    @sets_deadline
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
    ) -> Proof:
        """Enclose delta(eps).

        Args:
            eps: The eps of the guarantee.
            gap: Relative gap between the bounds; the finding says whether it was met.
            claim: The delta to decide about; once the bounds decide it, costly refinement ends at a
                gap of ``LOOSE``.
            changes: The changes that the bounds are about; by default all of them.
            guess: Called for the approximate size of delta if that is far below the claim.  It
                affects the running time only, not the validity of the bounds.
            deadline: When to stop refining, on the clock of ``time.monotonic``.
            progress: Called with one line of text for every grid.

        Raises:
            TooLarge: If noises or losses do not fit into the tables.
            Undecided: If no bound could be proved, for lack of precision or of time.
        """
        if self.disclosed is not None:
            return Proof(
                eps=eps,
                enclosure=Enclosure(1.0, 1.0),
                worst_change=self.disclosed,
                met=True,
                exact=True,
                covered={DISJOINT: 1},
                precision=0,
                deviation=0.0,
            )
        shifted = self.shifted_changes(changes)
        loss = float(self.mechanism.central.loss().mid())
        if loss < _SMALLEST_LOSS or eps > _LARGEST_EPS:
            raise TooLarge(
                f"eps = {eps:g} with central noise of mean {1 / max(loss, 1e-300):.3g} is more "
                "than the notary can tabulate"
            )
        scale = max(claim if claim is not None else TYPICAL_DELTA, _SMALLEST)
        terms = max(sum(2 + len(c.shifts) for c in one.shifts) for one in shifted)
        while True:
            clip = scale * gap / (_PARTS_OF_GAP * terms * self.releases)
            # enough to resolve the clipped mass, with a margin (rule of thumb) for long products
            bits = max(128, 96 + math.ceil(-1.25 * math.log2(clip)))
            with precision(bits):
                extra = self.mechanism.deviation(eps, self.releases, self.adjacency)
                thinned = None
                too_far = above(extra) > gap * scale / _PARTS_OF_GAP
                if too_far and not self.mechanism.central.whole():
                    thinned, extra = self._thinned(clip), arb(0)
                goal = Goal(
                    eps=ball(eps),
                    releases=self.releases,
                    adjacency=self.adjacency,
                    gap=gap,
                    claim=claim,
                    scale=scale,
                    clip=clip,
                    deadline=deadline,
                    progress=progress,
                )
                noises = Noises(self.tables(thinned), self.mechanism.central.loss(), thinned)
                kind = AnySequenceRefinement if self.any_sequence else SameChangeRefinement
                found = kind(goal, noises, shifted).run()
                if (
                    goal.scale_too_large(found)
                    and scale > _SMALLEST
                    and time.monotonic() < deadline
                ):
                    scale = max(found.upper, min(scale**2, scale / 100), _SMALLEST)
                    if guess is not None:
                        scale, guess = max(min(4 * guess(), found.upper), _SMALLEST), None
                    continue
                exact = self.columns.exact
                lower = max(0.0, below(ball(found.lower) - extra)) if exact else 0.0
                # a share above 1 is NB(1, q) and more noise (notary.md, section 6)
                added = arb(0) if self.mechanism.central.share() >= 1 else extra
                return Proof(
                    eps=eps,
                    enclosure=Enclosure(lower, min(1.0, above(ball(found.upper) + added))),
                    worst_change=found.worst,
                    met=found.met,
                    exact=exact,
                    covered={_method(thinned): len(shifted)},
                    precision=bits,
                    deviation=min(1.0, above(extra)),
                    worst_sequence=found.sequence if exact else (),
                    sequence_lower=max(0.0, below(ball(found.sequence_lower) - extra)),
                )

    @cached_property
    def _known_central(self) -> dict[float, ThinnedCentral]:
        return {}

    def _thinned(self, clip: float) -> ThinnedCentral:
        """Return the central noise of a fraction of the users, kept from one eps to the next: its
        precision depends on the clipped mass alone."""
        if clip not in self._known_central:
            self._known_central.clear()
            self._known_central[clip] = self._new_thinned(clip)
        return self._known_central[clip]

    def _new_thinned(self, clip: float) -> ThinnedCentral:
        central = self.mechanism.central
        parts = self.mechanism.atoms.get(UNIT, ())
        shift = max(abs(c.unit_shift) for one in self.shifted_changes() for c in one.shifts)
        return ThinnedCentral(
            share=central.share(),
            loss=central.loss(),
            unit=NoiseTable.of(parts) if parts else None,
            clip=clip,
            largest_shift=shift + self.mechanism.max_value,
        )

    def tables(self, thinned: ThinnedCentral | None = None) -> dict[Atom, NoiseTable]:
        """The laws of the noises at the working precision, under the atoms that stand for them; for
        {-1, +1} it is W = M + its noise, or that noise alone if M is coupled."""
        atoms = self.mechanism.atoms
        out = {atom: NoiseTable.of(atoms[atom]) for atom in dict.fromkeys(self.laws.values())}
        unit = NoiseTable.of(atoms.get(UNIT, ())).parts
        smaller = NegativeBinomialPart(arb(1), (-2 * self.mechanism.central.loss()).exp())
        coupled = thinned is not None and thinned.coupled is not None
        out[UNIT] = NoiseTable(unit if coupled else [*unit, smaller])
        return out


def _method(thinned: ThinnedCentral | None) -> str:
    """Return the name of the proof in certificates."""
    if thinned is None:
        return BALL
    if thinned.exceeds:
        return BALL
    return BALL_2D if thinned.coupled is None else BALL_COUPLED
