"""Numba kernels of the dominance program: passes over pairs of columns, and multipliers.

Columns are sparse: column j has the entries entry[i] at atom[i] for start[j] <= i < start[j + 1],
without the atom {-1, +1}, whose entry is unit[j] and whose index is 0.  A pair (j, k), j > k, has
the row of values |a_s|^norm * inverse[j, k], where a = c_j - c_k; for the atom {-1, +1} the shift
is max(|a_0|, |a_0 + reach * (j - k)|).  The pairs are those for which ``inverse`` has a column k.
"""

from __future__ import annotations

import math

import numpy as np

from accounting.base.arrays import FloatArray, IntArray
from accounting.base.jit import kernel

SMALLEST = 1e-30
"""Stands for 0 where a logarithm or a quotient is taken."""


@kernel
def unit_shift(unit: FloatArray, reach: float, j: int, k: int) -> float:
    """The shift of {-1, +1} that counts for a pair."""
    a = float(unit[j] - unit[k])
    return max(abs(a), abs(a + reach * (j - k)))


@kernel
def pair_rows(
    start: IntArray,
    atom: IntArray,
    entry: FloatArray,
    unit: FloatArray,
    reach: float,
    norm: int,
    inverse: FloatArray,
    pairs: IntArray,
    row: IntArray,
    column: IntArray,
    value: FloatArray,
) -> int:
    """The rows of ``pairs``: value[i] at column[i] for row[p] <= i < row[p + 1].

    With empty ``column`` the entries are only counted.  Returns their number.
    """
    n = 0
    fill = column.size > 0
    for p in range(pairs.shape[0]):
        j, k = pairs[p]
        scale = inverse[j, k]
        row[p] = n
        if fill:
            column[n] = 0
            value[n] = unit_shift(unit, reach, j, k) ** norm * scale
        n += 1
        a, b = start[j], start[k]
        while a < start[j + 1] or b < start[k + 1]:
            if b >= start[k + 1] or (a < start[j + 1] and atom[a] < atom[b]):
                where, d = atom[a], entry[a]
                a += 1
            elif a >= start[j + 1] or atom[b] < atom[a]:
                where, d = atom[b], entry[b]
                b += 1
            else:
                where, d = atom[a], entry[a] - entry[b]
                a += 1
                b += 1
            if d != 0.0:
                if fill:
                    column[n] = where
                    value[n] = abs(d) ** norm * scale
                n += 1
    row[pairs.shape[0]] = n
    return n


@kernel
def worst_pairs(
    start: IntArray,
    atom: IntArray,
    entry: FloatArray,
    unit: FloatArray,
    reach: float,
    norm: int,
    inverse: FloatArray,
    u: FloatArray,
    first: int,
    end: int,
    partner: IntArray,
    largest: FloatArray,
) -> None:
    """The largest left sides sum of |a_s|^norm u_s * inverse among the pairs k < j.

    For j in first..end - 1, row 0 has the largest one with k < j, and row 1 gets for each k the
    largest one with these j: ``largest`` is the left side and ``partner`` the other column.
    """
    own = np.zeros(start.size - 1)
    dense = np.zeros(u.size)
    for j in range(end):
        for at in range(start[j], start[j + 1]):
            own[j] += abs(entry[at]) ** norm * u[atom[at]]
    for j in range(first, end):
        for at in range(start[j], start[j + 1]):
            dense[atom[at]] = entry[at]
        for k in range(min(j, inverse.shape[1])):
            total = own[j] + own[k] + unit_shift(unit, reach, j, k) ** norm * u[0]
            for at in range(start[k], start[k + 1]):
                x = dense[atom[at]]
                if x != 0.0:
                    y = entry[at]
                    change = -2.0 * x * y if norm == 2 else abs(x - y) - abs(x) - abs(y)
                    total += change * u[atom[at]]
            total *= inverse[j, k]
            if total > largest[0, j]:
                largest[0, j], partner[0, j] = total, k
            if total > largest[1, k]:
                largest[1, k], partner[1, k] = total, j
        for at in range(start[j], start[j + 1]):
            dense[atom[at]] = 0.0


@kernel
def pairs_above(
    start: IntArray,
    atom: IntArray,
    entry: FloatArray,
    unit: FloatArray,
    reach: float,
    inverse: FloatArray,
    u: FloatArray,
    level: float,
    first: int,
    end: int,
    pairs: IntArray,
) -> int:
    """The pairs k < j, j in first..end - 1, with a left side above ``level`` in the second norm.

    With empty ``pairs`` they are only counted.  Returns their number.
    """
    own = np.zeros(start.size - 1)
    dense = np.zeros(u.size)
    for j in range(end):
        for at in range(start[j], start[j + 1]):
            own[j] += entry[at] * entry[at] * u[atom[at]]
    n = 0
    for j in range(first, end):
        for at in range(start[j], start[j + 1]):
            dense[atom[at]] = 2.0 * entry[at] * u[atom[at]]
        for k in range(min(j, inverse.shape[1])):
            shift = unit_shift(unit, reach, j, k)
            total = own[j] + own[k] + shift * shift * u[0]
            for at in range(start[k], start[k + 1]):
                total -= entry[at] * dense[atom[at]]
            if total * inverse[j, k] > level:
                if pairs.size:
                    pairs[n, 0], pairs[n, 1] = j, k
                n += 1
        for at in range(start[j], start[j + 1]):
            dense[atom[at]] = 0.0
    return n


@kernel
def update_multipliers(
    row: IntArray,
    column: IntArray,
    value: FloatArray,
    weight: FloatArray,
    norm: int,
    steps: int,
    gap: float,
    multiplier: FloatArray,
    u: FloatArray,
    left: FloatArray,
) -> tuple[float, float]:
    """Multiplicative updates of the multipliers, until the relative gap on these rows is small.

    With c = A^T v, the bound is (sum of w^(q/(q+1)) c^(1/(q+1)))^((q+1)/q) for q = norm, and
    u = (w / c)^(q/(q+1)) over a common factor.  Multiplying each multiplier by (A u)^((q+1)/q)
    raises the bound.  Every update begins with an extrapolation of the logarithms, as in Nesterov's
    method, which starts again when the bound falls: this takes a tenth of the updates.

    Fills ``u``, and ``left`` with A u; returns the bound and the largest left side.
    """
    count = row.size - 1
    exponent = (norm + 1.0) / norm
    root = weight ** (1.0 / exponent)
    c = np.empty(weight.size)
    log_v, before = np.empty(count), np.empty(count)
    for p in range(count):
        before[p] = log_v[p] = math.log(max(multiplier[p], SMALLEST))
    momentum, last = 1.0, 0.0
    total, largest = 0.0, 0.0
    for _ in range(steps):
        grown = (1.0 + math.sqrt(1.0 + 4.0 * momentum * momentum)) / 2.0
        beta = (momentum - 1.0) / grown
        top = -math.inf
        for p in range(count):
            left[p] = log_v[p] + beta * (log_v[p] - before[p])
            top = max(top, left[p])
        mass = 0.0
        for p in range(count):
            multiplier[p] = math.exp(left[p] - top)
            mass += multiplier[p]
        c[:] = SMALLEST
        for p in range(count):
            multiplier[p] /= mass
            for i in range(row[p], row[p + 1]):
                c[column[i]] += multiplier[p] * value[i]
        total = 0.0
        for s in range(c.size):
            share = root[s] * (np.cbrt(c[s]) if norm == 2 else math.sqrt(c[s]))
            total += share
            u[s] = share / c[s]
        for s in range(c.size):
            u[s] /= total
        largest = 0.0
        for p in range(count):
            left[p] = 0.0
            for i in range(row[p], row[p + 1]):
                left[p] += value[i] * u[column[i]]
            largest = max(largest, left[p])
        if largest ** (1.0 / norm) - 1.0 < gap:
            break
        if total < last:
            momentum, last = 1.0, 0.0
            before[:] = log_v
        else:
            momentum, last = grown, total
            before[:] = log_v
            for p in range(count):
                sizes = max(multiplier[p], SMALLEST), max(left[p], SMALLEST)
                log_v[p] = math.log(sizes[0]) + exponent * math.log(sizes[1])
    return total**exponent, largest


@kernel
def settled(
    start: IntArray,
    atom: IntArray,
    entry: FloatArray,
    unit: FloatArray,
    reach: float,
    norm: int,
    inverse: FloatArray,
    weight: FloatArray,
    steps: int,
    gap: float,
    negligible: float,
    near: float,
    pairs: IntArray,
    multipliers: FloatArray,
    u: FloatArray,
) -> tuple[float, float, IntArray, FloatArray]:
    """Update the multipliers of ``pairs``, and drop the pairs that do not matter.

    Fills ``u``; returns the bound, the largest left side, and the remaining pairs and multipliers:
    those above ``negligible`` times the average, and those with a left side above ``near`` times
    the largest.
    """
    count = pairs.shape[0]
    row = np.empty(count + 1, np.int64)
    none, nothing = np.empty(0, np.int64), np.empty(0)
    n = pair_rows(start, atom, entry, unit, reach, norm, inverse, pairs, row, none, nothing)
    column, value = np.empty(n, np.int64), np.empty(n)
    pair_rows(start, atom, entry, unit, reach, norm, inverse, pairs, row, column, value)
    left = np.empty(count)
    v = multipliers.copy()
    bound, largest = update_multipliers(row, column, value, weight, norm, steps, gap, v, u, left)
    kept = np.flatnonzero((v > negligible / count) | (left > near * largest))
    return bound, largest, pairs[kept], v[kept]


@kernel
def with_violated(
    pairs: IntArray, multipliers: FloatArray, partner: IntArray, left: FloatArray, share: float
) -> tuple[IntArray, FloatArray]:
    """Add the worst pairs of all columns whose left sides exceed 1, as ``worst_pairs`` finds them.

    Those that are new get ``share`` of the multipliers together; their sum is 1 again.
    """
    n = left.shape[1]
    known = np.sort(pairs[:, 0] * n + pairs[:, 1])
    keys = np.empty(2 * n, np.int64)
    found = 0
    for side in range(2):
        for j in range(n):
            if left[side, j] > 1.0:
                other = partner[side, j]
                key = j * n + other if side == 0 else other * n + j
                at = np.searchsorted(known, key)
                if at == known.size or known[at] != key:
                    keys[found] = key
                    found += 1
    new = np.unique(keys[:found])
    old = pairs.shape[0]
    joined = np.empty((old + new.size, 2), np.int64)
    joined[:old] = pairs
    joined[old:, 0], joined[old:, 1] = new // n, new % n
    v = np.empty(old + new.size)
    v[:old] = multipliers * (1.0 - share if new.size else 1.0)
    v[old:] = share / max(new.size, 1)
    return joined, v / v.sum()
