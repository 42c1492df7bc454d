"""generate-real: what it needs is said at once, its options are those of generate, one error."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest
from places import EXAMPLES
from program import run

from accounting import InvalidParameter, Undecided
from accounting.model.costs import discrete_laplace_variance
from paramsearch import RealRequest, audit, generate_real, load
from paramsearch.parameters.claim import Claim
from paramsearch.parameters.expected_cost import ExpectedCost
from paramsearch.parameters.real_range import real_error, stated_range
from paramsearch.parameters.words import changes_in_words, file_claim_in_words

PROBLEM = ("--n", "200", "--eps", "1", "--delta", "1e-6")


def test_a_budget_that_is_far_too_small_is_refused_at_once() -> None:
    """The words name the least max_value; the search itself would take minutes."""
    done = run(
        *("generate-real", "--n", "2000000", "--eps", "1", "--delta", "1e-8"),
        *("--max-rmse", "1.5", "--budget", "60", "--json"),
    )
    assert done.returncode == 3
    assert "max_value >= 1,546" in done.stderr
    assert "bits per user" in done.stderr
    assert "give --budget" in done.stderr
    assert json.loads(done.stdout)["failure"]["exit_code"] == 3


@pytest.mark.slow
def test_the_error_is_in_the_units_of_the_values(tmp_path: Path) -> None:
    path = tmp_path / "file.json"
    arguments = (
        *("generate-real", *PROBLEM, "--max-error-ratio", "1.5", "--low", "-2", "--high", "5"),
        *("--honest", "0.9", "--tries", "1", "-o", str(path)),
    )
    done = run(*arguments)
    assert done.returncode == 0, done.stderr
    file = load(path)
    assert stated_range(file) == (-2.0, 5.0)
    assert file.problem.honest == 0.9
    error = real_error(file)
    assert error is not None
    top = file.problem.max_value
    noise = discrete_laplace_variance(file.central.eps_central / top) / 0.9
    truth = 7 / top * math.sqrt(200 / 4 + noise)
    assert abs(error.total - truth) <= 1e-9 * truth
    assert error.total <= 1.5 * 7 * math.sqrt(2) * (1 + 1e-9)
    assert ExpectedCost.of_file(file).error_in_words() in done.stdout
    assert done.stdout.count("RMSE") == 1
    assert done.stdout.count("bits per user") == 1
    audited = run("audit", str(path), "--tier", "fast")
    assert audited.returncode == 0, audited.stderr
    assert f"real in [-2, 5], rounded at random to {top} steps" in audited.stdout
    assert ExpectedCost.of_file(file).error_in_words() in audited.stdout
    again = run(*arguments, "--resume")
    assert again.returncode == 0, again.stderr
    resumed = load(path)
    assert resumed.problem == file.problem
    assert resumed.cost.bits_per_user <= file.cost.bits_per_user
    other = run(*arguments[:8], "1.2", *arguments[9:], "--resume")
    assert other.returncode == 2
    assert "give the error it was made with" in other.stderr


@pytest.mark.slow
def test_several_releases_have_the_central_mechanism_of_as_many() -> None:
    request = RealRequest(n=50, eps=1.0, delta=1e-6, max_error_ratio=1.6, releases=2, tries=1)
    made = generate_real(request)
    assert made.file.problem.releases == 2
    assert not made.file.problem.same_change
    assert made.file.central.eps_central < 0.5
    assert made.paper is None
    assert audit(made.file).verdict == "certified"
    assert "for as many releases" in ExpectedCost.of_file(made.file).error_in_words()


@pytest.mark.parametrize(
    "wrong",
    [
        {"zeta": 0.25, "max_rmse": 3.0},
        {"zeta": 1.0},
        {"max_error_ratio": 1.0},
        {"max_rmse": 1.0},
        {"zeta": 0.25, "low": 1.0},
        {"zeta": 0.25, "honest": 0.0},
        {"zeta": 0.25, "budget": 0.0},
        {"zeta": 0.25, "tries": 0},
    ],
)
def test_a_request_refuses_at_once_what_cannot_be(wrong: dict[str, float]) -> None:
    with pytest.raises(InvalidParameter):
        RealRequest(n=10_000, eps=1.0, delta=1e-6, **wrong)  # type: ignore[arg-type]  # on purpose


def test_what_cannot_be_resumed() -> None:
    request = RealRequest(n=50, eps=1.0, delta=1e-6, zeta=0.4, tries=1)
    made = generate_real(request)
    file = made.file
    error = real_error(file)
    assert error is not None
    assert f"RMSE {file.error.rmse:.6g} in steps of the rounding" in repr(file)
    assert repr(made).endswith(f"RMSE at most {error.total:.6g} of the sum of the values>")
    with pytest.raises(InvalidParameter, match="values in"):
        generate_real(replace(request, low=-1.0), resume=file)
    settings = {**file.provenance.settings}
    del settings["low"]
    provenance = file.provenance.model_copy(update={"settings": settings})
    with pytest.raises(InvalidParameter, match="not for real values"):
        generate_real(request, resume=file.model_copy(update={"provenance": provenance}))


def test_a_budget_is_checked_before_the_search() -> None:
    request = RealRequest(n=10**6, eps=1.0, delta=1e-6, zeta=0.25, budget=5.0)
    lines: list[str] = []
    with pytest.raises(Undecided, match="give --budget"):
        generate_real(request, announce=lines.append)
    assert "max_value >= " in lines[0]


def test_the_coarsest_rounding_may_be_one_step() -> None:
    request = RealRequest(n=100, eps=0.1, delta=1e-3, max_error_ratio=2.0, tries=1)
    assert request.target.coarsest() == 1
    made = generate_real(request)
    expected = ExpectedCost.of_file(made.file)
    assert expected.over_central is not None
    assert expected.over_central <= 2.0 * (1 + 1e-9)  # in units of the Laplace mechanism
    assert made.file.certificate is not None


def test_a_range_whose_sums_are_no_numbers_has_no_error() -> None:
    file = generate_real(RealRequest(n=50, eps=1.0, delta=1e-6, zeta=0.4, tries=1)).file
    settings = {**file.provenance.settings, "high": 1.7e308}
    provenance = file.provenance.model_copy(update={"settings": settings})
    assert real_error(file.model_copy(update={"provenance": provenance})) is None


OF_VALUES = EXAMPLES / "same_change_of_values.json"
"""Made for two releases by a version that did not refuse the combination."""


def test_the_same_change_of_real_values_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidParameter, match="rounds them afresh"):
        RealRequest(n=50, eps=1.0, delta=1e-6, zeta=0.4, releases=2, same_change=True)
    path = tmp_path / "file.json"
    asked = ("--zeta", "0.4", "--releases", "2", "--same-change", "-o", str(path))
    done = run("generate-real", *PROBLEM, *asked)
    assert (done.returncode, done.stdout, path.exists()) == (2, "", False)
    assert "rounds them afresh" in done.stderr
    assert "leave it out, which asks for every change" in done.stderr
    assert "--same-change" not in run("generate-real", "--help").stdout


@pytest.mark.parametrize("command", ["audit", "profile"])
def test_the_same_change_is_not_asked_about_files_for_real_values(command: str) -> None:
    done = run(command, str(OF_VALUES), "--releases", "3", "--same-change")
    assert (done.returncode, done.stdout) == (2, "")
    assert "rounds them afresh" in done.stderr
    with pytest.raises(InvalidParameter, match="rounds them afresh"):
        Claim.of(load(OF_VALUES), releases=3, same_change=True)


def test_an_old_file_for_the_same_change_of_real_values_says_what_it_covers(
    tmp_path: Path,
) -> None:
    file = load(OF_VALUES)
    assert file.problem.same_change
    assert "the same change of the rounded integers in each" in str(file)
    words = "the value itself is not covered, since every release rounds it afresh"
    assert words in file_claim_in_words(file)
    found = audit(file)
    assert (found.verdict, found.confirmed, found.rounded) == ("certified", True, True)
    assert words in repr(found)
    for command in ("audit", "profile"):
        assert words in run(command, str(OF_VALUES)).stdout
        assert json.loads(run(command, str(OF_VALUES), "--json").stdout)["rounded"]
    # the changes of the rounded integers are different ones, which it was not made for
    assert audit(file, Claim.of(file, releases=2), explain=False).verdict == "violated"
    page = tmp_path / "page.html"
    assert run("audit", str(OF_VALUES), "--report", str(page)).returncode == 0
    assert page.read_text(encoding="utf-8").count("every release rounds it afresh") == 2
    sent = run("randomize", str(OF_VALUES), "--value", "0.3")
    assert sent.returncode == 0
    assert "real values are rounded afresh in each and not covered" in sent.stderr


def test_nothing_new_is_certified_for_the_same_change_of_real_values(tmp_path: Path) -> None:
    path = tmp_path / "file.json"
    for command in (("rescale", "--n", "60"), ("certify",)):
        done = run(command[0], str(OF_VALUES), *command[1:], "-o", str(path))
        assert (done.returncode, path.exists()) == (2, False)
        assert "paramsearch generate-real --releases 2 makes a file that covers it" in done.stderr


def test_other_files_speak_of_rounding_where_they_are_rounded_only() -> None:
    integers = load(EXAMPLES / "same_change_3_2_1e-6.json")
    assert "round" not in file_claim_in_words(integers)
    assert not audit(integers, explain=False).rounded
    for adjacency in ("substitution", "zero-out"):
        told = changes_in_words(2, same_change=True, adjacency=adjacency, rounded=True)
        assert "rounded" in told
        for same in ({"releases": 2, "same_change": False}, {"releases": 1, "same_change": False}):
            plain = changes_in_words(**same, adjacency=adjacency)
            assert changes_in_words(**same, adjacency=adjacency, rounded=True) == plain
