"""Numba kernels of the gradients: estimates only, nothing here reaches a bound."""

from __future__ import annotations

import math

import numpy as np

from accounting._jit import kernel
from accounting.arrays import FloatArray, IntArray
from accounting.kernels import one_minus_exp


@kernel
def nb_sum_scores(r: FloatArray, p: FloatArray, scores: FloatArray) -> None:
    """d log f(k) / d(log mean, log r) of the first part of a sum of negative binomials.

    Differentiates the recurrence of nb_sum_table; scores[0] is for the mean at fixed r, scores[1]
    for r at fixed mean.
    """
    n = scores.shape[1]
    dr = np.array([0.0, r[0]])
    slope = p[0] * (1.0 - p[0])
    dp = np.array([slope, -slope])
    for t in range(2):
        start = math.log1p(-p[0]) * dr[t] - r[0] / (1.0 - p[0]) * dp[t]
        s = np.zeros(r.size)
        ds = np.zeros(r.size)
        g = 1.0
        dg = 0.0
        scores[t, 0] = start
        for k in range(1, n):
            g_next = 0.0
            dg_next = 0.0
            for i in range(r.size):
                ds[i] = p[i] * (dg + ds[i])
                if i == 0:
                    ds[i] += dp[t] * (g + s[i])
                s[i] = p[i] * (g + s[i])
                g_next += r[i] * s[i]
                dg_next += r[i] * ds[i]
            g = g_next / k
            dg = (dg_next + dr[t] * s[0]) / k
            scores[t, k] = start + dg / g
            if g > 1e150 or g < 1e-150:
                factor = 1.0 / g
                g = 1.0
                dg *= factor
                for i in range(r.size):
                    s[i] *= factor
                    ds[i] *= factor


@kernel
def tilted_gradient_rows(
    mass: FloatArray,
    log_mass: FloatArray,
    scores: FloatArray,
    shift: IntArray,
    last: IntArray,
    reference: IntArray,
    step: float,
    first: int,
    decay: FloatArray,
    rows: FloatArray,
    lost: FloatArray,
) -> None:
    """Derivatives of the rows of tilted_rows (first tilt) and of the mass set aside.

    rows[2 * row + t] and lost[2 * row + t] belong to the parameter t of ``scores``.
    """
    n = mass.size
    period = rows.shape[1]
    scale = 1.0 / one_minus_exp(step)
    rows[:, :] = 0.0
    lost[:] = 0.0
    for row in range(shift.size):
        a = shift[row]
        for z in range(n):
            beyond = z + a < 0 or z + a >= n
            loss = 0.0 if beyond else log_mass[z] - log_mass[z + a]
            if beyond or loss >= last[row] * step:
                for t in range(2):
                    lost[2 * row + t] += mass[z] * scores[t, z]
            elif loss >= first * step:
                i = math.floor(loss / step)
                d = min(max(loss - i * step, 0.0), step)
                share = one_minus_exp(d) * scale
                slope = (1.0 - one_minus_exp(d)) * scale
                left = decay[0, reference[row] - i]
                right = decay[0, reference[row] - i - 1]
                for t in range(2):
                    dm = mass[z] * scores[t, z]
                    moved = dm * share + mass[z] * slope * (scores[t, z] - scores[t, z + a])
                    rows[2 * row + t, i % period] += (dm - moved) * left
                    rows[2 * row + t, (i + 1) % period] += moved * right


@kernel
def pair_gradients(
    re: FloatArray,
    im: FloatArray,
    slope_re: FloatArray,
    slope_im: FloatArray,
    start: IntArray,
    factor: IntArray,
    releases: int,
    test_re: FloatArray,
    test_im: FloatArray,
    pairs: IntArray,
    out: FloatArray,
) -> None:
    """Derivative of the inner product of pair_sums in both parameters of every factor.

    Rows 2f and 2f + 1 of the slopes belong to factor row f; out[index, position, t] to the
    position-th factor of pair pairs[index].
    """
    width = re.shape[1]
    block = 256
    most = 0
    for index in range(pairs.size):
        most = max(most, start[pairs[index] + 1] - start[pairs[index]])
    head = np.empty((most + 1, 2, block))
    tail = np.empty((2, block))
    base = np.empty((2, block))
    out[:] = 0.0
    for index in range(pairs.size):
        begin = start[pairs[index]]
        count = start[pairs[index] + 1] - begin
        for left in range(0, width, block):
            size = min(block, width - left)
            for i in range(size):
                head[0, 0, i] = 1.0
                head[0, 1, i] = 0.0
            for position in range(count):
                x = re[factor[begin + position], left : left + size]
                y = im[factor[begin + position], left : left + size]
                for i in range(size):
                    a = head[position, 0, i]
                    b = head[position, 1, i]
                    head[position + 1, 0, i] = a * x[i] - b * y[i]
                    head[position + 1, 1, i] = a * y[i] + b * x[i]
            # conjugate test function times releases * product^(releases - 1)
            for i in range(size):
                base[0, i] = test_re[0, left + i] * releases
                base[1, i] = -test_im[0, left + i] * releases
            for _ in range(releases - 1):
                for i in range(size):
                    a = base[0, i]
                    b = base[1, i]
                    base[0, i] = a * head[count, 0, i] - b * head[count, 1, i]
                    base[1, i] = a * head[count, 1, i] + b * head[count, 0, i]
            for i in range(size):
                tail[0, i] = base[0, i]
                tail[1, i] = base[1, i]
            for position in range(count - 1, -1, -1):
                f = factor[begin + position]
                for i in range(size):
                    a = tail[0, i] * head[position, 0, i] - tail[1, i] * head[position, 1, i]
                    b = tail[0, i] * head[position, 1, i] + tail[1, i] * head[position, 0, i]
                    for t in range(2):
                        out[index, position, t] += (
                            a * slope_re[2 * f + t, left + i] - b * slope_im[2 * f + t, left + i]
                        )
                    x = re[f, left + i]
                    y = im[f, left + i]
                    a = tail[0, i]
                    b = tail[1, i]
                    tail[0, i] = a * x - b * y
                    tail[1, i] = a * y + b * x
