"""What a message advises is accepted: commands, options and numbers."""

from __future__ import annotations

import re
import shlex
import sys
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from program import run

from accounting import InvalidParameter
from accounting.base.validation import SMALLEST_GAP
from paramsearch import Query, Request, Table
from paramsearch.certification.audit import _remedy
from paramsearch.cli import app as program
from paramsearch.cli.searching import generate as generate_command
from paramsearch.cli.tables import lookup as lookup_command
from paramsearch.parameters.claim import Claim

QUERIES = st.fixed_dictionaries(
    {
        "n": st.integers(1, 10**9),
        "eps": st.floats(1e-3, 1000),
        "delta": st.one_of(st.floats(1e-40, 0.5), st.sampled_from([1e-300, 1e-31, 1e-30, 1e-6])),
        "max_value": st.one_of(st.integers(1, 300), st.integers(1, 10**9)),
        "objective": st.sampled_from(["messages", "bits"]),
    }
)
ERRORS = st.one_of(
    st.just({}),
    st.fixed_dictionaries({"max_rmse": st.floats(1e-9, 1e9)}),
    st.fixed_dictionaries({"max_error_ratio": st.floats(1, 100, exclude_min=True)}),
)


def accepted(command: str, monkeypatch: pytest.MonkeyPatch) -> Request:
    """The request of a command, which would be searched for."""
    asked: list[Request] = []
    monkeypatch.setattr(
        generate_command, "generate_and_deliver", lambda request, *_, **__: asked.append(request)
    )
    name, *arguments = shlex.split(command)
    assert name == "paramsearch"
    program.app(arguments, standalone_mode=False)
    (request,) = asked
    return request


@settings(deadline=None, max_examples=150)
@given(QUERIES, ERRORS)
def test_the_command_of_a_lookup_is_accepted(numbers: dict[str, Any], error: Any) -> None:
    query = Query(**numbers, **error)
    with pytest.MonkeyPatch.context() as patch:
        refusal = None
        try:
            command = Table.open().lookup(query).command() or ""
        except InvalidParameter as refused:
            refusal = str(refused)
            command = refusal.partition("make one: ")[2]
        assert refusal is None or bool(command) != ("none can be generated" in refusal)
        if command:
            request = accepted(command, patch)
            assert (request.n, request.eps, request.delta) == (query.n, query.eps, query.delta)
            assert request.max_value == query.max_value
            assert request.objective == query.objective
            assert request.max_rmse == query.max_rmse


@pytest.mark.parametrize(
    ("numbers", "cause"),
    [
        ({"delta": 1e-40}, "delta = 1e-40 must be at least"),
        ({"eps": 200.0, "max_value": 10**6}, "eps = 200 must be at most"),
        ({"max_rmse": 1.0}, "max_rmse = 1 is out of reach"),
        ({"max_error_ratio": 1.0001}, r"max_error_ratio = 1\.0001 is out of reach"),
    ],
)
def test_a_lookup_says_why_no_search_helps(numbers: dict[str, Any], cause: str) -> None:
    query = Query(**{"n": 1000, "eps": 1.0, "delta": 1e-6, "max_value": 5, **numbers})
    assert query.command() is None
    with pytest.raises(InvalidParameter, match=f"none can be generated: {cause}"):
        Table.open().lookup(query)


def test_the_errors_that_a_lookup_mentions_give_the_files_that_it_means() -> None:
    table = Table.open()
    asked: dict[str, Any] = {"n": 1000, "eps": 1.2, "delta": 1e-6, "max_value": 9}
    shown = run("lookup", *(f"--{key.replace('_', '-')}={asked[key]}" for key in asked)).stdout
    others = re.findall(r"--max-rmse (\S+): ([\d,.]+) noise", shown)
    assert len(others) >= 2
    for error, messages in others:
        found = table.lookup(Query(**asked, max_rmse=float(error)))
        assert f"{found.row.noise_messages:,.1f}" == messages


@pytest.mark.parametrize("max_value", [7, 10, 15, 30])
def test_a_lookup_for_messages_says_where_bits_cost_less(max_value: int) -> None:
    """At 7 and 15 a power of two of symbols is just enough, and the fewest messages need more."""
    table = Table.open()
    numbers: dict[str, Any] = {"n": 10**6, "eps": 1.0, "delta": 1e-6, "max_value": max_value}
    found = table.lookup(Query(**numbers))
    shortest = table.lookup(Query(**numbers, objective="bits"))
    assert shortest.fewer_bits is None
    if max_value in {7, 15}:
        assert found.fewer_bits == shortest.row
        assert shortest.row.bits_per_user < found.row.bits_per_user - 0.9
    else:
        assert found.fewer_bits is None
        assert shortest.row.bits_per_user == found.row.bits_per_user
    said = run("lookup", *(f"--{key.replace('_', '-')}={numbers[key]}" for key in numbers)).stdout
    assert ("--objective bits costs" in said) == (found.fewer_bits is not None)


@settings(deadline=None)
@given(
    eps=st.floats(1e-3, 100),
    max_value=st.integers(1, 1000),
    honest=st.floats(0.01, 1),
    dimension=st.sampled_from([1, 2, 50]),
    releases=st.sampled_from([1, 2, 3]),
    by_ratio=st.booleans(),
)
def test_the_smallest_error_that_is_advised_is_accepted(by_ratio: bool, **numbers: Any) -> None:
    name = "max_error_ratio" if by_ratio else "max_rmse"
    tiny = 1 + 1e-9 if by_ratio else 1e-12
    try:
        Request(n=1000, delta=1e-6, **numbers, **{name: tiny})  # type: ignore[arg-type]
    except InvalidParameter as error:
        advised = float(re.findall(r"allow at least ([^\s,]+)", str(error))[0])
        Request(n=1000, delta=1e-6, **numbers, **{name: advised})  # type: ignore[arg-type]


def test_a_smaller_gap_is_advised_only_where_there_is_one() -> None:
    claim = Claim(eps=1.0, delta=1e-6)
    assert "--gap below 0.001" in _remedy(claim, 1e-3, coupled=False, late=False)
    assert "--gap" not in _remedy(claim, SMALLEST_GAP, coupled=False, late=False)


@pytest.mark.parametrize(
    ("arguments", "message", "said"),
    [
        (("pareto",), "too large: ask for --tier fast", "(pareto has no --tier)"),
        (("generate",), "too large: ask for --tier fast", None),
        (("generate",), "ask for --tier fast, or for a wider --gap", "(generate has no --gap)"),
        (("certify",), "ask for --tier fast, or for a wider --gap", None),
        (("lookup",), "make one: paramsearch generate --n 5 --tries 3 -o FILE", None),
        (("audit",), "the key: sign --create-key makes one", None),
        (("randomize",), "use (`paramsearch rescale FILE --n USERS`)", None),
        (("audit", "--bogus"), "no such option: --bogus", None),
        ((), "no such option: --bogus", None),
    ],
)
def test_an_option_that_a_command_does_not_have_is_not_advised_in_silence(
    monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], message: str, said: str | None
) -> None:
    monkeypatch.setattr(sys, "argv", ["paramsearch", *arguments])
    found = program._without_dead_ends(message)
    assert found == (message if said is None else f"{message} {said}")


ASKED = ("--n", "1e5", "--eps=1", "--delta", "1e-6", "--max-value", "5")


@pytest.mark.parametrize(
    ("more", "command"),
    [
        (("--releases", "7"), "generate {asked} --releases 7 -o FILE"),
        (("--honest=0.9", "-o", "a b.json"), "generate {asked} --honest=0.9 -o 'a b.json'"),
        (("folder", "--cold", "--objective", "bits"), "generate {asked} --cold --objective bits"),
        (("--dimension", "9"), "generate-sparse {asked} --dimension 9 -o FILE"),
        (("--zeta", "0.5"), "generate-real --n 1e5 --eps=1 --delta 1e-6 --zeta 0.5 -o FILE"),
        (("--releases",), "generate {asked} --releases ... -o FILE"),
    ],
)
def test_what_no_lookup_can_serve_names_the_search_that_does(
    more: tuple[str, ...], command: str
) -> None:
    """Was: no such option."""
    done = run("lookup", *ASKED, *more)
    assert (done.returncode, done.stdout) == (2, "")
    assert f"a search makes one: paramsearch {command.format(asked=' '.join(ASKED))}" in done.stderr
    assert "-o FILE" not in done.stderr or "-o" not in more


def test_every_option_of_generate_is_one_of_lookup_or_named_by_it() -> None:
    commands = program._commands()
    options = {option for param in commands["generate"].params for option in param.opts}
    unserved = options - {option for param in commands["lookup"].params for option in param.opts}
    assert {"--releases", "--same-change", "--honest", "--budget", "--tier"} <= unserved
    for option in unserved:
        command = lookup_command.search_instead(option, [*ASKED, option], commands)
        assert command is not None
        assert command.startswith("paramsearch generate --n 1e5")
    assert lookup_command.search_instead("--bogus", ASKED, commands) is None
    assert "--releases" not in run("lookup", "--help").stdout
