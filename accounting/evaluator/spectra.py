"""Spectra of tilted factors, and the inner products of their products with bounding functions."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from accounting.base.arrays import UNIT_ROUNDOFF, FloatArray, IntArray, multiples
from accounting.base.errors import required
from accounting.base.threads import in_chunks
from accounting.evaluator import bounding_functions
from accounting.evaluator.bounding_functions import LOWER, UPPER
from accounting.evaluator.pair_error_terms import PairTerms
from accounting.evaluator.tilted_losses import Offsets, TiltedLosses
from accounting.evaluator.view_pairs import ViewPairs

_BATCH = 64
"""Number of rows that one thread transforms at a time."""
_FREQUENCIES = 128
"""Number of frequencies at which one thread mixes at a time: what it needs fits into a cache."""
_MIXING = 80
"""Rounding errors of a mixture besides those of its additions, in units of 2^-53 (Lemma F8)."""
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


@dataclass(frozen=True)
class RowSpectra:
    """Spectra of rows, with bounds of the 2-norms of these and of the computed moduli."""

    re: FloatArray
    im: FloatArray
    norm: FloatArray
    modulus: FloatArray

    @staticmethod
    def of(rows: FloatArray, scale: FloatArray) -> RowSpectra:
        """Each row times its scale."""
        from accounting.evaluator.kernels import largest_moduli, rfft_rows, row_norms

        count, n = rows.shape
        re, im = np.empty((2, count, n // 2 + 1))
        norm, modulus = np.empty((2, count))
        cos, sin = twiddles(n)

        def work(a: int, b: int) -> None:
            for begin in range(a, b, _BATCH):
                s = slice(begin, min(begin + _BATCH, b))
                row_norms(rows[s], scale[s], norm[s])
                rfft_rows(rows[s], scale[s], cos, sin, re[s], im[s])
                largest_moduli(re[s], im[s], modulus[s])

        in_chunks(work, count, smallest=8)
        return RowSpectra(re, im, norm * (1 + 1e-9), np.maximum(modulus, re[:, 0]))


def plain_spectra(tilted: TiltedLosses, plain: IntArray) -> RowSpectra:
    """Compute the spectra of plain factors, normalized to total mass one, or zero where a factor
    has no row."""
    rows = tilted.rows[plain]
    has_row = tilted.factors.log_moment[plain, 0] > -math.inf
    return RowSpectra.of(rows, np.where(has_row, 1 / np.maximum(rows.sum(axis=1), 1e-290), 0.0))


def shift_spectra(tilted: TiltedLosses) -> RowSpectra:
    """Compute the spectra of the shifts of W, in their common unit."""
    return RowSpectra.of(tilted.central_rows, np.ones(len(tilted.central_rows)))


def transform(
    view_pairs: ViewPairs,
    tilted: TiltedLosses,
    pairs: IntArray,
    known: tuple[RowSpectra, RowSpectra] | None = None,
) -> Spectra:
    """Spectra of the factors that ``pairs`` use, each normalized to total mass one, or zero where a
    factor has no row.  ``known`` are those of all plain factors and of the shifts of W."""
    used, n_plain = np.arange(view_pairs.factor_count), len(view_pairs.plain)
    if len(pairs) < view_pairs.pair_count:
        used = np.unique(view_pairs.factors_of(pairs)[1])
    mixed = used[used >= n_plain] - n_plain
    if known is not None:
        plain, shifts = known
        used = np.concatenate([np.arange(n_plain), mixed + n_plain])
    else:
        plain = plain_spectra(tilted, used[used < n_plain])
        shifts = shift_spectra(tilted) if len(mixed) else plain
    row_of = np.full(view_pairs.factor_count, -1, np.int64)
    row_of[used] = np.arange(len(used))
    size, n = tilted.plan.size, len(plain.re)
    re, im = plain.re, plain.im
    if len(mixed):
        re, im = np.empty((2, len(used), size // 2 + 1))
        re[:n], im[:n] = plain.re, plain.im
    norm, modulus, products = np.ones(len(used)), np.ones(len(used)), np.zeros(len(used))
    norm[:n], modulus[:n] = np.minimum(plain.norm, 1.0), plain.modulus
    if len(mixed):
        m = required(tilted.central, "the central noise of a central factor").mix[mixed, 0]
        norm[n:], modulus[n:] = _mix(tilted, mixed, shifts, re[n:], im[n:])
        products[n:] = m + _MIXING
    # Lemma F5: re[:, 0] is the sum of the row up to log2(N) additions, and bounds the exact moduli
    log_size = np.log(np.maximum(modulus, 1.0))
    log_size += (2 * math.log2(size) + 32 + products) * UNIT_ROUNDOFF
    return Spectra(re, im, row_of, norm, log_size)


def _mix(
    tilted: TiltedLosses, mixed: IntArray, shifts: RowSpectra, re: FloatArray, im: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Fill ``re`` and ``im`` with the spectra of central factors (Lemma F8).

    Returns bounds of their 2-norms, to which what mixing adds to the error of the transform is
    added in its unit, and of their moduli.
    """
    from accounting.evaluator.kernels import largest_moduli
    from accounting.evaluator.pairs.mixture_kernels import mixture_spectra, split_spectrum

    central = required(tilted.central, "the central noise of a central factor")
    size, low = tilted.plan.size, int(central.shifts[0])
    reach = low, int(central.shifts[-1])
    part = replace(central, mix=central.mix[mixed], within=reach)
    offsets = Offsets.of(part, tilted.plan.step, np.array([tilted.plan.tilt]))
    scale, m = tilted.scale[mixed], part.mix[:, 0]
    cos, sin = twiddles(size)
    width = size // 2 + 1
    pieces = -(-width // _FREQUENCIES)

    def work(a: int, b: int) -> None:
        for i in range(a, b):
            s = slice(width * i // pieces, width * (i + 1) // pieces)
            case, top = np.empty((2, 2, len(part.weights), s.stop - s.start))
            split_spectrum(offsets.case_index, offsets.case, cos, sin, s.start, case)
            split_spectrum(offsets.top_index, offsets.top, cos, sin, s.start, top)
            w = np.stack([shifts.re[:, s], shifts.im[:, s]])
            key = low, part.mix, part.order, part.weights
            mixture_spectra(w, *key, case, top, scale, re[:, s], im[:, s])

    in_chunks(work, pieces)
    norms = part.sums(shifts.norm[:, None], offsets.case_mass)[:, 0]
    moment = tilted.central_moment
    ratio = float((shifts.modulus[moment > 0] / moment[moment > 0]).max(initial=1.0))
    modulus = np.empty(len(mixed))

    def measure(a: int, b: int) -> None:
        largest_moduli(re[a:b], im[a:b], modulus[a:b])

    in_chunks(measure, len(mixed), smallest=64)
    norm = norms * offsets.top_mass[m, 0] * scale * (1 + 1e-9)
    norm += (m + _MIXING) * ratio * (1 + 1e-9) / (28 * math.log2(size))
    return norm, np.maximum(modulus, re[:, 0])


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
        from accounting.evaluator.kernels import rfft_rows, row_norms

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
        norm, weight = np.empty(len(functions)), np.full(len(functions), 2.0 / n)
        row_norms(functions, 1 / peak, norm)
        norm *= peak * (1 + 1e-9)
        re, im = np.empty((2, len(functions), n // 2 + 1))
        rfft_rows(functions, weight, *twiddles(n), re, im)
        for spectrum in (re, im):
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
    reach = max(abs(low), abs(high)) * plan.step + abs(plan.eps)
    # Theorem 2 of discretisation.md changes the function near eps: that part must lie inside the
    # window, ...
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
        bounding_functions.rounding(plan.tilt, reach),
        terms.outside,
        2.01 * plan.step * terms.splits + 1e-14 * reach < near,
        test.kind,
        test.peak,
        test.norm,
        error,
    )
    return error
