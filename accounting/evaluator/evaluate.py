"""Rigorous bounds for every pair of a view_pairs: the heart of the package.

One pass does the following; discretisation.md and floating_point.md prove that the result is an
enclosure whatever the plan, so the plan may be chosen by rules of thumb.

1. Tabulate every noise; put the loss of every factor on the grid (connect_the_dots).
2. Tilt by e^{tilt * loss}, wrap to the window, transform.  What is tilted has total mass one, so
   the absolute error of the transform is a relative error of the result, at any delta.
3. Multiply the spectra of a pair and take the inner product with two test functions.
4. Add what was set aside: infinite and capped losses, tails, mass outside the window, rounding.
"""

from __future__ import annotations

import math

import numpy as np

from accounting.base.deadline import check_time
from accounting.base.errors import TooLarge
from accounting.base.progress import Progress, silent
from accounting.evaluator.grid_plan import Outlook, Plan, Survey, Surveyor, choose, outlook
from accounting.evaluator.noise_tables import NoiseTable
from accounting.evaluator.pair_error_terms import Bounds, PairTerms
from accounting.evaluator.spectra import correlate, transform
from accounting.evaluator.tilted_losses import LARGEST_GRID, tabulate, tilt_factors
from accounting.evaluator.view_pairs import ViewPairs

MEMORY_LIMIT = 2 << 30
"""Bytes that the spectra of one evaluation may take."""
_ATTEMPTS = 8
LARGEST_EPS = 1e6
_NEGLIGIBLE = 1e-4
"""Pairs whose bound is this small relative to the worst keep the cheap Chernoff bound."""


def evaluate(
    view_pairs: ViewPairs,
    eps: float,
    *,
    gap: float = 0.01,
    absolute: float = 0.0,
    progress: Progress = silent,
) -> Bounds:
    """Enclosures of the divergence of every pair at ``eps``.

    The grid is refined until the enclosure of the largest one has relative gap ``gap`` or width
    ``absolute``; the others may be wider, and their upper bounds are below the largest.  The
    caller looks at ``Bounds.gap`` to learn whether that was reached.
    """
    if eps > LARGEST_EPS:
        raise TooLarge(f"eps = {eps:g} is more than {LARGEST_EPS:g}, where grids of losses end")
    lower = np.zeros(view_pairs.pair_count)
    upper = np.where(view_pairs.largest_loss <= eps, 0.0, 1.0)
    left = np.flatnonzero(upper > 0)
    tail, finer, estimate, ceiling = 1e-18, 1.0, 0.0, math.inf
    for attempt in range(_ATTEMPTS):
        if not len(left):
            break
        part = view_pairs if len(left) == view_pairs.pair_count else view_pairs.subset(left)
        tables, seen, look, tail = look_closely(
            part,
            eps,
            tail,
            0.2 * gap * 0.5 ** (attempt // 3),
            0.3**attempt,
            estimate,
            ceiling,
            absolute,
        )
        delta = max(estimate or min(look.total, ceiling), absolute, 1e-300)
        largest = min(LARGEST_GRID, _power_of_two(MEMORY_LIMIT // (16 * (part.factor_count + 64))))
        if largest < 256:
            raise TooLarge(
                f"{part.factor_count:,} distinct factors leave no room for a grid in "
                f"{MEMORY_LIMIT >> 20} MiB; evaluate fewer pairs at a time"
            )
        plan = choose(
            seen,
            look,
            eps=eps,
            gap=gap,
            finer=finer,
            delta=delta,
            largest_size=largest,
            thorough=attempt > 0,
        )
        progress(
            f"{len(left):,} pairs, {part.factor_count:,} factors, grid of {plan.size:,} points "
            f"{plan.step:.3g} apart, tilt {plan.tilt:.4g}"
        )
        got = run(part, tables, plan)
        lower[left] = np.maximum(lower[left], got.lower)
        upper[left] = np.minimum(upper[left], got.upper)
        if (lower > upper).any():
            raise AssertionError("the bounds crossed: please report the configuration")
        best = float(lower.max())
        width = float(upper.max()) - best
        if width <= max(gap * float(upper.max()), absolute) or float(upper.max()) < 1e-280:
            break
        left = np.flatnonzero(upper > max(best, absolute / 2))
        if got.blur > 0.25 * width:
            finer *= max(0.1, min(0.6, 0.8 * math.sqrt(gap * max(best, absolute) / width)))
        estimate = best
        ceiling = got.guess if got.guess > 0 else math.inf
        tail = min(tail, 1e-6 * gap * max(estimate, absolute, 1e-280))
        if plan.size == largest and attempt > 1:
            break
    return Bounds(lower, upper)


def look_closely(
    view_pairs: ViewPairs,
    eps: float,
    tail: float,
    share: float,
    finer: float,
    estimate: float,
    ceiling: float,
    absolute: float,
) -> tuple[dict[int, NoiseTable], Survey, Outlook, float]:
    """Tables, survey and outlook whose tails and caps are small next to the divergence they show.

    How much may be cut depends on the divergence, and how large it looks on what was cut.
    """
    for _ in range(8):
        check_time()
        tables = tabulate(view_pairs, tail)
        surveyor = Surveyor(view_pairs, tables, eps, finer=finer)
        budget = 1e-6
        for turn in range(80):
            check_time()
            seen = surveyor.capped(budget)
            look = outlook(view_pairs, seen, eps)
            delta = max(estimate or min(look.total, ceiling), absolute)
            wanted = share * delta * math.exp(-eps) / look.splits
            if turn == 0 and wanted > 5 * budget:
                budget = 1e-3  # a large divergence: come from above
                continue
            if budget <= 1.5 * wanted:
                break
            budget = 0.4 * wanted
        if tail <= max(1e-3 * share * delta, 1e-290):
            break
        tail = max(1e-6 * share * delta, 1e-290)
    return tables, seen, look, tail


def _power_of_two(n: int) -> int:
    return 1 << max(0, n.bit_length() - 1)


def run(view_pairs: ViewPairs, tables: dict[int, NoiseTable], plan: Plan) -> Bounds:
    """One rigorous pass (Theorem 6: the enclosure holds for any plan)."""
    rows, central_rows, factors = tilt_factors(view_pairs, tables, plan)
    terms = PairTerms.of(view_pairs, factors, plan)
    contends = terms.chernoff + terms.not_kept > 0.5 * terms.not_kept.max()
    keep = np.flatnonzero(contends | (terms.chernoff > _NEGLIGIBLE * terms.chernoff.max()))
    sums = np.zeros((view_pairs.pair_count, 2))
    error = np.zeros((view_pairs.pair_count, 2))
    if len(keep):
        spectra = transform(view_pairs, rows, central_rows, factors, plan, keep)
        sums[keep], error[keep] = correlate(view_pairs, spectra, terms, plan, keep)
    return terms.bounds(sums, error, keep)
