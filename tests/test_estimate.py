"""Fast estimates agree with the rigorous bounds; gradients agree with finite differences."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import accounting
from accounting import Configuration, NegativeBinomial, NoiseSum, Protocol
from accounting.estimate import Estimator
from accounting.workload import Workload

NB = NegativeBinomial


def workload(releases: int = 1) -> Workload:
    family = accounting.greedy(4, [3])
    atoms = [
        (elements, NB.from_mean(mean=900.0 if elements == (-1, 1) else 300.0, r=9.0 + i))
        for i, elements in enumerate(family.atoms)
    ]
    return Protocol(Configuration.of(4, atoms, eps_central=0.8), releases=releases).workload


def perturbed(
    noises: tuple[NoiseSum, ...], index: int, mean: float, r: float
) -> tuple[NoiseSum, ...]:
    part = noises[index].parts[0]
    new = NB.from_mean(mean=part.mean * np.exp(mean), r=part.r * np.exp(r))
    changed = replace(noises[index], parts=(new, *noises[index].parts[1:]))
    return (*noises[:index], changed, *noises[index + 1 :])


def test_estimates_are_close_to_the_bounds() -> None:
    w = workload()
    estimate = Estimator(w, eps=1.0).delta()
    from accounting.evaluate import evaluate

    bounds = evaluate(w, 1.0)
    worst = bounds.worst
    assert bounds.lower[worst] * 0.99 <= estimate[worst] <= bounds.upper[worst] * 1.05
    assert estimate.max() == estimate[worst]


@pytest.mark.parametrize("releases", [1, 3])
def test_gradient_matches_finite_differences(releases: int) -> None:
    w = workload(releases)
    estimator = Estimator(w, eps=1.0 if releases == 1 else 2.2)
    delta = estimator.delta()
    pairs = np.argsort(-delta)[:4]
    found, gradient = estimator.gradient(pairs)
    assert np.allclose(found, delta[pairs], rtol=1e-12)
    step = 1e-5
    seen = 0
    for index in range(len(w.noises)):
        for parameter in range(2):
            move = [0.0, 0.0]
            move[parameter] = step
            up = estimator.delta(perturbed(w.noises, index, *move), pairs)
            down = estimator.delta(perturbed(w.noises, index, -move[0], -move[1]), pairs)
            slope = (np.log(up) - np.log(down)) / (2 * step)
            scale = np.abs(gradient[:, :, parameter]).max()
            assert np.abs(slope - gradient[:, index, parameter]).max() <= 1e-4 * scale
            seen += int(np.abs(slope).max() > 0.1)
    assert seen >= 4
