"""One family with variable noise: what it costs, and estimates of its divergences."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from accounting.base.arrays import FloatArray, IntArray
from accounting.estimator.estimate import Estimator
from accounting.evaluator.build_view_pairs import (
    differences,
    joined,
    protocol_pairs,
    with_moved_pairs,
)
from accounting.evaluator.view_pairs import ViewPairs
from accounting.model.change import Change
from accounting.model.configuration import Configuration, Proposal
from accounting.model.costs import AtomParameters, central_messages
from accounting.model.family import UNIT, Family
from accounting.model.negative_binomial import NegativeBinomial
from accounting.model.noise import NoiseSum
from paramsearch.search.noise.change_sequences import Sequences, sequences
from paramsearch.search.target import Target

NoiseByValue = dict[int, tuple[float, float]]
"""(log mean, log r) of each atom, by the value that the atom defines."""
_TYPICAL_R = 15.0
"""r of the first guess."""
_MEAN_PER_SHIFT = 30.0
"""Mean of the first guess, per unit of shift / slack."""
_SMALLEST_MEAN = 40.0
"""Smallest mean of the first guess.  All three are rules of thumb for delta near e^-14, about
1e-6; the means scale with sqrt(log(1 / delta)), r with log(1 / delta)."""


@dataclass(frozen=True)
class NoiseModel:
    """Noise parameters are arrays of shape (2, atoms), with rows log mean and log r, in the order
    of the family's atoms."""

    family: Family
    target: Target

    @cached_property
    def size(self) -> FloatArray:
        """Number of elements of each atom."""
        return np.array([len(elements) for elements in self.family.atoms], float)

    @cached_property
    def defined_values(self) -> list[int]:
        """The value that each atom defines."""
        value_of = {index: value for value, index in self.family.basis.items()}
        return [value_of[index] for index in range(len(self.family.atoms))]

    @cached_property
    def unit(self) -> int:
        """Index of the atom {-1, +1}."""
        return self.family.atoms.index(UNIT)

    @cached_property
    def view_pairs(self) -> ViewPairs:
        inputs = np.arange(self.family.max_value + 1)
        found = differences(self.family.sparse_columns)
        base = protocol_pairs(
            _any_noises(len(self.size)), found, self.unit, self.target.step, inputs
        )
        if self.target.problem.dimension > 1:
            base = with_moved_pairs(base, self.family.max_value)
        if self.target.problem.any_sequence:
            base = joined(base, self._sequences.rows)
        return replace(base, releases=self._sequences.times)

    @cached_property
    def _sequences(self) -> Sequences:
        return sequences(self.target, self.family.max_value)

    @property
    def changes(self) -> list[tuple[Change, ...]]:
        """The sequence of changes of each pair of views."""
        return self._sequences.changes

    @cached_property
    def estimator(self) -> Estimator:
        return Estimator(self.view_pairs, eps=self.target.problem.eps, delta=self.target.goal)

    def messages(self, x: FloatArray) -> float:
        """Noise messages of all users in one coordinate."""
        return central_messages(self.target.step) + float(self.size @ np.exp(x[0]))

    def excess(self, x: FloatArray, pairs: IntArray | None = None) -> FloatArray:
        """log delta minus the log of the target's goal, for each pair."""
        return self.estimator.log_delta(x, pairs) - math.log(self.target.goal)

    def configuration(self, x: FloatArray) -> Configuration:
        """The noise for the evaluators."""
        return self.proposal(x).configuration()

    def proposal(self, x: FloatArray) -> Proposal:
        """The noise as doubles, with the claim that it is meant to satisfy."""
        atoms = []
        for elements, mean, r in zip(self.family.atoms, *np.exp(x), strict=True):
            noise = NegativeBinomial.from_mean(mean=float(mean), r=float(r))
            atoms.append(AtomParameters(elements, noise.r, noise.p))
        problem = self.target.problem
        return Proposal(
            max_value=problem.max_value,
            atoms=tuple(atoms),
            eps_central=self.target.eps_central,
            eps=problem.eps,
            delta=problem.delta,
            n=problem.n,
            dimension=problem.dimension,
        )

    @cached_property
    def shift_per_slack(self) -> FloatArray:
        """The largest shift / slack of each atom over all inputs: how much noise it needs."""
        columns = self.family.columns
        inputs = np.arange(self.family.max_value + 1)
        slack = np.array([self.target.slack(distance) for distance in range(len(inputs))])
        shift = np.abs(columns).astype(float)
        unit = columns[:, self.unit]
        shift[:, self.unit] = np.maximum(np.abs(unit), np.abs(unit + inputs))
        largest: FloatArray = (shift / slack[:, None]).max(axis=0)
        return largest

    def first_guess(self) -> FloatArray:
        """Noise to begin with when nothing is known."""
        scale = math.sqrt(max(math.log(1 / self.target.problem.delta), 1.0) / 14)
        mean = np.maximum(_MEAN_PER_SHIFT * scale * self.shift_per_slack, _SMALLEST_MEAN)
        return np.log([mean, np.full(len(mean), _TYPICAL_R * scale**2)])

    def adapted(self, known: NoiseByValue, needs: Mapping[int, float]) -> FloatArray:
        """The noise of a similar family, raised where an atom now needs more than in ``needs``; the
        first guess for atoms that it does not have."""
        x = self.first_guess()
        for i, value in enumerate(self.defined_values):
            if value in known:
                log_mean, log_r = known[value]
                increase = max(0.0, math.log(self.shift_per_slack[i] / needs[value]))
                x[:, i] = log_mean + increase, log_r
        return x

    def noise_by_value(self, x: FloatArray) -> NoiseByValue:
        return {
            value: (float(x[0, i]), float(x[1, i])) for i, value in enumerate(self.defined_values)
        }

    def needs_by_value(self) -> dict[int, float]:
        """``shift_per_slack`` by the value that the atom defines."""
        return dict(zip(self.defined_values, self.shift_per_slack.tolist(), strict=True))


def _any_noises(count: int) -> tuple[NoiseSum, ...]:
    """Noises of which only the number matters: estimates take the parameters as arrays."""
    return (NoiseSum.of([NegativeBinomial(1.0, 0.5)]),) * count
