"""Which changes the notary proves after the fast evaluators."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest

import accounting
from accounting import Enclosure, ExactCentral, ExactNoise, Mechanism, Question, protocol
from accounting.model.change import Change
from accounting.model.proof import Proof
from accounting.notary.notary import Notary
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


def test_a_lower_bound_of_another_proof_is_said_to_be_one() -> None:
    """Was: two changes by balls, although beyond 32 releases balls give no lower bound."""
    noise = ExactNoise(p=Fraction(1, 2), r=Fraction(5))
    quiet = Mechanism(1, {(-1, 1): (noise,)}, ExactCentral(step=Fraction(1)))
    question = Question(eps=30.0, releases=33, claim=0.9)
    alone = Notary(quiet, 33).enclose(30.0, claim=0.9)
    fast = prove(quiet, question, tier="fast")
    found = prove(quiet, question, tier="ball")
    assert alone.enclosure.lower == 0.0 < fast.enclosure.lower
    assert (alone.lower_by, fast.lower_by, found.lower_by) == ((), (), ("fast",))
    assert 0.99 * fast.enclosure.lower < found.enclosure.lower <= fast.enclosure.upper
    assert found.enclosure.upper == alone.enclosure.upper
    assert dict(found.covered) == {"ball": 2, "fast": 0}
    assert "(2 ball, lower bound by fast)" in str(found)
    assert "0 fast" not in str(found)


def test_the_methods_of_a_better_lower_bound_are_taken_with_it() -> None:
    low, high = (
        Proof(1.0, Enclosure(lower, 0.5), Change(0, 1), True, True, covered, 53, 0.0)
        for lower, covered in ((0.1, {"ball": 6}), (0.2, {"fast": 5, "comparison": 1}))
    )
    assert high.with_lower_of(low) is high
    both = low.with_lower_of(high)
    assert both.enclosure == Enclosure(0.2, 0.5)
    assert (dict(both.covered), both.lower_by) == ({"ball": 6, "fast": 0}, ("fast",))
    third = replace(low, enclosure=Enclosure(0.15, 0.4), covered={"enumeration": 6})
    assert third.with_lower_of(both).lower_by == ("fast",)


def test_without_a_claim_the_gap_that_was_asked_for_is_reached() -> None:
    for gap in (1e-2, 1e-4):
        found = prove(mechanism(), Question(eps=1.0), tier="fast", gap=gap)
        assert found.met
        assert found.enclosure.relative_gap <= gap
