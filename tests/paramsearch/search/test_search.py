"""The search: drafts are families, programs reach their optima, files are certified."""

from __future__ import annotations

import math
import random
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import accounting
from accounting import Family, InvalidParameter, Protocol
from accounting.model.costs import central_by_fraction, central_by_rmse, largest_central
from accounting.model.problem import Problem
from paramsearch.generation.finish import calibrated, finish
from paramsearch.generation.optimality import prove_local_optimality
from paramsearch.generation.pair_bounds import pair_bounds
from paramsearch.request import Request
from paramsearch.search.budget import Budget
from paramsearch.search.families import hub_families as hubs
from paramsearch.search.families.family_draft import FamilyDraft
from paramsearch.search.families.random_moves import random_move
from paramsearch.search.family_search import Search
from paramsearch.search.noise.atom_moves import predicted_gains
from paramsearch.search.noise.noise_model import NoiseModel
from paramsearch.search.noise.noise_optimizer import optimize_noise
from paramsearch.search.target import Target


def target(max_value: int, share: float = 0.9, **other: object) -> Target:
    base = Target(Problem(n=10**6, eps=1.0, delta=1e-6, max_value=max_value), share)
    own = {name: value for name, value in other.items() if name in {"objective", "share", "mixed"}}
    rest = {name: value for name, value in other.items() if name not in own}
    problem = replace(base.problem, **rest)  # type: ignore[arg-type]  # the fields under test
    return replace(base, problem=problem, **own)  # type: ignore[arg-type]  # other fields under test


def request(max_value: int, seed: int = 0) -> Request:
    return Request(n=1000, eps=1.0, delta=1e-6, max_value=max_value, seed=seed)


FAMILIES = [accounting.ones(4), accounting.halves(9), accounting.hubs(20), accounting.radix(12, 3)]


@pytest.mark.parametrize("family", FAMILIES)
def test_a_draft_is_its_family(family: Family) -> None:
    draft = FamilyDraft.from_family(family)
    assert set(draft.family.atoms) == set(family.atoms)
    position = dict(family.basis)
    for j in range(family.max_value + 1):
        column = np.zeros(len(family.atoms), int)
        for value, entry in draft.columns[j].items():
            column[position[value]] = entry
        assert np.array_equal(column, family.columns[j])


@settings(deadline=None, max_examples=60)
@given(st.integers(2, 60), st.integers(2, 200), st.integers(0, 10**6), st.integers(0, 6))
def test_rescaled_families_are_families_or_nothing(
    small: int, top: int, seed: int, changes: int
) -> None:
    source = random.Random(seed)
    draft = hubs.draft_from_hubs(target(small), hubs.usual_hubs(target(small)))
    assert draft is not None
    for _ in range(changes):
        draft = random_move(draft, source) or draft
    found = hubs.rescaled(target(top), draft)
    if found is not None:
        family = found.family  # refuses what is not triangular
        assert family.exact
        assert family.max_value == top


def test_a_cycle_is_no_draft() -> None:
    assert FamilyDraft.of(4, {2: (), 3: (-4,), 4: (), -4: (3,)}) is None


def test_influence_says_how_columns_change() -> None:
    draft = FamilyDraft.from_family(accounting.greedy(9, [4]))
    changed = draft.changed({-4: (3,)})
    assert changed is not None
    for j in range(10):
        times = draft.influence[j].get(-4, 0)
        for value in draft.parts:
            before = draft.columns[j].get(value, 0)
            new = -draft.columns[3].get(value, 0)  # c_{-4} loses c_3
            assert changed.columns[j].get(value, 0) == before + times * new


def test_the_optimum_at_one() -> None:
    """One atom: a scan over r is the oracle."""
    model = NoiseModel(accounting.ones(1), target(1))
    found = optimize_noise(model, model.first_guess(), tolerance=1e-6).messages
    best = math.inf
    for r in np.linspace(12, 26, 29):
        low, high = math.log(150), math.log(600)
        for _ in range(40):
            middle = (low + high) / 2
            if model.excess(np.array([[middle], [math.log(r)]])).max() > 0:
                low = middle
            else:
                high = middle
        best = min(best, model.messages(np.array([[high], [math.log(r)]])))
    assert best * 0.999 <= found <= best * 1.001
    assert found < 601


def test_local_optimum_does_not_depend_on_the_start() -> None:
    model = NoiseModel(accounting.greedy(5, [3]), target(5))
    source = np.random.default_rng(5)
    ends = [
        optimize_noise(
            model, model.first_guess() + source.normal(0, 0.3, (2, len(model.size))), tolerance=1e-5
        ).messages
        for _ in range(4)
    ]
    assert max(ends) <= min(ends) * 1.002
    assert max(ends) < 5562  # what a rough prototype reached with this family


def test_moves_predict_the_gain() -> None:
    """The best move of a poor family, solved again, gains; and about as much as was predicted."""
    draft = FamilyDraft.from_family(accounting.greedy(10, [5, 3]))
    model = NoiseModel(draft.family, target(10))
    solution = optimize_noise(model, model.first_guess())
    move = predicted_gains(draft, model, solution)[0]
    assert move.gain < 0
    changed = draft.changed({move.value: move.parts})
    assert changed is not None
    other = NoiseModel(changed.family, target(10))
    gained = optimize_noise(other, other.first_guess()).messages - solution.messages
    assert gained < 0


def test_search_is_deterministic_and_beats_single_hubs() -> None:
    runs = []
    for _ in range(2):
        search = Search(target(10), budget=Budget(tries=8), seed=3)
        best = search.run()
        runs.append((best.draft.key, best.solution.messages))
    assert runs[0] == runs[1]
    assert runs[0][1] < 11_400


def test_two_parts_of_a_hub_come_in_one_move() -> None:
    """{4, -8, 3, 1} instead of {4, -1 x 4}: either part alone makes the atom more expensive."""
    draft = hubs.draft_from_hubs(target(10, 0.5), {8: (3,)})
    assert draft is not None
    assert draft.parts[4] == ()
    search = Search(target(10, 0.5), budget=Budget(tries=1))
    moved = search.improved(search.solve(draft), until=0.8, patience=12)
    assert moved.draft.parts[4] == (-8, 3)
    assert moved.price < 3480


@pytest.mark.parametrize("top", [6, 9, 20, 48, 301])
def test_hubs_with_a_shared_value_are_families(top: int) -> None:
    for shape in hubs.hubs_sharing_a_value(top):
        draft = hubs.draft_from_hubs(target(top, 0.5), shape)
        assert draft is not None
        again = hubs.draft_from_hubs(target(top, 0.5), dict(sorted(shape.items())))
        assert again is not None
        assert again.key == draft.key  # whatever the order
        assert draft.family.exact
        made = {-v: tuple(u for u in p if u > 0) for v, p in draft.parts.items() if v < 0}
        assert made.items() <= shape.items()


@settings(max_examples=60, deadline=None)
@given(st.integers(2, 40), st.integers(0, 10_000))
def test_every_random_move_is_a_family_or_nothing(top: int, seed: int) -> None:
    rng = random.Random(seed)
    draft = hubs.draft_from_hubs(target(top), hubs.usual_hubs(target(top)))
    for _ in range(6):
        assert draft is not None
        draft = random_move(draft, rng) or draft
        assert draft.family.exact
        assert set(range(2, top + 1)) <= set(draft.parts)


def test_objective_bits_pays_for_the_alphabet() -> None:
    few = target(7, objective="bits", n=1000)
    assert few.price(100.0, 8) == 3 * 1100
    assert few.price(100.0, 9) == 4 * 1100
    assert target(7).price(100.0, 9) == 100.0
    search = Search(few, budget=Budget(tries=6))
    assert len(search.run().model.family.values) <= 16


def test_finished_files_are_certified_and_tight() -> None:
    model = NoiseModel(accounting.greedy(5, [3]), target(5))
    solution = optimize_noise(model, model.first_guess())
    file, x = finish(model, solution.x, request(5, seed=1))
    assert file.certificate is not None
    assert file.certificate.delta_upper <= 1e-6
    assert file.certificate.delta_lower >= 0.998e-6
    truth = Protocol(model.configuration(x)).delta(1.0, gap=1e-3).enclosure
    assert truth.lower <= file.certificate.delta_upper
    assert file.certificate.delta_lower <= truth.upper


def test_too_little_noise_is_repaired() -> None:
    """Starting from half the noise, whatever the estimates said, the file is certified."""
    model = NoiseModel(accounting.ones(2), target(2))
    x = optimize_noise(model, model.first_guess()).x - np.array([[0.7], [0.0]])
    file, _ = finish(model, x, request(2))
    assert file.certificate is not None
    assert file.certificate.delta_upper <= 1e-6


def test_a_move_counts_only_with_proof() -> None:
    model = NoiseModel(accounting.ones(2), target(2))
    x = optimize_noise(model, model.first_guess(), tolerance=1e-6).x
    x = calibrated(model, x, request(2))
    found = prove_local_optimality(model, x, request(2))
    assert found is not None
    assert found.proven == found.listed == 4
    generous = x + np.array([[0.05], [0.0]])  # with 5% to spare a move of 1% does help
    found = prove_local_optimality(model, generous, request(2))
    assert found is not None
    assert found.proven == 0
    assert found.largest_saving > 0


def test_bounds_of_a_subset_of_pairs() -> None:
    model = NoiseModel(accounting.ones(3), target(3))
    x = model.first_guess()
    lower, upper = pair_bounds(model, x, None, 0.01)
    worst = np.array([int(np.argmax(lower))])
    low, high = pair_bounds(model, x, worst, 1e-3)
    assert low[0] <= upper[worst[0]]
    assert lower[worst[0]] <= high[0]


@pytest.mark.parametrize("releases", [1, 2, 7])
def test_the_central_noise_alone_fits(releases: int) -> None:
    """largest_central is (eps, delta/2)-DP for a change of the sum by max_value: direct sums."""
    eps, delta, top = 1.0, 1e-6, 3
    largest = largest_central(eps=eps, delta=delta, max_value=top, changes=releases)
    assert eps / releases <= largest <= eps
    step = largest / top
    k = np.arange(-6000, 6001)
    mass = np.exp(-step * np.abs(k))
    mass /= mass.sum()
    loss = step * (np.abs(k + top) - np.abs(k))
    values, inverse = np.unique(np.round(loss / step).astype(int), return_inverse=True)
    pmf = np.zeros(2 * top + 1)
    np.add.at(pmf, values[inverse] + top, mass)
    total = np.ones(1)
    for _ in range(releases):
        total = np.convolve(total, pmf)
    losses = step * (np.arange(len(total)) - releases * top)
    found = float(np.sum(total * np.clip(1 - np.exp(eps - losses), 0, None)))
    assert found <= delta / 2 * (1 + 1e-6)


def test_central_noise_from_an_error() -> None:
    found = central_by_rmse(8.0, 5, 1.0)
    assert 64.0 * (1 - 1e-11) <= 0.5 / math.sinh(found / 10) ** 2 <= 64.0
    with pytest.raises(InvalidParameter, match="out of reach"):
        central_by_rmse(7.0, 5, 1.0)
    with pytest.raises(InvalidParameter, match="strictly between 0 and 1"):
        central_by_fraction(1.0, 1.0)
