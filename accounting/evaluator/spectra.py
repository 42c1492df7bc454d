"""Spectra of tilted factors, and the inner products of their products with test functions."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

import numpy as np

from accounting.base.arrays import FloatArray, IntArray, multiples
from accounting.base.threads import in_chunks
from accounting.evaluator import bounding_functions
from accounting.evaluator.grid_plan import Plan
from accounting.evaluator.pair_error_terms import PairTerms
from accounting.evaluator.tilted_losses import Factors, mixed_row
from accounting.evaluator.view_pairs import ViewPairs
from accounting.model.noise import UNIT_ROUNDOFF


@dataclass(frozen=True)
class Spectra:
    """Row ``row_of[f]`` is the spectrum of factor f.

    ``norm`` bounds the 2-norm of what was transformed.  ``log_size`` >= 0 bounds the logarithms of
    all moduli, of the computed spectrum and of the exact one (Lemma F5).
    """

    re: FloatArray
    im: FloatArray
    row_of: IntArray
    norm: FloatArray
    log_size: FloatArray


def transform(
    view_pairs: ViewPairs,
    rows: FloatArray,
    central_rows: FloatArray,
    factors: Factors,
    plan: Plan,
    pairs: IntArray,
) -> Spectra:
    """Spectra of the factors that ``pairs`` use, each normalised to total mass one, or zero where
    ``factors`` says that a factor has no row."""
    from accounting.evaluator.kernels import largest_moduli, rfft_rows

    picks = _positions(view_pairs, pairs)
    used = np.unique(view_pairs.factor[picks])
    row_of = np.full(view_pairs.factor_count, -1, np.int64)
    row_of[used] = np.arange(len(used))
    n_plain = len(view_pairs.plain)
    width = plan.size // 2 + 1
    re, im = np.empty((len(used), width)), np.empty((len(used), width))
    norm, size = np.empty(len(used)), np.empty(len(used))
    has_row = factors.log_moment[used, 0] > -math.inf
    cos, sin = twiddles(plan.size)

    def work(a: int, b: int) -> None:
        for begin in range(a, b, 64):
            end = min(begin + 64, b)
            real = np.empty((end - begin, plan.size))
            for i, f in enumerate(used[begin:end]):
                real[i] = (
                    rows[f] if f < n_plain else mixed_row(view_pairs, central_rows, int(f), plan)
                )
            total = real.sum(axis=1)
            scale = np.where(has_row[begin:end], 1 / np.maximum(total, 1e-290), 0.0)
            norm[begin:end] = np.linalg.norm(real * scale[:, None], axis=1) * (1 + 1e-9)
            rfft_rows(real, scale, cos, sin, re[begin:end], im[begin:end])
            largest_moduli(re[begin:end], im[begin:end], size[begin:end])

    in_chunks(work, len(used), smallest=8)
    # Lemma F5: re[:, 0] is the sum of the row up to log2(N) additions, and bounds the exact moduli
    size = np.maximum(size, np.maximum(re[:, 0], 1.0))
    log_size = np.log(size) + (2 * math.log2(plan.size) + 32) * UNIT_ROUNDOFF
    return Spectra(re, im, row_of, np.minimum(norm, 1.0), log_size)


def _positions(view_pairs: ViewPairs, pairs: IntArray) -> IntArray:
    if len(pairs) == view_pairs.pair_count:
        return np.arange(len(view_pairs.factor))
    marks = np.zeros(len(view_pairs.factor) + 1, np.int64)
    np.add.at(marks, view_pairs.start[pairs], 1)
    np.add.at(marks, view_pairs.start[pairs + 1], -1)
    return np.flatnonzero(np.cumsum(marks)[:-1] > 0)


@cache
def twiddles(size: int) -> tuple[FloatArray, FloatArray]:
    angle = 2 * math.pi * np.arange(size // 2) / size
    return np.cos(angle), np.sin(angle)


def correlate(
    view_pairs: ViewPairs, spectra: Spectra, terms: PairTerms, plan: Plan, pairs: IntArray
) -> tuple[FloatArray, FloatArray]:
    """Inner products of both test functions with each pair, and bounds of their errors."""
    from accounting.evaluator.kernels import pair_sums, rfft_rows

    n = plan.size
    kinds, test = np.unique(terms.splits, return_inverse=True)
    loss = multiples(plan.origin, n, plan.step)
    functions = np.empty((2 * len(kinds), n))
    for i, splits in enumerate(kinds):
        functions[2 * i] = bounding_functions.upper(loss, terms.eps_up, plan.tilt)
        functions[2 * i + 1] = 0.0
        if 2.01 * splits * plan.step * max(plan.tilt, 1.0) > 600:
            continue  # too many splits for this step: no lower bound here, see below
        functions[2 * i + 1] = bounding_functions.lower(
            loss, terms.eps_low, plan.tilt, max(1, int(splits)), plan.step
        )
    peak = np.maximum(
        np.abs(functions).max(axis=1), math.exp(bounding_functions.log_peak(plan.tilt))
    )
    norm = peak * np.linalg.norm(functions / peak[:, None], axis=1) * (1 + 1e-9)
    functions = np.ascontiguousarray(np.roll(functions, plan.origin % n, axis=1))
    test_re, test_im = (
        np.empty((len(functions), n // 2 + 1)),
        np.empty((len(functions), n // 2 + 1)),
    )
    rfft_rows(functions, np.ones(len(functions)), *twiddles(n), test_re, test_im)
    for spectrum in (test_re, test_im):
        spectrum *= 2.0 / n
        spectrum[:, 0] *= 0.5
        spectrum[:, -1] *= 0.5
    out = np.empty((len(pairs), 2))
    factor = np.maximum(spectra.row_of, 0)[view_pairs.factor]

    def work(a: int, b: int) -> None:
        pair_sums(
            spectra.re,
            spectra.im,
            view_pairs.start,
            factor,
            view_pairs.releases,
            test.astype(np.int64),
            test_re,
            test_im,
            pairs[a:b],
            out[a:b],
        )

    in_chunks(work, len(pairs), smallest=16)
    # Lemma F5: the transform, the products and the inner product, in the 2-norm
    norms = np.ones(view_pairs.factor_count)
    norms[spectra.row_of >= 0] = spectra.norm[spectra.row_of[spectra.row_of >= 0]]
    total = view_pairs.sum_over_pairs(norms[:, None])[pairs, 0] * view_pairs.releases
    count = np.diff(view_pairs.start)[pairs] * view_pairs.releases
    fourier = 28 * math.log2(n) * (total + 1) + 6 * count + n / 512 + 600
    sizes = np.zeros(view_pairs.factor_count)
    sizes[spectra.row_of >= 0] = spectra.log_size[spectra.row_of[spectra.row_of >= 0]]
    with np.errstate(over="ignore"):
        fourier *= np.exp(
            view_pairs.sum_over_pairs(sizes[:, None])[pairs, 0] * view_pairs.releases * (1 + 1e-9)
            + 3 * count * UNIT_ROUNDOFF
        )
    steepness = plan.tilt * (float(np.abs(loss).max()) + abs(plan.eps))
    rounding = (8 * steepness + 64) * UNIT_ROUNDOFF
    error = np.empty((len(pairs), 2))
    for side in (0, 1):
        row = 2 * test[pairs] + side
        error[:, side] = 1.01 * UNIT_ROUNDOFF * fourier * norm[row]
        error[:, side] += peak[row] * (terms.outside[pairs] * (1 + 1e-9) + rounding)
    # Theorem 5 changes the test function near eps: that part must lie inside the window
    near = 2.01 * terms.splits[pairs] * plan.step
    inside = (terms.eps_low - near > loss[0]) & (terms.eps_low + near < loss[-1])
    inside &= near * max(plan.tilt, 1.0) <= 600
    error[~inside, 1] = math.inf
    return out, error
