"""The search over families: hubs first, then the parts of single atoms.

Hubs are tried at a smaller max_value first, where a try takes a fraction of a second; the best ones
are scaled up.  Then single atoms change their parts as long as that pays, and hubs change again at
random.  The search is deterministic for a seed and a number of tries; a budget in seconds cuts it
short.
"""

from __future__ import annotations

import math
import random
import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import NamedTuple

from accounting.base.errors import TooLarge
from accounting.base.progress import Progress, silent
from accounting.model.family import hubs as evenly_spaced_hubs
from paramsearch.search.families import hub_families
from paramsearch.search.families.atom_moves import Move, predicted_gains
from paramsearch.search.families.family_draft import DraftKey, FamilyDraft, Parts
from paramsearch.search.families.hub_families import Hubs
from paramsearch.search.families.random_moves import random_move
from paramsearch.search.noise.noise_model import NoiseByValue, NoiseModel
from paramsearch.search.noise.noise_optimizer import Solution, optimize_noise
from paramsearch.search.target import Target

_SMALL = 48
"""Largest max_value at which hubs are tried without trying them at a smaller one first."""
_LARGEST_RATIO = 3.2
"""Largest ratio of one max_value at which hubs are tried and the one before."""
_WORTHWHILE_GAIN = 2e-4
"""Relative gain from which a move is worthwhile."""
_SPACED_UNTIL, _HUBS_UNTIL, _ATOMS_UNTIL, _RANDOM_UNTIL = 0.25, 0.6, 0.8, 0.95
"""Shares of the budget in seconds at which the four stages of a search end."""
_PROMISING_HUBS = 1.08
"""If new hubs come within this ratio of the best price, their atoms are worth improving."""
_PROMISING_MOVE = 1.01
"""A randomly changed candidate within this ratio of the best price is worth improving."""
_KEPT = 3
"""Number of the best hubs that go on to a larger max_value or to the improvement of atoms."""
_HOPELESS = 8
"""Number of hubs in a row at the beginning that may be too large before the search gives up."""
_PATIENCE = 12
"""Number of single moves in a row that may fail.  These constants are rules of thumb."""


@dataclass(frozen=True)
class Candidate:
    """A family with its best noise."""

    draft: FamilyDraft
    model: NoiseModel
    solution: Solution

    @property
    def price(self) -> float:
        """What the target minimizes."""
        alphabet = len(self.model.family.values)
        return self.model.target.price(self.solution.messages, alphabet)


class HubCandidate(NamedTuple):
    """A candidate, and the hubs of its family."""

    candidate: Candidate
    hubs: Hubs


@dataclass(frozen=True)
class Start:
    """A family to begin with, and the noise it had in a similar problem."""

    draft: FamilyDraft
    noise: NoiseByValue


@dataclass
class Budget:
    """``tries`` families, and no new one after ``seconds``."""

    tries: int = 60
    seconds: float = math.inf
    begun: float = field(default_factory=time.monotonic)

    def at(self, share: float) -> float:
        """Time of the monotonic clock when this share of the seconds has passed."""
        return self.begun + share * self.seconds

    def spent(self, share: float = 1.0) -> bool:
        return time.monotonic() > self.at(share)


class Search:
    """One search.

    Attributes:
        best: The cheapest candidate for the target so far, if there is one.
        tries: Number of families tried so far.
        prices: Prices that different starts reached in ``run``, before random changes.
    """

    def __init__(
        self,
        target: Target,
        *,
        budget: Budget,
        seed: int = 0,
        progress: Progress = silent,
    ) -> None:
        self.target, self.budget, self.progress = target, budget, progress
        self.random = random.Random(seed)
        self.best: Candidate | None = None
        self.tries = 0
        self.prices: list[float] = []

    def run(self, start: Start | None = None) -> Candidate:
        """Search from hub families of its own and, if given, from ``start``."""
        found = [] if start is None else [self.solve_start(start)]
        top = self.target.problem.max_value
        if top > 8:
            with suppress(TooLarge):  # other hubs may do
                spaced = self.solve(FamilyDraft.from_family(evenly_spaced_hubs(top)))
                found.append(self.improve_atoms(spaced, until=_SPACED_UNTIL, patience=1))
        try:
            found += self.search_hubs()
        except TooLarge:
            if not found:
                raise
        found.sort(key=lambda candidate: candidate.price)
        for candidate in found[:_KEPT]:
            self.prices.append(self.improve_atoms(candidate).price)
            if self.budget.spent(_ATOMS_UNTIL):
                break
        self.change_randomly()
        assert self.best is not None
        return self.best

    def refine(self, start: Start) -> Candidate:
        """Search only from ``start``, and only change single atoms."""
        return self.improve_atoms(self.solve_start(start))

    def solve_start(self, start: Start) -> Candidate:
        """The best noise for the family of ``start``, beginning with the noise it had."""
        model = NoiseModel(start.draft.family, self.target)
        self.tries += 1
        x = model.adapted(start.noise, model.needs_by_value())
        solution = optimize_noise(model, x, deadline=self.budget.at(1.0))
        return self._recorded(Candidate(start.draft, model, solution))

    def solve(
        self, draft: FamilyDraft, near: Candidate | None = None, *, give_up_ratio: float = 1.0
    ) -> Candidate:
        """The best noise for a family, beginning with the noise of the similar family ``near``.

        Optimization stops early when the result is unlikely to cost less than ``give_up_ratio``
        times ``near``.
        """
        model = NoiseModel(draft.family, self.target.at(draft.max_value))
        self.tries += 1
        deadline = self.budget.at(1.0)
        if near is None:
            solution = optimize_noise(model, model.first_guess(), deadline=deadline)
        else:
            known = near.model.noise_by_value(near.solution.x)
            solution = optimize_noise(
                model,
                model.adapted(known, near.model.needs_by_value()),
                tolerance=2e-3,
                steps=12,
                give_up=near.solution.messages * give_up_ratio,
                deadline=deadline,
            )
        return self._recorded(Candidate(draft, model, solution))

    def _recorded(self, candidate: Candidate) -> Candidate:
        if candidate.draft.max_value == self.target.problem.max_value and (
            self.best is None or candidate.price < self.best.price
        ):
            self.best = candidate
        return candidate

    def report(self, stage: str, found: Candidate) -> None:
        """Report the best candidate of a stage as one line of progress."""
        hubs = sorted(value for value in found.draft.parts if value < 0)[::-1]
        shown = ", ".join(map(str, hubs[:6])) + (", ..." if len(hubs) > 6 else "")
        scale = f" at max_value {found.draft.max_value}" if stage == "shapes" else ""
        family = f"hubs {shown}" if hubs else "ones"
        messages = found.solution.messages * found.model.target.problem.dimension
        self.progress(f"{stage}{scale}: {messages:,.0f} messages, {family}")

    def search_hubs(self) -> list[Candidate]:
        """The candidates with the best few hubs, best first."""
        levels = [self.target.problem.max_value]
        while levels[0] > _SMALL:
            ratio = max(2, min(_LARGEST_RATIO, levels[0] / _SMALL))
            levels.insert(0, math.ceil(levels[0] / ratio))
        tries, found = self.budget.tries, list[HubCandidate]()
        for i, top in enumerate(levels):
            until = _SPACED_UNTIL + (_HUBS_UNTIL - _SPACED_UNTIL) * (i + 1) / len(levels)
            starts = [hub_families.usual_hubs(self.target.at(top))]
            if found:
                ratio = top / levels[i - 1]
                starts = [hub_families.rescaled(entry.hubs, ratio) for entry in found[:_KEPT]]
            elif top > 5:
                starts += hub_families.hubs_sharing_a_value(top) + hub_families.single_hubs(top)
            found = self._search_hubs_at(top, starts, tries, until)
            tries = max(3, tries // 8)
        return [entry.candidate for entry in found[:_KEPT]]

    def _search_hubs_at(
        self, top: int, starts: list[Hubs], tries: int, until: float
    ) -> list[HubCandidate]:
        """Try ``starts`` and random changes of the best hubs at one max_value.

        Returns all candidates with their hubs, best first.
        """
        target = self.target.at(top)
        found: list[HubCandidate] = []
        seen: set[DraftKey] = set()
        waiting = list(starts)
        while waiting or (found and len(seen) < tries):
            if found and self.budget.spent(until):
                break
            near = None
            if waiting:
                hubs = waiting.pop(0)
            else:
                rank = min(int(self.random.expovariate(0.7)), len(found) - 1)
                near, hubs = found[rank]
                hubs = hub_families.randomly_changed(hubs, top, self.random)
            draft = hub_families.draft_from_hubs(target, hubs)
            if draft is None:
                continue
            if draft.key in seen:
                tries -= 1  # small problems have few families
                continue
            seen.add(draft.key)
            try:
                candidate = self.solve(draft, near, give_up_ratio=_PROMISING_HUBS)
            except TooLarge:
                if not found and (not waiting or len(seen) >= _HOPELESS):
                    raise
                continue
            if not found or candidate.price < _PROMISING_HUBS * found[0].candidate.price:
                candidate = self.improve_atoms(candidate, until=until, patience=1)
            found.append(HubCandidate(candidate, hub_families.hubs_of(candidate.draft)))
            found.sort(key=lambda entry: entry.candidate.price)
            self.report("shapes", found[0].candidate)
        return found

    def improve_atoms(
        self, candidate: Candidate, *, until: float = _ATOMS_UNTIL, patience: int = _PATIENCE
    ) -> Candidate:
        """Change the parts of single atoms as long as it pays.

        Many atoms change at once, then fewer; it ends when ``patience`` single moves in a row fail.
        """
        failed = 0
        tabu: set[tuple[int, Parts, Parts]] = set()
        best = candidate
        portion = 1.0
        while failed < patience and not self.budget.spent(until):
            moves = self._promising_moves(best, tabu)
            if not moves:
                break
            count = max(1, int(len(moves) * portion))
            while True:
                better = self._improved(best, moves[:count])
                if better is not None:
                    best, portion = better, min(1.0, 2 * count / len(moves))
                    self.report("atoms", best)
                    failed = 0
                    break
                if count == 1:
                    tabu.add((moves[0].value, best.draft.parts[moves[0].value], moves[0].parts))
                    portion = 1 / len(moves)
                    failed += 1
                    break
                count //= 3 if count > 3 else 2
        return best

    def _promising_moves(self, best: Candidate, tabu: set[tuple[int, Parts, Parts]]) -> list[Move]:
        """The best move of each value, if it is predicted to be worthwhile."""
        found: dict[int, Move] = {}
        for move in predicted_gains(best.draft, best.model, best.solution):
            if move.gain > -_WORTHWHILE_GAIN * best.solution.messages:
                break
            if (move.value, best.draft.parts[move.value], move.parts) not in tabu:
                found.setdefault(move.value, move)
        return list(found.values())

    def _improved(self, best: Candidate, moves: list[Move]) -> Candidate | None:
        """The candidate after all these moves, if it is better."""
        draft = best.draft.changed({move.value: move.parts for move in moves})
        if draft is None:
            return None
        try:
            candidate = self.solve(draft, best)
        except TooLarge:
            return None
        return candidate if candidate.price < best.price * (1 - _WORTHWHILE_GAIN) else None

    def change_randomly(self) -> None:
        """Make random larger changes of the best candidate, and improve those that look good."""
        seen: set[DraftKey] = set()
        for _ in range(self.budget.tries):
            best = self.best
            if best is None or self.budget.spent(_RANDOM_UNTIL):
                return
            draft = random_move(best.draft, self.random)
            if draft is None or draft.key in seen:
                continue
            seen.add(draft.key)
            try:
                found = self.solve(draft, best)
            except TooLarge:
                continue
            if found.price < best.price * _PROMISING_MOVE:
                self.improve_atoms(found, until=_RANDOM_UNTIL)
            self.report("hubs", self.best or best)
