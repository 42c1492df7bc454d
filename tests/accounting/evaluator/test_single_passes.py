"""Single passes of the evaluator, against 50 digits: whatever the tables, the plan, and the p that
a double stands for (discretisation.md, Theorem 3)."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from itertools import accumulate

import mpmath as mp
import numpy as np
import pytest
from truth import Bracket, product

from accounting import Configuration, NegativeBinomial, Protocol
from accounting.base.arrays import UNIT_ROUNDOFF, multiples
from accounting.evaluator import bounding_functions, spectra
from accounting.evaluator.evaluate import (
    coarse_estimate,
    evaluate,
    evaluate_on_grid,
)
from accounting.evaluator.grid_plan import GridPlan, Refinement, choose_plan
from accounting.evaluator.noise_tables import NoiseTable, noise_table, tabulate
from accounting.evaluator.pair_error_terms import PairTerms
from accounting.evaluator.tilted_losses import LARGEST_GRID, tilt_factors
from accounting.evaluator.view_pairs import CentralMixture, ViewPairs
from accounting.model.laws.noise import NoiseSum

NB = NegativeBinomial
Noises = list[tuple[float, float]]
Mixed = tuple[int, float]
"""The number m of a central factor, and its step."""
ULPS = 2.0**40
"""An uncertainty of p of about 1e-4, whose effect is far above every rounding error."""
PLANS = 12
"""Number of random plans for every case."""


def view(
    noises: Noises,
    shifts: list[int],
    mixed: Mixed | None = None,
    *,
    ulps: float = 0.0,
    releases: int = 1,
) -> ViewPairs:
    """One pair: every noise shifted once; with ``mixed``, the last one in several ways."""
    laws = tuple(NoiseSum((NB(r, p),), p_ulps=ulps) for r, p in noises)
    count = len(noises)
    plain = np.array(list(enumerate(shifts)))
    central = None
    if mixed is not None:
        cases, step = mixed
        central = CentralMixture(count - 1, step, np.array([[cases, shifts[-1]]]))
        plain = plain[:-1]
    return ViewPairs(laws, plain, np.array([0, count]), np.arange(count), central, releases)


def exactly(
    noises: Noises, shifts: list[int], mixed: Mixed | None, eps: float, tail: float = 1e-15
) -> Bracket:
    """The divergence of the only pair: the cases of a mixture are told apart by the outcome, and
    each adds its offset to the loss (exact_view.md, Theorem 2)."""
    if mixed is None:
        return product(noises, shifts, eps, tail)
    m, step = mixed
    q, low, high = mp.exp(-mp.mpf(step)), mp.mpf(0), mp.mpf(0)
    for i in range(m + 1):
        weight = 1 if m == 0 else q**i / (1 + q) * (1 - q if 0 < i < m else 1)
        of_case = product(noises, [*shifts[:-1], shifts[-1] + i], eps - (m - 2 * i) * step, tail)
        low, high = low + weight * of_case.low, high + weight * of_case.high
    return Bracket(low, high)


def moved(p: float, ulps: float) -> float:
    """A p that a double with so large an error may stand for."""
    return p * (1 + 0.999 * ulps * UNIT_ROUNDOFF)


# --- tables


LAWS = [(0.4, 0.7), (30.0, 0.9), (1.0, 0.5), (2060.0, 0.5)]
"""The masses of the last one underflow."""


def log_masses(r: float, p: mp.mpf, count: int) -> list[mp.mpf]:
    steps = (mp.log(p * (k - 1 + mp.mpf(r)) / k) for k in range(1, count))
    return list(accumulate(steps, initial=mp.mpf(r) * mp.log(1 - p)))


@pytest.mark.parametrize("law", LAWS, ids=str)
@pytest.mark.parametrize("tail", [0.1, 1e-6, 1e-20])
@pytest.mark.parametrize("ulps", [0.0, 2.0**20])
def test_tables_cover_every_law_that_they_stand_for(
    law: tuple[float, float], tail: float, ulps: float
) -> None:
    (r, p), shift = law, 5
    noise = NoiseSum((NB(r, p),), p_ulps=ulps)
    size = noise.length(tail)
    table = noise_table(noise, size)
    for sign in (1, -1) if ulps else (0,):
        with mp.workdps(50):
            true_p = mp.mpf(p) * (1 + sign * mp.mpf(0.999) * ulps * UNIT_ROUNDOFF)
            true = log_masses(r, true_p, size)
            check_table(table, true, shift)
            beyond = 1 - mp.fsum(map(mp.exp, true))
            assert beyond <= table.tail
            assert table.tail <= 100 * beyond + 1e-18  # the slack of a Chernoff bound
    # no more than the share that is cut off, and what an error of p can do to the last mass
    assert table.relative_error <= 2.1 * table.tail + 2.2 * size * (ulps + 60) * UNIT_ROUNDOFF


def check_table(table: NoiseTable, true: list[mp.mpf], shift: int) -> None:
    for k, (mass, log_mass) in enumerate(zip(true, table.log_mass.tolist(), strict=True)):
        if mass > -690:  # below 2^-1000 masses are not trusted
            found = mp.log(mp.mpf(float(table.mass[k])))
            assert abs(found - mass) <= table.relative_error
        if k >= shift:
            loss = mp.mpf(float(table.log_mass[k - shift])) - mp.mpf(log_mass)
            assert abs(loss - (true[k - shift] - mass)) <= table.loss_error


# --- passes


def inside(found: object, truth: Bracket) -> None:
    """Both bounds of the only pair are on their sides."""
    lower, upper = float(found.lower[0]), float(found.upper[0])  # type: ignore[attr-defined]
    assert mp.mpf(lower) <= truth.high
    assert truth.low <= mp.mpf(upper)


def drawn_plan(rng: random.Random, eps: float, view_pairs: ViewPairs) -> GridPlan:
    central = view_pairs.central
    shifts = [] if central is None else central.shifts.tolist()
    return GridPlan(
        eps=eps,
        step=10 ** rng.uniform(-3, -1.3),
        size=rng.choice([256, 512, 2048]),
        origin=rng.randint(-1500, 300),
        tilt=10 ** rng.uniform(-1, 2.5),
        other_tilts=np.sort(10 ** np.array([rng.uniform(-2, 3) for _ in range(4)])),
        first=-rng.randint(1, 3000),
        cap=np.array([rng.uniform(-1, 4) for _ in range(view_pairs.factor_count)]),
        central_cap=np.array([rng.uniform(-1, 4) for _ in shifts]),
    )


Case = tuple[Noises, list[int], Mixed | None, float]
"""Noises, shifts, what is mixed, and eps."""
CASES: list[Case] = [
    ([(2.0, 0.5), (3.0, 0.4)], [1, -1], None, 0.5),
    ([(2.0, 0.5), (3.0, 0.4)], [2, 1], None, 0.8),
    ([(0.5, 0.8), (2.0, 0.3)], [-2, 3], None, 2.0),
    ([(2.0, 0.5), (3.0, 0.4)], [1, -1], (2, 0.3), 0.5),
    ([(2.0, 0.5), (2.0, 0.3)], [1, 1], (2, 0.05), 0.8),
    ([(0.5, 0.8), (1.0, 0.3)], [1, -3], (3, 0.8), 0.7),
]
FAR_OUT: list[Case] = [
    ([(8.0, 0.5)], [1], None, 0.6),  # only outcomes beyond short tables have a larger loss
    ([(8.0, 0.5)], [1], (0, 0.1), 0.6),
    ([(8.0, 0.5)], [20], None, 10.5),  # or outcomes whose shifted ones are beyond
    ([(8.0, 0.5)], [20], (0, 0.1), 10.5),
    ([(1.0, 0.5)], [20], None, 10.0),  # or all of them
]


@pytest.mark.parametrize("case", [*CASES, *FAR_OUT], ids=str)
@pytest.mark.parametrize("tail", [0.2, 1e-2, 1e-5])
def test_passes_enclose_the_truth_however_short_the_tables(case: Case, tail: float) -> None:
    noises, shifts, mixed, eps = case
    truth = exactly(*case)
    view_pairs = view(noises, shifts, mixed)
    tables = tabulate(view_pairs, tail)
    inside(evaluate_on_grid(view_pairs, tables, sound_plan(view_pairs, eps)), truth)
    rng = random.Random(3)
    for _ in range(PLANS):
        inside(evaluate_on_grid(view_pairs, tables, drawn_plan(rng, eps, view_pairs)), truth)


def sound_plan(view_pairs: ViewPairs, eps: float, gap: float = 1e-3) -> GridPlan:
    """The first plan that the evaluator would choose."""
    wanted = Refinement(eps=eps, gap=gap)
    coarse = coarse_estimate(view_pairs, wanted)
    return choose_plan(coarse.moments, coarse.saddle, wanted, LARGEST_GRID)


@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize("begin", [-0.05, -0.5])
def test_what_lies_outside_the_window_is_on_the_safe_side(case: Case, begin: float) -> None:
    """Much of the mass lies below the window or above it, and wraps around to its other end."""
    noises, shifts, mixed, eps = case
    truth, view_pairs = exactly(*case), view(noises, shifts, mixed)
    tables = tabulate(view_pairs, 1e-20)
    for tilt in (0.3, 1.0, 3.0):
        for step, size in ((1e-3, 512), (1e-3, 1024), (4e-3, 512)):
            plan = replace(
                sound_plan(view_pairs, eps),
                step=step,
                size=size,
                origin=math.floor((eps + begin) / step),
                tilt=tilt,
                other_tilts=np.array([-8.0, -4.0, -2.0, -1.0, 0.0, 5.0, 10.0, 20.0]),
                first=-math.ceil(8 / step),
            )
            inside(evaluate_on_grid(view_pairs, tables, plan), truth)


UNCERTAIN: list[Case] = [
    ([(1.0, 0.9)], [40], None, 4.1),  # a constant loss just above eps
    ([(1.0, 0.9)], [40], (0, 0.1), 4.1),
    ([(30.0, 0.5)], [-1], None, 30.0),  # only an infinite loss counts
    ([(30.0, 0.5)], [-1], (0, 0.1), 30.0),
    ([(6.0, 0.6), (9.0, 0.5)], [2, -1], None, 1.0),
    ([(6.0, 0.6), (9.0, 0.5)], [2, -1], (2, 0.2), 1.0),
]


@pytest.mark.parametrize("case", UNCERTAIN, ids=str)
@pytest.mark.parametrize("sign", [1, -1])
def test_bounds_cover_every_law_that_the_doubles_stand_for(case: Case, sign: int) -> None:
    noises, shifts, mixed, eps = case
    truth = exactly([(r, moved(p, sign * ULPS)) for r, p in noises], shifts, mixed, eps)
    inside(evaluate(view(noises, shifts, mixed, ulps=ULPS), eps, gap=1e-3), truth)


@pytest.mark.parametrize(
    ("noise", "shift", "eps", "releases"),
    [
        ((30.0, 0.5), 1, 0.03, 3),
        ((3.0, 0.1), 1, 0.9, 5),
        ((3.0, 0.1), -1, 1.5, 2),
        ((3.0, 0.1), -1, 1.5, 3),
        ((1.0, 0.1), 1, 2.0, 4),
    ],
)
def test_releases_are_copies_of_the_factors(
    noise: tuple[float, float], shift: int, eps: float, releases: int
) -> None:
    eps = eps * releases
    truth = product([noise] * releases, [shift] * releases, eps, 1e-7)
    view_pairs = view([noise], [shift], releases=releases)
    found = evaluate(view_pairs, eps, gap=1e-3)
    inside(found, truth)
    assert found.upper[0] - found.lower[0] <= 1e-3 * found.upper[0]
    tables, rng = tabulate(view_pairs, 1e-12), random.Random(releases)
    for cap in (0.1, 0.25, 0.5, 2.0):  # that of one release
        plan = replace(sound_plan(view_pairs, eps), cap=np.array([cap]))
        inside(evaluate_on_grid(view_pairs, tables, plan), truth)
        # a window that holds the largest loss of one release, but not that of all
        step = 0.5 / 256
        plan = replace(plan, step=step, size=256, origin=math.floor((eps - 0.3) / step))
        inside(evaluate_on_grid(view_pairs, tables, plan), truth)
    for _ in range(PLANS):
        inside(evaluate_on_grid(view_pairs, tables, drawn_plan(rng, eps, view_pairs)), truth)


def test_the_first_grid_is_about_as_good_as_it_should_be() -> None:
    """No bound depends on the plan, but a poor one is paid for by everybody."""
    unit = [((-1, 1), NB(12.0, 0.97)), ((2, -1, -1), NB(11.0, 0.96))]
    protocol = Protocol(Configuration.of(2, unit, eps_central=0.9)).view_pairs
    for view_pairs, eps in (
        (view([(400.0, 0.5), (300.0, 0.6)], [-1, 1]), 1.0),  # delta = 3e-48
        (view([(2.0, 0.5), (3.0, 0.4)], [1, -1]), 0.5),
        (view([(11.0, 0.97)] * 3, [-2, 1, -1]), 0.1),
        (protocol, 1.0),
    ):
        for gap in (0.1, 1e-2, 1e-3):
            wanted = Refinement(eps=eps, gap=gap)
            coarse = coarse_estimate(view_pairs, wanted)
            plan = choose_plan(coarse.moments, coarse.saddle, wanted, LARGEST_GRID)
            assert plan.size <= 8192
            found = evaluate_on_grid(view_pairs, coarse.tables, plan)
            assert found.upper.max() - found.lower.max() <= 1.5 * gap * found.upper.max()


# --- the terms of the bounds


def plan_of(view_pairs: ViewPairs, eps: float, step: float, first: int, **given: float) -> GridPlan:
    central = view_pairs.central
    return GridPlan(
        eps=eps,
        step=step,
        size=1024,
        origin=-512,
        tilt=given.get("tilt", 3.0),
        other_tilts=np.array([0.0, given.get("steep", 1e4)]),
        first=first,
        cap=np.full(view_pairs.factor_count, given.get("cap", 1.0)),
        central_cap=np.full(len(central.shifts) if central else 0, given.get("cap", 1.0)),
    )


@pytest.mark.parametrize("central", [False, True])
def test_what_lies_below_the_grid_is_bounded_from_above(central: bool) -> None:
    """A geometric noise that is shifted by -1 has one finite loss, here just below the grid."""
    p, first, offset = 0.9, -10, 0.0625
    loss = math.log(p)
    step = loss / first * (1 - 1e-9)
    none = np.zeros((0, 2), np.int64)
    view_pairs = view([(1.0, p)], [-1])
    if central:  # the case that is left, of no change of the sum
        mix = CentralMixture(0, offset, np.array([[0, -1]]))
        view_pairs = replace(view_pairs, plain=none, central=mix)
    plan = plan_of(view_pairs, 0.5, step, first)
    factors = tilt_factors(view_pairs, tabulate(view_pairs, 1e-20), plan).factors
    assert factors.log_moment[0, 0] == -math.inf
    true = math.log(p) + plan.tilt * loss  # the mass where the loss is finite is p
    assert true <= factors.log_whole[0] <= true + 1e-6


def test_no_factor_has_mass_above_its_last_grid_point() -> None:
    """Under a steep tilt a moment shows where the largest mass lies: that is the last point, for
    noises with one loss."""
    mix = np.array([[m, 1] for m in (1, 2, 3)])
    central = CentralMixture(0, 0.0237, mix)
    count = len(mix) + 1
    view_pairs = replace(
        view([(1.0, 0.9)], [2]),
        central=central,
        start=np.arange(count + 1),
        factor=np.arange(count),
    )
    plan = plan_of(view_pairs, 0.5, 0.01, -300, cap=0.22, steep=1500.0)
    plan = replace(plan, central_cap=1e-9 + central.shifts * -math.log(0.9))
    found = tilt_factors(view_pairs, tabulate(view_pairs, 1e-20), plan).factors
    at_last = found.log_moment[:, -1] - plan.other_tilts[-1] * found.last * plan.step
    assert (at_last <= 1e-6).all()
    assert (at_last >= -10).all()  # one grid point costs 15


@pytest.mark.parametrize("factors", [1, 3])
@pytest.mark.parametrize("releases", [1, 100_000])
def test_inner_products_are_within_their_budget(factors: int, releases: int) -> None:
    """Laws that are one point each: their product is one point, and the inner product one value of
    the bounding function (Lemma F5)."""
    view_pairs = view([(40.0, 0.9)] * factors, list(range(1, factors + 1)), releases=releases)
    size = 1024
    plan = replace(plan_of(view_pairs, -3.9, 8 / size, -300, tilt=0.01, steep=2.0), size=size)
    tilted = tilt_factors(view_pairs, tabulate(view_pairs, 1e-20), plan)
    terms = PairTerms.of(view_pairs, tilted.factors, plan)
    terms = replace(terms, outside=np.zeros(1))  # all of the mass is inside
    loss = multiples(plan.origin, size, plan.step)
    function = bounding_functions.upper(loss, terms.eps_up, plan.tilt)
    rng = np.random.default_rng(factors)
    for _ in range(20):
        at = rng.integers(0, size, factors)
        rows = np.zeros((factors, size))
        rows[np.arange(factors), at] = 1.0
        pair = np.zeros(1, np.int64)
        points = spectra.transform(view_pairs, replace(tilted, rows=rows), pair)
        sums, error = spectra.correlate(points, terms, pair)
        truth = function[(int(at.sum()) * releases - plan.origin) % size]
        assert abs(sums[0, 0] - truth) <= error[0, 0]
        # Cauchy's inequality is far from equality for these laws
        assert error[0, 0] <= 1e4 * factors * releases * math.log2(size) * 60 * UNIT_ROUNDOFF


@pytest.mark.parametrize("releases", [1, 4])
def test_no_loss_is_larger_than_the_largest(releases: int) -> None:
    step, m, b = 0.3, 3, -1
    unit, other = (2.0, 0.5), (0.7, 0.4)
    central = CentralMixture(0, step, np.array([[m, b], [2, 1]]))
    laws = NoiseSum.of(NB(*unit)), NoiseSum.of(NB(*other))
    start, factor = np.array([0, 1, 3]), np.array([1, 0, 2])
    view_pairs = ViewPairs(laws, np.array([[1, 3]]), start, factor, central, releases)
    with mp.workdps(50):

        def largest(law: tuple[float, float], shift: int) -> mp.mpf:
            logs = log_masses(law[0], mp.mpf(law[1]), 400)
            return max(logs[k] - logs[k + shift] for k in range(300))

        mixed = max((2 - 2 * i) * step + largest(unit, 1 + i) for i in range(3))
        truth = releases * (largest(other, 3) + mixed)
        found = view_pairs.largest_loss
        assert math.isinf(found[0])  # the shift by b = -1 gives some inputs away
        assert truth <= found[1] <= truth * (1 + 1e-2)
