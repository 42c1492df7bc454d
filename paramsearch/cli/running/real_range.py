"""The range of real values: what a file was made for, or what the options say."""

from __future__ import annotations

from typing import TYPE_CHECKING

from accounting.base.errors import InvalidParameter

if TYPE_CHECKING:
    from paramsearch.parameters.parameter_file import ParameterFile


def real_range(
    file: ParameterFile, low: float | None, high: float | None
) -> tuple[float | None, float | None]:
    """``--low`` and ``--high``, or else the range that ``generate-real`` wrote into the file.

    Raises:
        InvalidParameter: If the options and the file contradict each other.
    """
    from paramsearch.parameters.real_range import stated_range

    known = stated_range(file)
    if known is None:
        return low, high
    for name, asked, end in zip(("--low", "--high"), (low, high), known, strict=True):
        if asked is not None and asked != end:
            raise InvalidParameter(
                f"{name} {asked:g}: this file was made for real values in [{known[0]:g}, "
                f"{known[1]:g}]; leave --low and --high out"
            )
    return known
