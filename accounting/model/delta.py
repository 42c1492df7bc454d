"""The divergence at one eps, of the worst change and of every change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from accounting.base.arrays import FloatArray, IntArray
from accounting.base.enclosure import Enclosure, Summarized, counted
from accounting.base.validation import gap_width, not_negative
from accounting.model.change import Change, Repeated
from accounting.model.proof import caveats


@dataclass(frozen=True)
class Accuracy:
    """A condition to stop refining: a relative gap, or an absolute width."""

    gap: float
    absolute: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "gap", gap_width(self.gap))
        object.__setattr__(self, "absolute", not_negative("absolute", self.absolute))

    def reached_by(self, found: Enclosure) -> bool:
        return found.upper - found.lower <= max(self.gap * found.upper, self.absolute)


@dataclass(frozen=True, repr=False)
class Delta(Summarized):
    """The divergence at one eps, of the worst change and of every change.

    Attributes:
        eps: The eps of the bounds.
        enclosure: Bounds of the largest divergence.
        worst_change: Attains ``enclosure.lower``; no change exceeds ``enclosure.upper``.
        exact: False for a family with more atoms than values: then only upper bounds mean anything.
        met: Whether the gap that was asked for was reached.
        changes: The changes that were evaluated; empty where the changes in several releases may
            differ.
        lower: Lower bound of every change.
        upper: Upper bound of every change.
        compared: Indices of changes whose upper bound is that of another change, which covers them
            (evaluator/covered_pairs.md).
        worst_sequence: Where the changes in several releases may differ, the fixed sequence that
            attains ``enclosure.lower``.
    """

    eps: float
    enclosure: Enclosure
    worst_change: Change
    exact: bool
    met: bool
    changes: Sequence[Change]
    lower: FloatArray
    upper: FloatArray
    worst_sequence: tuple[Repeated, ...] = ()
    compared: IntArray = field(default_factory=lambda: np.zeros(0, np.int64))

    def __str__(self) -> str:
        return f"delta({self.eps:g}) in {self.enclosure}, worst where {self.worst_change}"

    def summary(self) -> tuple[str, str]:
        """Return the bounds, and what they are bounds for."""
        parts = [f"worst where {self.worst_change}"]
        if len(self.changes):
            parts.append(
                f"{counted(len(self.changes), 'change')}, {len(self.compared):,} by comparison"
            )
        else:
            parts.append("any sequence of changes")
        parts += caveats(exact=self.exact, met=self.met)
        return f"delta({self.eps:g}) in {self.enclosure}", "; ".join(parts)
