"""Grids, and filling a table: by one run or several, killed and resumed."""

from __future__ import annotations

import json
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from filled import SMALL, Here, contents, copied, folder_of, grid_file
from program import command, run

from accounting import InvalidConfiguration, InvalidParameter
from paramsearch import Query, Table, audit, load
from paramsearch.filling.filler import Filler
from paramsearch.filling.grid import Grid
from paramsearch.tables import index
from paramsearch.tables.cell import Cell, harder_neighbors

# the grid


def test_every_cell_starts_from_a_neighbour_that_comes_before_it() -> None:
    grid = Grid(eps=(4.0, 0.1, 1.0, 2.0), delta=(1e-8, 1e-6), max_value=(5, 2))
    assert len(grid.cells) == len(set(grid.cells)) == 16
    seen: set[Cell] = set()
    roots = []
    for cell in grid.cells:
        start = grid.parent(cell)
        if start is None:
            roots.append(cell)
        else:
            assert start in seen
            assert (start.eps == cell.eps) != (start.delta == cell.delta)
        seen.add(cell)
    assert roots == [Cell(5, 1.0, 1e-6, 0.9), Cell(2, 1.0, 1e-6, 0.9)]
    assert grid.parent(Cell(5, 4.0, 1e-8, 0.9)) == Cell(5, 4.0, 1e-6, 0.9)
    assert grid.parent(Cell(5, 0.1, 1e-6, 0.9)) == Cell(5, 1.0, 1e-6, 0.9)
    assert Cell(5, 1.0, 1e-6, 0.9).name == "5-1-1e-06-0.9"


def test_the_next_harder_cells() -> None:
    cells = [Cell(k, eps, d, 0.9) for k in (1, 5) for eps in (1.0, 2.0) for d in (1e-6, 1e-9)]
    found = set(harder_neighbors(cells))
    assert len(found) == 12  # the edges of a cube
    assert (Cell(1, 2.0, 1e-6, 0.9), Cell(1, 1.0, 1e-6, 0.9)) in found
    assert (Cell(1, 2.0, 1e-6, 0.9), Cell(1, 2.0, 1e-9, 0.9)) in found
    assert (Cell(1, 2.0, 1e-6, 0.9), Cell(5, 2.0, 1e-6, 0.9)) in found


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("eps = [1]", "delta"),
        (SMALL + "colour = 3", "colour"),
        (SMALL.replace("0.5", "-0.5"), "eps = -0.5"),
        (SMALL.replace("0.5", "1.0"), "listed twice"),
        (SMALL.replace("0.5", "'x'"), "eps"),
        (SMALL.replace("0.5", "nan"), "eps"),
        (SMALL.replace("[1, 2]", "[0]"), "max_value = 0"),
        (SMALL.replace("[1, 2]", "[]"), "max_value"),
        (SMALL.replace("[1, 2]", "[1.5]"), "max_value"),
        (SMALL + "central_fraction = [1.0]", "central_fraction"),
        (SMALL + "tier = 'x'", "tier"),
        (SMALL.replace("tries = 2", "tries = 0"), "tries"),
        ("eps = [", "TOML"),
        ("eps = 2020-01-01", "eps"),
        (SMALL.replace("[1, 2]", str(list(range(1, 100_000)))), "cells"),
    ],
)
def test_a_bad_grid_is_refused_before_anything_is_done(
    tmp_path: Path, text: str, word: str
) -> None:
    with pytest.raises((InvalidConfiguration, InvalidParameter), match=word):
        Grid.read(grid_file(tmp_path, text))


def test_bad_usage(tmp_path: Path) -> None:
    path = grid_file(tmp_path)
    for arguments in (
        (tmp_path / "none.toml", "-o", tmp_path / "t"),
        (path, "-o", path),
        (path, "-o", tmp_path / "t", "--workers", "0"),
        (path, "-o", tmp_path / "t", "--workers", "2", "--scheduler", "tcp://127.0.0.1:1"),
        (path, "-o", tmp_path / "t", "--scheduler", "nonsense://"),
    ):
        done = run("table", *arguments)
        assert done.returncode == 2, arguments
        assert "Traceback" not in done.stderr
        assert not (tmp_path / "t").exists()


# what is made


def test_the_files_are_certified_and_the_index_says_what_they_say(table: Path) -> None:
    rows = index.read(table / "index.parquet")
    assert len(rows) == 24  # 12 problems, 2 numbers of users
    assert {row.n for row in rows} == {1000, 1_000_000}
    for row in rows:
        file = load(table / row.file)
        assert file.certificate is not None
        assert (row.sha256, row.eps, row.delta) == (
            file.sha256,
            file.problem.eps,
            file.problem.delta,
        )
        assert row.central_fraction == 0.9
        assert row.delta_upper == file.certificate.delta_upper <= row.delta
        assert row.messages_per_user == 1 + file.cost.noise_messages / row.n
        assert row.bits_per_user == row.bits_per_message * row.messages_per_user
        assert row.rmse == file.error.rmse
        assert row.seconds is not None
        assert row.seconds > 0
        if row.n == 1000:
            assert audit(file, tier="fast").verdict == "certified"


def test_a_second_run_does_nothing(table: Path, tmp_path: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in (table / "files").iterdir()}
    done = run("table", grid_file(tmp_path), "-o", table, "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["made"] == 0
    assert before == {path: path.stat().st_mtime_ns for path in (table / "files").iterdir()}


BOTH = """
eps = [1, 2]
delta = [1e-6]
max_value = [2, 7]
tries = 1
objective = ["bits", "messages"]
"""


@pytest.mark.slow
def test_a_table_has_files_for_both_objectives(tmp_path: Path) -> None:
    """But for problems whose file with the fewest messages has the shortest ones as well."""
    with folder_of(tmp_path / "t", BOTH) as folder:
        summary = Filler(folder, Here()).run()
        assert summary.done == summary.cells == 8
        names = {path.stem for path in (tmp_path / "t" / "files").iterdir()}
    problems = {f"{top}-{eps}-1e-06-0.9" for top in (2, 7) for eps in (1, 2)}
    assert names == problems | {"7-1-1e-06-0.9-bits", "7-2-1e-06-0.9-bits"}
    table = Table.open(tmp_path / "t")
    asked = {"n": 10**6, "eps": 1.0, "delta": 1e-6}
    for top in (2, 7):
        messages = table.lookup(Query(**asked, max_value=top)).row
        bits = table.lookup(Query(**asked, max_value=top, objective="bits")).row
        assert messages.noise_messages <= bits.noise_messages
        assert bits.bits_per_user <= messages.bits_per_user
        assert bits.bits_per_message == {2: 2, 7: 3}[top]
    started = [load(tmp_path / "t" / "files" / f"7-{eps}-1e-06-0.9-bits.json") for eps in (1, 2)]
    assert started[1].provenance.settings["start"] == started[0].sha256
    again = run("table", grid_file(tmp_path, BOTH), "-o", tmp_path / "t", "--json")
    assert json.loads(again.stdout)["made"] == 0
    assert run("audit-table", tmp_path / "t").returncode == 0


def test_files_of_another_version_are_made_again(table: Path, tmp_path: Path) -> None:
    """They serve until then; the finished table does not depend on them."""
    place = copied(table, tmp_path / "t")
    text = SMALL.replace("[0.5, 1, 2]", "[1]") + 'version = "2"'
    with folder_of(place, text) as folder:
        assert len(folder.outdated) == 12
        assert not any(map(folder.done, folder.grid.cells))
        assert all(folder.row(cell) is not None for cell in folder.grid.cells)
        summary = Filler(folder, Here()).run()
        assert (summary.done, summary.made) == (4, 4)
    again = Table.open(place)
    assert len(again.rows) == 12
    assert again.version is None  # the others are of no version
    new = [row for row in again.rows if row.version == "2"]
    assert {row.eps for row in new} == {1.0}
    assert len(new) == 4
    asked = Query(n=1000, eps=1.0, delta=1e-6, max_value=2)
    assert again.lookup(asked).file.provenance.settings["table_version"] == "2"
    with folder_of(tmp_path / "fresh", text) as folder:
        Filler(folder, Here()).run()
        assert Table.open(tmp_path / "fresh").version == "2"
    assert contents(tmp_path / "fresh").items() <= contents(place).items()


def test_an_index_without_objectives_is_for_messages(table: Path, tmp_path: Path) -> None:
    path = tmp_path / index.INDEX
    path.write_bytes((table / index.INDEX).read_bytes())
    known = index.read(path)
    pq.write_table(pq.read_table(path).drop_columns(["objective", "version"]), path)
    assert index.read(path) == known
    assert {row.objective for row in known} == {"messages"}


def test_files_do_not_depend_on_the_pool(table: Path, tmp_path: Path) -> None:
    with folder_of(tmp_path / "t") as folder:
        assert Filler(folder, Here()).run().done == 12
    assert contents(tmp_path / "t") == contents(table)


def test_killed_and_resumed(table: Path, tmp_path: Path) -> None:
    """Whatever was finished when the run was killed is not made again, and nothing is lost."""
    place = tmp_path / "t"
    arguments = command("table", grid_file(tmp_path), "-o", place, "--workers", "1")
    for wanted in (2, 5):
        running = subprocess.Popen(arguments, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        while len(list(place.glob("files/*.json"))) < wanted:
            assert running.poll() is None
            time.sleep(0.02)
        running.kill()
        running.wait()
    first = {path.name: path.stat().st_mtime_ns for path in (place / "files").glob("*.json")}
    for stray in (place / "files").iterdir():
        assert stray.suffix == ".json" or stray.name.startswith("tmp")
    (place / "state.sqlite-journal").write_bytes(b"cut off in the middle")
    done = run("table", tmp_path / "grid.toml", "-o", place, "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["made"] == 12 - len(first)
    for name, changed in first.items():
        assert (place / "files" / name).stat().st_mtime_ns == changed
    found = {name: text for name, text in contents(place).items() if name.endswith(".json")}
    assert found == contents(table)
    assert len(index.read(place / "index.parquet")) == 24


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.skipif(not Path("/proc").exists(), reason="asks the system for child processes")
@pytest.mark.parametrize(
    "how", [signal.SIGKILL, pytest.param(signal.SIGINT, marks=pytest.mark.slow)]
)
def test_workers_end_with_their_run(tmp_path: Path, how: signal.Signals) -> None:
    text = SMALL.replace("[1, 2]", "[12]").replace("tries = 2", "tries = 500")
    running = subprocess.Popen(
        command("table", grid_file(tmp_path, text), "-o", tmp_path / "t"),
        stderr=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
    )
    children: list[int] = []
    while len(children) < 2:  # a worker, and the tracker of resources
        assert running.poll() is None
        time.sleep(0.1)
        for task in Path(f"/proc/{running.pid}/task").iterdir():
            children = [int(pid) for pid in (task / "children").read_text().split()] or children
    time.sleep(1.5)
    running.send_signal(how)
    assert running.wait(30) == (130 if how == signal.SIGINT else -9)
    patience = time.monotonic() + 20
    while any(map(alive, children)) and time.monotonic() < patience:
        time.sleep(0.1)
    assert not any(map(alive, children))


def test_two_runs_share_a_folder(table: Path, tmp_path: Path) -> None:
    place = tmp_path / "t"
    arguments = command("table", grid_file(tmp_path), "-o", place, "--workers", "1", "--json")
    both = [
        subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    made = []
    for one in both:
        out, errors = one.communicate(timeout=300)
        assert one.returncode == 0, errors
        made.append(json.loads(out)["made"])
    assert sum(made) == 12
    assert contents(place) == contents(table)
    assert len(index.read(place / "index.parquet")) == 24
    with closing(sqlite3.connect(place / "state.sqlite")) as database:
        cells = database.execute("SELECT cell FROM ended").fetchall()
    assert len(set(cells)) == len(cells) == 12


def test_claims_exclude_other_processes(tmp_path: Path) -> None:
    asking = (
        "import sys; from pathlib import Path; from paramsearch.filling.folder import Folder;"
        "from paramsearch.filling.grid import Grid; path = Path(sys.argv[1]);"
        "folder = Folder(path, Grid.read(path / 'grid.toml'));"
        "print([folder.claim(cell) for cell in folder.grid.cells[:2]])"
    )
    with folder_of(tmp_path / "t") as folder:
        assert folder.claim(folder.grid.cells[0])
        arguments = [sys.executable, "-c", asking, str(folder.path)]
        assert subprocess.check_output(arguments, text=True) == "[False, True]\n"
        folder.release(folder.grid.cells[0])
        assert subprocess.check_output(arguments, text=True) == "[True, True]\n"
