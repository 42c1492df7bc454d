"""What the documents show is what happens: commands, output, Python, places."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from documents import PROGRESS, blocks, commands, matches, run_document
from places import ROOT

DOCUMENTS = [
    ROOT / "README.md",
    *sorted(path for room in ("accounting", "paramsearch", "benchmarks")
            for path in (ROOT / room).rglob("README.md")),
    ROOT / "accounting" / "reference" / "CHECK.md",
    ROOT / "paramsearch" / "deploy" / "GUIDE.md",
    ROOT / "paramsearch" / "deploy" / "SPECIFICATION.md",
]  # fmt: skip
PLACE = re.compile(r"(?:accounting|paramsearch|tests|benchmarks)/[\w/.-]*\w")
LINK = re.compile(r"\]\(([^)#:]+)(?:#[^)]*)?\)")


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


LONG = ("paramsearch/tables/README.md", "paramsearch/cli/README.md", "accounting/README.md")
"""Documents whose commands take most of a minute."""


@pytest.mark.parametrize(
    "document",
    [
        pytest.param(document, marks=pytest.mark.slow if name_of(document) in LONG else ())
        for document in DOCUMENTS
    ],
    ids=name_of,
)
def test_everything_in_a_document_runs(
    document: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run_document(document, tmp_path)


@pytest.mark.parametrize("document", DOCUMENTS, ids=name_of)
def test_links_lead_somewhere(document: Path) -> None:
    for target in LINK.findall(document.read_text(encoding="utf-8")):
        assert (document.parent / target).exists(), target


def test_every_place_that_is_named_exists() -> None:
    texts = [ROOT / "README.md"]
    for package in ("accounting", "paramsearch", "tests", "benchmarks"):
        texts += [*(ROOT / package).rglob("*.py"), *(ROOT / package).rglob("*.md")]
    for path in texts:
        for place in PLACE.findall(path.read_text(encoding="utf-8")):
            assert (ROOT / place).exists(), f"{path.relative_to(ROOT)} names {place}"


def two_commands() -> list[str]:
    """The README's commands for a fresh machine."""
    return [
        line for block in blocks(ROOT / "README.md") if block.kind == "sh"
        for line in block.text.splitlines() if "venv" in line
    ]  # fmt: skip


def test_ci_runs_the_tests_as_the_readme_says() -> None:
    made, tested = two_commands()
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    for part in tested.replace(".venv/bin/", "").split(" && ")[1:]:
        assert part in script.replace("--quiet ", "")
    assert "paramsearch generate" in made


@pytest.mark.slow
def test_the_first_command_makes_a_certified_file(tmp_path: Path) -> None:
    """In a copy of the repository, as on a fresh machine."""
    copy = tmp_path / "copy"
    ignored = shutil.ignore_patterns(".git", ".venv", "__pycache__", "*.egg-info", "build")
    shutil.copytree(ROOT, copy, ignore=ignored)
    subprocess.run(["bash", "-c", two_commands()[0]], cwd=copy, check=True)
    assert '"delta_upper"' in (copy / "parameters.json").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("shown", "printed", "same"),
    [
        ("a\n…\nd", "a\nb\nc\nd", True),
        ("a\n…\nd", "a\nd", True),
        ("a …", "a b", True),
        ("a …", "b b", False),
        ("a", "a\nb", False),
        ("", "", True),
        ("", "a", False),
        ("…", "a\nb", True),
    ],
)
def test_how_output_is_compared(shown: str, printed: str, same: bool) -> None:
    assert matches(shown, printed) == same


def test_only_progress_is_left_out() -> None:
    kept = "budget: 18 s for the search, about 2 s for the proof\ncost       3 messages, 2 bits\n"
    said = "composing: 42 releases, lower bound, 1m16\n"
    assert PROGRESS.sub("", said + kept + "generate-real: stage 2, 41 s") == kept


def test_every_command_is_shown_somewhere() -> None:
    """A command of the program that no document shows would never be run as users see it."""
    shown = " ".join(
        command.line
        for document in DOCUMENTS
        for block in blocks(document)
        if block.kind == "console"
        for command in commands(block)
    )
    from paramsearch.cli.app import app

    for command in app.registered_commands:
        assert command.callback is not None
        name = command.callback.__name__.replace("_", "-")
        assert f"paramsearch {name}" in shown, name


def commands_of_tables() -> list[str]:
    """The commands in the README's table of tasks, each with the options that its row adds."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| [^|]+ \| (.+) \|$", text, flags=re.MULTILINE)
    commands = re.findall(r"`(paramsearch [^`]+)`", " ".join(rows))
    added = re.findall(r"(?:add|or) `(--[^`]+)`", " ".join(rows))
    first = next(line for line in commands if line.startswith("paramsearch generate "))
    return [*commands, *(f"{first} {options}" for options in added)]


@pytest.mark.parametrize("line", commands_of_tables())
def test_commands_of_tables_are_accepted(line: str) -> None:
    """Their words are parsed as the program parses them; letters stand for numbers."""
    import typer

    from paramsearch.cli.app import app

    numbers = {"N": "1000", "E": "1", "D": "1e-6", "K": "5", "M": "8", "T": "2", "R": "9"}
    numbers |= {"A": "-1", "B": "1", "add": "", "FILE": "x.json"}
    name, *words = (numbers.get(word, word) for word in line.split()[1:])
    command = typer.main.get_command(app).commands[name]  # type: ignore[attr-defined]
    context = command.make_context(name, words)
    assert context.params


def test_the_table_of_tasks_is_found() -> None:
    lines = commands_of_tables()
    assert len(lines) >= 14
    assert any(line.endswith("--releases T") for line in lines)


def test_the_page_of_results_is_what_its_sections_say(tmp_path: Path) -> None:
    """As one command makes it; a section edited on the page alone would be lost."""
    copy = tmp_path / "benchmarks"
    shutil.copytree(ROOT / "benchmarks", copy, ignore=shutil.ignore_patterns("__pycache__"))
    (copy / "results" / "README.md").unlink()
    subprocess.run([sys.executable, str(copy / "results.py"), "--page"], check=True)
    made, shown = (page / "results" / "README.md" for page in (copy, ROOT / "benchmarks"))
    assert made.read_text("utf-8") == shown.read_text("utf-8")
