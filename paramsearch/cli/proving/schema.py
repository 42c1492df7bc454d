"""``paramsearch schema``: the JSON Schema of the parameter file."""

from __future__ import annotations


def schema() -> None:
    """Print the JSON Schema of the parameter file."""
    from importlib import resources

    file = resources.files("paramsearch").joinpath("parameters", "parameter_file.schema.json")
    print(file.read_text("utf-8"), end="")
