"""A descent over families in which single atoms change their parts, in either stage."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol, TypeVar

from accounting.base.deadline import check_time
from paramsearch.search.families.family_draft import FamilyDraft, Parts


class AtomMove(Protocol):
    """New parts for the atom of a value."""

    @property
    def value(self) -> int: ...
    @property
    def parts(self) -> Parts: ...


class Drafted(Protocol):
    """Something with the draft of a family."""

    @property
    def draft(self) -> FamilyDraft: ...


State = TypeVar("State", bound=Drafted)
SomeMove = TypeVar("SomeMove", bound=AtomMove)


def descend(
    state: State,
    promising: Callable[[State], Iterable[SomeMove]],
    moved: Callable[[State, list[SomeMove]], State | None],
    *,
    patience: int,
    ended: Callable[[], bool],
) -> State:
    """Change the parts of single atoms as long as it pays.

    Many atoms change at once, then fewer.

    Args:
        state: Where to begin.
        promising: The moves that may pay, best first.
        moved: The state after all of some moves, if it is better.
        patience: Number of single moves in a row that may fail.
        ended: Whether the time is over.
    """
    failed = 0
    tabu: set[tuple[int, Parts, Parts]] = set()
    share = 1.0
    while failed < patience and not ended():
        check_time()
        parts = state.draft.parts
        best: dict[int, SomeMove] = {}
        for move in promising(state):
            if (move.value, parts[move.value], move.parts) not in tabu:
                best.setdefault(move.value, move)
        moves = list(best.values())
        if not moves:
            break
        count = max(1, int(len(moves) * share))
        while True:
            better = moved(state, moves[:count])
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
