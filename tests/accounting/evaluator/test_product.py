"""Products of shifted negative binomials against enumeration at 50 digits."""

from __future__ import annotations

import random

import mpmath as mp
import numpy as np
import pytest
from truth import product

from accounting import Enclosure, NegativeBinomial, Undecided, product_divergence


def draw(rng: random.Random) -> tuple[list[tuple[float, float]], list[int], float]:
    k = rng.choice([1, 1, 2, 2, 3, 4])
    largest = {1: 0.98, 2: 0.9, 3: 0.7, 4: 0.5}[k]
    noises = [
        (rng.choice([0.3, 1.0, 2.0, rng.uniform(0.05, 30.0)]), rng.uniform(0.02, largest))
        for _ in range(k)
    ]
    if k >= 3:
        noises = [(min(r, 4.0), p) for r, p in noises]
    shifts = [rng.choice([-3, -2, -1, 1, 1, 2, 3]) for _ in range(k)]
    eps = rng.choice([0.0, rng.uniform(0, 1), rng.uniform(0, 5)])
    return noises, shifts, eps


def enclose(
    noises: list[tuple[float, float]], shifts: list[int], eps: float, gap: float, absolute: float
) -> Enclosure:
    return product_divergence(
        [NegativeBinomial(r, p) for r, p in noises], shifts, eps=eps, gap=gap, absolute=absolute
    )


@pytest.mark.parametrize("block", range(10))
def test_truth_is_inside_for_random_products(block: int) -> None:
    rng = random.Random(1000 + block)
    for _ in range(52):
        noises, shifts, eps = draw(rng)
        truth = product(noises, shifts, eps, 1e-13)
        gap = rng.choice([0.3, 0.01, 1e-3])
        found = enclose(noises, shifts, eps, gap, 1e-9)
        assert mp.mpf(found.lower) <= truth.high, (noises, shifts, eps, gap)
        assert truth.low <= mp.mpf(found.upper), (noises, shifts, eps, gap)
        assert found.upper - found.lower <= max(gap * found.upper, 1e-9)
        if truth.low > 0:
            assert found.upper > 0


@pytest.mark.parametrize(
    ("noises", "shifts", "eps", "tail"),
    [
        ([(30.0, 0.9), (40.0, 0.8)], [1, 2], 0.4, 1e-60),
        ([(30.0, 0.9), (40.0, 0.8)], [1, 2], 0.45, 1e-90),
        ([(30.0, 0.9), (40.0, 0.8)], [1, 2], 0.465, 1e-112),
        ([(30.0, 0.8), (20.0, 0.7)], [2, 1], 0.7, 1e-115),
        ([(12.0, 0.95), (15.0, 0.96)], [2, 2], 0.17, 1e-118),
        ([(400.0, 0.5), (300.0, 0.6)], [-1, 1], 1.0, 1e-130),
        ([(450.0, 0.4), (350.0, 0.5)], [-1, -1], 1.6, 1e-130),
    ],
)
def test_divergences_far_below_double_precision(
    noises: list[tuple[float, float]], shifts: list[int], eps: float, tail: float
) -> None:
    truth = product(noises, shifts, eps, tail)
    assert truth.high < 1e-30
    found = enclose(noises, shifts, eps, 0.01, 0.0)
    assert mp.mpf(found.lower) <= truth.high
    assert truth.low <= mp.mpf(found.upper)
    assert found.relative_gap <= 0.01


def test_zero_is_reported_exactly_when_it_is_zero() -> None:
    noise = NegativeBinomial(3.0, 0.5)  # the loss of a shift by +1 stays below log 2
    assert product_divergence([noise], [1], eps=0.6932) == Enclosure(0.0, 0.0)
    found = product_divergence([noise], [1], eps=0.65, gap=0.01)
    assert 0 < found.lower <= found.upper
    assert product_divergence([noise], [0], eps=0.0) == Enclosure(0.0, 0.0)
    given_away = product_divergence([noise], [-1], eps=20.0)
    assert given_away.lower <= 0.125 <= given_away.upper  # f(0) = (1 - p)^3


def test_a_constant_loss_has_a_closed_form() -> None:
    """r = 1, shift +a: the loss is a * -log p for every outcome."""
    p, eps = 0.7, 0.1
    loss = 2 * -mp.log(mp.mpf(p))
    truth = 1 - mp.exp(mp.mpf(eps) - loss)
    found = product_divergence([NegativeBinomial(1.0, p)], [2], eps=eps, gap=1e-6)
    assert found.lower <= truth <= found.upper


def test_an_unreachable_gap_is_reported() -> None:
    p = 0.5  # eps is the supremum of the loss up to rounding: zero or not cannot be decided
    with pytest.raises(Undecided, match="out of reach"):
        product_divergence([NegativeBinomial(3.0, p)], [1], eps=float(mp.log(2)))


def test_known_five_factors() -> None:
    """Coarse and fine enclosures overlap, and the fine one has the gap that was asked for."""
    noises = [NegativeBinomial.from_mean(mean=m, r=11.0) for m in (400, 600, 800, 1000, 1200)]
    shifts = [-2, -1, 1, -1, 1]
    coarse = product_divergence(noises, shifts, eps=0.1, gap=0.05)
    fine = product_divergence(noises, shifts, eps=0.1, gap=1e-5)
    assert coarse.lower <= fine.upper
    assert fine.lower <= coarse.upper
    assert fine.relative_gap <= 1e-5


@pytest.mark.parametrize(
    ("noises", "shifts", "eps", "gap"),
    [
        # all finite losses of one factor lie far below the grid that the others need
        ([(1.0, 0.04), (44.0, 0.01)], [-1, 2], 1.0, 1e-6),
        ([(1.5, 0.01), (6.0, 1 / 3)], [-1, 8], 1.0, 1e-6),
        ([(1.0, 0.02), (33.0, 0.004)], [-1, 3], 5.0, 1e-3),
        ([(1.0, 0.4527859718974688), (4.0, 0.4045688926828478)], [-3, 2], 0.3, 1e-3),
        # moments of steep tilts underflow
        (
            [(0.5, 0.0009980590318615248), (47.53563266071518, 0.004099784089937881)],
            [-1, 6],
            1,
            1e-6,
        ),
    ],
)
def test_lopsided_products(
    noises: list[tuple[float, float]], shifts: list[int], eps: float, gap: float
) -> None:
    truth = product(noises, shifts, eps, 1e-30)
    found = enclose(noises, shifts, eps, gap, 0.0)
    assert mp.mpf(found.lower) <= truth.high
    assert truth.low <= mp.mpf(found.upper)


@pytest.mark.parametrize("eps", [0.7, 0.8])
def test_masses_near_the_end_of_the_doubles(eps: float) -> None:
    """f(0) = 2^-2060: the left tail leaves the range of doubles but still counts."""
    truth = product([(2060.0, 0.5)], [-1], eps, 1e-280)
    found = enclose([(2060.0, 0.5)], [-1], eps, 0.5, 0.0)
    assert mp.mpf(found.lower) <= truth.high
    assert truth.low <= mp.mpf(found.upper)
    assert found.relative_gap <= 0.5


def test_a_divergence_beyond_the_end_of_the_doubles_is_only_bounded() -> None:
    """Below 1e-280 lower bounds are 0, so no relative gap is reached, but an absolute one is."""
    truth = product([(2060.0, 0.5)], [-1], 1.2, 1e-292)
    assert 0 < truth.high < 1e-288
    with pytest.raises(Undecided, match="out of reach"):
        enclose([(2060.0, 0.5)], [-1], 1.2, 0.5, 0.0)
    found = enclose([(2060.0, 0.5)], [-1], 1.2, 0.5, 1e-279)
    assert found.lower == 0
    assert truth.low <= mp.mpf(found.upper) <= 1e-279


def test_bounds_hold_for_plans_that_nobody_would_choose() -> None:
    """discretisation.md, Theorem 3: whatever the step, the tilt, the window and the caps."""
    from accounting import NoiseSum
    from accounting.evaluator.evaluate import evaluate_on_grid
    from accounting.evaluator.grid_plan import GridPlan
    from accounting.evaluator.noise_tables import tabulate
    from accounting.evaluator.view_pairs import ViewPairs

    rng = random.Random(11)
    noises, shifts, eps = [(2.0, 0.5), (3.0, 0.4)], [1, -1], 0.5
    truth = product(noises, shifts, eps, 1e-30)
    view_pairs = ViewPairs(
        tuple(NoiseSum.of(NegativeBinomial(r, p)) for r, p in noises),
        np.array([[0, 1], [1, -1]]),
        np.array([0, 2]),
        np.arange(2),
    )
    tables = tabulate(view_pairs, 1e-20)
    for _ in range(400):
        step = 10 ** rng.uniform(-3, -1.3)
        plan = GridPlan(
            eps=eps,
            step=step,
            size=rng.choice([256, 512, 2048]),
            origin=rng.randint(-2000, 500),
            tilt=10 ** rng.uniform(-1, 3.5),
            other_tilts=np.sort(10 ** np.array([rng.uniform(-2, 4) for _ in range(4)])),
            first=-rng.randint(1, 3000),
            cap=np.array([rng.uniform(-1, 4), rng.uniform(-1, 4)]),
            central_cap=np.zeros(0),
        )
        found = evaluate_on_grid(view_pairs, tables, plan)
        assert mp.mpf(float(found.lower[0])) <= truth.high, plan
        assert truth.low <= mp.mpf(float(found.upper[0])), plan
