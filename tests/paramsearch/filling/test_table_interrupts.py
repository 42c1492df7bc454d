"""Interrupted runs keep what is being searched for; the finished table does not depend on them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest
from filled import SMALL, Here, contents, copied, folder_of, grid_file, spoiled
from program import command

from paramsearch import Request, audit, generate, load, save
from paramsearch.filling import worker
from paramsearch.filling.filler import Filler
from paramsearch.filling.worker import SearchJob, SearchResult, run_search
from paramsearch.search.budget import never
from paramsearch.tables import index


@pytest.fixture
def stopped() -> Iterator[None]:
    """Searches in this process end at once."""
    worker.stop_searches_when(lambda: True)
    yield
    worker.stop_searches_when(never)


class Interrupted(Here):
    """A pool during whose last job an interrupt comes; another one if the job is ``given_up``."""

    def __init__(self, jobs: int, *, given_up: bool = False) -> None:
        super().__init__()
        self.left, self.given_up = jobs, given_up
        self.waiting: tuple[SearchJob, Future[Any]] | None = None

    def slots(self) -> int:
        if self.waiting is not None:
            raise KeyboardInterrupt
        return 1

    def submit(self, work: Any, job: SearchJob) -> Future[Any]:
        self.left -= 1
        if self.left:
            return super().submit(work, job)
        self.waiting = job, Future()
        return self.waiting[1]

    def stop(self) -> bool:
        if self.given_up:
            raise KeyboardInterrupt
        assert self.waiting is not None
        job, future = self.waiting
        worker.stop_searches_when(lambda: True)
        try:
            future.set_result(run_search(job))
        finally:
            worker.stop_searches_when(never)
        return True


def ended_by(path: Path) -> object:
    return load(path).provenance.settings.get("ended_by")


@pytest.mark.parametrize("jobs", [1, 8])
def test_the_best_of_an_interrupted_search_is_kept_until_it_is_repeated(
    table: Path, tmp_path: Path, jobs: int
) -> None:
    """The first job searches from scratch, the eighth starts from the file of another problem."""
    place = tmp_path / "t"
    with folder_of(place) as folder:
        summary = Filler(folder, Interrupted(jobs)).run()
    assert summary.interrupted
    assert (summary.done, summary.cut_short, summary.made) == (jobs - 1, 1, jobs - 1)
    marked = [path for path in (place / "files").iterdir() if ended_by(path) == "interrupt"]
    (rest,) = marked
    assert audit(load(rest), tier="fast").verdict == "certified"
    assert rest.name in {Path(row.file).name for row in index.read(place / "index.parquet")}
    with folder_of(place) as folder:  # the next run knows
        assert folder.cut_short == {rest.stem}
        again = Here()
        summary = Filler(folder, again).run()
    assert len(again.jobs) == 12 - (jobs - 1)
    assert (summary.done, summary.cut_short) == (12, 0)
    assert contents(place) == contents(table)


def test_a_second_interrupt_gives_it_up(tmp_path: Path) -> None:
    with folder_of(tmp_path / "t") as folder:
        summary = Filler(folder, Interrupted(2, given_up=True)).run()
    assert summary.interrupted
    assert (summary.done, summary.cut_short) == (1, 0)
    assert len(contents(tmp_path / "t")) == 1


def test_an_interrupted_repair_changes_nothing(table: Path, tmp_path: Path) -> None:
    place = copied(table, tmp_path / "t")
    poor = place / "files" / "2-2-1e-06-0.9.json"
    save(spoiled(load(poor), 1.8), poor)
    before = contents(place)
    with folder_of(place) as folder:
        summary = Filler(folder, Interrupted(1)).run()
        assert summary.interrupted
        assert (summary.done, summary.cut_short, summary.repaired) == (12, 0, 0)
    assert contents(place) == before
    with folder_of(place) as folder:  # and it is not taken for one that did not help
        assert Filler(folder, Here()).run().repaired == 1


@pytest.mark.usefixtures("stopped")
def test_a_cut_short_file_makes_way_for_a_finished_one_only(tmp_path: Path, table: Path) -> None:
    with folder_of(tmp_path / "t") as folder:
        cell = folder.grid.cells[0]
        rest = run_search(SearchJob(folder.grid.request(cell)))
        assert rest.cut_short
        assert rest.text is not None
        assert folder.store(cell, rest.text, seconds=1.0, start=None)
        assert not folder.done(cell)
        assert not folder.store(cell, rest.text, seconds=1.0, start=None)  # no better
        finished = (table / "files" / f"{cell.name}.json").read_text()
        assert folder.store(cell, finished, seconds=1.0, start=None)
        assert folder.done(cell)
        assert not folder.store(cell, rest.text, seconds=1.0, start=None)
        assert folder.done(cell)


@pytest.mark.usefixtures("stopped")
def test_a_repeated_search_that_fails_is_a_failure_and_does_not_run_forever(tmp_path: Path) -> None:
    text = SMALL.replace("[0.5, 1, 2]", "[1]").replace("[1e-6, 1e-8]", "[1e-6]")
    with folder_of(tmp_path / "t", text) as folder:
        cell = folder.grid.cells[0]
        rest = run_search(SearchJob(folder.grid.request(cell)))
        assert rest.text is not None
        folder.store(cell, rest.text, seconds=1.0, start=None)
        failing = Here(lambda _: SearchResult(None, "no luck", 1.0))
        summary = Filler(folder, failing).run()
        assert set(summary.failures) == {cell.name for cell in folder.grid.cells}
    with folder_of(tmp_path / "t", text) as folder:
        assert cell.name in folder.failures  # still, and the file still serves
        assert cell.name in folder.rows


def test_a_search_that_is_told_to_stop_says_so() -> None:
    asked = iter([False] * 5)
    request = Request(n=1000, eps=1.0, delta=1e-6, max_value=6, cold=True)
    made = generate(request, stop=lambda: next(asked, True))
    assert made.interrupted
    assert made.file.provenance.settings["ended_by"] == "interrupt"
    assert made.file.certificate is not None


@pytest.mark.slow
@pytest.mark.parametrize("times", [1, 2])
def test_the_command_is_interrupted(tmp_path: Path, times: int) -> None:
    text = SMALL.replace("[1, 2]", "[12]").replace("tries = 2", "tries = 500")
    place = tmp_path / "t"
    running = subprocess.Popen(
        command("table", grid_file(tmp_path, text), "-o", place, "--workers", "1", "--json"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,  # as on a terminal, where Ctrl-C reaches the workers as well
    )
    while not (place / "state.sqlite").exists():
        assert running.poll() is None
        time.sleep(0.1)
    time.sleep(5)  # until the worker has begun
    for _ in range(times):
        os.killpg(running.pid, signal.SIGINT)
        time.sleep(0.5)
    out, said = running.communicate(timeout=120)
    assert running.returncode == 130
    assert "Traceback" not in said
    answer = json.loads(out)
    assert answer["interrupted"] is True
    assert answer["cut_short"] == len(contents(place))
    assert answer["cut_short"] == 1 or times == 2
