"""A family as stage 1 has solved it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from accounting.base.errors import Undecided
from accounting.model.costs import central_messages
from paramsearch.search.dominance.calibration import Calibration, TailCorrection
from paramsearch.search.dominance.draft_arrays import DraftArrays
from paramsearch.search.dominance.program import Dominance, DominanceProgram
from paramsearch.search.dominance.screening import Multipliers
from paramsearch.search.families.family_draft import FamilyDraft, Parts
from paramsearch.search.noise.noise_model import NoiseByValue
from paramsearch.search.target import Target

_SMALLEST_MEAN, _TYPICAL_R = 30.0, 14.0
"""Smallest mean of a noise, and the r for which that holds."""
_CVXPY_FROM = 5
"""Smallest max_value for which cvxpy is worth its import, a second."""
_MOST_FOR_CVXPY = 15_000
"""Pairs with multipliers up to which cvxpy takes seconds."""


@dataclass(frozen=True)
class Screened:
    """A family for a target, the solution of its dominance program, and the correction of its
    value."""

    target: Target
    arrays: DraftArrays
    program: DominanceProgram
    solution: Dominance
    tail: TailCorrection | None = None

    @property
    def draft(self) -> FamilyDraft:
        return self.arrays.draft

    @property
    def value(self) -> float:
        """The value of the program."""
        return self.solution.value

    @property
    def messages(self) -> float:
        """A prediction of the messages that stage 2 reaches, with the central noise."""
        factor = 1.0 if self.tail is None else self.tail.factor(self.concentration)
        return self.value * factor + central_messages(self.target.step)

    @cached_property
    def concentration(self) -> float:
        """Sum of |x|^3 over (sum of x^2)^(3/2), averaged over the active pairs, for the deviations
        x of the losses of all atoms: 1 / sqrt(k) if k atoms share the loss alike."""
        row, column, value = self.program.rows(self.solution.pairs)
        squares = value * self.solution.t_prime[column] ** -2.0
        pair = np.repeat(np.arange(len(row) - 1), np.diff(row))
        shared = np.bincount(pair, squares**1.5) / np.bincount(pair, squares) ** 1.5
        return float(self.solution.multipliers @ shared)

    @property
    def price(self) -> float:
        """A prediction of the number that the target minimizes."""
        return self.target.price(self.messages, self.draft.symbols)

    def messages_at(self, draft: FamilyDraft) -> float:
        """Return the messages at which the family of ``draft`` has this price."""
        return self.target.messages_at(self.price, draft.symbols)

    def value_at(self, draft: FamilyDraft) -> float:
        """Return the value of the program at which the family of ``draft`` has about this price."""
        more = self.messages_at(draft) - self.messages
        return self.value * (1 + more / (self.messages - central_messages(self.target.step)))

    @property
    def multipliers(self) -> Multipliers:
        return Multipliers(self.solution.pairs, self.solution.multipliers)

    def exact(self) -> Screened:
        """Return the family with a more exact solution, by cvxpy; the same family if that fails,
        would take minutes, or would take longer than everything else."""
        from paramsearch.search.dominance.exact import solve_exactly

        few = self.draft.max_value < _CVXPY_FROM
        if few or len(self.solution.pairs) > _MOST_FOR_CVXPY:
            return self
        try:
            return replace(self, solution=solve_exactly(self.program, self.multipliers))
        except Undecided:
            return self

    def noise(self, calibration: Calibration) -> NoiseByValue:
        """Return noise for stage 2 to begin with, by the value that an atom defines."""
        t_prime, r = self.solution.t_prime, calibration.r(len(self.arrays.size))
        mean = np.sqrt(r * t_prime**2 + (_SMALLEST_MEAN * r / _TYPICAL_R) ** 2)
        # noises with few copies want a larger r
        r = r * (1 + 1.5 * (_SMALLEST_MEAN / mean) ** 2)
        values = [-1, *self.arrays.number.tolist()]
        return dict(zip(values, zip(*np.log([mean, r]).tolist(), strict=True), strict=True))

    @cached_property
    def shape(self) -> tuple[tuple[int, Parts], ...]:
        """The hubs, which tell families apart: those with the same hubs hardly differ."""
        return tuple(sorted((v, parts) for v, parts in self.draft.parts.items() if v < 0))
