"""Windows and macOS, as far as Linux can pretend to be them: what they lack is asked for first."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from filled import grid_file
from places import EXAMPLES
from test_architecture import modules

from accounting.base import threads
from accounting.notary import processes
from paramsearch import load
from paramsearch.deploy import simulate
from paramsearch.deploy.simulate import Simulation
from paramsearch.tables.lookup import shipped_folder

_LIKE_WINDOWS = """
import multiprocessing, os, signal, sys
import cvxpy, matplotlib, numba, numpy, pyarrow, pydantic, rich, scipy.stats, typer  # their affair
sys.modules["fcntl"] = sys.modules["resource"] = sys.modules["pwd"] = None
for room, names in (
    (signal, ("SIGHUP", "SIGUSR1", "SIGKILL", "pthread_sigmask")),
    (os, ("fork", "register_at_fork", "sched_getaffinity", "getuid", "killpg")),
):
    for name in names:
        delattr(room, name)
multiprocessing.get_all_start_methods = lambda: ["spawn"]
"""


def like_windows(code: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", _LIKE_WINDOWS + code, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


def test_every_module_can_be_imported() -> None:
    names = [name for name in modules() if name != "paramsearch.__main__"]
    done = like_windows("for name in sys.argv[1:]: __import__(name)", *names)
    assert done.returncode == 0, done.stderr


_COMMAND = "from paramsearch.cli.app import main; main()"


def test_a_table_is_refused_in_words(tmp_path: Path) -> None:
    done = like_windows(_COMMAND, "table", grid_file(tmp_path), "-o", tmp_path / "t")
    assert done.returncode == 2
    assert "fill tables on Linux or macOS" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "t").exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("certify", EXAMPLES / "sum_to_2.json", "--json"), '"delta_upper"'),
        (("audit-table", "--sample", "2"), "2 of 2 files audited"),
        (("lookup", "--n", "9", "--eps", "1", "--delta", "1e-6", "--max-value", "2"), "certified"),
    ],
)
def test_other_commands_work(arguments: tuple[object, ...], said: str) -> None:
    done = like_windows(_COMMAND, *arguments)
    assert done.returncode == 0, done.stderr
    assert said in done.stdout


def test_proofs_do_without_forked_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "_WORTHWHILE", 0.0)
    for platform in (sys.platform, "darwin"):
        monkeypatch.setattr(threads.sys, "platform", platform)
        assert processes.in_processes(lambda item: item * item, range(5)) == [0, 1, 4, 9, 16]
    monkeypatch.setattr("multiprocessing.get_context", None)  # nothing is forked on macOS
    assert processes.in_processes(lambda item: item * item, range(5)) == [0, 1, 4, 9, 16]


def test_simulations_have_spawned_processes_where_they_cannot_be_forked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    file = load(shipped_folder() / "files" / "1-1-1e-06-0.9.json")
    whole = Simulation(file, users=400, path="users", allow_few=True)
    pieces = [simulate._Piece(whole, 0, begin, begin + 100) for begin in range(0, 400, 100)]
    monkeypatch.setattr(simulate, "cores", lambda: 2)
    forked = [run.messages for run in simulate._in_processes(pieces)]
    monkeypatch.setattr(simulate, "can_fork", lambda: False)
    assert [run.messages for run in simulate._in_processes(pieces)] == forked
