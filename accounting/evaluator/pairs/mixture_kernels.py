"""Numba kernels for central factors (m, b): sums over the cases i = 0..m of a mixture.

For one b the cases of all m are the same but for the last one, so a running sum over i serves them
all: ``order`` lists the mixtures by b, then by m.  ``values`` has one row per shift of W from
``low`` on.
"""

from __future__ import annotations

import math

import numpy as np

from accounting.base.arrays import FloatArray, IntArray
from accounting.base.jit import kernel


@kernel
def mixture_sums(
    low: int,
    mix: IntArray,
    order: IntArray,
    inner: FloatArray,
    end: FloatArray,
    values: FloatArray,
    out: FloatArray,
) -> None:
    """out[f, t] = sum_{i < m} inner[i, t] values[b + i, t] + end[m, t] values[b + m, t]."""
    columns = values.shape[1]
    total = np.zeros(columns)
    last_b = done = 0
    for position in range(order.size):
        m, b = mix[order[position]]
        if position == 0 or b != last_b or done > m:
            total[:] = 0.0
            last_b, done = b, 0
        while done < m:
            for t in range(columns):
                total[t] += inner[done, t] * values[b + done - low, t]
            done += 1
        for t in range(columns):
            out[order[position], t] = total[t] + end[m, t] * values[b + m - low, t]


@kernel
def mixture_log_sums(
    low: int,
    mix: IntArray,
    order: IntArray,
    inner: FloatArray,
    end: FloatArray,
    values: FloatArray,
    out: FloatArray,
) -> None:
    """Compute the same sums from and to logarithms."""
    columns = values.shape[1]
    total = np.zeros(columns)
    peak = np.zeros(columns)
    last_b = done = 0
    for position in range(order.size):
        m, b = mix[order[position]]
        if position == 0 or b != last_b or done > m:
            total[:] = 0.0
            peak[:] = -math.inf
            last_b, done = b, 0
        while done < m:
            for t in range(columns):
                term = inner[done, t] + values[b + done - low, t]
                if term > peak[t]:
                    total[t] = total[t] * math.exp(peak[t] - term) + 1.0
                    peak[t] = term
                elif term > -math.inf:
                    total[t] += math.exp(term - peak[t])
            done += 1
        for t in range(columns):
            term = end[m, t] + values[b + m - low, t]
            best = max(term, peak[t])
            found = -math.inf
            if best > -math.inf:
                found = best + math.log(total[t] * math.exp(peak[t] - best) + math.exp(term - best))
            out[order[position], t] = found


@kernel
def mixture_maxima(
    low: int, mix: IntArray, order: IntArray, added: FloatArray, values: FloatArray, out: FloatArray
) -> None:
    """out[f] = max over i <= m of added[i] + values[b + i]."""
    best = -math.inf
    last_b = done = 0
    for position in range(order.size):
        m, b = mix[order[position]]
        if position == 0 or b != last_b or done > m + 1:
            best = -math.inf
            last_b, done = b, 0
        while done <= m:
            best = max(best, added[done] + values[b + done - low])
            done += 1
        out[order[position]] = best


@kernel
def split_spectrum(
    index: IntArray,
    mass: FloatArray,
    cos: FloatArray,
    sin: FloatArray,
    first: int,
    out: FloatArray,
) -> None:
    """Real and imaginary parts out[0, i], out[1, i]: the transform of the masses mass[i, 0] at grid
    point index[i] and mass[i, 1] at the next one, at the frequencies from ``first`` on; ``cos`` and
    ``sin`` are those of ``rfft_rows``."""
    half = cos.size
    n = 2 * half
    out[:] = 0.0
    for i in range(index.size):
        for side in range(2):
            for j in range(out.shape[2]):
                k = ((first + j) * (index[i] + side)) % n
                m = mass[i, side]
                if k >= half:
                    k -= half
                    m = -m
                out[0, i, j] += m * cos[k]
                out[1, i, j] -= m * sin[k]


@kernel
def mixture_spectra(
    shifted: FloatArray,
    low: int,
    mix: IntArray,
    order: IntArray,
    weights: FloatArray,
    case: FloatArray,
    top: FloatArray,
    scale: FloatArray,
    re: FloatArray,
    im: FloatArray,
) -> None:
    """Spectra of mixtures (floating_point.md, F8), in real and imaginary parts.

    shifted[:, t] is the spectrum of the shift low + t of W, case[:, i] and top[:, m] are those of
    the two parts of an offset, and weights[i] is [w_i, w_i as the last case].  The result is
    scale[f] * top[m] * (sum_{i < m} w_i case[i] W[b + i] + w_m case[m] W[b + m]).
    """
    width = re.shape[1]
    a = np.zeros(width)
    c = np.zeros(width)
    last_b = done = 0
    for position in range(order.size):
        f = order[position]
        m, b = mix[f]
        if position == 0 or b != last_b or done > m:
            a[:] = 0.0
            c[:] = 0.0
            last_b, done = b, 0
        while done < m:
            x, y = shifted[0, b + done - low], shifted[1, b + done - low]
            p, q = case[0, done], case[1, done]
            w = weights[done, 0]
            for j in range(width):
                a[j] += w * (p[j] * x[j] - q[j] * y[j])
                c[j] += w * (p[j] * y[j] + q[j] * x[j])
            done += 1
        x, y = shifted[0, b + m - low], shifted[1, b + m - low]
        p, q = case[0, m], case[1, m]
        r, s = top[0, m], top[1, m]
        w = weights[m, 1]
        for j in range(width):
            u = a[j] + w * (p[j] * x[j] - q[j] * y[j])
            v = c[j] + w * (p[j] * y[j] + q[j] * x[j])
            re[f, j] = scale[f] * (r[j] * u - s[j] * v)
            im[f, j] = scale[f] * (r[j] * v + s[j] * u)
