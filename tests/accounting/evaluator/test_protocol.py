"""The whole protocol: against raw counts, composition, monotonicity, and the inverse question."""

from __future__ import annotations

import json
import random
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from places import ORACLES
from small_claims import small_mechanism

import accounting
from accounting import Configuration, Enclosure, NegativeBinomial, Protocol, Reference, Undecided
from accounting.evaluator.evaluate import evaluate_on_grid
from accounting.evaluator.grid_plan import GridPlan
from accounting.evaluator.noise_tables import tabulate
from accounting.model.change import Change
from accounting.model.mechanism import ExactCentral, ExactNoise, Mechanism
from accounting.notary.notary import Notary

VECTORS = json.loads((ORACLES / "raw_view_vectors.json").read_text())["vectors"]
VECTOR_ACCURACY = 2e-10
NB = NegativeBinomial


def small(noise: float = 1.0, *, eps_central: float = 0.9) -> Configuration:
    atoms = [((-1, 1), NB(12.0 * noise, 0.97)), ((2, -1, -1), NB(11.0, 0.96))]
    return Configuration.of(2, atoms, eps_central=eps_central)


@pytest.mark.parametrize("vector", VECTORS)
def test_raw_view_vectors(vector: dict[str, object]) -> None:
    v: dict = vector
    config = Configuration.of(
        v["Delta"],
        [(a["atom"], NB(a["r"], a["p"])) for a in v["atoms"]],
        eps_central=v["eps_central"],
    )
    found = Protocol(config).delta_of(
        Change(v["x"], v["x_prime"]), v["eps"], gap=1e-3, absolute=1e-9
    )
    assert found.met
    assert found.enclosure.lower - VECTOR_ACCURACY <= v["delta"]
    assert v["delta"] <= found.enclosure.upper + VECTOR_ACCURACY


def test_raw_counts_of_random_small_protocols() -> None:
    rng = random.Random(5)
    for _ in range(40):
        top = rng.choice([1, 2])
        unit = [(rng.uniform(0.4, 5), rng.uniform(0.1, 0.5)) for _ in range(rng.choice([1, 1, 2]))]
        double = (rng.uniform(0.4, 4), rng.uniform(0.1, 0.4)) if top == 2 else None
        eps_central, eps = rng.uniform(0.5, 4.0) * top, rng.uniform(0.0, 2.5)
        x, y = rng.sample(range(top + 1), 2)
        exact = small_mechanism(unit, double, eps_central=eps_central)
        truth = Reference(exact).of_sequence([Change(x, y)], eps)
        atoms = [((-1, 1), NB(*noise)) for noise in unit]
        if double is not None:
            atoms.append(((2, -1, -1), NB(*double)))
        protocol = Protocol(Configuration.of(top, atoms, eps_central=eps_central))
        found = protocol.delta_of(Change(x, y), eps, gap=1e-3, absolute=1e-9).enclosure
        assert found.lower <= truth.upper
        assert truth.lower <= found.upper
        assert found.upper - found.lower <= max(1e-3 * found.upper, 1e-9)


def test_the_worst_pair_is_the_worst_pair() -> None:
    protocol = Protocol(small())
    all_pairs = protocol.delta(1.0)
    assert all_pairs.met
    for q, change in enumerate(all_pairs.changes):
        one = protocol.delta_of(change, 1.0, absolute=1e-15).enclosure
        assert one.lower <= all_pairs.enclosure.upper
        assert one.lower <= all_pairs.upper[q]
        assert all_pairs.lower[q] <= one.upper
    assert (
        protocol.delta_of(all_pairs.worst_change, 1.0).enclosure.upper >= all_pairs.enclosure.lower
    )


def test_the_profile_is_monotone_and_consistent() -> None:
    protocol = Protocol(small())
    profile = protocol.profile([0.0, 0.3, 0.8, 0.9, 1.0, 1.1, 1.3, 2.0])
    for (_, a), (_, b) in pairwise(profile):
        assert a.lower >= b.lower
        assert a.upper >= b.upper
    assert dict(profile)[1.0].lower <= protocol.delta(1.0).enclosure.upper


def test_epsilon_inverts_delta() -> None:
    protocol = Protocol(small())
    found = protocol.epsilon(1e-5, gap=1e-3)
    assert found.upper - found.lower <= 1e-3 * max(1.0, found.upper)
    assert protocol.delta(found.upper).enclosure.lower <= 1e-5
    assert protocol.delta(found.lower).enclosure.upper > 1e-5
    with pytest.raises(Undecided, match="gives the input away"):
        Protocol(small()).epsilon(1e-60)


@pytest.mark.parametrize("where", [0, 1])
def test_more_noise_lowers_delta(where: int) -> None:
    def with_noise(factor: float) -> Enclosure:
        r = [12.0, 11.0]
        r[where] *= factor
        atoms = [((-1, 1), NB(r[0], 0.97)), ((2, -1, -1), NB(r[1], 0.96))]
        protocol = Protocol(Configuration.of(2, atoms, eps_central=0.9))
        return protocol.delta(1.0, gap=1e-4).enclosure

    before = with_noise(1.0)
    for factor in (1.01, 1.1, 2.0):
        after = with_noise(factor)
        assert after.relative_gap <= 1e-4
        assert after.upper < before.lower
        before = after


def test_noises_listed_twice_add_up() -> None:
    once = Configuration.of(1, [((-1, 1), NB(5.0, 0.9))], eps_central=0.5)
    twice = Configuration.of(1, [((-1, 1), NB(2.0, 0.9)), ((1, -1), NB(3.0, 0.9))], eps_central=0.5)
    a, b = (Protocol(config).delta(0.7, gap=1e-6).enclosure for config in (once, twice))
    assert a.lower <= b.upper
    assert b.lower <= a.upper
    assert max(a.relative_gap, b.relative_gap) <= 1e-6


def test_two_releases_agree_with_joint_enumeration() -> None:
    """max_value 1: the raw counts of +1 and -1 in both releases."""
    noise, eps_central, eps = (2.0, 0.4), 1.5, 0.8
    protocol = Protocol(
        Configuration.of(1, [((-1, 1), NB(*noise))], eps_central=eps_central),
        releases=2,
        same_change=True,
    )
    found = protocol.delta_of(Change(0, 1), eps, gap=1e-3).enclosure
    exact = small_mechanism([noise], eps_central=eps_central)
    truth = Reference(exact).of_sequence([Change(0, 1)] * 2, eps)
    assert found.lower <= truth.upper
    assert truth.lower <= found.upper
    assert found.relative_gap <= 1e-3


def test_one_sparse_changes() -> None:
    """Two coordinates: the pair (j, 0) times the pair (0, k); at most the sum at half eps."""
    atoms = [((-1, 1), NB(6.0, 0.93)), ((2, -1, -1), NB(6.0, 0.93))]
    protocol = Protocol(Configuration.of(2, atoms, eps_central=0.8))
    found = Protocol(Configuration.of(2, atoms, eps_central=0.8, dimension=2)).delta(1.2)
    half = protocol.delta(0.6).enclosure
    assert found.met
    assert found.enclosure.lower <= 2 * half.upper
    assert protocol.delta(1.2).enclosure.lower <= found.enclosure.upper
    assert len(found.changes) == 6 + 4


def test_more_atoms_than_values_is_an_upper_bound_only() -> None:
    atoms = [
        ((-1, 1), NB(12.0, 0.9)),
        ((2, -1, -1), NB(12.0, 0.9)),
        ((2, 2, -1, -1, -1, -1), NB(9.0, 0.9)),
    ]
    found = Protocol(Configuration.of(2, atoms, eps_central=0.9)).delta(1.0)
    fewer = Protocol(Configuration.of(2, atoms[:2], eps_central=0.9)).delta(1.0)
    assert not found.exact
    assert found.enclosure.lower == 0
    assert fewer.enclosure.lower <= found.enclosure.upper


def test_the_papers_composition_bound_is_above_the_exact_delta() -> None:
    family = accounting.halves(3)
    hat = NB.from_mean(mean=400.0, r=30.0)
    tilde = {elements: NB.from_mean(mean=800.0, r=30.0) for elements in family.atoms}
    bound = accounting.composition_bound(
        family, hat=hat, tilde=tilde, eps_central=0.5, eps_1=0.2, eps_2=0.3
    )
    atoms = [*tilde.items(), ((-1, 1), hat)]
    exact = Protocol(Configuration.of(3, atoms, eps_central=0.5)).delta(bound.eps).enclosure
    assert exact.lower <= bound.delta_upper
    assert bound.delta_upper < 1


@pytest.mark.slow
def test_all_pairs_at_200() -> None:
    family = accounting.hubs(200)
    size = abs(family.columns).max(axis=0)
    atoms = [
        (
            elements,
            NB.from_mean(mean=700.0 * max(200 if elements == (-1, 1) else n / 2, 0.5), r=12.0),
        )
        for elements, n in zip(family.atoms, size, strict=True)
    ]
    found = Protocol(Configuration.of(200, atoms, eps_central=0.9)).delta(1.0)
    assert found.met
    assert len(found.changes) == 40_200


def test_protocol_bounds_hold_for_plans_that_nobody_would_choose() -> None:
    """discretisation.md, Theorem 3, with a central factor."""
    unit, double, eps_central, eps = (2.0, 0.45), (2.5, 0.4), 2.0, 0.9
    exact = small_mechanism([unit], double, eps_central=eps_central)
    truth = Reference(exact).of_sequence([Change(0, 2)], eps, accuracy=1e-12)
    atoms = [((-1, 1), NB(*unit)), ((2, -1, -1), NB(*double))]
    protocol = Protocol(Configuration.of(2, atoms, eps_central=eps_central))
    view_pairs = protocol.view_pairs.subset(np.array([1]))
    tables = tabulate(view_pairs, 1e-20)
    assert view_pairs.central is not None
    rng = random.Random(12)
    for _ in range(300):
        plan = GridPlan(
            eps=eps,
            step=10 ** rng.uniform(-3, -1.3),
            size=rng.choice([256, 512, 2048]),
            origin=rng.randint(-2000, 500),
            tilt=10 ** rng.uniform(-1, 2.5),
            other_tilts=np.sort(10 ** np.array([rng.uniform(-2, 3) for _ in range(4)])),
            first=-rng.randint(1, 3000),
            cap=np.array([rng.uniform(-1, 4) for _ in range(view_pairs.factor_count)]),
            central_cap=np.array([rng.uniform(-1, 4) for _ in view_pairs.central.shifts]),
        )
        found = evaluate_on_grid(view_pairs, tables, plan)
        assert found.lower[0] <= truth.upper, plan
        assert truth.lower <= found.upper[0], plan


def test_what_would_not_fit_into_memory_is_refused_at_once() -> None:
    atoms = [(elements, NB(30.0, 1 - 1e-7)) for elements in accounting.ones(40).atoms]
    with pytest.raises(accounting.TooLarge, match="entries"):
        Protocol(Configuration.of(40, atoms, eps_central=0.9)).delta(1.0)
    with pytest.raises(accounting.TooLarge, match="max_value"):
        accounting.hubs(10**9)


def test_losses_of_w_far_below_the_grid_of_their_factor() -> None:
    """The central offset lifts a loss of W that alone would lie below the grid."""
    unit, double = (2.0, 0.11709465984652466), (2.0, 0.17877156924094736)
    exact = small_mechanism([unit], double, eps_central=2.0)
    truth = Reference(exact).of_sequence([Change(0, 1)], 0.0, accuracy=1e-12)
    atoms = [((-1, 1), NB(*unit)), ((2, -1, -1), NB(*double))]
    found = Protocol(Configuration.of(2, atoms, eps_central=2.0)).delta_of(
        Change(0, 1), 0.0, gap=0.01
    )
    assert found.met
    assert found.enclosure.lower <= truth.upper
    assert truth.lower <= found.enclosure.upper


@pytest.mark.parametrize(("change", "width"), [(Change(2, 0), 6e-6), (Change(0, 1), 3e-3)])
def test_bounds_for_a_gap_out_of_reach_are_no_wider_than_for_a_larger_gap(
    change: Change, width: float
) -> None:
    """Was: 0.25 and 1 for a gap of 1e-6, although a gap of 1e-4 gave 7e-5 and 5e-3."""
    law = {(-1, 1): NB(12.0, 0.985), (-1, -1, 2): NB(12.0, 0.98)}
    protocol = Protocol(Configuration.of(2, law.items(), eps_central=0.9))
    found = [protocol.delta_of(change, 1.0, gap=gap) for gap in (1e-4, 1e-5, 1e-6)]
    assert not found[-1].met
    for wide, close in pairwise(one.enclosure for one in found):
        assert wide.lower <= close.lower <= close.upper <= wide.upper
    assert found[-1].enclosure.relative_gap < width
    exact = {atom: (ExactNoise(p=Fraction(one.p), r=Fraction(one.r)),) for atom, one in law.items()}
    mechanism = Mechanism(2, exact, ExactCentral(step=Fraction(0.9) / 2))
    truth = Notary(mechanism).enclose(1.0, gap=1e-7, changes=[change]).enclosure
    assert truth.relative_gap < 1e-6
    for one in found:
        assert one.enclosure.lower <= truth.upper
        assert truth.lower <= one.enclosure.upper
