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

RESCALE_BITS = 512
_LN2 = 0.6931471805599453


@kernel
def nb_sum_table(r: FloatArray, p: FloatArray, mass: FloatArray, log_mass: FloatArray) -> float:
    """Masses of a sum of independent NB(r_i, p_i) at 0..len(mass)-1, normalized to sum to one.

    With s_i(k) = sum_{j>=1} p_i^j g_{k-j} the masses obey k g_k = sum_i r_i s_i(k) and
    s_i(k) = p_i (g_{k-1} + s_i(k-1)): all terms are positive, so errors grow linearly (Lemma F1).
    Scaling by powers of two is exact; ``log_mass`` is correct where ``mass`` underflows.
    Returns the largest |log_mass|.
    """
    n = mass.size
    exponent = np.empty(n, np.int32)
    s = np.zeros(r.size)
    big = 2.0**RESCALE_BITS
    small = 2.0**-RESCALE_BITS
    mass[0] = 1.0
    exponent[0] = 0
    g = 1.0
    e = 0
    top = 0
    for k in range(1, n):
        g_next = 0.0
        for i in range(r.size):
            s[i] = p[i] * (g + s[i])
            g_next += r[i] * s[i]
        g = g_next / k
        if g > big or g < small:
            factor = small if g > big else big
            e += 1 if g > big else -1
            g *= factor
            for i in range(r.size):
                s[i] *= factor
        top = max(top, e)
        mass[k] = g
        exponent[k] = e
    total = 0.0
    for k in range(n):
        if exponent[k] == top:
            total += mass[k]
        elif exponent[k] == top - 1:
            total += mass[k] * small
    log_total = math.log(total)
    largest = 0.0
    for k in range(n):
        step = exponent[k] - top
        log_mass[k] = (math.log(mass[k]) - log_total) + step * RESCALE_BITS * _LN2
        largest = max(largest, abs(log_mass[k]))
        if step == 0:
            mass[k] /= total
        elif step == -1:
            mass[k] = mass[k] / total * small
        elif step == -2:
            mass[k] = mass[k] / total * small * small
        else:
            mass[k] = 0.0  # below 2^-1024
    return largest


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
    for z in range(max(0, -shift), min(n, n - shift)):
        m = mass[z]
        loss = log_mass[z] - log_mass[z + shift]
        position = loss * inverse
        if not position < last:
            out[1] += m
            out[2] += m * math.exp(-loss)
        elif position < first:
            out[4] += m
        else:
            i = math.floor(position)
            d = min(max(loss - i * step, 0.0), step)
            right = min(m * (one_minus_exp(d) * scale), m)
            at = int(i) - first
            cells[at] += m - right
            cells[at + 1] += right


@kernel
def tilted_rows(
    mass: FloatArray,
    log_mass: FloatArray,
    sums: FloatArray,
    shift: IntArray,
    last: IntArray,
    reference: IntArray,
    step: float,
    first: int,
    decay: FloatArray,
    rows: FloatArray,
    moments: FloatArray,
    out: FloatArray,
) -> None:
    """For each shift: its gridded loss, tilted relative to grid point reference[row] >= last[row].

    decay[j, d] is e^{-tilt_j * d * step}.  ``rows`` receives the cells under the first tilt,
    wrapped modulo the row length; ``moments[row, j]`` is the total mass under tilt j; the columns
    of ``out`` are those of connect_the_dots: mass at +infinity, capped P-mass, its Q-mass, P-mass
    shifted beyond the table, P-mass below the grid.  With ``sums`` the loss is monotone.
    """
    period = rows.shape[1]
    cells = np.empty(np.max(last) - first + 1)
    for row in range(shift.size):
        used = last[row] - first + 1
        part, aside = cells[:used], out[row]
        if sums.size:
            connect_runs(mass, log_mass, sums, shift[row], step, first, last[row], part, aside)
        else:
            connect_the_dots(mass, log_mass, shift[row], step, first, last[row], part, aside)
        rows[row, :] = 0.0
        start = first % period
        from_top = reference[row] - first
        for i in range(used):
            rows[row, (start + i) % period] += cells[i] * decay[0, from_top - i]
        for j in range(decay.shape[0]):
            total = 0.0
            for i in range(used):
                total += cells[i] * decay[j, from_top - i]
            moments[row, j] = total


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
    for row in range(rows.shape[0]):
        x = rows[row]
        a = scale[row]
        for i in range(half):
            re[order[i]] = x[2 * i] * a
            im[order[i]] = x[2 * i + 1] * a
        size = 2
        while size <= half:
            h = size // 2
            jump = n // size
            for start in range(0, half, size):
                for j in range(h):
                    c = cos[j * jump]
                    s = sin[j * jump]
                    u = start + j
                    v = u + h
                    tr = c * re[v] + s * im[v]
                    ti = c * im[v] - s * re[v]
                    re[v] = re[u] - tr
                    im[v] = im[u] - ti
                    re[u] += tr
                    im[u] += ti
            size *= 2
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
def largest_moduli(re: FloatArray, im: FloatArray, out: FloatArray) -> None:
    """out[row] = largest modulus of a row of a spectrum, with a relative error of 3 * 2^-53."""
    for row in range(re.shape[0]):
        largest = 0.0
        for i in range(re.shape[1]):
            largest = max(largest, re[row, i] * re[row, i] + im[row, i] * im[row, i])
        out[row] = math.sqrt(largest)


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
