"""Numba kernels of the terms of Theorem 3 of discretisation.md, pair after pair.

``pair_error_terms.py`` says what the terms mean.  Sums over the factors of a pair are taken
``releases`` times.
"""

from __future__ import annotations

import math

import numpy as np

from accounting.base.arrays import UNIT_ROUNDOFF, BoolArray, FloatArray, IntArray
from accounting.base.jit import kernel

ETA, SCALE_UP, SCALE_LOW, OUTSIDE, BELOW, ASIDE_LOWER, ASIDE_UPPER, CHERNOFF = range(8)
"""Columns of the terms of a pair."""


@kernel
def largest_eta(start: IntArray, factor: IntArray, releases: int, eta: FloatArray) -> float:
    """The largest sum of ``eta`` over the factors of a pair."""
    largest = 0.0
    for q in range(start.size - 1):
        total = 0.0
        for position in range(start[q], start[q + 1]):
            total += eta[factor[position]]
        largest = max(largest, releases * total)
    return largest


@kernel
def pair_terms(
    start: IntArray,
    factor: IntArray,
    releases: int,
    log_moment: FloatArray,
    log_whole: FloatArray,
    aside: FloatArray,
    eta: FloatArray,
    eta_others: FloatArray,
    last: IntArray,
    tilts: FloatArray,
    eps: float,
    eps_up: float,
    eps_low: float,
    peak: float,
    step: float,
    origin: int,
    size: int,
    out: FloatArray,
) -> None:
    """One row of ``out`` per pair.

    ``tilts`` has the tilt of the plan and then the others; a row of ``aside`` is [P-mass of capped
    and unknown outcomes, that of the capped ones, Q-mass of these]; ``peak`` is an upper bound of
    the bounding function.
    """
    tilt = tilts[0]
    log_up = np.empty(eta.size)
    log_down = np.empty(eta.size)
    for f in range(eta.size):
        up = aside[f, 0] * math.exp(eta[f]) * (1 + 1e-12)
        down = aside[f, 1] * math.exp(-eta[f]) * (1 - 1e-12)
        log_up[f] = math.log1p(-up) if up < 1.0 else -math.inf
        log_down[f] = math.log1p(-down) if 0.0 < down < 1.0 else 0.0
        if down >= 1.0:
            log_down[f] = -math.inf
    moment = np.empty(tilts.size)
    magnitude = np.empty(tilts.size)
    for q in range(start.size - 1):
        moment[:] = 0.0
        magnitude[:] = 0.0
        whole = sizes = errors = other_errors = lost_up = lost_down = capped_q = 0.0
        highest = 0
        for position in range(start[q], start[q + 1]):
            f = factor[position]
            for j in range(tilts.size):
                value = releases * log_moment[f, j]
                moment[j] += value
                if math.isfinite(value):  # a factor without mass adds no rounding errors
                    magnitude[j] += abs(value)
            whole += releases * log_whole[f]
            both = abs(log_moment[f, 0]) + abs(log_whole[f])
            if math.isfinite(both):
                sizes += releases * both
            errors += releases * eta[f]
            other_errors += releases * eta_others[f]
            lost_up += releases * log_up[f]
            lost_down += releases * log_down[f]
            capped_q += releases * aside[f, 2]
            highest += releases * last[f]
        summed = (16 + start[q + 1] - start[q]) * UNIT_ROUNDOFF  # Lemma F6
        slack = summed * (sizes + tilt * abs(eps) + 64)
        chernoff = math.exp(whole - tilt * eps_up + slack + errors) * peak
        out[q, ETA] = errors
        out[q, CHERNOFF] = chernoff
        out[q, SCALE_UP] = math.exp(moment[0] - tilt * eps_up + slack + errors)
        out[q, SCALE_LOW] = math.exp(moment[0] - tilt * eps_low - slack - errors)
        lost = 0.0 if moment[0] >= whole else -math.expm1(moment[0] - whole)
        out[q, BELOW] = chernoff * (lost + 2 * slack)
        # Markov's inequality for the tilted loss at both ends of the window (Lemma F7)
        outside = 0.0
        for side in (-1, 1):
            edge = origin if side < 0 else origin + size
            end = edge * step
            bound = 1.0
            for j in range(1, tilts.size):
                difference = tilts[j] - tilt
                if difference * side > 0:
                    total = magnitude[0] + magnitude[j] + (abs(tilts[j]) + tilt) * abs(end) + 64
                    exponent = moment[j] - moment[0] - difference * end
                    value = math.exp(exponent + summed * total + errors + other_errors)
                    bound = min(bound, value)
            if side > 0 and highest < edge:
                bound = 0.0
            outside += bound
        out[q, OUTSIDE] = min(outside, 1.0)
        # discretisation.md, Lemma 2
        q_mass = 0.0
        if capped_q != 0.0:
            q_mass = capped_q * math.exp(errors + eps) * (1 + 1e-12)
        down = -math.expm1(lost_down) * (1 - 1e-12) - q_mass
        out[q, ASIDE_LOWER] = down if down > 0.0 else 0.0
        out[q, ASIDE_UPPER] = min(-math.expm1(lost_up) * (1 + 1e-12), 1.0)


@kernel
def inner_product_errors(
    norms: FloatArray,
    log_sizes: FloatArray,
    count: IntArray,
    transforms: float,
    constant: float,
    rounding: float,
    outside: FloatArray,
    inside: BoolArray,
    kind: IntArray,
    peak: FloatArray,
    norm: FloatArray,
    out: FloatArray,
) -> None:
    """Errors of the inner products with the upper and the lower bounding function (Lemma F5).

    Per pair: the sums of the 2-norms and log-sizes of its spectra, their number, its mass outside
    the window, and whether its lower bounding function lies inside.  ``peak`` and ``norm`` are
    those of the bounding functions, rows 2 * kind and 2 * kind + 1.
    """
    for q in range(norms.size):
        fourier = transforms * (norms[q] + 1) + 6 * count[q] + constant
        fourier *= math.exp(log_sizes[q] * (1 + 1e-9) + 3 * count[q] * UNIT_ROUNDOFF)
        for side in range(2):
            row = 2 * kind[q] + side
            out[q, side] = 1.01 * UNIT_ROUNDOFF * fourier * norm[row]
            out[q, side] += peak[row] * (outside[q] * (1 + 1e-9) + rounding)
        if not inside[q]:
            out[q, 1] = math.inf


@kernel
def assemble(
    terms: FloatArray,
    sums: FloatArray,
    error: FloatArray,
    kept: BoolArray,
    smallest: float,
    out: FloatArray,
) -> None:
    """discretisation.md, Theorem 3, put together.

    The columns of ``sums`` and ``error`` are those of the upper and the lower bounding function,
    for the ``kept`` pairs.  A row of ``out`` is [lower bound, upper bound, estimate without error
    terms, width that comes from the step]; a lower bound below ``smallest`` becomes 0.  Numbers
    that overflowed fail the comparisons, and the pair gets the Chernoff bound or no lower bound.
    """
    for q in range(terms.shape[0]):
        upper = terms[q, CHERNOFF]
        lower = estimate = width = 0.0
        if kept[q]:
            above = sums[q, 0] if not sums[q, 0] < 0.0 else 0.0
            fine = terms[q, SCALE_UP] * (above + error[q, 0]) + terms[q, BELOW]
            upper = min(upper, fine)
            below = sums[q, 1] - error[q, 1]
            scaled = terms[q, SCALE_LOW] * below if below > 0.0 else 0.0
            lower = scaled if math.isfinite(scaled) else 0.0
            estimate = terms[q, SCALE_UP] * sums[q, 0] + terms[q, ASIDE_LOWER]
            width = terms[q, SCALE_UP] * (sums[q, 0] - sums[q, 1])
        upper = (upper + terms[q, ASIDE_UPPER]) * (1 + 1e-12) + 5e-324
        lower = (lower + terms[q, ASIDE_LOWER]) * (1 - 1e-12)
        out[q, 0] = lower if lower >= smallest else 0.0
        out[q, 1] = upper if upper < 1.0 else 1.0
        out[q, 2] = estimate if math.isfinite(estimate) else 0.0
        out[q, 3] = width if math.isfinite(width) else 0.0
