"""Everything about the bounds of a pair that needs no transform (discretisation.md, Theorem 3)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from accounting.base.arrays import FloatArray, IntArray
from accounting.evaluator import bounding_functions
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

    def within(self, gap: float, absolute: float) -> bool:
        """Whether the enclosure of the largest divergence has this relative gap or width, or is too
        small for both."""
        largest = float(self.upper.max(initial=0.0))
        width = largest - float(self.lower.max(initial=0.0))
        return width <= max(gap * largest, absolute) or largest < SMALLEST_DELTA

    def narrowed_by(self, later: PairBounds) -> PairBounds:
        """Both enclosures together, with the estimate of the later one."""
        return PairBounds(
            np.maximum(self.lower, later.lower),
            np.minimum(self.upper, later.upper),
            later.estimate,
            later.step_width,
        )


@dataclass(frozen=True)
class PairTerms:
    """Per pair, the terms of Theorem 3; ``terms`` has them side by side.

    ``eta``: bound of the relative errors of masses; ``eps_up`` and ``eps_low`` are eps shifted by
    them (Lemma 1).  ``scale_up`` and ``scale_low``: bounds of e^{-tilt * eps} times the moment.
    ``outside``: share of the tilted mass outside the window (Lemma F7).  ``below``: bound of the
    divergence lost below the grid (Lemma 3).  ``splits``: number of connect-the-dots splits.
    ``aside_lower`` and ``aside_upper``: bounds of the divergence of what was set aside (Lemma 2).
    ``chernoff``: Chernoff bound of the divergence of the rest.
    """

    view_pairs: ViewPairs
    plan: GridPlan
    terms: FloatArray
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
        from accounting.evaluator.compiled import pair_term_kernels as columns

        start, factor, releases = view_pairs.start, view_pairs.factor, view_pairs.releases
        shift = 2 * columns.largest_eta(start, factor, releases, factors.eta)
        eps_up, eps_low = plan.eps - shift, plan.eps + shift
        capped = factors.capped
        terms = np.empty((view_pairs.pair_count, columns.CHERNOFF + 1))
        columns.pair_terms(
            start,
            factor,
            releases,
            factors.log_moment,
            factors.log_whole,
            np.stack([capped + factors.unknown, capped, factors.capped_q], axis=1),
            factors.eta,
            factors.eta_others,
            factors.last,
            np.append(plan.tilt, plan.other_tilts),
            plan.eps,
            eps_up,
            eps_low,
            math.exp(bounding_functions.log_peak(plan.tilt)) * (1 + 1e-9),
            plan.step,
            plan.origin,
            plan.size,
            terms,
        )
        return PairTerms(
            view_pairs=view_pairs,
            plan=plan,
            terms=terms,
            eta=terms[:, columns.ETA],
            eps_up=eps_up,
            eps_low=eps_low,
            scale_up=terms[:, columns.SCALE_UP],
            scale_low=terms[:, columns.SCALE_LOW],
            outside=terms[:, columns.OUTSIDE],
            below=terms[:, columns.BELOW],
            splits=view_pairs.totals(view_pairs.splits).astype(np.int64),
            aside_lower=terms[:, columns.ASIDE_LOWER],
            aside_upper=terms[:, columns.ASIDE_UPPER],
            chernoff=terms[:, columns.CHERNOFF],
        )

    def bounds(self, sums: FloatArray, error: FloatArray, keep: IntArray) -> PairBounds:
        """Theorem 3, put together.

        The columns ``UPPER`` and ``LOWER`` of ``sums`` and ``error`` are those of the two bounding
        functions; only the pairs ``keep`` have them, and the others get the Chernoff bound.
        """
        from accounting.evaluator.compiled.pair_term_kernels import assemble

        kept, out = np.zeros(len(self.terms), np.bool_), np.empty((len(self.terms), 4))
        kept[keep] = True
        assemble(self.terms, sums, error, kept, SMALLEST_DELTA, out)
        if not len(keep):
            return PairBounds(out[:, 0], out[:, 1])
        worst = keep[np.argmax(out[keep, 1])]
        return PairBounds(
            lower=out[:, 0],
            upper=out[:, 1],
            estimate=float(out[keep, 2].max()),
            step_width=float(out[worst, 3]),
        )


def cheap_bounds(view_pairs: ViewPairs, factors: Factors, plan: GridPlan) -> FloatArray:
    """Per pair, the upper bound of the divergence that needs no transform: the Chernoff bound, and
    what was set aside."""
    terms = PairTerms.of(view_pairs, factors, plan)
    return np.fmin((terms.chernoff + terms.aside_upper) * (1 + 1e-12) + 5e-324, 1.0)
