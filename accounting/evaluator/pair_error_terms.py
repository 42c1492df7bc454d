"""Everything about the bounds of a pair that needs no transform (discretisation.md, Theorem 6)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from accounting.base.arrays import UNIT_ROUNDOFF, FloatArray, IntArray
from accounting.evaluator import bounding_functions
from accounting.evaluator.bounding_functions import LOWER, UPPER
from accounting.evaluator.grid_plan import GridPlan
from accounting.evaluator.tilted_losses import SMALLEST_DELTA, Factors
from accounting.evaluator.view_pairs import ViewPairs


@dataclass(frozen=True)
class PairBounds:
    """``lower[q] <= divergence of pair q <= upper[q]``.

    ``estimate`` is the largest divergence without error terms, and ``step_width`` the part of the
    width of its enclosure that comes from the step of the grid: neither is a bound.
    """

    lower: FloatArray
    upper: FloatArray
    estimate: float = 0.0
    step_width: float = 0.0


@dataclass(frozen=True)
class PairTerms:
    """Per pair, the terms of Theorem 6.

    ``eta``: bound of the relative errors of masses; ``eps_up`` and ``eps_low`` are eps shifted by
    them (Lemma 1).  ``scale_up`` and ``scale_low``: bounds of e^{-tilt * eps} times the moment.
    ``outside``: share of the tilted mass outside the window (Lemma F7).  ``below``: bound of the
    divergence lost below the grid (Lemma 3).  ``splits``: number of connect-the-dots splits.
    ``aside_lower`` and ``aside_upper``: bounds of the divergence of what was set aside (Lemma 2).
    ``chernoff``: Chernoff bound of the divergence of the rest.
    """

    view_pairs: ViewPairs
    plan: GridPlan
    eta: FloatArray
    eps_up: float
    eps_low: float
    scale_up: FloatArray
    scale_low: FloatArray
    outside: FloatArray
    below: FloatArray
    splits: IntArray
    aside_lower: FloatArray
    aside_upper: FloatArray
    chernoff: FloatArray

    @staticmethod
    def of(view_pairs: ViewPairs, factors: Factors, plan: GridPlan) -> PairTerms:
        eta = view_pairs.totals(factors.eta)
        shift = 2 * float(eta.max(initial=0.0))
        eps_up, eps_low = plan.eps - shift, plan.eps + shift
        base = view_pairs.totals(factors.log_moment[:, 0])
        whole = view_pairs.totals(factors.log_whole)
        slack = _slack(view_pairs, factors, plan)
        chernoff = _chernoff(whole, eta, slack, plan)
        with np.errstate(over="ignore"):
            scale_up = np.exp(base - plan.tilt * eps_up + slack + eta)
            scale_low = np.exp(base - plan.tilt * eps_low - slack - eta)
            below = chernoff * (-np.expm1(np.minimum(base - whole, 0.0)) + 2 * slack)
        aside_lower, aside_upper = _set_aside(view_pairs, factors, eta, plan.eps)
        return PairTerms(
            view_pairs=view_pairs,
            plan=plan,
            eta=eta,
            eps_up=eps_up,
            eps_low=eps_low,
            scale_up=scale_up,
            scale_low=scale_low,
            outside=_outside(view_pairs, factors, eta, plan),
            below=below,
            splits=view_pairs.totals(view_pairs.splits).astype(np.int64),
            aside_lower=aside_lower,
            aside_upper=aside_upper,
            chernoff=chernoff,
        )

    def bounds(self, sums: FloatArray, error: FloatArray, keep: IntArray) -> PairBounds:
        """Theorem 6, put together.

        The columns ``UPPER`` and ``LOWER`` of ``sums`` and ``error`` are those of the two bounding
        functions; only the pairs ``keep`` have them, and the others get the Chernoff bound.
        """
        upper = self.chernoff.copy()
        with np.errstate(over="ignore", invalid="ignore"):
            fine = self.scale_up[keep] * (np.maximum(sums[keep, UPPER], 0.0) + error[keep, UPPER])
            upper[keep] = np.fmin(fine + self.below[keep], upper[keep])
        upper = np.fmin((upper + self.aside_upper) * (1 + 1e-12) + 5e-324, 1.0)
        lower = np.zeros(len(upper))
        with np.errstate(over="ignore", invalid="ignore"):
            lower[keep] = self.scale_low[keep] * np.maximum(
                sums[keep, LOWER] - error[keep, LOWER], 0.0
            )
        lower = np.where(np.isfinite(lower), lower, 0.0)
        lower = (lower + self.aside_lower) * (1 - 1e-12)
        lower[lower < SMALLEST_DELTA] = 0.0
        if not len(keep):
            return PairBounds(lower, upper)
        with np.errstate(over="ignore", invalid="ignore"):
            estimate = self.scale_up[keep] * sums[keep, UPPER] + self.aside_lower[keep]
            step_width = self.scale_up[keep] * (sums[keep, UPPER] - sums[keep, LOWER])
        worst = int(np.argmax(upper[keep]))
        return PairBounds(
            lower,
            upper,
            estimate=float(_finite(estimate).max()),
            step_width=float(np.nan_to_num(step_width[worst])),
        )


def cheap_bounds(view_pairs: ViewPairs, factors: Factors, plan: GridPlan) -> FloatArray:
    """Per pair, the upper bound of the divergence that needs no transform: the Chernoff bound, and
    what was set aside."""
    eta = view_pairs.totals(factors.eta)
    slack = _slack(view_pairs, factors, plan)
    chernoff = _chernoff(view_pairs.totals(factors.log_whole), eta, slack, plan)
    aside = _set_aside(view_pairs, factors, eta, plan.eps)[1]
    return np.fmin((chernoff + aside) * (1 + 1e-12) + 5e-324, 1.0)


def _slack(view_pairs: ViewPairs, factors: Factors, plan: GridPlan) -> FloatArray:
    """Bounds of the errors of sums of log-moments (Lemma F6)."""
    # a factor without mass adds nothing to the rounding errors
    size = _finite(np.abs(factors.log_moment[:, 0]) + np.abs(factors.log_whole))
    slack = view_pairs.totals(size) + plan.tilt * abs(plan.eps) + 64
    return np.asarray(_summation_error(view_pairs) * slack)


def _chernoff(whole: FloatArray, eta: FloatArray, slack: FloatArray, plan: GridPlan) -> FloatArray:
    eps_up = plan.eps - 2 * float(eta.max(initial=0.0))
    peak = math.exp(bounding_functions.log_peak(plan.tilt)) * (1 + 1e-9)
    with np.errstate(over="ignore"):
        return np.asarray(np.exp(whole - plan.tilt * eps_up + slack + eta) * peak)


def _summation_error(view_pairs: ViewPairs) -> FloatArray:
    """Relative error of a sum over the factors of each pair (Lemma F6)."""
    return np.asarray((16 + np.diff(view_pairs.start)) * UNIT_ROUNDOFF)


def _outside(
    view_pairs: ViewPairs, factors: Factors, eta: FloatArray, plan: GridPlan
) -> FloatArray:
    """Markov's inequality for the tilted loss at both ends of the window (Lemma F7)."""
    log_moment = view_pairs.totals(factors.log_moment)
    sizes = view_pairs.totals(_finite(np.abs(factors.log_moment)))
    inexact = eta + view_pairs.totals(factors.eta_others)
    summed = _summation_error(view_pairs)
    outside = np.zeros(view_pairs.pair_count)
    for side, edge in ((-1, plan.origin), (1, plan.origin + plan.size)):
        end = edge * plan.step
        bound = np.ones(view_pairs.pair_count)
        for j, other in enumerate(plan.other_tilts, start=1):
            tilt_difference = other - plan.tilt
            if tilt_difference * side > 0:
                size = sizes[:, 0] + sizes[:, j] + (abs(other) + plan.tilt) * abs(end) + 64
                with np.errstate(invalid="ignore", over="ignore"):
                    exponent = log_moment[:, j] - log_moment[:, 0] - tilt_difference * end
                    value = np.exp(exponent + summed * size + inexact)
                bound = np.minimum(bound, np.where(np.isnan(value), 1.0, value))
        if side > 0:
            bound[view_pairs.totals(factors.last) < edge] = 0.0
        outside += bound
    return np.minimum(outside, 1.0)


def _set_aside(
    view_pairs: ViewPairs, factors: Factors, eta: FloatArray, eps: float
) -> tuple[FloatArray, FloatArray]:
    """``aside_lower`` and ``aside_upper`` (Lemma 2)."""
    up = (factors.capped + factors.unknown) * np.exp(factors.eta) * (1 + 1e-12)
    down = factors.capped * np.exp(-factors.eta) * (1 - 1e-12)
    with np.errstate(divide="ignore"):
        log_up, log_down = np.log1p(-np.minimum(up, 1.0)), np.log1p(-np.minimum(down, 1.0))
    lost_up, lost_down = (
        -np.expm1(view_pairs.totals(log_up)),
        -np.expm1(view_pairs.totals(log_down)),
    )
    capped_q = view_pairs.totals(factors.capped_q)
    with np.errstate(over="ignore", invalid="ignore"):
        q_mass = capped_q * np.exp(eta + eps) * (1 + 1e-12)
    q_mass[capped_q == 0] = 0.0
    aside_lower = np.maximum(lost_down * (1 - 1e-12) - q_mass, 0.0)
    return aside_lower, np.minimum(lost_up * (1 + 1e-12), 1.0)


def _finite(values: FloatArray) -> FloatArray:
    """The values, with 0 in the place of those that are not finite."""
    return np.where(np.isfinite(values), values, 0.0)
