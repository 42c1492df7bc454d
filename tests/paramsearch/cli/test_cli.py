"""The command line as a user meets it: real processes, exit codes, streams, files."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from places import EXAMPLES
from program import run

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
        (["profile", str(EXAMPLE), "--pair", "1", "1"], "no change"),
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


def test_importing_does_not_import_numba() -> None:
    code = "import sys, accounting, paramsearch.cli.app; sys.exit('numba' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
