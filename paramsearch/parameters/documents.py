"""What may be audited: a parameter file, or a configuration that is proposed."""

from __future__ import annotations

from accounting.base import strict_json
from accounting.base.validation import AnyPath
from accounting.model.configuration import Proposal, blaming
from paramsearch.parameters.parameter_file import ParameterFile, from_json


def read(path: AnyPath) -> ParameterFile | Proposal:
    """Read a parameter file (it has a ``format``) or a bare configuration.

    Args:
        path: The file.

    Returns:
        Whichever it is.

    Raises:
        InvalidConfiguration: If it is neither.
        InvalidParameter: If a number of a configuration is outside its domain.
    """
    data = strict_json.read(path)
    if isinstance(data, dict) and "format" in data:
        return from_json(data, source=str(path))
    with blaming(str(path)):
        return Proposal.of(data)
