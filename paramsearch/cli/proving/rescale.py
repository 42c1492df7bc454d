"""``paramsearch rescale``: a parameter file for another number of users."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from accounting.base.errors import InvalidParameter
from paramsearch.cli import options
from paramsearch.cli.output import check_destination, progress
from paramsearch.cli.proving.certify import deliver


def rescale(
    file: Annotated[Path, typer.Argument(help="A parameter file.")],
    n: Annotated[
        int, typer.Option(help="The new number of users.", parser=options.whole_number, metavar="N")
    ],
    output: options.Output = None,
    tier: options.Tier = "auto",
    as_json: options.FileAsJson = False,
) -> None:
    """Use the same noise for another number of users: no search, certified again."""
    from paramsearch.certification.certify import certify
    from paramsearch.parameters.assembly import rescaled
    from paramsearch.parameters.documents import read
    from paramsearch.parameters.parameter_file import ParameterFile

    check_destination(output, as_json)
    document = read(file)
    if not isinstance(document, ParameterFile):
        raise InvalidParameter(f"{file} is a bare configuration; certify it with --n instead")
    with progress("certifying") as say:
        certified = certify(rescaled(document, n), tier=tier, progress=say)
    deliver(certified, output, as_json)
