"""Grids, filling, repairs, resuming, sharing, and the two back ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from accounting import InvalidConfiguration, InvalidParameter
from paramsearch import Request, audit, generate, load, save
from paramsearch.parameter_file import dumps
from paramsearch.tables import index
from paramsearch.tables.filling import Event, Filling, violations
from paramsearch.tables.folder import Folder
from paramsearch.tables.grid import Cell, Grid, harder
from paramsearch.tables.jobs import Job, Outcome, solve
from paramsearch.tables.pools import LocalPool

SMALL = """eps = [0.5, 1, 2]
delta = [1e-6, 1e-8]
max_value = [1, 2]
tries = 2
n = [1000, 1_000_000]
"""


def grid_file(folder: Path, text: str = SMALL) -> Path:
    path = folder / "grid.toml"
    path.write_text(text)
    return path


def command(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "paramsearch", *map(str, arguments)]


def run(*arguments: object, timeout: float = 300) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(*arguments), capture_output=True, text=True, check=False, timeout=timeout
    )


def contents(table: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (table / "files").iterdir()}


class Here:
    """A pool in this process; ``work`` stands for the search."""

    def __init__(self, work: Callable[[Job], Outcome] = solve, slots: int = 1) -> None:
        self.work, self.size = work, slots
        self.jobs: list[Job] = []
        self.renewed = 0

    def slots(self) -> int:
        return self.size

    def submit(self, _: Any, job: Job) -> Future[Any]:
        self.jobs.append(job)
        future: Future[Any] = Future()
        try:
            future.set_result(self.work(job))
        except BaseException as error:
            future.set_exception(error)
        return future

    def renew(self) -> None:
        self.renewed += 1

    def trouble(self) -> str | None:
        return None

    def close(self) -> None:
        pass


@contextmanager
def folder_of(path: Path, text: str = SMALL) -> Iterator[Folder]:
    path.mkdir(exist_ok=True)
    folder = Folder(path, Grid.read(grid_file(path, text)))
    try:
        yield folder
    finally:
        folder.close()


@pytest.fixture(scope="session")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The small grid, by the command."""
    place = tmp_path_factory.mktemp("table")
    done = run("table", grid_file(place), "-o", place / "t", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["done"] == 12
    return place / "t"


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
    found = set(harder(cells))
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
        (SMALL.replace("[1, 2]", "[0]"), "max value = 0"),
        (SMALL.replace("[1, 2]", "[]"), "max_value"),
        (SMALL.replace("[1, 2]", "[1.5]"), "max_value"),
        (SMALL + "central_fraction = [1.0]", "central fraction"),
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


def test_another_objective_is_noticed(table: Path, tmp_path: Path) -> None:
    place = tmp_path / "t"
    (place / "files").mkdir(parents=True)
    for path in (table / "files").iterdir():
        save(load(path), place / "files" / path.name)
    with folder_of(place, SMALL + 'objective = "bits"') as folder:
        assert folder.otherwise == folder.rows.keys()
    with folder_of(place) as folder:
        assert not folder.otherwise


def test_files_do_not_depend_on_the_pool(table: Path, tmp_path: Path) -> None:
    with folder_of(tmp_path / "t") as folder:
        assert Filling(folder, Here()).run().done == 12
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
    with (place / "journal.jsonl").open("ab") as journal:
        journal.write(b'{"cell": "1-1-1')  # cut off in the middle
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
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
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
    lines = [json.loads(line) for line in (place / "journal.jsonl").read_text().splitlines()]
    assert len({line["cell"] for line in lines}) == len(lines) == 12


def test_claims_exclude_other_processes(tmp_path: Path) -> None:
    asking = (
        "import sys; from pathlib import Path; from paramsearch.tables.folder import Folder;"
        "from paramsearch.tables.grid import Grid; path = Path(sys.argv[1]);"
        "folder = Folder(path, Grid.read(path / 'grid.toml'));"
        "print([folder.claim(cell) for cell in folder.grid.cells[:2]])"
    )
    with folder_of(tmp_path / "t") as folder:
        assert folder.claim(folder.grid.cells[0])
        arguments = [sys.executable, "-c", asking, str(folder.path)]
        assert subprocess.check_output(arguments, text=True) == "[False, True]\n"
        folder.release(folder.grid.cells[0])
        assert subprocess.check_output(arguments, text=True) == "[True, True]\n"


# failures


def fails_at_two(job: Job) -> Outcome:
    if job.request.max_value == 2 and job.start is None:
        return Outcome(None, "Undecided: for a test", 0.1)
    return solve(job)


def test_failures_are_kept_and_tried_again_when_asked(tmp_path: Path, table: Path) -> None:
    events: list[Event] = []
    with folder_of(tmp_path / "t") as folder:
        pool = Here(fails_at_two)
        summary = Filling(folder, pool, report=events.append).run()
        # without a start every other cell is searched for from nothing, and fails here, too
        assert summary.done == 6
        assert set(summary.failures.values()) == {"Undecided: for a test"}
        assert len(summary.failures) == 6
        assert (events[-1].done, events[-1].failed, events[-1].total) == (6, 6, 12)
    with folder_of(tmp_path / "t") as folder:
        pool = Here()
        assert len(Filling(folder, pool).run().failures) == 6
        assert not pool.jobs
        summary = Filling(folder, pool, retry=True).run()
        assert (summary.done, summary.failures) == (12, {})
        assert len(pool.jobs) == 6
    assert contents(tmp_path / "t") == contents(table)


def test_an_out_of_reach_problem_is_a_failure_with_its_reason(tmp_path: Path) -> None:
    text = "eps = [1e-5]\ndelta = [1e-8]\nmax_value = [1]\ncentral_fraction = [0.9999]\ntries = 1"
    done = run("table", grid_file(tmp_path, text), "-o", tmp_path / "t")
    assert done.returncode == 3, done.stderr
    assert "1-1e-05-1e-08-0.9999: Undecided: " in done.stdout
    assert "--retry" in done.stdout
    assert index.read(tmp_path / "t" / "index.parquet") == []


def test_the_guilty_job_is_found(tmp_path: Path) -> None:
    """Two jobs are in the pool when a worker dies: each runs alone, and only one fails."""

    def deadly(job: Job) -> Outcome:
        if (job.request.max_value, job.request.eps, job.request.delta) == (1, 0.5, 1e-6):
            raise BrokenProcessPool("for a test")
        if pool.renewed == 0 and job.start is not None:
            raise BrokenProcessPool("with the other one")
        return solve(job)

    pool = Here(deadly, slots=2)
    with folder_of(tmp_path / "t") as folder:
        summary = Filling(folder, pool).run()
    assert pool.renewed == 3  # twice alone
    assert summary.done == 11
    assert list(summary.failures) == ["1-0.5-1e-06-0.9"]
    assert "killed" in summary.failures["1-0.5-1e-06-0.9"]


def kill_worker(request: Job) -> Outcome:
    if request.request.eps == 0.5 and not os.environ.get("SPARED"):
        os.kill(os.getpid(), signal.SIGKILL)
    return solve(request)


def test_a_local_worker_that_is_killed(tmp_path: Path) -> None:
    pool = LocalPool(1)
    try:
        text = SMALL.replace("[1, 2]", "[1]")
        with folder_of(tmp_path / "t", text) as folder:
            filling = Filling(folder, pool)
            first = pool.submit(kill_worker, Job(folder.grid.request(folder.grid.cells[1])))
            with pytest.raises(BrokenProcessPool):
                first.result()
            with pytest.raises(BrokenProcessPool):
                pool.submit(solve, Job(folder.grid.request(folder.grid.cells[0])))
            pool.renew()
            assert filling.run().done == 6
    finally:
        pool.close()


def test_foreign_and_damaged_files_are_named(table: Path, tmp_path: Path) -> None:
    place = tmp_path / "t"
    grid_file(tmp_path)
    (place / "files").mkdir(parents=True)
    other = load(table / "files" / "1-1-1e-06-0.9.json")
    save(other, place / "files" / "2-1-1e-06-0.9.json")
    done = run("table", tmp_path / "grid.toml", "-o", place)
    assert done.returncode == 2
    assert "2-1-1e-06-0.9.json" in done.stderr
    (place / "files" / "2-1-1e-06-0.9.json").write_text("{}")
    done = run("table", tmp_path / "grid.toml", "-o", place)
    assert done.returncode == 2
    assert "take the file away" in done.stderr


def test_a_stranger_that_comes_during_a_run_is_left_out_of_the_index(tmp_path: Path) -> None:
    def work(job: Job) -> Outcome:
        (tmp_path / "t" / "files" / "notes.json").write_text("{}")
        return solve(job)

    with folder_of(tmp_path / "t") as folder:
        assert Filling(folder, Here(work)).run().done == 12
        assert list(folder.strangers) == ["notes.json"]
    assert len(index.read(tmp_path / "t" / "index.parquet")) == 24


def test_a_file_that_vanishes_during_a_run_is_made_again(tmp_path: Path, table: Path) -> None:
    first = tmp_path / "t" / "files" / "1-1-1e-06-0.9.json"

    def work(job: Job) -> Outcome:
        if job.request.max_value == 2 and job.start is None:
            first.unlink()
        return solve(job)

    pool = Here(work)
    with folder_of(tmp_path / "t") as folder:
        assert Filling(folder, pool).run().done == 12
    assert len(pool.jobs) == 13
    assert contents(tmp_path / "t") == contents(table)


@pytest.mark.parametrize(
    "line",
    [
        b"[1, 2]", b"null", b'"abc"', b"5", b'{"x": 5}', b'{"cell": 5}', b"\xff\x00",
        b"[" * 200_000,
        b'{"cell": "1-1-1e-06-0.9", "start": [1]}',
        b'{"cell": "1-1-1e-06-0.9", "sha256": "x", "seconds": "abc"}',
        b'{"cell": "1-1-1e-06-0.9", "sha256": "x", "seconds": NaN}',
    ],
    ids=lambda line: line[:40].decode("latin1"),
)  # fmt: skip
def test_a_damaged_journal_does_no_harm(table: Path, tmp_path: Path, line: bytes) -> None:
    place = tmp_path / "t"
    (place / "files").mkdir(parents=True)
    for path in (table / "files").iterdir():
        save(load(path), place / "files" / path.name)
    (place / "journal.jsonl").write_bytes(line + b"\n")
    with folder_of(place) as folder:
        pool = Here()
        assert Filling(folder, pool).run().done == 12
        assert not pool.jobs


def test_what_a_worker_sends_is_not_trusted(table: Path, tmp_path: Path) -> None:
    other = (table / "files" / "2-1-1e-06-0.9.json").read_text()

    def work(job: Job) -> Outcome:
        if job.request.max_value == 1:
            return Outcome(other if job.request.eps == 1.0 else "{", None, 1.0)
        return solve(job)

    with folder_of(tmp_path / "t") as folder:
        summary = Filling(folder, Here(work)).run()
    assert summary.done == 6
    assert len(summary.failures) == 6
    assert all("refused" in reason for reason in summary.failures.values())


def test_a_worker_that_dies_with_nothing_to_do(tmp_path: Path) -> None:
    class Breaking(Here):
        def submit(self, work: Any, job: Job) -> Future[Any]:
            if self.renewed == 0 and len(self.jobs) == 3:
                raise BrokenProcessPool("for a test")
            return super().submit(work, job)

    pool = Breaking()
    with folder_of(tmp_path / "t") as folder:
        summary = Filling(folder, pool).run()
    assert (summary.done, summary.failures, pool.renewed) == (12, {}, 1)


def test_a_file_system_without_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import errno
    import fcntl

    def broken(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    with folder_of(tmp_path / "t") as folder:
        monkeypatch.setattr(fcntl, "lockf", broken)
        with pytest.raises(InvalidParameter, match="no locks"):
            Filling(folder, Here()).run()


def test_nobody_reads_the_progress(table: Path, tmp_path: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    arguments = command("table", grid_file(tmp_path), "-o", tmp_path / "t", "--json")
    done = subprocess.run(
        arguments, stdout=subprocess.PIPE, stderr=writer, text=True, check=False, timeout=300
    )
    os.close(writer)
    assert done.returncode == 0
    assert json.loads(done.stdout)["done"] == 12
    closed = subprocess.run(
        ["sh", "-c", 'exec "$@" 2>&-', "sh", *arguments],
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    assert closed.returncode == 0
    assert json.loads(closed.stdout)["made"] == 0


def test_a_run_that_is_told_to_end_leaves_an_index(tmp_path: Path) -> None:
    text = SMALL.replace("[1, 2]", "[1, 12]").replace("tries = 2", "tries = 500")
    running = subprocess.Popen(
        command("table", grid_file(tmp_path, text), "-o", tmp_path / "t", "--workers", "1"),
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
    )
    while len(list((tmp_path / "t").glob("files/1-*.json"))) < 6:
        assert running.poll() is None
        time.sleep(0.05)
    running.send_signal(signal.SIGTERM)
    _, errors = running.communicate(timeout=60)
    assert running.returncode == 130
    assert "Traceback" not in errors
    assert len(index.read(tmp_path / "t" / "index.parquet")) >= 12


# repairs


def spoiled(file: Any, factor: float) -> Any:
    """The same problem with more noise than it needs, certified."""
    from fractions import Fraction

    from accounting.notary import ExactCentral, ExactNoise
    from paramsearch.certification import assemble, certify

    central = ExactCentral(p=Fraction(file.central.p), rate=Fraction(file.central.rate))
    atoms = [
        (
            entry.atom,
            ExactNoise(
                p=Fraction(entry.p),
                rate=Fraction(entry.rate) * Fraction(factor).limit_denominator(99),
            ),
        )
        for entry in file.atoms
    ]
    return certify(assemble(file.problem, central, atoms, file.provenance), tier="fast")


def test_a_poor_optimum_is_repaired_from_the_better_neighbour(table: Path, tmp_path: Path) -> None:
    place = tmp_path / "t"
    (place / "files").mkdir(parents=True)
    for path in (table / "files").iterdir():
        save(load(path), place / "files" / path.name)
    poor = ("2-1-1e-06-0.9", "1-0.5-1e-06-0.9")  # from less eps, or less delta, or larger values
    for name in poor:
        path = place / "files" / f"{name}.json"
        save(spoiled(load(path), 5), path)
    with folder_of(place) as folder:
        names = [task.cell.name for task in violations(folder, 0.02)]
        assert set(names) == set(poor)
        pool = Here()
        summary = Filling(folder, pool).run()
        assert summary.repaired == 2
        assert summary.violations == []
        assert all(job.start is not None for job in pool.jobs)
    good = {path.stem: load(path) for path in (table / "files").iterdir()}
    for name in poor:
        mended = load(place / "files" / f"{name}.json")
        assert mended.cost.noise_messages <= good[name].cost.noise_messages * 1.01
        assert audit(mended, tier="fast").verdict == "certified"
    with folder_of(place) as folder:
        pool = Here()
        assert Filling(folder, pool).run().repaired == 0
        assert not pool.jobs


def test_repairs_do_not_depend_on_the_number_of_workers(table: Path, tmp_path: Path) -> None:
    """Of two poor cells each is the start of the other's neighbour."""
    found = []
    for slots in (1, 2):
        place = tmp_path / f"t{slots}"
        (place / "files").mkdir(parents=True)
        for path in (table / "files").iterdir():
            save(load(path), place / "files" / path.name)
        for name, factor in (("1-1-1e-06-0.9", 6), ("1-2-1e-06-0.9", 20)):
            path = place / "files" / f"{name}.json"
            save(spoiled(load(path), factor), path)
        with folder_of(place) as folder:
            pool = Here(slots=slots)
            assert Filling(folder, pool).run().violations == []
            assert len(pool.jobs) >= 2
        found.append(contents(place))
    assert found[0] == found[1]


def test_a_repair_that_does_not_help_is_not_tried_again(table: Path, tmp_path: Path) -> None:
    place = tmp_path / "t"
    (place / "files").mkdir(parents=True)
    for path in (table / "files").iterdir():
        save(load(path), place / "files" / path.name)
    path = place / "files" / "1-2-1e-06-0.9.json"
    save(spoiled(load(path), 5), path)
    worse = dumps(spoiled(load(path), 1.5))
    for expected in (1, 0):
        with folder_of(place) as folder:
            pool = Here(lambda _: Outcome(worse, None, 1.0))
            summary = Filling(folder, pool).run()
            assert len(pool.jobs) == expected
            assert summary.violations == ["1-2-1e-06-0.9"]


def test_a_search_starts_from_a_file_for_larger_values() -> None:
    larger = generate(
        Request(n=1000, eps=1.0, delta=1e-6, max_value=4, tries=2, cold=True, tier="fast")
    ).file
    request = Request(n=1000, eps=1.0, delta=1e-6, max_value=3, tries=2, cold=True, tier="fast")
    near = generate(request, resume=larger, near=True)
    assert near.useless is None
    assert near.file.problem.max_value == 3
    assert near.file.cost.noise_messages < larger.cost.noise_messages
    with pytest.raises(InvalidParameter, match="max_value 3, not 4"):
        generate(replace(request, max_value=4), resume=near.file)
