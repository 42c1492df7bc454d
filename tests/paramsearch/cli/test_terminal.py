"""On a terminal of 80 columns no word is broken, and commands and paths can be copied."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import typer
from places import EXAMPLES
from program import run
from terminal import on_terminal

from paramsearch.cli.app import app
from paramsearch.cli.output import TextTable, wrapped

PROBLEM = ("--n", "1000", "--eps", "1", "--delta", "1e-6", "--max-value")
EXAMPLE = EXAMPLES / "sum_to_2.json"
SHIPPED = ("paramsearch", "data", "files", "5-1-1e-06-0.9.json")


def words(text: str) -> list[str]:
    return sorted(text.split())


@pytest.mark.parametrize(
    "arguments",
    [
        ("audit", EXAMPLE, "--delta", "1e-7"),
        pytest.param(("profile", EXAMPLE), marks=pytest.mark.slow),
        pytest.param(("compare", *PROBLEM, "5"), marks=pytest.mark.slow),
        pytest.param(
            ("compare", *PROBLEM, "1", "--dimension", "9", "--releases", "2", "--tries", "1"),
            marks=pytest.mark.slow,
        ),
        pytest.param(
            ("pareto", *PROBLEM, "2", "--fraction", "0.9", "--tries", "1"), marks=pytest.mark.slow
        ),
        ("lookup", *PROBLEM, "9"),
        ("simulate", Path(*SHIPPED), "--users", "1000000"),
    ],
)
def test_a_terminal_shows_the_same_words(arguments: tuple[object, ...]) -> None:
    """In lines that fit, but for a command that is to be copied."""
    shown, plain = on_terminal(*arguments), run(*arguments).stdout
    assert words(shown) == words(plain)
    for line in shown.splitlines():
        assert len(line) <= 80 or "paramsearch generate" in line


@pytest.mark.parametrize(
    "arguments",
    [
        ("lookup", *PROBLEM, "900", "--max-rmse", "9000"),
        ("pareto", *PROBLEM, "3", "--max-error-ratio", "1.0001"),
        ("generate", *PROBLEM, "3"),
    ],
)
def test_an_error_on_a_terminal(arguments: tuple[object, ...]) -> None:
    shown, plain = on_terminal(*arguments, stream="stderr"), run(*arguments).stderr
    assert words(shown) == words(plain)
    for line in shown.splitlines():
        assert len(line) <= 80 or line.startswith("paramsearch generate")


def test_a_long_path_is_not_broken(tmp_path: Path) -> None:
    path = tmp_path / f"{'long' * 30}.json"
    shown = on_terminal("generate", *PROBLEM, "1", "--tries", "1", "-o", path)
    assert str(path) in shown


def test_wrapping() -> None:
    command = "paramsearch generate --n 5 --max-value 3 -o FILE"
    assert wrapped(f"make one: {command}; or not", 20) == ["make one:", f"{command};", "or not"]
    assert wrapped("a --max-error-ratio of 1.5", 10) == ["a", "--max-error-ratio", "of 1.5"]
    assert wrapped("paramsearch generate is for numbers", 20) == [
        "paramsearch generate",
        "is for numbers",
    ]


def test_parts_of_a_table_have_the_same_columns(capsys: pytest.CaptureFixture[str]) -> None:
    table = TextTable(("name", "number", "text"), widths=(6, 8))
    table.write([("a", "1", "some words")])
    table.write([("longer", "22,222", "other words")])
    first, second, third = capsys.readouterr().out.splitlines()
    assert first.index("number") + 6 == second.index("1") + 1 == third.index("22,222") + 6
    assert first.index("text") == second.index("some") == third.index("other")


COMMANDS: dict[str, Any] = typer.main.get_command(app).commands  # type: ignore[attr-defined]  # a group
FRAME = re.compile("[│╭╮╰╯─]")


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_of_every_command_fits_and_is_complete(name: str) -> None:
    """No line is longer than the terminal, and no word of the help is broken or cut off."""
    shown = on_terminal(name, "--help")
    assert max(map(len, shown.splitlines())) <= 80
    assert "…" not in shown
    there = Counter(FRAME.sub(" ", shown).split())
    command = COMMANDS[name]
    written = Counter(command.help.split())
    for parameter in command.params:
        if getattr(parameter, "hidden", False):  # options that are refused with a reason
            continue
        written += Counter((getattr(parameter, "help", None) or "").split())
        written += Counter(option for option in parameter.opts if option.startswith("-"))
    assert not written - there


def test_the_list_of_commands_fits_and_is_complete() -> None:
    shown = on_terminal("--help")
    assert max(map(len, shown.splitlines())) <= 80
    assert "…" not in shown
    words_shown = " ".join(FRAME.sub(" ", shown).split())
    for name, command in COMMANDS.items():
        first = command.help.split("\n\n")[0]
        assert f"{name} {' '.join(first.split())}" in words_shown
