"""delta of the mechanism that the fast evaluators analyse when only a fraction of the users adds
noise: the smaller of the two central noises is coupled by quantiles and revealed (dropouts.md,
Theorem 1).  By enumeration, for max_value 1 and 2 with ones."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from adaptive import masses

from accounting import ExactNoise, Mechanism
from accounting.base.arrays import FloatArray
from accounting.model.change import SUBSTITUTION, Adjacency, Change, directions

_TAIL = 1e-13
UNIT, TWO = (-1, 1), (-1, -1, 2)
COLUMNS = {0: (0, 0), 1: (0, 0), 2: (-2, 1)}
"""Of every input: the entries of UNIT and TWO."""


@dataclass(frozen=True)
class Law:
    """Probabilities and losses of all outcomes, by increasing loss; some losses are infinite."""

    mass: FloatArray
    loss: FloatArray

    @staticmethod
    def of(mass: FloatArray, loss: FloatArray) -> Law:
        order = np.argsort(loss, kind="stable")
        return Law(mass[order], loss[order])

    def together(self, other: Law) -> Law:
        mass = np.outer(self.mass, other.mass).ravel()
        return Law.of(mass, np.add.outer(self.loss, other.loss).ravel())

    def profile(self, eps: FloatArray) -> FloatArray:
        above, weighed = (
            np.append(np.cumsum(of[::-1])[::-1], 0.0)
            for of in (self.mass, self.mass * np.exp(-self.loss))
        )
        at = np.searchsorted(self.loss, eps, side="right")
        found: FloatArray = above[at] - np.exp(np.minimum(eps, 700.0)) * weighed[at]
        return found


def _cut(noise: tuple[float, float]) -> FloatArray:
    every = masses(noise, 3000)
    return every[: int(np.searchsorted(np.cumsum(every), 1 - _TAIL)) + 1]


def _shifted(noise: ExactNoise, shift: int) -> Law:
    law = (float(noise.shape()), float(noise.p))
    mass = _cut(law)
    every = masses(law, len(mass) + max(shift, 0))
    z = np.arange(len(mass))
    there = np.where(z + shift >= 0, every[np.maximum(z + shift, 0)], 0.0)
    with np.errstate(divide="ignore"):
        return Law.of(mass, np.log(mass) - np.log(there))


def cases(share: float, step: float, distance: int) -> list[tuple[float, float, int, float]]:
    """Mass, offset and further shift of every case, and the place in between (0, ..., distance)."""
    f = _cut((share, math.exp(-step)))
    size = len(f)
    f = masses((share, math.exp(-step)), 3 * size + distance)
    joint = [f[:size] * f[x : x + size] for x in range(2 * size + distance)]
    total = [float(row.sum()) for row in joint]
    found = []
    for place, x, other in [
        *((0, x, x + distance) for x in range(size)),
        *((distance, x + distance, x) for x in range(size)),
        *((i, i, distance - i) for i in range(1, distance)),
    ]:
        ends = [np.cumsum(joint[one]) / total[one] for one in (x, other)]
        for m, k, chance in _quantiles(*ends):
            if chance * total[x] > 1e-13:
                offset = math.log(total[x] / total[other])
                found.append((chance * total[x], offset, m - k, place))
    return found


def _quantiles(first: FloatArray, second: FloatArray) -> list[tuple[int, int, float]]:
    """Where both distribution functions assign one uniform number: the two values, the length."""
    m = k = 0
    at, found = 0.0, []
    while m < len(first) and k < len(second):
        up = min(first[m], second[k])
        found.append((m, k, float(up - at)))
        m, k, at = m + (first[m] == up), k + (second[k] == up), up
    return found


@cache
def _central(
    share: float, step: float, noise: tuple[ExactNoise, ...], distance: int, b: int
) -> Law:
    by_shift: dict[int, list[tuple[float, float]]] = {}
    for mass, offset, more, place in cases(share, step, distance):
        by_shift.setdefault(b + int(place) + more, []).append((mass, offset))
    (only,) = noise
    parts = []
    for shift, some in by_shift.items():
        chance, offset = np.array(some).T
        one = _shifted(only, shift)
        parts.append((np.outer(chance, one.mass), np.add.outer(offset, one.loss)))
    mass, loss = (np.concatenate([of[i].ravel() for of in parts]) for i in (0, 1))
    kept = mass > 1e-14
    return Law.of(mass[kept], loss[kept])


def coordinates(mechanism: Mechanism, change: Change) -> list[Law]:
    """The loss of every coordinate that a change touches."""
    share, found = float(mechanism.central.fraction), []
    step = float(mechanism.central.step or 0)
    for before, after in change.coordinates:
        unit, two = (a - b for a, b in zip(COLUMNS[before], COLUMNS[after], strict=True))
        kappa = before - after
        part = _central(share, step, mechanism.atoms[UNIT], abs(kappa), unit + min(kappa, 0))
        if two:
            (noise,) = mechanism.atoms[TWO]
            part = part.together(_shifted(noise, two))
        found.append(part)
    return found


def of_change(mechanism: Mechanism, change: Change, eps: float) -> float:
    """Of one change in one release."""
    return float(_worst([coordinates(mechanism, change)], np.array([eps]), 1)[0])


def delta(
    mechanism: Mechanism, eps: float, adjacency: Adjacency = SUBSTITUTION, releases: int = 1
) -> float:
    """Of ``releases`` releases with any change in each; of several, only for numbers."""
    changes = mechanism.changes(adjacency)
    every = [coordinates(mechanism, change) for change in changes]
    return max(
        float(_worst([every[i] for i in group], np.array([eps]), releases)[0])
        for group in directions(changes, adjacency)
    )


def _worst(every: Sequence[Sequence[Law]], eps: FloatArray, releases: int) -> FloatArray:
    if not releases:
        return np.maximum(-np.expm1(np.minimum(eps, 0.0)), 0.0)
    found = []
    for first, *others in every:
        if not others and releases == 1:
            found.append(first.profile(eps))
            continue
        onward = np.subtract.outer(eps, first.loss).ravel()
        later = others[0].profile(onward) if others else _worst(every, onward, releases - 1)
        later = np.where(np.isneginf(onward), 1.0, later)
        found.append(later.reshape(len(eps), -1) @ first.mass)
    return np.asarray(np.max(found, axis=0))
