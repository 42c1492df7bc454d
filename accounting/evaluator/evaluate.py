"""Rigorous bounds for every pair of views: the heart of the package.

One pass does the following; discretisation.md and floating_point.md prove that the result is an
enclosure whatever the plan, so the plan may be chosen by rules of thumb.

1. Tabulate every noise; put the loss of every factor on the grid (connect_the_dots).
2. Tilt by e^{tilt * loss}, wrap to the window, transform.  The tilted losses have total mass one,
   so the absolute error of the transform is a relative error of the result, at any delta.
3. Multiply the spectra of a pair and take the inner product with two bounding functions.
4. Add what was set aside: infinite and capped losses, tails, mass outside the window, rounding.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from accounting.base.arrays import FloatArray
from accounting.base.deadline import check_time
from accounting.base.errors import InternalError, TooLarge
from accounting.base.progress import Progress, silent
from accounting.evaluator.grid_plan import (
    CappedMoments,
    CoarseLosses,
    GridPlan,
    Refinement,
    SaddleEstimate,
    choose_plan,
    saddle_estimate,
)
from accounting.evaluator.noise_tables import NoiseTables, tabulate
from accounting.evaluator.pair_error_terms import PairBounds, PairTerms
from accounting.evaluator.spectra import correlate, transform
from accounting.evaluator.tilted_losses import LARGEST_GRID, SMALLEST_DELTA, tilt_factors
from accounting.evaluator.view_pairs import ViewPairs

MEMORY_LIMIT = 2 << 30
"""Bytes that the spectra of one evaluation may take."""
LARGEST_EPS = 1e6
"""Largest eps that is evaluated: the grid of one factor ends at a loss of 2^22 / 16, below 3e5."""
_ATTEMPTS = 8
"""Largest number of passes, each on a finer grid."""
_STALLED, _MOST_STALLS = 0.98, 3
"""An attempt that leaves more than this share of the width is in vain.  After that many in a row,
with a lower bound above 0, rounding determines the width, and refining does not help."""
_WIDER, _COARSEST_GAP = 10.0, 0.01
"""Factor between gaps that are tried where one is out of reach, and the largest of them."""
_NEGLIGIBLE = 1e-4
"""Pairs whose bound is this small relative to the worst keep the cheap Chernoff bound."""
_FAR_SMALLER = 0.1
"""A divergence that is this small relative to what the grid was chosen for gets another grid."""
_SMALLEST_TAIL = 1e-290
"""Smallest tail that a table is made for: below, doubles lose their relative accuracy."""
# Rules of thumb for the coarse estimate, which is no bound.
_TAIL_ROUNDS, _CAP_ROUNDS = 8, 80
"""Largest number of tails that are tried, and of caps for each."""
_STEP_RATIO = 0.3
"""Ratio of the steps of the coarse grids of two attempts."""
_LARGEST_TAIL, _NEXT_TAIL = 1e-3, 1e-6
"""Largest tail, and the one that is tried next, relative to the divergence that caps may cut."""
_FIRST_BUDGET, _LARGE_BUDGET = 1e-6, 1e-3
"""Mass that caps may cut from a factor at first; the second one for a large divergence."""
_FAR_BELOW, _CLOSE, _NEXT_BUDGET = 5, 1.5, 0.4
"""Relative to the budget: allowed mass at which the large budget is tried.  Relative to the allowed
mass: largest budget, and the budget that is tried next."""


def evaluate(
    view_pairs: ViewPairs,
    eps: float,
    *,
    gap: float = 0.01,
    absolute: float = 0.0,
    progress: Progress = silent,
) -> PairBounds:
    """Enclosures of the divergence of every pair at ``eps``.

    The grid is refined until the enclosure of the largest one has relative gap ``gap`` or width
    ``absolute``, or until refining does not help: the caller compares the bounds to learn which.
    The other enclosures may be wider, and their upper bounds are below the largest.

    Where rounding errors put the gap out of reach, fine grids are worse than coarse ones.  So gaps
    10, 100, ... times as large are tried as well until one of them is met, and the bounds are no
    wider than if that had been asked for.
    """
    if eps > LARGEST_EPS:
        raise TooLarge(f"eps = {eps:g} is more than {LARGEST_EPS:g}, where grids of losses end")
    found = _refined_to(gap, view_pairs, eps, absolute, progress)
    wider = gap
    while not found.within(wider, absolute) and wider < _COARSEST_GAP:
        wider = min(_WIDER * wider, _COARSEST_GAP)
        left = np.flatnonzero(found.upper > found.lower.max())
        part = view_pairs if len(left) == view_pairs.pair_count else view_pairs.subset(left)
        again = _refined_to(wider, part, eps, absolute, progress)
        found.lower[left] = np.maximum(found.lower[left], again.lower)
        found.upper[left] = np.minimum(found.upper[left], again.upper)
        _check_uncrossed(found.lower, found.upper)
    return found


def _refined_to(
    gap: float, view_pairs: ViewPairs, eps: float, absolute: float, progress: Progress
) -> PairBounds:
    """The bounds of passes that aim at this relative gap."""
    lower = np.zeros(view_pairs.pair_count)
    upper = np.where(view_pairs.largest_loss <= eps, 0.0, 1.0)
    left = np.flatnonzero(upper > 0)
    wanted = Refinement(eps=eps, gap=gap, absolute=absolute)
    before, stalls = math.inf, 0
    while len(left) and wanted.attempt < _ATTEMPTS:
        part = view_pairs if len(left) == view_pairs.pair_count else view_pairs.subset(left)
        coarse = coarse_estimate(part, wanted)
        largest = _largest_grid(part)
        plan = choose_plan(coarse.moments, coarse.saddle, wanted, largest)
        progress(f"bounding {len(left):,} pairs on a grid of {plan.size:,} points")
        found = evaluate_on_grid(part, coarse.tables, plan)
        if 0 < found.estimate < _FAR_SMALLER * wanted.expected(coarse.saddle):
            # the window was chosen for a larger divergence
            smaller = replace(wanted, seen=found.estimate, attained=0.0)
            plan = choose_plan(coarse.moments, coarse.saddle, smaller, largest)
            found = found.narrowed_by(evaluate_on_grid(part, coarse.tables, plan))
        lower[left] = np.maximum(lower[left], found.lower)
        upper[left] = np.minimum(upper[left], found.upper)
        _check_uncrossed(lower, upper)
        best = float(lower.max())
        width = float(upper.max()) - best
        if width <= max(gap * float(upper.max()), absolute) or float(upper.max()) < SMALLEST_DELTA:
            break
        stalls = stalls + 1 if best > 0 and width > _STALLED * before else 0
        if stalls == _MOST_STALLS or (plan.size == largest and wanted.attempt > 1):
            break
        before = width
        left = np.flatnonzero(upper > max(best, absolute / 2))
        wanted = _refined(wanted, found, tail=coarse.tail, attained=best, width=width)
    return PairBounds(lower, upper)


def _check_uncrossed(lower: FloatArray, upper: FloatArray) -> None:
    if not (lower <= upper).all():  # nor comparable, if one is not a number
        raise InternalError("the bounds crossed: please report the configuration")


def _refined(
    last: Refinement, found: PairBounds, *, tail: float, attained: float, width: float
) -> Refinement:
    """The next attempt, after one that left an enclosure of this width."""
    scale, step_factor = max(attained, last.absolute), last.step_factor
    if found.step_width > 0.25 * width:
        step_factor *= max(0.1, min(0.6, 0.8 * math.sqrt(last.gap * scale / width)))
    return replace(
        last,
        attempt=last.attempt + 1,
        tail=min(tail, 1e-6 * last.gap * max(scale, SMALLEST_DELTA)),
        step_factor=step_factor,
        attained=attained,
        seen=found.estimate if found.estimate > 0 else math.inf,
    )


def _largest_grid(view_pairs: ViewPairs) -> int:
    """The largest power of two whose spectra fit into the memory."""
    shifts = 0 if view_pairs.central is None else len(view_pairs.central.shifts)
    room = MEMORY_LIMIT // (16 * (view_pairs.factor_count + shifts + 64))
    largest = min(LARGEST_GRID, 1 << max(0, room.bit_length() - 1))
    if largest < 256:
        raise TooLarge(
            f"{view_pairs.factor_count:,} distinct factors leave no room for a grid in "
            f"{MEMORY_LIMIT >> 20} MiB; evaluate fewer pairs at a time"
        )
    return largest


@dataclass(frozen=True)
class CoarseEstimate:
    """Tables that leave about ``tail``, and what the losses look like on a coarse grid."""

    tables: NoiseTables
    tail: float
    moments: CappedMoments
    saddle: SaddleEstimate


def coarse_estimate(view_pairs: ViewPairs, wanted: Refinement) -> CoarseEstimate:
    """An estimate with tails and caps that are small next to the divergence that it shows.

    How much may be cut depends on the divergence, and the divergence that is seen depends on how
    much was cut, hence the iterations.
    """
    share, tail, budget = wanted.cap_share, wanted.tail, _FIRST_BUDGET
    for _ in range(_TAIL_ROUNDS):
        check_time()
        tables = tabulate(view_pairs, tail)
        losses = CoarseLosses(
            view_pairs, tables, wanted.eps, step_factor=_STEP_RATIO**wanted.attempt
        )
        for turn in range(_CAP_ROUNDS):
            check_time()
            moments = losses.capped(budget)
            saddle = saddle_estimate(view_pairs, moments, wanted.eps)
            delta = wanted.expected(saddle)
            allowed = share * delta * math.exp(-wanted.eps) / saddle.splits
            if turn == 0 and budget == _FIRST_BUDGET and allowed > _FAR_BELOW * budget:
                budget = _LARGE_BUDGET
                continue
            if budget <= _CLOSE * allowed:
                break
            budget = _NEXT_BUDGET * allowed
        if tail <= max(_LARGEST_TAIL * share * delta, _SMALLEST_TAIL):
            break
        tail = max(_NEXT_TAIL * share * delta, _SMALLEST_TAIL)
    return CoarseEstimate(tables, tail, moments, saddle)


def evaluate_on_grid(view_pairs: ViewPairs, tables: NoiseTables, plan: GridPlan) -> PairBounds:
    """One rigorous pass (discretisation.md, Theorem 3: the enclosure holds for any plan)."""
    tilted = tilt_factors(view_pairs, tables, plan)
    terms = PairTerms.of(view_pairs, tilted.factors, plan)
    contends = terms.chernoff + terms.aside_upper > 0.5 * terms.aside_upper.max()
    keep = np.flatnonzero(contends | (terms.chernoff > _NEGLIGIBLE * terms.chernoff.max()))
    sums = np.zeros((view_pairs.pair_count, 2))
    error = np.zeros((view_pairs.pair_count, 2))
    if len(keep):
        spectra = transform(view_pairs, tilted, keep)
        sums[keep], error[keep] = correlate(spectra, terms, keep)
    return terms.bounds(sums, error, keep)
