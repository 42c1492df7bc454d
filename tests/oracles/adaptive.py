"""delta of several releases by the definition: the worst change after every outcome.

A change is a product of independent noises, each of them shifted; its outcomes are enumerated, with
their probabilities and losses, and the induction of releases.md is written out.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from accounting.base.arrays import FloatArray

Noise = tuple[float, float]
"""r and p of a negative binomial."""
Shifts = dict[int, int]
"""The noises that a change shifts, and by how much."""


@dataclass(frozen=True)
class Outcomes:
    """Probabilities and losses, without the mass ``lost`` of outcomes that are left out."""

    mass: FloatArray
    loss: FloatArray
    lost: float


def masses(noise: Noise, count: int) -> FloatArray:
    r, p = noise
    k = np.arange(1, count)
    return (1 - p) ** r * np.cumprod(np.append(1.0, p * (k - 1 + r) / k))


def outcomes(noises: Sequence[Noise], shifts: Shifts, tail: float = 1e-9) -> Outcomes:
    """Of one change: at most ``tail`` of every noise is left out."""
    mass, loss, lost = np.ones(1), np.zeros(1), 0.0
    for index, shift in shifts.items():
        every = masses(noises[index], 4000)
        left = 1 - np.cumsum(every)
        count = int(np.searchsorted(-left, -tail)) + 1
        z = np.arange(count)
        with np.errstate(divide="ignore"):
            there = np.where(z + shift >= 0, every[z + shift], 0.0)
            own = np.log(every[:count]) - np.log(there)
        mass, loss = np.outer(mass, every[:count]).ravel(), np.add.outer(loss, own).ravel()
        lost += float(left[count - 1]) + 1e-15
    return Outcomes(mass, loss, lost)


def delta(
    mechanisms: Sequence[Sequence[Outcomes]], times: Sequence[int], eps: float
) -> tuple[float, float]:
    """Bounds on delta(eps) of ``times[i]`` releases of mechanism i, in any order, with any of its
    changes in each."""
    found = float(_worst(mechanisms, tuple(times), np.array([eps]))[0])
    lost = sum(
        count * max(change.lost for change in changes)
        for changes, count in zip(mechanisms, times, strict=True)
    )
    return found * (1 - 1e-12) - math.exp(eps) * lost, found * (1 + 1e-12) + lost


def _worst(
    mechanisms: Sequence[Sequence[Outcomes]], left: tuple[int, ...], eps: FloatArray
) -> FloatArray:
    if not any(left):
        return np.asarray(np.maximum(-np.expm1(np.minimum(eps, 0.0)), 0.0))
    worst = np.zeros(len(eps))
    for i, change in itertools.chain.from_iterable(
        ((i, change) for change in changes) for i, changes in enumerate(mechanisms) if left[i]
    ):
        after = tuple(count - (k == i) for k, count in enumerate(left))
        later = _worst(mechanisms, after, np.subtract.outer(eps, change.loss).ravel())
        worst = np.maximum(worst, later.reshape(len(eps), -1) @ change.mass)
    return worst
