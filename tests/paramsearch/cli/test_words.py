"""What is said of a claim is never more than was proved; not searched is not the same as none."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from datetime import date
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pages import words
from places import EXAMPLES, ROOT

from accounting import Enclosure, InvalidParameter, Violated
from accounting.base.enclosure import at_least, at_most, exactly
from accounting.model.configuration import Proposal
from accounting.model.proof import Proof
from paramsearch.certification import audit as auditor
from paramsearch.certification.audit import Audit, audit
from paramsearch.certification.certify import certify
from paramsearch.cli.proving.audit_answer import Answer
from paramsearch.cli.proving.profile import profile
from paramsearch.parameters.assembly import reassembled, uncertified
from paramsearch.parameters.claim import Claim
from paramsearch.parameters.parameter_file import ParameterFile
from paramsearch.parameters.words import claim_in_words
from paramsearch.report import page as report
from paramsearch.report.html import percent
from paramsearch.report.sections import AuditedFile, verdict_section
from paramsearch.request import Request

EXAMPLE = EXAMPLES / "sum_to_2.json"
SMALL = json.loads(EXAMPLE.read_text())


def stated(**changes: Any) -> Proposal:
    return Proposal.of({**SMALL, **changes})


def answers(proposal: Proposal | ParameterFile, **options: Any) -> tuple[dict[str, Any], str]:
    """What machines and what people are told."""
    found = audit(proposal, **options)
    answer = Answer(found=found, document=proposal, file_sha256="0" * 64)
    text = "\n".join(f"{fact[0]}: {fact[1]}" for fact in answer.for_people())
    return answer.for_machines(), text


@given(st.floats(0, 1000), st.floats(0, 1, exclude_min=True, exclude_max=True))
def test_a_claim_is_the_doubles_that_were_proved(eps: float, delta: float) -> None:
    claim = Claim(eps=eps, delta=delta)
    text = claim_in_words(claim, proved_for=Fraction(1), dimension=1)
    first, second = text.removeprefix("(").split(")")[0].split(", ")
    assert (float(first), float(second)) == (eps, delta)
    assert Decimal(at_least(delta)) <= Decimal(delta) <= Decimal(at_most(delta))
    assert float(exactly(delta)) == delta


def test_the_profile_does_not_round_the_claim(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "close.json"
    path.write_text(json.dumps({**SMALL, "eps": 1.0000004, "delta": 1.0000004e-6}))
    profile(path)
    shown = capsys.readouterr().out
    assert "(1.0000004, 1.0000004e-06): holds" in shown
    assert "(1, " not in shown


def test_a_refusal_names_the_claim_in_full() -> None:
    with pytest.raises(Violated, match=r"at eps = 1\.0000004 .* the claimed 1\.0000004e-08"):
        certify(uncertified(stated(eps=1.0000004, delta=1.0000004e-8)))


@pytest.mark.parametrize(
    ("share", "said"), [("0.75", "75 %"), ("0.90000000000000003", "90.000000000000003 %")]
)
def test_percent(share: str, said: str) -> None:
    assert percent(share) == said


def in_words(section: str) -> str:
    return words(f"<body>{section}</body></html>")


def proved(high: float, delta: float, low: float = 0.0) -> str:
    """The verdict of a proof with these bounds, in words."""
    found = audit(stated(delta=0.5), gap=0.5, explain=False)
    assert found.proof is not None
    bounds = replace(found.proof, enclosure=Enclosure(low, high))
    return in_words(
        verdict_section(replace(found, proof=bounds, claim=replace(found.claim, delta=delta)))
    )


@pytest.mark.parametrize(
    ("bounds", "said"),
    [
        ((9.99575e-9, 1e-8), "0.042 % below the claim"),
        ((0.599e-8, 1e-8), "40 % below the claim"),
        ((0.5e-8, 1e-8), "2 times below the claim"),
        ((1.582e-9, 1e-8), "6.32 times below the claim"),
        ((1e-8, 1e-8), "none: the bound is the claim"),
        ((1.2e-8, 1e-8, 1.00207e-8), "0.2 % above the claim"),
        ((9e-8, 1e-8, 3.015e-8), "3.01 times above the claim"),
    ],
)
def test_margins(bounds: tuple[float, ...], said: str) -> None:
    text = proved(*bounds)
    assert f"Margin{said}" in text
    assert "Margin1 times" not in text


def tight() -> tuple[ParameterFile, Audit]:
    """A file whose claim is hardly more than what was proved."""
    file = certify(uncertified(stated()))
    assert file.certificate is not None
    closest = file.certificate.delta_upper * (1 + 2e-4)
    file = certify(uncertified(stated(delta=closest)), gap=1e-5)
    return file, audit(file, gap=1e-5)


def test_the_report_says_what_was_proved_at_the_claimed_eps() -> None:
    """The evaluators of the drawings are asked for less: their bound would be above the claim."""
    file, found = tight()
    assert found.verdict == "certified"
    assert found.proof is not None
    upper = found.proof.enclosure.upper
    curve, pairs = report.curve(found), report.pair_bounds(found)
    assert curve is not None
    assert pairs is not None
    assert dict(curve)[found.claim.eps].upper > found.claim.delta  # what the page must not show
    drawn = report._with_proof(curve, found)
    assert dict(drawn)[found.claim.eps] == found.proof.enclosure
    for (_, before), (_, after) in zip(curve, drawn, strict=True):
        assert before.lower <= after.lower <= after.upper <= before.upper
    source = AuditedFile(source="x", sha256="0" * 64, audited_on=date(2021, 7, 18))
    html = report.render(found, file, source, curve=curve, pairs=pairs)
    at_eps = html.split("<tbody>")
    rows = [
        row
        for part in at_eps
        for row in part.split("<tr>")
        if f'title="{found.claim.eps!r}"' in row
    ]
    assert any(f'title="{upper!r}"' in row for row in rows)
    for part in html.split('title="')[1:]:
        value = part.split('"')[0]
        assert value != repr(dict(curve)[found.claim.eps].upper)
    largest = html.split("The largest bounds")[-1]
    for part in largest.split("</table>")[0].split('title="')[1:]:
        assert float(part.split('"')[0]) <= upper


@pytest.mark.parametrize("eps", [0.0, 1e-12, 0.1, 1 / 3, 1.0000004, 3.7])
def test_every_eps_of_the_profile_is_the_one_that_was_asked_about(
    eps: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a row (eps, delta at most) a rounded eps would claim more than was proved.

    Upper bounds come from an eps that neither the double nor the decimal is below, lower ones from
    one that neither exceeds.
    """
    asked: list[float] = []
    found = audit(stated(delta=0.5), gap=0.5, explain=False)

    class Evaluator:
        def delta(self, at: float, **_: float) -> Any:
            asked.append(at)
            return SimpleNamespace(enclosure=Enclosure(0.0, 1.0))

    monkeypatch.setattr(report, "_evaluators", lambda *_, **__: (Evaluator(),) * 2)
    curve = report.curve(replace(found, claim=replace(found.claim, eps=eps)))
    assert curve is not None
    shown_at = [at for at, _ in curve]
    assert shown_at == sorted(set(shown_at))
    assert eps in shown_at or eps == 1e-12
    ends = iter(asked)
    for at in shown_at:
        values = {Fraction(at), Fraction(repr(at))}
        low = next(ends)
        high = next(ends) if len(values) == 2 else low
        assert Fraction(low) <= min(values) <= max(values) <= Fraction(high)
        assert high - low <= math.ulp(high)
    assert next(ends, None) is None
    page = report._profile(replace(found, claim=replace(found.claim, eps=eps), proof=None), curve)
    shown = [row.split("</span>")[0] for row in page.split('<th scope="row">')[1:]]
    assert [float(text.split('title="')[1].split('"')[0]) for text in shown] == shown_at
    for text, at in zip(shown, shown_at, strict=True):
        if "×" not in text and "10<sup>" not in text:
            assert float(text.split(">")[1]) == at


def test_an_eps_that_was_not_searched_for_is_not_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock runs out in the search for the eps that does hold."""
    late = [0.0]
    monkeypatch.setattr(auditor.time, "monotonic", lambda: late[0])
    prove = auditor.prove

    def slow(*arguments: Any, **options: Any) -> Proof:
        found = prove(*arguments, **options)
        late[0] = 100.0
        return found

    monkeypatch.setattr(auditor, "prove", slow)
    machine, person = answers(stated(delta=1e-8), budget=10.0)
    assert machine["verdict"] == "violated"
    assert machine["satisfied_eps"] is None
    assert machine["satisfied_eps_searched"] is False
    assert "instead: not searched to the end" in person
    assert "no eps was found" not in person
    found = audit(stated(delta=1e-8), budget=1000.0)
    assert found.searched
    unknown = verdict_section(replace(found, searched=False, satisfied_eps=None))
    assert "ran out of time" in in_words(unknown)


def test_an_eps_that_was_searched_for() -> None:
    machine, person = answers(stated(delta=1e-8))
    assert machine["satisfied_eps_searched"] is True
    assert machine["satisfied_eps"][0] > 1
    assert "holds at delta = 1e-08" in person
    silent = {"atom": [-1, -1, 2], "r": 0.0, "p": 0.5}
    machine, person = answers(stated(atoms=[SMALL["atoms"][0], silent]))
    assert machine["satisfied_eps_searched"] is True
    assert machine["satisfied_eps"] is None
    assert machine["delta_limit"] == [1.0, 1.0]
    assert "no eps holds at delta = 1e-06: delta is 1 at every eps" in person
    machine, person = answers(stated())
    assert "satisfied_eps_searched" not in machine
    assert "instead" not in person


@pytest.mark.slow
def test_a_certificate_is_confirmed_by_a_finer_proof_where_the_first_one_is_wider() -> None:
    file = certify(uncertified(stated(eps=4.0, delta=0.1), releases=5))
    assert file.certificate is not None
    first = audit(file)
    assert first.confirmed
    assert first.proof is not None
    smaller = file.certificate.delta_upper * (1 - 2.0**-40)  # as an evaluator with less slack
    closer = file.certificate.model_copy(update={"delta_upper": smaller})
    found = audit(reassembled(file, closer))
    assert found.proof is not None
    assert found.confirmed
    assert found.proof.enclosure.upper <= closer.delta_upper
    assert audit(reassembled(file, closer), explain=False).confirmed is False
    wrong = file.certificate.model_copy(
        update={"delta_lower": 0.0, "delta_upper": found.proof.enclosure.lower * (1 - 1e-4)}
    )
    assert audit(reassembled(file, wrong)).verdict == "misstated"


def about_certificate(file: ParameterFile, **options: Any) -> tuple[Any, Any, str]:
    """Whether it is confirmed, whether it is consistent, and the line for people."""
    machine, person = answers(file, **options)
    (line,) = (line for line in person.splitlines() if line.startswith("certificate: "))
    confirmed, consistent = machine["certificate_confirmed"], machine["certificate_consistent"]
    return confirmed, consistent, line.removeprefix("certificate: ")


def test_what_is_said_of_a_certificate() -> None:
    """Too wide to confirm is not the same as contradicted, and no audit is silent about it."""
    bare = uncertified(stated())
    file = certify(bare)
    assert file.certificate is not None
    assert about_certificate(bare) == (
        None,
        None,
        "none in the file; `paramsearch certify` adds one",
    )
    unchecked = "; not checked: proof, precision, software"
    assert about_certificate(file) == (True, True, f"confirmed{unchecked}")

    def with_upper(upper: float) -> ParameterFile:
        update = {"delta_lower": 0.0, "delta_upper": upper}
        return reassembled(file, file.certificate and file.certificate.model_copy(update=update))

    proof = audit(file, tier="fast", explain=False).proof
    assert proof is not None
    within = (proof.enclosure.lower + proof.enclosure.upper) / 2
    wide = "consistent with this proof, which is too wide to confirm it: ask for "
    closer = with_upper(within)
    found = about_certificate(closer, tier="fast", explain=False)
    assert found == (False, True, wide + "--tier ball")
    assert audit(closer, tier="fast", explain=False).verdict == "certified"
    ball = audit(file, explain=False).proof
    assert ball is not None
    same = with_upper((ball.enclosure.lower + ball.enclosure.upper) / 2)
    assert about_certificate(same, explain=False) == (False, True, wide + "a smaller --gap")
    false = with_upper(proof.enclosure.lower * 0.99)
    line = f"false: delta_upper{unchecked.replace('proof', 'worst_pair, proof')}"
    assert about_certificate(false, explain=False) == (False, False, line)
    asked = Claim.of(file, delta=0.5)
    assert about_certificate(file, claim=asked) == (
        None,
        True,
        "consistent with this proof; an audit without --delta may confirm it",
    )
    other = Claim.of(file, eps=2.0)
    confirmed, consistent, line = about_certificate(file, claim=other)
    assert (confirmed, consistent) == (None, None)
    assert line.startswith("not looked at: this is about another claim")
    assert about_certificate(file, budget=1e-9)[2] == "not looked at: nothing was proved"


@pytest.mark.parametrize("error", ["max_error_ratio", "max_rmse"])
def test_an_error_out_of_reach_is_laid_to_the_protocol(error: str) -> None:
    """Not to the impossibility of less error: other central mechanisms have less."""
    with pytest.raises(InvalidParameter, match=error) as refused:
        Request(n=1000, eps=10.0, delta=1e-6, max_value=5, **{error: 0.1})  # type: ignore[arg-type]
    assert "the protocol" in str(refused.value)
    assert "discrete" in str(refused.value)
    assert "no noise is smaller" not in str(refused.value)
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert "It is not the best noise a trusted server can add" in readme


def test_who_proved_a_lower_bound_is_said(tmp_path: Path) -> None:
    """In the file, in the audit, in JSON and on the page; no other field says so."""
    quiet = {"max_value": 1, "eps": 30.0, "delta": 0.9, "n": 10, "eps_central": 1.0}
    atoms = [{"atom": [-1, 1], "r": 5.0, "p": 0.5}]
    made = certify(uncertified(Proposal.of({**quiet, "atoms": atoms}), releases=33))
    assert made.certificate is not None
    assert made.certificate.proof == {"ball": 2, "fast": 0}
    assert made.certificate.delta_lower > 0.4
    machine, people = answers(made)
    assert machine["proof"] == {"ball": 2, "fast": 0}
    assert machine["lower_bound_by"] == ["fast"]
    assert re.search(r"^proof: 2 pairs by ball, \d+ bits; lower bound by fast$", people, re.M)
    assert machine["certificate_confirmed"]
    found = audit(made)
    page = tmp_path / "page.html"
    source = AuditedFile(source="x.json", sha256="0" * 64, audited_on=date(2021, 7, 18))
    report.write(page, found, made, source)
    shown = words(page.read_text(encoding="utf-8"))
    assert "from another proof: fast" in shown
    machine, people = answers(stated())
    assert machine["lower_bound_by"] == []
    assert "lower bound by" not in people
