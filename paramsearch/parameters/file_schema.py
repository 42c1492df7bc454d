"""The JSON Schema of the parameter file."""

from __future__ import annotations

import json
from typing import Any

from accounting.model.change import SUBSTITUTION, ZERO_OUT, Adjacency
from paramsearch.parameters.parameter_file import (
    ABSENCES,
    INTEGERS,
    SEQUENCES,
    VECTORS,
    ParameterFile,
)


def schema() -> dict[str, Any]:
    """The JSON Schema of all formats of the file (2020-12).

    Parts are published under their titles, which do not change with the names of classes.
    """
    text = json.dumps(ParameterFile.model_json_schema())
    for name, part in json.loads(text)["$defs"].items():
        text = text.replace(f'"#/$defs/{name}"', f'"#/$defs/{part["title"]}"')
    document = json.loads(text)
    parts = {part["title"]: part for part in document["$defs"].values()}
    document["$defs"] = dict(sorted(parts.items()))

    def requires(part: str, field: str) -> dict[str, Any]:
        return {"properties": {part: {"type": "object", "required": [field]}}}

    def adjacent(by: Adjacency) -> dict[str, Any]:
        return {"properties": {"problem": {"properties": {"adjacency": {"const": by}}}}}

    dimension, changes = requires("problem", "dimension"), requires("problem", "changes")
    substitution = adjacent(SUBSTITUTION)
    of_format = {
        INTEGERS: {"allOf": [substitution, {"not": {"anyOf": [dimension, changes]}}]},
        VECTORS: {"allOf": [substitution, dimension, {"not": changes}]},
        SEQUENCES: {"allOf": [substitution, changes]},
        ABSENCES: adjacent(ZERO_OUT),
    }
    document["allOf"] = [
        {"if": {"properties": {"format": {"const": name}}}, "then": then}
        for name, then in of_format.items()
    ]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:{ABSENCES.replace('/', ':')}",
        **document,
    }
