"""Array types, and the rounding of doubles."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

FloatArray: TypeAlias = npt.NDArray[np.float64]
IntArray: TypeAlias = npt.NDArray[np.int64]
BoolArray: TypeAlias = npt.NDArray[np.bool_]
UNIT_ROUNDOFF = 2.0**-53
"""Largest relative error of one rounding to a double."""


def multiples(first: int, count: int, step: float) -> FloatArray:
    """The array first * step, (first + 1) * step, ..., of ``count`` numbers."""
    return np.asarray((first + np.arange(count)) * step, np.float64)
