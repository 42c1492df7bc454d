"""One family with free noise: what it costs, and estimates of its divergences."""

from __future__ import annotations

import math
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
from accounting.model.family import UNIT, Family
from accounting.model.negative_binomial import NegativeBinomial
from accounting.model.noise import NoiseSum
from paramsearch.search.noise.change_sequences import Sequences, sequences
from paramsearch.search.target import Target

Noise = dict[int, tuple[float, float]]
"""(log mean, log r) by the value that the atom defines."""
_USUAL_R = 15.0


@dataclass(frozen=True)
class Model:
    """Parameters are arrays (log mean, log r) of shape (2, atoms), in the order of the family."""

    family: Family
    target: Target

    @cached_property
    def size(self) -> FloatArray:
        return np.array([len(elements) for elements in self.family.atoms], float)

    @cached_property
    def leader(self) -> list[int]:
        """Per atom, the value it defines."""
        value_of = {index: value for value, index in self.family.basis.items()}
        return [value_of[index] for index in range(len(self.family.atoms))]

    @cached_property
    def unit(self) -> int:
        return self.family.atoms.index(UNIT)

    @cached_property
    def workload(self) -> ViewPairs:
        inputs = np.arange(self.family.max_value + 1)
        found = differences(self.family.sparse_columns)
        base = protocol_pairs(_nobody(len(self.size)), found, self.unit, self.target.step, inputs)
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
        """Per pair of the workload, the changes that follow each other."""
        return self._sequences.changes

    @cached_property
    def estimator(self) -> Estimator:
        return Estimator(self.workload, eps=self.target.problem.eps, delta=self.target.goal)

    def messages(self, x: FloatArray) -> float:
        """Noise messages of all users, in one coordinate."""
        return self.target.central_messages + float(self.size @ np.exp(x[0]))

    def excess(self, x: FloatArray, pairs: IntArray | None = None) -> FloatArray:
        """log delta - log of the target's goal, per pair."""
        return self.estimator.log_delta(x, pairs) - math.log(self.target.goal)

    def configuration(self, x: FloatArray) -> Configuration:
        """The noise for the evaluators."""
        atoms = [
            (elements, NegativeBinomial.from_mean(mean=float(mean), r=float(r)))
            for elements, mean, r in zip(self.family.atoms, *np.exp(x), strict=True)
        ]
        problem = self.target.problem
        return Configuration.of(
            problem.max_value,
            atoms,
            eps_central=self.target.eps_central,
            dimension=problem.dimension,
        )

    def proposal(self, x: FloatArray) -> Proposal:
        """The noise as doubles, with the claim that it is for."""
        atoms = []
        for elements, mean, r in zip(self.family.atoms, *np.exp(x), strict=True):
            noise = NegativeBinomial.from_mean(mean=float(mean), r=float(r))
            atoms.append((elements, noise.r, noise.p))
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
    def need(self) -> FloatArray:
        """Per atom, the largest shift over the slack of the input that makes it."""
        columns = self.family.columns
        inputs = np.arange(self.family.max_value + 1)
        slack = np.array([self.target.slack(change) for change in range(len(inputs))])
        shift = np.abs(columns).astype(float)
        own = columns[:, self.unit]
        shift[:, self.unit] = np.maximum(np.abs(own), np.abs(own + inputs))
        found: FloatArray = (shift / slack[:, None]).max(axis=0)
        return found

    def start(self, known: Noise | None = None, need: dict[int, float] | None = None) -> FloatArray:
        """A first guess; where another family's noise is known, that, raised with the need."""
        usual = math.sqrt(max(math.log(1 / self.target.problem.delta), 1.0) / 14)
        mean = np.maximum(30 * usual * self.need, 40.0)
        x = np.log([mean, np.full(len(mean), _USUAL_R * usual**2)])
        for i, value in enumerate(self.leader):
            if known is not None and need is not None and value in known:
                log_mean, log_r = known[value]
                more = max(0.0, math.log(self.need[i] / need[value]))
                x[:, i] = log_mean + more, log_r
        return x

    def noise(self, x: FloatArray) -> Noise:
        return {value: (float(x[0, i]), float(x[1, i])) for i, value in enumerate(self.leader)}

    def needs(self) -> dict[int, float]:
        return dict(zip(self.leader, self.need.tolist(), strict=True))


def _nobody(count: int) -> tuple[NoiseSum, ...]:
    """Noises of which only the number matters: estimates take their parameters as arrays."""
    return (NoiseSum.of([NegativeBinomial(1.0, 0.5)]),) * count
