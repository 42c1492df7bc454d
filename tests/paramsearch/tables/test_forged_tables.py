"""Tables that somebody altered: what lookup hands out is consistent, or it is an error."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from program import run

from accounting import InvalidConfiguration
from paramsearch import Query, Table, load, save
from paramsearch.parameters.parameter_file import ParameterFile, sealed
from paramsearch.tables import index
from paramsearch.tables.lookup import shipped_folder

NAME = "5-1-1e-06-0.9.json"
ASKED = Query(n=10**6, eps=1.0, delta=1e-6, max_value=5)


def resealed(file: ParameterFile, **changes: object) -> ParameterFile:
    """The file with other sections and a hash that fits."""
    sections = {name: getattr(file, name) for name in type(file).model_fields}
    for name in ("format", "sha256"):
        sections.pop(name, None)
    return sealed(**{**sections, **changes})


def table_of(file: ParameterFile, folder: Path) -> Path:
    """A table whose index fits its only file, whatever that says."""
    (folder / "files").mkdir(parents=True)
    save(file, folder / "files" / NAME)
    row = index.row_of(file, name=f"files/{NAME}")
    assert row is not None
    index.write(folder / index.INDEX, [row])
    return folder


def test_a_file_with_less_noise_than_it_says_is_not_handed_out(tmp_path: Path) -> None:
    file = load(shipped_folder() / "files" / NAME)
    less = tuple(
        entry.model_copy(update={"rate": f"{rate.numerator}/{rate.denominator}"})
        for entry in file.atoms
        for rate in [Fraction(entry.rate) / 1000]
    )
    table = table_of(resealed(file, atoms=less), tmp_path / "table")
    with pytest.raises(InvalidConfiguration):
        _ = Table.open(table).lookup(ASKED).file
    out = tmp_path / "out.json"
    done = run(
        *("lookup", table, "--n", "1e6", "--eps", "1", "--delta", "1e-6"),
        *("--max-value", "5", "-o", out),
    )
    assert done.returncode == 2
    assert not out.exists()
    assert "certified" not in done.stdout


def test_a_file_with_a_false_error_is_not_handed_out(tmp_path: Path) -> None:
    file = load(shipped_folder() / "files" / NAME)
    error = file.error.model_copy(update={"rmse": 1.0, "mse": 1.0})
    table = table_of(resealed(file, error=error), tmp_path / "table")
    with pytest.raises(InvalidConfiguration):
        _ = Table.open(table).lookup(ASKED).file


def test_the_file_itself_is_handed_out(tmp_path: Path) -> None:
    file = load(shipped_folder() / "files" / NAME)
    table = table_of(resealed(file), tmp_path / "table")
    assert Table.open(table).lookup(ASKED).file.sha256 == file.sha256


def test_an_index_with_a_column_twice(tmp_path: Path) -> None:
    path = tmp_path / index.INDEX
    known = pq.read_table(shipped_folder() / index.INDEX)
    pq.write_table(known.append_column("eps", pa.array([1.0] * known.num_rows)), path)
    with pytest.raises(InvalidConfiguration, match="must have the columns"):
        index.read(path)
