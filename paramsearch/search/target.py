"""What is searched for: the cheapest noise with delta(eps) <= delta at a given central noise."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from accounting.model.change import Change

Objective = Literal["messages", "bits"]


@dataclass(frozen=True)
class Target:
    """``eps_central`` fixes the error; ``n`` matters for the objective ``bits`` alone.

    With ``dimension`` > 1, messages are those of one of the coordinates, which are all alike.
    """

    max_value: int
    eps: float
    delta: float
    eps_central: float
    n: int
    releases: int = 1
    objective: Objective = "messages"
    dimension: int = 1
    same_change: bool = False
    """Whether several releases are for one change made in all of them, instead of any changes."""
    mixed: tuple[Change, ...] = ()
    """Changes whose mixtures the search looks at, where any changes may follow each other; empty
    for a choice by max_value."""
    share: float = 1.0
    """Of delta, for fixed sequences of changes: adaptive ones reach more."""

    @property
    def any_sequence(self) -> bool:
        return self.releases > 1 and not self.same_change

    @property
    def goal(self) -> float:
        """What the estimates of fixed sequences may reach."""
        return self.delta * self.share

    @property
    def step(self) -> float:
        """eps_central / max_value, the loss of a change by one in the sum."""
        return self.eps_central / self.max_value

    def slack(self, change: float) -> float:
        """What is left of eps for the atoms where a value changes by this."""
        return self.eps - min(min(self.dimension, 2) * self.step * change, 0.98 * self.eps)

    @property
    def central_messages(self) -> float:
        """2 E[central]."""
        return 2 / math.expm1(self.step)

    def price(self, noise_messages: float, alphabet: int) -> float:
        """What is minimised: noise messages, or bits of all users."""
        if self.objective == "messages":
            return noise_messages
        bits = math.ceil(math.log2(self.dimension * alphabet))
        return bits * (self.n + self.dimension * noise_messages)
