"""delta of releases of several small mechanisms, by enumeration: the worst order, and the worst
change after every outcome.

The laws of the message counts are those of the reference; its induction over releases is written
here once more, for mechanisms that differ.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from accounting import Mechanism
from accounting.base.arrays import FloatArray
from accounting.base.enclosure import Enclosure
from accounting.model.change import SUBSTITUTION, Adjacency, directions
from accounting.reference.definition import Outcomes, View
from accounting.reference.noise_masses import noise_masses

_TAIL = 1e-11
_ROUNDING = 1e-12
"""Covers the errors of doubles, a few thousand of which are added."""
_MOST = 1 << 20

Coordinates = list[Outcomes]
"""The outcomes of every coordinate that a change touches."""


@dataclass(frozen=True)
class _Law:
    """The changes of one mechanism, for each direction, and the mass that is left out."""

    directions: list[list[Coordinates]]
    lost: float

    @staticmethod
    def of(mechanism: Mechanism, adjacency: Adjacency) -> _Law:
        noises = noise_masses(mechanism, _TAIL, 53)
        masses = [(noise.atom, np.array([float(f.a) for f in noise.masses])) for noise in noises]
        view = View(mechanism.max_value, masses, most=_MOST)
        changes = mechanism.changes(adjacency)
        outcomes = cache(lambda before, after: Outcomes(view.pair(before, after)))
        listed = [
            [[outcomes(*both) for both in changes[i].coordinates] for i in group]
            for group in directions(changes, adjacency)
        ]
        lost = mechanism.coordinates(adjacency) * sum(float(noise.lost.b) for noise in noises)
        return _Law(listed, lost)


def delta(
    parts: Sequence[tuple[Mechanism, int]], eps: float, adjacency: Adjacency = SUBSTITUTION
) -> Enclosure:
    """Of so many releases of each mechanism."""
    laws = [_Law.of(mechanism, adjacency) for mechanism, _ in parts]
    times = tuple(count for _, count in parts)
    x = np.array([math.exp(eps)])
    found = max(
        float(_worst(list(changes), times, x)[0])
        for changes in zip(*(law.directions for law in laws), strict=True)
    )
    lost = sum(count * law.lost for count, law in zip(times, laws, strict=True)) + _ROUNDING
    return Enclosure(max(0.0, found - float(x[0]) * lost), min(1.0, found + lost))


def _worst(
    mechanisms: Sequence[list[Coordinates]], left: tuple[int, ...], x: FloatArray
) -> FloatArray:
    """At every x = e^eps, for the releases that are left of each mechanism."""
    found = []
    for i, changes in enumerate(mechanisms):
        if left[i]:
            after = tuple(count - (k == i) for k, count in enumerate(left))
            found += [_of_change(change, mechanisms, after, x) for change in changes]
    return np.asarray(np.max(found, axis=0))


def _of_change(
    now: Coordinates, mechanisms: Sequence[list[Coordinates]], left: tuple[int, ...], x: FloatArray
) -> FloatArray:
    first, others = now[0], now[1:]
    if not others and not any(left):
        return np.asarray(first.divergence(x))
    onward = np.clip(np.multiply.outer(x, first.ratio), 1e-300, 1e300)
    if others:
        later = _of_change(others, mechanisms, left, onward.ravel())
    else:
        later = _worst(mechanisms, left, onward.ravel())
    return np.asarray(later.reshape(onward.shape) @ first.p)
