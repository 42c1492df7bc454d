"""``paramsearch compose``: arguments, errors, and what is printed."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from places import EXAMPLES, SHIPPED
from program import run

from accounting import NegativeBinomial, Proposal
from paramsearch import certify, load, loss_distribution, rescaled, save, uncertified
from paramsearch.cli.exit_codes import ExitCode

FILE, STRONG = (SHIPPED / f"5-{eps}-1e-06-0.9.json" for eps in ("1", "0.25"))


def proposal(**more: object) -> Proposal:
    noise = NegativeBinomial(12.0, 0.96)
    atoms = [{"atom": [-1, 1], "r": noise.r, "p": noise.p}]
    data = {"max_value": 1, "eps": 1.0, "delta": 1e-4, "n": 1000, "eps_central": 0.9}
    return Proposal.of({**data, "atoms": atoms, **more})


def test_the_answer_for_machines(tmp_path: Path) -> None:
    plot = tmp_path / "profile.svg"
    done = run("compose", f"{FILE}:2", STRONG, "--eps", "2.25", "--json", "--plot", plot)
    assert done.returncode == ExitCode.DONE
    answer = json.loads(done.stdout)
    ours = loss_distribution(load(FILE), 2).compose(loss_distribution(load(STRONG))).delta(2.25)
    ours = ours.as_written()
    assert (answer["delta_lower"], answer["delta_upper"]) == (ours.lower, ours.upper)
    assert (answer["eps"], answer["delta"]) == (2.25, ours.upper)
    assert (answer["releases"], answer["changes"]) == (3, "any")
    assert (answer["adjacency"], answer["dimension"]) == ("substitution", 1)
    assert [entry["times"] for entry in answer["files"]] == [2, 1]
    assert answer["files"][0]["sha256"] == load(FILE).sha256
    uppers = [upper for _, _, upper in answer["profile"]]
    assert uppers == sorted(uppers, reverse=True)
    assert [2.25, ours.lower, ours.upper] in answer["profile"]
    assert "<svg" in plot.read_text()
    done = run("compose", f"{FILE}:2", STRONG, "--delta", "1e-5", "--json", "--plot", plot)
    answer = json.loads(done.stdout)
    rows = {eps: (lower, upper) for eps, lower, upper in answer["profile"]}
    lower, upper = rows[answer["eps"]]
    assert lower <= 1e-5 <= upper <= 1e-5 * (1 + 1e-15)  # a bound that holds as a decimal, too


def test_the_answer_for_people(tmp_path: Path) -> None:
    file = certify(uncertified(proposal(), honest=0.9))
    path = tmp_path / "a:b.json"
    save(file, path)
    done = run("compose", f"{path}:3", path, "--delta", "1e-4")
    assert done.returncode == ExitCode.DONE
    assert "for all of these releases together" in done.stdout
    assert "at delta = 0.0001" in done.stdout
    assert f"4, each one run of the protocol: 3 of {path}, 1 of {path}" in done.stdout
    assert "any change of one user's input in each, chosen adaptively, in any order" in done.stdout
    assert f"0.9 of the users of {path} adding noise" in done.stdout
    again = run("compose", f"{path}:4", "--delta", "1e-4")
    assert again.stdout.splitlines()[1] == done.stdout.splitlines()[1]


@pytest.mark.parametrize("times", ["0", "-1", "1.5", "1e9", "10001", "3,0"])
def test_numbers_of_releases_are_named_as_typed(times: str) -> None:
    failed = run("compose", f"{FILE}:{times}", "--delta", "1e-6", "--json")
    assert failed.returncode == ExitCode.BAD_INPUT
    message = json.loads(failed.stdout)["failure"]["message"]
    assert message.startswith(f"{FILE}:{times}: '{times}' is not a number of releases")
    assert "from 1 to 10,000" in message


def test_what_follows_a_colon_and_is_no_number(tmp_path: Path) -> None:
    failed = run("compose", f"{FILE}:x", "--delta", "1e-6")
    assert failed.returncode == ExitCode.BAD_INPUT
    assert f"{FILE}:x: 'x' is not a number of releases" in failed.stderr
    odd = tmp_path / "C:x"
    shutil.copy(FILE, odd)
    assert run("compose", odd, "--eps", "1").returncode == ExitCode.DONE
    assert "cannot read" in run("compose", tmp_path / "D:x", "--eps", "1").stderr


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ((), "either --delta"),
        (("--eps", "1", "--delta", "1e-6"), "either --delta"),
        (("--delta", "0"), "--delta = 0"),
        (("--eps", "-1"), "--eps = -1"),
        (("--eps", "1", "--gap", "0"), "gap"),
        (("--eps", "1", "--budget", "0"), "--budget = 0"),
        (("--eps", "1", "--plot", "x.pdf"), ".png or .svg"),
    ],
)
def test_options_are_checked(options: tuple[str, ...], said: str) -> None:
    failed = run("compose", FILE, *options)
    assert failed.returncode == ExitCode.BAD_INPUT
    assert said in failed.stderr


def test_files_are_certified_and_not_forged(tmp_path: Path) -> None:
    draft = tmp_path / "draft.json"
    save(rescaled(load(FILE), 1000), draft)
    forged = tmp_path / "forged.json"
    forged.write_text(FILE.read_text().replace('"delta": 1e-06', '"delta": 1e-07'))
    for path, said in (
        (draft, "is not certified: paramsearch certify"),
        (EXAMPLES / "sum_to_2.json", "is not certified: paramsearch certify"),
        (forged, "is rejected"),
        (tmp_path / "none.json", "cannot read"),
    ):
        failed = run("compose", FILE, f"{path}:3", "--delta", "1e-6", "--json")
        assert failed.returncode == ExitCode.BAD_INPUT
        error = json.loads(failed.stdout)["failure"]
        assert error["kind"] == "InvalidConfiguration"
        assert said in error["message"]
        assert str(path) in error["message"]


def test_numbers_and_vectors_are_not_mixed(tmp_path: Path) -> None:
    path = tmp_path / "vectors.json"
    save(certify(uncertified(proposal(dimension=7, eps_central=0.45, eps=1.0, delta=0.01))), path)
    failed = run("compose", FILE, path, "--delta", "1e-6", "--json")
    assert failed.returncode == ExitCode.BAD_INPUT
    error = json.loads(failed.stdout)["failure"]
    assert error["kind"] == "InvalidParameter"
    assert f"{FILE} is for dimension 1 and {path} for dimension 7" in error["message"]


def test_adjacencies_are_not_mixed(tmp_path: Path) -> None:
    path = tmp_path / "zero-out.json"
    save(certify(uncertified(proposal(adjacency="zero-out"))), path)
    failed = run("compose", FILE, path, "--delta", "1e-6", "--json")
    assert failed.returncode == ExitCode.BAD_INPUT
    error = json.loads(failed.stdout)["failure"]
    assert error["kind"] == "InvalidParameter"
    said = f"{FILE} is for adjacency substitution and {path} for adjacency zero-out"
    assert said in error["message"]
    done = run("compose", f"{path}:2", "--eps", "1.5")
    assert done.returncode == ExitCode.DONE
    assert "all inputs of one user present or absent, chosen adaptively" in done.stdout
    assert "zero-out" in done.stdout


def test_too_many_releases_are_refused_at_once() -> None:
    failed = run("compose", f"{FILE}:9000", f"{STRONG}:1001", "--delta", "1e-6")
    assert failed.returncode == ExitCode.BAD_INPUT
    assert "10,001 releases in all, more than 10,000" in failed.stderr


def test_a_budget_ends_it() -> None:
    failed = run("compose", f"{FILE}:100", "--delta", "1e-6", "--budget", "0.001", "--json")
    assert failed.returncode == ExitCode.UNDECIDED
    assert "budget" in json.loads(failed.stdout)["failure"]["message"]
