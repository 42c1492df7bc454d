"""The central mechanisms, which need a trusted party, and summation without privacy."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from accounting.base.arrays import IntArray
from accounting.base.errors import InvalidParameter
from accounting.baselines.interface import ForProblem, Run, value_bits
from accounting.model.costs import PURE_CHANGES, discrete_laplace_variance


@dataclass(frozen=True)
class _OneMessage(ForProblem):
    """A mechanism in which every user sends the value itself."""

    @property
    def messages(self) -> float:
        return 1.0

    @property
    def bits(self) -> float:
        return float(value_bits(self.problem))


@dataclass(frozen=True)
class NonPrivate(_OneMessage):
    """The sum without noise: the paper's "discretized" reference."""

    name = "non-private"
    guarantee = "none"
    mse = 0.0

    def run(self, values: IntArray, random: np.random.Generator) -> Run:
        return Run(float(values.sum()), len(values))


@dataclass(frozen=True)
class DiscreteLaplace(_OneMessage):
    """The sum with DLap(eps / max_value) noise; half of eps for each of the two coordinates of a
    vector that a change touches (under zero-out it is one), and the most that delta / 2 allows
    where more sums change."""

    name = "discrete Laplace (central)"

    @property
    def guarantee(self) -> str:
        known = "eps" if self.changes <= PURE_CHANGES else "(eps, delta / 2), numerically"
        return f"{known}, with a trusted party"

    @property
    def mse(self) -> float:
        return discrete_laplace_variance(self.central_step)

    def run(self, values: IntArray, random: np.random.Generator) -> Run:
        p = -math.expm1(-self.central_step)
        noise = random.geometric(p) - random.geometric(p)
        return Run(float(values.sum() + noise), len(values))


@dataclass(frozen=True)
class Laplace(_OneMessage):
    """The sum with continuous noise; for few changes, whose eps add up."""

    name = "Laplace (central)"
    guarantee = "eps, with a trusted party"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.changes > PURE_CHANGES:
            raise InvalidParameter(
                f"{self.name}: the composition of {self.changes:,} changes is computed for the "
                "discrete noise only"
            )

    @property
    def mse(self) -> float:
        return 2 * (self.changes * self.problem.max_value / self.problem.eps) ** 2

    def run(self, values: IntArray, random: np.random.Generator) -> Run:
        scale = self.problem.max_value / self.problem.eps
        return Run(float(values.sum() + random.laplace(scale=scale)), len(values))
