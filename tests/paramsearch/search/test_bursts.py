"""The search for noise that comes in bursts."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from accounting import Burst, Configuration, Protocol, greedy
from accounting.model.problem import Problem
from paramsearch import Request, audit, generate, load
from paramsearch.parameters.parameter_file import NAMED_LAWS
from paramsearch.search.families.family_draft import FamilyDraft
from paramsearch.search.noise.atom_moves import _active_pairs, _effects, _log_delta
from paramsearch.search.noise.burst_sizes import SIZES, with_best_sizes
from paramsearch.search.noise.noise_model import NoiseModel
from paramsearch.search.noise.noise_optimizer import optimize_noise
from paramsearch.search.target import Target, usual_m
from paramsearch.tables.lookup import shipped_folder

FAMILY = greedy(5, [3])


def model(m: int, max_value: int = 5) -> NoiseModel:
    problem = Problem(n=10**6, eps=1.0, delta=1e-6, max_value=max_value)
    return NoiseModel(greedy(max_value, [3]), Target(problem, 0.9, m=m))


@pytest.mark.parametrize("m", [1, 4, 16])
def test_estimates_are_close_to_the_bounds(m: int) -> None:
    mean = [1500.0 if s == (-1, 1) else 400.0 for s in FAMILY.atoms]
    noises = [Burst.from_mean(mean=one, r=18.0, m=m) for one in mean]
    config = Configuration.of(5, zip(FAMILY.atoms, noises, strict=True), eps_central=0.9)
    found = Protocol(config).delta(1.0).enclosure
    x = np.log([mean, np.full(len(mean), 18.0)])
    estimate = math.exp(float(model(m).estimator.log_delta(x).max()))
    assert 0.95 * found.lower <= estimate <= 1.05 * found.upper


@pytest.mark.parametrize("m", [1, 4, 16])
def test_gradients_are_those_of_the_estimates(m: int) -> None:
    searched = model(m)
    x = searched.with_enough_bursts(searched.first_guess())
    pairs = np.argsort(-searched.estimator.log_delta(x))[:3]
    _, gradient = searched.estimator.gradient(x, pairs)
    step = 1e-4
    for parameter in range(2):
        for atom in range(x.shape[1]):
            moved = np.zeros_like(x)
            moved[parameter, atom] = step
            high, low = (searched.estimator.log_delta(x + s * moved, pairs) for s in (1, -1))
            slope = (high - low) / (2 * step)
            # outcomes move between cells, which the gradient does not see
            assert np.abs(slope - gradient[:, parameter, atom]).max() < 0.02 * (
                1 + np.abs(slope).max()
            )


def test_delta_is_no_smaller_than_the_chance_of_no_burst() -> None:
    searched = model(8)
    few = np.log([np.full(len(FAMILY.atoms), 500.0), np.full(len(FAMILY.atoms), 3.0)])
    enough = searched.with_enough_bursts(few)
    rates = [Burst.from_mean(mean=500.0, r=math.exp(r), m=8).rate for r in enough[1]]
    assert all(math.exp(-rate) < 1e-6 for rate in rates)
    assert (enough[0] == few[0]).all()
    many = np.log([np.full(len(FAMILY.atoms), 500.0), np.full(len(FAMILY.atoms), 40.0)])
    assert (searched.with_enough_bursts(many) == many).all()
    negative_binomials = model(0)
    assert (negative_binomials.with_enough_bursts(few) == few).all()


def test_sizes_of_bursts_save_messages() -> None:
    searched = model(1)
    before = optimize_noise(searched, searched.first_guess(), tolerance=1e-4)
    after = with_best_sizes(before)
    assert after.messages < 0.95 * before.messages
    assert set(after.model.burst_sizes.tolist()) <= set(SIZES)
    assert (before.model.burst_sizes == 1).all()
    # the noise meets delta according to estimates, and the proposal has these sizes
    assert float(after.model.excess(after.x).max()) < 0.01
    laws = [noise for _, noise in after.model.proposal(after.x).atoms]
    assert [law.m for law in laws if isinstance(law, Burst)] == after.model.burst_sizes.tolist()


def test_no_round_begins_after_the_deadline() -> None:
    searched = model(1)
    before = optimize_noise(searched, searched.first_guess(), tolerance=1e-2)
    assert with_best_sizes(before, deadline=0.0) is before


@pytest.mark.parametrize("max_value", [1, 2])
def test_bursts_take_a_fifth_fewer_messages(max_value: int) -> None:
    request = Request(n=10**6, eps=1.0, delta=1e-6, max_value=max_value, noise="burst", tries=2)
    file = generate(request).file
    known = load(shipped_folder() / "files" / f"{max_value}-1-1e-06-0.9.json")
    assert file.format == NAMED_LAWS
    assert file.provenance.settings["noise"] == "burst"
    assert file.error == known.error
    assert file.cost.noise_messages < 0.8 * known.cost.noise_messages
    assert audit(file, tier="ball").verdict == "certified"


def test_the_usual_size() -> None:
    assert usual_m("negative-binomial") == 0
    assert usual_m("burst") in SIZES
    assert replace(Target(Problem(n=1, eps=1.0, delta=0.1, max_value=1), 0.5), m=3).at(2).m == 3


@pytest.mark.parametrize("m", [0, 8])
def test_moves_are_priced_for_the_law_that_is_searched(m: int) -> None:
    """Was: as if every atom had negative binomials, whatever the search was for.

    A family that differs from the draft in one atom has the divergences that the price of the move
    to it assumes, at the same parameters.
    """
    searched = model(m, 10)
    draft = FamilyDraft.from_family(searched.family)
    x = searched.first_guess()
    solution = optimize_noise(searched, searched.with_enough_bursts(x) if m else x, steps=6)
    pairs = _active_pairs(draft, searched, solution)
    share = solution.multipliers / solution.multipliers.sum()
    active = solution.pairs[share > 1e-3]
    assert len(active) == len(pairs) > 1
    priced = _log_delta(searched, solution, pairs, [])
    assert np.abs(priced - searched.estimator.log_delta(solution.x, active)).max() < 0.02

    value, parts = 7, (*draft.parts[7][:-1],)
    effects = list(_effects(draft, 0, value, parts, pairs))
    assert effects
    after = _log_delta(searched, solution, pairs, effects)[len(pairs) :]
    changed = draft.changed({value: parts})
    assert changed is not None
    other = NoiseModel(changed.family, searched.target)
    assert other.family.atoms != searched.family.atoms
    place = {at: i for i, at in enumerate(searched.defined_values)}
    same = solution.x[:, [place[at] for at in other.defined_values]]
    truth = other.estimator.log_delta(same, active[[effect.pair for effect in effects]])
    assert np.abs(after - truth).max() < 0.02
