"""Numba kernel that evaluates the elementary functions as all kernels call them."""

from __future__ import annotations

import math

from accounting.base.arrays import FloatArray
from accounting.base.jit import kernel

NAMES = ("exp", "expm1", "log", "log1p", "sqrt")
"""The functions, in the order of the rows of ``elementary_values``."""


@kernel
def elementary_values(arguments: FloatArray, out: FloatArray) -> None:
    """out[f, i, j] = function f of arguments[f, i, j].

    The loops over j are vectorized where numba can; a single j takes the scalar functions.
    """
    for i in range(arguments.shape[1]):
        for j in range(arguments.shape[2]):
            out[0, i, j] = math.exp(arguments[0, i, j])
        for j in range(arguments.shape[2]):
            out[1, i, j] = math.expm1(arguments[1, i, j])
        for j in range(arguments.shape[2]):
            out[2, i, j] = math.log(arguments[2, i, j])
        for j in range(arguments.shape[2]):
            out[3, i, j] = math.log1p(arguments[3, i, j])
        for j in range(arguments.shape[2]):
            out[4, i, j] = math.sqrt(arguments[4, i, j])
