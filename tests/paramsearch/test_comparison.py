"""Comparisons for vectors, several releases and fewer honest users; when rows are printed."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
import typer
from program import run

from accounting import InvalidParameter
from accounting.baselines import (
    DiscreteLaplace,
    FragmentedRappor,
    Laplace,
    NonPrivate,
    RandomizedResponse,
    SplitAndMix,
)
from accounting.model.costs import central_rmse
from accounting.model.problem import Problem
from paramsearch import Generated, Request, compare, load
from paramsearch.cli.searching.compare import compare as compare_command
from paramsearch.comparison import other_mechanisms, published_noise
from paramsearch.tables.lookup import shipped_folder

PLAIN: dict[str, Any] = {"n": 100_000, "eps": 1.0, "delta": 1e-6, "max_value": 5}


def rows(**changes: Any) -> dict[str, Any]:
    found = other_mechanisms(Request(**{**PLAIN, **changes}))
    return {row.mechanism: row for row in found.rows}


def left_out(**changes: Any) -> list[str]:
    return [
        reason.split(":")[0]
        for reason in other_mechanisms(Request(**{**PLAIN, **changes})).left_out
    ]


def test_a_vector_has_the_error_of_each_coordinate_at_half_of_eps() -> None:
    problem = Problem(**{**PLAIN, "dimension": 10})
    half = Problem(**{**PLAIN, "eps": 0.5})
    assert DiscreteLaplace(problem).mse == pytest.approx(DiscreteLaplace(half).mse, rel=1e-12)
    assert Laplace(problem).mse == pytest.approx(Laplace(half).mse, rel=1e-12)
    assert NonPrivate(problem).bits == 6  # one of 50
    mixed, alone = SplitAndMix(problem), SplitAndMix(half)
    assert mixed.mse == pytest.approx(alone.mse, rel=1e-12)
    assert mixed.messages >= 10 * alone.messages
    assert mixed.bits == mixed.messages * (mixed.bits_per_number + 4)


def test_rappor_flips_every_position_of_a_vector() -> None:
    problem = Problem(**{**PLAIN, "dimension": 10})
    found, number = FragmentedRappor(problem), FragmentedRappor(Problem(**PLAIN))
    assert found.flip == number.flip  # the change moves one position, as before
    assert found.mse == number.mse
    assert found.messages == pytest.approx(1 - found.flip + 49 * found.flip, rel=1e-12)


@pytest.mark.parametrize(("top", "dimension"), [(1, 3), (4, 1), (3, 5)])
def test_the_error_of_randomized_response_in_a_coordinate(top: int, dimension: int) -> None:
    """Of one user with 0 or max_value there, by its definition."""
    found = RandomizedResponse(
        Problem(n=1000, eps=1.0, delta=1e-3, max_value=top, dimension=dimension)
    )
    g, count = found.chance, dimension * top + 1
    seen = np.zeros(count)  # the value in the coordinate that each message stands for
    seen[1 : top + 1] = np.arange(1, top + 1)
    variances = []
    for value in (0, top):
        law = np.full(count, g / count)
        law[value] += 1 - g
        variances.append(law @ seen**2 - (law @ seen) ** 2)
    assert found.mse == pytest.approx(1000 * max(variances) / (1 - g) ** 2, rel=1e-9)


def test_several_releases_share_eps_by_composition() -> None:
    found = rows(releases=10)
    central = found["discrete Laplace (central)"]
    assert central.rmse == pytest.approx(central_rmse(Problem(**PLAIN, releases=10)), rel=1e-9)
    assert central.rmse > 3 * rows()["discrete Laplace (central)"].rmse
    assert "(eps, delta / 2)" in central.guarantee
    assert set(found) == {"non-private", "discrete Laplace (central)", "IKOS split and mix"}
    assert left_out(releases=10) == [
        "Laplace (central)",
        "fragmented RAPPOR",
        "randomized response",
        "correlated noise, the paper's",
    ]
    assert "Laplace (central)" in rows(releases=2)  # eps / 2 each
    for kind in (FragmentedRappor, RandomizedResponse):
        with pytest.raises(InvalidParameter, match="one release"):
            kind(Problem(**PLAIN, releases=2))


def test_the_noise_of_the_honest_suffices() -> None:
    all_users, half = rows(), rows(honest=0.5)
    for name in ("non-private", "discrete Laplace (central)"):
        assert half[name] == all_users[name]  # a trusted party needs nobody's noise
    for name in ("IKOS split and mix", "correlated noise, paper's theorem"):
        assert half[name].rmse == pytest.approx(math.sqrt(2) * all_users[name].rmse, rel=1e-9)
        assert half[name].messages_per_user >= all_users[name].messages_per_user
    noise = [rows["correlated noise, paper's refined"] for rows in (all_users, half)]
    assert noise[1].messages_per_user - 1 == pytest.approx(2 * (noise[0].messages_per_user - 1))
    alone = Problem(**{**PLAIN, "n": 50_000})
    both = FragmentedRappor(Problem(**PLAIN, honest=0.5))
    assert both.flip == FragmentedRappor(alone).flip
    assert both.mse == pytest.approx(2 * FragmentedRappor(alone).mse)
    chance = RandomizedResponse(Problem(**PLAIN, honest=0.5)).chance
    assert chance == RandomizedResponse(alone).chance
    assert left_out(n=10, honest=0.1)  # only one is honest: nothing to hide among


def test_the_paper_splits_eps_and_delta_between_two_coordinates() -> None:
    vectors = Problem(**{**PLAIN, "dimension": 7})
    half = Problem(**{**PLAIN, "eps": 0.5, "delta": 5e-7})
    for found, each in zip(
        published_noise(vectors, central_fraction=0.9),
        published_noise(half, central_fraction=0.9),
        strict=True,
    ):
        assert found.mse == each.mse
        assert found.noise_messages == pytest.approx(7 * each.noise_messages, rel=1e-12)


def test_an_allowed_error_is_not_exceeded_by_the_paper() -> None:
    for allowed in ({"max_rmse": 12.0}, {"max_error_ratio": 12.0 / central_rmse(Problem(**PLAIN))}):
        for name, row in rows(**allowed).items():
            assert "paper" not in name or row.rmse <= 12 * (1 + 1e-9)
    with pytest.raises(InvalidParameter, match=r"max_error_ratio = 1\.0001 is out of reach"):
        other_mechanisms(Request(**PLAIN, max_error_ratio=1.0001))
    with pytest.raises(InvalidParameter, match="at least 2"):
        compare(Request(**{**PLAIN, "n": 1}))
    with pytest.raises(InvalidParameter, match="compared anyway"):
        compare(Request(**PLAIN, method="theorem"))


def test_two_users_are_too_few_for_one_mechanism_only() -> None:
    assert left_out(n=2) == ["IKOS split and mix"]


def test_the_file_of_the_package_is_for_the_number_of_users() -> None:
    found = compare(Request(**{**PLAIN, "n": 1234}))
    assert found.file is not None
    assert found.file.problem.n == 1234
    assert found.rows[-1].messages_per_user == found.file.cost.messages_per_user
    assert not found.interrupted


def test_the_others_are_printed_before_the_search(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    known = load(shipped_folder() / "files" / "5-1-1e-06-0.9.json")
    printed = []

    def search(*_: Any, **__: Any) -> Generated:
        printed.append(capsys.readouterr().out)
        return Generated(known, None, ())

    monkeypatch.setattr("paramsearch.comparison.generate", search)
    compare_command(n=1000, eps=1.03, delta=1e-6, max_value=5)
    assert "paper's refined" in printed[0]
    assert "ours" not in printed[0]
    assert capsys.readouterr().out.startswith("correlated noise, ours")
    compare_command(n=1000, eps=1.03, delta=1e-6, max_value=5, as_json=True)
    assert printed[1] == ""
    assert json.loads(capsys.readouterr().out)["left_out"] == []


def test_an_interrupted_comparison_says_so(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    known = load(shipped_folder() / "files" / "5-1-1e-06-0.9.json")
    cut_short = Generated(known, None, (), interrupted=True)
    monkeypatch.setattr("paramsearch.comparison.generate", lambda *_, **__: cut_short)
    with pytest.raises(typer.Exit) as ended:
        compare_command(n=1000, eps=1.03, delta=1e-6, max_value=5, as_json=True)
    assert ended.value.exit_code == 130
    said = capsys.readouterr()
    assert json.loads(said.out)["interrupted"] is True
    assert "cut short" in said.err


@pytest.mark.slow
def test_the_command_for_vectors_and_releases() -> None:
    problem = ("--n", "1000", "--eps", "1", "--delta", "1e-6", "--max-value", "1")
    done = run("compare", *problem, "--dimension", "4", "--releases", "2", "--tries", "1")
    assert done.returncode == 0, done.stderr
    assert "the error is that of each coordinate" in done.stdout
    assert "left out: fragmented RAPPOR" in done.stdout
    assert done.stdout.index("non-private") < done.stdout.index("ours") < done.stdout.index("left")
    done = run("compare", *problem, "--honest", "0.5", "--max-error-ratio", "2", "--json")
    (line,) = done.stdout.splitlines()
    found = {row["mechanism"]: row for row in json.loads(line)["mechanisms"]}
    central = found["discrete Laplace (central)"]["rmse"]
    assert found["correlated noise, ours"]["rmse"] <= 2 * central * (1 + 1e-9)
