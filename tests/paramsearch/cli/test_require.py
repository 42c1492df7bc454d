"""The gate of a deployment: a file is for the problem that was agreed on, in every field."""

from __future__ import annotations

import json
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from places import EXAMPLES
from program import run

from accounting import Proposal
from accounting.base.errors import InvalidConfiguration
from paramsearch import certify, load, read, uncertified
from paramsearch.certification.stated_problem import StatedProblem, differences
from paramsearch.cli.proving.requirement import read_requirement
from paramsearch.parameters.assembly import reassembled
from paramsearch.parameters.parameter_file import ParameterFile, save
from paramsearch.tables.lookup import shipped_folder

SMALL = json.loads((EXAMPLES / "sum_to_2.json").read_text())
FILE = shipped_folder() / "files" / "1-1-1e-06-0.9.json"
AGREED = "n = 100_000\nmax_value = 2\neps = 1\ndelta = 1e-6\n"


@cache
def made(**options: Any) -> ParameterFile:
    names = {"eps", "delta", "dimension", "adjacency", "n"}
    data = {**SMALL, **{name: options.pop(name) for name in names & options.keys()}}
    return certify(uncertified(Proposal.of(data), **options))


@pytest.fixture
def good(tmp_path: Path) -> Path:
    save(made(), tmp_path / "good.json")
    return tmp_path / "good.json"


def required(folder: Path, text: str = AGREED, name: str = "problem.toml") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def test_the_file_that_was_agreed_on(good: Path, tmp_path: Path) -> None:
    done = run("audit", good, "--require", required(tmp_path), "--json")
    assert (done.returncode, done.stderr) == (0, "")
    answer = json.loads(done.stdout)
    assert answer["required"] == {"met": True, "differs": []}
    said = run("audit", good, "--require", required(tmp_path))
    assert said.returncode == 0
    assert "required     met in every field of the problem\n" in said.stdout
    unasked = json.loads(run("audit", good, "--json").stdout)
    assert unasked["required"] is None
    # what an answer says of its problem is itself a requirement
    problem = required(tmp_path, json.dumps(unasked["problem"]), "problem.json")
    assert run("audit", good, "--require", problem).returncode == 0


def test_a_file_for_ten_thousand_times_as_many_users_is_not_deployed(
    good: Path, tmp_path: Path
) -> None:
    """Was: certified, where a hundred thousand users have next to no noise."""
    bad = tmp_path / "rescaled.json"
    assert run("rescale", good, "--n", "1000000000", "-o", bad).returncode == 0
    done = run("audit", bad, "--require", required(tmp_path), "--json")
    assert done.returncode == 1
    answer = json.loads(done.stdout)
    assert answer["verdict"] == "certified"
    assert answer["required"] == {
        "met": False,
        "differs": [{"field": "n", "required": 100_000, "found": 1_000_000_000}],
    }
    said = run("audit", bad, "--require", required(tmp_path))
    assert said.returncode == 1
    assert "required     n = 100,000, the file has 1,000,000,000\n" in said.stdout


def test_a_file_for_smaller_values_is_not_deployed(tmp_path: Path) -> None:
    agreed = required(tmp_path, "n = 1_000_000\nmax_value = 5\neps = 1\ndelta = 1e-6\n")
    done = run("audit", FILE, "--require", agreed, "--json")
    assert done.returncode == 1
    (one,) = json.loads(done.stdout)["required"]["differs"]
    assert one == {"field": "max_value", "required": 5, "found": 1}
    larger = shipped_folder() / "files" / "5-1-1e-06-0.9.json"
    assert run("audit", larger, "--require", agreed).returncode == 0


OTHERS: dict[str, tuple[dict[str, Any], Any]] = {
    "n": ({"n": 99_999}, 99_999),
    "eps": ({"eps": 1.25}, 1.25),
    "delta": ({"delta": 2e-6}, 2e-6),
    "dimension": ({"dimension": 3, "eps": 2.0}, 3),
    "adjacency": ({"adjacency": "zero-out"}, "zero-out"),
    "releases": ({"releases": 2, "eps": 2.5, "delta": 1e-3}, 2),
    "honest": ({"honest": 0.75, "delta": 1e-3}, 0.75),
}


@pytest.mark.parametrize("name", OTHERS)
def test_every_field_is_compared(name: str, tmp_path: Path) -> None:
    options, value = OTHERS[name]
    has = StatedProblem.of(made(**options))
    wanted = read_requirement(required(tmp_path))
    found = {one.field: (one.required, one.found) for one in differences(wanted, has)}
    assert found[name] == (getattr(wanted, name), value)
    assert set(found) == {*options}
    # and the file is for itself
    again = required(tmp_path, json.dumps(has.as_json()), "itself.json")
    assert read_requirement(again) == has


def test_the_same_change_is_not_any_change(tmp_path: Path) -> None:
    text = AGREED.replace("eps = 1", "eps = 2") + "releases = 2\n"
    path = tmp_path / "same.json"
    save(made(releases=2, same_change=True, eps=2.0), path)
    done = run("audit", path, "--require", required(tmp_path, text), "--json")
    assert done.returncode == 1
    (one,) = json.loads(done.stdout)["required"]["differs"]
    assert one == {"field": "changes", "required": "any", "found": "same"}
    both = required(tmp_path, text + 'changes = "same"\n')
    assert run("audit", path, "--require", both).returncode == 0


def test_the_range_of_real_values_is_compared(tmp_path: Path) -> None:
    file = made()
    settings = {**file.provenance.settings, "low": -1.5, "high": 0.1234567}
    made_for = file.provenance.model_copy(update={"settings": settings})
    real = reassembled(file.model_copy(update={"provenance": made_for}), file.certificate)
    path = tmp_path / "real.json"
    save(real, path)
    done = run("audit", path, "--require", required(tmp_path), "--json")
    assert done.returncode == 1
    differs = json.loads(done.stdout)["required"]["differs"]
    assert [(one["field"], one["required"], one["found"]) for one in differs] == [
        ("low", None, -1.5),
        ("high", None, 0.1234567),
    ]
    ends = required(tmp_path, AGREED + "low = -1.5\nhigh = 0.1234567\n")
    said = run("audit", path, "--require", ends)
    assert said.returncode == 0
    assert "real in [-1.5, 0.1234567]," in said.stdout  # not rounded to six digits


def test_every_field_of_a_problem_may_be_required() -> None:
    from paramsearch.cli.proving.requirement import _Requirement

    assert [one.name for one in fields(StatedProblem)] == list(_Requirement.model_fields)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (AGREED + "max_values = 5\n", "max_values = 5 is unknown here"),
        (AGREED.replace("n = 100_000\n", ""), "n is missing"),
        (AGREED.replace("100_000", "0"), "n = 0 must be at least 1"),
        (AGREED.replace("100_000", '"many"'), "n = 'many' must be a whole number"),
        (AGREED.replace("1e-6", "nan"), "delta = nan must be a finite number"),
        (AGREED.replace("1e-6", "1.5"), "delta = 1.5 must be less than 1"),
        (AGREED + 'adjacency = "replace"\n', "adjacency = 'replace' must be 'substitution'"),
        (AGREED + 'changes = "same"\n', "give releases as well"),
        (AGREED + "low = 0\n", "give both or neither"),
        (AGREED + "low = 1\nhigh = 0.5\n", "low = 1.0 is not below high = 0.5"),
        ("n = [[[", "is not TOML"),
        ("n = " + "9" * 5000, "a number of thousands of digits"),
        ("n = " + "[" * 3000 + "]" * 3000, "problem.toml"),
        ("", "n is missing"),
    ],
)
def test_a_requirement_that_is_none(text: str, said: str, good: Path, tmp_path: Path) -> None:
    done = run("audit", good, "--require", required(tmp_path, text), "--json")
    assert done.returncode == 2
    failure = json.loads(done.stdout)["failure"]
    assert failure["kind"] == "InvalidConfiguration"
    assert said in failure["message"]
    assert "problem.toml" in failure["message"]
    assert "set_int_max_str_digits" not in done.stderr
    if "unknown" in said or "missing" in said:
        for known in ("max_value", "adjacency", "changes", "honest", "high"):
            assert known in failure["message"]


def test_json_is_read_strictly(tmp_path: Path) -> None:
    path = required(tmp_path, '{"n": 1, "n": 2}', "problem.json")
    with pytest.raises(InvalidConfiguration, match="'n' is given twice"):
        read_requirement(path)
    with pytest.raises(InvalidConfiguration, match="cannot read"):
        read_requirement(tmp_path / "none.toml")


@pytest.mark.parametrize(
    "option",
    [
        ("--eps", "2"),
        ("--delta", "1e-5"),
        ("--releases", "2"),
        ("--honest", "0.9"),
        ("--adjacency", "zero-out"),
        ("--same-change",),
    ],
)
def test_the_gate_is_about_the_own_claim(
    option: tuple[str, ...], good: Path, tmp_path: Path
) -> None:
    done = run("audit", good, "--require", required(tmp_path), *option)
    assert (done.returncode, done.stdout) == (2, "")
    assert f"{option[0]} asks about another claim than the file's own" in done.stderr


def test_what_wins_where_two_things_are_wrong(good: Path, tmp_path: Path) -> None:
    other = required(tmp_path, AGREED.replace("100_000", "5"), "other.toml")
    undecided = run("audit", good, "--require", other, "--budget", "1e-9", "--json")
    assert undecided.returncode == 1
    assert json.loads(undecided.stdout)["verdict"] == "undecided"
    agreed = run("audit", good, "--require", required(tmp_path), "--budget", "1e-9")
    assert agreed.returncode == 3
    changed = tmp_path / "changed.json"
    changed.write_text(good.read_text().replace('"seed": null', '"seed": 7'))
    rejected = run("audit", changed, "--require", other, "--json")
    assert rejected.returncode == 2
    assert json.loads(rejected.stdout)["required"]["met"] is False


def test_a_configuration_that_does_not_say_its_users(tmp_path: Path) -> None:
    data = {key: value for key, value in SMALL.items() if key != "n"}
    path = required(tmp_path, json.dumps(data), "bare.json")
    done = run("audit", path, "--require", required(tmp_path), "--json")
    assert done.returncode == 1
    answer = json.loads(done.stdout)
    assert answer["problem"]["n"] is None
    assert [one["field"] for one in answer["required"]["differs"]] == ["n"]
    assert (
        "required    n = 100,000, the file has none"
        in run("audit", path, "--require", required(tmp_path)).stdout
    )


def problem_of(*arguments: object, stdin: str = "") -> Any:
    done = run(*arguments, "--json", stdin=stdin)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["problem"]


def test_every_answer_has_the_problem_in_the_same_shape(tmp_path: Path) -> None:
    """Was: no n in any of them."""
    whole = StatedProblem.of(load(FILE)).as_json()
    assert whole == {
        "n": 1_000_000,
        "max_value": 1,
        "dimension": 1,
        "eps": 1.0,
        "delta": 1e-6,
        "adjacency": "substitution",
        "releases": 1,
        "changes": "any",
        "honest": 1.0,
        "low": None,
        "high": None,
    }
    asked = ("--n", 1_000_000, "--eps", 1, "--delta", "1e-6", "--max-value", 1)
    for arguments in (
        ("audit", FILE),
        ("profile", FILE),
        ("lookup", *asked),
        ("randomize", FILE, "--value", 1),
        ("simulate", FILE),
        ("client", "javascript", FILE, "-o", tmp_path / "client"),
        ("pareto", *asked, "--fraction", "0.9", "--tries", 1),
        ("compare", *asked),
    ):
        assert problem_of(*arguments) == whole, arguments
    answer = json.loads(run("compose", FILE, "--delta", "1e-6", "--json").stdout)
    assert [one["problem"] for one in answer["files"]] == [whole]
    file = json.loads(run("rescale", FILE, "--n", 10_000, "--json").stdout)
    known = {key: value for key, value in file["problem"].items() if value is not None}
    assert known == {key: {**whole, "n": 10_000}[key] for key in known}
    small = tmp_path / "small.json"
    save(made(n=50), small)
    sent = run("randomize", small, "--value", "-", stdin="1\n" * 50).stdout
    assert problem_of("analyze", small, stdin=sent) == StatedProblem.of(read(small)).as_json()
    key = tmp_path / "key.pem"
    assert problem_of("sign", small, "--key", key, "--create-key")["n"] == 50


def test_the_problem_of_an_answer_is_what_it_is_about(good: Path) -> None:
    options = ("--eps", "3", "--delta", "0.01", "--releases", "2", "--same-change")
    found = problem_of("audit", good, *options, "--tier", "fast")
    assert (found["eps"], found["delta"], found["releases"]) == (3.0, 0.01, 2)
    assert (found["honest"], found["changes"], found["n"]) == (1.0, "same", 100_000)
    found = problem_of("profile", good, "--eps", "3")
    assert (found["eps"], found["delta"]) == (3.0, None)
    both = ("--adjacency", "substitution", "--adjacency", "zero-out")
    asked = ("--n", 1_000_000, "--eps", 1, "--delta", "1e-6", "--max-value", 1)
    assert problem_of("compare", *asked, *both, "--tries", 1)["adjacency"] is None
