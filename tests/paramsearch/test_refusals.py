"""What a data model refuses is said in the words of this project, with the place and a remedy."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from places import ROOT
from program import run

from accounting import InvalidConfiguration, InvalidParameter
from paramsearch.filling.grid import Grid
from paramsearch.parameters.parameter_file import digest, from_json

SHIPPED = ROOT / "paramsearch" / "data" / "files" / "5-1-1e-06-0.9.json"
FOREIGN = re.compile(
    r"Input should|should (be|have|match)|Field required|Extra inputs|Value error|validation error|"
    "something else|valid (integer|number|string|tuple|dictionary)|[Uu]nable to|model|NoneType"
)
"""Words of a library."""
ODD: tuple[Any, ...] = (None, True, "x", "", 0, -1, 1.5, 10**30, -1e308, [], [1.5], {}, {"x": 1})
GRID = 'eps = [1, 2]\ndelta = [1e-6]\nmax_value = [5]\nversion = "a"\nobjective = "bits"\n'


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of everything in a document; of a list only the first entry."""
    if path:
        yield path
    items = value.items() if isinstance(value, dict) else ()
    items = enumerate(value[:1]) if isinstance(value, list) else items
    for key, item in items:
        yield from places(item, (*path, key))


def test_every_odd_value_of_a_parameter_file() -> None:
    original = json.loads(SHIPPED.read_text())
    refused = 0
    for path in places(original):
        for odd in (..., *ODD):
            document = deepcopy(original)
            holder: Any = document
            for key in path[:-1]:
                holder = holder[key]
            if odd is ...:
                del holder[path[-1]]
            else:
                holder[path[-1]] = odd
            if path != ("sha256",) and odd != 10**30:  # which no hash can be of
                document["sha256"] = digest(document)
            try:
                from_json(document, source="the file")
            except InvalidConfiguration as error:
                refused += 1
                text = str(error)
                assert text.startswith("the file")
                assert not FOREIGN.search(text), (path, odd, text)
    assert refused > 500


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("problem", "eps"), "1", "problem.eps = '1' must be a number; `paramsearch schema`"),
        (("problem", "eps"), -1.0, "problem.eps = -1.0 must be at least 0"),
        (("problem", "n"), 1.5, "problem.n = 1.5 must be a whole number; `paramsearch schema`"),
        (("problem", "adjacency"), "swap", "problem.adjacency = 'swap' must be 'substitution'"),
        (("problem", "nn"), 3, "problem.nn = 3 is unknown here: leave it out, or correct its name"),
        (("problem", "n"), ..., "problem.n is missing: add it; `paramsearch schema` describes"),
        (("certificate", "delta_upper"), 2.0, "certificate.delta_upper = 2.0 must be at most 1"),
        (("atoms",), [], "atoms must have at least 1 entry"),
        (("atoms",), {}, "atoms must be a list, not an object"),
        (("atoms", 0, "p"), "half", "atoms.0.p = 'half' must be a positive fraction"),
        (
            ("atoms", 0, "rate"),
            "1",
            "atoms.0.rate = '1' must be a positive fraction of whole numbers",
        ),
        (("sha256",), "0", "sha256 = '0' must be the 64 hexadecimal digits of a SHA-256"),
    ],
)
def test_a_refusal_names_place_value_rule_and_remedy(
    path: tuple[Any, ...], value: Any, message: str
) -> None:
    document = json.loads(SHIPPED.read_text())
    holder: Any = document
    for key in path[:-1]:
        holder = holder[key]
    if value is ...:
        del holder[path[-1]]
    else:
        holder[path[-1]] = value
    with pytest.raises(InvalidConfiguration, match=re.escape(f"the file: {message}")):
        from_json(document, source="the file")


@pytest.mark.parametrize("name", [*Grid.model_fields, "releases"])
@pytest.mark.parametrize(
    "value", ["-1", "0", "1.5", '"x"', "true", "[]", '["x"]', "[1.5]", "[1, 1]", "{x = 1}", "[nan]"]
)
def test_every_odd_value_of_a_grid(name: str, value: str, tmp_path: Path) -> None:
    path = tmp_path / "grid.toml"
    kept = [line for line in GRID.splitlines() if not line.startswith(f"{name} ")]
    path.write_text("\n".join([*kept, f"{name} = {value}"]))
    cause = ""
    try:
        Grid.read(path)
    except (InvalidConfiguration, InvalidParameter) as error:
        cause = str(error)
    assert not FOREIGN.search(cause), cause


def test_a_grid_that_lacks_a_list_or_has_another(tmp_path: Path) -> None:
    path = tmp_path / "grid.toml"
    fields = f"a grid has {', '.join(Grid.model_fields)}"
    for text, cause in (
        ("delta = [1e-6]\nmax_value = [5]", f"eps is missing: add it; {fields}"),
        (GRID + "releases = 2", f"releases = 2 is unknown here: leave it out, .*; {fields}"),
        (GRID.replace("[5]", "5"), f"max_value = 5 must be a list; {fields}"),
    ):
        path.write_text(text)
        done = run("table", str(path), "-o", str(tmp_path / "table"))
        assert (done.returncode, done.stdout) == (2, "")
        assert re.search(cause, done.stderr), done.stderr
