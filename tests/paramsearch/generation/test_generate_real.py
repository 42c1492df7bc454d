"""generate-real: what it needs is said at once, its options are those of generate, one error."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest
from program import run

from accounting import InvalidParameter, Undecided
from accounting.model.costs import discrete_laplace_variance
from paramsearch import RealRequest, audit, generate_real, load
from paramsearch.parameters.expected_cost import ExpectedCost
from paramsearch.parameters.real_range import real_error, stated_range

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
