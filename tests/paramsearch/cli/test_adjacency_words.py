"""Every command that prints a claim says its adjacency."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from program import run

from paramsearch import load

PROBLEM = ("--n", 10_000, "--eps", 1, "--delta", 1e-6)
HISTOGRAM = (*PROBLEM, "--dimension", 100, "--tries", 1)
WORDS = "one user's input present or absent (zero-out)"


@pytest.fixture(scope="module")
def zero_out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("files") / "zero-out.json"
    made = run("generate-sparse", *HISTOGRAM, "--adjacency", "zero-out", "-o", path)
    assert made.returncode == 0, made.stderr
    assert f"for {WORDS}" in made.stdout
    assert "its theorem in each coordinate" in made.stdout
    return path


@pytest.fixture(scope="module")
def substitution(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("files") / "substitution.json"
    made = run("generate-sparse", *HISTOGRAM, "-o", path)
    assert "for one changed input" in made.stdout
    return path


def answer(*arguments: object) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(run(*arguments, "--json").stdout)
    return found


def test_a_histogram_has_half_the_error(zero_out: Path, substitution: Path) -> None:
    one, two = load(zero_out), load(substitution)
    assert (round(one.error.rmse, 2), round(two.error.rmse, 2)) == (1.52, 3.12)
    assert 595 < one.cost.noise_messages / 100 < 605
    assert 550 < two.cost.noise_messages / 100 < 558


@pytest.mark.slow
def test_audits(zero_out: Path, substitution: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    found = run("audit", zero_out, "--report", page)
    assert found.returncode == 0
    assert WORDS in found.stdout
    assert "\nadjacency" not in found.stdout
    text = page.read_text(encoding="utf-8")
    assert "zero-out: one user’s input becomes the empty vector" in text
    assert "or put it in where there was none" in text
    other = run("audit", zero_out, "--adjacency", "substitution", "--verdict-only")
    assert other.returncode == 1
    assert "for one changed input" in other.stdout
    assert "the file is for zero-out, which does not cover it" in other.stdout
    asked = run("audit", substitution, "--adjacency", "zero-out", "--report", page)
    assert asked.returncode == 0
    assert "the file is for substitution, which covers it" in asked.stdout
    assert "the file says adjacency = substitution" in page.read_text(encoding="utf-8")
    assert answer("audit", zero_out)["adjacency"] == "zero-out"
    assert answer("audit", substitution)["adjacency"] == "substitution"
    assert answer("audit", substitution, "--adjacency", "zero-out")["adjacency"] == "zero-out"


@pytest.mark.slow
def test_profiles_and_certificates(zero_out: Path, tmp_path: Path) -> None:
    found = run("profile", zero_out, "--gap", 1e-4)
    assert WORDS in found.stdout
    assert "all 2 changes between none and a value in 0..1" in found.stdout
    assert answer("profile", zero_out)["adjacency"] == "zero-out"
    assert answer("profile", zero_out, "--adjacency", "substitution")["verdict"] == "violated"
    atoms = [{"atom": [-1, 1], "r": 12.0, "p": 0.985}, {"atom": [-1, -1, 2], "r": 12.0, "p": 0.98}]
    config = tmp_path / "config.json"
    numbers = {"max_value": 2, "eps": 1.0, "delta": 1e-6, "n": 1000, "eps_central": 0.9}
    config.write_text(json.dumps({**numbers, "atoms": atoms}))
    refused = run("profile", config, "--adjacency", "zero-out", "--pair", 2, 1)
    assert refused.returncode == 2
    assert "under zero-out an input becomes 0" in refused.stderr
    output = tmp_path / "made.json"
    made = run("certify", config, "--adjacency", "zero-out", "-o", output)
    assert f"for {WORDS}" in made.stdout
    assert load(output).problem.adjacency == "zero-out"
    refused = run("certify", output, "--adjacency", "substitution", "-o", tmp_path / "other.json")
    assert refused.returncode == 2
    assert "--adjacency cannot change what a parameter file claims" in refused.stderr
    assert f"for {WORDS}" in run("rescale", output, "--n", 50, "-o", tmp_path / "few.json").stdout


def test_a_file_of_the_other_adjacency_is_not_resumed(zero_out: Path) -> None:
    before = zero_out.read_bytes()
    refused = run("generate-sparse", *HISTOGRAM, "--resume", "-o", zero_out)
    assert refused.returncode == 2
    assert "has adjacency = zero-out, not substitution" in refused.stderr
    assert zero_out.read_bytes() == before


@pytest.mark.slow
def test_both_side_by_side() -> None:
    both = ("--adjacency", "substitution", "--adjacency", "zero-out")
    found = run("compare", *HISTOGRAM, "--max-value", 1, *both).stdout.splitlines()
    ours = [line.split() for line in found if line.startswith("correlated noise, ours")]
    assert [line[3] for line in ours] == ["3.1163", "1.5195"]
    assert [line[7] for line in ours] == ["substitution", "zero-out"]
    rows = answer("compare", *HISTOGRAM, "--max-value", 1, *both)["mechanisms"]
    errors = {(row["mechanism"], row["adjacency"]): row["rmse"] for row in rows}
    assert len(errors) == len(rows)
    for mechanism in {row["mechanism"] for row in rows} - {"non-private"}:
        zero_out, substitution = (
            errors[mechanism, adjacency] for adjacency in ("zero-out", "substitution")
        )
        assert zero_out <= substitution
    assert errors["Laplace (central)", "zero-out"] == pytest.approx(2**0.5)
    assert errors["Laplace (central)", "substitution"] == pytest.approx(2 * 2**0.5)
    plain = run("compare", *PROBLEM, "--max-value", 2).stdout
    assert "adjacency" not in plain


@pytest.mark.parametrize("command", ["generate", "pareto", "lookup", "compare"])
def test_an_unknown_adjacency_is_refused(command: str) -> None:
    found = run(command, *PROBLEM, "--max-value", 2, "--adjacency", "add-remove")
    assert found.returncode == 2
    assert "--adjacency = 'add-remove'; known: substitution, zero-out" in found.stderr


def test_points_of_a_front_say_it(tmp_path: Path) -> None:
    common = (*PROBLEM, "--max-value", 2, "--fraction", 0.5, "--tries", 1)
    found = run("pareto", *common, "--adjacency", "zero-out", "-o", tmp_path)
    assert f"certified for {WORDS}" in found.stdout
    assert [path.name for path in tmp_path.iterdir()] == ["2-1-1e-06-central-0.5-zero-out.json"]
