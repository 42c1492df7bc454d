"""Stage 1: the paper's dominance program, for any family and any max_value.

    minimise   sum of |s| t'_s
    subject to sum of |c_j - c_k|_s / t'_s <= 1   for every pair of inputs j, k.

In x = -log t' the program without scale is: minimise log(sum of |s| e^{-x_s}) + log(largest
left side), which is smooth and convex once the maximum is a soft one.  L-BFGS minimises it with a
sharper and sharper maximum; a pass over all pairs is a numba kernel and nothing is ever written
down, so that memory is linear in max_value and no constraints need to be generated.

The weights v of the soft maximum are multipliers.  For any v >= 0 and g = A^T v, minimising the
Lagrangian over 1 / t' and over the scale of v gives

    (sum of sqrt(|s| g_s))^2 / sum of v  <=  the optimum,

so every pass also tells how far from the optimum the best vector is at most.
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

_SHARPEST = 1e6
_FACTOR = 3.0
_ITERATIONS = 150


@dataclass(frozen=True)
class Dominance:
    """``t_prime`` dominates every difference and costs ``value``; nothing costs less than
    ``lower``.  Both are floating-point numbers: the certificate of a file does not use them."""

    t_prime: FloatArray
    value: float
    lower: float

    @property
    def gap(self) -> float:
        return self.value / self.lower - 1 if self.lower else 0.0


def dominance(family: Family, *, gap: float = 1e-3, progress: Progress = silent) -> Dominance:
    """The cheapest dominance vector, to a relative duality gap of ``gap``."""
    program = _Program(family)
    if family.max_value == 1:
        return Dominance(np.zeros(len(family.atoms)), 0.0, 0.0)
    sharpness = 30.0
    while sharpness < _SHARPEST:
        program.descend(sharpness)
        best = program.best
        progress(f"dominance program: gap {best.gap:.1e}")
        if best.gap <= gap:
            return best
        sharpness *= _FACTOR
    raise Undecided(
        f"the dominance program stopped at a duality gap of {best.gap:.1e}; {gap:g} was asked for"
    )


class _Program:
    def __init__(self, family: Family) -> None:
        columns = family.sparse_columns
        ends = np.cumsum([len(column) for column in columns])
        self.pointer = np.concatenate([[0], ends]).astype(np.int64)
        entries = [item for column in columns for item in sorted(column.items())]
        flat = np.array(entries, np.int64).reshape(-1, 2)
        self.index: IntArray = np.ascontiguousarray(flat[:, 0])
        self.entry: FloatArray = flat[:, 1].astype(np.float64)
        self.size = np.array([len(elements) for elements in family.atoms], float)
        largest = np.ones(len(self.size))
        np.maximum.at(largest, self.index, np.abs(self.entry))
        self.reference = 1.0
        self.x: FloatArray = -np.log(largest)
        self.best = Dominance(np.zeros(0), math.inf, 1e-300)

    def _pass(self, u: FloatArray, sharpness: float) -> tuple[float, float, FloatArray]:
        """Sum of weights, largest left side, and the gradient of that sum over sharpness."""
        from paramsearch.search.dominance_kernel import weigh_pairs

        top = len(self.pointer) - 1
        pieces = max(1, min(4 * cores(), top // 50))
        # pairs k < j: equal work up to the square root
        edges = np.round(top * np.sqrt(np.linspace(0, 1, pieces + 1))).astype(int)
        gradient, found = np.zeros((pieces, len(u))), np.zeros((pieces, 2))

        def work(a: int, b: int) -> None:
            for i in range(a, b):
                weigh_pairs(
                    self.pointer,
                    self.index,
                    self.entry,
                    u,
                    sharpness,
                    self.reference,
                    edges[i],
                    edges[i + 1],
                    gradient[i],
                    found[i],
                )

        in_chunks(work, pieces)
        return float(found[:, 0].sum()), float(found[:, 1].max()), gradient.sum(axis=0)

    def descend(self, sharpness: float) -> None:
        _, self.reference, _ = self._pass(np.exp(self.x), 0.0)
        found = optimize.minimize(
            self._value,
            self.x,
            args=(sharpness,),
            jac=True,
            method="L-BFGS-B",
            options={"maxiter": _ITERATIONS, "maxcor": 20},
        )
        self.x = found.x

    def _value(self, x: FloatArray, sharpness: float) -> tuple[float, FloatArray]:
        u = np.exp(x)
        total, largest, gradient = self._pass(u, sharpness / self.reference)
        if largest > 1.02 * self.reference or not 1e-8 < total < 1e8:
            self.reference = largest
            total, largest, gradient = self._pass(u, sharpness / self.reference)
        cost = float(np.sum(self.size / u))
        lower = float(np.sum(np.sqrt(self.size * np.maximum(gradient, 0))) ** 2) / total
        best = self.best
        if cost * largest < best.value:
            best = Dominance(largest / u, cost * largest, best.lower)
        self.best = Dominance(best.t_prime, best.value, max(best.lower, lower))
        soft = math.log(self.reference) + math.log(total) / sharpness
        slope = u * gradient / (total * self.reference) - self.size / u / cost
        return math.log(cost) + soft, slope
