"""Manners of the command line: JSON whatever happens, closed pipes, signals, numbers, names."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
import typer
from places import EXAMPLES
from program import command, run

from accounting import InvalidParameter
from paramsearch import Request
from paramsearch.cli import output
from paramsearch.cli.app import _commands
from paramsearch.cli.options import whole_number
from paramsearch.parameters.signature import create_key
from paramsearch.tables.lookup import shipped_folder

EXAMPLE = str(EXAMPLES / "sum_to_2.json")
PROBLEM = ("--n", "1000", "--eps", "1", "--delta", "1e-6", "--max-value", "2")


@pytest.mark.parametrize(
    ("arguments", "kind"),
    [
        (("audit", "missing.json"), "InvalidConfiguration"),
        (("audit",), "UsageError"),
        (("profile", EXAMPLE, "--bogus"), "UsageError"),
        (("profile", EXAMPLE, "--eps", "-1"), "InvalidParameter"),
        (("certify", EXAMPLE, "--delta", "1e-9"), "Violated"),
        (("lookup", "--n", "0.5", *PROBLEM[2:]), "UsageError"),
        (("lookup", *PROBLEM, "--max-rmse", "0.001"), "InvalidParameter"),
        (("randomize", EXAMPLE, "--value", "1"), "InvalidConfiguration"),
        (("compare", "--n", "1", *PROBLEM[2:]), "InvalidParameter"),
        (("generate", *PROBLEM, "--central-fraction", "2"), "InvalidParameter"),
        (("generate-real", *PROBLEM[:6]), "InvalidParameter"),
        (("table", "missing.toml", "-o", "table"), "InvalidConfiguration"),
        (("explore", "missing", "-o", "page.html"), "InvalidConfiguration"),
    ],
)
def test_a_failure_is_one_json_object_with_its_exit_code(
    arguments: tuple[str, ...], kind: str
) -> None:
    done = run(*arguments, "--json")
    (line,) = done.stdout.splitlines()
    error = json.loads(line)["failure"]
    assert error["kind"] == kind
    assert error["exit_code"] == done.returncode != 0
    assert error["message"]
    assert error["message"][:60] in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ("compare", "--n", "1000", "--eps", "1", "--delta", "1e-6", "--max-value", "5"),
        ("pareto", *PROBLEM, "--fraction", "0.9", "--tries", "1"),
        ("lookup", *PROBLEM),
        ("audit", EXAMPLE),
        ("profile", EXAMPLE),
        ("schema",),
        ("rescale", shipped_folder() / "files" / "1-1-1e-06-0.9.json", "--n", 10),
        ("randomize", shipped_folder() / "files" / "1-1-1e-06-0.9.json", "--value", 1),
        ("simulate", shipped_folder() / "files" / "1-1-1e-06-0.9.json"),
        ("compose", shipped_folder() / "files" / "1-1-1e-06-0.9.json", "--delta", 1e-6),
        ("audit-table", "--sample", 1),
    ],
)
def test_an_answer_is_one_json_object(arguments: tuple[object, ...]) -> None:
    done = run(*arguments, "--json")
    assert done.returncode == 0, done.stderr
    assert isinstance(json.loads(done.stdout), dict)


def test_every_command_knows_json() -> None:
    for name, found in _commands().items():
        assert any("--json" in parameter.opts for parameter in found.params), name


@pytest.mark.parametrize(("delta", "code"), [("1e-6", 0), ("1e-7", 1)])
@pytest.mark.parametrize("reader", ["head -1", "true"])
def test_a_reader_that_leaves_does_not_change_the_verdict(
    delta: str, code: int, reader: str
) -> None:
    words = " ".join(f"'{word}'" for word in command("audit", EXAMPLE, "--delta", delta))
    done = subprocess.run(
        ["bash", "-c", f"{words} | {reader}; exit ${{PIPESTATUS[0]}}"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code
    assert done.stderr == ""


def test_help_for_a_reader_that_leaves_is_no_violation() -> None:
    words = " ".join(f"'{word}'" for word in command("--help"))
    piped = ["bash", "-c", f"{words} | true; exit ${{PIPESTATUS[0]}}"]
    assert subprocess.run(piped, capture_output=True, check=False).returncode == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "code"),
    [(signal.SIGTERM, 143), pytest.param(signal.SIGINT, 130, marks=pytest.mark.slow)],
)
def test_a_signal_ends_a_search_and_keeps_its_file(
    tmp_path: Path, kind: signal.Signals, code: int
) -> None:
    file = tmp_path / "file.json"
    wanted = ("--n", "1000", "--eps", "1", "--delta", "1e-6", "--max-value", "24", "--cold")
    first = run("generate", *wanted, "--tries", "1", "--tier", "fast", "-o", file)  # compiles
    assert first.returncode == 0
    file.unlink()
    running = subprocess.Popen(
        command("generate", *wanted, "--tries", "500", "--tier", "fast", "-o", file),
        stderr=subprocess.PIPE,
        text=True,
    )
    time.sleep(20)  # until stage 1 has passed the first families on
    running.send_signal(kind)
    _, said = running.communicate(timeout=120)
    assert running.returncode == code
    assert "interrupted" in said
    assert "Traceback" not in said
    done = run("audit", str(file), "--tier", "fast", "--json")
    assert json.loads(done.stdout)["verdict"] == "certified"


@pytest.mark.parametrize(
    ("text", "value"),
    [("1000000", 10**6), ("1e6", 10**6), ("1_000", 1000), ("2.5e3", 2500), ("-3", -3), ("7.0", 7)],
)
def test_whole_numbers(text: str, value: int) -> None:
    assert whole_number(text) == value


@pytest.mark.parametrize(
    "text", ["", "a", "1.5", "1e-3", "nan", "inf", "1/2", "1e99999999", "1e-99999999", "9" * 50]
)
def test_what_is_no_whole_number_is_refused_at_once(text: str) -> None:
    with pytest.raises(typer.BadParameter, match="not a whole number"):
        whole_number(text)


def test_errors_name_the_option_as_it_was_typed() -> None:
    done = run("lookup", "--n", "1e6", "--eps", "1", "--delta", "1e-6", "--max-value", "0")
    assert done.stderr == "error: --max-value = 0 must be at least 1\n"
    done = run("generate", *PROBLEM[:4], "--delta", "7", *PROBLEM[6:], "-o", "x.json")
    assert "--delta = 7.0" in done.stderr
    two = ("--max-rmse", "9", "--max-error-ratio", "2")
    for name in ("generate", "lookup"):
        done = run(name, *PROBLEM, *two, *(["-o", "x.json"] if name == "generate" else []))
        assert done.stderr.startswith("error: give one of ")
        assert "--max-rmse and --max-error-ratio" in done.stderr
    done = run("generate-real", *PROBLEM[:6], "-o", "x.json")
    assert done.stderr == "error: give one of --zeta, --max-rmse and --max-error-ratio\n"
    with pytest.raises(InvalidParameter, match=r"^max_value = 0 must"):
        Request(n=1000, eps=1.0, delta=1e-6, max_value=0)


@pytest.mark.parametrize(
    ("name", "words", "option"),
    [
        ("certify", (EXAMPLE,), "--n"),
        ("rescale", (EXAMPLE,), "--n"),
        ("simulate", (EXAMPLE,), "--users"),
        ("analyze", (EXAMPLE,), "--users"),
        ("generate-sparse", PROBLEM[:6], "--dimension"),
        ("generate-sparse", (*PROBLEM[:6], "--dimension", "3"), "--max-value"),
        ("compare", PROBLEM, "--dimension"),
    ],
)
def test_numbers_of_people_and_of_coordinates_are_as_people_write_them(
    name: str, words: tuple[str, ...], option: str
) -> None:
    context = _commands()[name].make_context(name, [*words, option, "2e6"])
    assert context.params[option.lstrip("-").replace("-", "_")] == 2_000_000


def test_an_option_in_the_place_of_a_number_of_a_file_is_named(tmp_path: Path) -> None:
    done = run("audit", EXAMPLE, "--honest", "2")
    assert done.stderr == "error: --honest = 2.0 must be greater than 0 and at most 1\n"
    assert run("audit", EXAMPLE, "--tier=x").stderr.startswith("error: --tier = 'x'; known: ")
    wrong = tmp_path / "wrong.json"
    wrong.write_text(Path(EXAMPLE).read_text().replace('"eps": 1', '"eps": -1'))
    assert run("audit", wrong, "--eps", "1").stderr.startswith(f"error: {wrong}: eps = -1")


@pytest.mark.parametrize("words", [("randomize", "--value", "1"), ("simulate",), ("analyze",)])
def test_a_configuration_is_not_deployed_and_the_remedy_is_named(words: tuple[str, ...]) -> None:
    done = run(words[0], EXAMPLE, *words[1:])
    assert done.returncode == 2
    assert "it is no parameter file" in done.stderr
    assert "`paramsearch certify` makes one of it" in done.stderr


@pytest.mark.parametrize("arguments", [("-h",), ("audit", "-h")])
def test_short_help(arguments: tuple[str, ...]) -> None:
    done = run(*arguments)
    assert done.returncode == 0
    assert "Usage" in done.stdout


def test_progress_off_a_terminal_is_a_line_now_and_then(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = iter([0.0, 1.0, 31.0, 32.0, 100.0])
    monkeypatch.setattr(output, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    with output.progress("generate") as say:
        for text in ("a", "b", "c", "d"):
            say(text)
    assert capsys.readouterr().err == "generate: b, 31 s\ngenerate: d, 1m40\n"


def test_pareto_makes_its_folder(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "front"
    arguments = ("pareto", *PROBLEM, "--fraction", "0.9", "--tries", "1")
    done = run(*arguments, "-o", folder)
    assert done.returncode == 0, done.stderr
    assert len(list(folder.iterdir())) == 1
    (tmp_path / "file").write_text("")
    for wrong in (tmp_path / "file", tmp_path / "file" / "below"):
        done = run(*arguments, "-o", wrong)
        assert done.returncode == 2
        assert "not a folder" in done.stderr or "cannot be written" in done.stderr


def test_a_simulation_says_why_it_sees_fewer_messages(tmp_path: Path) -> None:
    file = shipped_folder() / "files" / "5-1-1e-06-0.9.json"
    done = run("simulate", file, "--users", "1000000")
    assert done.returncode == 0, done.stderr
    assert "a value of 0 sends none" in done.stdout
    done = run("simulate", file, "--users", "1000000", "--values", "largest")
    assert "sends none" not in done.stdout


def test_signing_without_its_library_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cryptography.hazmat.primitives", None)
    with pytest.raises(InvalidParameter, match=r"paramsearch\[sign\]"):
        create_key(Path("key"))


def test_an_interrupt_before_there_is_anything_says_that_no_file_was_written(
    tmp_path: Path,
) -> None:
    file = tmp_path / "file.json"
    wanted = ("--n", "1000", "--eps", "1", "--delta", "1e-6", "--max-value", "900", "--cold")
    running = subprocess.Popen(
        command("generate", *wanted, "-o", file), stderr=subprocess.PIPE, text=True
    )
    time.sleep(4)  # stage 1 of so large a problem takes longer
    running.send_signal(signal.SIGINT)
    _, said = running.communicate(timeout=60)
    assert running.returncode == 130
    assert "no file was written" in said
    assert "Traceback" not in said
    assert not file.exists()
