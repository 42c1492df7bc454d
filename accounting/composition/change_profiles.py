"""Upper bounds of the profile delta(eps) of every change, at all grid points of eps at once.

One rigorous pass of the evaluator (evaluate.py) gives the tilted law of the loss of every change on
a grid; its inverse transform is the law itself, and its profile follows (releases.md, section 4).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from accounting.base.arrays import UNIT_ROUNDOFF, FloatArray, IntArray, multiples
from accounting.base.deadline import check_time
from accounting.base.enclosure import counted
from accounting.base.errors import TooLarge
from accounting.base.threads import in_chunks
from accounting.composition.dominating_pair import (
    LOG_NEGLIGIBLE,
    DominatingPair,
    products_of_rows,
    refuse_lift,
)
from accounting.evaluator import bounding_functions
from accounting.evaluator.evaluate import MEMORY_LIMIT, CoarseEstimate, coarse_estimate
from accounting.evaluator.grid_plan import COARSEST_STEP, GridPlan, Refinement
from accounting.evaluator.pair_error_terms import PairTerms
from accounting.evaluator.spectra import Spectra, transform
from accounting.evaluator.tilted_losses import tilt_factors
from accounting.evaluator.view_pairs import ViewPairs

_BLOCK = 32
"""Number of changes whose laws are in memory at a time."""
_SMALLEST_NORMAL = 2.3e-308
"""Bound of the smallest normal double."""
_LOG_SMALLEST = -708.3
"""Its logarithm, from above."""
_OUTSIDE = 1e-11
"""Share of the tilted mass of one release that the window may leave out, by the coarse losses."""
_LEAST_REACH = 0.25
"""Smallest distance of the ends of the window from 0, in units of the loss."""
_LARGEST_EXPONENT = 600.0
"""Largest exponent of e^{-tilt * loss} for the negative tilts."""
_WIDENINGS, _WIDENING = 5, 1.5
"""Number of windows that are tried, and the ratio of their widths."""
_STEEPEST = 4.0
"""Steepest tilt that places the lower end of the window, relative to 1 + the tilt in use: steeper
ones see outcomes that never happen."""


@dataclass(frozen=True)
class Profiles:
    """Profiles of changes: ``rows(pairs)`` are upper bounds of delta of these changes at eps =
    (base + i) * step, i < size.

    ``tilt`` is that of the evaluation; ``order`` lists the changes, the largest ones first.
    """

    base: int
    step: float
    tilt: float
    size: int
    order: IntArray
    rows: Callable[[IntArray], FloatArray]

    def blocks(self) -> Iterator[tuple[IntArray, FloatArray]]:
        """Yield all changes with their rows, the largest ones first."""
        for begin in range(0, len(self.order), _BLOCK):
            check_time()
            chosen = self.order[begin : begin + _BLOCK]
            yield chosen, self.rows(chosen)


def change_profiles(
    view_pairs: ViewPairs,
    eps: float,
    releases: int,
    *,
    gap: float,
    delta: float = math.inf,
    dyadic: bool = False,
) -> Profiles:
    """Bound the profiles of one release, for a question about ``releases`` releases at ``eps``.

    The grid should add no more than a share of about ``gap`` to the answer, or of ``delta`` if that
    is smaller: the answer where these releases are some of many.  A ``dyadic`` step is a power of
    two, so that the grids of all mechanisms fit together.

    Raises:
        TooLarge: If the grid would not fit into memory.
        Undecided: If rounding errors of masses are coarser than the grid.
    """
    many, one = replace(view_pairs, releases=releases), replace(view_pairs, releases=1)
    wanted = Refinement(eps=eps, gap=gap, seen=delta)
    coarse = coarse_estimate(many, wanted)
    for widened in range(_WIDENINGS):
        plan = _plan(one, coarse, wanted, releases, widening=_WIDENING**widened, dyadic=dyadic)
        tilted = tilt_factors(one, coarse.tables, plan)
        terms = PairTerms.of(one, tilted.factors, plan)
        if float(terms.outside.max()) <= 1e3 * _OUTSIDE:
            break
    refuse_lift(_lift(terms), plan.step)
    spectra = transform(one, tilted, np.arange(one.pair_count))
    return Profiles(
        base=plan.origin,
        step=plan.step,
        tilt=plan.tilt,
        size=plan.size,
        order=np.argsort(-(terms.chernoff + terms.aside_upper), kind="stable"),
        rows=_InverseTransform(spectra, terms).profiles,
    )


def _plan(
    one: ViewPairs,
    coarse: CoarseEstimate,
    wanted: Refinement,
    releases: int,
    *,
    widening: float,
    dyadic: bool,
) -> GridPlan:
    """Plan a grid for the loss of one release, with the tilt and the precision of all ``releases``.

    Rules of thumb, as in grid_plan.py: the bounds hold whatever they say.
    """
    moments, saddle, eps, gap = coarse.moments, coarse.saddle, wanted.eps, wanted.gap
    expected = wanted.expected(saddle)
    tilts, log_moment = moments.tilts, one.totals(moments.log_moment)
    largest = np.where(np.isfinite(log_moment), log_moment, -math.inf).max(axis=0)
    largest[largest == -math.inf] = math.inf
    # the Chernoff bound, or the gentlest tilt that makes it small next to what is infinite anyway
    chernoff = releases * largest - tilts * eps
    enough = max(float(chernoff.min()), math.log(expected) - LOG_NEGLIGIBLE)
    a = max(1, int(np.argmax(chernoff <= enough)))
    tilt = float(tilts[a])
    # every split of every release adds variance to the loss
    step = min(COARSEST_STEP, math.sqrt(gap / (saddle.splits * tilt * (1 + tilt))))
    if dyadic:
        step = 2.0 ** math.floor(math.log2(step))
    spare = 1e-3 * gap * expected / releases
    with np.errstate(invalid="ignore", divide="ignore"):
        # what lies above the window counts as infinite, in every release
        above = np.where(tilts > 0, (log_moment - math.log(spare)) / tilts, math.inf)
        above[np.isnan(above)] = math.inf
        high = float(np.minimum(above.min(axis=1), one.totals(moments.cap)).max())
        # the reversed change has the same losses with the other sign, and e^loss times the mass
        own = log_moment[:, a]
        level = math.log(_OUTSIDE) + float(own[np.isfinite(own)].min(initial=0.0))
        drop = (largest - level) / (1 + tilt + tilts)
    gentle = tilts <= _STEEPEST * (1 + tilt)
    b = int(np.argmin(np.where(np.isfinite(drop) & gentle, drop, math.inf)))
    low = min(-float(drop[b]), -_LEAST_REACH) * widening
    high = max(high, _LEAST_REACH) * widening
    size = _grid_size((high - low) / step + 4 * saddle.splits / releases + 8, one)
    origin = math.floor(low / step) - 2
    # moments that prove how little lies outside: above by higher tilts, below by negative ones
    proved_by = np.unique(np.argmin(above, axis=1))
    proved_by = proved_by[proved_by > a][:: len(proved_by) // 8 + 1]
    proved_by = np.unique(np.concatenate([proved_by, [a + 1, a + 2]]))
    higher = tilts[proved_by[proved_by < len(tilts)]]
    lower = -1 - tilts[b] * np.array([1.0, 0.5, 0.2, 0.0])
    reach = max(float(moments.cap.max(initial=0.0)), float(moments.central_cap.max(initial=0.0)))
    width = reach + 2 * moments.largest_offset - 2 * low + 2
    lower = lower[-lower * width < _LARGEST_EXPONENT]
    return GridPlan(
        # the reference of all scales: there the law neither underflows nor overflows
        eps=min(max(eps / releases, origin * step), (origin + size) * step),
        step=step,
        size=size,
        origin=origin,
        tilt=tilt,
        other_tilts=np.concatenate([lower, higher]),
        first=math.floor((2 * low - 1) / step),
        cap=moments.cap,
        central_cap=moments.central_cap,
    )


def _grid_size(cells: float, view_pairs: ViewPairs) -> int:
    """Return the power of two that holds this number of cells, if there is memory for it."""
    most = MEMORY_LIMIT // (16 * (view_pairs.factor_count + 64))
    if not cells <= most / 2:
        raise TooLarge(
            f"the losses of {counted(view_pairs.pair_count, 'change')} need a grid of "
            f"{cells:,.0f} points, and {MEMORY_LIMIT >> 20} MiB hold {most // 2:,}: ask "
            "for a larger eps or delta"
        )
    return 1 << max(8, math.ceil(math.log2(cells)))


def _lift(terms: PairTerms) -> float:
    """By how much the relative errors of masses raise every loss (discretisation.md, Lemma 1)."""
    return 2.001 * float(terms.eta.max(initial=0.0))


class _InverseTransform:
    """The way from the spectra of the factors to the profiles of the changes."""

    def __init__(self, spectra: Spectra, terms: PairTerms) -> None:
        self.spectra, self.terms, self.plan = spectra, terms, terms.plan
        self.start, self.factor = terms.view_pairs.start, spectra.rows_of(terms.view_pairs)
        norms, log_sizes = spectra.norm_totals(terms.view_pairs)
        count = np.diff(self.start)
        stages = 28 * math.log2(self.plan.size)
        # releases.md, Lemma 5: transforms, products, and the inverse transform
        self.error = 1.02 * UNIT_ROUNDOFF * (stages * (norms + 2) + 6 * count + 64)
        self.error *= np.exp(log_sizes * (1 + 1e-9) + 3 * count * UNIT_ROUNDOFF)
        self.loss = multiples(self.plan.origin, self.plan.size, self.plan.step)
        self.peak = math.exp(bounding_functions.log_peak(self.plan.tilt)) * (1 + 1e-9)

    def profiles(self, pairs: IntArray) -> FloatArray:
        out = np.empty((len(pairs), self.plan.size))
        in_chunks(lambda a, b: self._fill(pairs[a:b], out[a:b]), len(pairs))
        return out

    def _fill(self, pairs: IntArray, out: FloatArray) -> None:
        plan, terms, n = self.plan, self.terms, self.plan.size
        law = products_of_rows(
            self.spectra.re, self.spectra.im, self.start, self.factor, pairs, scratch=out
        )
        law = np.roll(law, -(plan.origin % n), axis=1)  # index 0 is the loss origin * step
        # eps and not eps_up: outside the window, errors of masses shift eps
        # (discretisation.md, Lemma 1)
        exponent = plan.tilt * (plan.eps - self.loss)
        inexact = 32 * UNIT_ROUNDOFF * (plan.tilt * (abs(plan.eps) + np.abs(self.loss)) + 64)
        lift = _lift(terms)

        # what underflows stands for at most the smallest normal number
        scale_up = np.maximum(terms.scale_up, _SMALLEST_NORMAL)
        with np.errstate(over="ignore", invalid="ignore"):
            outside = scale_up * self.peak * terms.outside + np.maximum(
                terms.below, _SMALLEST_NORMAL
            )

        def carried(value: float) -> FloatArray:
            """An upper bound of ``value`` * e^exponent at every grid point."""
            found: FloatArray = np.exp(np.maximum(math.log(value) + exponent, _LOG_SMALLEST))
            return found * (1 + inexact)

        for i, q in enumerate(pairs):
            # fmin takes 1 where an infinite scale gave no number
            with np.errstate(over="ignore", invalid="ignore"):
                mass = (np.maximum(law[i], 0.0) + self.error[q]) * carried(scale_up[q])
                aside = carried(outside[q]) + terms.aside_upper[q]
            pair = DominatingPair(plan.step, plan.origin, np.fmin(mass, 1.0), 0.0)
            value = pair.profile(plan.origin, n, lift) + aside
            out[i] = np.fmin(value * (1 + 1e-11), 1.0)
