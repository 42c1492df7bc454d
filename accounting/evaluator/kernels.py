"""Numba kernels: arrays and scalars in, arrays out.  Their error budgets are in floating_point.md.

Importing this module imports numba, so the rest of the package imports it inside the functions
that need it.  The tests compare the kernels with slow and obvious twins in mpmath and numpy
(``test_floating_point.py``), and whole evaluations with enumeration.
"""

from __future__ import annotations

import math

import numpy as np

from accounting.base.arrays import FloatArray, IntArray
from accounting.base.jit import kernel
from accounting.evaluator.pairs.run_kernels import connect_runs, one_minus_exp

DOTS_BLOCK = 1024
"""Number of outcomes that are put on the grid together."""


@kernel
def connect_the_dots(
    mass: FloatArray,
    log_mass: FloatArray,
    shift: int,
    step: float,
    first: int,
    last: int,
    cells: FloatArray,
    out: FloatArray,
) -> None:
    """Put the loss of one shifted noise on the grid of multiples of ``step`` (discretisation.md).

    ``cells[i - first]`` receives the mass of grid point i, for first <= i <= last.  An outcome
    keeps its P-mass and its Q-mass when it is split between its two neighbors.  ``out`` is
    [mass at +infinity, P-mass capped at or above last*step, Q-mass of that, P-mass whose shifted
    outcome lies beyond the table, P-mass below first*step].
    """
    n = mass.size
    cells[:] = 0.0
    out[:] = 0.0
    for z in range(min(n, max(0, -shift))):
        out[0] += mass[z]
    for z in range(max(0, n - shift), n):
        out[3] += mass[z]
    inverse = 1.0 / step
    scale = 1.0 / one_minus_exp(step)
    top = float(last)
    bottom = first - 1.0
    end = min(n, n - shift)
    cell = np.empty(DOTS_BLOCK, np.int64)
    share = np.empty(DOTS_BLOCK)
    here = 0  # outcomes in a row often share their cell, whose two masses wait in registers
    left = right = 0.0
    for begin in range(max(0, -shift), end, DOTS_BLOCK):
        count = min(DOTS_BLOCK, end - begin)
        here_log = log_mass[begin : begin + count]
        there_log = log_mass[begin + shift : begin + shift + count]
        for k in range(count):  # the left neighbor and the share of the right one; no branches
            loss = here_log[k] - there_log[k]
            position = loss * inverse
            position = position if position < top else top
            position = position if position > bottom else bottom
            i = math.floor(position)
            d = loss - i * step
            d = d if d > 0.0 else 0.0
            d = d if d < step else step
            right_share = one_minus_exp(d) * scale
            cell[k] = int(i) - first
            share[k] = right_share if right_share < 1.0 else 1.0
        for k in range(count):
            m = mass[begin + k]
            at = cell[k]
            if at >= last - first:
                out[1] += m
                out[2] += m * math.exp(there_log[k] - here_log[k])
            elif at < 0:
                out[4] += m
            else:
                if at != here:
                    cells[here] += left
                    cells[here + 1] += right
                    left = right = 0.0
                    here = at
                part = m * share[k]
                left += m - part
                right += part
    cells[here] += left
    cells[here + 1] += right


@kernel
def tilted_rows(
    mass: FloatArray,
    log_mass: FloatArray,
    sums: FloatArray,
    start: IntArray,
    sum_start: IntArray,
    smooth_from: IntArray,
    table: IntArray,
    shift: IntArray,
    last: IntArray,
    reference: IntArray,
    margin: FloatArray,
    step: float,
    first: int,
    decay: FloatArray,
    rows: FloatArray,
    moments: FloatArray,
    out: FloatArray,
) -> None:
    """For each shifted table: its gridded loss, tilted relative to reference[row] >= last[row].

    Table t begins at start[t], and its ``sums``, if it has any, at sum_start[t]; smooth_from[t] and
    ``margin`` are those of connect_runs.
    decay[j, d] is e^{-tilt_j * d * step}.  ``rows`` receives the cells under the first tilt,
    wrapped modulo the row length; ``moments[row, j]`` is the total mass under tilt j; the columns
    of ``out`` are those of connect_the_dots: mass at +infinity, capped P-mass, its Q-mass, P-mass
    shifted beyond the table, P-mass below the grid.
    """
    period = rows.shape[1]
    cells = np.empty(np.max(last) - first + 1)
    for row in range(shift.size):
        used = last[row] - first + 1
        t = table[row]
        m = mass[start[t] : start[t + 1]]
        log_m = log_mass[start[t] : start[t + 1]]
        runs = sums[sum_start[t] : sum_start[t + 1]]
        part = cells[:used]
        if runs.size:
            grid = shift[row], step, first, last[row], margin[row]
            connect_runs(m, log_m, runs, smooth_from[t], *grid, part, out[row])
        else:
            connect_the_dots(m, log_m, shift[row], step, first, last[row], part, out[row])
        wrapped = rows[row]
        total = moments[row]
        wrapped[:] = 0.0
        total[:] = 0.0
        at = first % period
        from_top = reference[row] - first
        for i in range(used):
            if cells[i] > 0.0:
                wrapped[at] += cells[i] * decay[0, from_top - i]
                for j in range(total.size):
                    total[j] += cells[i] * decay[j, from_top - i]
            at = at + 1 if at + 1 < period else 0


@kernel
def rfft_rows(
    rows: FloatArray,
    scale: FloatArray,
    cos: FloatArray,
    sin: FloatArray,
    out_re: FloatArray,
    out_im: FloatArray,
) -> None:
    """Discrete Fourier transform of each real row times its scale (Lemma F4).

    Radix two on the half-length complex sequence, then the last step separately; written out here
    because its errors are proven.  cos[j], sin[j] belong to the angle 2 pi j / n for j < n/2, n the
    length of a row.
    """
    n = rows.shape[1]
    half = n // 2
    re = np.empty(half)
    im = np.empty(half)
    bits = 0
    while (1 << bits) < half:
        bits += 1
    order = np.zeros(half, np.int64)
    for i in range(1, half):
        order[i] = (order[i >> 1] >> 1) | ((i & 1) << (bits - 1))
    # the stage with h butterflies per block reads its roots of unity at h, ..., 2h - 1
    stage_cos = np.empty(half)
    stage_sin = np.empty(half)
    for i in range(1, half):
        h = 1
        while 2 * h <= i:
            h *= 2
        stage_cos[i] = cos[(i - h) * (half // h)]
        stage_sin[i] = sin[(i - h) * (half // h)]
    for row in range(rows.shape[0]):
        x = rows[row]
        a = scale[row]
        for i in range(half):
            re[i] = x[2 * order[i]] * a
            im[i] = x[2 * order[i] + 1] * a
        h = 1
        if half >= 4:  # two stages at once, whose roots of unity are 1 and -i
            h = 4
            for i in range(0, half, 4):
                a_re, a_im = re[i] + re[i + 1], im[i] + im[i + 1]
                b_re, b_im = re[i] - re[i + 1], im[i] - im[i + 1]
                c_re, c_im = re[i + 2] + re[i + 3], im[i + 2] + im[i + 3]
                d_re, d_im = re[i + 2] - re[i + 3], im[i + 2] - im[i + 3]
                re[i], im[i] = a_re + c_re, a_im + c_im
                re[i + 1], im[i + 1] = b_re + d_im, b_im - d_re
                re[i + 2], im[i + 2] = a_re - c_re, a_im - c_im
                re[i + 3], im[i + 3] = b_re - d_im, b_im + d_re
        while h < half:
            c = stage_cos[h : 2 * h]
            s = stage_sin[h : 2 * h]
            for start in range(0, half, 2 * h):
                re_u = re[start : start + h]
                im_u = im[start : start + h]
                re_v = re[start + h : start + 2 * h]
                im_v = im[start + h : start + 2 * h]
                for j in range(h):
                    tr = c[j] * re_v[j] + s[j] * im_v[j]
                    ti = c[j] * im_v[j] - s[j] * re_v[j]
                    re_v[j] = re_u[j] - tr
                    im_v[j] = im_u[j] - ti
                    re_u[j] += tr
                    im_u[j] += ti
            h *= 2
        out_re[row, 0] = re[0] + im[0]
        out_im[row, 0] = 0.0
        out_re[row, half] = re[0] - im[0]
        out_im[row, half] = 0.0
        for j in range(1, half):
            k = half - j
            er = 0.5 * (re[j] + re[k])
            ei = 0.5 * (im[j] - im[k])
            dr = 0.5 * (im[j] + im[k])
            di = 0.5 * (re[k] - re[j])
            out_re[row, j] = er + (cos[j] * dr + sin[j] * di)
            out_im[row, j] = ei + (cos[j] * di - sin[j] * dr)


@kernel
def unit_of(largest: float) -> float:
    """The power of two that brings a number near 1: numbers of at most that size times it have
    squares that do not underflow where they matter, and multiplying by it is exact."""
    exponent = -math.frexp(largest)[1]
    return math.ldexp(1.0, min(max(exponent, -1000), 1000))


@kernel
def row_norms(rows: FloatArray, scale: FloatArray, out: FloatArray) -> None:
    """out[row] = 2-norm of a row times its scale, with a relative error of (n + 4) * 2^-53."""
    for row in range(rows.shape[0]):
        largest = 0.0
        for i in range(rows.shape[1]):
            largest = max(largest, abs(rows[row, i] * scale[row]))
        unit = unit_of(largest)
        total = 0.0
        for i in range(rows.shape[1]):
            value = rows[row, i] * scale[row] * unit
            total += value * value
        out[row] = math.sqrt(total) / unit


@kernel
def largest_moduli(re: FloatArray, im: FloatArray, out: FloatArray) -> None:
    """out[row] = largest modulus of a row of a spectrum, with a relative error of 3 * 2^-53."""
    for row in range(re.shape[0]):
        largest = 0.0
        for i in range(re.shape[1]):
            largest = max(largest, abs(re[row, i]), abs(im[row, i]))
        unit = unit_of(largest)
        square = 0.0
        for i in range(re.shape[1]):
            x = re[row, i] * unit
            y = im[row, i] * unit
            square = max(square, x * x + y * y)
        out[row] = math.sqrt(square) / unit


@kernel
def pair_sums(
    re: FloatArray,
    im: FloatArray,
    start: IntArray,
    factor: IntArray,
    releases: int,
    kind: IntArray,
    bounding_re: FloatArray,
    bounding_im: FloatArray,
    pairs: IntArray,
    out: FloatArray,
) -> None:
    """For each pair: inner products of two bounding functions with the product of its spectra.

    Pair q is the product of the rows factor[start[q]:start[q+1]] to the power ``releases``.  Its
    bounding functions are rows 2*kind[q] (upper) and 2*kind[q] + 1 (lower).
    """
    width = re.shape[1]
    block = 512
    a = np.empty(block)
    b = np.empty(block)
    c = np.empty(block)
    d = np.empty(block)
    for index in range(pairs.size):
        q = pairs[index]
        upper = lower = 0.0
        up = 2 * kind[q]
        for left in range(0, width, block):
            size = min(block, width - left)
            a[:] = 1.0
            b[:] = 0.0
            for position in range(start[q], start[q + 1]):
                x = re[factor[position], left : left + size]
                y = im[factor[position], left : left + size]
                for i in range(size):
                    t = a[i] * x[i] - b[i] * y[i]
                    b[i] = a[i] * y[i] + b[i] * x[i]
                    a[i] = t
            power = releases
            if power > 1:
                c[:] = 1.0
                d[:] = 0.0
                while power:
                    if power & 1:
                        for i in range(size):
                            t = c[i] * a[i] - d[i] * b[i]
                            d[i] = c[i] * b[i] + d[i] * a[i]
                            c[i] = t
                    power >>= 1
                    if power:
                        for i in range(size):
                            t = a[i] * a[i] - b[i] * b[i]
                            b[i] = 2.0 * a[i] * b[i]
                            a[i] = t
                a, c = c, a
                b, d = d, b
            block_upper = block_lower = 0.0
            for i in range(size):
                at = left + i
                block_upper += a[i] * bounding_re[up, at] + b[i] * bounding_im[up, at]
                block_lower += a[i] * bounding_re[up + 1, at] + b[i] * bounding_im[up + 1, at]
            upper += block_upper
            lower += block_lower
        out[index, 0] = upper
        out[index, 1] = lower


@kernel
def add_up(start: IntArray, factor: IntArray, values: FloatArray, out: FloatArray) -> None:
    """out[q] = sum of the rows of ``values`` that pair q uses."""
    for q in range(start.size - 1):
        for j in range(values.shape[1]):
            total = 0.0
            for position in range(start[q], start[q + 1]):
                total += values[factor[position], j]
            out[q, j] = total
