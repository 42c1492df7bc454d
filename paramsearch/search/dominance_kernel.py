"""The numba kernel of the dominance program: one pass over all pairs of columns."""

from __future__ import annotations

import math

import numpy as np

from accounting.base.arrays import FloatArray, IntArray
from accounting.base.jit import kernel


@kernel
def weigh_pairs(
    start: IntArray,
    atom: IntArray,
    entry: FloatArray,
    inverse_t: FloatArray,
    sharpness: float,
    reference: float,
    first: int,
    end: int,
    gradient: FloatArray,
    totals: FloatArray,
) -> None:
    """Sum the weights of the pairs k < j of columns, for j in first..end-1.

    The nonzero entries of column j are entry[i] at atom[i], for start[j] <= i < start[j + 1].
    With T = sum of |c_j - c_k|_s inverse_t_s and the weight e^{sharpness (T - reference)},

    totals = (sum of weights, largest T),
    gradient_s += weight * |c_j - c_k|_s.

    With c_j as a dense vector and its own T known, the work for a pair is the entries of c_k.
    """
    column_j = np.zeros(inverse_t.size)
    total, largest = 0.0, 0.0
    for j in range(first, end):
        t_of_j = 0.0
        for at in range(start[j], start[j + 1]):
            column_j[atom[at]] = entry[at]
            t_of_j += abs(entry[at]) * inverse_t[atom[at]]
        weight_of_j = 0.0
        for k in range(j):
            t = t_of_j
            for at in range(start[k], start[k + 1]):
                entry_of_j = column_j[atom[at]]
                t += (abs(entry_of_j - entry[at]) - abs(entry_of_j)) * inverse_t[atom[at]]
            largest = max(largest, t)
            exponent = sharpness * (t - reference)
            if exponent > -25.0:  # smaller weights are negligible: e^-25 is about 1e-11
                weight = math.exp(exponent)
                weight_of_j += weight
                for at in range(start[k], start[k + 1]):
                    entry_of_j = column_j[atom[at]]
                    gradient[atom[at]] += weight * (abs(entry_of_j - entry[at]) - abs(entry_of_j))
        total += weight_of_j
        for at in range(start[j], start[j + 1]):
            gradient[atom[at]] += weight_of_j * abs(entry[at])
            column_j[atom[at]] = 0.0
    totals[0], totals[1] = total, largest
