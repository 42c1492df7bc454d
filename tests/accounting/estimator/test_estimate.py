"""Estimates agree with the rigorous bounds where a search looks; gradients with differences."""

from __future__ import annotations

import math

import numpy as np
import pytest

import accounting
from accounting import Configuration, Family, NegativeBinomial, Protocol, TooLarge
from accounting.base.arrays import FloatArray
from accounting.estimator.estimate import Estimator
from accounting.evaluator.evaluate import evaluate
from accounting.evaluator.view_pairs import ViewPairs
from accounting.model.family import UNIT

NB = NegativeBinomial


def view_pairs(
    family: Family, scale: float, *, eps: float, share: float, releases: int = 1
) -> tuple[ViewPairs, FloatArray]:
    """Noise that grows with the shifts, and its parameters for an estimator."""
    slack = eps * (1 - share)
    atoms = []
    for i, elements in enumerate(family.atoms):
        mean = scale * (family.max_value if elements == UNIT else 1.5 + 0.1 * i) / slack
        atoms.append((elements, NB.from_mean(mean=mean, r=12.0 + i % 5)))
    config = Configuration.of(family.max_value, atoms, eps_central=share * eps / releases)
    made = Protocol(config, releases=releases).view_pairs
    parts = [noise.parts[0] for noise in made.noises]
    return made, np.log([[part.mean for part in parts], [part.r for part in parts]])


@pytest.mark.parametrize(
    ("family", "eps", "share", "delta", "scale"),
    [
        (accounting.ones(1), 1.0, 0.9, 1e-6, 30.0),
        (accounting.ones(2), 1.0, 0.9, 1e-6, 32.0),
        (accounting.greedy(5, [3]), 1.0, 0.9, 1e-6, 36.0),
        (accounting.greedy(5, [3]), 0.05, 0.5, 1e-6, 36.0),
        (accounting.greedy(5, [3]), 8.0, 0.9, 1e-6, 48.0),
        (accounting.greedy(20, [9, 3]), 1.0, 0.9, 1e-6, 46.0),
        (accounting.hubs(20), 1.0, 0.1, 1e-6, 40.0),
        (accounting.hubs(12), 1.0, 0.5, 1e-10, 70.0),
        (accounting.ones(3), 1.0, 0.98, 1e-4, 26.0),
        (accounting.ones(3), 2.0, 0.9, 1e-14, 80.0),
    ],
)
def test_the_worst_pair(
    family: Family, eps: float, share: float, delta: float, scale: float
) -> None:
    """Within 3% as long as delta is within a few powers of ten of the value of interest."""
    seen = 0
    for factor in np.geomspace(0.4, 2.0, 9):
        w, x = view_pairs(family, factor * scale, eps=eps, share=share)
        bounds = evaluate(w, eps, gap=0.01)
        estimate = Estimator(w, eps=eps, delta=delta).log_delta(x)
        worst = int(np.argmax(bounds.lower))
        if 1e-2 * delta < bounds.lower[worst] < 1e3 * delta:
            seen += 1
            low, high = math.log(bounds.lower[worst]), math.log(bounds.upper[worst])
            assert low - 0.03 <= estimate.max() <= high + 0.03
            assert estimate[worst] >= low - 0.03
    assert seen


def test_a_subset_of_pairs_gives_the_same_numbers() -> None:
    w, x = view_pairs(accounting.greedy(7, [4]), 28.0, eps=1.0, share=0.8)
    estimator = Estimator(w, eps=1.0, delta=1e-6)
    some = np.argsort(-estimator.log_delta(x))[[5, 0, 3, 1]]
    # a subset has grids of its own
    assert np.abs(estimator.log_delta(x)[some] - estimator.log_delta(x, some)).max() < 0.02


@pytest.mark.parametrize("releases", [1, 3])
def test_gradient_matches_finite_differences(releases: int) -> None:
    eps = 1.0
    w, x = view_pairs(accounting.greedy(4, [3]), 33.0, eps=eps, share=0.8, releases=releases)
    estimator = Estimator(w, eps=eps, delta=1e-6)
    found = estimator.log_delta(x)
    pairs = np.argsort(-found)[:3]
    same, gradient = estimator.gradient(x, pairs)
    assert np.array_equal(same, estimator.log_delta(x, pairs))
    step, seen = 1e-5, 0
    for index in range(len(w.noises)):
        for parameter in range(2):
            moved = x.copy()
            moved[parameter, index] += step
            up = estimator.log_delta(moved, pairs)
            moved[parameter, index] -= 2 * step
            slope = (up - estimator.log_delta(moved, pairs)) / (2 * step)
            scale = np.abs(gradient[:, parameter]).max()
            assert np.abs(slope - gradient[:, parameter, index]).max() <= 0.02 * scale
            seen += int(np.abs(slope).max() > 0.1)
    assert seen >= 4


def test_absurd_noise_is_refused() -> None:
    w, x = view_pairs(accounting.ones(2), 30.0, eps=1.0, share=0.9)
    with pytest.raises(TooLarge, match="copies of an atom"):
        Estimator(w, eps=1.0, delta=1e-6).log_delta(x + 15.0)
