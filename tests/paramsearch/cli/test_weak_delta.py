"""delta near 1/n draws a warning, in the same words everywhere, and nothing else changes."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pages import words
from places import EXAMPLES
from program import run

from accounting.model.configuration import Proposal
from accounting.model.problem import Problem
from paramsearch import audit, load, save
from paramsearch.certification.stated_problem import StatedProblem
from paramsearch.parameters.assembly import rescaled
from paramsearch.report import page as report
from paramsearch.report.sections import AuditedFile
from paramsearch.tables.lookup import shipped_folder

FILE = shipped_folder() / "files" / "1-1-1e-06-0.9.json"
SMALL = json.loads((EXAMPLES / "sum_to_2.json").read_text())
WARNED = (
    "delta times n is 1 (n = 1,000,000): delta should be far below 1/n, since a mechanism that "
    "publishes each input with probability delta would meet the claim"
)


def warnings(n: int | None, delta: float | None) -> list[str]:
    problem = StatedProblem.of_problem(Problem(n=1, eps=1.0, delta=0.5, max_value=1))
    return replace(problem, n=n, delta=delta).warnings


@pytest.mark.parametrize(
    ("n", "delta", "warned"),
    [
        (1_000_000, 1e-6, True),
        (100_000, 1e-6, True),  # the product is 0.1 exactly, for the number as it is written
        (99_999, 1e-6, False),
        (10**9, 1e-10, True),
        (10**9 - 1, 1e-10, False),
        (1, 0.1, True),
        (1, 0.09, False),
        ((1 << 53) - 1, 1e-30, False),
        (None, 0.5, False),
        (1000, None, False),
    ],
)
def test_the_threshold(n: int | None, delta: float | None, warned: bool) -> None:
    assert bool(warnings(n, delta)) == warned


@given(st.integers(1, (1 << 53) - 1), st.integers(1, 300))
def test_the_threshold_is_exact_for_powers_of_ten(n: int, digits: int) -> None:
    assert bool(warnings(n, float(f"1e-{digits}"))) == (10 * n >= 10**digits)


def test_every_command_that_hands_out_a_file_warns(tmp_path: Path) -> None:
    """Was: no remark at delta = 1/n."""
    asked = ("--n", 1_000_000, "--eps", 1, "--delta", "1e-6", "--max-value", 1)
    for arguments in (("audit", FILE), ("lookup", *asked)):
        assert json.loads(run(*arguments, "--json").stdout)["warnings"] == [WARNED], arguments
        done = run(*arguments)
        assert done.returncode == 0
        assert any(line.split(None, 1) == ["warning", WARNED] for line in done.stdout.splitlines())
    made = tmp_path / "made.json"
    searched = run("generate", *asked, "--tries", 1, "-o", made)
    assert searched.returncode == 0, searched.stderr
    assert f"warning    {WARNED}\n" in searched.stdout
    for arguments in (("certify", made), ("rescale", made, "--n", "1e6")):
        printed = run(*arguments, "--json")
        assert printed.returncode == 0
        assert set(json.loads(printed.stdout)) == set(json.loads(made.read_text()))
        assert printed.stderr == f"warning: {WARNED}\n"
        saved = run(*arguments, "-o", tmp_path / "again.json")
        assert (saved.returncode, saved.stderr) == (0, "")
        assert saved.stdout.endswith(f"warning: {WARNED}\n")
    quiet = tmp_path / "quiet.json"
    save(rescaled(load(FILE), 10_000), quiet)
    assert json.loads(run("audit", quiet, "--json").stdout)["warnings"] == []
    assert "warning" not in run("audit", quiet).stdout


def test_the_page_warns() -> None:
    source = AuditedFile(source="x", sha256="0" * 64, audited_on=date(2021, 7, 18))
    for n, warned in ((1_000_000, True), (1_000, False)):
        proposal = Proposal.of({**SMALL, "n": n})
        found = audit(proposal, gap=0.5, explain=False)
        text = words(report.render(found, proposal, source, curve=None, pairs=None))
        sentence = "Warning: δ times n is 1 (n = 1,000,000): δ should be far below 1/n, since"
        assert (sentence in text) == warned
