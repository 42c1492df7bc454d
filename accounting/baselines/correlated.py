"""The correlated noise protocol with given parameters, behind the same interface."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from accounting.base.arrays import IntArray
from accounting.baselines.interface import ForProblem, Run
from accounting.model.costs import AtomParameters, discrete_laplace_variance, noise_messages


@dataclass(frozen=True)
class CorrelatedNoise(ForProblem):
    """The protocol with atoms that have the noise of all honest users, and DLap(eps_central /
    max_value) in the sum, or in each coordinate.

    Every user adds as much as if only the honest ones did.
    """

    atoms: tuple[AtomParameters, ...]
    eps_central: float
    bits_per_message: int
    name: str
    guarantee: str

    @property
    def step(self) -> float:
        return self.eps_central / self.problem.max_value

    @property
    def mse(self) -> float:
        return discrete_laplace_variance(self.step) / self.problem.honest

    @property
    def noise_messages(self) -> float:
        """Expected number of noise messages of all users, for all coordinates."""
        enough = noise_messages(self.step, self.atoms)
        return self.problem.dimension * enough / self.problem.honest

    @property
    def messages(self) -> float:
        return 1 + self.noise_messages / self.problem.n

    @property
    def bits(self) -> float:
        return self.messages * self.bits_per_message

    def run(self, values: IntArray, random: np.random.Generator) -> Run:
        success = -math.expm1(-self.step)
        plus, minus = random.geometric(success, 2) - 1
        counts = [len(elements) * noise.sample(random) for elements, noise in self.atoms if noise]
        sent = int(np.count_nonzero(values)) + int(plus + minus) + int(sum(counts))
        return Run(float(values.sum() + plus - minus), sent)
