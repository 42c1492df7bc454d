"""Every command with noise in bursts, and what it says of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from program import run

from paramsearch import Query, Table, load

PROBLEM = ("--n", 10_000, "--eps", 1, "--delta", 1e-6)
ONE = (*PROBLEM, "--max-value", 1)
WORDS = "1 atom of 2 messages, in bursts (m = "


def answer(*arguments: object) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(run(*arguments, "--json").stdout)
    return found


@pytest.fixture(scope="module")
def burst(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("files") / "burst.json"
    made = run("generate", *ONE, "--noise", "burst", "--tries", 1, "-o", path)
    assert made.returncode == 0, made.stderr
    assert WORDS in made.stdout
    return path


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("table")
    grid = place / "grid.toml"
    laws = 'noise = ["negative-binomial", "burst"]'
    grid.write_text(f"eps = [1]\ndelta = [1e-6]\nmax_value = [1]\ntries = 1\n{laws}\n")
    made = run("table", grid, "-o", place / "both", "--workers", 1)
    assert made.returncode == 0, made.stderr
    return place / "both"


def test_fewer_messages(burst: Path) -> None:
    file = load(burst)
    assert file.format == "correlated-noise-parameters/5"
    assert file.provenance.settings["noise"] == "burst"
    assert file.cost.noise_messages < 480  # negative binomials take 599


def test_proofs(burst: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    found = run("audit", burst, "--report", page)
    assert found.returncode == 0
    assert WORDS in found.stdout
    assert "bursts, m = " in page.read_text(encoding="utf-8")
    assert answer("audit", burst)["noise_laws"] == ["burst"]
    assert run("audit", burst, "--tier", "fast").returncode == 0
    assert run("audit", burst, "--delta", 1e-7, "--verdict-only").returncode == 1
    assert run("certify", burst, "-o", tmp_path / "again.json").returncode == 0
    assert run("rescale", burst, "--n", 77, "-o", tmp_path / "few.json").returncode == 0
    assert load(tmp_path / "few.json").noise == "burst"
    assert run("profile", burst, "--gap", 1e-5).returncode == 0
    together = answer("compose", f"{burst}:2", "--delta", 1e-6)
    assert together["eps_upper"] > together["eps_lower"] > 1


def test_only_files_of_the_same_law_are_resumed(burst: Path) -> None:
    before = burst.read_bytes()
    refused = run("generate", *ONE, "--tries", 1, "--resume", "-o", burst)
    assert refused.returncode == 2
    assert "has noise = burst, not negative-binomial" in refused.stderr
    assert burst.read_bytes() == before


def test_searches(tmp_path: Path) -> None:
    sparse = tmp_path / "sparse.json"
    common = ("--noise", "burst", "--tries", 1)
    made = run("generate-sparse", *PROBLEM, "--dimension", 10, *common, "-o", sparse)
    assert made.returncode == 0, made.stderr
    assert (load(sparse).noise, load(sparse).dimension) == ("burst", 10)
    real = tmp_path / "real.json"
    asked = ("--n", 100, "--eps", 1, "--delta", 1e-6, "--zeta", 0.5)
    made = run("generate-real", *asked, *common, "-o", real)
    assert made.returncode == 0, made.stderr
    assert load(real).noise == "burst"
    assert ", in bursts (m = " in made.stdout
    front = run("pareto", *ONE, "--fraction", 0.5, *common, "-o", tmp_path / "front")
    assert front.stdout.startswith("noise in bursts\n")
    names = [path.name for path in (tmp_path / "front").iterdir()]
    assert names == ["1-1-1e-06-central-0.5-burst.json"]


def test_both_side_by_side() -> None:
    both = ("--noise", "negative-binomial", "--noise", "burst")
    rows = answer("compare", *ONE, *both, "--tries", 1)["mechanisms"]
    names = [row["mechanism"] for row in rows]
    assert names[-2:] == ["correlated noise, ours", "correlated noise, ours, bursts"]
    assert len(set(names)) == len(names)
    assert rows[-1]["messages_per_user"] < rows[-2]["messages_per_user"]


@pytest.mark.parametrize("command", ["generate", "pareto", "lookup", "compare"])
def test_an_unknown_law_is_refused(command: str) -> None:
    found = run(command, *ONE, "--noise", "poisson")
    assert found.returncode == 2
    assert "--noise = 'poisson'; known: negative-binomial, burst" in found.stderr


def test_the_paper_has_no_bursts(tmp_path: Path) -> None:
    path = tmp_path / "file.json"
    found = run("generate", *ONE, "--noise", "burst", "--method", "theorem", "-o", path)
    assert found.returncode == 2
    assert "has negative binomial noise" in found.stderr
    assert not path.exists()


def test_the_shipped_table_has_none() -> None:
    found = run("lookup", *ONE, "--noise", "burst")
    assert found.returncode == 2
    assert "no file in the table has this law" in found.stderr
    assert "--noise burst -o FILE" in found.stderr


@pytest.mark.slow
def test_a_table_of_both_laws(table: Path, tmp_path: Path) -> None:
    names = sorted(path.name for path in (table / "files").iterdir())
    assert names == ["1-1-1e-06-0.9-burst.json", "1-1-1e-06-0.9.json"]
    assert run("audit-table", table).returncode == 0
    cheapest = run("lookup", table, *ONE)
    assert WORDS in cheapest.stdout
    assert "format 5" in cheapest.stdout
    output = tmp_path / "plain.json"
    plain = run("lookup", table, *ONE, "--noise", "negative-binomial", "-o", output)
    assert "bursts" not in plain.stdout
    assert load(output).format == "correlated-noise-parameters/1"
    said = answer("lookup", table, *ONE)
    assert (said["request"]["noise"], said["found"]["noise"]) == (None, "burst")
    assert said["generate"].endswith("--noise burst")
    page = tmp_path / "page.html"
    assert run("explore", table, "-o", page).returncode == 0
    assert '"noise":"burst"' in page.read_text(encoding="utf-8").replace(" ", "")


def test_the_start_of_a_search_is_of_the_same_law(table: Path) -> None:
    opened = Table.open(table)
    near = {"eps": 1.0, "delta": 1e-6, "max_value": 1, "central_fraction": 0.9}
    for law in ("negative-binomial", "burst"):
        found = opened.nearest(**near, noise=law)  # type: ignore[arg-type]
        assert found is not None
        assert found.noise == law
        row = opened.lookup(Query(n=10, eps=1.0, delta=1e-6, max_value=1, noise=law)).row  # type: ignore[arg-type]
        assert row.noise == law


@pytest.mark.parametrize("entry", ['"poisson"', "[]", '["burst", "burst"]', "1"])
def test_a_grid_with_another_law_is_refused(entry: str, tmp_path: Path) -> None:
    grid = tmp_path / "grid.toml"
    grid.write_text(f"eps = [1]\ndelta = [1e-6]\nmax_value = [1]\nnoise = {entry}\n")
    found = run("table", grid, "-o", tmp_path / "table")
    assert found.returncode == 2
    assert "noise" in found.stderr
    assert not (tmp_path / "table").exists()
