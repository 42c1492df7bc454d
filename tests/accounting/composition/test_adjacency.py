"""Both adjacencies against enumeration, and against each other."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from adaptive_truth import Small, random_small

from accounting import Configuration, Enclosure, InvalidParameter, NegativeBinomial, Protocol
from accounting.base.arrays import FloatArray
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
from accounting.model.proof_types import Tier
from accounting.model.question import Question
from accounting.notary.notary import Notary
from accounting.proof.limit_delta import limit_delta
from accounting.proof.profile import Profile
from accounting.proof.prove import prove
from accounting.proof.satisfied_eps import satisfied_eps
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


def truth(small: Small, eps: float, releases: int) -> float:
    """The largest delta of the sequences in which every input becomes 0, and of those in which
    every input appears."""
    vanish = {pair: laws for pair, laws in small.changes.items() if pair[1] == 0}
    appear = {pair: laws for pair, laws in small.changes.items() if pair[0] == 0}
    return max(replace(small, changes=c).delta(eps, releases) for c in (vanish, appear))


def proofs(small: Small, eps: float, releases: int) -> list[Proof]:
    mechanism = mechanism_of(small.proposal())
    question = Question(eps=eps, releases=releases, adjacency="zero-out")
    return [prove(mechanism, question, tier=tier, gap=1e-3) for tier in ("ball", "mixed", "fast")]


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(("releases", "double"), [(1, False), (1, True), (2, False), (2, True)])
def test_the_truth_is_inside(seed: int, releases: int, double: bool) -> None:
    rng = random.Random(seed)
    small = random_small(rng, double=double, quiet=double)
    eps = rng.uniform(0.3, 2.5)
    exact, slack = truth(small, eps, releases), small.slack(eps, releases)
    near = max(truth(small, 0.99 * eps, releases), 1.002 * exact)
    for proof in proofs(small, eps, releases):
        assert proof.enclosure.lower <= exact + slack
        assert exact - slack <= proof.enclosure.upper
        assert proof.enclosure.upper <= near + slack or not (proof.met or releases > 1)
        first = proof.worst_change
        assert first.before == 0 or first.after == 0
        ways = {repeated.change.after == 0 for repeated in proof.worst_sequence}
        assert len(ways) <= 1


def test_three_releases() -> None:
    rng = random.Random(5)
    small = random_small(rng, double=False, quiet=True)
    exact, slack = truth(small, 1.0, 3), small.slack(1.0, 3)
    for proof in proofs(small, 1.0, 3):
        assert proof.enclosure.lower <= exact + slack
        assert exact - slack <= proof.enclosure.upper


@pytest.mark.parametrize(("seed", "double", "eps"), [(2, True, 1.0), (11, False, 0.5)])
def test_no_bound_comes_from_mixed_directions(seed: int, double: bool, eps: float) -> None:
    """Where one input vanishes and another appears, more is revealed: that is no zero-out."""
    small = random_small(random.Random(seed), double=double, quiet=True)
    exact, slack = truth(small, eps, 2), small.slack(eps, 2)
    mixed = replace(small, changes={c: laws for c, laws in small.changes.items() if 0 in c})
    for proof in proofs(small, eps, 2):
        assert proof.enclosure.lower <= exact + slack
        assert proof.enclosure.upper < mixed.delta(eps, 2) - slack


@pytest.mark.parametrize("tier", ["ball", "fast"])
@pytest.mark.parametrize("seed", range(4))
def test_vectors_of_two_coordinates(seed: int, tier: Tier) -> None:
    """All views of both coordinates together, for max_value 1: who holds 1 in the first coordinate
    or in the second one, or nothing?"""
    rng = random.Random(seed)
    small = random_small(rng, double=False, quiet=True)
    eps = rng.uniform(0.5, 1.5)
    vanish, appear = small.changes[1, 0], small.changes[0, 1]

    def delta(p: FloatArray, q: FloatArray) -> float:
        return float(np.clip(p - np.exp(eps) * q, 0, None).sum())

    # the other coordinate looks the same before and after
    other = appear.p
    zero_out = max(
        delta(np.multiply.outer(c.p, other), np.multiply.outer(c.q, other))
        for c in (vanish, appear)
    )
    moved = delta(np.multiply.outer(vanish.p, appear.p), np.multiply.outer(vanish.q, appear.q))
    expected: dict[Adjacency, float] = {"zero-out": zero_out, "substitution": max(zero_out, moved)}
    mechanism = mechanism_of(Proposal.of({**small.data, "dimension": 2}))
    slack = 2 * small.slack(eps, 1)
    for adjacency, exact in expected.items():
        proof = prove(mechanism, Question(eps=eps, adjacency=adjacency), tier=tier, gap=1e-3)
        assert proof.enclosure.lower <= exact + slack
        assert exact - slack <= proof.enclosure.upper
        assert not proof.met or proof.enclosure.upper <= 1.002 * exact + slack
    assert expected["zero-out"] < expected["substitution"]


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
