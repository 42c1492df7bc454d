"""The JSON Schema of the parameter file."""

from __future__ import annotations

import json
from typing import Any

from accounting.model.change import SUBSTITUTION, ZERO_OUT, Adjacency
from accounting.model.laws.noise import BURST
from paramsearch.parameters.parameter_file import (
    ABSENCES,
    INTEGERS,
    NAMED_LAWS,
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
    named = {"type": "object", "required": ["law"]}
    burst = {**named, "properties": {"law": {"const": BURST}}}
    unnamed = {"properties": {"atoms": {"items": {"not": named}}}}
    document["allOf"] = [
        *(_if_format(name, {"allOf": [then, unnamed]}) for name, then in of_format.items()),
        _if_format(NAMED_LAWS, {"properties": {"atoms": {"items": named, "contains": burst}}}),
    ]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:{NAMED_LAWS.replace('/', ':')}",
        **document,
    }


def _if_format(name: str, then: dict[str, Any]) -> dict[str, Any]:
    """Return the rule for the files of one format."""
    return {"if": {"properties": {"format": {"const": name}}}, "then": then}
