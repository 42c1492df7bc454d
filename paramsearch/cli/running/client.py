"""``paramsearch client``: the randomizer in another language."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from accounting.base.errors import InvalidParameter
from accounting.base.validation import one_of
from paramsearch.cli import options
from paramsearch.cli.output import check_folder, print_json, show

_LANGUAGES = ("javascript",)


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
    from paramsearch.deploy import Randomizer
    from paramsearch.deploy.javascript import client_files
    from paramsearch.files import write_atomically
    from paramsearch.parameters.parameter_file import from_json

    one_of("language", language, _LANGUAGES)
    check_folder(output)
    content = None
    if file is not None:
        content = strict_json.read_bytes(file)
        text = strict_json.decoded(content, source=str(file))
        Randomizer(from_json(strict_json.parse(text, source=str(file)), source=str(file)))
    made = client_files(content)
    for name in made.keys() - client_files().keys():  # an example must not replace somebody's page
        path = output / name
        if path.exists() and path.read_bytes() != made[name]:
            raise InvalidParameter(
                f"--output {output}: there is another {name}; give a folder for the example alone, "
                "or leave FILE out for the module"
            )
    output.mkdir(parents=True, exist_ok=True)
    for name, data in made.items():
        write_atomically(output / name, data)
    if as_json:
        print_json({"folder": str(output), "files": {name: len(made[name]) for name in made}})
    else:
        show((name, f"{len(data):,} bytes in {output}") for name, data in made.items())
