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
    settings = file.provenance.settings
    made = settings.get("low"), settings.get("high")
    if not all(isinstance(end, float | int) for end in made):
        return low, high
    known = tuple(float(str(end)) for end in made)
    for name, asked, end in zip(("--low", "--high"), (low, high), known, strict=True):
        if asked is not None and asked != end:
            raise InvalidParameter(
                f"{name} {asked:g}: this file was made for real values in [{known[0]:g}, "
                f"{known[1]:g}]; leave --low and --high out"
            )
    return known[0], known[1]
