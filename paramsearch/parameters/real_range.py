"""Files for real values: their range, and the error in the units of the values."""

from __future__ import annotations

import math
from dataclasses import dataclass

from accounting.base.errors import InvalidParameter
from accounting.model.configuration import Proposal
from paramsearch.parameters.parameter_file import ParameterFile

ROUNDED_AFRESH = (
    "same_change (--same-change) does not go with real values: every release rounds them afresh, "
    "so that the same change of a value is not the same change of the rounded integers in each, "
    "which is what would be proved; leave it out, which asks for every change"
)
"""Why the same change in every release is refused for real values: equal changes compose by
exact_view.md, Theorem 3, and those of the rounded integers are not equal."""


@dataclass(frozen=True)
class RealError:
    """The root mean square error of a sum of real values, in their units.

    Attributes:
        rounding: The largest error of rounding at random.
        noise: The error of the central noise.
        width: The width of the range of the values.
    """

    rounding: float
    noise: float
    width: float

    @property
    def total(self) -> float:
        """The largest error of both together."""
        return math.hypot(self.rounding, self.noise)


def stated_range(file: ParameterFile) -> tuple[float, float] | None:
    """The range of real values that a file was made for, from its provenance; None for a file for
    integers or vectors."""
    ends = [file.provenance.settings.get(name) for name in ("low", "high")]
    if file.dimension > 1 or not all(type(end) in (float, int) for end in ends):
        return None
    low, high = (float(str(end)) for end in ends)
    return (low, high) if low < high and math.isfinite(high - low) else None


def real_error(file: ParameterFile) -> RealError | None:
    """The error of the sum of real values; None for a file for integers or vectors, and for a
    range whose sums no number can hold."""
    ends = stated_range(file)
    if ends is None:
        return None
    width = ends[1] - ends[0]
    step = width / file.problem.max_value
    error = RealError(step * math.sqrt(file.problem.n) / 2, step * file.error.rmse, width)
    return error if math.isfinite(error.total) else None


def refuse_same_change(document: ParameterFile | Proposal) -> None:
    """Refuse the same change in every release for a document that is for real values.

    Raises:
        InvalidParameter: If it is.
    """
    if isinstance(document, ParameterFile) and stated_range(document) is not None:
        raise InvalidParameter(ROUNDED_AFRESH)
