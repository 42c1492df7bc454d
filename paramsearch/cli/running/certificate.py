"""A file without a certificate may be analyzed and simulated, but not silently."""

from __future__ import annotations

from typing import TYPE_CHECKING

from paramsearch.cli.output import note

if TYPE_CHECKING:
    from paramsearch.parameters.parameter_file import ParameterFile


def warn_uncertified(file: ParameterFile) -> bool:
    """Tell whether the file has a certificate; without one, print a warning on stderr."""
    if file.certificate is not None:
        return True
    note(
        "warning: the file has no certificate, so nothing is proved about its noise, and no client "
        "randomizes with it; `paramsearch certify` adds one"
    )
    return False
