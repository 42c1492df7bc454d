"""Assumptions of stage 1 about stage 2: how far from its slack a pair must stay, and r of the laws.

The defaults hold for typical problems.  Once stage 2 has solved a family, its active pairs show
their own radii: slack over the deviation of the loss.

Losses of the same deviation have heavier tails when fewer atoms share them: radii are larger there,
and families cost more than their program says.  That is corrected after the program, in proportion
to the concentration of the losses (``Screened.concentration``).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from accounting.base.arrays import FloatArray, IntArray
from accounting.model.change import ZERO_OUT
from paramsearch.search.dominance.program import DominanceProgram, InputColumns, by_distance
from paramsearch.search.target import Target

_OF_NEGATIVE_BINOMIALS, _OF_BURSTS = (1.1, 1.0, 1.0), (0.85, 1.06, 1.31)
"""Radius of a typical active pair, in units of sqrt(2 log(1 / delta)), and r of {-1, +1} and of the
other atoms, in units of log(1 / delta); for bursts as found at max_value 10."""
_SMOOTHING = 0.05
"""Distances, as a share of max_value, over which radii are averaged."""
_PRIOR = 0.02
"""Weight of the average radius, where all active pairs together weigh 1."""


_TAIL_RATE = 0.7
"""Typical increase of log messages per unit of concentration: 0.5 to 1.2 in many problems."""
_TAIL_RIDGE = 5e-4
"""What the typical rate weighs: the variance that stage 1 leaves unexplained, about 0.007^2, over
that of the rate."""


@dataclass(frozen=True)
class TailCorrection:
    """A correction for heavy tails: log messages rise by ``rate`` per unit of concentration, and
    families of a ``typical`` concentration cost as much as their program says."""

    typical: float
    rate: float = _TAIL_RATE

    def factor(self, concentration: float) -> float:
        return math.exp(self.rate * (concentration - self.typical))

    @staticmethod
    def fitted(concentrations: Sequence[float], ratios: Sequence[float]) -> TailCorrection:
        """Fit the correction to families that both stages solved: messages of stage 2 over values
        of stage 1."""
        typical = float(np.mean(concentrations))
        x, y = np.array(concentrations) - typical, np.log(ratios)
        rate = (x @ y + _TAIL_RIDGE * _TAIL_RATE) / (x @ x + _TAIL_RIDGE)
        return TailCorrection(typical, float(rate))


@dataclass(frozen=True)
class Evidence:
    """Findings of stage 2: the distance, radius and multiplier of each active pair, and r."""

    distance: IntArray
    radius: FloatArray
    weight: FloatArray
    r_unit: float
    r_others: float


@dataclass(frozen=True)
class Calibration:
    """The radii and r that stage 1 assumes.

    Attributes:
        radius: z, by the distance of two inputs: the slack of an active pair, in units of the
            standard deviation of its loss.
        r_unit: r of the noise of {-1, +1}.
        r_others: r of the other noises.
    """

    radius: FloatArray
    r_unit: float
    r_others: float

    @staticmethod
    def typical(target: Target) -> Calibration:
        logarithm = max(1.0, math.log(1 / target.problem.delta))
        typical, unit, others = _OF_BURSTS if target.m else _OF_NEGATIVE_BINOMIALS
        radius = np.full(target.problem.max_value + 1, typical * math.sqrt(2 * logarithm))
        return Calibration(radius, unit * logarithm, others * logarithm)

    def program(self, target: Target, columns: InputColumns, size: FloatArray) -> DominanceProgram:
        """Build the program in the second norm for atoms of these sizes, {-1, +1} first."""
        problem = target.problem
        slack = np.array([target.slack(distance) for distance in range(problem.max_value + 1)])
        inverse = problem.changed_coordinates * problem.releases * (self.radius / slack) ** 2
        matrix = by_distance(inverse)
        if problem.adjacency == ZERO_OUT:
            matrix = matrix[:, :1]  # the pairs of every input and 0
        return DominanceProgram(columns, size * np.sqrt(self.r(len(size))), matrix)

    def r(self, atoms: int) -> FloatArray:
        """Return r of every atom, {-1, +1} first."""
        r = np.full(atoms, self.r_others)
        r[0] = self.r_unit
        return r

    def learned(self, evidence: Evidence) -> Calibration:
        """Return the calibration after stage 2 has solved a family."""
        share = evidence.weight / evidence.weight.sum()
        logarithm = np.log(evidence.radius)
        average = float(share @ logarithm)
        width = _SMOOTHING * len(self.radius)
        distance = np.arange(len(self.radius))[:, None] - evidence.distance
        near = share * np.exp(-0.5 * (distance / width) ** 2)
        radius = np.exp((near @ logarithm + _PRIOR * average) / (near.sum(axis=1) + _PRIOR))
        return Calibration(radius, evidence.r_unit, evidence.r_others)
