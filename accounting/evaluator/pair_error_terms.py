"""Everything about the bounds of a pair that needs no transform (discretisation.md, Theorem 6)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from accounting.base.arrays import FloatArray, IntArray
from accounting.evaluator import bounding_functions
from accounting.evaluator.grid_plan import Plan
from accounting.evaluator.tilted_losses import Factors
from accounting.evaluator.view_pairs import ViewPairs
from accounting.model.noise import UNIT_ROUNDOFF


@dataclass(frozen=True)
class Bounds:
    """``lower[q] <= divergence of pair q <= upper[q]``.

    ``guess`` is what the largest one would be without error terms, and ``blur`` how much of its
    width comes from the step of the grid: neither is a bound.
    """

    lower: FloatArray
    upper: FloatArray
    guess: float = 0.0
    blur: float = 0.0

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

    view_pairs: ViewPairs
    plan: Plan
    eta: FloatArray
    eps_up: float
    eps_low: float
    scale_up: FloatArray
    scale_low: FloatArray
    outside: FloatArray
    below: FloatArray
    splits: IntArray
    given_away: FloatArray
    not_kept: FloatArray
    chernoff: FloatArray

    @staticmethod
    def of(view_pairs: ViewPairs, factors: Factors, plan: Plan) -> PairTerms:
        t = view_pairs.releases
        eta = view_pairs.sum_over_pairs(factors.eta[:, None])[:, 0] * t
        shift = 2 * float(eta.max(initial=0.0))
        eps_up, eps_low = plan.eps - shift, plan.eps + shift
        log_moment = view_pairs.sum_over_pairs(factors.log_moment) * t
        size = view_pairs.sum_over_pairs(_magnitude(factors))[:, 0] * t
        summed = (16 + np.diff(view_pairs.start)) * UNIT_ROUNDOFF  # Lemma F6
        slack = summed * (size + plan.tilt * abs(plan.eps) + 64)
        base = log_moment[:, 0]
        whole = view_pairs.sum_over_pairs(factors.log_whole[:, None])[:, 0] * t
        peak = math.exp(bounding_functions.log_peak(plan.tilt)) * (1 + 1e-9)
        with np.errstate(over="ignore"):
            scale_up = np.exp(base - plan.tilt * eps_up + slack + eta)
            chernoff = np.exp(whole - plan.tilt * eps_up + slack + eta) * peak
            scale_low = np.exp(base - plan.tilt * eps_low - slack - eta)
        # Markov's inequality for the tilted loss at both ends of the window (Lemma F7)
        inexact = eta + view_pairs.sum_over_pairs(factors.eta_others[:, None])[:, 0] * t
        sizes = view_pairs.sum_over_pairs(_finite(np.abs(factors.log_moment))) * t
        low = plan.origin * plan.step
        high = (plan.origin + plan.size) * plan.step
        outside = np.zeros(view_pairs.pair_count)
        ends = view_pairs.sum_over_pairs(factors.last[:, None].astype(np.float64))[:, 0] * t
        for side in (-1, 1):
            bound = np.ones(view_pairs.pair_count)
            for j, other in enumerate(plan.others, start=1):
                gap = other - plan.tilt
                if gap * side > 0:
                    edge = high if side > 0 else low
                    size = sizes[:, 0] + sizes[:, j] + (abs(other) + plan.tilt) * abs(edge) + 64
                    with np.errstate(invalid="ignore", over="ignore"):
                        value = np.exp(
                            log_moment[:, j] - base - gap * edge + summed * size + inexact
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
        lost = -np.expm1(view_pairs.sum_over_pairs(logs) * t)
        capped = view_pairs.sum_over_pairs(np.ascontiguousarray(aside[:, 1:2]))[:, 0] * t
        with np.errstate(over="ignore", invalid="ignore"):
            q_capped = capped * np.exp(eta + plan.eps) * (1 + 1e-12)
        q_capped[capped == 0] = 0.0
        given_away = np.maximum(lost[:, 1] * (1 - 1e-12) - q_capped, 0.0)
        not_kept = np.minimum(lost[:, 0] * (1 + 1e-12), 1.0)
        outside = np.minimum(outside, 1.0)
        with np.errstate(over="ignore"):
            below = chernoff * (-np.expm1(np.minimum(base - whole, 0.0)) + 2 * slack)
        splits = view_pairs.sum_over_pairs(view_pairs.splits[:, None].astype(np.float64))[:, 0] * t
        return PairTerms(
            view_pairs,
            plan,
            eta,
            eps_up,
            eps_low,
            scale_up,
            scale_low,
            outside,
            below,
            splits.astype(np.int64),
            given_away,
            not_kept,
            chernoff,
        )

    def bounds(self, sums: FloatArray, error: FloatArray, keep: IntArray) -> Bounds:
        """Theorem 6, put together."""
        upper = self.chernoff.copy()
        with np.errstate(over="ignore", invalid="ignore"):
            fine = self.scale_up[keep] * (np.maximum(sums[keep, 0], 0.0) + error[keep, 0])
            upper[keep] = np.fmin(fine + self.below[keep], upper[keep])
        upper = np.fmin((upper + self.not_kept) * (1 + 1e-12) + 5e-324, 1.0)
        lower = np.zeros(len(upper))
        with np.errstate(over="ignore", invalid="ignore"):
            lower[keep] = self.scale_low[keep] * np.maximum(sums[keep, 1] - error[keep, 1], 0.0)
        lower = np.where(np.isfinite(lower), lower, 0.0)
        lower = (lower + self.given_away) * (1 - 1e-12)
        lower[lower < 1e-280] = 0.0  # subnormal numbers have no relative accuracy
        with np.errstate(over="ignore", invalid="ignore"):
            seen = self.scale_up[keep] * sums[keep, 0] + self.given_away[keep]
            blur = self.scale_up[keep] * (sums[keep, 0] - sums[keep, 1])
        seen = np.where(np.isfinite(seen), seen, 0.0)
        if not len(keep):
            return Bounds(lower, upper)
        worst = int(np.argmax(upper[keep]))
        return Bounds(lower, upper, float(seen.max()), float(np.nan_to_num(blur[worst])))


def _magnitude(factors: Factors) -> FloatArray:
    """How large the logarithms are whose sum is rounded; a factor without mass adds nothing."""
    return _finite(np.abs(factors.log_moment[:, :1]) + np.abs(factors.log_whole[:, None]))


def _finite(size: FloatArray) -> FloatArray:
    return np.where(np.isfinite(size), size, 0.0)
