"""The search over families: hubs first, then the parts of single atoms.

Hubs are tried at a smaller max_value first, where a try takes a fraction of a second; the best ones
are scaled up.  Then single atoms change their parts as long as that pays, and hubs move again.  The
search is deterministic for a seed and a number of tries; a budget in seconds cuts it short.
"""

from __future__ import annotations

import math
import random
import time
from contextlib import suppress
from dataclasses import dataclass, field

from accounting.base.errors import TooLarge
from accounting.base.progress import Progress, silent
from accounting.model.family import hubs as hub_family
from paramsearch.search.families import hub_families as shapes
from paramsearch.search.families.atom_moves import Move, foretell
from paramsearch.search.families.family_draft import Draft, Parts
from paramsearch.search.families.hub_families import Hubs
from paramsearch.search.families.random_moves import shaken
from paramsearch.search.noise.noise_model import Model, Noise
from paramsearch.search.noise.noise_optimizer import Solution, minimise
from paramsearch.search.target import Target

_SMALL = 48
"""Shapes of larger problems are looked for at this max_value or a little below."""
_RISE = 3.2
"""The next larger max_value has at most this ratio."""
_WORTH = 2e-4
"""Relative gain that is worth a move."""
_SPACED, _SHAPES, _MOVING, _SHAKING = 0.25, 0.6, 0.8, 0.95
"""Shares of the budget at which these stages end."""
_NEAR = 1.01
"""A shaken candidate within this ratio of the best is worth moving."""
_KEPT = 3
"""Shapes that are taken to a larger max_value."""
_HOPELESS = 8
"""So many shapes that are too large are enough to give up."""
_PATIENCE = 12
"""Single moves in a row that may fail."""
_PROMISING = 1.08
"""A shape within this ratio of the best is worth moving its atoms."""


@dataclass(frozen=True)
class Candidate:
    """A family with its best noise."""

    draft: Draft
    model: Model
    solution: Solution

    @property
    def price(self) -> float:
        alphabet = len(self.model.family.values)
        return self.model.target.price(self.solution.messages, alphabet)


@dataclass(frozen=True)
class Start:
    """A family to begin from, with the noise it had in a problem near by."""

    draft: Draft
    noise: Noise


@dataclass
class Budget:
    """``tries`` families, and no new one after ``seconds``."""

    tries: int = 60
    seconds: float = math.inf
    begun: float = field(default_factory=time.monotonic)

    def at(self, share: float) -> float:
        return self.begun + share * self.seconds

    def spent(self, share: float = 1.0) -> bool:
        return time.monotonic() > self.at(share)


class Search:
    """One run; ``best`` is the cheapest candidate for the target so far, if there is one."""

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
        self.ends: list[float] = []

    def run(self, start: Start | None = None) -> Candidate:
        """From shapes that this run looks for by itself, and from ``start``."""
        found = [] if start is None else [self.begin(start)]
        top = self.target.problem.max_value
        if top > 8:
            with suppress(TooLarge):  # another shape may do
                spaced = self.solve(Draft.from_family(hub_family(top)))
                found.append(self.move(spaced, until=_SPACED, patience=1))
        try:
            found += self.shapes()
        except TooLarge:
            if not found:
                raise
        found.sort(key=lambda candidate: candidate.price)
        for candidate in found[:_KEPT]:
            self.ends.append(self.move(candidate).price)
            if self.budget.spent(_MOVING):
                break
        self.shake()
        assert self.best is not None
        return self.best

    def near(self, start: Start) -> Candidate:
        """Only from ``start``: its family, and changes of single atoms."""
        return self.move(self.begin(start))

    def begin(self, start: Start) -> Candidate:
        """The best noise for the family, from the noise it had."""
        model = Model(start.draft.family, self.target)
        self.tries += 1
        x = model.start(start.noise, model.needs())
        solution = minimise(model, x, deadline=self.budget.at(1.0))
        return self._seen(Candidate(start.draft, model, solution))

    def solve(self, draft: Draft, near: Candidate | None = None, *, room: float = 1.0) -> Candidate:
        """The best noise for a family, from the noise of a family near it; less exact where it will
        hardly cost less than ``room`` times that one."""
        # a smaller problem with the same eps_central has the same slacks
        target = self.target.at(draft.max_value)
        model = Model(draft.family, target)
        self.tries += 1
        if near is None:
            solution = minimise(model, model.start(), deadline=self.budget.at(1.0))
            return self._seen(Candidate(draft, model, solution))
        x = model.start(near.model.noise(near.solution.x), near.model.needs())
        solution = minimise(
            model,
            x,
            tolerance=2e-3,
            steps=12,
            give_up=near.solution.messages * room,
            deadline=self.budget.at(1.0),
        )
        return self._seen(Candidate(draft, model, solution))

    def _seen(self, candidate: Candidate) -> Candidate:
        if candidate.draft.max_value == self.target.problem.max_value and (
            self.best is None or candidate.price < self.best.price
        ):
            self.best = candidate
        return candidate

    def tell(self, stage: str, found: Candidate) -> None:
        """One line about the best candidate of a stage, for whoever waits."""
        hubs = sorted(value for value in found.draft.parts if value < 0)[::-1]
        shown = ", ".join(map(str, hubs[:6])) + (", ..." if len(hubs) > 6 else "")
        scale = f" at max_value {found.draft.max_value}" if stage == "shapes" else ""
        family = f"hubs {shown}" if hubs else "ones"
        messages = found.solution.messages * found.model.target.problem.dimension
        self.progress(f"{stage}{scale}: {messages:,.0f} messages, {family}")

    def shapes(self) -> list[Candidate]:
        """The best few shapes, best first."""
        levels = [self.target.problem.max_value]
        while levels[0] > _SMALL:
            levels.insert(0, math.ceil(levels[0] / max(2, min(_RISE, levels[0] / _SMALL))))
        tries, found = self.budget.tries, list[tuple[Candidate, Hubs]]()
        for i, top in enumerate(levels):
            until = _SPACED + (_SHAPES - _SPACED) * (i + 1) / len(levels)
            starts = [shapes.first(self.target.at(top))]
            if found:
                starts = [shapes.scaled(hubs, top / levels[i - 1]) for _, hubs in found[:_KEPT]]
            elif top > 5:
                starts += shapes.cored(top) + shapes.single(top)
            found = self._climb(starts, top, tries, until)
            tries = max(3, tries // 8)
        return [candidate for candidate, _ in found[:_KEPT]]

    def _climb(
        self, starts: list[Hubs], top: int, tries: int, share: float
    ) -> list[tuple[Candidate, Hubs]]:
        """Random changes of the best hubs at one max_value; the best candidates, best first."""
        target = self.target.at(top)
        found: list[tuple[Candidate, Hubs]] = []
        seen: set[tuple[tuple[int, Parts], ...]] = set()
        waiting = list(starts)
        while waiting or (found and len(seen) < tries):
            if found and self.budget.spent(share):
                break
            near = None
            if waiting:
                hubs = waiting.pop(0)
            else:
                place = min(int(self.random.expovariate(0.7)), len(found) - 1)
                near, hubs = found[place]
                hubs = shapes.mutated(hubs, top, self.random)
            draft = shapes.draft(target, hubs)
            if draft is None:
                continue
            key = draft.key
            if key in seen:
                tries -= 1  # small problems have few shapes
                continue
            seen.add(key)
            try:
                candidate = self.solve(draft, near, room=_PROMISING)
            except TooLarge:
                if not found and (not waiting or len(seen) >= _HOPELESS):
                    raise
                continue
            if not found or candidate.price < _PROMISING * found[0][0].price:
                candidate = self.move(candidate, until=share, patience=1)
            found.append((candidate, shapes.inside(candidate.draft)))
            found.sort(key=lambda entry: entry[0].price)
            self.tell("shapes", found[0][0])
        return found

    def move(
        self, candidate: Candidate, *, until: float = _MOVING, patience: int = _PATIENCE
    ) -> Candidate:
        """Change the parts of single atoms as long as it pays: many at once, then fewer; until so
        many single ones in a row did not."""
        failed = 0
        tabu: set[tuple[int, Parts, Parts]] = set()
        best = candidate
        portion = 1.0
        while failed < patience and not self.budget.spent(until):
            moves = self._promising(best, tabu)
            if not moves:
                break
            count = max(1, int(len(moves) * portion))
            while True:
                better = self._moved(best, moves[:count])
                if better is not None:
                    best, portion = better, min(1.0, 2 * count / len(moves))
                    self.tell("atoms", best)
                    failed = 0
                    break
                if count == 1:
                    tabu.add((moves[0].value, best.draft.parts[moves[0].value], moves[0].parts))
                    portion = 1 / len(moves)
                    failed += 1
                    break
                count //= 3 if count > 3 else 2
        return best

    def shake(self) -> None:
        """Random larger changes of the best candidate, moved on where they look good."""
        seen: set[tuple[tuple[int, Parts], ...]] = set()
        for _ in range(self.budget.tries):
            best = self.best
            if best is None or self.budget.spent(_SHAKING):
                return
            draft = shaken(best.draft, self.random)
            if draft is None or draft.key in seen:
                continue
            seen.add(draft.key)
            try:
                found = self.solve(draft, best)
            except TooLarge:
                continue
            if found.price < best.price * _NEAR:
                self.move(found, until=_SHAKING)
            self.tell("hubs", self.best or best)

    def _promising(self, best: Candidate, tabu: set[tuple[int, Parts, Parts]]) -> list[Move]:
        """Per value the best move that is foretold to pay."""
        found: dict[int, Move] = {}
        for move in foretell(best.draft, best.model, best.solution):
            if move.gain > -_WORTH * best.solution.messages:
                break
            if (move.value, best.draft.parts[move.value], move.parts) not in tabu:
                found.setdefault(move.value, move)
        return list(found.values())

    def _moved(self, best: Candidate, moves: list[Move]) -> Candidate | None:
        draft = best.draft.changed({move.value: move.parts for move in moves})
        if draft is None:
            return None
        try:
            candidate = self.solve(draft, best)
        except TooLarge:
            return None
        return candidate if candidate.price < best.price * (1 - _WORTH) else None
