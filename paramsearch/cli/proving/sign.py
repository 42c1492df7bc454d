"""``paramsearch sign``: a detached signature of a parameter file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from accounting.base.errors import InvalidParameter
from paramsearch.cli import options
from paramsearch.cli.output import check_writable, print_json, show
from paramsearch.files import write_atomically


def sign(
    file: Annotated[Path, typer.Argument(help="A parameter file.")],
    key: Annotated[Path, typer.Option(help="The Ed25519 private key, PEM.")],
    create_key: Annotated[
        bool, typer.Option("--create-key", help="Create the key first, and KEY.pub beside it.")
    ] = False,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The signature, by default FILE.sig.")
    ] = None,
    as_json: options.AsJson = False,
) -> None:
    """Sign a parameter file; `paramsearch audit --public-key` checks the signature."""
    from paramsearch.certification.stated_problem import StatedProblem
    from paramsearch.parameters import signature
    from paramsearch.parameters.assembly import consistent
    from paramsearch.parameters.documents import read
    from paramsearch.parameters.parameter_file import ParameterFile

    document = read(file)
    if not isinstance(document, ParameterFile):
        raise InvalidParameter(f"{file} is a bare configuration; certify it first")
    consistent(document)
    target = output or signature.signature_path(file)
    check_writable(target, "--output")
    for other in (file, key, signature.public_path(key)):
        if target.resolve() == other.resolve():
            raise InvalidParameter(f"--output {target} would overwrite {other}")
    made = {"public_key": str(signature.create_key(key))} if create_key else {}
    write_atomically(target, signature.sign(document, key))
    made["signature"] = str(target)
    if as_json:
        print_json({"problem": StatedProblem.of(document).as_json(), **made})
    else:
        show((what.replace("_", " "), where) for what, where in made.items())
