"""The search over families by both stages.

The families that look best to the dominance program go to stage 2.  What that learns about the
radii of the active pairs calibrates the program, which searches again around the best families.
Finally single atoms change their parts, and hubs change at random, where stage 1 finds that
promising.  The search is deterministic for a seed and a number of tries; a budget in seconds cuts
it short.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import takewhile
from threading import RLock

import numpy as np

from accounting.base.errors import TooLarge, required
from accounting.base.progress import Progress, silent
from accounting.base.threads import in_threads
from accounting.model.costs import central_messages
from paramsearch.search.budget import Budget
from paramsearch.search.candidate import Candidate, Start
from paramsearch.search.dominance.calibration import Calibration, TailCorrection
from paramsearch.search.effort import Effort
from paramsearch.search.families.family_draft import DraftKey, FamilyDraft
from paramsearch.search.family_screening import FamilyScreening
from paramsearch.search.noise.atom_moves import Move, predicted_gains
from paramsearch.search.noise.evidence import evidence_of
from paramsearch.search.noise.noise_model import NoiseModel
from paramsearch.search.noise.noise_optimizer import Solution, optimize_noise
from paramsearch.search.noise.tied_laws import tied_laws
from paramsearch.search.screened_family import Screened
from paramsearch.search.settings import SearchSettings
from paramsearch.search.stage import Stage
from paramsearch.search.target import Target

_NO_FAMILY_FITS = (
    "no family fits into the tables of the estimates: this problem needs too much noise; take a "
    "larger eps, or another share of it for the central noise"
)


@dataclass
class Search(Stage[Candidate]):
    """A search for the cheapest noise of one target.

    Attributes:
        target: What is searched for.
        budget: How long to search.
        seed: Determines the random changes.
        progress: Called with one line of text now and then.
        best: The cheapest candidate so far, if there is one.
        tries: Number of families that stage 2 solved so far.
        prices: Prices that different starts reached in ``run``, before random changes.
        solved: The families that both stages solved to the end.
        stage_1: The family that stage 1 chose, with its program solved by cvxpy.
        settings: How to search.
    """

    target: Target
    budget: Budget
    seed: int = 0
    progress: Progress = silent
    best: Candidate | None = None
    tries: int = 0
    prices: list[float] = field(default_factory=list)
    solved: list[tuple[Screened, Candidate]] = field(default_factory=list)
    stage_1: Screened | None = None
    settings: SearchSettings = field(default_factory=SearchSettings)

    def __post_init__(self) -> None:
        self.rng = random.Random(self.seed)
        self.lock = RLock()  # held while threads change the best candidate, or report it
        self.ratios: list[float] = []  # of stage 2 to stage 1, as logarithms, for ``solved``
        self.good: list[Candidate] = []  # what random changes begin with, best first
        self.values: dict[DraftKey, Screened] = {}  # of stage 1, for families that are changed
        self.seen: set[DraftKey] = set()  # families that random changes have tried
        self.passed = self.planned = 0  # families that stage 1 passed on, so far and in all rounds
        self.screening = FamilyScreening(
            self.target,
            Calibration.typical(self.target),
            self.budget,
            self.rng,
            self.progress,
        )

    def findings(self) -> dict[str, float | int]:
        """Return what the provenance of a file says about its search: families of both stages, and
        how well stage 1 predicted the messages of stage 2."""
        found: dict[str, float | int] = {
            "families": self.tries,
            "screened": self.screening.screened,
        }
        if self.stage_1 is not None:
            found["stage_1_messages"] = round(self.stage_1.messages, 1)
            found["stage_1_gap"] = float(f"{self.stage_1.solution.gap:.1e}")
        both = [(entry.messages, other.solution.messages) for entry, other in self.solved]
        if both:
            found["stage_2_per_stage_1"] = round(both[0][1] / both[0][0], 4)
        if len(both) >= self.settings.fewest_ranked:
            found["stage_1_rank_correlation"] = round(rank_correlation(both), 3)
        return found

    def run(self, start: Start | None = None, drafts: Sequence[FamilyDraft] = ()) -> Candidate:
        """Search from hub families, from ``drafts`` and, if given, from ``start``."""
        top, tries = self.target.problem.max_value, self.budget.tries
        effort = Effort.at(top, tries)
        found = [] if start is None else [self.solve_start(start)]
        if top == 1:
            found.append(self.solve(FamilyDraft(1, {})))
        else:
            first = [] if start is None else [start.draft]
            found += self._screened([*first, *drafts], effort)
        found.sort(key=lambda candidate: candidate.price)
        improved = in_threads(
            lambda candidate: self.improved(
                candidate, until=self.settings.atoms_until, patience=effort.patience
            ),
            found[: effort.improved],
        )
        self.prices += [candidate.price for candidate in improved]
        if top > 1:
            self.good = sorted(improved, key=lambda candidate: candidate.price)
            self.change_randomly(
                effort.changes, at_once=self.settings.at_once, until=self.settings.random_until
            )
        if self.best is None:
            raise TooLarge(_NO_FAMILY_FITS)
        return self.best

    def _screened(self, drafts: list[FamilyDraft], effort: Effort) -> list[Candidate]:
        """Find the noise of the best families of stage 1.

        What stage 2 learns in one round calibrates stage 1 for the next.
        """
        changes = self.screening.settings.changes(self.target.problem.max_value, self.budget.tries)
        in_round = math.ceil(changes / effort.rounds)
        self.screening.stage = f"stage 1, round 1/{effort.rounds}"
        families = self.screening.run(drafts, in_round, until=self._screening_until(0, effort))
        if not self.budget.spent(self.settings.screening_until):
            families[0] = families[0].exact()
        self.stage_1 = families[0]
        self.progress(
            f"stage 1: {self.screening.screened:,} families, about "
            f"{self.stage_1.messages:,.0f} messages (gap {self.stage_1.solution.gap:.0e})"
        )
        self.planned = effort.rounds * min(len(families), effort.families)
        found = self._solve_all(families[: effort.families])
        for number in range(1, effort.rounds):
            if self.best is None or self.budget.spent(self.settings.solving_until):
                break
            learned = evidence_of(self.best.solution)
            self.screening.stage = f"stage 1, round {number + 1}/{effort.rounds}"
            self.screening.recalibrate(self.screening.calibration.learned(learned), self._tail())
            self.screening.explore(in_round, until=self._screening_until(number, effort))
            known = {candidate.draft.key for candidate in found}
            again = [entry for entry in self.screening.best if entry.draft.key not in known]
            found += self._solve_all(again[: effort.families])
        return found

    def _screening_until(self, number: int, effort: Effort) -> float:
        """Return the share of the budget at which stage 1 ends in a round."""
        first, last = self.settings.screening_until, self.settings.solving_until
        return first + (last - first) * number / effort.rounds

    def _tail(self) -> TailCorrection | None:
        """Fit the correction for heavy tails to the families that both stages solved, if there are
        enough."""
        central = central_messages(self.target.step)
        latest = self.solved[len(self.ratios) :]
        logs = [math.log((c.solution.messages - central) / e.value) for e, c in latest]
        # only differences within a round count: each has a calibration of its own
        self.ratios += [log - sum(logs) / len(logs) for log in logs]
        if len(self.solved) < self.settings.fewest_ranked:
            return None
        concentrations = [entry.concentration for entry, _ in self.solved]
        return TailCorrection.fitted(concentrations, np.exp(self.ratios).tolist())

    def _solve_all(self, families: list[Screened]) -> list[Candidate]:
        """Find the noise of several families; leave out those that are too large."""
        found: list[Candidate] = []
        for begin in range(0, len(families), self.settings.at_once):
            entries = families[begin : begin + self.settings.at_once]
            solved = in_threads(partial(self._tried, near=self.best if found else None), entries)
            for entry, candidate in zip(entries, solved, strict=True):
                if candidate is not None:
                    found.append(candidate)
                    if not candidate.solution.gave_up:
                        self.solved.append((entry, candidate))
            if self.budget.spent(self.settings.solving_until):
                break
        if self.best is None:
            raise TooLarge(_NO_FAMILY_FITS)
        return found

    def _tried(self, entry: Screened, *, near: Candidate | None) -> Candidate | None:
        """Find the noise of a family; None if it is too large or the time is over."""
        if self.best is not None and self.budget.spent(self.settings.solving_until):
            return None
        try:
            candidate = self.solve_screened(entry, near)
        except TooLarge:
            return None
        with self.lock:
            self.passed += 1
            off_by = 100 * (entry.messages / candidate.solution.messages - 1)
            self.progress(
                f"stage 2, family {self.passed} of {self.planned}, best {self.best_in_words()}, "
                f"stage 1 was {off_by:+.1f}% off"
            )
        return candidate

    def refine(self, start: Start) -> Candidate:
        """Search only from ``start``, and only change single atoms."""
        return self.improved(
            self.solve_start(start),
            until=self.settings.atoms_until,
            patience=self.settings.patience,
        )

    def solve_start(self, start: Start) -> Candidate:
        """Find the best noise for the family of ``start``, beginning with the noise that it had."""
        model = NoiseModel(start.draft.family, self.target)
        x = start.noise_for(model)
        return self._solved(start.draft, optimize_noise(model, x, deadline=self.budget.at(1.0)))

    def solve_screened(self, entry: Screened, near: Candidate | None = None) -> Candidate:
        """Find the best noise for a family, beginning with the noise of stage 1.

        Optimization stops early when the result is unlikely to come close to ``near``.
        """
        noise = entry.noise(self.screening.calibration)
        model = NoiseModel(entry.draft.family, self.target)
        used = {part for parts in entry.draft.parts.values() for part in parts}
        law = tied_laws(model, used, noise)
        if law is not None:
            model = NoiseModel(model.family, self.target, law)
        log_noise = np.array([noise[value] for value in model.defined_values]).T
        give_up = self.settings.give_up
        solution = optimize_noise(
            model,
            model.tied(log_noise),
            give_up=math.inf if near is None else near.messages_at(entry.draft) * give_up,
            deadline=self.budget.at(1.0),
            progress=self.progress,
        )
        return self._solved(entry.draft, solution)

    def solve(self, draft: FamilyDraft, near: Candidate | None = None) -> Candidate:
        """Find the best noise for a family, beginning with the noise of the similar family
        ``near``.

        Optimization stops early when the result is unlikely to cost less than ``near``.
        """
        model = NoiseModel(draft.family, self.target)
        deadline = self.budget.at(1.0)
        if near is None:
            return self._solved(
                draft, optimize_noise(model, model.first_guess(), deadline=deadline)
            )
        known = near.model.noise_by_value(near.solution.x)
        solution = optimize_noise(
            model,
            model.adapted(known, near.model.needs_by_value()),
            tolerance=2e-3,
            steps=12,
            give_up=near.messages_at(draft),
            deadline=deadline,
        )
        return self._solved(draft, solution)

    def _solved(self, draft: FamilyDraft, solution: Solution) -> Candidate:
        candidate = Candidate(draft, solution)
        with self.lock:
            self.tries += 1
            if self.best is None or candidate.price < self.best.price:
                self.best = candidate
        return candidate

    def best_in_words(self) -> str:
        """Return the cost of the best candidate in words."""
        best = required(self.best, "the best candidate")
        messages = best.solution.messages * self.target.problem.dimension
        return f"{messages:,.0f} messages"

    def report(self, where: str) -> None:
        """Report where the search is, and the cost of its best candidate."""
        if self.best is not None:
            self.progress(f"stage 2, {where}, best {self.best_in_words()}")

    def promising_moves(self, state: Candidate) -> Iterator[Move]:
        """List the moves that are predicted to be worthwhile, best first."""
        limit = -self.settings.worthwhile_gain * state.solution.messages
        moves = predicted_gains(state.draft, state.model, state.solution)
        return takewhile(lambda move: move.gain <= limit, moves)

    def moved(self, state: Candidate, draft: FamilyDraft) -> Candidate | None:
        """Find the noise of the family of ``draft``; None if it does not cost less."""
        try:
            candidate = self.solve(draft, state)
        except TooLarge:
            return None
        if candidate.price >= state.price * (1 - self.settings.worthwhile_gain):
            return None
        self.report("changing single atoms")
        return candidate

    def to_change(self) -> list[Candidate]:
        """List the best candidates so far, as many as were improved before random changes."""
        return self.good

    def take(self, changed: list[tuple[Candidate, FamilyDraft]], *, until: float) -> None:
        """Solve the changed families that stage 1 finds about as good as before, and improve those
        that are good."""
        drawn = []
        for base, draft in changed:
            if base.draft.key not in self.values:
                self.values[base.draft.key] = self.screening.solve(base.draft)
            if draft.key not in self.seen:
                self.seen.add(draft.key)
                drawn.append((base, self.values[base.draft.key], draft))
        screened = in_threads(lambda change: self._screened_change(*change[1:], until), drawn)
        promising = []
        for (base, _, _), entry in zip(drawn, screened, strict=True):
            if entry is not None and entry.draft.key not in self.seen:
                self.seen.add(entry.draft.key)
                promising.append((base, entry.draft))
        found = in_threads(lambda change: self._changed(*change, until), promising)
        better = [candidate for candidate in found if candidate is not None]
        kept = len(self.good)
        self.good = sorted([*self.good, *better], key=lambda other: other.price)[:kept]

    def _screened_change(self, base: Screened, draft: FamilyDraft, until: float) -> Screened | None:
        """Improve the family of ``draft`` by stage 1; None unless it is about as good as before."""
        found = self.screening.changed(base, draft)
        if found is None:
            return None
        found = self.screening.improved(found, until=until, patience=1)
        limit = base.messages_at(found.draft) * self.settings.similar
        return found if found.messages <= limit else None

    def _changed(self, base: Candidate, draft: FamilyDraft, until: float) -> Candidate | None:
        """Find the noise of ``draft``, a change of ``base``, and improve it; None if that is not
        worthwhile."""
        if self.budget.spent(until):
            return None
        try:
            candidate = self.solve(draft, base)
        except TooLarge:
            return None
        if candidate.price >= base.price * self.settings.promising:
            return None
        return self.improved(candidate, until=until, patience=1)


def rank_correlation(pairs: Sequence[tuple[float, float]]) -> float:
    """Return Spearman's correlation of the first and the second numbers."""
    first, second = (np.argsort(np.argsort(values)) for values in zip(*pairs, strict=True))
    return float(np.corrcoef(first, second)[0, 1])
