"""What people stumbled over in their first hour with the package."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import typer
from program import run

from accounting import InvalidParameter, Undecided
from paramsearch import (
    RealRequest,
    Request,
    Table,
    audit,
    compare,
    generate,
    load,
    simulate,
)
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
    with pytest.raises(ProofInterrupted) as ended:
        generate(Request(n=1000, eps=1.0, delta=1e-6, max_value=1, tries=1))
    found = ended.value.found
    assert found.certificate is None
    assert 599 < found.cost.noise_messages < 601


SIGNALED = """
import os, signal, sys, time
from paramsearch.cli.app import main
from paramsearch.generation import {module} as module
def signaled(*_, **__):
    os.kill(os.getpid(), signal.{kind})
    while True:  # another thread may take the signal: Python acts on it in this one
        time.sleep(0.01)
module.{function} = signaled
sys.argv = ["paramsearch", *{arguments!r}]
main()
"""
"""The program, which gets a signal where a function is called."""


def signaled(kind: str, function: str, arguments: list[str]) -> subprocess.CompletedProcess[str]:
    program = SIGNALED.format(module="generate", kind=kind, function=function, arguments=arguments)
    command = [sys.executable, "-c", program]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)


@pytest.mark.parametrize(
    ("command", "kind", "code"),
    [
        ("generate", "SIGINT", 130),
        ("generate", "SIGTERM", 143),
        pytest.param("generate-real", "SIGINT", 130, marks=pytest.mark.slow),
    ],
)
def test_an_interrupt_of_the_proof_keeps_what_was_found(
    command: str, kind: str, code: int, tmp_path: Path
) -> None:
    """Was: no file was written."""
    path, kept = tmp_path / "file.json", tmp_path / "file.uncertified.json"
    asked = [command, "--n", "1000", "--eps", "1", "--delta", "1e-6", "--tries", "1"]
    asked += ["--max-value", "2"] if command == "generate" else ["--max-error-ratio", "2"]
    asked += ["-o", str(path)]
    done = signaled(kind, "finish", asked)
    assert (done.returncode, done.stdout) == (code, ""), done.stderr
    assert "Traceback" not in done.stderr
    told = " ".join(done.stderr.split())
    assert f"without a certificate, is in {kept}; the same command with --resume goes on" in told
    assert not path.exists()
    found = load(kept)
    assert found.certificate is None
    done = run(*asked, "--resume")
    assert done.returncode == 0, done.stderr
    made = load(path)
    assert made.certificate is not None
    assert made.problem == found.problem
    assert made.cost.noise_messages < 1.01 * found.cost.noise_messages
    assert not kept.exists()


@pytest.mark.parametrize(
    ("function", "told"),
    [
        ("_similar_file", "stopping; nothing was found yet that could be certified"),
        (
            "polished",
            "stopping; the best so far is being certified, about 1 s; again to leave it "
            "uncertified",
        ),
        ("finish", "stopping; what was found is left uncertified"),
        (
            "prove_local_optimality",
            "stopping; the file is certified, and nothing else is proved about it",
        ),
    ],
)
def test_an_interrupt_is_acknowledged(function: str, told: str, tmp_path: Path) -> None:
    """Was: silence until the proof was done."""
    asked = ["generate", "--n", "1000", "--eps", "1", "--delta", "1e-6", "--max-value", "1"]
    done = signaled("SIGINT", function, [*asked, "--tries", "1", "-o", str(tmp_path / "file.json")])
    assert done.returncode == 130, done.stderr
    assert done.stderr.splitlines()[0] == told


def test_an_interrupt_after_the_certificate_keeps_the_file(tmp_path: Path) -> None:
    """Was: no file was written, since local optimality was still being proved."""
    path = tmp_path / "file.json"
    asked = ["generate", "--n", "1000", "--eps", "1", "--delta", "1e-6", "--max-value", "2"]
    done = signaled("SIGINT", "prove_local_optimality", [*asked, "--tries", "1", "-o", str(path)])
    assert done.returncode == 130, done.stderr
    assert audit(load(path)).verdict == "certified"
    assert "interrupted" in done.stdout
