"""Array types of the house."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

FloatArray: TypeAlias = npt.NDArray[np.float64]
IntArray: TypeAlias = npt.NDArray[np.int64]


def multiples(first: int, count: int, step: float) -> FloatArray:
    """first * step, (first + 1) * step, ..."""
    return np.asarray((first + np.arange(count)) * step, np.float64)
