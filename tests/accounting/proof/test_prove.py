"""Which changes the notary proves after the fast evaluators."""

from __future__ import annotations

from fractions import Fraction

import pytest

import accounting
from accounting import ExactCentral, ExactNoise, Mechanism, Question, protocol
from accounting.proof import fast_proof
from accounting.proof.fast_proof import prove_same_change
from accounting.proof.prove import prove


def mechanism() -> Mechanism:
    noise = ExactNoise(p=Fraction(97, 100), r=Fraction(12))
    atoms = dict.fromkeys(accounting.greedy(9, [4]).atoms, (noise,))
    return Mechanism(9, atoms, ExactCentral(step=Fraction(9, 90)))


def test_a_violated_claim_is_confirmed_with_few_second_opinions(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The change that violates it is among them, whatever the bounds of the others are."""
    monkeypatch.setattr(fast_proof, "_SECOND_OPINIONS", 4)
    truth = prove(mechanism(), Question(eps=1.0), tier="ball").enclosure
    claim = truth.lower * 0.999
    fast = prove_same_change(mechanism(), Question(eps=1.0, claim=claim), 1e-4, lambda text: None)
    assert fast.proof.enclosure.lower > claim
    doubtful = [fast.changes[int(i)] for i in fast.in_doubt(claim)]
    assert fast.proof.worst_change in doubtful
    assert len(doubtful) <= 5
    found = prove(mechanism(), Question(eps=1.0, claim=claim), tier="mixed")
    assert claim < found.enclosure.lower <= truth.upper
    assert truth.lower <= found.enclosure.upper
    assert sum(found.covered.values()) == 90
    assert found.covered["ball"] == len(doubtful)


@pytest.mark.parametrize("factor", [1.001, 1.5])
def test_a_claim_that_holds_gets_the_same_verdict_from_every_tier(factor: float) -> None:
    truth = prove(mechanism(), Question(eps=1.0), tier="ball").enclosure
    question = Question(eps=1.0, claim=truth.upper * factor)
    for tier in ("ball", "mixed", "fast"):
        found = prove(mechanism(), question, tier=tier)  # type: ignore[arg-type]  # one of them
        assert found.enclosure.upper <= truth.upper * factor
        assert found.enclosure.lower <= truth.upper
        assert truth.lower <= found.enclosure.upper
        assert sum(found.covered.values()) == 90


def test_a_change_is_counted_once_where_the_worst_one_is_covered_by_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The lower bound is attained by a change that is compared as well: found by a reviewer."""
    monkeypatch.setattr(protocol, "_AT_ONCE", 0)
    monkeypatch.setattr(fast_proof, "_SECOND_OPINIONS", 1)
    monkeypatch.setattr(fast_proof, "_FEWEST", 1)
    first, second, third = (
        ExactNoise(p=Fraction(p), r=Fraction(r))
        for p, r in (("0.79", "3.99"), ("0.6", "3.76"), ("0.9", "2.29"))
    )
    atoms = {(-1, 1): (first,)}
    for h in range(2, 6):
        ones = (-h, *[1] * h)
        atoms[-h, h] = (second if h > 3 else third,)
        atoms[ones] = (second if h in (3, 4) else third,)
    tie = Mechanism(5, atoms, ExactCentral(step=Fraction(1, 25)))
    fast = prove_same_change(tie, Question(eps=0.0, claim=0.01), 1e-4, lambda text: None)
    claim = fast.proof.enclosure.lower / 2
    found = prove(tie, Question(eps=0.0, claim=claim), tier="mixed")
    assert sum(found.covered.values()) == 30
    doubtful = fast.in_doubt(claim)
    left = set(fast.compared.tolist()) - set(doubtful.tolist())
    assert found.covered.get("comparison", 0) == len(left)
    assert found.covered["fast"] == 30 - len(doubtful) - len(left)
