"""What goes wrong while a table is filled: problems, workers, files, file systems, signals."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import time
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from filled import SMALL, Here, contents, copied, folder_of, grid_file
from program import command, run

from accounting import InvalidParameter
from paramsearch import load, save
from paramsearch.filling.filler import Event, Filler
from paramsearch.filling.pools import LocalPool
from paramsearch.filling.worker import SearchJob, SearchResult, run_search
from paramsearch.tables import index


def fails_at_two(job: SearchJob) -> SearchResult:
    if job.request.max_value == 2 and job.start is None:
        return SearchResult(None, "Undecided: for a test", 0.1)
    return run_search(job)


def test_failures_are_kept_and_tried_again_when_asked(tmp_path: Path, table: Path) -> None:
    events: list[Event] = []
    with folder_of(tmp_path / "t") as folder:
        pool = Here(fails_at_two)
        summary = Filler(folder, pool, on_event=events.append).run()
        # without a start every other cell is searched for from nothing, and fails here, too
        assert summary.done == 6
        assert set(summary.failures.values()) == {"Undecided: for a test"}
        assert len(summary.failures) == 6
        assert (events[-1].done, events[-1].failed, events[-1].total) == (6, 6, 12)
    with folder_of(tmp_path / "t") as folder:
        pool = Here()
        assert len(Filler(folder, pool).run().failures) == 6
        assert not pool.jobs
        summary = Filler(folder, pool, retry=True).run()
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

    def deadly(job: SearchJob) -> SearchResult:
        if (job.request.max_value, job.request.eps, job.request.delta) == (1, 0.5, 1e-6):
            raise BrokenProcessPool("for a test")
        if pool.renewed == 0 and job.start is not None:
            raise BrokenProcessPool("with the other one")
        return run_search(job)

    pool = Here(deadly, slots=2)
    with folder_of(tmp_path / "t") as folder:
        summary = Filler(folder, pool).run()
    assert pool.renewed == 3  # twice alone
    assert summary.done == 11
    assert list(summary.failures) == ["1-0.5-1e-06-0.9"]
    assert "killed" in summary.failures["1-0.5-1e-06-0.9"]


def kill_worker(request: SearchJob) -> SearchResult:
    if request.request.eps == 0.5 and not os.environ.get("SPARED"):
        os.kill(os.getpid(), signal.SIGKILL)
    return run_search(request)


def test_a_local_worker_that_is_killed(tmp_path: Path) -> None:
    pool = LocalPool(1)
    try:
        text = SMALL.replace("[1, 2]", "[1]")
        with folder_of(tmp_path / "t", text) as folder:
            filling = Filler(folder, pool)
            first = pool.submit(kill_worker, SearchJob(folder.grid.request(folder.grid.cells[1])))
            with pytest.raises(BrokenProcessPool):
                first.result()
            with pytest.raises(BrokenProcessPool):
                pool.submit(run_search, SearchJob(folder.grid.request(folder.grid.cells[0])))
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
    assert "remove the file" in done.stderr


def test_a_stranger_that_comes_during_a_run_is_left_out_of_the_index(tmp_path: Path) -> None:
    def work(job: SearchJob) -> SearchResult:
        (tmp_path / "t" / "files" / "notes.json").write_text("{}")
        return run_search(job)

    with folder_of(tmp_path / "t") as folder:
        assert Filler(folder, Here(work)).run().done == 12
        assert list(folder.invalid_files) == ["notes.json"]
    assert len(index.read(tmp_path / "t" / "index.parquet")) == 24


def test_a_file_that_vanishes_during_a_run_is_made_again(tmp_path: Path, table: Path) -> None:
    first = tmp_path / "t" / "files" / "1-1-1e-06-0.9.json"

    def work(job: SearchJob) -> SearchResult:
        if job.request.max_value == 2 and job.start is None:
            first.unlink()
        return run_search(job)

    pool = Here(work)
    with folder_of(tmp_path / "t") as folder:
        assert Filler(folder, pool).run().done == 12
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
def test_a_damaged_journal_of_an_earlier_version_does_no_harm(
    table: Path, tmp_path: Path, line: bytes
) -> None:
    place = copied(table, tmp_path / "t")
    (place / "journal.jsonl").write_bytes(line + b"\n")
    with folder_of(place) as folder:
        pool = Here()
        assert Filler(folder, pool).run().done == 12
        assert not pool.jobs


def test_the_journal_of_an_earlier_version_is_taken_in(tmp_path: Path) -> None:
    place = tmp_path / "t"
    place.mkdir()
    lines = [
        {"cell": "1-1-1e-06-0.9", "failure": "no luck"},
        {"cell": "2-1-1e-06-0.9", "failure": "none either"},
        {"cell": "2-1-1e-06-0.9", "start": "ab", "sha256": "cd", "seconds": 2.5},
    ]
    (place / "journal.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    for _ in range(2):
        with folder_of(place) as folder:
            assert folder.failures == {"1-1-1e-06-0.9": "no luck"}
            assert folder.tried == {("2-1-1e-06-0.9", "ab")}
    assert not (place / "journal.jsonl").exists()


def test_a_database_that_is_none_is_named(tmp_path: Path) -> None:
    place = tmp_path / "t"
    place.mkdir()
    (place / "state.sqlite").write_bytes(b"this is no database, but long enough to be one" * 99)
    done = run("table", grid_file(tmp_path), "-o", place)
    assert done.returncode == 2
    assert "state.sqlite cannot be used" in done.stderr
    assert "remove that file" in done.stderr
    assert not (place / "index.parquet").exists()


@pytest.mark.parametrize(
    "row", [(b"1", "a", None, None, 1.0), ("1-1-1e-06-0.9", None, b"x", None, 2)]
)
def test_rows_that_no_run_has_written_are_left_out(tmp_path: Path, row: tuple[Any, ...]) -> None:
    with folder_of(tmp_path / "t"):
        pass
    with closing(sqlite3.connect(tmp_path / "t" / "state.sqlite")) as database, database:
        columns = "cell, start, failure, sha256, seconds"
        database.execute(f"INSERT INTO ended ({columns}) VALUES (?, ?, ?, ?, ?)", row)
    with folder_of(tmp_path / "t") as folder:
        assert (folder.failures, folder.tried) == ({}, set())


def test_what_a_worker_sends_is_not_trusted(table: Path, tmp_path: Path) -> None:
    other = (table / "files" / "2-1-1e-06-0.9.json").read_text()

    def work(job: SearchJob) -> SearchResult:
        if job.request.max_value == 1:
            return SearchResult(other if job.request.eps == 1.0 else "{", None, 1.0)
        return run_search(job)

    with folder_of(tmp_path / "t") as folder:
        summary = Filler(folder, Here(work)).run()
    assert summary.done == 6
    assert len(summary.failures) == 6
    assert all("refused" in reason for reason in summary.failures.values())


def test_a_worker_that_dies_with_nothing_to_do(tmp_path: Path) -> None:
    class Breaking(Here):
        def submit(self, work: Any, job: SearchJob) -> Future[Any]:
            if self.renewed == 0 and len(self.jobs) == 3:
                raise BrokenProcessPool("for a test")
            return super().submit(work, job)

    pool = Breaking()
    with folder_of(tmp_path / "t") as folder:
        summary = Filler(folder, pool).run()
    assert (summary.done, summary.failures, pool.renewed) == (12, {}, 1)


def test_a_file_system_without_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import errno
    import fcntl

    def broken(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    with folder_of(tmp_path / "t") as folder:
        monkeypatch.setattr(fcntl, "lockf", broken)
        with pytest.raises(InvalidParameter, match="no locks"):
            Filler(folder, Here()).run()


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
    assert running.returncode == 143
    assert "Traceback" not in errors
    assert len(index.read(tmp_path / "t" / "index.parquet")) >= 12
