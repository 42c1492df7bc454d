"""Two findings, two words: a claim is certified or violated, a certificate confirmed or false."""

from __future__ import annotations

import json
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer
from places import EXAMPLES
from program import run

from accounting import Proposal
from accounting.base.enclosure import Enclosure
from accounting.model.change import Change
from accounting.model.proof import Proof
from paramsearch import audit, certify, load, uncertified
from paramsearch.certification import audit as auditor
from paramsearch.certification.certify import certificate_of
from paramsearch.cli.tables import audit_table
from paramsearch.filling.worker import AuditJob, run_audit
from paramsearch.parameters.assembly import reassembled
from paramsearch.parameters.claim import Claim
from paramsearch.parameters.parameter_file import ParameterFile, dumps
from paramsearch.tables.index import row_of
from paramsearch.tables.lookup import shipped_folder

SMALL = json.loads((EXAMPLES / "sum_to_2.json").read_text())
BY_HAND = ["proof", "precision", "software"]


@cache
def made(**options: Any) -> ParameterFile:
    names = {"eps", "delta", "dimension"}
    data = {**SMALL, **{name: options.pop(name) for name in names & options.keys()}}
    return certify(uncertified(Proposal.of(data), **options))


def restated(file: ParameterFile, **changes: Any) -> ParameterFile:
    """The file with another certificate, sealed again."""
    assert file.certificate is not None
    return reassembled(file, file.certificate.model_copy(update=changes))


def written(file: ParameterFile, folder: Path) -> Path:
    path = folder / "file.json"
    path.write_text(dumps(file))
    return path


def facts(text: str) -> dict[str, str]:
    """The first line of every label."""
    lines = [line.split(None, 1) for line in text.splitlines()]
    return {line[0]: line[1] for line in reversed(lines)}


def test_a_false_bound_is_not_called_a_violated_claim(tmp_path: Path) -> None:
    """Was: violated, with the claim and bounds that meet it beside that word."""
    false = restated(made(), delta_lower=0.0, delta_upper=1.5e-7)
    path = written(false, tmp_path)
    done = run("audit", path, "--json")
    answer = json.loads(done.stdout)
    assert done.returncode == 1
    assert (answer["verdict"], answer["claim_verdict"]) == ("misstated", "certified")
    assert answer["noise_verdict"] == "certified"
    assert answer["delta_lower"] <= answer["delta_upper"] <= answer["delta"] == 1e-6
    (finding,) = answer["certificate_false"]
    assert (finding["field"], finding["stated"]) == ("delta_upper", 1.5e-7)
    assert finding["reason"] == answer["reason"]
    assert answer["certificate_fields"]["delta_upper"] == "false"
    assert answer["certificate_confirmed"] is answer["certificate_consistent"] is False
    assert "satisfied_eps" not in answer  # nothing is wrong with the claim
    shown = run("audit", path)
    assert shown.returncode == 1
    said = facts(shown.stdout)
    assert said["verdict"] == "misstated"
    assert said["because"].startswith("the certificate says delta is at most 1.5e-07, but it is at")
    assert (
        said["its"] == "noise    by itself it meets the claim; the file is misstated all the same"
    )
    assert said["certificate"].startswith("false: delta_upper; not checked: ")
    assert "violated" not in shown.stdout


def test_both_findings_are_said_where_the_claim_is_violated_too() -> None:
    """The certificate of a file with too little noise cannot be true."""
    file = made()
    weak = uncertified(Proposal.of({**SMALL, "atoms": [{**a, "r": 8.0} for a in SMALL["atoms"]]}))
    found = audit(reassembled(weak, file.certificate), explain=False)
    assert (found.verdict, found.claim_verdict) == ("violated", "violated")
    assert found.reason.startswith("delta is at least ")
    assert found.certificate is not None
    assert found.certificate.fields("false") == ["delta_upper"]


@pytest.mark.parametrize("tier", ["ball", "fast"])
def test_a_false_worst_pair(tier: Any) -> None:
    """Was: confirmed."""
    file = made()
    assert file.certificate is not None
    assert file.certificate.worst_pair == (2, 0)
    found = audit(restated(file, worst_pair=(0, 1)), tier=tier)
    assert (found.verdict, found.claim_verdict, found.confirmed) == (
        "misstated",
        "certified",
        False,
    )
    assert found.certificate is not None
    assert found.certificate.fields("false") == ["worst_pair"]
    assert "where input 0 becomes 1, but it is at most " in found.reason
    # without a lower bound nothing is said of the change
    silent = audit(restated(file, worst_pair=(0, 1), delta_lower=0.0), tier=tier)
    assert silent.verdict == "certified"
    assert silent.certificate is not None
    assert "worst_pair" in silent.certificate.fields("unchecked")
    # a change whose delta is small attains a small lower bound
    assert audit(restated(file, worst_pair=(0, 1), delta_lower=1e-20), tier=tier).confirmed


def test_the_worst_pair_of_vectors() -> None:
    file = made(dimension=3, eps=2.0)
    assert file.certificate is not None
    found = audit(file)
    assert found.certificate is not None
    assert found.certificate.fields("unchecked") == BY_HAND
    assert Change.of(file.certificate.worst_pair).moved
    for wrong in ((1, 0, 0, 1), (1, 0)):
        found = audit(restated(file, worst_pair=wrong))
        assert (found.verdict, found.confirmed) == ("misstated", False)
        assert found.certificate is not None
        assert found.certificate.fields("false") == ["worst_pair"]


@pytest.mark.parametrize(
    ("options", "also"),
    [
        ({}, []),
        ({"releases": 2, "same_change": True, "eps": 2.0}, []),
        ({"releases": 2, "eps": 2.0, "delta": 1e-3}, []),
        ({"honest": 0.5, "delta": 1e-4}, []),
    ],
)
def test_every_field_is_confirmed_or_said_not_to_be(options: Any, also: list[str]) -> None:
    file = made(**options)
    assert file.certificate is not None
    found = audit(file).certificate
    assert found is not None
    assert [one.field for one in found.findings] == list(type(file.certificate).model_fields)
    assert set(found.fields("unchecked")) == {*BY_HAND, *also}
    assert not found.fields("false")
    assert not found.fields("not reproduced")


def test_a_sequence_that_is_another_one_is_not_called_confirmed() -> None:
    file = made(releases=2, eps=2.0, delta=1e-3)
    certificate: Any = file.certificate
    assert [step.times for step in certificate.worst_sequence]
    other = certificate.worst_sequence[0].model_copy(update={"change": (0, 1), "times": 2})
    found = audit(restated(file, worst_sequence=(other,), worst_pair=(0, 1))).certificate
    assert found is not None
    assert {"worst_pair", "worst_sequence"} <= set(found.fields("unchecked"))


def test_a_table_with_a_misstated_file(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    name = "files/1-1-1e-06-0.9.json"
    file = load(shipped_folder() / name)
    assert file.certificate is not None
    false = restated(file, delta_lower=0.0, delta_upper=file.certificate.delta_upper / 2)
    row = row_of(false, name=name)
    assert row is not None
    result = run_audit(AuditJob(row, dumps(false), "fast"))
    assert result.verdict == "misstated"
    monkeypatch.setattr(audit_table, "_verdicts", lambda *_: iter([result]))
    with pytest.raises(typer.Exit) as ended:
        audit_table.audit_table(as_json=True)
    assert ended.value.exit_code == 1
    assert json.loads(capsys.readouterr().out)["verdicts"] == {"misstated": 1}


@pytest.mark.parametrize(
    ("upper", "verdict"), [(1e-9, "undecided"), (1e-9 - 2e-25, "certified"), (1.1e-9, "undecided")]
)
def test_a_claim_of_a_billionth_is_a_billionth(
    upper: float, verdict: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Was: certified at the double, which is above the decimal that is claimed."""
    bounds = Enclosure(0.0, upper)
    known = Proof(1.0, bounds, Change(2, 0), True, True, {"ball": 6}, 128, 0.0)
    monkeypatch.setattr(auditor, "prove", lambda *_, **__: known)
    proposal = Proposal.of({**SMALL, "delta": 1e-9})
    assert audit(proposal, Claim.of(proposal)).verdict == verdict


def test_what_a_certificate_states_also_holds_as_decimals() -> None:
    for lower, upper in ((3e-7, 9e-7), (7e-7, 1e-9 + 7e-7), (0.3, 0.9), (0.0, 1.0)):
        known = Proof(1.0, Enclosure(lower, upper), Change(2, 0), True, True, {"ball": 6}, 128, 0.0)
        stated = certificate_of(known, any_sequence=False)
        for reading in (Fraction, lambda value: Fraction(repr(value))):
            assert reading(stated.delta_lower) <= Fraction(lower)
            assert reading(stated.delta_upper) >= Fraction(upper)


def test_numbers_of_the_file_are_quoted_as_they_stand_there() -> None:
    """Was: 1e-9 as 1.00001e-09."""
    false = restated(made(), delta_lower=0.0, delta_upper=1e-9)
    assert audit(false, explain=False).reason.startswith(
        "the certificate says delta is at most 1e-09, but it is at least 1.58"
    )
