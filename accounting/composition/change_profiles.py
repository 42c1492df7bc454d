"""Upper bounds of the profile delta(eps) of every change, at all grid points of eps at once.

One rigorous pass of the evaluator (evaluate.py) gives the tilted law of the loss of every change on
a grid; its inverse transform is the law itself, and its profile follows (releases.md, section 4).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from accounting import testfunctions
from accounting.arrays import FloatArray, IntArray, multiples
from accounting.composition.dominating_pair import DominatingPair
from accounting.errors import TooLarge
from accounting.evaluate import MEMORY_LIMIT, look_closely
from accounting.noise import UNIT_ROUNDOFF
from accounting.pair_terms import PairTerms
from accounting.parallel import in_chunks
from accounting.spectra import Spectra, transform, twiddles
from accounting.survey import Outlook, Plan, Survey, choose, outlook
from accounting.tilting import tilt_factors
from accounting.workload import Workload

_BLOCK = 32
"""Changes whose laws are in memory at a time."""
_OUTSIDE = 1e-11
"""Share of the tilted mass of one release that the window may leave out, by the coarse survey."""


@dataclass(frozen=True)
class Profiles:
    """``rows(pairs)``: upper bounds of delta of these changes at eps = (base + i) * step."""

    base: int
    step: float
    tilt: float
    size: int
    pairs: int
    rows: Callable[[IntArray], FloatArray]

    def blocks(self) -> Iterator[tuple[IntArray, FloatArray]]:
        for begin in range(0, self.pairs, _BLOCK):
            chosen = np.arange(begin, min(begin + _BLOCK, self.pairs))
            yield chosen, self.rows(chosen)


def change_profiles(
    workload: Workload, eps: float, releases: int, *, gap: float, finer: float
) -> Profiles:
    """For a question about ``releases`` releases at ``eps``; ``gap`` and ``finer`` set the grid."""
    many = replace(workload, releases=releases)
    tables, seen, look, _ = look_closely(many, eps, 1e-18, 0.2 * gap, 1.0, 0.0, math.inf, 0.0)
    delta = max(look.total, 1e-300)
    largest = min(1 << 20, 1 << (MEMORY_LIMIT // (16 * (workload.factors + 64))).bit_length() - 1)
    coarse = choose(
        seen, look, eps=eps, gap=gap, finer=finer, delta=delta, largest_size=largest
    )
    plan = _one_release(coarse, seen, outlook(replace(workload, releases=1), seen, eps), largest)
    one = replace(workload, releases=1)
    rows, central_rows, factors = tilt_factors(one, tables, plan)
    terms = PairTerms.of(one, factors, plan)
    spectra = transform(one, rows, central_rows, plan, np.arange(one.pairs))
    worker = _Inverse(one, plan, spectra, terms)
    return Profiles(plan.origin, plan.step, plan.tilt, plan.size, one.pairs, worker.rows)


def _one_release(plan: Plan, seen: Survey, look: Outlook, largest: int) -> Plan:
    """The same grid and tilt with a window for the loss of one release."""
    a = int(np.flatnonzero(seen.tilts == plan.tilt)[0])
    tilts, log_m = seen.tilts, look.log_moment
    log_tail = math.log(_OUTSIDE)
    with np.errstate(invalid="ignore", divide="ignore"):
        edge = (log_m - log_m[:, [a]] - log_tail) / (tilts - tilts[a])
    edge[~np.isfinite(edge)] = math.nan
    below = np.where(np.isnan(edge[:, :a]), -math.inf, edge[:, :a])
    above = np.where(np.isnan(edge[:, a + 1 :]), math.inf, edge[:, a + 1 :])
    low = max(float(below.max(axis=1, initial=-1e3).min()), -1e3)
    high = float(np.minimum(above.min(axis=1, initial=math.inf), look.top).max())
    cells = (high - low) / plan.step + 4 * look.splits + 8
    size = 1 << max(8, math.ceil(math.log2(cells)))
    if size > largest:
        raise TooLarge(
            f"the changes of one release need a grid of {size:,} points, more than {largest:,}"
        )
    origin = math.floor(low / plan.step) - 2
    furthest = max(abs(origin), abs(origin + size)) * plan.step
    others = tilts[(tilts != plan.tilt) & (tilts <= 4 * plan.tilt)]
    return replace(plan, eps=furthest, size=size, origin=origin, others=others)


class _Inverse:
    """From the spectra of the factors to the profiles of the changes."""

    def __init__(self, workload: Workload, plan: Plan, spectra: Spectra, terms: PairTerms) -> None:
        self.workload, self.plan, self.spectra, self.terms = workload, plan, spectra, terms
        self.factor = np.maximum(spectra.row_of, 0)[workload.factor]
        norms = np.ones(workload.factors)
        norms[spectra.row_of >= 0] = spectra.norm[spectra.row_of[spectra.row_of >= 0]]
        total = workload.sum_over_pairs(norms[:, None])[:, 0]
        count = np.diff(workload.start)
        stages = 28 * math.log2(plan.size)
        # Lemma 8 of releases.md: transforms, products, and the inverse transform
        self.error = 1.02 * UNIT_ROUNDOFF * (stages * (total + 2) + 6 * count + 64)
        self.loss = multiples(plan.origin, plan.size, plan.step)
        self.peak = math.exp(testfunctions.log_peak(plan.tilt)) * (1 + 1e-9)

    def rows(self, pairs: IntArray) -> FloatArray:
        out = np.empty((len(pairs), self.plan.size))
        in_chunks(lambda a, b: self._some(pairs[a:b], out[a:b]), len(pairs))
        return out

    def _some(self, pairs: IntArray, out: FloatArray) -> None:
        from accounting.composition.composition_kernels import hartley_values, multiply_spectra
        from accounting.kernels import rfft_rows

        plan, terms, n = self.plan, self.terms, self.plan.size
        multiply_spectra(
            self.spectra.re, self.spectra.im, self.workload.start, self.factor, pairs, out
        )
        re, im = np.empty((len(pairs), n // 2 + 1)), np.empty((len(pairs), n // 2 + 1))
        rfft_rows(out, np.ones(len(pairs)), *twiddles(n), re, im)
        law = np.empty_like(out)
        hartley_values(re, im, law)
        law = np.roll(law, -(plan.origin % n), axis=1)  # index 0 is the loss origin * step
        tilted = plan.tilt * (terms.eps_up - self.loss)
        with np.errstate(over="ignore"):
            scale = np.exp(tilted) * (1 + 32 * UNIT_ROUNDOFF * (np.abs(tilted) + 8))
        lift = plan.eps - terms.eps_up
        for i, q in enumerate(pairs):
            mass = np.maximum(law[i], 0.0) + self.error[q]
            with np.errstate(over="ignore", invalid="ignore"):
                mass = np.minimum(mass * (terms.scale_up[q] * scale), 1.0)
                aside = (terms.scale_up[q] * self.peak * terms.outside[q] + terms.below[q]) * scale
            pair = DominatingPair(plan.step, plan.origin, mass, 0.0)
            value = pair.profile(plan.origin, n, lift) + np.where(np.isnan(aside), 1.0, aside)
            out[i] = np.minimum((value + terms.not_kept[q]) * (1 + 1e-11), 1.0)
