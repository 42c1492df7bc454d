"""Everything about the bounds of a pair that needs no transform (discretisation.md, Theorem 6)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from accounting import testfunctions
from accounting.arrays import FloatArray, IntArray
from accounting.noise import UNIT_ROUNDOFF
from accounting.survey import Plan
from accounting.tilting import Factors
from accounting.workload import Workload


@dataclass(frozen=True)
class Bounds:
    """``lower[q] <= divergence of pair q <= upper[q]``."""

    lower: FloatArray
    upper: FloatArray

    @property
    def worst(self) -> int:
        return int(np.argmax(self.upper))

    @property
    def gap(self) -> float:
        """Relative gap of the enclosure of the largest divergence."""
        top = float(self.upper.max(initial=0.0))
        return (top - float(self.lower.max(initial=0.0))) / top if top > 0 else 0.0


@dataclass(frozen=True)
class PairTerms:
    """Everything about the pairs that does not need a transform."""

    workload: Workload
    plan: Plan
    eta: FloatArray
    eps_up: float
    eps_low: float
    scale_up: FloatArray
    scale_low: FloatArray
    outside: FloatArray
    splits: IntArray
    given_away: FloatArray
    not_kept: FloatArray
    chernoff: FloatArray

    @staticmethod
    def of(workload: Workload, factors: Factors, plan: Plan) -> PairTerms:
        t = workload.releases
        eta = workload.sum_over_pairs(factors.eta[:, None])[:, 0] * t
        shift = 2 * float(eta.max(initial=0.0))
        eps_up, eps_low = plan.eps - shift, plan.eps + shift
        log_moment = workload.sum_over_pairs(factors.log_moment) * t
        size = workload.sum_over_pairs(np.abs(factors.log_moment[:, :1]))[:, 0] * t
        slack = 16 * UNIT_ROUNDOFF * (size + plan.tilt * abs(plan.eps) + 64)
        base = log_moment[:, 0]
        with np.errstate(over="ignore", invalid="ignore"):
            scale_up = np.exp(base - plan.tilt * eps_up + slack + eta)
            scale_low = np.exp(base - plan.tilt * eps_low - slack - eta)
        # Markov's inequality for the tilted loss at both ends of the window
        low = plan.origin * plan.step
        high = (plan.origin + plan.size) * plan.step
        outside = np.zeros(workload.pairs)
        ends = workload.sum_over_pairs(factors.last[:, None].astype(np.float64))[:, 0] * t
        for side in (-1, 1):
            bound = np.ones(workload.pairs)
            for j, other in enumerate(plan.others, start=1):
                gap = other - plan.tilt
                if gap * side > 0:
                    with np.errstate(invalid="ignore", over="ignore"):
                        value = np.exp(
                            log_moment[:, j] - base - gap * (high if side > 0 else low) + 2 * slack
                        )
                    bound = np.minimum(bound, np.where(np.isnan(value), 1.0, value))
            if side > 0:
                bound[ends < plan.origin + plan.size] = 0.0
            outside += bound
        aside = factors.aside
        up = np.minimum((aside[:, 0] + aside[:, 2]) * np.exp(factors.eta) * (1 + 1e-12), 1.0)
        down = np.minimum(aside[:, 0] * np.exp(-factors.eta) * (1 - 1e-12), 1.0)
        with np.errstate(divide="ignore"):
            logs = np.stack([np.log1p(-up), np.log1p(-down)], axis=1)
        lost = -np.expm1(workload.sum_over_pairs(logs) * t)
        capped = workload.sum_over_pairs(aside[:, [1, 3]]) * t
        q_capped = capped[:, 0] * np.exp(eta) * math.exp(plan.eps) * (1 + 1e-12)
        given_away = np.maximum(lost[:, 1] * (1 - 1e-12) - q_capped, 0.0)
        not_kept = np.minimum(lost[:, 0] * (1 + 1e-12), 1.0)
        outside = np.minimum(outside + capped[:, 1], 1.0)
        splits = workload.sum_over_pairs(workload.splits[:, None].astype(np.float64))[:, 0] * t
        chernoff = scale_up * math.exp(testfunctions.log_peak(plan.tilt)) * (1 + 1e-9)
        return PairTerms(
            workload,
            plan,
            eta,
            eps_up,
            eps_low,
            scale_up,
            scale_low,
            outside,
            splits.astype(np.int64),
            given_away,
            not_kept,
            chernoff,
        )

    def bounds(self, sums: FloatArray, error: FloatArray, keep: IntArray) -> Bounds:
        """Theorem 6, put together."""
        upper = self.chernoff.copy()
        upper[keep] = self.scale_up[keep] * (np.maximum(sums[keep, 0], 0.0) + error[keep, 0])
        upper = np.minimum(upper, self.chernoff)
        upper = np.where(np.isnan(upper), 0.0, upper)  # a factor that keeps no mass: 0 * inf
        upper = np.minimum((upper + self.not_kept) * (1 + 1e-12) + 5e-324, 1.0)
        lower = np.zeros(len(upper))
        lower[keep] = np.maximum(self.scale_low[keep] * (sums[keep, 1] - error[keep, 1]), 0.0)
        lower = np.where(np.isfinite(lower), lower, 0.0)
        lower = np.maximum((lower + self.given_away) * (1 - 1e-12), 0.0)
        return Bounds(np.minimum(lower, upper), upper)
