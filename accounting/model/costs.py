"""Costs that several modules need: bits of a message, and the variance of the central noise."""

from __future__ import annotations

import math


def bits_per_message(symbols: int) -> int:
    """Bits that distinguish this many symbols; at least one.

    >>> [bits_per_message(symbols) for symbols in (2, 3, 4, 5)]
    [1, 2, 2, 3]
    """
    return max(1, (symbols - 1).bit_length())


def discrete_laplace_variance(step: float) -> float:
    """The variance 2q / (1 - q)^2 of the Discrete Laplace law with q = e^-step."""
    return 0.5 / math.sinh(step / 2) ** 2
