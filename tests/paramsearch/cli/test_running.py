"""Commands that run the protocol: what they warn about, and what they leave alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from deployed import SUM, file
from javascript import VECTORS
from program import run

from accounting.model.configuration import Proposal
from paramsearch import save, uncertified
from paramsearch.deploy import Randomizer


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certified file, one that is not, and the messages of all users."""
    folder = tmp_path_factory.mktemp("running")
    save(file(), folder / "certified.json")
    save(uncertified(Proposal.of(SUM)), folder / "bare.json")
    symbols = Randomizer(file()).batch([1] * 50).symbols
    (folder / "messages.txt").write_text("".join(f"{symbol}\n" for symbol in symbols))
    return folder


@pytest.mark.parametrize("command", ["analyze", "simulate"])
def test_a_file_without_certificate_is_not_used_silently(place: Path, command: str) -> None:
    more = [place / "messages.txt"] if command == "analyze" else []
    for name, certified in (("certified.json", True), ("bare.json", False)):
        for options in ([], ["--json"]):
            done = run(command, place / name, *more, *options)
            assert done.returncode == 0, done.stderr
            assert ("warning: the file has no certificate" in done.stderr) is not certified
        assert json.loads(done.stdout)["certified"] is certified


def test_with_bursts_missing_users_show_later(place: Path) -> None:
    """That is said of bursts alone."""
    data = json.loads((VECTORS / "bursts.json").read_text())
    (place / "bursts.json").write_text(json.dumps(data["file"]))
    symbols = "".join(f"{symbol}\n" for case in data["randomizer"] for symbol in case["symbols"])
    found = run("analyze", place / "bursts.json", "--allow-odd", stdin=symbols)
    assert found.returncode == 0, found.stderr
    assert "with bursts missing users are usually noticed later" in found.stdout
    other = run("analyze", place / "certified.json", place / "messages.txt")
    assert "--users says how many did" in other.stdout
    assert "bursts" not in other.stdout


def test_warnings_come_before_the_answer(place: Path) -> None:
    few = run("simulate", place / "certified.json", "--users", "1", "--allow-few")
    assert few.returncode == 0, few.stderr
    first, second, *_ = few.stdout.splitlines()
    assert first.startswith("warning    1 user who adds noise is too few")
    assert second == "simulated  1 user, 1 run, path aggregate"
    odd = place / "odd.txt"
    odd.write_text((place / "messages.txt").read_text() + "3\n" * 10_000)  # the value -2
    found = run("analyze", place / "certified.json", odd, "--allow-odd")
    assert found.returncode == 0, found.stderr
    first, second, *_ = found.stdout.splitlines()
    assert first.startswith("warning   ")
    assert second.startswith("estimate  ")


@pytest.mark.parametrize(
    "words",
    [
        ("generate", "--noise", "burst", "--max-value", "5", "--noise", "negative-binomial"),
        ("lookup", "--eps=1", "--n", "10", "--eps", "2"),
        ("simulate", "certified.json", "--seed", "1", "--seed", "1"),
        ("sign", "certified.json", "--key", "k", "-o", "a", "--output", "b"),
    ],
)
def test_an_option_with_one_value_is_given_once(place: Path, words: tuple[str, ...]) -> None:
    done = run(*(place / word if word.endswith(".json") else word for word in words), "--json")
    assert done.returncode == 2
    message = json.loads(done.stdout)["failure"]["message"]
    assert "is given 2 times, and it takes one value" in message


def test_options_with_several_values_and_flags_may_be_repeated(place: Path) -> None:
    words = ("--value", "0", "--value", "3", "--json", "--json")
    done = run("randomize", place / "certified.json", *words)
    assert done.returncode == 0, done.stderr
    assert len(json.loads(done.stdout)["symbols"]) == 2
    assert run("simulate", place / "certified.json", "--values=zero").returncode == 0
