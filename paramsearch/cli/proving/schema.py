"""``paramsearch schema``: the JSON Schema of the parameter file."""

from __future__ import annotations

from paramsearch.cli.output import write


def schema() -> None:
    """Print the JSON Schema of the parameter file."""
    from importlib import resources

    file = resources.files("paramsearch").joinpath("parameters", "parameter_file.schema.json")
    write(file.read_text("utf-8"))
