"""The command line as a user meets it: real processes, exit codes, streams, files."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest
from places import EXAMPLES, ROOT
from program import run

from paramsearch.certification.audit import Verdict
from paramsearch.cli.exit_codes import OF_VERDICT, ExitCode

EXAMPLE = EXAMPLES / "sum_to_2.json"
PACKAGE = ROOT / "paramsearch" / "data" / "files"


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


@pytest.mark.parametrize("more", [(), ("--eps", "0"), ("--eps", "0.3", "--gap", "0.2")])
def test_one_eps_has_one_answer(tmp_path: Path, more: tuple[str, ...]) -> None:
    """Was: delta at most 1.58e-7, and at most 1.59e-7 in the row of the same eps."""
    done = run("profile", str(EXAMPLE), "--json", "--plot", str(tmp_path / "p.png"), *more)
    answer = json.loads(done.stdout)
    rows = {eps: (lower, upper) for eps, lower, upper in answer["profile"]}
    assert rows[answer["eps"]] == (answer["delta_lower"], answer["delta_upper"])
    for side in (0, 1):
        column = [rows[eps][side] for eps in sorted(rows)]
        assert column == sorted(column, reverse=True)
    assert len(rows) == len(answer["profile"])


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
        (["profile", str(EXAMPLE), "--releases", "0"], "--releases = 0"),
        (["profile", str(EXAMPLE), "--honest", "0"], "--honest = 0"),
        (["profile", str(EXAMPLE), "--honest", "1.5"], "--honest = 1.5"),
        (["profile", str(EXAMPLE), "--delta", "0"], "--delta = 0"),
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


@pytest.fixture(scope="module")
def certified(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("files") / "certified.json"
    assert run("certify", EXAMPLE, "-o", path).returncode == 0
    return path


@pytest.mark.parametrize(
    ("options", "verdict", "code"),
    [
        ((), "certified", 0),
        (("--delta", "1e-8"), "violated", 1),
        (("--delta", "1.582e-7", "--gap", "0.01"), "undecided", 3),
        (("--delta", "1.582e-7"), "certified", 0),  # a closer gap decides
        pytest.param(
            ("--delta", "1.5815e-7", "--gap", "1e-5"), "certified", 0, marks=pytest.mark.slow
        ),
        (("--eps", "0.9"), None, 0),  # the file claims nothing at this eps
        pytest.param(("--eps", "0.9", "--delta", "1e-6"), "violated", 1, marks=pytest.mark.slow),
        (("--honest", "0.9"), "violated", 1),
        pytest.param(("--honest", "0.9", "--eps", "3"), None, 0, marks=pytest.mark.slow),
        (("--pair", "2", "0"), None, 0),  # one pair cannot certify a claim about all
        (("--pair", "2", "0", "--delta", "1e-8"), "violated", 1),
        pytest.param(
            ("--pair", "2", "0", "--honest", "0.9"), "violated", 1, marks=pytest.mark.slow
        ),
        (("--releases", "2"), "violated", 1),
    ],
)
def test_the_profile_of_a_file_decides_its_claim(
    certified: Path, options: tuple[str, ...], verdict: str | None, code: int
) -> None:
    for path in (certified, EXAMPLE):
        done = run("profile", path, *options, "--json")
        assert (json.loads(done.stdout)["verdict"], done.returncode) == (verdict, code)


@pytest.mark.slow
def test_the_profile_agrees_with_the_audit(certified: Path) -> None:
    """Two proofs of the same numbers: their bounds meet, also for a fraction of the users."""
    for options in ((), ("--honest", "0.95"), ("--releases", "2", "--eps", "2")):
        fast = json.loads(run("profile", certified, *options, "--json").stdout)
        ball = json.loads(run("audit", certified, *options, "--tier", "ball", "--json").stdout)
        assert fast["delta_lower"] <= ball["delta_upper"]
        assert ball["delta_lower"] <= fast["delta_upper"]
        assert fast["honest"] == ball["honest"]


@pytest.mark.slow
def test_the_profile_of_a_file_has_its_releases_and_its_fraction(tmp_path: Path) -> None:
    path = tmp_path / "several.json"
    made = run(
        *("certify", EXAMPLE, "--eps", "2.5", "--releases", "2", "--honest", "0.9", "-o", path)
    )
    assert made.returncode == 0, made.stderr
    done = run("profile", path, "--json")
    answer = json.loads(done.stdout)
    assert (done.returncode, answer["verdict"]) == (0, "certified")
    assert (answer["releases"], answer["honest"]) == (2, 0.9)
    assert "0.9 of the users adding noise" in run("profile", path).stdout


def test_the_profile_of_a_changed_file_is_refused(certified: Path, tmp_path: Path) -> None:
    path = tmp_path / "changed.json"
    path.write_text(certified.read_text().replace('"n": 100000', '"n": 99'))
    done = run("profile", path, "--json")
    assert done.returncode == 2
    assert "changed after it was sealed" in json.loads(done.stdout)["failure"]["message"]


def test_one_pair_never_certifies_a_delta() -> None:
    file = PACKAGE / "2-1-1e-06-0.9.json"
    done = run("profile", file, "--pair", "0", "1", "--delta", "1e-9", "--json")
    assert done.returncode == ExitCode.UNDECIDED
    assert json.loads(done.stdout)["verdict"] == "undecided"
    assert (
        run("profile", file, "--pair", "0", "1").returncode == ExitCode.DONE
    )  # nothing is decided


def test_another_claim_says_nothing_about_the_certificate() -> None:
    file = PACKAGE / "1-1-1e-06-0.9.json"
    done = run("audit", file, "--eps", "3", "--delta", "1e-3")
    assert done.returncode == 0
    assert "not looked at: this is about another claim than the file's own" in done.stdout
    assert "1.12 times the central one at eps = 1" in done.stdout  # the file's own eps
