"""``paramsearch client``: the randomizer in another language."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from accounting.base.errors import InvalidParameter
from accounting.base.validation import one_of
from paramsearch.cli import options
from paramsearch.cli.output import check_folder, print_json, show

_LANGUAGES = ("javascript",)
_OTHER_NAMES = ("js", "javascript", "ecmascript", "typescript", "ts", "node", "nodejs", "browser")
"""What people call the language, in lower case."""
_LARGEST_SIGNATURE = 1 << 10
"""Bytes."""


def client(
    language: Annotated[str, typer.Argument(help="The language: javascript.")],
    file: Annotated[
        Path | None,
        typer.Argument(help="A certified parameter file, for an example page that uses it."),
    ] = None,
    *,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The folder to write to; it is made if missing.")
    ],
    as_json: options.AsJson = False,
) -> None:
    """Write a client in another language: a module without dependencies that reads parameter files.

    With FILE, also an example page that randomizes a value and shows what would be sent; serve the
    folder with `python3 -m http.server`.
    """
    from accounting.base import strict_json
    from paramsearch.certification.stated_problem import StatedProblem
    from paramsearch.deploy import Randomizer
    from paramsearch.deploy.javascript import SIGNATURE, client_files, is_ours
    from paramsearch.files import write_atomically
    from paramsearch.parameters.parameter_file import from_json
    from paramsearch.parameters.signature import signature_path

    if language not in _LANGUAGES and language.lower() in _OTHER_NAMES:
        raise InvalidParameter(f"language = {language!r}: write javascript")
    one_of("language", language, _LANGUAGES)
    check_folder(output)
    content = signature = problem = None
    if file is not None:
        content = strict_json.read_bytes(file)
        text = strict_json.decoded(content, source=str(file))
        parameters = from_json(strict_json.parse(text, source=str(file)), source=str(file))
        Randomizer(parameters)  # refuses what no client randomizes with
        problem = StatedProblem.of(parameters).as_json()
        if os.path.exists(signed := signature_path(file)):
            signature = strict_json.read_bytes(signed, most=_LARGEST_SIGNATURE)
    made = client_files(content, signature)
    for name, data in made.items():
        if not os.path.exists(path := output / name):
            continue
        there = strict_json.read_bytes(path)
        if there != data and not is_ours(name, there):
            raise InvalidParameter(
                f"--output {output}: the {name} there is not one that this command would replace; "
                "move it away, or give another folder"
            )
    output.mkdir(parents=True, exist_ok=True)
    for name, data in made.items():
        write_atomically(output / name, data)
    if as_json:
        sizes = {name: len(made[name]) for name in made}
        print_json({"problem": problem, "folder": str(output), "files": sizes})
    else:
        facts = [(name, f"{len(data):,} bytes in {output}") for name, data in made.items()]
        if signature is not None:
            why = f"the example checks the hash alone; give {SIGNATURE} and your public key to load"
            facts.append(("signature", why))
        show(facts)
