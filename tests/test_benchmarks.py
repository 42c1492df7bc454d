"""Every benchmark runs, in its smallest setting, outside the clone and with the package alone."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from places import ROOT

FIGURES, RESULTS = "paper/figures.py", "results.py"
SLOW = {"tables.py"}
"""Scripts whose smallest setting still takes half a minute."""
WITH_FOLDERS = {FIGURES, RESULTS}
"""Scripts that write into a folder, which have tests of their own."""


def scripts() -> list[str]:
    """The scripts of the folder; the other modules are what they share."""
    folder = ROOT / "benchmarks"
    return sorted(
        str(path.relative_to(folder))
        for path in folder.rglob("*.py")
        if "__main__" in path.read_text(encoding="utf-8")
    )


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder without its clone."""
    folder = tmp_path_factory.mktemp("copy") / "benchmarks"
    shutil.copytree(ROOT / "benchmarks", folder, ignore=shutil.ignore_patterns("__pycache__"))
    return folder


def run(script: Path, here: Path, *arguments: object) -> subprocess.CompletedProcess[str]:
    """The script in an interpreter of its own, with another current folder."""
    here.mkdir(exist_ok=True)
    return subprocess.run(
        [sys.executable, str(script), *map(str, arguments)],
        cwd=here,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.slow] if name in SLOW else [])
        for name in scripts()
        if name not in WITH_FOLDERS
    ],
)
def test_a_benchmark_runs(copy: Path, tmp_path: Path, name: str) -> None:
    here = tmp_path / "here"
    done = run(copy / name, here, "--smoke")
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()
    assert len(done.stderr.splitlines()) >= 1, "no progress is reported"
    assert list(here.iterdir()) == []


def drawn(folder: Path) -> set[str]:
    return {path.stem for path in folder.glob("*.png")}


def test_every_figure_of_the_paper_is_drawn(copy: Path, tmp_path: Path) -> None:
    """Was: it crashed after nine of twelve, and outside the clone it searched for all files."""
    done = run(copy / FIGURES, tmp_path / "here", "--smoke", "--output", "figures")
    assert done.returncode == 0, done.stderr
    assert [path.name for path in (tmp_path / "here").iterdir()] == ["figures"]
    folder = tmp_path / "here" / "figures"
    assert len(drawn(folder)) == 12
    assert drawn(folder) == {path.stem for path in folder.glob("*.csv")}
    assert not (folder / "files").exists()
    report = (folder / "report.md").read_text(encoding="utf-8")
    assert report.strip() == done.stdout.strip()
    said = done.stderr.splitlines()
    assert {line.removeprefix("figure ") for line in said} == drawn(folder)


@pytest.mark.slow
def test_the_figures_with_files_made_anew(copy: Path, tmp_path: Path) -> None:
    asked = ("--smoke", "--recompute", "--output", "figures")
    done = run(copy / FIGURES, tmp_path / "here", *asked)
    assert done.returncode == 0, done.stderr
    folder = tmp_path / "here" / "figures"
    assert len(drawn(folder)) == 12
    made = {path.stem for path in (folder / "files").iterdir()}
    assert {"1-1-1e-06-0.9", "5-1-1e-06-0.9", "50-1-1e-06-0.1"} < made
    assert "file 1 of 5: 1-1-1e-06-0.9" in done.stderr


@pytest.mark.slow
def test_what_the_paper_states_is_measured(copy: Path, tmp_path: Path) -> None:
    done = run(copy / FIGURES, tmp_path / "here", "--output", "figures")
    assert done.returncode == 0, done.stderr
    rows = dict(line.strip("| ").split(" | ") for line in done.stdout.strip().splitlines()[2:])
    messages = int(rows["refined: about 20.1 million noise messages"].replace(",", ""))
    assert 20_000_000 < messages < 20_200_000
    assert float(rows["ours: at most 0.15% bit overhead at Δ = 200"].rstrip("%")) <= 0.15
    assert int(rows["ours: at most 256 symbols at Δ = 200"]) <= 256


def test_the_page_of_results_is_made_elsewhere(copy: Path, tmp_path: Path) -> None:
    here = tmp_path / "here"
    done = run(copy / RESULTS, here, "--smoke", "--only", "bursts", "--output", "page")
    assert done.returncode == 0, done.stderr
    assert "free rates from m = 4" in done.stderr
    made = {str(path.relative_to(here)) for path in here.rglob("*") if path.is_file()}
    assert made == {"page/README.md", "page/sections/bursts.md", "page/bursts.png"}
    assert "| free rates |" in (here / "page" / "README.md").read_text(encoding="utf-8")
    refused = run(copy / RESULTS, here, "--smoke", "--only", "bursts")
    assert refused.returncode == 2
    assert "give another --output than the results" in refused.stderr


def test_every_benchmark_is_listed(copy: Path) -> None:
    listed = (copy / "README.md").read_text(encoding="utf-8")
    for name in scripts():
        assert f"benchmarks/{name}" in listed, name
