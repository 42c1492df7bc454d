"""Numba kernels of the compositions; their error budgets are in releases.md, section 4."""

from __future__ import annotations

import math

import numpy as np

from accounting.base.arrays import FloatArray, IntArray
from accounting.base.jit import kernel


@kernel
def upward_profile(
    mass: FloatArray, infinite: float, step: float, lift: float, out: FloatArray
) -> None:
    """out[i] = infinite + sum over l >= i of mass[l] (1 - e^{-(l - i) step - lift}).

    This is delta at the grid points of a measure whose losses are ``lift`` above them.  All terms
    are positive: the difference of the two sums is accumulated, not the sums.
    """
    decay = math.exp(-step)
    rise = -math.expm1(-step)
    small = -math.expm1(-lift)
    later = 0.0
    above = infinite
    for i in range(mass.size - 1, -1, -1):
        above += rise * later
        later = mass[i] + decay * later
        out[i] = above + small * later


@kernel
def convex_masses(value: FloatArray, step: float, mass: FloatArray) -> None:
    """Masses at the grid points whose profile is at least the convex hull of ``value`` in e^eps.

    The hull runs through (0, 1) and a subset of the points (e^{i step}, value[i]), and is constant
    after the last of them.  A mass is the change of slope times e^{i step} (Lemma 2), rounded up.
    """
    n = value.size
    node = np.empty(n, np.int64)
    left = np.empty(n)
    top = 0
    for c in range(n):
        while top:
            b = node[top - 1]
            if left[top - 1] > (value[b] - value[c]) / math.expm1((c - b) * step):
                break
            top -= 1
        node[top] = c
        if top:
            a = node[top - 1]
            left[top] = (value[a] - value[c]) / -math.expm1((a - c) * step)
        else:
            left[top] = 1.0 - value[c]
        top += 1
    mass[:] = 0.0
    for i in range(top):
        b = node[i]
        right = far = 0.0
        if i + 1 < top:
            far = (node[i + 1] - b) * step
            right = (value[b] - value[node[i + 1]]) / math.expm1(far)
        size = 2.0**-53 * (32.0 * abs(left[i]) + (32.0 + 4.0 * far) * abs(right))
        mass[b] = max(left[i] - right, 0.0) + size


@kernel
def multiply_spectra(
    re: FloatArray,
    im: FloatArray,
    start: IntArray,
    factor: IntArray,
    pairs: IntArray,
    out: FloatArray,
) -> None:
    """Row q of ``out``: the product of the spectra of pair pairs[q] as a Hartley spectrum.

    Entry k holds Re - Im of the product at frequency k; its real transform is, up to the order of
    its entries, the inverse transform (releases.md, Lemma 5).
    """
    width = re.shape[1]
    n = 2 * (width - 1)
    for index in range(pairs.size):
        q = pairs[index]
        for k in range(width):
            a = 1.0
            b = 0.0
            for position in range(start[q], start[q + 1]):
                x = re[factor[position], k]
                y = im[factor[position], k]
                t = a * x - b * y
                b = a * y + b * x
                a = t
            out[index, k] = a - b
            if 0 < k < width - 1:
                out[index, n - k] = a + b


@kernel
def hartley_values(re: FloatArray, im: FloatArray, out: FloatArray) -> None:
    """The inverse transform, from the real transform of a Hartley spectrum."""
    width = re.shape[1]
    n = 2 * (width - 1)
    for row in range(re.shape[0]):
        out[row, 0] = re[row, 0] / n
        out[row, width - 1] = re[row, width - 1] / n
        for k in range(1, width - 1):
            out[row, k] = (re[row, k] - im[row, k]) / n
            out[row, n - k] = (re[row, k] + im[row, k]) / n
