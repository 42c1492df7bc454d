"""Both adjacencies against enumeration, and against each other."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import product

import pytest
from small_claims import random_mechanism

from accounting import (
    Configuration,
    Enclosure,
    InvalidParameter,
    Mechanism,
    NegativeBinomial,
    Protocol,
    Reference,
)
from accounting.evaluator.build_view_pairs import changed_pairs
from accounting.model.change import (
    Adjacency,
    Change,
    change_count,
    covers,
    directions,
    every_change,
)
from accounting.model.configuration import Proposal
from accounting.model.family import greedy
from accounting.model.problem import Problem
from accounting.model.proof import Proof
from accounting.model.proof_types import AuditTier
from accounting.model.question import Question
from accounting.notary.notary import Notary
from accounting.proof.limit_delta import limit_delta
from accounting.proof.profile import Profile
from accounting.proof.prove import prove
from accounting.proof.satisfied_eps import satisfied_eps
from accounting.reference.reference import Enumeration
from paramsearch.certification.audit import mechanism_of

BOTH: tuple[Adjacency, ...] = ("substitution", "zero-out")


@pytest.mark.parametrize("dimension", [1, 2, 100])
@pytest.mark.parametrize("top", [1, 2, 7])
def test_the_changes_are_those_of_the_definition(top: int, dimension: int) -> None:
    """Users hold nothing or a value in one coordinate; which two of these can be exchanged?"""
    inputs = [(0, 0), *product(range(1, min(dimension, 2) + 1), range(1, top + 1))]
    found: dict[Adjacency, set[Change]] = {"substitution": set(), "zero-out": set()}
    for (at, before), (to, after) in product(inputs, repeat=2):
        if (at, before) == (to, after):
            continue
        moved = bool(before and after and at != to)
        found["substitution"].add(Change(before, after, moved))
        if before == 0 or after == 0:
            found["zero-out"].add(Change(before, after, moved))
    for adjacency, changes in found.items():
        every = every_change(max_value=top, dimension=dimension, adjacency=adjacency)
        assert set(every) == changes
        assert len(every) == len(changes)
        assert change_count(max_value=top, dimension=dimension, adjacency=adjacency) == len(every)
        assert [every.index(change) for change in every] == list(range(len(every)))
        for change in found["substitution"]:
            possible = change.possible(max_value=top, dimension=dimension, adjacency=adjacency)
            assert possible == (change in changes)
        within = [change.listed for change in every if not change.moved]
        assert changed_pairs(top, adjacency).tolist() == [list(pair) for pair in within]


def test_a_change_that_is_no_zero_out_is_refused() -> None:
    every = every_change(max_value=3, dimension=2, adjacency="zero-out")
    for change in (Change(2, 1), Change(2, 1, moved=True), Change(1, 1), Change(4, 0)):
        with pytest.raises(ValueError, match="is not one of these changes"):
            every.index(change)
    noise = NegativeBinomial(r=4.0, p=0.5)
    config = Configuration.of(2, [((-1, 1), noise), ((-1, -1, 2), noise)], eps_central=0.9)
    with pytest.raises(InvalidParameter, match="under zero-out an input becomes 0"):
        Protocol(config, adjacency="zero-out").delta_of(Change(2, 1), 1.0)
    for refused in (
        lambda: Protocol(config, adjacency="add-remove"),  # type: ignore[arg-type]
        lambda: Question(eps=1.0, adjacency="zero"),  # type: ignore[arg-type]
        lambda: Problem(n=5, eps=1, delta=0.1, max_value=1, adjacency="x"),  # type: ignore[arg-type]
    ):
        with pytest.raises(InvalidParameter, match="known: substitution, zero-out"):
            refused()


def test_which_guarantee_covers_which() -> None:
    assert [(a, b) for a in BOTH for b in BOTH if not covers(a, b)] == [
        ("zero-out", "substitution")
    ]


def adaptive(mechanism: Mechanism, changes: list[Change], eps: float, releases: int) -> Enclosure:
    """By enumeration: the worst sequence of these changes, each chosen by what was seen before."""
    plays = [(change.coordinates, releases - 1) for change in changes]
    found = Enumeration(mechanism, eps, 1e-9, plays, changes, bits=53)
    return found.enclosure(max(found.sums()))


def truth(mechanism: Mechanism, eps: float, releases: int) -> Enclosure:
    """The largest delta of the sequences in which every input becomes 0, and of those in which
    every input appears."""
    values = range(1, mechanism.max_value + 1)
    ways = [[Change(x, 0) for x in values], [Change(0, x) for x in values]]
    found = [adaptive(mechanism, changes, eps, releases) for changes in ways]
    return Enclosure(max(e.lower for e in found), max(e.upper for e in found))


def proofs(mechanism: Mechanism, eps: float, releases: int) -> list[Proof]:
    question = Question(eps=eps, releases=releases, adjacency="zero-out")
    tiers: tuple[AuditTier, ...] = ("ball", "mixed", "fast", "reference")
    return [prove(mechanism, question, tier=tier, gap=1e-3) for tier in tiers]


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(("releases", "double"), [(1, False), (1, True), (2, False), (2, True)])
def test_the_truth_is_inside(seed: int, releases: int, double: bool) -> None:
    rng = random.Random(seed)
    mechanism = random_mechanism(rng, double=double, quiet=double)
    eps = rng.uniform(0.3, 2.5)
    exact = truth(mechanism, eps, releases)
    near = max(truth(mechanism, 0.99 * eps, releases).upper, 1.002 * exact.upper)
    for proof in proofs(mechanism, eps, releases):
        assert proof.enclosure.lower <= exact.upper
        assert exact.lower <= proof.enclosure.upper
        assert proof.enclosure.upper <= near or not (proof.met or releases > 1)
        first = proof.worst_change
        assert first.before == 0 or first.after == 0
        ways = {repeated.change.after == 0 for repeated in proof.worst_sequence}
        assert len(ways) <= 1


def test_three_releases() -> None:
    mechanism = random_mechanism(random.Random(5), double=False, quiet=True)
    exact = truth(mechanism, 1.0, 3)
    for proof in proofs(mechanism, 1.0, 3):
        assert proof.enclosure.lower <= exact.upper
        assert exact.lower <= proof.enclosure.upper
        assert proof.met
        assert proof.enclosure.relative_gap <= 1e-6  # infinite losses decide


@pytest.mark.parametrize(("seed", "double", "eps"), [(2, True, 1.0), (11, False, 0.5)])
def test_no_bound_comes_from_mixed_directions(seed: int, double: bool, eps: float) -> None:
    """Where one input vanishes and another appears, more is revealed: that is no zero-out."""
    mechanism = random_mechanism(random.Random(seed), double=double, quiet=True)
    exact = truth(mechanism, eps, 2)
    mixed = adaptive(mechanism, list(mechanism.changes("zero-out")), eps, 2)
    for proof in proofs(mechanism, eps, 2):
        assert proof.enclosure.lower <= exact.upper
        assert proof.enclosure.upper < mixed.lower


@pytest.mark.parametrize("tier", ["ball", "fast", "reference"])
@pytest.mark.parametrize("seed", range(4))
def test_vectors_of_two_coordinates(seed: int, tier: AuditTier) -> None:
    """For max_value 1: who holds 1 in the first coordinate or in the second one, or nothing?"""
    rng = random.Random(seed)
    mechanism = replace(random_mechanism(rng, double=False, quiet=True), dimension=2)
    eps = rng.uniform(0.5, 1.5)
    # a coordinate that looks the same before and after adds nothing
    zero_out = truth(mechanism, eps, 1)
    moved = Reference(mechanism).of_sequence([Change(1, 0), Change(0, 1)], eps)
    assert zero_out.upper < moved.lower
    expected: dict[Adjacency, Enclosure] = {"zero-out": zero_out, "substitution": moved}
    for adjacency, exact in expected.items():
        proof = prove(mechanism, Question(eps=eps, adjacency=adjacency), tier=tier, gap=1e-3)
        assert proof.enclosure.lower <= exact.upper
        assert exact.lower <= proof.enclosure.upper
        assert not proof.met or proof.enclosure.upper <= 1.002 * exact.upper


def several() -> list[tuple[Configuration, int]]:
    out = []
    for top, dimension in ((1, 1), (1, 5), (3, 1), (5, 2), (20, 1)):
        family = greedy(top, [3]) if top > 3 else greedy(top, [])
        atoms = [(s, NegativeBinomial.from_mean(mean=150.0, r=9.0)) for s in family.atoms]
        out.append((Configuration.of(top, atoms, eps_central=0.4, dimension=dimension), top))
    return out


@pytest.mark.parametrize("releases", [1, 2, 9, 40])
def test_zero_out_is_no_worse_than_substitution(releases: int) -> None:
    for config, top in several():
        if releases > 2 and top > 3:
            continue
        for same_change in (False, True):
            zero_out, substitution = (
                Protocol(config, releases, same_change, adjacency).delta(2.0, gap=1e-3).enclosure
                for adjacency in ("zero-out", "substitution")
            )
            assert zero_out.lower <= substitution.upper
            if config.dimension > 1:
                assert zero_out.upper < substitution.lower  # one coordinate instead of two


@pytest.mark.parametrize(("top", "dimension"), [(1, 5), (3, 1), (5, 2)])
def test_every_question_knows_the_adjacency(top: int, dimension: int) -> None:
    data = {"max_value": top, "eps_central": 0.4, "dimension": dimension}
    atoms = [{"atom": list(s), "r": 9.0, "p": 0.94} for s in greedy(top, []).atoms]
    proposal = Proposal.of({**data, "atoms": atoms})
    mechanism, config = mechanism_of(proposal), proposal.configuration()
    eps: dict[Adjacency, Enclosure] = {}
    for adjacency in BOTH:
        ball = Notary(mechanism, adjacency=adjacency).enclose(1.0).enclosure
        fast = Protocol(config, adjacency=adjacency).delta(1.0, gap=1e-4).enclosure
        own = Profile(mechanism, adjacency=adjacency).delta(1.0, gap=1e-4).enclosure
        for a, b in ((ball, fast), (fast, own), (own, ball)):
            assert a.lower <= b.upper
            assert b.lower <= a.upper
        found = satisfied_eps(mechanism, 1e-4, adjacency=adjacency)
        assert found is not None
        eps[adjacency] = found
    assert eps["zero-out"].lower <= eps["substitution"].upper
    if dimension > 1:
        assert eps["zero-out"].upper < eps["substitution"].lower
        limits = [limit_delta(mechanism, adjacency=adjacency) for adjacency in BOTH]
        assert limits[1].lower <= limits[0].upper


def test_directions_of_a_part_of_the_changes() -> None:
    some = [Change(0, 2), Change(1, 0), Change(0, 1)]
    assert directions(some, "zero-out") == [[1], [0, 2]]
    assert directions(some, "substitution") == [[0, 1, 2]]
    assert directions(some[:1], "zero-out") == [[0]]
