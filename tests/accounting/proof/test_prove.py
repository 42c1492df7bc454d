"""Which changes the notary proves after the fast evaluators."""

from __future__ import annotations

from fractions import Fraction

import pytest

import accounting
from accounting import ExactCentral, ExactNoise, Mechanism, Question
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
