"""The command line as a user meets it: real processes, exit codes, streams, files."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest
from places import EXAMPLES
from program import run

from paramsearch.certification.audit import Verdict
from paramsearch.cli.exit_codes import OF_VERDICT, ExitCode

EXAMPLE = EXAMPLES / "sum_to_2.json"


def test_profile_for_machines() -> None:
    done = run("profile", str(EXAMPLE), "--json")
    assert done.returncode == 0
    assert done.stderr == ""
    answer = json.loads(done.stdout)
    assert answer["eps"] == 1.0
    assert 0 < answer["delta_lower"] <= answer["delta_upper"] < 1e-6
    assert answer["worst_pair"] in ([0, 2], [2, 0])
    assert answer["adjacency"] == "substitution"


def test_profile_for_people() -> None:
    done = run("profile", str(EXAMPLE))
    assert done.returncode == 0
    for word in ("delta", "between", "worst pair", "holds"):
        assert word in done.stdout


def test_one_pair_another_eps_and_a_plot(tmp_path: Path) -> None:
    plot = tmp_path / "profile.svg"
    done = run(
        "profile", str(EXAMPLE), "--eps", "0.5", "--pair", "1", "0", "--plot", str(plot), "--json"
    )
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert answer["eps"] == 0.5
    assert answer["worst_pair"] == [1, 0]
    uppers = [upper for _, _, upper in answer["profile"]]
    assert uppers == sorted(uppers, reverse=True)
    assert plot.read_text().startswith("<?xml")
    assert list(tmp_path.iterdir()) == [plot]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["profile", "missing.json"], "cannot read"),
        (["profile", str(EXAMPLE), "--eps", "-1"], "eps = -1.0"),
        (["profile", str(EXAMPLE), "--eps", "nan"], "eps = nan"),
        (["profile", str(EXAMPLE), "--eps", "inf"], "eps = inf"),
        (["profile", str(EXAMPLE), "--pair", "0", "3"], "larger than max_value"),
        (["profile", str(EXAMPLE), "--pair", "1", "1"], "not a change"),
        (["profile", str(EXAMPLE), "--pair", "-1", "1"], "at least 0"),
        (["profile", str(EXAMPLE), "--gap", "0"], "gap"),
        (["profile", str(EXAMPLE), "--releases", "0"], "releases"),
        (["profile", str(EXAMPLE), "--plot", "x.pdf"], "png or .svg"),
        (["profile", str(EXAMPLE), "--plot", "no/such/folder/x.png"], "no folder"),
        (["profile", str(EXAMPLE), "--bogus"], "bogus"),
        (["profile"], "Missing argument"),
    ],
)
def test_bad_input_is_one_clear_message(arguments: list[str], message: str) -> None:
    done = run(*arguments)
    assert done.returncode == 2
    assert done.stdout == ""
    assert message in done.stderr
    assert "Traceback" not in done.stderr


HELP = """
import sys
from typer.testing import CliRunner
from paramsearch.cli.app import app
runner = CliRunner()
for command in app.registered_commands:
    name = command.callback.__name__.replace("_", "-")
    done = runner.invoke(app, [name, "--help"])
    assert done.exit_code == 0 and "--help" in done.stdout, name
heavy = {"numpy", "scipy", "numba", "flint", "matplotlib", "clarabel", "pyarrow"}
ours = {"accounting.evaluator", "accounting.notary", "accounting.proof", "paramsearch.parameters"}
sys.exit(", ".join((heavy | ours) & set(sys.modules)) or 0)
"""


def test_help_loads_nothing_that_computes() -> None:
    done = subprocess.run([sys.executable, "-c", HELP], check=False, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_exit_codes_follow_verdicts() -> None:
    assert set(OF_VERDICT) == set(get_args(Verdict))
    assert {code.name: int(code) for code in ExitCode} == {
        "DONE": 0,
        "VIOLATED": 1,
        "BAD_INPUT": 2,
        "UNDECIDED": 3,
        "INTERRUPTED": 130,
        "TERMINATED": 143,
    }
