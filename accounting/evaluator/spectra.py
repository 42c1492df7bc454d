"""Spectra of tilted factors, and the inner products of their products with bounding functions."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

import numpy as np

from accounting.base.arrays import UNIT_ROUNDOFF, FloatArray, IntArray, multiples
from accounting.base.threads import in_chunks
from accounting.evaluator import bounding_functions
from accounting.evaluator.bounding_functions import LOWER, UPPER
from accounting.evaluator.pair_error_terms import PairTerms
from accounting.evaluator.tilted_losses import TiltedLosses
from accounting.evaluator.view_pairs import ViewPairs

_BATCH = 64
"""Number of rows that one thread transforms at a time."""
_LARGEST_EXPONENT = 600
"""Largest exponent of e^{tilt * loss} next to eps for which a lower bound is tried."""


@dataclass(frozen=True)
class Spectra:
    """Row ``row_of[f]`` is the spectrum of factor f; -1 stands for none.

    ``norm`` bounds the 2-norm of the rows that were transformed.  ``log_size`` >= 0 bounds the
    logarithms of all moduli, of the computed spectrum and of the exact one (Lemma F5).
    """

    re: FloatArray
    im: FloatArray
    row_of: IntArray
    norm: FloatArray
    log_size: FloatArray

    def rows_of(self, view_pairs: ViewPairs) -> IntArray:
        """The row of every entry of ``view_pairs.factor``, 0 where there is none."""
        rows: IntArray = np.maximum(self.row_of, 0)[view_pairs.factor]
        return rows

    def norm_totals(self, view_pairs: ViewPairs) -> tuple[FloatArray, FloatArray]:
        """Per pair, the sums of ``norm`` and of ``log_size``; 1 and 0 for factors without a row."""
        norm, log_size = np.ones(view_pairs.factor_count), np.zeros(view_pairs.factor_count)
        known = self.row_of >= 0
        norm[known] = self.norm[self.row_of[known]]
        log_size[known] = self.log_size[self.row_of[known]]
        return view_pairs.totals(norm), view_pairs.totals(log_size)


def transform(view_pairs: ViewPairs, tilted: TiltedLosses, pairs: IntArray) -> Spectra:
    """Spectra of the factors that ``pairs`` use, each normalized to total mass one, or zero where a
    factor has no row."""
    from accounting.evaluator.kernels import largest_moduli, rfft_rows

    used = np.unique(view_pairs.factors_of(pairs)[1])
    row_of = np.full(view_pairs.factor_count, -1, np.int64)
    row_of[used] = np.arange(len(used))
    size = tilted.plan.size
    width = size // 2 + 1
    re, im = np.empty((len(used), width)), np.empty((len(used), width))
    norm, modulus = np.empty(len(used)), np.empty(len(used))
    has_row = tilted.factors.log_moment[used, 0] > -math.inf
    cos, sin = twiddles(size)

    def work(a: int, b: int) -> None:
        for begin in range(a, b, _BATCH):
            s = slice(begin, min(begin + _BATCH, b))
            real = np.empty((s.stop - s.start, size))
            for i, f in enumerate(used[s].tolist()):
                real[i] = tilted.row(f)
            total = real.sum(axis=1)
            scale = np.where(has_row[s], 1 / np.maximum(total, 1e-290), 0.0)
            norm[s] = np.linalg.norm(real * scale[:, None], axis=1) * (1 + 1e-9)
            rfft_rows(real, scale, cos, sin, re[s], im[s])
            largest_moduli(re[s], im[s], modulus[s])

    in_chunks(work, len(used), smallest=8)
    # Lemma F5: re[:, 0] is the sum of the row up to log2(N) additions, and bounds the exact moduli
    modulus = np.maximum(modulus, np.maximum(re[:, 0], 1.0))
    log_size = np.log(modulus) + (2 * math.log2(size) + 32) * UNIT_ROUNDOFF
    return Spectra(re, im, row_of, np.minimum(norm, 1.0), log_size)


@cache
def twiddles(size: int) -> tuple[FloatArray, FloatArray]:
    """Cosine and sine of 2 pi j / size for j < size / 2."""
    angle = 2 * math.pi * np.arange(size // 2) / size
    return np.cos(angle), np.sin(angle)


@dataclass(frozen=True)
class _BoundingSpectra:
    """Rows 2i and 2i + 1 are the upper and the lower bounding function for the i-th number of
    splits, weighted for an inner product with half a spectrum; pair q uses i = ``kind[q]``."""

    kind: IntArray
    re: FloatArray
    im: FloatArray
    peak: FloatArray
    norm: FloatArray

    @staticmethod
    def of(terms: PairTerms) -> _BoundingSpectra:
        from accounting.evaluator.kernels import rfft_rows

        plan, n = terms.plan, terms.plan.size
        splits, kind = terms.splits[:1], np.zeros(len(terms.splits), np.int64)
        if (terms.splits != splits).any():
            splits, kind = np.unique(terms.splits, return_inverse=True)
        # the loss at every place of a row, where places are indices modulo n
        turn = plan.origin % n
        loss = np.append(
            multiples(plan.origin + n - turn, turn, plan.step),
            multiples(plan.origin, n - turn, plan.step),
        )
        functions = np.zeros((2 * len(splits), n))
        above = bounding_functions.upper(loss, terms.eps_up, plan.tilt)
        for i, k in enumerate(splits.tolist()):
            functions[2 * i + UPPER] = above
            if 2.01 * k * plan.step * max(plan.tilt, 1.0) > _LARGEST_EXPONENT:
                continue  # too many splits for this step: ``_errors`` makes the error infinite
            functions[2 * i + LOWER] = bounding_functions.lower(
                loss, terms.eps_low, plan.tilt, splits=max(1, k), step=plan.step
            )
        supremum = math.exp(bounding_functions.log_peak(plan.tilt))
        peak = np.maximum(np.abs(functions).max(axis=1), supremum)
        norm = peak * np.linalg.norm(functions / peak[:, None], axis=1) * (1 + 1e-9)
        re, im = np.empty((2, len(functions), n // 2 + 1))
        rfft_rows(functions, np.ones(len(functions)), *twiddles(n), re, im)
        for spectrum in (re, im):
            spectrum *= 2.0 / n
            spectrum[:, 0] *= 0.5
            spectrum[:, -1] *= 0.5
        return _BoundingSpectra(kind, re, im, peak, norm)


def correlate(spectra: Spectra, terms: PairTerms, pairs: IntArray) -> tuple[FloatArray, FloatArray]:
    """Inner products of each pair with both bounding functions, and bounds of their errors, each
    with the columns ``UPPER`` and ``LOWER``."""
    from accounting.evaluator.kernels import pair_sums

    view_pairs = terms.view_pairs
    test = _BoundingSpectra.of(terms)
    out = np.empty((len(pairs), 2))
    spectrum = spectra.re, spectra.im, view_pairs.start, spectra.rows_of(view_pairs)

    def work(a: int, b: int) -> None:
        bounding = test.kind, test.re, test.im
        pair_sums(*spectrum, view_pairs.releases, *bounding, pairs[a:b], out[a:b])

    in_chunks(work, len(pairs), smallest=64)
    return out, _errors(spectra, terms, test)[pairs]


def _errors(spectra: Spectra, terms: PairTerms, test: _BoundingSpectra) -> FloatArray:
    """Per pair, bounds of the errors of both inner products."""
    from accounting.evaluator.compiled.pair_term_kernels import inner_product_errors

    plan, low, high = terms.plan, terms.plan.origin, terms.plan.origin + terms.plan.size - 1
    norms, log_sizes = spectra.norm_totals(terms.view_pairs)
    count = np.diff(terms.view_pairs.start) * terms.view_pairs.releases
    steepness = plan.tilt * (max(abs(low), abs(high)) * plan.step + abs(plan.eps))
    # Theorem 5 changes the function near eps: that part must lie inside the window, ...
    near = min(terms.eps_low - low * plan.step, high * plan.step - terms.eps_low)
    # ... and e^{tilt * loss} must not overflow there
    near = min(near, _LARGEST_EXPONENT / max(plan.tilt, 1.0))
    error = np.empty((terms.view_pairs.pair_count, 2))
    inner_product_errors(
        norms,
        log_sizes,
        count,
        28 * math.log2(plan.size),
        plan.size / 512 + 600,
        (8 * steepness + 64) * UNIT_ROUNDOFF,
        terms.outside,
        2.01 * plan.step * terms.splits < near,
        test.kind,
        test.peak,
        test.norm,
        error,
    )
    return error
