"""The target of a search: the cheapest noise for a problem at a given central noise."""

from __future__ import annotations

from dataclasses import dataclass, replace

from accounting.model.change import Change
from accounting.model.costs import bits_per_message
from accounting.model.laws.noise import NoiseLaw
from accounting.model.problem import Problem
from paramsearch.request import Objective

_USUAL_M = 8
"""The m of bursts that families are compared with: within 0.1 % of the best one for all atoms at
max_value 5, 10 and 20 (eps = 1, delta = 1e-6, eps* = 0.9)."""
_MOST_SPENT = 0.98
"""Largest share of eps that counts as spent by the central noise; keeps slacks positive."""


def usual_m(noise: NoiseLaw) -> int:
    """Return the m of the noise that families are compared with; 0 for negative binomials."""
    return _USUAL_M if noise == "burst" else 0


@dataclass(frozen=True)
class Target:
    """A problem, and the central noise, which determines the error.

    Messages are those of one coordinate; all coordinates have the same noise.  They are those of
    the honest users, whose noise has to suffice; more are sent if all users add noise.

    Attributes:
        problem: The problem to solve.
        eps_central: eps of the central noise.
        objective: What is minimized.
        mixed: Changes whose mixtures the search considers where a user may make different changes
            in different releases; if empty, a choice that depends only on max_value.
        share: Share of delta that fixed sequences of changes may use there; adaptive sequences
            reach more.
        m: The m of noise that comes in bursts, unless an atom has its own; 0 for negative
            binomials.
    """

    problem: Problem
    eps_central: float
    objective: Objective = "messages"
    mixed: tuple[Change, ...] = ()
    share: float = 1.0
    m: int = 0

    def at(self, max_value: int) -> Target:
        """Return the same target for another max_value; the same eps_central gives the same
        slacks."""
        return replace(self, problem=replace(self.problem, max_value=max_value))

    @property
    def goal(self) -> float:
        """The largest delta that estimates for fixed sequences may reach."""
        return self.problem.delta * self.share

    @property
    def step(self) -> float:
        """eps_central / max_value, the privacy loss when the sum changes by one."""
        return self.eps_central / self.problem.max_value

    def slack(self, distance: float) -> float:
        """Return the part of eps that is left for the atoms when a value changes by
        ``distance``."""
        problem = self.problem
        spent = problem.changed_coordinates * self.step * distance
        return problem.eps - min(spent, _MOST_SPENT * problem.eps)

    def price(self, noise_messages: float, symbols: int) -> float:
        """Return the number that is minimized: noise messages, or bits of all users."""
        if self.objective == "messages":
            return noise_messages
        problem = self.problem
        sent = problem.dimension * noise_messages / problem.honest
        return self._bits(symbols) * (problem.n + sent)

    def messages_at(self, price: float, symbols: int) -> float:
        """Return the noise messages with this price."""
        if self.objective == "messages":
            return price
        problem = self.problem
        sent = price / self._bits(symbols) - problem.n
        return sent * problem.honest / problem.dimension

    def _bits(self, symbols: int) -> int:
        return bits_per_message(self.problem.dimension * symbols)

    def hub_limits(self, hubs: int) -> list[int]:
        """List the numbers of hubs, less than ``hubs``, beyond which a message takes a further
        bit."""
        symbols = self.problem.max_value + 1  # without any hub
        bits = range(self._bits(symbols), self._bits(symbols + hubs))
        return [2**length // self.problem.dimension - symbols for length in bits]
