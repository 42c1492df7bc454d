"""The numba kernel of the dominance program: a pass over all pairs of columns."""

from __future__ import annotations

import math

import numpy as np

from accounting.base.arrays import FloatArray, IntArray
from accounting.base.jit import kernel


@kernel
def weigh_pairs(
    pointer: IntArray,
    index: IntArray,
    entry: FloatArray,
    u: FloatArray,
    sharpness: float,
    reference: float,
    begin: int,
    end: int,
    gradient: FloatArray,
    found: FloatArray,
) -> None:
    """Over the pairs k < j with j in begin..end: T = sum of |c_j - c_k|_s u_s, and

    found = (sum of e^{sharpness (T - reference)}, largest T),
    gradient_s += that weight times |c_j - c_k|_s.

    With c_j spread out and its own sum known, a pair costs as much as c_k has entries.
    """
    spread = np.zeros(u.size)
    total, largest = 0.0, 0.0
    for j in range(begin, end):
        own = 0.0
        for at in range(pointer[j], pointer[j + 1]):
            spread[index[at]] = entry[at]
            own += abs(entry[at]) * u[index[at]]
        of_j = 0.0
        for k in range(j):
            both = own
            for at in range(pointer[k], pointer[k + 1]):
                mine = spread[index[at]]
                both += (abs(mine - entry[at]) - abs(mine)) * u[index[at]]
            largest = max(largest, both)
            exponent = sharpness * (both - reference)
            if exponent > -25.0:
                weight = math.exp(exponent)
                of_j += weight
                for at in range(pointer[k], pointer[k + 1]):
                    mine = spread[index[at]]
                    gradient[index[at]] += weight * (abs(mine - entry[at]) - abs(mine))
        total += of_j
        for at in range(pointer[j], pointer[j + 1]):
            gradient[index[at]] += of_j * abs(entry[at])
            spread[index[at]] = 0.0
    found[0], found[1] = total, largest
