"""Upper bounds of the profile delta(eps) of every change, at all grid points of eps at once.

One rigorous pass of the evaluator (evaluate.py) gives the tilted law of the loss of every change on
a grid; its inverse transform is the law itself, and its profile follows (releases.md, section 4).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from accounting.base.arrays import FloatArray, IntArray, multiples
from accounting.base.errors import TooLarge
from accounting.base.threads import in_chunks
from accounting.composition.dominating_pair import DominatingPair
from accounting.evaluator import bounding_functions
from accounting.evaluator.evaluate import MEMORY_LIMIT, look_closely
from accounting.evaluator.grid_plan import COARSEST_STEP, Outlook, Plan, Survey
from accounting.evaluator.pair_error_terms import PairTerms
from accounting.evaluator.spectra import Spectra, transform, twiddles
from accounting.evaluator.tilted_losses import tilt_factors
from accounting.evaluator.view_pairs import ViewPairs
from accounting.model.noise import UNIT_ROUNDOFF

_BLOCK = 32
"""Changes whose laws are in memory at a time."""
_SMALLEST_NORMAL = 2.3e-308
_OUTSIDE = 1e-11
"""Share of the tilted mass of one release that the window may leave out, by the coarse survey."""

_SMALL_NEXT_TO_IT = 9.0
"""Logarithm of the factor by which Chernoff's bound may lie below the divergence that is seen."""
_LEAST = 0.25
"""How far the window reaches on either side of 0 at least."""
_LARGEST_EXPONENT = 600.0
"""Of e^{-tilt * loss} for the negative tilts."""
_WIDENINGS = 5
"""How often a window that leaves out too much is made wider."""
_STEEPEST = 4.0
"""Of the tilts that place the lower end of the window, relative to 1 + the tilt in use."""


@dataclass(frozen=True)
class Profiles:
    """``rows(pairs)``: upper bounds of delta of these changes at eps = (base + i) * step."""

    base: int
    step: float
    tilt: float
    size: int
    order: IntArray
    rows: Callable[[IntArray], FloatArray]

    def blocks(self) -> Iterator[tuple[IntArray, FloatArray]]:
        """All changes, the largest ones first."""
        for begin in range(0, len(self.order), _BLOCK):
            chosen = self.order[begin : begin + _BLOCK]
            yield chosen, self.rows(chosen)


def change_profiles(view_pairs: ViewPairs, eps: float, releases: int, *, gap: float) -> Profiles:
    """For a question about ``releases`` releases at ``eps``; the grid should add no more than about
    ``gap`` of its delta."""
    many, one = replace(view_pairs, releases=releases), replace(view_pairs, releases=1)
    tables, seen, look, _ = look_closely(many, eps, 1e-18, 0.2 * gap, 1.0, 0.0, math.inf, 0.0)
    for widened in range(_WIDENINGS):
        plan = _plan(one, seen, look, eps, releases, gap, 1.5**widened)
        rows, central_rows, factors = tilt_factors(one, tables, plan)
        terms = PairTerms.of(one, factors, plan)
        if float(terms.outside.max()) <= 1e3 * _OUTSIDE:
            break
    spectra = transform(one, rows, central_rows, factors, plan, np.arange(one.pair_count))
    worker = _Inverse(one, plan, spectra, terms)
    order = np.argsort(-(terms.chernoff + terms.not_kept), kind="stable")
    return Profiles(plan.origin, plan.step, plan.tilt, plan.size, order, worker.rows)


def _plan(
    one: ViewPairs,
    seen: Survey,
    look: Outlook,
    eps: float,
    releases: int,
    gap: float,
    widened: float,
) -> Plan:
    """A grid for the loss of one release, with the tilt and the precision of all ``releases``.

    Rules of thumb, as in survey.py: the bounds hold whatever they say.
    """
    tilts, log_m = seen.tilts, one.sum_over_pairs(seen.log_moment)
    largest = np.where(np.isfinite(log_m), log_m, -math.inf).max(axis=0)
    largest[largest == -math.inf] = math.inf
    # Chernoff's bound, or the gentlest tilt that makes it small next to what is infinite anyway
    chernoff = releases * largest - tilts * eps
    enough = max(float(chernoff.min()), math.log(max(look.total, 1e-300)) - _SMALL_NEXT_TO_IT)
    a = max(1, int(np.argmax(chernoff <= enough)))
    tilt = float(tilts[a])
    # every split of every release adds variance to the loss
    step = min(COARSEST_STEP, math.sqrt(gap / (look.splits * tilt * (1 + tilt))))
    spare = 1e-3 * gap * max(look.total, 1e-300) / releases
    with np.errstate(invalid="ignore", divide="ignore"):
        # what lies above the window counts as infinite, in every release
        above = np.where(tilts > 0, (log_m - math.log(spare)) / tilts, math.inf)
        above[np.isnan(above)] = math.inf
        proved_by = np.unique(np.argmin(above, axis=1))
        high = float(np.minimum(above.min(axis=1), one_top(one, seen)).max())
        # the reversed change has the same losses with the other sign, and e^loss times the mass
        own = log_m[:, a]
        level = math.log(_OUTSIDE) + float(own[np.isfinite(own)].min(initial=0.0))
        drop = (largest - level) / (1 + tilt + tilts)
    gentle = tilts <= _STEEPEST * (1 + tilt)  # steeper ones see outcomes that never happen
    b = int(np.argmin(np.where(np.isfinite(drop) & gentle, drop, math.inf)))
    low, high = min(-float(drop[b]), -_LEAST) * widened, max(high, _LEAST) * widened
    cells = (high - low) / step + 4 * look.splits / releases + 8
    most = MEMORY_LIMIT // (16 * (one.factor_count + 64))
    if not cells <= most / 2:
        raise TooLarge(
            f"the losses of {one.pair_count:,} changes need a grid of {cells:,.0f} points, and "
            f"{MEMORY_LIMIT >> 20} MiB hold {most // 2:,}: ask for a larger eps or delta"
        )
    size = 1 << max(8, math.ceil(math.log2(cells)))
    origin = math.floor(low / step) - 2
    proved_by = np.unique(
        np.concatenate([proved_by[proved_by > a][:: len(proved_by) // 8 + 1], [a + 1, a + 2]])
    )
    higher = tilts[proved_by[proved_by < len(tilts)]]
    lower = -1 - tilts[b] * np.array([1.0, 0.5, 0.2, 0.0])
    reach = max(float(seen.top.max(initial=0.0)), float(seen.central_top.max(initial=0.0)))
    width = reach + 2 * seen.reach - 2 * low + 2
    lower = lower[-lower * width < _LARGEST_EXPONENT]
    return Plan(
        eps=max(abs(origin), abs(origin + size)) * step,
        step=step,
        size=size,
        origin=origin,
        tilt=tilt,
        others=np.concatenate([lower, higher]),
        first=math.floor((2 * low - 1) / step),
        top=seen.top,
        central_top=seen.central_top,
    )


def one_top(one: ViewPairs, seen: Survey) -> FloatArray:
    """The largest finite loss of every change after capping."""
    return one.sum_over_pairs(seen.top[:, None])[:, 0]


class _Inverse:
    """From the spectra of the factors to the profiles of the changes."""

    def __init__(
        self, view_pairs: ViewPairs, plan: Plan, spectra: Spectra, terms: PairTerms
    ) -> None:
        self.view_pairs, self.plan, self.spectra, self.terms = view_pairs, plan, spectra, terms
        self.factor = np.maximum(spectra.row_of, 0)[view_pairs.factor]
        norms, sizes = np.ones(view_pairs.factor_count), np.zeros(view_pairs.factor_count)
        known = spectra.row_of >= 0
        norms[known] = spectra.norm[spectra.row_of[known]]
        sizes[known] = spectra.log_size[spectra.row_of[known]]
        total = view_pairs.sum_over_pairs(np.stack([norms, sizes], axis=1))
        count = np.diff(view_pairs.start)
        stages = 28 * math.log2(plan.size)
        # releases.md, Lemma 7: transforms, products, and the inverse transform
        self.error = 1.02 * UNIT_ROUNDOFF * (stages * (total[:, 0] + 2) + 6 * count + 64)
        self.error *= np.exp(total[:, 1] * (1 + 1e-9) + 3 * count * UNIT_ROUNDOFF)
        self.loss = multiples(plan.origin, plan.size, plan.step)
        self.peak = math.exp(bounding_functions.log_peak(plan.tilt)) * (1 + 1e-9)

    def rows(self, pairs: IntArray) -> FloatArray:
        out = np.empty((len(pairs), self.plan.size))
        in_chunks(lambda a, b: self._some(pairs[a:b], out[a:b]), len(pairs))
        return out

    def _some(self, pairs: IntArray, out: FloatArray) -> None:
        from accounting.composition.composition_kernels import hartley_values, multiply_spectra
        from accounting.evaluator.kernels import rfft_rows

        plan, terms, n = self.plan, self.terms, self.plan.size
        multiply_spectra(
            self.spectra.re, self.spectra.im, self.view_pairs.start, self.factor, pairs, out
        )
        re, im = np.empty((len(pairs), n // 2 + 1)), np.empty((len(pairs), n // 2 + 1))
        rfft_rows(out, np.ones(len(pairs)), *twiddles(n), re, im)
        law = np.empty_like(out)
        hartley_values(re, im, law)
        law = np.roll(law, -(plan.origin % n), axis=1)  # index 0 is the loss origin * step
        inexact = 32 * UNIT_ROUNDOFF * (plan.tilt * (abs(terms.eps_up) + np.abs(self.loss)) + 8)
        with np.errstate(over="ignore"):
            scale = np.exp(plan.tilt * (terms.eps_up - self.loss)) * (1 + inexact)
        lift = 2.001 * float(terms.eta.max(initial=0.0))
        # a number that underflows stands for at most the smallest normal one
        scale_up = np.maximum(terms.scale_up, _SMALLEST_NORMAL)
        for i, q in enumerate(pairs):
            mass = np.maximum(law[i], 0.0) + self.error[q]
            with np.errstate(over="ignore", invalid="ignore"):
                mass = np.minimum(mass * (scale_up[q] * scale), 1.0)
                aside = (scale_up[q] * self.peak * terms.outside[q] + terms.below[q]) * scale
            pair = DominatingPair(plan.step, plan.origin, mass, 0.0)
            value = pair.profile(plan.origin, n, lift) + np.where(np.isnan(aside), 1.0, aside)
            out[i] = np.minimum((value + terms.not_kept[q]) * (1 + 1e-11), 1.0)
