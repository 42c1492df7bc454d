"""What somebody meets who uses the packages from Python: names, paths, reprs, documented fields."""

from __future__ import annotations

import ast
import inspect
import re
import rlcompleter
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, get_args, get_type_hints

import numpy as np
import pytest
from places import EXAMPLES, SHIPPED
from pydantic import BaseModel
from test_examples import FACES, public

import accounting
import paramsearch
from accounting import InvalidParameter, Protocol, prove
from accounting.base.enclosure import Summarized
from paramsearch import (
    ParameterFile,
    Query,
    Simulation,
    Table,
    audit,
    load,
    read,
    save,
    simulate,
    uncertified,
)
from paramsearch.deploy import Analyzer, Estimate, RandomizedReals, Randomizer, SeededBits
from paramsearch.deploy.randomizer import Batch
from paramsearch.generation.generate import Generated
from paramsearch.parameters.parameter_file import digest
from paramsearch.parameters.signature import create_key, sign, signature_path, verify

FILE = SHIPPED / "5-1-1e-06-0.9.json"


# names


def test_completion_offers_the_public_names() -> None:
    completer = rlcompleter.Completer({"paramsearch": paramsearch})
    offered = []
    while (text := completer.complete("paramsearch.", len(offered))) is not None:
        offered.append(text.rstrip("(").removeprefix("paramsearch."))
    assert {name for name in paramsearch.__all__ if name != "__version__"} <= set(offered)
    assert {"generate", "simulate", "Table", "audit"} <= set(offered)


@pytest.mark.parametrize("face", FACES)
def test_importing_everything_gives_the_public_names(face: str) -> None:
    script = f"from {face} import *; import {face} as face; print(set(face.__all__) - set(dir()))"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.stderr) == ("set()\n", "")


def test_both_packages_have_the_version_of_the_distribution() -> None:
    assert paramsearch.__version__ == accounting.__version__
    assert re.fullmatch(r"\d+\.\d+\.\d+", paramsearch.__version__)


# paths


@pytest.mark.parametrize("kind", [str, Path])
def test_paths_are_strings_or_paths(kind: Callable[[Path], Any], tmp_path: Path) -> None:
    file = load(kind(FILE))
    copy = tmp_path / "copy.json"
    save(file, kind(copy))
    assert load(kind(copy)) == read(kind(copy)) == file
    assert accounting.load(kind(EXAMPLES / "sum_to_2.json")).max_value == 2
    assert Table.open(kind(FILE.parent.parent)).rows == Table.open().rows
    key = tmp_path / "key"
    public_key = create_key(kind(key))
    signature = signature_path(kind(copy))
    signature.write_bytes(sign(file, kind(key)))
    verify(file, kind(signature), kind(public_key))


@pytest.mark.parametrize("wrong", [0, None, b"file.json", 3.5])
def test_what_is_no_path_is_refused(wrong: Any) -> None:
    """The number 0 would be a file descriptor: reading it might wait for the keyboard."""
    file = load(FILE)
    for use in (load, read, accounting.load, lambda path: save(file, path), create_key):
        with pytest.raises(InvalidParameter, match="is not a path: give a string or a Path"):
            use(wrong)


def test_a_name_that_no_file_can_have_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidParameter, match="null character"):
        save(load(FILE), f"{tmp_path}/a\0b")
    assert list(tmp_path.iterdir()) == []


# what is shown


@cache
def shown() -> dict[str, Summarized]:
    """One object of every kind that is shown as two lines, small and large ones."""
    file = load(FILE)
    proposal = read(EXAMPLES / "sum_to_2.json")
    assert isinstance(proposal, accounting.Proposal)
    randomizer = Randomizer(file, SeededBits("a seed"), not_private=True)
    analyzer = Analyzer(file, allow_few=True)
    analyzer.add([0] * 100)
    protocol = Protocol(proposal.configuration())
    question = accounting.Question(eps=1.0)
    many = np.arange(100_000.0)
    return {
        "file": file,
        "large file": load(SHIPPED / "100-1-1e-06-0.9.json"),
        "draft": uncertified(proposal),
        "proposal": proposal,
        "generated": Generated(file, None, (), interrupted=True),
        "audit": audit(proposal),
        "violated": audit(proposal, paramsearch.Claim(eps=1.0, delta=1e-9), explain=False),
        "found": Table.open().lookup(Query(n=1000, eps=1.1, delta=1e-6, max_value=5)),
        "table": Table.open(),
        "empty table": Table(Path("nowhere"), ()),
        "hostile table": Table(Path("<script>alert(1)</script>\n\x1b[31m" * 50), ()),
        "delta": protocol.delta(1.0),
        "delta of releases": Protocol(protocol.configuration, releases=2).delta(1.0),
        "proof": prove(file.mechanism(), question, tier="fast"),
        "randomizer": randomizer,
        "private randomizer": Randomizer(file),
        "reals": RandomizedReals(randomizer, low=-1.0, clip=True),
        "batch": Batch(np.arange(10**6), np.arange(10**6)),
        "analyzer": analyzer,
        "estimate": analyzer.result(),
        "long estimate": Estimate(many, 1.5, many - 3, many + 3, 0.95, 7, 0, 0, None),
        "simulation": simulate(Simulation(file, users=file.problem.n)),
    }


class Balance(HTMLParser):
    """The texts of a fragment, and the tags that are open."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, _: list[tuple[str, str | None]]) -> None:
        if tag != "br":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.mark.parametrize("name", [*shown()])
def test_results_are_shown_as_two_short_lines(name: str) -> None:
    thing = shown()[name]
    first, second = repr(thing).split("\n")
    assert first.startswith(f"<{type(thing).__name__} ")
    assert second.startswith(" ")
    assert second.endswith(">")
    assert min(len(first), len(second)) > 4
    assert max(len(first), len(second)) < 400
    page = Balance()
    page.feed(thing._repr_html_())
    page.close()
    assert page.open == []
    assert "<script" not in thing._repr_html_()
    name = type(thing).__name__
    assert page.text == name + first.removeprefix(f"<{name}") + second[1:-1]


def test_what_is_shown_is_what_matters() -> None:
    texts = {name: repr(thing) for name, thing in shown().items()}
    assert "delta in [9.99458e-07, 9.99558e-07]" in texts["file"]  # rounded outward
    assert "not certified" in texts["draft"]
    assert "delta in" not in texts["draft"]
    assert "interrupted" in texts["generated"]
    assert "violated: delta is at least" in texts["violated"]
    assert "(1, 1e-09) for one changed input" in texts["violated"]
    assert "stricter than asked" in texts["found"]
    assert "any sequence of changes" in texts["delta of releases"]
    assert "SeededBits, which protects nobody" in texts["randomizer"]
    assert "a seed" not in texts["randomizer"]
    assert "bits of the operating system" in texts["private randomizer"]
    assert "sum 100 in [" in texts["estimate"]
    assert "too few" in texts["estimate"]
    assert "100,000 coordinates" in texts["long estimate"]
    assert "\x1b" not in texts["hostile table"]


def test_a_file_for_the_same_change_says_so() -> None:
    assert "2 releases with the same change in each" in repr(
        load(EXAMPLES / "same_change_3_2_1e-6.json")
    )


def test_what_is_shown_is_no_part_of_the_file() -> None:
    one, other = load(FILE), load(FILE)
    assert one == other
    assert set(one.model_dump()) == set(ParameterFile.model_fields)
    assert digest(one.model_dump(mode="json")) == one.sha256


# documented fields


def records() -> dict[str, type]:
    """Public dataclasses and models, and those that their fields consist of."""
    found: dict[str, type] = {}
    waiting = [thing for thing in public().values() if inspect.isclass(thing)]
    while waiting:
        kind = waiting.pop()
        module = getattr(kind, "__module__", "").split(".")[0]
        if module not in {"accounting", "paramsearch"} or kind.__qualname__.startswith("_"):
            continue
        name = f"{kind.__module__}.{kind.__qualname__}"
        if name not in found and (is_dataclass(kind) or issubclass(kind, BaseModel)):
            found[name] = kind
            waiting += [part for hint in get_type_hints(kind).values() for part in parts(hint)]
            waiting += [base for base in kind.__mro__[1:] if is_dataclass(base)]
    return dict(sorted(found.items()))


def parts(hint: Any) -> Iterator[type]:
    """The classes in an annotation."""
    if inspect.isclass(hint) and not get_args(hint):
        yield hint
    for inner in get_args(hint):
        yield from parts(inner)


def own_fields(kind: type) -> set[str]:
    """Fields that the class itself declares."""
    names = {f.name for f in fields(kind)} if is_dataclass(kind) else set(kind.model_fields)  # type: ignore[attr-defined]  # a model otherwise
    return {name for name in names & set(inspect.get_annotations(kind)) if name[0] != "_"}


def documented(kind: type) -> set[str]:
    """Fields with an entry in the class's docstring, or with a docstring of their own."""
    found = set()
    for line in (kind.__doc__ or "").splitlines():
        if entry := re.match(r" +([a-z_0-9]+(?:, [a-z_0-9]+)*): \S", line):
            found |= set(entry[1].split(", "))
    (tree,) = ast.parse(textwrap.dedent(inspect.getsource(kind))).body
    assert isinstance(tree, ast.ClassDef)
    for node, after in zip(tree.body, tree.body[1:], strict=False):
        text = isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and text:
            found.add(node.target.id)
    return found


def test_the_walk_over_fields_finds_them() -> None:
    names = {name.rsplit(".", 1)[1] for name in records()}
    assert {
        "Request",
        "Problem",
        "ParameterFile",
        "Certificate",
        "AtomNoise",
        "Row",
        "Cell",
    } <= names
    assert "eps" in own_fields(records()["accounting.model.problem.Problem"])


@pytest.mark.parametrize("name", records())
def test_every_field_is_documented(name: str) -> None:
    kind = records()[name]
    assert own_fields(kind) - documented(kind) == set()
