"""Numba kernels of tables of masses (floating_point.md, F1)."""

from __future__ import annotations

import math

import numpy as np

from accounting.base.arrays import FloatArray, IntArray
from accounting.base.jit import kernel

RESCALE_BITS = 512
_LN2 = 0.6931471805599453


@kernel
def noise_masses(
    start: IntArray,
    first: IntArray,
    all_p: FloatArray,
    all_order: IntArray,
    all_weights: FloatArray,
    all_mass: FloatArray,
    all_exponent: IntArray,
) -> None:
    """Masses of sums of independent noises, each relative to that at 0.

    Table t begins at start[t], and its parts at first[t].  The masses are mass * 2^(512 exponent),
    where scaling by powers of two is exact.  Part i keeps the sums s_1(k) = g_{k-1} + p s_1(k-1),
    s_j(k) = s_{j-1}(k) + p s_j(k-1) for j up to its order n, and with its two weights

        k g_k = sum over the parts of  v s_n(k) + w s_n(k-1).

    All terms are positive, so errors grow linearly (Lemma F1).  For a single negative binomial,
    of order 1 with v = r p and w = 0, that is g_k = g_{k-1} (r p + p (k - 1)) / k.
    """
    big = 2.0**RESCALE_BITS
    small = 2.0**-RESCALE_BITS
    for t in range(start.size - 1):
        mass = all_mass[start[t] : start[t + 1]]
        exponent = all_exponent[start[t] : start[t + 1]]
        p = all_p[first[t] : first[t + 1]]
        order = all_order[first[t] : first[t + 1]]
        weights = all_weights[first[t] : first[t + 1]]
        alone = order.size == 1 and order[0] == 1
        sums = np.zeros((order.size, order.max()))
        mass[0] = 1.0
        exponent[0] = 0
        g = 1.0
        e = 0
        for k in range(1, mass.size):
            if alone:
                g *= (weights[0, 0] + p[0] * (k - 1)) / k
            else:
                g_next = 0.0
                for i in range(order.size):
                    s = sums[i]
                    last = order[i] - 1
                    before = s[last]
                    carried = g
                    for j in range(order[i]):
                        carried += p[i] * s[j]
                        s[j] = carried
                    g_next += weights[i, 0] * s[last] + weights[i, 1] * before
                g = g_next / k
            if g > big or g < small:
                factor = small if g > big else big
                e += 1 if g > big else -1
                g *= factor
                sums *= factor
            mass[k] = g
            exponent[k] = e


@kernel
def normalize_masses(
    start: IntArray,
    all_mass: FloatArray,
    all_exponent: IntArray,
    all_log_mass: FloatArray,
    largest: FloatArray,
) -> None:
    """Divide the masses of ``noise_masses`` by their sum, and add their scales to ``log_mass``.

    ``log_mass`` holds the logarithms of the unscaled masses; in the end it is correct where
    ``mass`` underflows, too.  ``largest`` becomes the largest |log_mass| of each table.
    """
    small = 2.0**-RESCALE_BITS
    for t in range(start.size - 1):
        mass = all_mass[start[t] : start[t + 1]]
        log_mass = all_log_mass[start[t] : start[t + 1]]
        exponent = all_exponent[start[t] : start[t + 1]]
        top = exponent.max()
        total = 0.0
        for k in range(mass.size):
            if exponent[k] == top:
                total += mass[k]
            elif exponent[k] == top - 1:
                total += mass[k] * small
        log_total = math.log(total)
        most = 0.0
        for k in range(mass.size):
            step = exponent[k] - top
            log_mass[k] = (log_mass[k] - log_total) + step * RESCALE_BITS * _LN2
            most = max(most, abs(log_mass[k]))
            if step == 0:
                mass[k] /= total
            elif step == -1:
                mass[k] = mass[k] / total * small
            elif step == -2:
                mass[k] = mass[k] / total * small * small
            else:
                mass[k] = 0.0  # below 2^-1024
        largest[t] = most
