"""The search over families by stage 1, which screens thousands of them in seconds.

From several starts, single atoms change their parts as long as the dominance program gains; then
hubs change at random, and what looks promising is improved again.  Large problems begin with the
shapes that are best at a smaller max_value.  The result is a pool of families that are good and
different, for stage 2.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import takewhile
from threading import Lock

from accounting.base.errors import required
from accounting.base.progress import Progress, silent
from accounting.base.threads import in_threads
from accounting.model.family import hubs as evenly_spaced_hubs
from paramsearch.request import DEFAULT_TRIES
from paramsearch.search.budget import Budget
from paramsearch.search.dominance.calibration import Calibration, TailCorrection
from paramsearch.search.dominance.draft_arrays import DraftArrays
from paramsearch.search.dominance.priced_moves import PricedMove, priced_moves
from paramsearch.search.dominance.screening import screen
from paramsearch.search.families import hub_families
from paramsearch.search.families.family_draft import FamilyDraft, Parts
from paramsearch.search.screened_family import Screened
from paramsearch.search.settings import ScreeningSettings
from paramsearch.search.stage import Stage
from paramsearch.search.target import Target


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
        settings: How to search.
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
    settings: ScreeningSettings = field(default_factory=ScreeningSettings)
    lock: Lock = field(default_factory=Lock, repr=False)

    def recalibrate(self, calibration: Calibration, tail: TailCorrection | None = None) -> None:
        """Solve the program of the families found so far with other assumptions."""
        self.calibration, self.tail = calibration, tail or self.tail
        found = in_threads(
            lambda entry: self.solve(entry.draft, entry), self.best[: self.settings.near_best]
        )
        self.pool = {entry.shape: entry for entry in found}

    def run(self, starts: Iterable[FamilyDraft], changes: int, *, until: float) -> list[Screened]:
        """Search from ``starts`` and from hub families, and make this number of random changes.

        Returns families with different hubs, best first.
        """
        self.pool = {}
        found = in_threads(self.solve, [*starts, *self._starts(until)])
        found.sort(key=lambda entry: entry.price)
        good = found[: self.settings.improved_starts(self.target.problem.max_value)]
        self._report(f"improving {len(good)} of {len(found)} starts", found[0])
        patience = self.settings.patience
        found = in_threads(lambda entry: self.improved(entry, until=until, patience=patience), good)
        self.tail = TailCorrection(min(found, key=lambda entry: entry.value).concentration)
        for entry in found:
            self._keep(replace(entry, tail=self.tail))
        self.explore(changes, until=until)
        return self.best

    @cached_property
    def gap(self) -> float:
        """Relative duality gap: coarser where solutions take longer."""
        return self.settings.gap_at(self.target.problem.max_value)

    @property
    def best(self) -> list[Screened]:
        """The families found so far, best first."""
        return sorted((self.pool or {}).values(), key=lambda entry: entry.price)

    def _starts(self, until: float) -> list[FamilyDraft]:
        """List hub families, or the families of a smaller max_value in proportion."""
        target, top, settings = self.target, self.target.problem.max_value, self.settings
        shapes = hub_families.shapes(target) if top <= settings.few_hubs_until else []
        drafts = [hub_families.draft_from_hubs(target, hubs) for hubs in shapes]
        drafts += _evenly_spaced(top, settings.spacings)
        if top > settings.small:
            ratio = top / settings.small
            steps = math.ceil(math.log(ratio) / math.log(settings.largest_ratio))
            smaller = round(top / max(2, ratio ** (1 / steps)))
            # a limit on the number of hubs there would be another one
            target_there = replace(target.at(smaller), objective="messages")
            at_smaller = FamilyScreening(
                target_there,
                Calibration.typical(target_there),
                self.budget,
                self.rng,
                self.progress,
                f"{self.stage}, at max_value {smaller:,}",
                settings=settings,
            )
            changes = settings.changes(smaller, self.budget.tries)
            found = at_smaller.run([], changes, until=until / 2)
            self.screened += at_smaller.screened
            drafts += [
                hub_families.rescaled(target, entry.draft) for entry in found[: settings.rescaled]
            ]
        return self.within_limits(drafts)

    def within_limits(self, drafts: Iterable[FamilyDraft | None]) -> list[FamilyDraft]:
        """Add to the drafts, where bits count, similar ones with so few hubs that messages are
        shorter."""
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
        gap = self.gap * (self.settings.rough_gap if rough else 1.0)
        solution = screen(program, start, gap=gap, give_up=give_up)
        return Screened(self.target, arrays, program, solution, self.tail)

    def bound(self, draft: FamilyDraft, near: Screened) -> float:
        """Return a lower bound on the value of a family, from the multipliers of a similar one."""
        self._count()
        arrays = DraftArrays.of(draft)
        program = self.calibration.program(self.target, arrays.inputs, arrays.size)
        return program.bound(near.solution.pairs, near.solution.multipliers)

    def promising_moves(self, state: Screened) -> Iterator[PricedMove]:
        """List the moves whose bounds leave room for a gain, best first."""
        limit = (1 - self.settings.smallest_gain * self.gap) * state.value
        moves = priced_moves(state.arrays, state.program, state.solution)
        return takewhile(lambda move: move.bound <= limit, moves)

    def moved(self, state: Screened, draft: FamilyDraft) -> Screened | None:
        """Solve the program of the family of ``draft``; None if it is not better."""
        found = self.solve(draft, state, give_up=state.value)
        limit = state.value * (1 - self.settings.smallest_gain / 2 * self.gap)
        return found if found.value < limit else None

    def to_change(self) -> list[Screened]:
        """List the best families of the pool."""
        return self.best[: self.settings.near_best]

    def take(self, changed: list[tuple[Screened, FamilyDraft]], *, until: float) -> None:
        """Improve the changed families that look promising, and add them to the pool."""

        def improved(change: tuple[Screened, FamilyDraft]) -> Screened | None:
            found = self.changed(*change)
            if found is None or self.budget.spent(until):
                return None
            return self.improved(found, until=until, patience=self.settings.little_patience)

        for entry in in_threads(improved, changed):
            if entry is not None:
                self._keep(entry)

    def explore(self, changes: int, *, until: float) -> None:
        """Make random changes, in batches that threads can share."""
        self.change_randomly(changes, at_once=self.settings.batch(changes), until=until)

    def changed(self, entry: Screened, draft: FamilyDraft) -> Screened | None:
        """Solve the program of ``draft``, a change of ``entry``; None unless it looks promising."""
        settings = self.settings
        few = self.target.problem.max_value <= settings.few_families_until
        limit = entry.value_at(draft)
        limit *= settings.promising_among_few if few else settings.promising
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
        if len(pool) > self.settings.pool:
            worst = max(pool.values(), key=lambda other: other.price)
            del pool[worst.shape]

    def report(self, where: str) -> None:
        """Report where the search is, and the cost of its best family."""
        self._report(where, self.best[0])

    def _report(self, what: str, best: Screened) -> None:
        messages = best.messages * self.target.problem.dimension
        self.progress(f"{self.stage}, {what}, about {messages:,.0f} messages")


def _evenly_spaced(top: int, shares: Sequence[float]) -> list[FamilyDraft]:
    """Build families with hubs at multiples of several spacings, or of ones if there are few."""
    spacings = {max(2, round(share * math.sqrt(top))) for share in shares} if top > 8 else {top}
    families = [evenly_spaced_hubs(top, max(2, spacing)) for spacing in sorted(spacings)]
    return [FamilyDraft.from_family(family) for family in families]


def predicted(
    target: Target,
    near: FamilyDraft | None = None,
    *,
    thorough: bool = False,
    budget: Budget | None = None,
    calibration: Calibration | None = None,
) -> Screened:
    """Predict a good family and its cost, from the shape of a good family for a similar target, or
    from a search, which is short unless asked otherwise."""
    calibration = calibration or Calibration.typical(target)
    screening = FamilyScreening(target, calibration, budget or Budget(), random.Random(0))
    draft = None if near is None else hub_families.rescaled(target, near)
    if near is None or thorough:
        top, settings = target.problem.max_value, screening.settings
        changes = settings.changes(top, DEFAULT_TRIES) if thorough else settings.quick_changes
        return screening.run([] if draft is None else [draft], changes, until=1.0)[0]
    settings = screening.settings
    evenly = _evenly_spaced(target.problem.max_value, settings.spacings)
    drafts = screening.within_limits([*evenly, draft])
    found = sorted(map(screening.solve, drafts), key=lambda entry: entry.price)
    improved = [
        screening.improved(entry, until=1.0, patience=settings.patience)
        for entry in found[: settings.quick_starts]
    ]
    return min(improved, key=lambda entry: entry.price)
