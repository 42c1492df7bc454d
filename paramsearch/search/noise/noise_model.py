"""One family with variable noise: its cost, and estimates of its divergences."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from accounting.base.arrays import FloatArray, IntArray
from accounting.base.errors import required
from accounting.estimator.estimate import Estimator
from accounting.evaluator.build_view_pairs import (
    changed_pairs,
    chosen_pairs,
    differences,
    joined,
    protocol_pairs,
    with_moved_pairs,
)
from accounting.evaluator.view_pairs import ViewPairs
from accounting.model.change import SUBSTITUTION, Change, change_count
from accounting.model.configuration import Configuration, Proposal
from accounting.model.costs import AtomParameters, central_messages
from accounting.model.family import UNIT, Family
from accounting.model.laws.burst import Burst
from accounting.model.laws.negative_binomial import NegativeBinomial
from accounting.model.laws.noise import Law, NoiseSum
from paramsearch.search.noise.change_sequences import Sequences, sequences
from paramsearch.search.target import Target

NoiseByValue = dict[int, tuple[float, float]]
"""(log mean, log r) of each atom, by the value that the atom defines."""
_ALL_PAIRS_UNTIL = 240
"""Largest max_value up to which every pair of inputs is considered at every step, or as many
changes as there are then."""
_TYPICAL_R = 15.0
"""r of the first guess."""
_ENOUGH_BURSTS, _LEAST_BEYOND = 1.02, 0.1
"""Expected number of bursts in units of log(1 / delta), and the least share of an atom's copies
beyond the first of every burst; rules of thumb."""
_MEAN_PER_SHIFT = 30.0
"""Mean of the first guess, per unit of shift / slack."""
_SMALLEST_MEAN = 40.0
"""Smallest mean of the first guess.  All three are rules of thumb for delta near e^-14, about
1e-6; the means scale with sqrt(log(1 / delta)), r with log(1 / delta)."""


@dataclass(frozen=True, eq=False)
class NoiseModel:
    """A family with variable noise. Noise parameters are arrays of shape (2, laws), with rows log
    mean and log r.

    Attributes:
        family: The atoms.
        target: What the noise is for.
        law: The law of each atom, in the order of the family's atoms: atoms of one law have the
            same noise.  By default, every atom has a law of its own.
        pairs: The pairs (j, k) of inputs that are considered, an array of shape (n, 2); by default,
            everything that a user can change.
        sizes: The m of the bursts of each law; by default, that of the target.
    """

    family: Family
    target: Target
    law: IntArray | None = None
    pairs: IntArray | None = None
    sizes: IntArray | None = None

    def watching(self, pairs: IntArray) -> NoiseModel:
        """Return the same model for these pairs alone."""
        return replace(self, pairs=pairs)

    def places(self, pairs: IntArray) -> IntArray:
        """Return the places of these pairs among ``pairs``, which are in ascending order."""
        watched = required(self.pairs, "the pairs to watch")
        count = self.family.max_value + 1
        return np.searchsorted(watched @ [count, 1], pairs @ [count, 1])

    @cached_property
    def laws(self) -> IntArray:
        """The law of each atom."""
        return np.arange(len(self.family.atoms)) if self.law is None else self.law

    @cached_property
    def atom_size(self) -> FloatArray:
        """Number of elements of each atom."""
        return np.array([len(elements) for elements in self.family.atoms], float)

    @cached_property
    def size(self) -> FloatArray:
        """Number of elements of all atoms of each law."""
        return np.bincount(self.laws, self.atom_size).astype(np.float64)

    @cached_property
    def defined_values(self) -> list[int]:
        """The value that each atom defines."""
        value_of = {index: value for value, index in self.family.basis.items()}
        return [value_of[index] for index in range(len(self.family.atoms))]

    @cached_property
    def unit(self) -> int:
        """Index of the atom {-1, +1}."""
        return self.family.atoms.index(UNIT)

    @property
    def large(self) -> bool:
        """Whether there are too many pairs of inputs to consider all of them at every step."""
        problem = self.target.problem
        single = problem.dimension == 1 and not problem.any_sequence
        changes = change_count(
            max_value=problem.max_value, dimension=1, adjacency=problem.adjacency
        )
        return single and changes > change_count(max_value=_ALL_PAIRS_UNTIL, dimension=1)

    @cached_property
    def view_pairs(self) -> ViewPairs:
        columns, step = self.family.sparse_columns, self.target.step
        noises, unit = _any_noises(len(self.size)), int(self.laws[self.unit])
        if self.pairs is not None:
            base = chosen_pairs(noises, columns, self.pairs, unit, step, self.laws)
            return replace(base, releases=self.target.problem.releases)
        problem, top = self.target.problem, self.family.max_value
        if problem.adjacency == SUBSTITUTION:
            found = differences(columns, self.laws)  # refuses too many
            base = protocol_pairs(noises, found, unit, step, np.arange(top + 1))
        else:
            pairs = changed_pairs(top, problem.adjacency)
            base = chosen_pairs(noises, columns, pairs, unit, step, self.laws)
        if problem.changed_coordinates > 1:
            base = with_moved_pairs(base, top)
        if self.target.problem.any_sequence:
            base = joined(base, self._sequences.rows)
        return replace(base, releases=self._sequences.times)

    @cached_property
    def _sequences(self) -> Sequences:
        return sequences(self.target, self.family.max_value)

    @cached_property
    def changes(self) -> list[tuple[Change, ...]]:
        """The sequence of changes of each pair of views."""
        if self.pairs is not None:
            return [(Change(j, k),) for j, k in self.pairs.tolist()]
        return self._sequences.changes

    @cached_property
    def estimator(self) -> Estimator:
        target = self.target
        return Estimator(
            self.view_pairs,
            eps=target.problem.eps,
            delta=target.goal,
            m=self.burst_sizes if target.m else None,
        )

    @cached_property
    def burst_sizes(self) -> IntArray:
        """The m of the bursts of each law; 0 for negative binomials."""
        return np.full(len(self.size), self.target.m) if self.sizes is None else self.sizes

    def messages(self, x: FloatArray) -> float:
        """Return the noise messages of all users in one coordinate."""
        return central_messages(self.target.step) + float(self.size @ np.exp(x[0]))

    def excess(self, x: FloatArray, pairs: IntArray | None = None) -> FloatArray:
        """Return log delta minus the log of the target's goal, for each pair."""
        return self.estimator.log_delta(x, pairs) - math.log(self.target.goal)

    def configuration(self, x: FloatArray) -> Configuration:
        """Return the noise as the evaluators take it."""
        return self.proposal(x).configuration()

    def proposal(self, x: FloatArray) -> Proposal:
        """Return the noise as doubles, with the claim that it is meant to satisfy."""
        noises = [
            self._noise(mean, r, m)
            for (mean, r), m in zip(np.exp(x).T.tolist(), self.burst_sizes.tolist(), strict=True)
        ]
        problem = self.target.problem
        return Proposal(
            max_value=problem.max_value,
            atoms=tuple(
                AtomParameters(elements, noises[law])
                for elements, law in zip(self.family.atoms, self.laws.tolist(), strict=True)
            ),
            eps_central=self.target.eps_central,
            eps=problem.eps,
            delta=problem.delta,
            n=problem.n,
            dimension=problem.dimension,
            adjacency=problem.adjacency,
        )

    @staticmethod
    def _noise(mean: float, r: float, m: int) -> Law:
        if m:
            return Burst.from_mean(mean=mean, r=r, m=m)
        return NegativeBinomial.from_mean(mean=mean, r=r)

    @cached_property
    def shift_per_slack(self) -> FloatArray:
        """The largest shift / slack of each atom over all inputs: how much noise it needs."""
        largest = np.zeros(len(self.family.atoms))
        for j, column in enumerate(self.family.sparse_columns):
            slack = self.target.slack(j)
            unit = column.get(self.unit, 0)
            of_unit = max(abs(unit), abs(unit + j)) / slack
            largest[self.unit] = max(largest[self.unit], of_unit)
            for atom, entry in column.items():
                if atom != self.unit:
                    largest[atom] = max(largest[atom], abs(entry) / slack)
        return largest

    def first_guess(self) -> FloatArray:
        """Return noise to begin with when nothing is known."""
        scale = math.sqrt(max(math.log(1 / self.target.problem.delta), 1.0) / 14)
        mean = np.maximum(_MEAN_PER_SHIFT * scale * self.shift_per_slack, _SMALLEST_MEAN)
        return self.tied(np.log([mean, np.full(len(mean), _TYPICAL_R * scale**2)]))

    def adapted(self, known: NoiseByValue, needs: Mapping[int, float]) -> FloatArray:
        """Return the noise of a similar family, raised where an atom now needs more than in
        ``needs``, and the first guess for atoms that it does not have."""
        x = self.per_atom(self.first_guess())
        for i, value in enumerate(self.defined_values):
            if value in known:
                log_mean, log_r = known[value]
                increase = max(0.0, math.log(self.shift_per_slack[i] / needs[value]))
                x[:, i] = log_mean + increase, log_r
        return self.tied(x)

    def tied(self, per_atom: FloatArray) -> FloatArray:
        """Return for each law the largest mean of its atoms and the average r."""
        count = np.bincount(self.laws)
        log_mean = np.full(len(count), -math.inf)
        np.maximum.at(log_mean, self.laws, per_atom[0])
        return np.stack([log_mean, np.bincount(self.laws, per_atom[1]) / count])

    def per_atom(self, x: FloatArray) -> FloatArray:
        """Return (log mean, log r) of each atom."""
        return x[:, self.laws]

    def with_enough_bursts(self, x: FloatArray) -> FloatArray:
        """Raise r until there are enough bursts: delta is no smaller than the probability that an
        atom has no burst at all, however large bursts are, so a few more than log(1 / delta) of
        them are needed. Negative binomials stay as they are."""
        m, problem = self.burst_sizes, self.target.problem
        if not self.target.m:
            return x
        least = _ENOUGH_BURSTS * math.log(max(problem.releases / self.target.goal, math.e))
        mean = np.exp(x[0])
        rho = least * mean / np.maximum(mean - least, _LEAST_BEYOND * mean)
        return np.stack([x[0], np.maximum(x[1], np.log(rho * m / (m + 1)))])

    def noise_by_value(self, x: FloatArray) -> NoiseByValue:
        log_mean, log_r = self.per_atom(x).tolist()
        return dict(zip(self.defined_values, zip(log_mean, log_r, strict=True), strict=True))

    def needs_by_value(self) -> dict[int, float]:
        """Return ``shift_per_slack`` by the value that the atom defines."""
        return dict(zip(self.defined_values, self.shift_per_slack.tolist(), strict=True))


def _any_noises(count: int) -> tuple[NoiseSum, ...]:
    """Return placeholders: estimates take the parameters as arrays, and only the number matters."""
    return (NoiseSum.of([NegativeBinomial(1.0, 0.5)]),) * count
