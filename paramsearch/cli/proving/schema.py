"""``paramsearch schema``: the JSON Schema of the parameter file."""

from __future__ import annotations

from paramsearch.cli import options
from paramsearch.cli.output import write


def schema(as_json: options.AsJson = False) -> None:
    """Print the JSON Schema of the parameter file, which is JSON with and without --json."""
    from importlib import resources

    file = resources.files("paramsearch").joinpath("parameters", "parameter_file.schema.json")
    write(file.read_text("utf-8"))
