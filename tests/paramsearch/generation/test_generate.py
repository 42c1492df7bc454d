"""The commands generate, pareto, rescale and generate-real, in processes of their own."""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from program import run

from accounting import InvalidParameter, Protocol
from accounting.model.configuration import Proposal
from accounting.model.costs import AtomParameters
from accounting.model.laws.negative_binomial import NegativeBinomial
from accounting.model.problem import Problem
from accounting.proof.directed_rounding import configuration
from paramsearch import Request, audit, generate, load, save, uncertified
from paramsearch.generation.real_values import RealTarget
from paramsearch.parameters.assembly import reassembled
from paramsearch.parameters.expected_cost import ExpectedCost
from paramsearch.search.budget import Budget
from paramsearch.search.paper_parameters import theorem
from paramsearch.search.target import Target

PROBLEM = ("--n", "1000", "--eps", "1", "--delta", "1e-6")


def problem(*changed: str) -> tuple[str, ...]:
    """The options of the problem, with these in the place of their own or added."""
    options = dict(zip(PROBLEM[::2], PROBLEM[1::2], strict=True))
    options |= dict(zip(changed[::2], changed[1::2], strict=True))
    return tuple(word for option in options.items() for word in option)


def test_a_generated_file_is_certified_and_audited(tmp_path: Path) -> None:
    path = tmp_path / "file.json"
    done = run("generate", *PROBLEM, "--max-value", "3", "--tries", "4", "-o", str(path))
    assert done.returncode == 0, done.stderr
    assert "certified" in done.stdout
    file = load(path)
    assert file.certificate is not None
    assert file.provenance.seed == 0
    assert file.provenance.settings["method"] == "search"
    found = audit(file)
    assert found.verdict == "certified"
    assert found.confirmed
    truth = Protocol(configuration(file.mechanism(), noise="more")).delta(1.0, gap=1e-3).enclosure
    assert truth.lower <= 1e-6
    assert truth.lower <= file.certificate.delta_upper


@pytest.mark.slow
def test_json_is_the_file_itself_and_a_seed_fixes_it(tmp_path: Path) -> None:
    arguments = ("generate", *PROBLEM, "--max-value", "4", "--tries", "5", "--seed", "7", "--json")
    first, second = run(*arguments), run(*arguments)
    assert first.returncode == 0, first.stderr
    assert first.stdout == second.stdout
    path = tmp_path / "file.json"
    path.write_text(first.stdout)
    assert load(path).provenance.seed == 7


@pytest.mark.slow
def test_resume_does_not_get_worse(tmp_path: Path) -> None:
    path = tmp_path / "file.json"
    arguments = ("generate", *PROBLEM, "--max-value", "4", "--tries", "2", "-o", str(path))
    assert run(*arguments).returncode == 0
    first = load(path).cost.noise_messages
    done = run(*arguments, "--resume")
    assert done.returncode == 0, done.stderr
    assert load(path).cost.noise_messages <= first * 1.0005
    changed = problem("--eps", "2", "--max-value", "4", "--tries", "2", "-o", str(path))
    other = run("generate", *changed, "--resume")
    assert other.returncode == 2
    assert "has eps = 1.0, not 2.0" in other.stderr
    missing = run(*arguments[:-1], str(tmp_path / "none.json"), "--resume")
    assert missing.returncode == 2


@pytest.mark.slow
def test_resume_believes_nothing(tmp_path: Path) -> None:
    """A cheaper file without a proof, and one with more error, do not survive."""
    good = generate(Request(n=1000, eps=1.0, delta=1e-6, max_value=1)).file
    weaker = NegativeBinomial(good.atoms[0].rounded().r, 0.9)
    atoms = (AtomParameters(good.atoms[0].atom, weaker),)
    weak = uncertified(Proposal(1, atoms, 0.9, 1.0, 1e-6, 1000))
    forged = reassembled(weak, good.certificate)
    noisy = generate(Request(n=1000, eps=1.0, delta=1e-6, max_value=1, central_fraction=0.3)).file
    for file in (weak, forged, noisy):
        path = tmp_path / "file.json"
        save(file, path)
        done = run("generate", *PROBLEM, "--max-value", "1", "--resume", "-o", str(path))
        assert done.returncode == 0, done.stderr
        assert load(path).cost == good.cost
        assert audit(load(path)).verdict == "certified"


@pytest.mark.parametrize("method", [pytest.param("theorem", marks=pytest.mark.slow), "dominance"])
def test_the_papers_methods_give_certified_files(method: str) -> None:
    made = generate(Request(n=1000, eps=1.0, delta=1e-6, max_value=3, method=method))
    certificate = made.file.certificate
    assert certificate is not None
    assert certificate.delta_upper < 1e-9
    assert made.file.provenance.settings["method"] == method
    assert audit(made.file).verdict == "certified"


def test_releases_and_honest_fraction() -> None:
    made = generate(
        Request(n=1000, eps=1.0, delta=1e-6, max_value=2, releases=3, honest=0.8, tries=2)
    )
    problem = made.file.problem
    assert (problem.releases, problem.honest) == (3, 0.8)
    assert audit(made.file).verdict == "certified"


def test_max_rmse_is_kept() -> None:
    made = generate(Request(n=1000, eps=1.0, delta=1e-6, max_value=3, max_rmse=9.0, tries=2))
    assert 8.99 <= made.file.error.rmse <= 9.0
    some = Request(n=1000, eps=1.0, delta=1e-6, max_value=3, max_rmse=9.0, tries=2, honest=0.7)
    assert 8.99 <= generate(some).file.error.rmse <= 9.0


def test_less_error_than_allowed_where_that_is_cheaper() -> None:
    """Large central noise is messages, too."""
    made = generate(Request(n=1000, eps=1.0, delta=1e-6, max_value=2, max_rmse=3000.0, tries=2))
    assert made.file.error.rmse < 300
    assert made.file.cost.noise_messages < 400


def test_a_tiny_budget_still_gives_a_certified_file(tmp_path: Path) -> None:
    path = tmp_path / "file.json"
    done = run("generate", *PROBLEM, "--max-value", "12", "--budget", "0.01", "-o", str(path))
    assert done.returncode == 0, done.stderr
    assert "budget" in done.stdout
    assert load(path).certificate is not None


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--max-value", "0"), "--max-value = 0 must be at least 1"),
        (("--max-value", "9000"), "must be at most 8,192"),
        (("--max-value", "3", "--eps", "0"), "eps = 0.0 must be greater than 0"),
        (("--max-value", "3", "--delta", "1"), "delta"),
        (("--max-value", "3", "--central-fraction", "1"), "strictly between 0 and 1"),
        (("--max-value", "3", "--central-fraction", "0.5", "--max-rmse", "9"), "not several"),
        (("--max-value", "3", "--max-rmse", "1"), "out of reach"),
        (("--max-value", "3", "--objective", "joy"), "objective = 'joy'"),
        (("--max-value", "3", "--method", "magic"), "method = 'magic'"),
        (("--max-value", "3", "--budget", "-1"), "budget = -1"),
        (("--max-value", "3", "--honest", "0"), "honest = 0"),
        (("--max-value", "3", "--tries", "0"), "tries = 0"),
    ],
)
def test_bad_requests(arguments: tuple[str, ...], message: str, tmp_path: Path) -> None:
    path = tmp_path / "file.json"
    done = run("generate", *problem(*arguments), "-o", str(path))
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert not path.exists()


@pytest.mark.slow
def test_an_interrupt_keeps_the_best_so_far(tmp_path: Path) -> None:
    path = tmp_path / "file.json"
    command = ("generate", *PROBLEM, "--max-value", "10", "--tries", "100000", "-o", str(path))
    process = subprocess.Popen(
        [sys.executable, "-m", "paramsearch", *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    time.sleep(12)
    os.kill(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=300)
    assert process.returncode == 130
    assert "Traceback" not in err
    if path.exists():  # unless it had not solved its first family yet
        assert "interrupted" in out
        assert audit(load(path)).verdict == "certified"


@pytest.mark.slow
def test_rescaled_files_have_the_same_noise(tmp_path: Path) -> None:
    path, other = tmp_path / "file.json", tmp_path / "other.json"
    assert run("generate", *PROBLEM, "--max-value", "2", "-o", str(path)).returncode == 0
    done = run("rescale", str(path), "--n", "123456789", "-o", str(other))
    assert done.returncode == 0, done.stderr
    old, new = load(path), load(other)
    assert new.problem.n == 123456789
    assert (old.atoms, old.central) == (new.atoms, new.central)
    assert new.cost.messages_per_user < old.cost.messages_per_user
    assert new.certificate == old.certificate
    assert run("rescale", str(path), "--n", "0", "-o", str(other)).returncode == 2


@pytest.mark.slow
def test_the_front_is_a_front(tmp_path: Path) -> None:
    plot = tmp_path / "front.svg"
    done = run(
        *("pareto", *PROBLEM, "--max-value", "2", "--tries", "2", "--json"),
        *("--fraction", "0.9", "--fraction", "0.5", "--fraction", "0.7"),
        *("--plot", str(plot), "-o", str(tmp_path)),
    )
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)["points"]
    assert [row["central_fraction"] for row in rows] == [0.5, 0.7, 0.9]
    errors = [row["rmse"] for row in rows]
    messages = [row["noise_messages"] for row in rows]
    assert errors == sorted(errors, reverse=True)
    assert messages == sorted(messages)
    assert plot.stat().st_size > 1000
    for share in ("0.5", "0.7", "0.9"):
        assert load(tmp_path / f"2-1-1e-06-central-{share}.json").certificate is not None


@pytest.mark.slow
def test_real_values(tmp_path: Path) -> None:
    path = tmp_path / "real.json"
    done = run(
        *("generate-real", "--n", "200", "--eps", "1", "--delta", "1e-6", "--zeta", "0.3"),
        *("--low", "-5", "--high", "20", "--tries", "3", "-o", str(path)),
    )
    assert done.returncode == 0, done.stderr
    file = load(path)
    top = file.problem.max_value
    error = 200 / (4 * top**2) + file.error.mse / top**2
    assert error <= 2 / 0.7**2 * (1 + 1e-9)
    assert "real in [-5, 20]" in done.stdout
    randomize = "randomize", str(path), "--value", "20"
    known = run(*randomize)
    assert known.returncode == 0, known.stderr
    assert "21.0 is not in [-5.0, 20.0]" in run(*randomize[:-1], "21").stderr
    for given in (("--low", "0"), ("--low", "0", "--high", "1"), ("--high", "1")):
        wrong = run(*randomize, *given)
        assert wrong.returncode == 2
        assert "made for real values in [-5, 20]" in wrong.stderr
    symbols = tmp_path / "symbols"
    symbols.write_text(known.stdout)
    analyze = "analyze", str(path), str(symbols), "--users", "1", "--allow-few"
    answers = [run(*analyze, *given) for given in ((), ("--low", "-5", "--high", "20"))]
    assert answers[0].stdout == answers[1].stdout != ""
    assert run(*analyze, "--high", "7").returncode == 2


def test_the_rounding_meets_its_error() -> None:
    problem = RealTarget.of(
        Problem(n=10_000, eps=1.0, delta=1e-6, max_value=1), zeta=0.2, max_rmse=None
    )
    least = problem.coarsest()
    assert problem.eps_central(least) <= 0.99
    assert problem.eps_central(least - 1) > 0.99
    for size in (least, 2 * least, 5 * least):
        step = problem.eps_central(size) / size
        total = 10_000 / (4 * size**2) + 0.5 / math.sinh(step / 2) ** 2 / size**2
        assert total == pytest.approx(problem.mse, rel=1e-9)
    with pytest.raises(InvalidParameter, match="out of reach"):
        RealTarget.of(
            Problem(n=10**9, eps=1.0, delta=1e-6, max_value=1), zeta=0.01, max_rmse=None
        ).coarsest()
    with pytest.raises(InvalidParameter, match="one of zeta, max_rmse and max_error_ratio"):
        RealTarget.of(Problem(n=10, eps=1.0, delta=1e-6, max_value=1), zeta=None, max_rmse=None)


@pytest.mark.parametrize("ratio", [1.05, 2.0])
def test_an_error_in_units_of_the_central_one(ratio: float) -> None:
    request = Request(n=1000, eps=1.0, delta=1e-6, max_value=2, max_error_ratio=ratio, tries=1)
    found = generate(request).file
    assert found.error.rmse_over_central <= ratio
    assert found.error.rmse_over_central >= 0.7 * ratio  # not far below what is allowed


@pytest.mark.slow
def test_several_releases_are_compared_with_the_central_mechanism_for_as_many() -> None:
    request = Request(n=1000, eps=1.0, delta=1e-6, max_value=1, releases=10, tries=1)
    file = generate(request).file
    expected = ExpectedCost.of_file(file)
    ratio = expected.over_central
    assert ratio is not None
    assert 1 < ratio < 1.2  # a fraction of 0.9
    assert file.error.rmse_over_central > 5  # one release at the same eps: what the format says
    assert f"{ratio:.4g} times the central one for as many releases" in expected.error_in_words()


@pytest.mark.parametrize("more", [{}, {"dimension": 20}, {"honest": 0.5}, {"releases": 2}])
def test_a_large_error_of_bits(more: dict[str, Any]) -> None:
    """There is only one family to choose from."""
    made = generate(Request(n=1000, eps=1.0, delta=1e-6, max_value=1, max_rmse=30.0, **more))
    assert made.file.error.rmse <= 30
    usual = generate(Request(n=1000, eps=1.0, delta=1e-6, max_value=1, **more))
    assert made.file.cost.noise_messages < usual.file.cost.noise_messages


@pytest.mark.slow
def test_a_front_of_errors(tmp_path: Path) -> None:
    front = tmp_path / "front"
    points = ("--max-error-ratio", "1.5", "--fraction", "0.9", "--max-error-ratio", "3")
    done = run(
        "pareto", *PROBLEM, "--max-value", "2", *points, "--tries", "1", "-o", front, "--json"
    )
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)["points"]
    assert [row["max_error_ratio"] for row in rows] == [3, 1.5, None]
    for row in rows[:2]:
        assert row["rmse_over_central"] <= row["max_error_ratio"] * (1 + 1e-9)
    assert rows[0]["noise_messages"] < rows[1]["noise_messages"] < rows[2]["noise_messages"]
    assert len(list(front.iterdir())) == 3
    for wrong in ("1", "1.0001", "0", "nan"):
        done = run("pareto", *PROBLEM, "--max-value", "2", "--max-error-ratio", wrong)
        assert done.returncode == 2
        assert "error ratio" in done.stderr or "--max-error-ratio" in done.stderr


def test_only_one_error_may_be_given() -> None:
    for other in ({"max_rmse": 3.0}, {"central_fraction": 0.5}):
        with pytest.raises(InvalidParameter, match="not several"):
            Request(n=10, eps=1.0, delta=1e-6, max_value=2, max_error_ratio=2.0, **other)  # type: ignore[arg-type]  # one of them


def test_a_search_that_ran_out_of_time_in_the_middle_says_so() -> None:
    """Whichever part of it the time ended, and whatever was left at the end."""
    budget = Budget(seconds=1e-9)
    assert budget.spent(0.35)
    assert budget.cut
    fresh = Budget(seconds=1e9)
    assert not fresh.spent(0.35)
    assert not fresh.cut
    request = Request(n=1000, eps=1.0, delta=1e-6, max_value=12, cold=True, budget=0.5)
    made = generate(request)
    assert made.cut_short
    assert made.file.provenance.settings["ended_by"] == "budget"


def test_the_paper_beside_real_values_is_its_theorem() -> None:
    problem = Problem(n=10_000, eps=1.0, delta=1e-6, max_value=1)
    target = RealTarget.of(problem, zeta=0.25, max_rmse=None)
    paper = target.of_the_paper()
    assert paper.max_value == 100  # ceil(1/2 sqrt(10,000 / 0.25))
    own = Target(replace(problem, max_value=100), target.eps_central(100))
    noise = theorem(own)
    messages = sum(len(a.elements) * a.noise.mean for a in noise.atoms)
    messages += 2 / math.expm1(own.step)
    assert abs(paper.messages / (1 + messages / 10_000) - 1) < 1e-9
    assert paper.bits == 8 * paper.messages  # 200 values and signs


@pytest.mark.slow
def test_bursts_do_not_begin_with_the_noise_of_a_negative_binomial() -> None:
    """Was: the noise of the shipped file led to noise beyond every table."""
    request = Request(
        n=10**6, eps=1.0, delta=1e-6, max_value=50, noise="burst", tries=1, tier="fast"
    )
    assert generate(request).file.cost.noise_messages < 51_500
