"""What is searched for: the cheapest noise for a problem at a given central noise."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from accounting.model.change import Change
from accounting.model.costs import bits_per_message
from accounting.model.problem import Problem
from paramsearch.problem import Objective


@dataclass(frozen=True)
class Target:
    """The problem, and the central noise that fixes its error.

    ``mixed`` are changes whose mixtures the search looks at where a user's inputs may change in any
    way; empty for a choice by max_value.  ``share`` is the part of delta that fixed sequences of
    changes may use up there: adaptive ones reach more.

    Messages are those of one coordinate; the others are alike.
    """

    problem: Problem
    eps_central: float
    objective: Objective = "messages"
    mixed: tuple[Change, ...] = ()
    share: float = 1.0

    def at(self, max_value: int) -> Target:
        """The same for another max_value: with the same eps_central it has the same slacks."""
        return replace(self, problem=replace(self.problem, max_value=max_value))

    @property
    def goal(self) -> float:
        """What the estimates of fixed sequences may reach."""
        return self.problem.delta * self.share

    @property
    def step(self) -> float:
        """eps_central / max_value, the loss of a change by one in the sum."""
        return self.eps_central / self.problem.max_value

    def slack(self, change: float) -> float:
        """What is left of eps for the atoms where a value changes by this."""
        problem = self.problem
        spent = problem.changed_coordinates * self.step * change
        return problem.eps - min(spent, 0.98 * problem.eps)

    @property
    def central_messages(self) -> float:
        """2 E[central]."""
        return 2 / math.expm1(self.step)

    def price(self, noise_messages: float, symbols: int) -> float:
        """What is minimised: noise messages, or bits of all users."""
        if self.objective == "messages":
            return noise_messages
        dimension = self.problem.dimension
        bits = bits_per_message(dimension * symbols)
        return bits * (self.problem.n + dimension * noise_messages)
