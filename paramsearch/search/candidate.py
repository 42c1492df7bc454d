"""Families with their noise: what a search begins with, and what it compares."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from accounting.base.arrays import FloatArray
from paramsearch.search.families.family_draft import FamilyDraft
from paramsearch.search.noise.noise_model import NoiseByValue, NoiseModel
from paramsearch.search.noise.noise_optimizer import Solution

_LARGEST_SHORTFALL = 1.5
"""Largest log ratio of the noise that a model guesses to the noise that its search begins with."""


@dataclass(frozen=True)
class Candidate:
    """A family with its best noise."""

    draft: FamilyDraft
    solution: Solution

    @property
    def model(self) -> NoiseModel:
        return self.solution.model

    @property
    def price(self) -> float:
        """The number that the target minimizes."""
        return self.model.target.price(self.solution.messages, self.draft.symbols)

    def messages_at(self, draft: FamilyDraft) -> float:
        """Return the messages at which the family of ``draft`` has this price."""
        return self.model.target.messages_at(self.price, draft.symbols)


@dataclass(frozen=True)
class Start:
    """A family to begin with, and the noise that it had in a similar problem."""

    draft: FamilyDraft
    noise: NoiseByValue

    def noise_for(self, model: NoiseModel) -> FloatArray:
        """Return the noise that a search begins with.

        If the problem is not that similar, the noise may be a tiny part of what is needed: it is
        raised at once, so that noise beyond every table is refused before long tables are made.
        """
        x = model.adapted(self.noise, model.needs_by_value())
        x[0] = np.maximum(x[0], model.first_guess()[0] - _LARGEST_SHORTFALL)
        return x
