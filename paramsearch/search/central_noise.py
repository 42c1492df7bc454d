"""The central noise of a target: from a fraction of the largest possible eps*, or from an error."""

from __future__ import annotations

import math

from accounting.base.errors import InvalidParameter
from accounting.base.validation import positive, real


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
