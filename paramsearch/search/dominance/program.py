"""The dominance program in the paper's norm and in the second one, and its solutions.

    minimize    sum of w_s t'_s
    subject to  sum of (|a_s| / t'_s)^q <= radius^q   for every pair of inputs, a = c_j - c_k;
                under zero-out, for every pair of an input and 0.

The paper's program has q = 1, w_s = |s| and radius 1: its theorem adds up the privacy losses of all
atoms.  But losses of independent atoms add up like variances.  With t'_s the standard deviation of
the noise of atom s divided by its mean (for the same shift, a loss of 1 / t'_s), the deviation of a
pair's loss is the second norm of a_s / t'_s, and a pair meets delta where that is at most its slack
over z, about sqrt(2 log(1 / delta)).  A negative binomial of parameter r and deviation t' has about
sqrt(r) t' copies, so w_s = |s| sqrt(r).  The shift of {-1, +1} is the larger one of its two ends,
a_0 and a_0 + kappa (exact_view.md, Theorem 2).  The value of this program, q = 2, is within a few
percent of the messages that stage 2 reaches, and ranks families as stage 2 does.

In u = t'^-q the constraints are linear, A u <= 1, and the cost, sum of w_s u_s^(-1/q), is convex.
For v >= 0 with sum 1, c = A^T v and any feasible u, Hoelder's inequality with the exponents
(q + 1) / q and q + 1 gives

    sum of w_s^(q/(q+1)) c_s^(1/(q+1))
        <= (sum of w_s u_s^(-1/q))^(q/(q+1)) (sum of c_s u_s)^(1/(q+1)),

and sum of c_s u_s = v A u <= 1.  So (left side)^((q+1)/q) bounds the optimum from below, and every
v that a solver meets tells how far it is from the optimum.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from accounting.base.arrays import FloatArray, IntArray
from accounting.base.errors import InvalidParameter
from accounting.base.threads import in_chunks
from accounting.model.family import UNIT, Family

Norm = Literal[1, 2]
_PIECES = 16
"""Pieces into which a pass over all pairs is divided."""


@dataclass(frozen=True)
class InputColumns:
    """The columns of the inputs 0..max_value: ``entry[i]`` at ``atom[i]`` for
    start[j] <= i < start[j + 1], and ``unit[j]`` at the atom {-1, +1}, whose index is 0."""

    start: IntArray
    atom: IntArray
    entry: FloatArray
    unit: FloatArray

    @staticmethod
    def of(family: Family) -> InputColumns:
        """Read the columns of a family, with the atom {-1, +1} first."""
        unit = family.atoms.index(UNIT)
        order = {s: s + (s < unit) if s != unit else 0 for s in range(len(family.atoms))}
        plain = [
            sorted((order[s], entry) for s, entry in column.items() if s != unit)
            for column in family.sparse_columns
        ]
        flat = np.array([item for column in plain for item in column], np.int64).reshape(-1, 2)
        return InputColumns(
            start=np.concatenate([[0], np.cumsum([len(column) for column in plain])]),
            atom=np.ascontiguousarray(flat[:, 0]),
            entry=flat[:, 1].astype(np.float64),
            unit=np.array([column.get(unit, 0) for column in family.sparse_columns], np.float64),
        )

    @property
    def count(self) -> int:
        return len(self.unit)


Constraints = tuple[IntArray, IntArray, FloatArray, FloatArray, float, int, FloatArray]
"""start, atom, entry and unit of the columns; reach, norm, and inverse of a program."""


@dataclass(frozen=True)
class DominanceProgram:
    """A dominance program in the first or the second norm.

    Attributes:
        columns: The columns of the inputs.
        weight: Cost of one unit of t' of each atom.
        inverse: inverse[j, k] is radius^-norm of the pair of the inputs j > k; the columns are the
            inputs k that j may become, all of them or only 0.
        norm: The norm q.
        reach: 1 if the shift of {-1, +1} is the larger one of its two ends, 0 if it is a_0.
    """

    columns: InputColumns
    weight: FloatArray
    inverse: FloatArray
    norm: Norm = 2
    reach: float = 1.0

    @property
    def constraints(self) -> Constraints:
        """The constraints as arrays, in the order in which kernels take them."""
        columns = self.columns
        sparse = columns.start, columns.atom, columns.entry, columns.unit
        return *sparse, self.reach, self.norm, self.inverse

    def rows(self, pairs: IntArray) -> tuple[IntArray, IntArray, FloatArray]:
        """Return the rows of these pairs in A: the start of each, columns, values."""
        from paramsearch.search.dominance.dominance_kernels import pair_rows

        row = np.empty(len(pairs) + 1, np.int64)
        arguments = *self.constraints, pairs, row
        n = pair_rows(*arguments, np.empty(0, np.int64), np.empty(0))
        column, value = np.empty(n, np.int64), np.empty(n)
        if n:
            pair_rows(*arguments, column, value)
        return row, column, value

    def pairs_above(self, t_prime: FloatArray, level: float) -> IntArray:
        """List the pairs (j, k), j > k, whose left sides exceed ``level``, in the second norm."""
        from paramsearch.search.dominance.dominance_kernels import pairs_above

        if self.norm != 2:
            raise InvalidParameter(f"norm = {self.norm!r} must be 2 to list pairs")
        columns = self.columns
        n = columns.count
        sparse = columns.start, columns.atom, columns.entry, columns.unit
        arguments = *sparse, self.reach, self.inverse, t_prime**-2.0, level
        # column j has j pairs: square roots give pieces of equal work
        edges = [round(n * math.sqrt(i / _PIECES)) for i in range(_PIECES + 1)]
        counts = np.zeros(_PIECES, np.int64)

        def count(a: int, b: int) -> None:
            for i in range(a, b):
                none = np.empty((0, 2), np.int64)
                counts[i] = pairs_above(*arguments, edges[i], edges[i + 1], none)

        in_chunks(count, _PIECES)
        ends = np.concatenate([[0], np.cumsum(counts)])
        found = np.empty((int(ends[-1]), 2), np.int64)

        def fill(a: int, b: int) -> None:
            for i in range(a, b):
                if counts[i]:
                    rows = found[ends[i] : ends[i + 1]]
                    pairs_above(*arguments, edges[i], edges[i + 1], rows)

        in_chunks(fill, _PIECES)
        return found

    def cost(self, u: FloatArray) -> float:
        return float(np.sum(self.weight * u ** (-1 / self.norm)))

    def bound(self, pairs: IntArray, multipliers: FloatArray) -> float:
        """Return the lower bound on the optimum that these multipliers, with sum 1, prove."""
        q, c = self.norm, self.combined(pairs, multipliers)
        total = float(np.sum(self.weight ** (q / (q + 1)) * c ** (1 / (q + 1))))
        return float(total ** ((q + 1) / q))

    def balanced(self, pairs: IntArray) -> FloatArray:
        """Return a rough u, as if all of these pairs had the same multiplier."""
        q = self.norm
        c = self.combined(pairs, np.full(len(pairs), 1 / len(pairs)))
        return np.asarray((self.weight / np.maximum(c, c[c > 0].min())) ** (q / (q + 1)))

    def combined(self, pairs: IntArray, multipliers: FloatArray) -> FloatArray:
        """Return c = A^T v."""
        row, column, value = self.rows(pairs)
        weighted = np.repeat(multipliers, np.diff(row)) * value
        return np.bincount(column, weighted, len(self.weight)).astype(np.float64)


def by_distance(values: FloatArray) -> FloatArray:
    """Return the matrix with values[|j - k|] in row j and column k, without storing it."""
    n = len(values)
    both = np.concatenate([values[:0:-1], values])
    return np.lib.stride_tricks.sliding_window_view(both, n)[::-1]


@dataclass(frozen=True)
class Dominance:
    """A solution of a dominance program: ``t_prime`` satisfies every constraint and costs
    ``value``; nothing costs less than ``lower``, which the ``multipliers`` of ``pairs`` prove.
    These are floating-point numbers that no certificate relies on."""

    t_prime: FloatArray
    value: float
    lower: float
    pairs: IntArray
    multipliers: FloatArray

    @property
    def gap(self) -> float:
        return self.value / self.lower - 1 if self.lower else 0.0


def paper_program(family: Family) -> DominanceProgram:
    """Build the paper's program: the first norm, and a radius of 1 for every pair."""
    size = np.array([len(elements) for elements in family.atoms], float)
    unit = family.atoms.index(UNIT)
    weight = np.concatenate([size[unit : unit + 1], np.delete(size, unit)])
    ones = by_distance(np.ones(family.max_value + 1))
    return DominanceProgram(InputColumns.of(family), weight, ones, norm=1, reach=0.0)
