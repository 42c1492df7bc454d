"""Lookups never exchange one adjacency for the other silently."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from program import run

from accounting import InvalidConfiguration, InvalidParameter
from paramsearch import Request, Table, generate, save
from paramsearch.explorer.data import page_data
from paramsearch.filling.folder import Folder
from paramsearch.filling.grid import Grid
from paramsearch.tables import index
from paramsearch.tables.cell import Cell
from paramsearch.tables.index import INDEX
from paramsearch.tables.lookup import shipped_folder
from paramsearch.tables.query import Query

ASKED = Query(n=100_000, eps=1.0, delta=1e-6, max_value=2)
GRID = {"eps": (1.0,), "delta": (1e-6,), "max_value": (2,), "tries": 1}


def filled(place: Path, *adjacencies: str) -> Path:
    (place / "files").mkdir(parents=True)
    for adjacency in adjacencies:
        grid = Grid(**{**GRID, "adjacency": adjacency})  # type: ignore[arg-type]
        (cell,) = grid.cells
        save(generate(grid.request(cell)).file, place / "files" / f"{cell.name}.json")
        folder = Folder(place, grid)
        folder.write_index()
        folder.close()
    return place


@pytest.fixture(scope="module")
def zero_out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return filled(tmp_path_factory.mktemp("zero-out") / "table", "zero-out")


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return filled(tmp_path_factory.mktemp("both") / "table", "zero-out", "substitution")


def test_cells_and_grids_name_the_adjacency() -> None:
    cell = Cell(2, 1.0, 1e-6, 0.9, adjacency="zero-out")
    assert cell.name == "2-1-1e-06-0.9-zero-out"
    assert "zero-out" in str(cell)
    assert replace(cell, objective="bits").for_messages == cell
    with pytest.raises(ValueError, match="adjacency"):
        Grid(**{**GRID, "adjacency": "zeroout"})  # type: ignore[arg-type]


def test_substitution_never_gets_a_file_for_zero_out(zero_out: Path, both: Path) -> None:
    with pytest.raises(InvalidParameter, match="all are for zero-out, which does not cover it"):
        Table.open(zero_out).lookup(ASKED)
    found = Table.open(both).lookup(ASKED)
    assert found.file.problem.adjacency == "substitution"
    assert found.exact
    assert all(row.adjacency == "substitution" for row in (*found.others, *found.cheaper))


def test_zero_out_gets_the_cheaper_one(zero_out: Path, both: Path) -> None:
    query = replace(ASKED, adjacency="zero-out")
    found = Table.open(zero_out).lookup(query)
    assert found.exact
    assert found.file.problem.adjacency == "zero-out"
    table = Table.open(both)
    found = table.lookup(query)
    assert found.row.noise_messages == min(row.noise_messages for row in table.rows)
    assert found.exact == (found.file.problem.adjacency == "zero-out")
    shipped = Table.open().lookup(query)  # whose files are for substitution, which covers it
    assert not shipped.exact
    assert shipped.file.problem.adjacency == "substitution"
    assert (shipped.command() or "").endswith("--adjacency zero-out")


def test_a_row_that_lies_about_its_file_is_caught(zero_out: Path, tmp_path: Path) -> None:
    (tmp_path / "files").mkdir()
    for path in (zero_out / "files").iterdir():
        (tmp_path / "files" / path.name).write_bytes(path.read_bytes())
    rows = [replace(row, adjacency="substitution") for row in index.read(zero_out / INDEX)]
    index.write(tmp_path / INDEX, rows)
    with pytest.raises(InvalidConfiguration, match="is not what the index says"):
        _ = Table.open(tmp_path).lookup(ASKED).file
    index.write(tmp_path / INDEX, [replace(row, adjacency="none") for row in rows])  # type: ignore[arg-type]
    with pytest.raises(InvalidConfiguration, match="impossible row"):
        Table.open(tmp_path)


def test_indexes_of_before_are_for_substitution() -> None:
    assert {row.adjacency for row in index.read(shipped_folder() / INDEX)} == {"substitution"}


def test_the_command_says_what_it_found(zero_out: Path) -> None:
    problem = ("--n", 1e5, "--eps", 1, "--delta", 1e-6, "--max-value", 2)
    words = run("lookup", zero_out, *problem, "--adjacency", "zero-out").stdout
    assert "one user's input present or absent (zero-out)" in words
    assert "exactly what was asked for" in words
    answer = json.loads(run("lookup", *problem, "--adjacency", "zero-out", "--json").stdout)
    assert answer["request"]["adjacency"] == "zero-out"
    assert answer["found"]["adjacency"] == "substitution"
    assert not answer["exact"]
    words = run("lookup", *problem, "--adjacency", "zero-out").stdout
    assert "stricter than asked: substitution for zero-out, which it covers" in words
    refused = run("lookup", zero_out, *problem)
    assert refused.returncode == 2
    assert "which does not cover it" in refused.stderr


def test_the_explorer_shows_one_adjacency(zero_out: Path, both: Path) -> None:
    data = page_data(Table.open(zero_out))
    assert data["adjacency"] == "zero-out"
    assert "adjacency" not in data["axes"]
    with pytest.raises(InvalidParameter, match="a page shows one adjacency"):
        page_data(Table.open(both))


def test_a_request_for_zero_out_is_no_more_expensive() -> None:
    for top in (2, 6):
        costs = [
            generate(
                Request(n=1000, eps=1.0, delta=1e-6, max_value=top, tries=4, adjacency=adjacency)  # type: ignore[arg-type]
            ).file.cost.noise_messages
            for adjacency in ("zero-out", "substitution")
        ]
        assert costs[0] <= costs[1] * 1.0005
