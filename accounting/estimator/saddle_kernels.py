"""Numba kernel of the moments that place a steep grid."""

from __future__ import annotations

import math

import numpy as np

from accounting.base.arrays import FloatArray, IntArray
from accounting.base.jit import kernel


@kernel
def capped_moments(
    table: FloatArray,
    start: IntArray,
    middle: IntArray,
    width: FloatArray,
    cell_start: IntArray,
    noise: IntArray,
    shift: IntArray,
    gentlest: FloatArray,
    caps: FloatArray,
    moments: FloatArray,
    beyond: FloatArray,
) -> None:
    """Moments of the loss of each factor (noise, shift), see ``loss_rows`` for its arguments.

    moments[q, i, j] is the sum of e^{c_j l} f over losses l up to caps[q], which are in ascending
    order; beyond[i, q] is the P-mass of all other losses.  The first tilts c_j are ``gentlest``,
    and each of the others is twice as steep as the tilt that many places before.
    """
    count, tilts = caps.size, moments.shape[2]
    power = np.empty(gentlest.size)
    for i in range(noise.size):
        moments[:, i] = 0.0
        beyond[i] = 0.0
        a = shift[i]
        for k in range(cell_start[noise[i]], cell_start[noise[i] + 1]):
            z = start[noise[i]] + middle[k]
            mass = width[k] * math.exp(table[0, z])
            q = count
            if middle[k] + a >= 0:
                loss = table[0, z] - table[0, z + a]
                while q > 0 and loss <= caps[q - 1]:
                    q -= 1
            if q > 0:
                beyond[i, q - 1] += mass
            if q == count:
                continue
            for j in range(gentlest.size):
                power[j] = math.exp(gentlest[j] * loss)
            at = 0
            for j in range(tilts):
                moments[q, i, j] += mass * power[at]
                power[at] *= power[at]
                at = at + 1 if at + 1 < gentlest.size else 0
        for q in range(1, count):
            for j in range(tilts):
                moments[q, i, j] += moments[q - 1, i, j]
            beyond[i, count - 1 - q] += beyond[i, count - q]
