"""Stage 1: the paper's dominance program, for any family and any max_value.

    minimize   sum of |s| t'_s
    subject to sum of |c_j - c_k|_s / t'_s <= 1   for every pair of inputs j, k.

In x = -log t' and up to scale, the program is: minimize log(sum of |s| e^{-x_s}) + log(largest left
side), which is smooth and convex when the maximum is replaced by a soft maximum.  L-BFGS minimizes
it for sharper and sharper soft maxima.  A numba kernel passes over all pairs without storing them,
so that memory is linear in max_value and no constraints need to be generated.

The weights v of the soft maximum are multipliers.  For any v >= 0 and g = A^T v, minimizing the
Lagrangian over 1 / t' and over the scale of v gives

    (sum of sqrt(|s| g_s))^2 / sum of v  <=  the optimum,

so every pass also bounds how far the best vector is from the optimum.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy import optimize

from accounting.base.arrays import FloatArray, IntArray
from accounting.base.errors import Undecided
from accounting.base.progress import Progress, silent
from accounting.base.threads import cores, in_chunks
from accounting.model.family import Family

_FIRST_SHARPNESS, _LARGEST_SHARPNESS = 30.0, 1e6
"""Sharpness of the soft maximum, relative to the largest left side."""
_SHARPNESS_RATIO = 3.0
"""Ratio of the sharpness of two successive minimizations; rule of thumb."""
_ITERATIONS = 150
"""L-BFGS iterations of one minimization."""


@dataclass(frozen=True)
class Dominance:
    """``t_prime`` dominates every difference and costs ``value``; nothing costs less than
    ``lower``.  Both are floating-point numbers that no certificate relies on."""

    t_prime: FloatArray
    value: float
    lower: float

    @property
    def gap(self) -> float:
        return self.value / self.lower - 1 if self.lower else 0.0


def dominance(family: Family, *, gap: float = 1e-3, progress: Progress = silent) -> Dominance:
    """The cheapest dominance vector, to a relative duality gap of ``gap``.

    Raises:
        Undecided: If the gap is out of reach.
    """
    program = _DominanceProgram(family)
    if family.max_value == 1:
        return Dominance(np.zeros(len(family.atoms)), 0.0, 0.0)
    sharpness = _FIRST_SHARPNESS
    while sharpness < _LARGEST_SHARPNESS:
        program.minimize(sharpness)
        best = program.best
        progress(f"dominance program: gap {best.gap:.1e}")
        if best.gap <= gap:
            return best
        sharpness *= _SHARPNESS_RATIO
    raise Undecided(
        f"the dominance program stopped at a duality gap of {best.gap:.1e}; {gap:g} was asked for"
    )


@dataclass(frozen=True)
class _Pass:
    """Sum of the weights, largest left side, and the gradient of that sum over sharpness."""

    total: float
    largest: float
    gradient: FloatArray


class _DominanceProgram:
    def __init__(self, family: Family) -> None:
        columns = family.sparse_columns
        ends = np.cumsum([len(column) for column in columns])
        self.start = np.concatenate([[0], ends]).astype(np.int64)
        entries = [item for column in columns for item in sorted(column.items())]
        flat = np.array(entries, np.int64).reshape(-1, 2)
        self.atom: IntArray = np.ascontiguousarray(flat[:, 0])
        self.entry: FloatArray = flat[:, 1].astype(np.float64)
        self.size = np.array([len(elements) for elements in family.atoms], float)
        largest = np.ones(len(self.size))
        np.maximum.at(largest, self.atom, np.abs(self.entry))
        self.reference = 1.0
        self.x: FloatArray = -np.log(largest)
        self.best = Dominance(np.zeros(0), math.inf, 1e-300)

    def minimize(self, sharpness: float) -> None:
        """Minimize the program with this soft maximum, from the latest ``x``."""
        self.reference = self._over_all_pairs(np.exp(self.x), 0.0).largest
        found = optimize.minimize(
            self._value_and_gradient,
            self.x,
            args=(sharpness,),
            jac=True,
            method="L-BFGS-B",
            options={"maxiter": _ITERATIONS, "maxcor": 20},
        )
        self.x = found.x

    def _value_and_gradient(self, x: FloatArray, sharpness: float) -> tuple[float, FloatArray]:
        u = np.exp(x)
        found = self._over_all_pairs(u, sharpness / self.reference)
        if found.largest > 1.02 * self.reference or not 1e-8 < found.total < 1e8:
            self.reference = found.largest  # against overflow of the weights
            found = self._over_all_pairs(u, sharpness / self.reference)
        cost = float(np.sum(self.size / u))
        root = np.sum(np.sqrt(self.size * np.maximum(found.gradient, 0)))
        lower = float(root**2) / found.total
        best = self.best
        if cost * found.largest < best.value:
            best = Dominance(found.largest / u, cost * found.largest, best.lower)
        self.best = Dominance(best.t_prime, best.value, max(best.lower, lower))
        soft_maximum = math.log(self.reference) + math.log(found.total) / sharpness
        slope = u * found.gradient / (found.total * self.reference) - self.size / u / cost
        return math.log(cost) + soft_maximum, slope

    def _over_all_pairs(self, u: FloatArray, sharpness: float) -> _Pass:
        """One pass over all pairs for u = 1 / t', in parallel."""
        from paramsearch.search.dominance_kernel import weigh_pairs

        columns = len(self.start) - 1
        pieces = max(1, min(4 * cores(), columns // 50))
        # column j has j pairs: square roots give pieces of equal work
        edges = np.round(columns * np.sqrt(np.linspace(0, 1, pieces + 1))).astype(int)
        gradient, totals = np.zeros((pieces, len(u))), np.zeros((pieces, 2))

        def work(a: int, b: int) -> None:
            for i in range(a, b):
                weigh_pairs(
                    self.start,
                    self.atom,
                    self.entry,
                    u,
                    sharpness,
                    self.reference,
                    edges[i],
                    edges[i + 1],
                    gradient[i],
                    totals[i],
                )

        in_chunks(work, pieces)
        return _Pass(float(totals[:, 0].sum()), float(totals[:, 1].max()), gradient.sum(axis=0))
