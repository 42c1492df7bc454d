"""Everything about the bounds of a pair that needs no transform (discretisation.md, Theorem 6)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from accounting.base.arrays import FloatArray, IntArray
from accounting.evaluator import bounding_functions
from accounting.evaluator.grid_plan import GridPlan
from accounting.evaluator.tilted_losses import Factors
from accounting.evaluator.view_pairs import ViewPairs
from accounting.model.noise import UNIT_ROUNDOFF


@dataclass(frozen=True)
class Bounds:
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
    ``given_away`` and ``not_kept``: bounds from below and above of the divergence of what was set
    aside (Lemma 2).  ``chernoff``: Chernoff bound of the divergence of the rest.
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
    given_away: FloatArray
    not_kept: FloatArray
    chernoff: FloatArray

    @staticmethod
    def of(view_pairs: ViewPairs, factors: Factors, plan: GridPlan) -> PairTerms:
        eta = view_pairs.totals(factors.eta)
        shift = 2 * float(eta.max(initial=0.0))
        eps_up, eps_low = plan.eps - shift, plan.eps + shift
        base = view_pairs.totals(factors.log_moment[:, 0])
        whole = view_pairs.totals(factors.log_whole)
        # a factor without mass adds nothing to the rounding errors
        size = _finite(np.abs(factors.log_moment[:, 0]) + np.abs(factors.log_whole))
        slack = view_pairs.totals(size) + plan.tilt * abs(plan.eps) + 64
        slack = _summation_error(view_pairs) * slack
        peak = math.exp(bounding_functions.log_peak(plan.tilt)) * (1 + 1e-9)
        with np.errstate(over="ignore"):
            chernoff = np.exp(whole - plan.tilt * eps_up + slack + eta) * peak
            scale_up = np.exp(base - plan.tilt * eps_up + slack + eta)
            scale_low = np.exp(base - plan.tilt * eps_low - slack - eta)
            below = chernoff * (-np.expm1(np.minimum(base - whole, 0.0)) + 2 * slack)
        given_away, not_kept = _set_aside(view_pairs, factors, eta, plan.eps)
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
            given_away=given_away,
            not_kept=not_kept,
            chernoff=chernoff,
        )

    def bounds(self, sums: FloatArray, error: FloatArray, keep: IntArray) -> Bounds:
        """Theorem 6, put together.

        Columns of ``sums`` and ``error`` are the upper and the lower bounding function; only the
        pairs ``keep`` have them, and the others get the Chernoff bound.
        """
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
        if not len(keep):
            return Bounds(lower, upper)
        with np.errstate(over="ignore", invalid="ignore"):
            estimate = self.scale_up[keep] * sums[keep, 0] + self.given_away[keep]
            step_width = self.scale_up[keep] * (sums[keep, 0] - sums[keep, 1])
        worst = int(np.argmax(upper[keep]))
        return Bounds(
            lower,
            upper,
            estimate=float(_finite(estimate).max()),
            step_width=float(np.nan_to_num(step_width[worst])),
        )


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
            gap = other - plan.tilt
            if gap * side > 0:
                size = sizes[:, 0] + sizes[:, j] + (abs(other) + plan.tilt) * abs(end) + 64
                with np.errstate(invalid="ignore", over="ignore"):
                    exponent = log_moment[:, j] - log_moment[:, 0] - gap * end
                    value = np.exp(exponent + summed * size + inexact)
                bound = np.minimum(bound, np.where(np.isnan(value), 1.0, value))
        if side > 0:
            bound[view_pairs.totals(factors.last) < edge] = 0.0
        outside += bound
    return np.minimum(outside, 1.0)


def _set_aside(
    view_pairs: ViewPairs, factors: Factors, eta: FloatArray, eps: float
) -> tuple[FloatArray, FloatArray]:
    """``given_away`` and ``not_kept`` (Lemma 2)."""
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
    given_away = np.maximum(lost_down * (1 - 1e-12) - q_mass, 0.0)
    return given_away, np.minimum(lost_up * (1 + 1e-12), 1.0)


def _finite(values: FloatArray) -> FloatArray:
    """The values, with 0 in the place of those that are not finite."""
    return np.where(np.isfinite(values), values, 0.0)
