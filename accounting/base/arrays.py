"""Array types, and the rounding of doubles."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

FloatArray: TypeAlias = npt.NDArray[np.float64]
IntArray: TypeAlias = npt.NDArray[np.int64]
BoolArray: TypeAlias = npt.NDArray[np.bool_]
WordArray: TypeAlias = npt.NDArray[np.uint64]
UNIT_ROUNDOFF = 2.0**-53
"""Largest relative error of one rounding to a double."""


def multiples(first: int, count: int, step: float) -> FloatArray:
    """Return the array first * step, (first + 1) * step, ..., of ``count`` numbers."""
    return np.asarray((first + np.arange(count)) * step, np.float64)


_SPARSE = 8
"""Range of keys, in units of their number, up to which a table is quicker than sorting."""


def distinct(keys: IntArray) -> tuple[IntArray, IntArray]:
    """Return the distinct keys in ascending order, and for every key its index among them.

    >>> distinct(np.array([5, 3, 5]))
    (array([3, 5]), array([1, 0, 1]))
    """
    if not len(keys):
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    low = int(keys.min())
    span = int(keys.max()) - low + 1
    if span > _SPARSE * len(keys):
        found, inverse = np.unique(keys, return_inverse=True)
        return found, inverse.astype(np.int64)
    used = np.zeros(span, np.bool_)
    used[keys - low] = True
    rank = np.cumsum(used) - 1
    return np.flatnonzero(used) + low, rank[keys - low]
