"""Looking up in a table, the audit of a table, and the table that comes with the package."""

from __future__ import annotations

import json
import math
import shutil
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from documented import run_examples
from hypothesis import given
from hypothesis import strategies as st
from program import run

from accounting import InvalidConfiguration, InvalidParameter
from paramsearch import Table, audit, load, save
from paramsearch.cli.tables.audit_table import costing_more
from paramsearch.filling.folder import Folder
from paramsearch.filling.grid import Grid
from paramsearch.parameters.assembly import consistent, for_users
from paramsearch.tables import index
from paramsearch.tables.cell import Cell
from paramsearch.tables.lookup import Found, shipped_folder
from paramsearch.tables.query import Query

SOME = ("1-1-1e-06-0.9", "2-1-1e-06-0.9", "2-0.5-1e-08-0.9", "5-1-1e-06-0.9", "5-1-1e-06-0.5",
        "5-2-1e-08-0.9", "10-1-1e-06-0.9", "20-1-1e-06-0.9", "20-1-1e-06-0.1")  # fmt: skip


def table_of(place: Path, names: tuple[str, ...] = SOME) -> Path:
    (place / "files").mkdir(parents=True)
    for name in names:
        shutil.copy(shipped_folder() / "files" / f"{name}.json", place / "files")
    folder = Folder(place, Grid(eps=(1.0,), delta=(1e-6,), max_value=(1,)))
    folder.write_index()
    folder.close()
    return place


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return table_of(tmp_path_factory.mktemp("some") / "table")


@pytest.fixture(scope="module")
def some(place: Path) -> Table:
    return Table.open(place)


@given(
    n=st.integers(1, 10**12),
    eps=st.floats(0.3, 3),
    log_delta=st.floats(-21, -10),
    max_value=st.integers(1, 22),
    max_rmse=st.none() | st.floats(1, 200),
    objective=st.sampled_from(["messages", "bits"]),
)
def test_the_cheapest_of_all_that_serve(
    some: Table, n: int, eps: float, log_delta: float, max_value: int, max_rmse: float | None,
    objective: str,
) -> None:  # fmt: skip
    delta = 2.718281828459045**log_delta

    def cost(row: index.Row) -> float:
        bits = row.bits_per_message * (1 + row.noise_messages / n)
        return row.noise_messages if objective == "messages" else bits

    serving = [
        row
        for row in some.rows
        if row.eps <= eps
        and row.delta <= delta
        and row.max_value >= max_value
        and (max_rmse is None or row.rmse <= max_rmse)
    ]
    asked = {
        "n": n, "eps": eps, "delta": delta, "max_value": max_value, "max_rmse": max_rmse,
        "objective": objective,
    }  # fmt: skip
    if not serving:
        central = 1 / (math.sqrt(2) * math.sinh(eps / (2 * max_value)))
        possible = max_rmse is None or max_rmse > 1.01 * central
        remedy = "paramsearch generate" if possible else "(paramsearch generate|is out of reach)"
        if max_rmse is not None and max_rmse < central:
            remedy = "none can be generated: max_rmse = .* is out of reach"
        with pytest.raises(InvalidParameter, match=remedy):
            some.lookup(Query(**asked))  # type: ignore[arg-type]  # hypothesis draws the objective
        return
    found = some.lookup(Query(**asked))  # type: ignore[arg-type]  # as above
    if max_rmse is None:  # about 1.11 times the central error, or the least that there is
        central = 1 / (math.sqrt(2) * math.sinh(eps / (2 * max_value)))
        limit = max(1.15 * central, min(row.rmse for row in serving)) * (1 + 1e-12)
        usual = [row for row in serving if row.rmse <= limit]
        assert cost(found.row) == min(map(cost, usual))
        assert found.row.rmse <= limit
        assert all(cost(row) <= cost(found.row) for row in found.cheaper)
        assert all(row.rmse > found.row.rmse for row in found.cheaper)
    else:
        assert cost(found.row) == min(map(cost, serving))
        assert all(row.rmse > max_rmse for row in found.cheaper)
    assert found.row.n == n
    errors = [found.row.rmse, *(row.rmse for row in found.others)]
    assert errors == sorted(errors, reverse=True)
    assert {row.file for row in found.others} <= {row.file for row in serving}
    file = found.file
    assert file.certificate is not None
    problem = file.problem
    assert (problem.n, problem.releases, problem.honest) == (n, 1, 1.0)
    assert problem.eps <= eps
    assert problem.delta <= delta
    assert problem.max_value >= max_value
    consistent(file)


def test_the_same_noise_and_certificate_for_another_number_of_users(place: Path) -> None:
    file = load(place / "files" / "5-1-1e-06-0.9.json")
    other = for_users(file, 123)
    assert other.atoms == file.atoms
    assert other.central == file.central
    assert other.certificate == file.certificate
    assert other.cost.messages_per_user == pytest.approx(1 + file.cost.noise_messages / 123)
    assert audit(other).verdict == "certified"
    assert audit(other).confirmed
    assert other.mechanism() == file.mechanism()
    with pytest.raises(InvalidParameter, match="n = 0"):
        for_users(file, 0)


def test_an_exact_request_and_a_stricter_file(some: Table) -> None:
    exact = some.lookup(Query(n=1000, eps=1.0, delta=1e-6, max_value=2, max_rmse=4))
    assert exact.exact
    assert exact.row.file == "files/2-1-1e-06-0.9.json"
    stricter = some.lookup(Query(n=1000, eps=1.9, delta=2e-6, max_value=4, max_rmse=8))
    assert not stricter.exact
    assert stricter.row.file == "files/5-1-1e-06-0.9.json"
    cheap = some.lookup(Query(n=1000, eps=1.9, delta=2e-6, max_value=4, max_error_ratio=6))
    assert cheap.row.file == "files/5-1-1e-06-0.5.json"
    assert [row.file for row in cheap.others][:1] == ["files/5-1-1e-06-0.9.json"]
    wanted = "paramsearch generate --n 1000 --eps 1.9 --delta 2e-06 --max-value 4"
    assert stricter.command() == f"{wanted} --max-rmse 8"
    assert cheap.command() == f"{wanted} --max-error-ratio 6"
    bits = some.lookup(Query(n=1000, eps=1.9, delta=2e-6, max_value=4, objective="bits"))
    assert str(bits.command()).endswith("--objective bits")
    assert some.lookup(Query(n=1000, eps=500.0, delta=2e-6, max_value=4)).command() is None


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"max_value": 21}, "largest max_value among the remaining files is 20"),
        ({"eps": 0.25}, "smallest eps among the remaining files is 0.5"),
        ({"delta": 1e-9}, "smallest delta among the remaining files is 1e-08"),
        ({"max_rmse": 0.5}, "smallest RMSE among the remaining files is "),
        ({"n": 0}, "n = 0"),
        ({"n": 1.5}, "n = 1.5"),
        ({"eps": -1.0}, "eps = -1"),
        ({"eps": float("nan")}, "eps"),
        ({"delta": 1.0}, "delta = 1.0"),
        ({"max_value": 0}, "max_value = 0"),
        ({"max_rmse": 0.0}, "max_rmse = 0"),
        ({"objective": "beauty"}, "objective = 'beauty'"),
    ],
)
def test_requests_that_cannot_be_served(some: Table, change: dict[str, object], word: str) -> None:
    asked = {"n": 1000, "eps": 1.0, "delta": 1e-6, "max_value": 2, **change}
    with pytest.raises(InvalidParameter, match=word):
        some.lookup(Query(**asked))  # type: ignore[arg-type]  # wrong on purpose


def test_an_index_that_lies_is_found_out(place: Path, tmp_path: Path) -> None:
    def lookup(rows: list[index.Row]) -> Found:
        (tmp_path / "t").mkdir(exist_ok=True)
        index.write(tmp_path / "t" / "index.parquet", rows)
        shutil.copytree(place / "files", tmp_path / "t" / "files", dirs_exist_ok=True)
        return Table.open(tmp_path / "t").lookup(Query(n=10, eps=1.0, delta=1e-6, max_value=2))

    name = "files/2-1-1e-06-0.9.json"
    (row,) = [row for row in index.read(place / "index.parquet") if row.file == name]
    assert lookup([row]).file.problem.n == 10
    lies: tuple[dict[str, Any], ...] = (
        {"file": "files/1-1-1e-06-0.9.json"},
        {"sha256": "0" * 64},
        {"file": "files/none.json"},
        {"eps": 0.01},
        {"delta": 1e-12},
        {"delta_upper": 1e-13},
        {"noise_messages": 1.0},
        {"rmse": 0.001},
        {"max_value": 3},
        {"bits_per_message": 1},
    )
    for lie in lies:
        with pytest.raises((InvalidConfiguration, OSError)):
            _ = lookup([replace(row, **lie)]).file
        if "none" not in str(lie):
            told = run("audit-table", tmp_path / "t", "--json") if "eps" in lie else None
            assert told is None or json.loads(told.stdout)["verdicts"] == {"changed": 1}
    weak = load(place / "files" / "1-1-1e-06-0.9.json")
    false = replace(row, file="files/1-1-1e-06-0.9.json", sha256=weak.sha256)
    with pytest.raises(InvalidConfiguration, match="is not what the index says"):
        _ = lookup([false]).file
    impossible: tuple[dict[str, Any], ...] = (
        {"file": "../files/x.json"},
        {"file": "/files/x.json"},
        {"file": "files/x\0.json"},
        {"eps": float("nan")},
        {"eps": None},
        {"rmse": -1.0},
        {"max_value": 0},
    )
    for lie in impossible:
        with pytest.raises(InvalidConfiguration, match="an impossible row"):
            lookup([replace(row, **lie)])


def test_only_files_of_integers_for_one_release(place: Path) -> None:
    name = "files/5-1-1e-06-0.9.json"
    file = load(place / name)
    assert index.row_of(file, name=name) is not None
    assert index.row_of(file, name="files/5-1-1e-06-0.5.json") is None
    changes: tuple[dict[str, Any], ...] = ({"releases": 2}, {"honest": 0.5})
    for change in changes:
        problem = file.problem.model_copy(update=change)
        assert index.row_of(file.model_copy(update={"problem": problem}), name=name) is None
    assert index.row_of(file.model_copy(update={"certificate": None}), name=name) is None


def test_no_table(tmp_path: Path) -> None:
    with pytest.raises(InvalidConfiguration, match="is no table"):
        Table.open(tmp_path)
    (tmp_path / "index.parquet").write_bytes(b"PAR1 not really")
    with pytest.raises(InvalidConfiguration, match="cannot be read"):
        Table.open(tmp_path)
    index.write(tmp_path / "index.parquet", [])
    assert run("audit-table", tmp_path).returncode == 2
    with pytest.raises(InvalidParameter, match="is empty"):
        Table.open(tmp_path).lookup(Query(n=1, eps=1.0, delta=1e-6, max_value=1))


def test_the_command(place: Path, tmp_path: Path) -> None:
    asked = ("--n", 5000, "--eps", 1.2, "--delta", 1e-6, "--max-value", 5)
    target = tmp_path / "found.json"
    done = run("lookup", place, *asked, "-o", target)
    assert done.returncode == 0, done.stderr
    assert "stricter than asked: eps 1 for 1.2" in done.stdout
    assert "cheaper" in done.stdout
    file = load(target)
    assert file.problem.n == 5000
    assert file.certificate is not None
    again = run("lookup", place, *asked, "--max-rmse", 8, "--json")
    answer = json.loads(again.stdout)
    assert answer["found"]["file"] == "files/5-1-1e-06-0.9.json"
    assert answer["exact"] is False
    assert answer["request"]["max_rmse"] == 8
    assert run("lookup", tmp_path, *asked).returncode == 2
    missed = run("lookup", place, *asked, "--max-rmse", 0.1, "-o", tmp_path / "none.json")
    assert missed.returncode == 2
    assert not (tmp_path / "none.json").exists()
    assert run("lookup", place, *asked, "-o", tmp_path).returncode == 2
    own = run("lookup", *asked, "--json")
    assert own.returncode == 0, own.stderr


@pytest.mark.slow
def test_the_audit_of_a_table(place: Path, tmp_path: Path) -> None:
    done = run("audit-table", place, "--sample", 4, "--json")
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert answer["verdicts"] == {"certified": 4}
    assert run("audit-table", place, "--tier", "x").returncode == 2
    bad = table_of(tmp_path / "bad", SOME[:3])
    path = bad / "files" / "2-1-1e-06-0.9.json"
    data = json.loads(path.read_text())
    data["atoms"][0]["rate"] = data["atoms"][1]["rate"]
    path.write_text(json.dumps(data))
    (bad / "files" / "1-1-1e-06-0.9.json").unlink()
    done = run("audit-table", bad)
    assert done.returncode == 2  # both are no files, and of the third the claim is proved
    assert "2-1-1e-06-0.9.json" in done.stdout
    assert "1 of 3 files audited" in done.stdout


@pytest.mark.parametrize("broken", [b"no JSON", b"\xff", None, "other"])
def test_a_table_with_a_file_that_cannot_be_read_is_bad_input(
    tmp_path: Path, broken: bytes | str | None
) -> None:
    """Was exit code 1, which says that a claim is violated."""
    place = table_of(tmp_path / "t", ("1-1-1e-06-0.9",))
    path = place / "files" / "1-1-1e-06-0.9.json"
    if broken is None:
        path.unlink()
    elif broken == "other":
        path.write_bytes((shipped_folder() / "files" / "2-1-1e-06-0.9.json").read_bytes())
    elif isinstance(broken, bytes):
        path.write_bytes(broken)
    done = run("audit-table", place, "--json")
    assert done.returncode == 2, done.stdout
    assert json.loads(done.stdout)["verdicts"] == {"changed": 1}


def test_a_forged_file_is_violated(tmp_path: Path) -> None:
    """Sealed anew after half of its noise was taken away, and known to the index."""
    from accounting.model.mechanism import ExactCentral, ExactNoise
    from paramsearch.parameters.assembly import assemble

    place = table_of(tmp_path / "forged", ("2-1-1e-06-0.9",))
    path = place / "files" / "2-1-1e-06-0.9.json"
    file = load(path)
    less = [
        (entry.atom, ExactNoise(p=Fraction(entry.p), rate=Fraction(entry.rate) / 2))
        for entry in file.atoms
    ]
    central = ExactCentral(p=Fraction(file.central.p), rate=Fraction(file.central.rate))
    save(assemble(file.problem, central, less, file.provenance, file.certificate), path)
    folder = Folder(place, Grid(eps=(1.0,), delta=(1e-6,), max_value=(1,)))
    folder.write_index()
    folder.close()
    done = run("audit-table", place, "--json")
    assert done.returncode == 1
    assert json.loads(done.stdout)["verdicts"] == {"violated": 1}


# the package's own table


def test_the_shipped_table_is_what_its_index_says() -> None:
    table = Table.open()
    on_disk = {f"files/{path.name}" for path in (shipped_folder() / "files").iterdir()}
    assert {row.file for row in table.rows} == on_disk
    assert sum(path.stat().st_size for path in shipped_folder().rglob("*")) <= 8_000_000
    for row in table.rows:
        file = load(shipped_folder() / row.file)
        consistent(file)
        assert (file.sha256, file.problem.max_value) == (row.sha256, row.max_value)
        assert file.certificate is not None
        assert f"files/{Cell.of(file).name}.json" == row.file
        cell = Cell(row.max_value, row.eps, row.delta, row.central_fraction, row.objective)
        assert cell == Cell.of(file)
        for name in ("noise_messages", "bits_per_message"):
            assert getattr(file.cost, name) == getattr(row, name)


def test_the_shipped_table_has_what_the_readme_says() -> None:
    grid = Grid.read(shipped_folder() / "grid.toml")
    rows = {row.file: row for row in Table.open().rows}
    for cell in grid.cells:
        if f"files/{cell.name}.json" in rows or cell.max_value == 100:
            continue
        # only a file whose messages are the shortest possible ones has no second one for bits
        twin = rows[f"files/{cell.for_messages.name}.json"]
        assert cell.objective == "bits"
        assert twin.bits_per_message == math.ceil(math.log2(cell.max_value + 1))


def test_the_shipped_table_is_monotone() -> None:
    assert list(costing_more(Table.open().rows, 0.02)) == []


def test_a_sample_of_the_shipped_table_is_proved_anew() -> None:
    done = run("audit-table", "--sample", 6, "--seed", 7, "--json")
    assert done.returncode == 0, done.stdout
    assert json.loads(done.stdout)["verdicts"] == {"certified": 6}


@pytest.mark.parametrize("public", [Table, Query, Found])
def test_every_public_class_has_an_example_that_runs(public: type) -> None:
    assert run_examples(public)


def test_what_is_shown_of_a_table_is_two_short_lines() -> None:
    table = Table.open()
    found = table.lookup(Query(n=1000, eps=1.0, delta=1e-6, max_value=5))
    first, second = repr(table).split("\n")
    assert first == f"<Table {shipped_folder()}: {len(table.rows):,} files"
    assert second.startswith(" eps 0.1 to 4, delta 1e-10 to 0.0001, max_value 1 to ")
    assert [len(line) < 120 for line in repr(found).split("\n")] == [True, True]


@pytest.mark.parametrize("other", [{"releases": 2}, {"honest": 0.5}, {"dimension": 3}])
def test_a_table_serves_no_other_kind_of_problem(other: dict[str, float]) -> None:
    with pytest.raises(InvalidParameter, match=next(iter(other))):
        Query(n=1000, eps=1.0, delta=1e-6, max_value=5, **other)  # type: ignore[arg-type]  # one of them


def test_no_error_bound_means_the_usual_error() -> None:
    """Not ten times the central error for a few messages less."""
    found = Table.open().lookup(Query(n=10**6, eps=1.0, delta=1e-6, max_value=5))
    assert found.row.file == "files/5-1-1e-06-0.9.json"
    assert 1.1 < found.error_ratio < 1.12
    assert found.cheaper[0].noise_messages < found.row.noise_messages
    done = run("lookup", "--n", "1e6", "--eps", "1", "--delta", "1e-6", "--max-value", "5")
    assert "1.111 times the central one at eps = 1" in done.stdout
    assert "cheaper" in done.stdout


def test_an_error_in_units_of_the_central_one() -> None:
    table, problem = Table.open(), {"n": 10**6, "eps": 1.0, "delta": 1e-6, "max_value": 5}
    loose = table.lookup(Query(**problem, max_error_ratio=2.5))  # type: ignore[arg-type]  # mixed
    assert loose.error_ratio <= 2.5
    assert loose.row.file == "files/5-1-1e-06-0.5.json"
    with pytest.raises(InvalidParameter, match=r"--max-error-ratio 1\.01"):
        table.lookup(Query(**problem, max_error_ratio=1.01))  # type: ignore[arg-type]  # mixed
    for wrong in (1.0, 0.5, float("nan"), float("inf"), -3.0):
        with pytest.raises(InvalidParameter, match="max_error_ratio"):
            Query(**problem, max_error_ratio=wrong)  # type: ignore[arg-type]  # mixed
    with pytest.raises(InvalidParameter, match="not both"):
        Query(**problem, max_error_ratio=2.0, max_rmse=9.0)  # type: ignore[arg-type]  # mixed
