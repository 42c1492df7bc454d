"""The central noise of a target: from a fraction of the largest possible eps*, or from an error."""

from __future__ import annotations

import math

import numpy as np

from accounting.base.bisection import arithmetic_mean, bisection
from accounting.base.errors import InvalidParameter
from accounting.base.validation import positive, real

_MOST_LOSSES = 4_000_000
"""Largest number of distinct losses of all changes together, which bounds the memory."""
_FINEST = 400
"""Largest max_value computed with: the Discrete Laplace loss hardly changes beyond it."""


def largest_central(*, eps: float, delta: float, max_value: int, changes: int) -> float:
    """Approximately the largest eps* at which the Discrete Laplace mechanism alone is
    (eps, delta/2)-DP for this many simultaneous changes by max_value."""
    if changes <= 2:  # delta allows hardly more than eps / changes
        return eps / changes
    top = max(1, min(max_value, _FINEST, _MOST_LOSSES // changes))
    found, _ = bisection(
        lambda central: not _laplace_delta(central, eps, top, changes) <= delta / 2,
        eps / changes,
        eps,
        mean=arithmetic_mean,
        halvings=40,
    )
    return found


def _laplace_delta(central: float, eps: float, top: int, changes: int) -> float:
    """delta of the Discrete Laplace mechanism with eps* = ``central`` for all changes together."""
    step = central / top
    q = math.exp(-step)
    weight = np.exp(-step * np.arange(top + 1)) * (1 - q) / (1 + q)
    weight[[0, -1]] = np.array([1.0, math.exp(-central)]) / (1 + q)
    size = changes * top + 1
    spectrum = np.fft.rfft(weight, 1 << (size - 1).bit_length())
    mass = np.fft.irfft(spectrum**changes)[:size]
    loss = step * (changes * top - 2 * np.arange(size))
    return float(np.sum(np.clip(mass, 0, None) * -np.expm1(np.minimum(eps - loss, 0.0))))


def by_fraction(fraction: float, largest: float) -> float:
    """eps* as a fraction of the largest possible one.

    Raises:
        InvalidParameter: If the fraction is not strictly between 0 and 1.
    """
    share = real("central fraction", fraction)
    if not 0 < share < 1:
        raise InvalidParameter(
            f"central fraction = {share:g} must lie strictly between 0 and 1: the atoms need the "
            "rest of eps"
        )
    return share * largest


def by_rmse(max_rmse: float, max_value: int, largest: float, honest: float = 1.0) -> float:
    """The smallest eps* whose Discrete Laplace noise has at most this root mean square error.

    Every user adds enough noise for the fraction ``honest`` of the users to suffice.

    Raises:
        InvalidParameter: If eps does not allow so small an error.
    """
    rmse = positive("max rmse", max_rmse) * math.sqrt(honest)
    central = 2 * max_value * math.asinh(1 / (math.sqrt(2) * rmse)) * (1 + 1e-12)
    if central >= 0.999 * largest:
        least = 1 / (math.sqrt(2 * honest) * math.sinh(largest / (2 * max_value)))
        raise InvalidParameter(
            f"max rmse = {max_rmse:g} is out of reach: the central mechanism alone has an RMSE of "
            f"{least:.6g} at this eps, and the atoms need a part of eps; allow at least "
            f"{1.01 * least:.4g}, or raise eps"
        )
    return central
