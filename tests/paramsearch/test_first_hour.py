"""What people stumbled over in their first hour with the package."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import typer
from program import run

from accounting import InvalidParameter, Undecided
from paramsearch import RealRequest, Request, Table, audit, compare, generate, load, simulate
from paramsearch.cli.app import app
from paramsearch.deploy import Randomizer
from paramsearch.generation import generate as generation
from paramsearch.generation.generate import ProofInterrupted
from paramsearch.generation.time_plan import TimePlan
from paramsearch.tables.lookup import shipped_folder

FILE = shipped_folder() / "files" / "1-1-1e-06-0.9.json"


def test_help_is_in_paragraphs() -> None:
    group: Any = typer.main.get_command(app)
    for command in group.commands.values():
        assert command.help
        for paragraph in command.help.split("\n\n"):
            assert "\n" not in paragraph


def test_no_arguments_give_help_and_no_error() -> None:
    done = run()
    assert done.returncode == 2
    assert "generate" in done.stdout + done.stderr
    assert "error" not in done.stderr


@pytest.mark.parametrize(
    ("call", "remedy"),
    [
        (lambda: audit("parameters.json"), "read_source"),
        (lambda: Randomizer("parameters.json"), "load"),
        (lambda: simulate(load(FILE)), "Simulation"),
        (lambda: generate(RealRequest(n=10, eps=1.0, delta=1e-6, zeta=0.5)), "generate_real"),
        (lambda: Table.open().lookup({"n": 10}), "Query"),
    ],
)
def test_a_wrong_type_is_told_what_is_right(call: Callable[[], object], remedy: str) -> None:
    with pytest.raises(InvalidParameter, match=remedy):
        call()


def test_a_comparison_shows_itself_in_two_lines() -> None:
    found = compare(Request(n=100_000, eps=1.0, delta=1e-6, max_value=5))
    assert len(repr(found).splitlines()) == 2
    assert "correlated noise, ours" in repr(found)


def test_analyze_says_how_many_users_it_assumes(tmp_path: Path) -> None:
    path = tmp_path / "file.json"
    assert run("rescale", FILE, "--n", "200", "-o", path).returncode == 0
    sent = run("randomize", path, "--value", "-", stdin="1\n" * 200).stdout
    done = run("analyze", path, stdin=sent)
    assert done.returncode == 0, done.stderr
    assert "all 200 are assumed to have taken part" in done.stdout
    assert "assumed" not in run("analyze", path, "--users", "200", stdin=sent).stdout


def test_a_part_of_a_budget_is_checked() -> None:
    request = Request(n=1000, eps=1.0, delta=1e-6, max_value=1000, budget=100.0)
    plan = TimePlan.of(request)
    plan.check()
    with pytest.raises(Undecided, match="a budget of 100 s is too small for max_value 1,000"):
        plan.check(0.4)
    several = replace(request, max_value=30, releases=7)
    alone = replace(request, max_value=30, releases=7, same_change=True)
    assert TimePlan.of(several).proof_seconds > TimePlan.of(alone).proof_seconds


def test_an_interrupt_of_the_proof_is_told_from_one_of_the_search(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(generation, "finish", interrupted)
    with pytest.raises(ProofInterrupted):
        generate(Request(n=1000, eps=1.0, delta=1e-6, max_value=1, tries=1))
