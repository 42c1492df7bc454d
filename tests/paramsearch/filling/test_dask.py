"""A table on a real Dask cluster: a scheduler and four workers, each a process without a nanny."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from filled import SMALL, contents, grid_file
from program import command, run

KILL_A_BUSY_WORKER = """
import os, signal, sys, time
from distributed import Client
with Client(sys.argv[1], set_as_default=False) as client:
    client.wait_for_workers(2)
    pids = client.run(os.getpid)
    while True:
        busy = [worker for worker, tasks in client.processing().items() if tasks]
        if len(busy) == len(pids):
            break
        time.sleep(0.05)
    os.kill(pids[busy[0]], signal.SIGKILL)
    print(busy[0])
"""
WAIT_FOR_A_BUSY_WORKER = """
import sys, time
from distributed import Client
with Client(sys.argv[1], set_as_default=False) as client:
    while not any(client.processing().values()):
        time.sleep(0.05)
"""


@contextmanager
def process(folder: Path, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    with (folder / f"{arguments[0]}.log").open("ab") as log:
        running = subprocess.Popen(
            [sys.executable, "-m", f"distributed.cli.dask_{arguments[0]}", *arguments[1:]],
            cwd=folder,
            stdout=log,
            stderr=log,
        )
    try:
        yield running
    finally:
        running.kill()
        running.wait()


@contextmanager
def cluster(folder: Path, workers: int) -> Iterator[tuple[str, list[subprocess.Popen[bytes]]]]:
    """The scheduler's address, and the workers, which have a folder of their own."""
    folder.mkdir()
    known = folder / "scheduler.json"
    with ExitStack() as stack:
        local = ("--host", "127.0.0.1", "--no-dashboard")
        stack.enter_context(
            process(folder, "scheduler", *local, "--port", "0", "--scheduler-file", str(known))
        )
        patience = time.monotonic() + 60
        while not known.exists() or not known.read_text():
            assert time.monotonic() < patience, (folder / "scheduler.log").read_text()
            time.sleep(0.1)
        address = json.loads(known.read_text())["address"]
        options = ("--no-nanny", "--nthreads", "1", "--local-directory", str(folder))
        yield (
            address,
            [
                stack.enter_context(process(folder, "worker", address, *local, *options))
                for _ in range(workers)
            ],
        )


@pytest.mark.slow
def test_four_workers_give_the_files_of_the_local_run(table: Path, tmp_path: Path) -> None:
    with cluster(tmp_path / "cluster", 4) as (address, _):
        done = run(
            *("table", grid_file(tmp_path), "-o", tmp_path / "t", "--scheduler", address, "--json")
        )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["made"] == 12
    assert contents(tmp_path / "t") == contents(table)


@pytest.mark.slow
def test_a_worker_is_killed_in_the_middle_of_its_task(table: Path, tmp_path: Path) -> None:
    with cluster(tmp_path / "cluster", 2) as (address, workers):
        running = subprocess.Popen(
            command("table", grid_file(tmp_path), "-o", tmp_path / "t", "--scheduler", address),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        killed = subprocess.run(
            [sys.executable, "-c", KILL_A_BUSY_WORKER, address],
            capture_output=True,
            text=True,
            check=True,
            timeout=120,
        )
        assert killed.stdout.startswith("tcp://")
        _, errors = running.communicate(timeout=300)
        assert running.returncode == 0, errors
        assert sorted(worker.poll() is None for worker in workers) == [False, True]
    assert contents(tmp_path / "t") == contents(table)


@pytest.mark.slow
def test_the_scheduler_goes_away(tmp_path: Path) -> None:
    """What is finished stays, and the answer is that the rest is undecided."""
    with ExitStack() as stack:
        address, _ = stack.enter_context(cluster(tmp_path / "cluster", 1))
        running = subprocess.Popen(
            command("table", grid_file(tmp_path), "-o", tmp_path / "t", "--scheduler", address),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        while len(list((tmp_path / "t").glob("files/*.json"))) < 2:
            assert running.poll() is None
            time.sleep(0.1)
    _, errors = running.communicate(timeout=120)
    assert running.returncode == 3, errors
    assert "the scheduler is gone" in errors
    assert "Traceback" not in errors, errors
    kept = len(contents(tmp_path / "t"))
    assert kept >= 2
    done = run("table", tmp_path / "grid.toml", "-o", tmp_path / "t", "--json")
    assert json.loads(done.stdout)["made"] == 12 - kept


@pytest.mark.slow
def test_an_interrupt_keeps_the_best_of_what_workers_search_for(tmp_path: Path) -> None:
    text = SMALL.replace("[1, 2]", "[12]").replace("tries = 2", "tries = 500")
    place = tmp_path / "t"
    with cluster(tmp_path / "cluster", 2) as (address, _):
        running = subprocess.Popen(
            command(
                "table", grid_file(tmp_path, text), "-o", place, "--scheduler", address, "--json"
            ),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        waiting = [sys.executable, "-c", WAIT_FOR_A_BUSY_WORKER, address]
        subprocess.run(waiting, check=True, timeout=120)
        time.sleep(8)  # until the search has a family
        running.send_signal(signal.SIGINT)
        out, said = running.communicate(timeout=300)
    assert running.returncode == 130, said
    assert "Traceback" not in said
    answer = json.loads(out)
    assert answer["interrupted"] is True
    assert answer["cut_short"] == len(contents(place)) >= 1
