"""Files with noise in bursts: format 5, what refuses them, and what old files keep."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from places import EXAMPLES, SHIPPED

from accounting import InvalidConfiguration
from accounting.model.configuration import Proposal
from paramsearch import audit, certify, uncertified
from paramsearch.parameters.assembly import consistent, rescaled
from paramsearch.parameters.documents import RejectedFile, read_source
from paramsearch.parameters.file_schema import schema
from paramsearch.parameters.parameter_file import ParameterFile, digest, dumps, from_json
from paramsearch.parameters.words import laws_of, noise_in_words
from paramsearch.tables.cell import Cell

UNIT = {"atom": [-1, 1], "law": "burst", "rate": 20.0, "p": 0.8, "m": 8}
PROBLEM = {"max_value": 1, "eps": 1.0, "delta": 1e-4, "n": 1000, "eps_central": 0.9}
PLAIN = {"atom": [-1, 1], "r": 1.0, "p": 0.5}
FIVE = "correlated-noise-parameters/5"


@cache
def certified(*, mixed: bool = False) -> ParameterFile:
    atoms = [UNIT, PLAIN] if mixed else [UNIT]
    return certify(uncertified(Proposal.of({**PROBLEM, "atoms": atoms})))


def document(*, mixed: bool = False) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(dumps(certified(mixed=mixed)))
    return data


@pytest.mark.parametrize("mixed", [False, True])
def test_they_have_a_format_of_their_own(mixed: bool) -> None:
    file = certified(mixed=mixed)
    assert (file.format, file.noise) == (FIVE, "burst")
    assert from_json(json.loads(dumps(file)), source="the file") == file
    consistent(file)
    jsonschema.Draft202012Validator(schema()).validate(document(mixed=mixed))
    found = audit(file)
    assert (found.verdict, found.confirmed) == ("certified", True)
    again = certify(rescaled(file, 50))
    assert (again.format, again.certificate) == (FIVE, file.certificate)
    assert Cell.of(file).name == "1-1-0.0001-0.9-burst"


def test_the_numbers_of_the_law() -> None:
    """The mean of 20 bursts of 1 + NB(8, 0.8) copies, up to the rounding of 0.8 to a double."""
    (entry,) = certified().atoms
    p = 0.8
    assert entry.mean == pytest.approx(20 * (1 + 8 * p / (1 - p)), rel=1e-12)
    assert entry.rate == "20/1"
    assert not hasattr(entry, "r")


def test_words() -> None:
    assert noise_in_words(certified()) == "1 atom of 2 messages, in bursts (m = 8), central eps 0.9"
    assert ", some in bursts (m = 8), " in noise_in_words(certified(mixed=True))
    assert laws_of(certified()) == ["burst"]
    assert laws_of(certified(mixed=True)) == ["burst", "negative-binomial"]
    proposal = Proposal.of({**PROBLEM, "atoms": [PLAIN]})
    assert noise_in_words(proposal) == "1 atom of 2 messages, central eps 0.9"
    assert laws_of(proposal) == ["negative-binomial"]


def _set(**entries: Any) -> Callable[[dict[str, Any]], None]:
    return lambda data: data["atoms"][0].update(entries)


def _without(name: str) -> Callable[[dict[str, Any]], None]:
    return lambda data: data["atoms"][0].pop(name)


def _named_negative_binomials(data: dict[str, Any]) -> None:
    data["atoms"] = [{**data["atoms"][1], "law": "negative-binomial"}]


def _format(number: int) -> Callable[[dict[str, Any]], None]:
    return lambda data: data.update(format=f"correlated-noise-parameters/{number}")


TAMPERED: list[tuple[str, Callable[[dict[str, Any]], None], str]] = [
    ("law missing", _without("law"), "atoms"),
    ("m missing", _without("m"), r"m\b"),
    ("m = 0", _set(m=0), r"m\b"),
    ("m = 65", _set(m=65), r"m\b"),
    ("m = 2.0", _set(m=2.5), r"m\b"),
    ("r in a burst", _set(r=12.0), r"r\b"),
    ("unknown law", _set(law="poisson"), "law|atoms"),
    ("law of a wrong type", _set(law=5), "law|atoms"),
    ("a burst in format 1", _format(1), "format"),
    ("a burst in format 4", _format(4), "format"),
    ("an unknown format", _format(6), "format"),
    ("no burst in format 5", _named_negative_binomials, "format"),
    ("the law of another", _set(law="negative-binomial"), "atoms"),
]


@pytest.mark.parametrize(
    ("tamper", "why"), [case[1:] for case in TAMPERED], ids=[case[0] for case in TAMPERED]
)
def test_tampered_files_are_refused(
    tamper: Callable[[dict[str, Any]], None], why: str, tmp_path: Path
) -> None:
    """Sealed again, so that the hash is not the reason; the schema refuses them as well."""
    data = document(mixed=True)
    tamper(data)
    data["sha256"] = digest(data)
    with pytest.raises(InvalidConfiguration, match=why):
        from_json(data, source="the file")
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft202012Validator(schema()).validate(data)
    path = tmp_path / "file.json"
    path.write_text(json.dumps(data))
    if data["format"].endswith("/6"):
        with pytest.raises(InvalidConfiguration):
            read_source(path)
    else:
        assert isinstance(read_source(path).document, RejectedFile)


def test_an_unnamed_law_is_refused_beside_bursts() -> None:
    data = document(mixed=True)
    del data["atoms"][1]["law"]
    data["sha256"] = digest(data)
    with pytest.raises(InvalidConfiguration, match="every atom has a law in format 5"):
        from_json(data, source="the file")


def test_a_change_after_sealing_is_noticed() -> None:
    data = document()
    data["atoms"][0]["m"] = 7
    with pytest.raises(InvalidConfiguration, match="changed after"):
        from_json(data, source="the file")
    data["sha256"] = digest(data)
    found = audit(from_json(data, source="the file"), explain=False)
    assert found.verdict == "rejected"
    assert "atoms[0].mean" in found.reason


OLD = [*sorted(EXAMPLES.glob("same_change*.json")), *sorted(SHIPPED.glob("5-*.json"))]


@pytest.mark.parametrize("path", OLD, ids=lambda path: path.stem)
def test_old_files_keep_their_bytes_and_hash(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    file = from_json(json.loads(text), source=path.name)
    assert dumps(file) == text
    assert file.noise == "negative-binomial"
    content = {key: value for key, value in json.loads(text).items() if key != "sha256"}
    assert digest(content) == file.sha256 == json.loads(text)["sha256"]
    assert hashlib.sha256(dumps(file).encode()).hexdigest() == (
        hashlib.sha256(path.read_bytes()).hexdigest()
    )


def test_a_missing_field_is_named_with_its_atom_and_law() -> None:
    data = document(mixed=True)
    del data["atoms"][0]["m"]
    with pytest.raises(InvalidConfiguration) as caught:
        from_json(data, source="it")
    assert "atoms.0.m is missing in the noise of atom [-1, 1] with the law burst" in str(
        caught.value
    )


@pytest.mark.parametrize(
    ("number", "newer"), [("6", True), ("10", True), ("0", False), ("x", False)]
)
def test_a_newer_format_asks_for_a_newer_version(number: str, newer: bool) -> None:
    data = {**document(), "format": f"correlated-noise-parameters/{number}"}
    with pytest.raises(InvalidConfiguration) as caught:
        from_json(data, source="it")
    assert ("upgrade it" in str(caught.value)) is newer
