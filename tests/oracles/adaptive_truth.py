"""delta of several releases by enumeration: all outcomes, and the worst change after each.

Raw message counts, no change of basis, no grid: the laws of the counts are arrays, and the backward
induction over the releases follows its definition, with sorted likelihood ratios and prefix sums.
Arithmetic is in doubles; ``Small.slack`` bounds their errors and the tails.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from itertools import permutations

import numpy as np
from scipy import stats

from accounting.base.arrays import FloatArray
from accounting.model.configuration import Proposal

Noise = tuple[float, float]
_TAIL = 1e-13
_ROUNDING = 1e-12


@dataclass(frozen=True)
class Laws:
    """Both laws of one change, over the outcomes possible under the first, sorted by Q / P, with
    prefix sums."""

    p: FloatArray
    q: FloatArray
    sum_p: FloatArray
    sum_q: FloatArray

    @staticmethod
    def of(p: FloatArray, q: FloatArray) -> Laws:
        p, q = p.ravel(), q.ravel()
        p, q = p[p > 0], q[p > 0]
        order = np.argsort(q / p)
        p, q = p[order], q[order]
        return Laws(p, q, np.append(0.0, np.cumsum(p)), np.append(0.0, np.cumsum(q)))

    def profile(self, u: FloatArray) -> FloatArray:
        """Sum of (P - u Q)_+."""
        with np.errstate(divide="ignore"):
            count = np.searchsorted(self.q / self.p, 1 / u)
        found: FloatArray = self.sum_p[count] - u * self.sum_q[count]
        return found


@dataclass(frozen=True)
class Small:
    """A small configuration with the laws of its changes (j, k); ``lost`` is the truncated mass."""

    data: dict[str, object]
    changes: dict[tuple[int, int], Laws]
    lost: float

    def proposal(self) -> Proposal:
        return Proposal.of(self.data)

    def delta(self, eps: float, releases: int) -> float:
        """delta of the worst adaptive sequence."""
        return float(self._worst(np.array([math.exp(eps)]), releases)[0])

    def _worst(self, u: FloatArray, releases: int) -> FloatArray:
        if releases == 1:
            return np.max([c.profile(u) for c in self.changes.values()], axis=0)
        found = []
        for c in self.changes.values():
            left = np.multiply.outer(u, c.q / c.p)
            later = self._worst(np.maximum(left.ravel(), 1e-300), releases - 1)
            found.append(later.reshape(left.shape) @ c.p)
        return np.max(found, axis=0)

    def fixed(self, eps: float, sequence: list[tuple[int, int]]) -> float:
        """delta of one fixed sequence of changes."""
        u = np.array([math.exp(eps)])
        weight = np.ones(1)
        for pair in sequence[:-1]:
            c = self.changes[pair]
            u = np.multiply.outer(u, c.q / c.p).ravel()
            weight = np.multiply.outer(weight, c.p).ravel()
        return float(weight @ self.changes[sequence[-1]].profile(np.maximum(u, 1e-300)))

    def slack(self, eps: float, releases: int) -> float:
        """How far these numbers may be from the truth."""
        return releases * (1 + math.exp(eps)) * self.lost + _ROUNDING


def _masses(r: float, p: float) -> FloatArray:
    count = int(stats.nbinom.isf(_TAIL, r, 1 - p)) + 2
    return np.asarray(stats.nbinom.pmf(np.arange(count), r, 1 - p))


def small(unit: Noise, double: Noise | None, eps_central: float) -> Small:
    """max_value 1 with the atom {-1, 1}, or 2 with {-1, 1} and {-1, -1, 2}."""
    top = 1 if double is None else 2
    g = _masses(*unit)
    f = _masses(1.0, math.exp(-eps_central / top))
    law = np.zeros((len(g) + len(f) - 1,) * 2)  # counts of +1 and -1
    central = np.multiply.outer(f, f)
    for n, mass in enumerate(g):
        law[n : n + len(f), n : n + len(f)] += mass * central
    atoms = [{"atom": [-1, 1], "r": unit[0], "p": unit[1]}]
    twos = np.ones(1)
    if double is not None:
        twos = _masses(*double)
        atoms.append({"atom": [-1, -1, 2], "r": double[0], "p": double[1]})
    room = 2 * len(twos)
    whole = np.zeros((len(twos) + 1, law.shape[0] + 1, law.shape[1] + room))
    for n, mass in enumerate(twos):
        whole[n, : law.shape[0], 2 * n : 2 * n + law.shape[1]] = mass * law
    place = [(0, 0, 0), (0, 1, 0), (1, 0, 0)][: top + 1]  # messages of an input: 2, +1 and -1
    views = [np.roll(whole, at, axis=(0, 1, 2)) for at in place]
    changes = {(j, k): Laws.of(views[j], views[k]) for j, k in permutations(range(top + 1), 2)}
    data = {"max_value": top, "eps_central": eps_central, "atoms": atoms}
    return Small(data, changes, 4 * _TAIL)


def random_small(rng: random.Random, *, double: bool, quiet: bool) -> Small:
    """With ``quiet`` the noise is small enough to enumerate three releases."""

    def noise() -> Noise:
        r = rng.uniform(0.3, 1) if rng.random() < 0.3 else rng.uniform(1, 5)
        return round(r, 3), round(rng.uniform(0.1, 0.45) if quiet else rng.uniform(0.5, 0.8), 3)

    return small(noise(), noise() if double else None, round(rng.uniform(0.8, 2.5), 3))
