"""Files for zero-out: their own format, what they say, and what nobody can make of them."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import jsonschema
import pytest
from places import EXAMPLES, SHIPPED

from accounting import InvalidConfiguration, Violated
from accounting.model.change import Adjacency
from accounting.model.configuration import Proposal
from paramsearch import audit, certify, load, uncertified
from paramsearch.deploy import Analyzer, Randomizer
from paramsearch.parameters.assembly import consistent, rescaled
from paramsearch.parameters.claim import Claim
from paramsearch.parameters.expected_cost import ExpectedCost
from paramsearch.parameters.file_schema import schema
from paramsearch.parameters.parameter_file import ParameterFile, digest, dumps, from_json
from paramsearch.parameters.words import file_claim_in_words

ATOM = {"atom": [-1, 1], "r": 12.0, "p": 0.985}
HISTOGRAM = {"max_value": 1, "eps": 1.0, "delta": 1e-6, "n": 10_000, "atoms": [ATOM]}
SUM = json.loads((EXAMPLES / "sum_to_2.json").read_text())


@cache
def histogram(adjacency: Adjacency = "zero-out", eps_central: float = 0.9) -> ParameterFile:
    stated = {"dimension": 100, "eps_central": eps_central, "adjacency": adjacency}
    return certify(uncertified(Proposal.of({**HISTOGRAM, **stated})))


@cache
def sequences(*, same_change: bool) -> ParameterFile:
    noise = [{**atom, "p": 0.993} for atom in SUM["atoms"]]
    proposal = Proposal.of({**SUM, "atoms": noise, "eps_central": 0.4, "adjacency": "zero-out"})
    return certify(uncertified(proposal, releases=2, same_change=same_change))


def forged(file: ParameterFile, **changes: dict[str, Any] | str) -> dict[str, Any]:
    """The document with other entries, sealed again."""
    data = json.loads(dumps(file))
    for name, change in changes.items():
        data[name] = {**data[name], **change} if isinstance(change, dict) else change
    data["sha256"] = digest(data)
    return data


OLD = [*sorted(EXAMPLES.glob("same_change*.json")), *sorted(SHIPPED.glob("5-1-*.json"))]


@pytest.mark.parametrize("path", OLD, ids=lambda path: path.stem)
def test_files_for_substitution_keep_their_bytes(path: Any) -> None:
    text = path.read_text(encoding="utf-8")
    file = from_json(json.loads(text), source=path.name)  # which checks the hash
    assert dumps(file) == text
    assert file.problem.adjacency == "substitution"
    assert file.format == "correlated-noise-parameters/1"


@pytest.mark.slow
def test_files_for_zero_out_have_a_format_of_their_own() -> None:
    made = [histogram(), sequences(same_change=False), sequences(same_change=True)]
    validator = jsonschema.Draft202012Validator(schema())
    for file in made:
        assert file.format == "correlated-noise-parameters/4"
        assert from_json(json.loads(dumps(file)), source="the file") == file
        consistent(file)
        validator.validate(json.loads(dumps(file)))
        assert audit(file).verdict == "certified"
        assert audit(file).confirmed
        assert "zero-out" in str(file)
    assert histogram("substitution", 0.45).format == "correlated-noise-parameters/2"


def test_what_a_claim_says() -> None:
    assert file_claim_in_words(histogram()) == (
        "(1, 1e-06) for one user's input present or absent (zero-out), a vector of dimension 100 "
        "with at most one value"
    )
    assert "one changed input" in file_claim_in_words(histogram("substitution", 0.45))
    several = file_claim_in_words(sequences(same_change=False))
    assert "2 releases together, all inputs of one user present or absent (zero-out)" in several
    assert "only if it is the same in every one" in file_claim_in_words(sequences(same_change=True))


def test_one_coordinate_is_touched() -> None:
    file = histogram()
    assert file.certificate is not None
    assert sum(file.certificate.proof.values()) == 2
    both = ExpectedCost.of_file(file), ExpectedCost.of_file(histogram("substitution", 0.45))
    assert all(cost.over_central is not None and 1.1 < cost.over_central < 1.13 for cost in both)
    assert file.error.rmse < 0.5 * both[1].error.rmse
    with pytest.raises(
        Violated, match="take eps_central below eps / 2, since a change touches two"
    ):
        histogram("substitution", 0.9)
    with pytest.raises(Violated, match="take eps_central below eps, or claim"):
        histogram("zero-out", 1.3)


def test_the_other_adjacency_can_be_asked_about() -> None:
    file = histogram()
    asked = audit(file, Claim.of(file, adjacency="substitution"), explain=False)
    assert (asked.verdict, asked.confirmed) == ("violated", None)
    assert asked.proof is not None
    assert asked.proof.worst_change.moved
    other = histogram("substitution", 0.45)
    assert audit(other, Claim.of(other, adjacency="zero-out")).verdict == "certified"


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"problem": {"adjacency": "substitution"}}, "format"),
        ({"format": "correlated-noise-parameters/2"}, "format"),
        ({"problem": {"adjacency": "zeroout"}}, "adjacency"),
        (
            {
                "problem": {"adjacency": "substitution"},
                "format": "correlated-noise-parameters/2",
            },
            "does not cover the 3 ordered pairs",
        ),
        ({"certificate": {"worst_pair": [1, 0, 0, 1]}}, "is no change of an input"),
        ({"certificate": {"proof": {"ball": 3}}}, "does not cover the 2 ordered pairs"),
    ],
)
def test_a_tampered_adjacency_is_caught(changes: dict[str, Any], why: str) -> None:
    with pytest.raises(InvalidConfiguration, match=why):
        from_json(forged(histogram(), **changes), source="the file")
    data = json.loads(dumps(histogram()))
    data["problem"]["adjacency"] = "substitution"
    with pytest.raises(InvalidConfiguration, match=r"format|changed after"):
        from_json(data, source="the file")


def test_a_forged_file_for_substitution_is_violated() -> None:
    data = forged(
        histogram(),
        format="correlated-noise-parameters/2",
        problem={"adjacency": "substitution"},
        certificate={"proof": {"ball": 3}},
        error={"rmse_over_central": histogram().error.rmse / 2.799238484548774},
    )
    found = audit(from_json(data, source="the file"), explain=False)
    assert found.verdict in ("violated", "rejected")
    assert found.noise_verdict in (None, "violated")


def test_a_sequence_of_both_directions_is_no_certificate() -> None:
    file = sequences(same_change=False)
    mixed = [{"change": [2, 0], "times": 1}, {"change": [0, 2], "times": 1}]
    with pytest.raises(InvalidConfiguration, match="vanish and inputs that appear"):
        from_json(forged(file, certificate={"worst_sequence": mixed}), source="the file")
    worse = [{"change": [2, 1], "times": 2}]
    with pytest.raises(InvalidConfiguration, match="is no change"):
        from_json(forged(file, certificate={"worst_sequence": worse}), source="the file")


def test_clients_run_them_unchanged() -> None:
    proposal = Proposal.of({**SUM, "adjacency": "zero-out"})
    file = certify(uncertified(proposal))
    client, server = Randomizer(file), Analyzer(file)
    for value in (2, 0, 1):
        server.add(client(value))
    assert rescaled(file, 50).problem.adjacency == "zero-out"
    assert certify(rescaled(file, 50)).certificate == file.certificate


def test_a_configuration_may_state_it() -> None:
    proposal = Proposal.of({**SUM, "adjacency": "zero-out"})
    assert Claim.of(proposal).adjacency == "zero-out"
    assert "zero-out" in repr(proposal)
    assert Claim.of(Proposal.of(SUM)).adjacency == "substitution"
    found = audit(proposal)
    assert found.proof is not None
    assert dict(found.proof.covered) == {"ball": 4}


def test_old_files_are_not_for_zero_out() -> None:
    for path in OLD[:2]:
        assert Claim.of(load(path)).adjacency == "substitution"
