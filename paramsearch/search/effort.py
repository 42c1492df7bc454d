"""The amount of stage 2 that a search can afford."""

from __future__ import annotations

from dataclasses import dataclass

from paramsearch.request import DEFAULT_TRIES


@dataclass(frozen=True)
class Effort:
    """The amount of stage 2 that is affordable at one max_value.

    Attributes:
        rounds: Rounds of both stages; each calibrates the next.
        families: Families that stage 1 passes on in a round.
        improved: Families whose single atoms are changed.
        patience: Number of single moves in a row that may fail.
        changes: Random changes of the hubs of good families.
    """

    rounds: int
    families: int
    improved: int
    patience: int
    changes: int

    @staticmethod
    def at(max_value: int, tries: int) -> Effort:
        """Return the effort for a max_value: one solution of stage 2 takes milliseconds to
        minutes."""
        effort = next(effort for limit, effort in _EFFORTS.items() if max_value <= limit)
        share = tries / DEFAULT_TRIES
        return Effort(
            rounds=effort.rounds,
            families=max(1, round(effort.families * share)),
            improved=max(1, round(effort.improved * share)),
            patience=effort.patience,
            changes=round(effort.changes * share),
        )


_EFFORTS = {
    12: Effort(rounds=2, families=10, improved=3, patience=12, changes=100),
    30: Effort(rounds=3, families=8, improved=3, patience=4, changes=30),
    64: Effort(rounds=3, families=3, improved=2, patience=3, changes=12),
    120: Effort(rounds=2, families=3, improved=1, patience=2, changes=4),
    240: Effort(rounds=2, families=2, improved=1, patience=1, changes=0),
    10**9: Effort(rounds=1, families=1, improved=0, patience=0, changes=0),
}
"""By the largest max_value; rules of thumb."""
