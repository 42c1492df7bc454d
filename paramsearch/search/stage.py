"""The loops that both stages of the search share: change single atoms, change hubs at random."""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Generic, Protocol, TypeVar

from accounting.base.deadline import check_time
from paramsearch.search.budget import Budget
from paramsearch.search.families.family_draft import FamilyDraft, Parts
from paramsearch.search.families.random_moves import random_move


class AtomMove(Protocol):
    """New parts for the atom of a value."""

    @property
    def value(self) -> int: ...
    @property
    def parts(self) -> Parts: ...


class Drafted(Protocol):
    """A family that a stage has solved."""

    @property
    def draft(self) -> FamilyDraft: ...


State = TypeVar("State", bound=Drafted)


class Stage(ABC, Generic[State]):
    """A way to solve and to compare families.

    Attributes:
        budget: When to stop.
        rng: The source of random changes.
    """

    budget: Budget
    rng: random.Random

    @abstractmethod
    def promising_moves(self, state: State) -> Iterable[AtomMove]:
        """List the changes of single atoms that may be worthwhile, best first."""

    @abstractmethod
    def moved(self, state: State, draft: FamilyDraft) -> State | None:
        """Solve the family of ``draft``, which differs from ``state`` in a few atoms; None if it is
        not better."""

    @abstractmethod
    def to_change(self) -> Sequence[State]:
        """List the families that random changes begin with, best first."""

    @abstractmethod
    def take(self, changed: list[tuple[State, FamilyDraft]], *, until: float) -> None:
        """Solve families after random changes, and keep what is good."""

    @abstractmethod
    def report(self, where: str) -> None:
        """Report where the search is, and its best family."""

    def improved(self, state: State, *, until: float, patience: int) -> State:
        """Change the parts of single atoms as long as it pays: many at once, then fewer.

        Args:
            state: Where to begin.
            until: Share of the budget after which no change is tried.
            patience: Number of single moves in a row that may fail.

        Returns:
            The best family on the way.
        """
        failed = 0
        tabu: set[tuple[int, Parts, Parts]] = set()
        share = 1.0
        while failed < patience and not self.budget.spent(until):
            check_time()
            parts = state.draft.parts
            best: dict[int, AtomMove] = {}
            for move in self.promising_moves(state):
                if (move.value, parts[move.value], move.parts) not in tabu:
                    best.setdefault(move.value, move)
            moves = list(best.values())
            if not moves:
                break
            count = max(1, int(len(moves) * share))
            while True:
                draft = state.draft.changed({move.value: move.parts for move in moves[:count]})
                better = None if draft is None else self.moved(state, draft)
                if better is not None:
                    state, share, failed = better, min(1.0, 2 * count / len(moves)), 0
                    break
                if count == 1:
                    tabu.add((moves[0].value, parts[moves[0].value], moves[0].parts))
                    share = 1 / len(moves)
                    failed += 1
                    break
                count //= 3 if count > 3 else 2
        return state

    def change_randomly(self, changes: int, *, at_once: int, until: float) -> None:
        """Change the hubs of good families at random.

        Args:
            changes: Number of changes.
            at_once: Number of changes that begin with the same good families, for threads to share.
            until: Share of the budget after which no change is tried.
        """
        for done in range(0, changes, at_once):
            good = self.to_change()
            if not good or self.budget.spent(until):
                return
            count = min(at_once, changes - done)
            self.take([self._random_change(good) for _ in range(count)], until=until)
            self.report(f"random change {done + count:,} of {changes:,}")

    def _random_change(self, good: Sequence[State]) -> tuple[State, FamilyDraft]:
        """Pick one of the families, and make one or two random moves."""
        state = good[min(int(self.rng.expovariate(1.0)), len(good) - 1)]
        draft = state.draft
        for _ in range(self.rng.choice((1, 1, 2))):
            draft = random_move(draft, self.rng) or draft
        return state, draft
