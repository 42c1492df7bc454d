"""delta of releases of several small mechanisms, by enumeration: the worst order, and the worst
change after every outcome.

Counts of the messages +1 and -1 are arrays: inputs are 0 and 1, the only atom is {-1, 1}, and no
basis is changed.  Arithmetic is in doubles; ``slack`` bounds their errors and the tails.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from scipy import stats

from accounting import ExactCentral, ExactNoise, Mechanism
from accounting.base.arrays import FloatArray

_TAIL = 1e-14


@dataclass(frozen=True)
class Small:
    """A mechanism, and both laws of each of its two changes."""

    mechanism: Mechanism
    laws: tuple[tuple[FloatArray, FloatArray], ...]

    @staticmethod
    def of(r: float, p: float, eps_central: float) -> Small:
        unit = _masses(r, p)
        central = _masses(1.0, math.exp(-eps_central))
        both = np.multiply.outer(central, central)
        law = np.zeros((len(unit) + len(central),) * 2)
        for n, mass in enumerate(unit):
            law[n : n + len(central), n : n + len(central)] += mass * both
        with_one = np.roll(law, 1, axis=0)
        mechanism = Mechanism(
            1,
            {(-1, 1): (ExactNoise(p=Fraction(p), r=Fraction(r)),)},
            ExactCentral(step=Fraction(eps_central)),
        )
        pairs = ((law, with_one), (with_one, law))
        return Small(mechanism, tuple(_possible(p.ravel(), q.ravel()) for p, q in pairs))


def delta(parts: Sequence[tuple[Small, int]], eps: float) -> float:
    """Of so many releases of each mechanism."""
    u = np.array([math.exp(eps)])
    return float(_worst([small for small, _ in parts], tuple(t for _, t in parts), u)[0])


def slack(releases: int, eps: float) -> float:
    """How far ``delta`` may be from the truth."""
    return releases * (1 + math.exp(eps)) * 8 * _TAIL + 1e-12


def _worst(parts: Sequence[Small], left: tuple[int, ...], u: FloatArray) -> FloatArray:
    found = []
    for i, small in enumerate(parts):
        if left[i]:
            after = tuple(t - (k == i) for k, t in enumerate(left))
            found += [_after(parts, after, u, p, q) for p, q in small.laws]
    return np.asarray(np.max(found, axis=0))


def _after(
    parts: Sequence[Small], left: tuple[int, ...], u: FloatArray, p: FloatArray, q: FloatArray
) -> FloatArray:
    if not any(left):
        ratio = q / p
        order = np.argsort(ratio)
        sum_p, sum_q = (np.append(0.0, np.cumsum(law[order])) for law in (p, q))
        with np.errstate(divide="ignore"):
            count = np.searchsorted(ratio[order], 1 / u)
        return np.asarray(sum_p[count] - u * sum_q[count])
    later = np.maximum(np.multiply.outer(u, q / p), 1e-300)
    return np.asarray(_worst(parts, left, later.ravel()).reshape(later.shape) @ p)


def _masses(r: float, p: float) -> FloatArray:
    count = int(stats.nbinom.isf(_TAIL, r, 1 - p)) + 2
    return np.asarray(stats.nbinom.pmf(np.arange(count), r, 1 - p))


def _possible(p: FloatArray, q: FloatArray) -> tuple[FloatArray, FloatArray]:
    return p[p > 0], q[p > 0]
