"""Compositions of changes with few outcomes, against the induction over all of them."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from adaptive import Noise, Shifts, delta, outcomes

from accounting import NegativeBinomial
from accounting.base.arrays import UNIT_ROUNDOFF
from accounting.base.progress import silent
from accounting.composition import any_sequence, change_profiles, eps_search
from accounting.composition.all_releases import AllReleases
from accounting.composition.any_sequence import OneRelease, sequence_bounds
from accounting.composition.several_mechanisms import Releases, compose
from accounting.evaluator.evaluate import evaluate
from accounting.evaluator.grid_plan import GridPlan
from accounting.evaluator.noise_tables import tabulate
from accounting.evaluator.pair_error_terms import PairTerms
from accounting.evaluator.spectra import transform
from accounting.evaluator.tilted_losses import tilt_factors
from accounting.evaluator.view_pairs import ViewPairs
from accounting.model.laws.noise import NoiseSum

NOISES: list[Noise] = [(12.0, 0.3), (6.0, 0.2)]
CHANGES: list[Shifts] = [{0: 1}, {0: -1}, {1: 1}, {0: 1, 1: -1}]


def view(noises: Sequence[Noise], changes: Sequence[Shifts], ulps: float = 0.0) -> ViewPairs:
    """All changes of one release."""
    laws = tuple(NoiseSum((NegativeBinomial(r, p),), p_ulps=ulps) for r, p in noises)
    plain = sorted({item for change in changes for item in change.items()})
    factor = [plain.index(item) for change in changes for item in change.items()]
    start = np.cumsum([0, *map(len, changes)])
    return ViewPairs(laws, np.array(plain), start, np.array(factor))


def one_release(changes: Sequence[Shifts], directions: Sequence[Sequence[int]] = ()) -> OneRelease:
    pairs = view(NOISES, changes)
    return OneRelease(pairs, pairs, directions or [list(range(len(changes)))])


# --- profiles


@pytest.mark.parametrize("releases", [1, 4])
@pytest.mark.parametrize("sign", [0, 1, -1])
def test_profiles_are_above_the_truth_at_every_grid_point(releases: int, sign: int) -> None:
    """And close to it where they are used; p may be off by as much as it says."""
    ulps = 2.0**38 * abs(sign)
    found = change_profiles.change_profiles(
        view(NOISES, CHANGES, ulps), 0.4 * releases, releases, gap=1e-3
    )
    eps = (found.base + np.arange(found.size)) * found.step
    at = np.flatnonzero((eps > -3) & (eps < 3))[:: found.size // 64 + 1]
    rows = found.rows(np.arange(len(CHANGES)))
    true_noises = [(r, p * (1 + 0.999 * sign * ulps * UNIT_ROUNDOFF)) for r, p in NOISES]
    for row, change in zip(rows, CHANGES, strict=True):
        true = outcomes(true_noises, change, tail=1e-13)
        for i in at.tolist():
            low, high = delta([[true]], [1], float(eps[i]))
            assert low <= row[i]
            if not sign and 0 < eps[i] < 0.8:
                assert row[i] <= 1.01 * high + 1e-6


def test_profiles_hold_for_plans_that_nobody_would_choose() -> None:
    """releases.md, Lemma 5: whatever the step, the tilt, the window and the caps."""
    pairs, rng = view(NOISES, CHANGES), random.Random(1)
    true = [outcomes(NOISES, change, tail=1e-13) for change in CHANGES]
    for trial in range(40):
        tables = tabulate(pairs, 10 ** rng.uniform(-20, -5))
        plan = GridPlan(
            eps=rng.uniform(-0.5, 2),
            step=10 ** rng.uniform(-2.5, -1.3),
            size=rng.choice([256, 512]),
            origin=rng.randint(-300, 50),
            tilt=10 ** rng.uniform(-1, 1),
            other_tilts=np.array([-6.0, -3.0, -1.5, -1.0, 5.0, 10.0, 20.0]),
            first=-rng.randint(1, 1000),
            cap=np.array([rng.uniform(-1, 3) for _ in range(pairs.factor_count)]),
            central_cap=np.zeros(0),
        )
        tilted = tilt_factors(pairs, tables, plan)
        terms = PairTerms.of(pairs, tilted.factors, plan)
        spectra = transform(pairs, tilted, np.arange(len(CHANGES)))
        rows = change_profiles._InverseTransform(spectra, terms).profiles(np.arange(len(CHANGES)))
        for row, one in zip(rows, true, strict=True):
            for i in range(trial % 16, plan.size, 16):
                low, _ = delta([[one]], [1], (plan.origin + i) * plan.step)
                assert low <= row[i], (plan, i)


@pytest.mark.parametrize("sign", [1, -1])
def test_profiles_cover_every_law_that_the_doubles_stand_for(sign: int) -> None:
    """A geometric noise has one loss, and just below it delta depends on all digits of p."""
    (r, p), shift, ulps = (1.0, 0.9005), 40, 2.0**30  # just above a grid point
    pairs = view([(r, p)], [{0: shift}], ulps)
    found = change_profiles.change_profiles(pairs, 4.1, 1, gap=1e-3)
    loss = -shift * math.log(p * (1 + 0.999 * sign * ulps * UNIT_ROUNDOFF))
    (row,) = found.rows(np.zeros(1, np.int64))
    eps = (found.base + np.arange(found.size)) * found.step
    near = np.flatnonzero((eps < loss) & (eps > loss - 1))
    assert (row[near] >= -np.expm1(eps[near] - loss)).all()
    assert (row[near] <= -1.2 * np.expm1(eps[near] - loss) + 0.01).all()


def test_profiles_hold_where_the_transform_knows_nothing() -> None:
    """releases.md, Lemma 5: a mass at the end of the window, next to one that is 1e18 larger."""
    pairs = view([(12.0, 0.3)], [{0: 1}])
    size, step, small = 256, 1 / 64, 1e-18
    plan = GridPlan(
        eps=0.5,
        step=step,
        size=size,
        origin=0,
        tilt=1.0,
        other_tilts=np.array([2.0]),
        first=-300,
        cap=np.array([2.0]),
        central_cap=np.zeros(0),
    )
    tilted = tilt_factors(pairs, tabulate(pairs, 1e-20), plan)
    terms = PairTerms.of(pairs, tilted.factors, plan)
    nothing = np.zeros(1)
    terms = replace(terms, outside=nothing, below=nothing, aside_upper=nothing)
    rng = np.random.default_rng(1)
    for _ in range(40):
        law = np.zeros((1, size))
        law[0, rng.integers(0, size - 8, 20)] = rng.random(20)
        law /= law.sum()
        law[0, -2] = small
        spectra = transform(pairs, replace(tilted, rows=law), np.zeros(1, np.int64))
        (row,) = change_profiles._InverseTransform(spectra, terms).profiles(np.zeros(1, np.int64))
        at = step * (size - 3)
        mass = small * terms.scale_up[0] * math.exp(plan.tilt * (plan.eps - at - step))
        assert row[size - 3] >= mass * -math.expm1(-step)


def test_every_change_lies_below_its_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    """However few kinds there may be."""
    found = change_profiles.change_profiles(view(NOISES, CHANGES), 0.8, 2, gap=1e-3)
    for most in (64, 2, 1):
        monkeypatch.setattr(any_sequence, "_MOST_KINDS", most)
        kinds = any_sequence._kinds(found, 0.8)
        assert 1 <= len(kinds.founder) <= most
        for row in found.rows(np.arange(len(CHANGES))):
            assert (row <= kinds.value).all(axis=1).any()


# --- releases of one mechanism


def releases_of(changes: Sequence[Shifts], times: int) -> Releases:
    pairs = view(NOISES, changes)
    return Releases(pairs, pairs, times)


@pytest.mark.parametrize("releases", [2, 3])
@pytest.mark.parametrize("eps", [0.2, 0.7])
@pytest.mark.parametrize("changes", [CHANGES[:2], CHANGES[1:3]], ids=str)
def test_the_induction_is_an_equality(changes: list[Shifts], releases: int, eps: float) -> None:
    true = [outcomes(NOISES, change, tail=1e-8) for change in changes]
    low, high = delta([true], [releases], eps * releases)
    found = sequence_bounds(one_release(changes), eps * releases, releases, gap=1e-3)
    assert 0.8 * low <= found.lower <= high  # of a fixed sequence
    assert low <= found.upper <= 1.003 * high


@pytest.mark.parametrize("releases", [2, 3])
def test_directions_are_not_mixed(releases: int) -> None:
    changes = CHANGES[:2]
    true = [outcomes(NOISES, change, tail=1e-8) for change in changes]
    ends = [delta([[one]], [releases], 0.4 * releases) for one in true]
    both = one_release(changes, [[0], [1]])
    found = sequence_bounds(both, 0.4 * releases, releases, gap=1e-3)
    assert found.lower <= max(high for _, high in ends)
    assert max(low for low, _ in ends) <= found.upper <= 1.003 * max(high for _, high in ends)


@pytest.mark.parametrize("releases", [33, 37, 40])
def test_blocks_of_releases_cover_all_of_them(releases: int) -> None:
    """No fewer, and no more: the same change in one release less and in one more."""
    eps = 0.02 * releases
    (upper,) = any_sequence.rough_uppers(one_release([{0: 1}]), eps, releases)
    fixed = {
        times: evaluate(replace(view(NOISES, [{0: 1}]), releases=times), eps, gap=1e-4)
        for times in (releases, releases + 1)
    }
    assert fixed[releases].lower[0] <= upper <= fixed[releases + 1].lower[0]


# --- several mechanisms


@pytest.mark.parametrize("times", [(1, 1), (2, 1), (1, 2)])
@pytest.mark.parametrize("eps", [0.3, 1.0])
def test_releases_of_two_mechanisms_come_in_any_order(times: tuple[int, int], eps: float) -> None:
    first, second = CHANGES[:2], CHANGES[2:3]
    true = [[outcomes(NOISES, change, tail=1e-8) for change in of] for of in (first, second)]
    low, high = delta(true, times, eps)
    parts = [releases_of(of, count) for of, count in zip((first, second), times, strict=True)]
    found = compose(parts, eps, gap=1e-3)
    assert 0.9 * low <= found.law.delta(eps) <= high
    # one pair for all changes is more than the worst of them
    assert low <= found.pair.delta(eps) <= 1.15 * high


@pytest.mark.parametrize("times", [1, 2, 5, 9])
def test_the_law_from_below_is_that_of_all_releases(times: int) -> None:
    eps = 0.05 * times
    fixed = {
        count: evaluate(replace(view(NOISES, [{0: 1}]), releases=count), eps, gap=1e-4)
        for count in (times, times + 1)
    }
    found = compose([releases_of([{0: 1}], times)], eps, gap=1e-3)
    assert 0.99 * fixed[times].lower[0] <= found.law.delta(eps) <= fixed[times].upper[0]
    assert fixed[times].lower[0] <= found.pair.delta(eps) <= fixed[times + 1].lower[0]


def test_the_eps_that_holds_is_on_its_side() -> None:
    changes = CHANGES[:2]
    true = [outcomes(NOISES, change, tail=1e-13) for change in changes]
    whole = AllReleases([[releases_of(changes, 2)]], exact=True, typical_eps=1.0)
    found = whole.epsilon(0.05, gap=1e-3, progress=silent)
    assert delta([true], [2], found.upper)[0] <= 0.05
    assert delta([true], [2], found.lower * (1 - 1e-6))[1] > 0.05
    assert found.upper <= 1.1 * found.lower


@pytest.mark.parametrize("end", [0.0, 1e-9, 0.3, 1.0, 77.7])
def test_searches_end_on_the_side_that_holds(end: float) -> None:
    first = eps_search.first_eps(lambda eps: eps >= end, 0.5)
    last = eps_search.last_eps(lambda eps: eps <= end, 0.5)
    assert end <= first <= end + 1e-6 * max(end, 1e-3)
    assert end - 1e-6 * max(end, 1e-3) <= last <= end
