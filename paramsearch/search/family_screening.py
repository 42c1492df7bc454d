"""The search over families by stage 1: thousands of them, in seconds.

From several starts, single atoms change their parts as long as the dominance program gains; then
hubs change at random, and what looks promising is improved again.  Large problems begin with the
shapes that are best at a smaller max_value.  The result is a pool of families that are good and
different, for stage 2.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import takewhile
from threading import Lock

from accounting.base.errors import required
from accounting.base.progress import Progress, silent
from accounting.base.threads import in_threads
from accounting.model.family import hubs as evenly_spaced_hubs
from paramsearch.search.budget import Budget
from paramsearch.search.dominance.calibration import Calibration, TailCorrection
from paramsearch.search.dominance.draft_arrays import DraftArrays
from paramsearch.search.dominance.priced_moves import PricedMove, priced_moves
from paramsearch.search.dominance.screening import screen
from paramsearch.search.families import hub_families
from paramsearch.search.families.family_draft import FamilyDraft, Parts
from paramsearch.search.screened_family import Screened
from paramsearch.search.stage import Stage
from paramsearch.search.target import Target

_SMALL = 64
"""Largest max_value that is searched without the shapes of a smaller one."""
_LARGEST_RATIO = 4.0
"""Largest ratio of one max_value and the smaller one whose shapes it takes."""
_GAP, _ROUGH_GAP = 5e-4, 4.0
"""Relative duality gap of the program; and that of its first solution for a random change, in units
of the former."""
_SMALLEST_GAIN = 0.6
"""Relative gain from which a move is tried, in units of the gap."""
_COARSE_FROM = 150
"""The max_value from which the gap grows in proportion, up to ``_LARGEST_GAP``."""
_LARGEST_GAP = 3e-3
_FEW_FAMILIES_UNTIL = 12
"""Largest max_value with so few families that random changes may go further."""
_PROMISING, _FAR = 1.1, 1.2
"""Random changes within this ratio of the value before are improved; and where there are few
families."""
_CHANGES_PER_PAIR = 8
"""Most random changes for each pair of inputs."""
_SPACINGS = (0.7, 1.0, 1.4, 2.0)
"""Spacings of evenly spaced hubs, in units of the square root of max_value."""
_CHANGES_PER_TRY = 9
"""Random changes for each try of the budget."""
_QUICK_UNTIL, _MOST_OFTEN = 50, 2.5
"""Below this max_value there are more changes, in inverse proportion, up to so many times."""
_FEW_HUBS_UNTIL = 1500
"""Largest max_value at which families with a few hubs are starts: they are for small ones."""
_STARTS, _RESCALED = 10, 4
"""Number of the best starts that are improved, and of shapes that a larger max_value takes."""
_QUICK_CHANGES, _QUICK_STARTS = 40, 2
"""Random changes of a quick prediction, and starts that it improves."""
_POOL = 40
"""Number of families that are kept."""
_AT_ONCE, _FEW_AT_ONCE, _BATCHES = 16, 4, 16
"""Random changes that begin with the same best families, for threads to share: where there are many
changes, and where there are few; and the number of such batches that is worth having."""
_NEAR_BEST = 12
"""Random changes begin with one of so many best families."""
_PATIENCE, _LITTLE_PATIENCE = 3, 2
"""Number of single moves in a row that may fail, for a start and for a random change.  All of these
are rules of thumb."""


@dataclass
class FamilyScreening(Stage[Screened]):
    """Stage 1: a search over families by the values of their dominance programs.

    Attributes:
        target: What the families are for.
        calibration: What the dominance program assumes.
        budget: When to stop; random changes end at ``until`` of its seconds.
        rng: The source of random changes.
        progress: Called with one line of text now and then.
        stage: What reports call this search.
        screened: Number of families whose program was solved or bounded so far.
        pool: The families that are kept, by their hubs.
        tail: What corrects the values of the program.
        lock: Held while ``screened`` grows.
    """

    target: Target
    calibration: Calibration
    budget: Budget
    rng: random.Random
    progress: Progress = silent
    stage: str = "stage 1"
    screened: int = 0
    pool: dict[tuple[tuple[int, Parts], ...], Screened] | None = None
    tail: TailCorrection | None = None
    lock: Lock = field(default_factory=Lock, repr=False)

    def recalibrate(self, calibration: Calibration, tail: TailCorrection | None = None) -> None:
        """Solve the program of the families found so far with other assumptions."""
        self.calibration, self.tail = calibration, tail or self.tail
        found = in_threads(lambda entry: self.solve(entry.draft, entry), self.best[:_NEAR_BEST])
        self.pool = {entry.shape: entry for entry in found}

    def run(self, starts: Iterable[FamilyDraft], changes: int, *, until: float) -> list[Screened]:
        """Search from ``starts`` and from hub families, and make so many random changes.

        Returns families with different hubs, best first.
        """
        self.pool = {}
        found = in_threads(self.solve, [*starts, *self._starts(until)])
        found.sort(key=lambda entry: entry.price)
        good = found[: _improved_starts(self.target.problem.max_value)]
        self._report(f"improving {len(good)} of {len(found)} starts", found[0])
        found = in_threads(
            lambda entry: self.improved(entry, until=until, patience=_PATIENCE), good
        )
        self.tail = TailCorrection(min(found, key=lambda entry: entry.value).concentration)
        for entry in found:
            self._keep(replace(entry, tail=self.tail))
        self.explore(changes, until=until)
        return self.best

    @cached_property
    def gap(self) -> float:
        """Relative duality gap: coarser where solutions take longer."""
        return min(_LARGEST_GAP, _GAP * max(1.0, self.target.problem.max_value / _COARSE_FROM))

    @property
    def best(self) -> list[Screened]:
        """The families found so far, best first."""
        return sorted((self.pool or {}).values(), key=lambda entry: entry.price)

    def _starts(self, until: float) -> list[FamilyDraft]:
        """Hub families, or those of a smaller max_value in proportion."""
        target, top = self.target, self.target.problem.max_value
        shapes = hub_families.shapes(target) if top <= _FEW_HUBS_UNTIL else []
        drafts = [hub_families.draft_from_hubs(target, hubs) for hubs in shapes]
        drafts += _evenly_spaced(top)
        if top > _SMALL:
            steps = math.ceil(math.log(top / _SMALL) / math.log(_LARGEST_RATIO))
            smaller = round(top / max(2, (top / _SMALL) ** (1 / steps)))
            # a limit on the number of hubs there would be another one
            target_there = replace(target.at(smaller), objective="messages")
            at_smaller = FamilyScreening(
                target_there,
                Calibration.typical(target_there),
                self.budget,
                self.rng,
                self.progress,
                f"{self.stage}, at max_value {smaller:,}",
            )
            found = at_smaller.run([], changes_at(smaller, self.budget.tries), until=until / 2)
            self.screened += at_smaller.screened
            drafts += [hub_families.rescaled(target, entry.draft) for entry in found[:_RESCALED]]
        return self.within_limits(drafts)

    def within_limits(self, drafts: Iterable[FamilyDraft | None]) -> list[FamilyDraft]:
        """The drafts and, where bits count, those with so few hubs that messages are shorter."""
        found = {draft.key: draft for draft in drafts if draft is not None}
        if self.target.objective == "bits":
            for draft in list(found.values()):
                for most in self.target.hub_limits(draft.hubs):
                    fewer = hub_families.with_fewer_hubs(self.target, draft, most)
                    if fewer is not None:
                        found.setdefault(fewer.key, fewer)
        return list(found.values())

    def solve(
        self,
        draft: FamilyDraft,
        near: Screened | None = None,
        *,
        rough: bool = False,
        give_up: float = math.inf,
    ) -> Screened:
        """Solve the program of a family, beginning with the multipliers of a similar one."""
        self._count()
        arrays = DraftArrays.of(draft)
        program = self.calibration.program(self.target, arrays.inputs, arrays.size)
        start = None if near is None else near.multipliers
        gap = self.gap * (_ROUGH_GAP if rough else 1.0)
        solution = screen(program, start, gap=gap, give_up=give_up)
        return Screened(self.target, arrays, program, solution, self.tail)

    def bound(self, draft: FamilyDraft, near: Screened) -> float:
        """A lower bound of the value of a family, from the multipliers of a similar one."""
        self._count()
        arrays = DraftArrays.of(draft)
        program = self.calibration.program(self.target, arrays.inputs, arrays.size)
        return program.bound(near.solution.pairs, near.solution.multipliers)

    def promising_moves(self, state: Screened) -> Iterator[PricedMove]:
        """List the moves whose bounds leave room for a gain, best first."""
        limit = (1 - _SMALLEST_GAIN * self.gap) * state.value
        moves = priced_moves(state.arrays, state.program, state.solution)
        return takewhile(lambda move: move.bound <= limit, moves)

    def moved(self, state: Screened, draft: FamilyDraft) -> Screened | None:
        """Solve the program of the family of ``draft``; None if it is not better."""
        found = self.solve(draft, state, give_up=state.value)
        limit = state.value * (1 - _SMALLEST_GAIN / 2 * self.gap)
        return found if found.value < limit else None

    def to_change(self) -> list[Screened]:
        """List the best families of the pool."""
        return self.best[:_NEAR_BEST]

    def take(self, changed: list[tuple[Screened, FamilyDraft]], *, until: float) -> None:
        """Improve the changed families that look promising, and add them to the pool."""

        def improved(change: tuple[Screened, FamilyDraft]) -> Screened | None:
            found = self.changed(*change)
            if found is None or self.budget.spent(until):
                return None
            return self.improved(found, until=until, patience=_LITTLE_PATIENCE)

        for entry in in_threads(improved, changed):
            if entry is not None:
                self._keep(entry)

    def explore(self, changes: int, *, until: float) -> None:
        """Make random changes, in batches that threads can share."""
        at_once = min(_AT_ONCE, max(_FEW_AT_ONCE, changes // _BATCHES))
        self.change_randomly(changes, at_once=at_once, until=until)

    def changed(self, entry: Screened, draft: FamilyDraft) -> Screened | None:
        """The family of ``draft``, a change of ``entry``, if it looks promising."""
        few = self.target.problem.max_value <= _FEW_FAMILIES_UNTIL
        limit = entry.value_at(draft) * (_FAR if few else _PROMISING)
        if draft.key == entry.draft.key or self.bound(draft, entry) > limit:
            return None
        found = self.solve(draft, entry, rough=True, give_up=limit)
        return found if found.value < limit else None

    def _count(self) -> None:
        with self.lock:
            self.screened += 1

    def _keep(self, entry: Screened) -> None:
        """Add a family to the pool."""
        pool = required(self.pool, "the pool of families")
        known = pool.get(entry.shape)
        if known is None or entry.price < known.price:
            pool[entry.shape] = entry
        if len(pool) > _POOL:
            worst = max(pool.values(), key=lambda other: other.price)
            del pool[worst.shape]

    def report(self, where: str) -> None:
        """Report where the search is, and the cost of its best family."""
        self._report(where, self.best[0])

    def _report(self, what: str, best: Screened) -> None:
        messages = best.messages * self.target.problem.dimension
        self.progress(f"{self.stage}, {what}, about {messages:,.0f} messages")


def _evenly_spaced(top: int) -> list[FamilyDraft]:
    """Families with hubs at multiples of several spacings; for very small problems, of ones."""
    spacings = {max(2, round(share * math.sqrt(top))) for share in _SPACINGS} if top > 8 else {top}
    families = [evenly_spaced_hubs(top, max(2, spacing)) for spacing in sorted(spacings)]
    return [FamilyDraft.from_family(family) for family in families]


def _improved_starts(max_value: int) -> int:
    """Number of the best starts that are improved: fewer where that takes minutes."""
    return max(2, min(_STARTS, 3000 // max_value))


def predicted(
    target: Target,
    near: FamilyDraft | None = None,
    *,
    thorough: bool = False,
    budget: Budget | None = None,
    calibration: Calibration | None = None,
) -> Screened:
    """A prediction: a good family and what it costs, from the shape of a good family for a similar
    target, or from a search, which is short unless asked otherwise."""
    calibration = calibration or Calibration.typical(target)
    screening = FamilyScreening(target, calibration, budget or Budget(), random.Random(0))
    draft = None if near is None else hub_families.rescaled(target, near)
    if near is None or thorough:
        changes = changes_at(target.problem.max_value) if thorough else _QUICK_CHANGES
        return screening.run([] if draft is None else [draft], changes, until=1.0)[0]
    drafts = screening.within_limits([*_evenly_spaced(target.problem.max_value), draft])
    found = sorted(map(screening.solve, drafts), key=lambda entry: entry.price)
    improved = [
        screening.improved(entry, until=1.0, patience=_PATIENCE) for entry in found[:_QUICK_STARTS]
    ]
    return min(improved, key=lambda entry: entry.price)


def changes_at(max_value: int, tries: int = 80) -> int:
    """Number of random changes: fewer where each takes longer, or where there are few families."""
    quick = max(1.0, min(_MOST_OFTEN, _QUICK_UNTIL / max_value))
    share = quick * min(1.0, _SMALL / max_value)
    return min(math.ceil(_CHANGES_PER_TRY * tries * share), _CHANGES_PER_PAIR * max_value**2)
