"""Estimates and gradients where delta is far below the precision of doubles.

The truth for max_value 1 is a sum over all outcomes (exact_view.md, Theorem 2), whose masses come
from recurrences with positive terms: rounding changes them by less than 1e-10 of their size.
"""

from __future__ import annotations

import math
import warnings
from functools import cache

import numpy as np
import pytest

import accounting
from accounting import Burst, Configuration, Family, NegativeBinomial, Protocol, TooLarge
from accounting.base.arrays import FloatArray
from accounting.estimator.estimate import Estimator
from accounting.evaluator.evaluate import evaluate
from accounting.evaluator.view_pairs import ViewPairs
from accounting.model.family import UNIT
from accounting.model.laws.noise import Law

EPS, CENTRAL = 1.0, 0.9


def law(mean: float, r: float, m: int) -> Law:
    """Bursts for m > 0, otherwise a negative binomial."""
    if m:
        return Burst.from_mean(mean=mean, r=r, m=m)
    return NegativeBinomial.from_mean(mean=mean, r=r)


@cache
def noise_masses(mean: float, r: float, m: int, count: int) -> FloatArray:
    """The masses of M plus the noise of {-1, +1}."""
    noise = law(mean, r, m)
    if isinstance(noise, Burst):  # Panjer's recurrence
        size = np.arange(1, count) * negative_binomial(noise.m, noise.p, count - 1)
        masses = np.zeros(count)
        masses[0] = math.exp(-noise.rate)
        for n in range(1, count):
            masses[n] = noise.rate / n * (size[:n] @ masses[n - 1 :: -1])
    else:
        masses = negative_binomial(noise.r, noise.p, count)
    q = math.exp(-2 * CENTRAL)
    total = 0.0
    for n in range(count):
        total = (1 - q) * masses[n] + q * total
        masses[n] = total
    return masses


def negative_binomial(r: float, p: float, count: int) -> FloatArray:
    k = np.arange(1, count)
    logs = np.concatenate([[r * math.log1p(-p)], np.log(p * (k + r - 1) / k)])
    return np.asarray(np.exp(np.cumsum(logs)))


def true_delta(mean: float, r: float, m: int) -> float:
    """The larger one of the two divergences of inputs 0 and 1."""
    count = int(8 * mean)
    f = noise_masses(mean, r, m, count)
    q, found = math.exp(-CENTRAL), []
    for b in (-1, 0):
        total = 0.0
        for i in range(2):
            shift, offset = b + i, (1 - 2 * i) * CENTRAL
            other = np.concatenate([np.zeros(-shift), f])[:count] if shift < 0 else f[shift:]
            difference = f[: len(other)] - math.exp(EPS - offset) * other
            total += q**i / (1 + q) * float(np.maximum(difference, 0.0).sum())
        found.append(total)
    return max(found)


def single(m: int, delta: float, factor: float) -> tuple[Estimator, FloatArray]:
    """An estimator for max_value 1, and noise for a divergence near delta."""
    logarithm = math.log(1 / delta)
    mean, r = factor * {0: 39, 1: 33, 8: 29}[m] * logarithm, (1.45 if m else 1.1) * logarithm
    config = Configuration.of(1, [(UNIT, law(mean, r, m))], eps_central=CENTRAL)
    sizes = np.array([m]) if m else None
    made = Estimator(Protocol(config).view_pairs, eps=EPS, delta=delta, m=sizes)
    return made, np.log([[mean], [r]])


@pytest.mark.parametrize("m", [0, 1, 8])
@pytest.mark.parametrize("delta", [2e-14, 1e-17, 1e-20, 1e-25, 1e-30, 1e-32])
def test_estimates_are_those_of_the_sum_over_all_outcomes(delta: float, m: int) -> None:
    """Was: wrong by any factor below 1e-17, or 1e-290."""
    for factor in (0.9, 1.0, 1.1):
        estimator, x = single(m, delta, factor)
        mean, r = np.exp(x[:, 0]).tolist()
        truth = true_delta(mean, r, m)
        assert 1e-3 * delta < truth < 1e5 * delta
        estimate = float(estimator.log_delta(x).max())
        assert abs(estimate - math.log(truth)) < 0.01


@pytest.mark.parametrize("m", [0, 8])
@pytest.mark.parametrize("delta", [1e-20, 1e-30])
def test_gradients_are_those_of_the_sum_over_all_outcomes(delta: float, m: int) -> None:
    """The estimates have ripples of a thousandth, as outcomes pass the points of the grid: they
    show in a single gradient, and cancel in the mean along a short way."""
    estimator, x = single(m, delta, 1.0)
    worst = np.array([int(np.argmax(estimator.log_delta(x)))])
    largest = np.abs(estimator.gradient(x, worst)[1]).max()
    way = np.linspace(-0.02, 0.02, 17)
    for parameter in range(2):
        moved = [x + distance * np.eye(2)[:, [parameter]] for distance in way]
        ends = [math.log(true_delta(*np.exp(moved[i][:, 0]).tolist(), m)) for i in (0, -1)]
        slope = (ends[1] - ends[0]) / (way[-1] - way[0])
        found = np.array([estimator.gradient(one, worst)[1][0, parameter, 0] for one in moved])
        assert abs(slope) > 1
        assert abs(np.trapezoid(found, way) / (way[-1] - way[0]) - slope) < 0.01 * largest
        assert np.abs(found - slope).max() < 0.08 * largest


def several(
    family: Family, delta: float, scale: float, *, releases: int = 1, m: int = 0
) -> FloatArray:
    """Noise that grows with the shifts, as parameters for an estimator."""
    logarithm = math.log(1 / delta) / releases**0.5
    means, rs = [], []
    for i, elements in enumerate(family.atoms):
        shift = family.max_value if elements == UNIT else 1.5 + 0.1 * i
        means.append(5 * releases * scale * logarithm * shift)
        rs.append((1.3 if m else 1.0) * math.log(1 / delta) * (1 + 0.05 * i))
    return np.log([means, rs])


def view_pairs(family: Family, x: FloatArray, *, releases: int = 1, m: int = 0) -> ViewPairs:
    """The pairs of views with this noise."""
    laws = [law(mean, r, m) for mean, r in np.exp(x).T.tolist()]
    atoms = zip(family.atoms, laws, strict=True)
    config = Configuration.of(family.max_value, atoms, eps_central=0.8 / releases)
    return Protocol(config, releases=releases, same_change=releases > 1).view_pairs


@pytest.mark.parametrize(
    ("family", "delta", "scale", "releases", "m"),
    [
        (accounting.ones(2), 1e-20, 3.9, 1, 0),
        (accounting.greedy(5, [3]), 1e-30, 2.6, 1, 0),
        (accounting.greedy(5, [3]), 1e-25, 1.9, 1, 8),
        (accounting.greedy(4, [3]), 1e-20, 1.9, 3, 0),
        (accounting.greedy(10, [5]), 1e-30, 4.4, 1, 0),
    ],
)
def test_estimates_agree_with_the_bounds(
    family: Family, delta: float, scale: float, releases: int, m: int
) -> None:
    x = several(family, delta, scale, releases=releases, m=m)
    pairs = view_pairs(family, x, releases=releases, m=m)
    sizes = np.full(x.shape[1], m) if m else None
    estimate = Estimator(pairs, eps=1.0, delta=delta, m=sizes).log_delta(x)
    worst = np.argsort(-estimate)[:6]
    bounds = evaluate(pairs.subset(worst), 1.0, gap=0.005)
    assert 1e-4 * delta < bounds.lower.max() < 1e4 * delta
    assert bounds.upper.max() < 1.01 * bounds.lower.max()
    assert estimate.max() <= math.log(bounds.upper.max()) + 0.03
    tight = bounds.lower > 0.98 * bounds.upper
    assert (estimate[worst][tight] >= np.log(bounds.lower[tight]) - 0.03).all()
    assert (estimate[worst][tight] <= np.log(bounds.upper[tight]) + 0.03).all()


@pytest.mark.parametrize("releases", [1, 3])
def test_gradients_agree_with_differences_of_the_bounds(releases: int) -> None:
    delta, family = 1e-24, accounting.greedy(4, [3])
    x = several(family, delta, 3.1 if releases == 1 else 2.0, releases=releases)
    pairs = view_pairs(family, x, releases=releases)
    estimator = Estimator(pairs, eps=1.0, delta=delta)
    worst = np.array([int(np.argmax(estimator.log_delta(x)))])
    _, gradient = estimator.gradient(x, worst)
    largest = np.abs(gradient).max()
    assert largest > 10

    def log_bound(moved: FloatArray) -> float:
        pair = view_pairs(family, moved, releases=releases).subset(worst)
        found = evaluate(pair, 1.0, gap=1e-4)
        assert found.upper[0] <= (1 + 1e-3) * found.lower[0]
        return (math.log(found.lower[0]) + math.log(found.upper[0])) / 2

    step = 0.02
    for atom in np.argsort(-np.abs(gradient[0]).max(axis=0))[:2].tolist():
        for parameter in range(2):
            high, low = x.copy(), x.copy()
            high[parameter, atom] += step
            low[parameter, atom] -= step
            slope = (log_bound(high) - log_bound(low)) / (2 * step)
            assert abs(gradient[0, parameter, atom] - slope) < 0.03 * largest


def test_pairs_that_are_far_apart_have_grids_of_their_own() -> None:
    """One tilt for all would lose the pairs that are far below the worst one."""
    delta, family = 1e-30, accounting.greedy(5, [3])
    x = several(family, delta, 2.6)
    x[0, -1] -= 1.4  # the noise of one atom is too small by far
    pairs = view_pairs(family, x)
    estimate = Estimator(pairs, eps=1.0, delta=delta).log_delta(x)
    assert estimate.max() > math.log(1e15 * delta)
    seen = 0
    for pair in np.flatnonzero(estimate > math.log(1e-4 * delta)).tolist():
        bounds = evaluate(pairs.subset(np.array([pair])), 1.0, gap=0.01)
        if bounds.lower[0] > 0.9 * bounds.upper[0]:
            seen += estimate[pair] < estimate.max() - 25
            assert math.log(bounds.lower[0]) - 0.1 < estimate[pair]
            assert estimate[pair] < math.log(bounds.upper[0]) + 0.1
    assert seen


def test_noise_beyond_all_doubles_is_refused_without_a_warning() -> None:
    """Was: two warnings of numpy on the terminal."""
    for delta in (1e-6, 1e-20):
        estimator, x = single(0, delta, 1.0)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with pytest.raises(TooLarge, match="a larger delta"):
                estimator.log_delta(x + 800.0)
