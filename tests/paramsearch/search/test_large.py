"""Large problems, made small: shared laws, watched pairs, and files from both."""

from __future__ import annotations

import numpy as np
import pytest

import accounting
from accounting import Protocol
from accounting.base.arrays import FloatArray, IntArray
from accounting.model.problem import Problem
from paramsearch.generation.finish import WorstPairs, finish
from paramsearch.request import Request
from paramsearch.search.budget import Budget
from paramsearch.search.family_search import Search
from paramsearch.search.noise import noise_model, noise_optimizer, tied_laws, watched_pairs
from paramsearch.search.noise.evidence import evidence_of
from paramsearch.search.noise.noise_model import NoiseModel
from paramsearch.search.noise.noise_optimizer import optimize_noise
from paramsearch.search.noise.watched_pairs import near_pairs
from paramsearch.search.target import Target


def target(top: int, share: float = 0.9) -> Target:
    return Target(Problem(n=1000, eps=1.0, delta=1e-6, max_value=top), share)


@pytest.fixture
def all_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every problem above max_value 3 counts as large, and atoms share laws from 6 on."""
    monkeypatch.setattr(noise_model, "_ALL_PAIRS_UNTIL", 3)
    monkeypatch.setattr(tied_laws, "UNTIED_UNTIL", 5)
    monkeypatch.setattr(tied_laws, "_CLASSES", 3)


def test_atoms_of_one_law_have_its_noise() -> None:
    family = accounting.greedy(8, [5, 3])
    count = len(family.atoms)
    law = np.minimum(np.arange(count), 3)
    tied, free = NoiseModel(family, target(8), law), NoiseModel(family, target(8))
    x: FloatArray = tied.tied(free.first_guess())
    assert x.shape == (2, 4)
    assert np.all(tied.per_atom(x)[0] >= free.first_guess()[0] - 1e-12)
    assert abs(tied.messages(x) - free.messages(tied.per_atom(x))) < 1e-6
    assert np.abs(tied.excess(x) - free.excess(tied.per_atom(x))).max() < 1e-9
    assert tied.proposal(x).atoms == free.proposal(tied.per_atom(x)).atoms
    pairs = np.arange(5)
    _, of_law = tied.estimator.gradient(x, pairs)
    _, of_atom = free.estimator.gradient(tied.per_atom(x), pairs)
    for i in range(4):
        together = of_atom[:, :, law == i].sum(axis=2)
        assert np.abs(of_law[:, :, i] - together).max() < 1e-8 * np.abs(of_law).max()


def test_chosen_pairs_are_those_of_all_pairs() -> None:
    whole = NoiseModel(accounting.greedy(8, [5, 3]), target(8))
    x = whole.first_guess()
    chosen = np.array([[0, 8], [3, 1], [8, 0]])
    some = whole.watching(chosen)
    index = {change[0].listed: i for i, change in enumerate(whole.changes)}
    every = whole.excess(x)
    for found, (j, k) in zip(some.excess(x), chosen.tolist(), strict=True):
        assert abs(found - every[index[j, k]]) < 1e-9
    assert some.places(chosen[[2, 0]]).tolist() != []


@pytest.mark.usefixtures("all_is_large")
def test_near_pairs_are_the_worst_ones() -> None:
    """At noise that is about right; elsewhere, later looks find what the first one misses."""
    model = NoiseModel(accounting.greedy(10, [5]), target(10))
    x = optimize_noise(model, model.first_guess()).x
    excess = model.excess(x)
    found = {tuple(pair) for pair in near_pairs(model, x, -1.0, 10_000).tolist()}
    wanted = {
        change[0].listed
        for change, value in zip(model.changes, excess, strict=True)
        if value > excess.max() - 1.0
    }
    assert found == wanted
    assert len(near_pairs(model, x, -1.0, 2)) == 2


@pytest.mark.usefixtures("all_is_large")
def test_watching_a_few_pairs_finds_the_same_optimum(monkeypatch: pytest.MonkeyPatch) -> None:
    model = NoiseModel(accounting.greedy(10, [5]), target(10))
    few = optimize_noise(model, model.first_guess(), tolerance=1e-4)
    assert few.model.pairs is not None
    monkeypatch.setattr(noise_model, "_ALL_PAIRS_UNTIL", 100)
    every = optimize_noise(model, model.first_guess(), tolerance=1e-4)
    assert abs(few.messages / every.messages - 1) < 5e-3
    assert model.excess(few.x).max() < 0.05
    evidence = evidence_of(few)
    assert 4.0 < evidence.radius.min() <= evidence.radius.max() < 9.0


@pytest.mark.usefixtures("all_is_large")
def test_a_tied_search_ends_in_a_certified_file() -> None:
    search = Search(target(9), Budget(tries=2))
    best = search.run()
    laws = len(best.model.size)
    request = Request(n=1000, eps=1.0, delta=1e-6, max_value=9)
    file, x = finish(best.model, best.solution.x, request)
    assert file.certificate is not None
    assert file.certificate.delta_upper <= 1e-6
    assert file.certificate.delta_lower >= 0.99e-6
    assert x.shape == (2, laws)


@pytest.mark.usefixtures("all_is_large")
def test_pairs_that_were_not_watched_are_found() -> None:
    """Calibrated on a harmless pair alone, the noise is too little; a full pass finds the rest."""
    model = NoiseModel(accounting.greedy(8, [5]), target(8))
    solution = optimize_noise(model, model.first_guess())
    only = model.watching(np.array([[4, 3]]))
    harmless = WorstPairs(only, np.array([0]), Request(n=1000, eps=1.0, delta=1e-6, max_value=8))
    x = harmless.calibrated(solution.x)
    assert Protocol(model.configuration(x)).delta(1.0).enclosure.lower > 1e-6
    more = harmless.with_missed(x)
    assert more is not None
    assert len(more.pairs) > 1
    again = more.calibrated(x)
    worst = Protocol(model.configuration(again)).delta(1.0, gap=1e-3).enclosure
    assert worst.upper <= 1.05e-6


def test_a_sample_has_all_pairs_of_an_input_and_its_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Found by the columns of the family; one pair of the others is sampled."""
    family = accounting.halves(12)
    model = NoiseModel(family, target(12))
    monkeypatch.setattr(watched_pairs, "_SAMPLE", 1)
    found = near_pairs(model, model.first_guess(), -1e9, 10_000, sampled=True)
    parts = {
        (j, k) for j in range(13) for k in range(2, j) if family.columns[j][family.basis[k]] != 0
    }
    both = parts | {(k, j) for j, k in parts}
    listed = set(map(tuple, found.tolist()))
    assert len(both) > 2
    assert both <= listed
    assert len(listed - both) <= 2


@pytest.mark.usefixtures("all_is_large")
def test_a_descent_goes_on_where_the_last_look_finds_other_pairs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Looks in between overlook one active pair; the optimum is that of all nevertheless."""
    model = NoiseModel(accounting.greedy(10, [5]), target(10))
    every = optimize_noise(model, model.first_guess())
    assert every.model.pairs is not None
    active = every.model.pairs[every.pairs[np.argsort(-every.multipliers)]]
    hidden = next(pair for pair in active if abs(pair[0] - pair[1]) < 9)

    def blind(*arguments: object, sampled: bool = False) -> IntArray:
        found = near_pairs(*arguments)  # type: ignore[arg-type]  # what it was called with
        return found[(found != hidden).any(axis=1)] if sampled else found

    monkeypatch.setattr(noise_optimizer, "near_pairs", blind)
    found = optimize_noise(model, model.first_guess())
    assert model.excess(found.x).max() < 0.1
    assert found.messages < 1.05 * every.messages


def test_what_estimates_missed_is_found_before_the_proof() -> None:
    model = NoiseModel(accounting.greedy(8, [5]), target(8))
    x = optimize_noise(model, model.first_guess()).x
    harmless = int(np.argmin(model.excess(x)))
    first = WorstPairs(
        model, np.array([harmless]), Request(n=1000, eps=1.0, delta=1e-6, max_value=8)
    )
    worst, x = first.checked(first.calibrated(x), lambda text: None)
    assert len(worst.pairs) > 1
    assert Protocol(model.configuration(x)).delta(1.0, gap=1e-4).enclosure.upper <= 1e-6
