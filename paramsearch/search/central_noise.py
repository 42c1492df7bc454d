"""The central noise of a target: from a fraction of the largest possible eps*, or from an error."""

from __future__ import annotations

import math

from accounting.base.enclosure import at_most
from accounting.base.errors import InvalidParameter
from accounting.base.validation import positive, real
from accounting.model.costs import central_rmse, discrete_laplace_deviation, largest_central_of
from paramsearch.request import DEFAULT_CENTRAL_FRACTION, Request

_MOST_CENTRAL, _ADVISED_CENTRAL = 0.999, 0.99
"""Largest share of the largest possible eps* at which the atoms have enough left, and the one that
is advised where an error is refused."""
_CENTRAL_RATIO, _LARGEST_SHARE = 1.4, 0.6
"""Ratio of neighboring eps* that are compared, and the largest as a share of the largest possible
one; rules of thumb."""


def choices(request: Request) -> list[float]:
    """The eps* to compare for a request: that of its fraction, or several with at most its error.

    Less error can be cheaper, because central noise is sent as messages, too.

    Raises:
        InvalidParameter: If the request asks for an error or a fraction out of reach.
    """
    largest, ratio = largest_central_of(request), request.max_error_ratio
    if ratio is not None:
        unit = central_rmse(request)
        try:
            sizes = [by_rmse(ratio * unit, request.max_value, largest, request.honest)]
        except InvalidParameter:
            least = _advised_rmse(request.max_value, largest, request.honest) / unit
            why = "the atoms need a part of eps"
            if request.honest < 1:
                why += ", and the noise of the honest users has to suffice"
            raise InvalidParameter(
                f"max error ratio = {ratio:g} is out of reach: {why}; allow at least "
                f"{at_most(least)}"
            ) from None
    elif request.max_rmse is not None:
        sizes = [by_rmse(request.max_rmse, request.max_value, largest, request.honest)]
    else:
        wanted = request.central_fraction
        return [by_fraction(DEFAULT_CENTRAL_FRACTION if wanted is None else wanted, largest)]
    while sizes[-1] * _CENTRAL_RATIO < _LARGEST_SHARE * largest:
        sizes.append(sizes[-1] * _CENTRAL_RATIO)
    return sizes


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
    if central >= _MOST_CENTRAL * largest:
        least = discrete_laplace_deviation(largest / max_value) / math.sqrt(honest)
        raise InvalidParameter(
            f"max rmse = {max_rmse:g} is out of reach: the central mechanism alone has an RMSE of "
            f"{least:.6g} at this eps, and the atoms need a part of eps; allow at least "
            f"{at_most(_advised_rmse(max_value, largest, honest))}, or raise eps"
        )
    return central


def _advised_rmse(max_value: int, largest: float, honest: float) -> float:
    """A small error that is not refused."""
    return discrete_laplace_deviation(_ADVISED_CENTRAL * largest / max_value) / math.sqrt(honest)
