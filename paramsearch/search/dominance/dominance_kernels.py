"""Numba kernels of the dominance program: passes over pairs of columns, and multipliers.

Columns are sparse: column j has the entries entry[i] at atom[i] for start[j] <= i < start[j + 1],
without the atom {-1, +1}, whose entry is unit[j] and whose index is 0.  A pair (j, k), j > k, has
the row of values |a_s|^norm * inverse[j, k], where a = c_j - c_k; for the atom {-1, +1} the shift
is max(|a_0|, |a_0 + reach * (j - k)|).
"""

from __future__ import annotations


import numpy as np

from accounting.base.arrays import FloatArray, IntArray
from accounting.base.jit import kernel


@kernel
def unit_shift(unit: FloatArray, reach: float, j: int, k: int) -> float:
    """The shift of {-1, +1} that counts for a pair."""
    a = unit[j] - unit[k]
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
        for k in range(j):
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
def update_multipliers(
    row: IntArray,
    column: IntArray,
    value: FloatArray,
    weight: FloatArray,
    norm: int,
    exponent: float,
    steps: int,
    gap: float,
    multiplier: FloatArray,
    u: FloatArray,
    left: FloatArray,
) -> tuple[float, float]:
    """Multiplicative updates of the multipliers, until the relative gap on these rows is small.

    With c = A^T v, the bound is (sum of w^(q/(q+1)) c^(1/(q+1)))^((q+1)/q) for q = norm, and
    u = (w / c)^(q/(q+1)) over a common factor; each multiplier is multiplied by a power of its left
    side A u.  Fills ``u``, and ``left`` with A u; returns the bound and the largest left side.
    """
    power = 1.0 / (norm + 1.0)
    root = weight ** (norm * power)
    c = np.empty(weight.size)
    total, largest = 0.0, 0.0
    for step in range(steps):
        c[:] = 1e-30
        for p in range(row.size - 1):
            if multiplier[p] > 0.0:
                for i in range(row[p], row[p + 1]):
                    c[column[i]] += multiplier[p] * value[i]
        total = 0.0
        for s in range(c.size):
            total += root[s] * c[s] ** power
            u[s] = root[s] * c[s] ** (power - 1.0)
        for s in range(c.size):
            u[s] /= total
        largest = 0.0
        for p in range(row.size - 1):
            left[p] = 0.0
            for i in range(row[p], row[p + 1]):
                left[p] += value[i] * u[column[i]]
            largest = max(largest, left[p])
        if largest ** (1.0 / norm) - 1.0 < gap or step == steps - 1:
            break
        mass = 0.0
        for p in range(row.size - 1):
            multiplier[p] *= left[p] ** exponent
            mass += multiplier[p]
        for p in range(row.size - 1):
            multiplier[p] /= mass
    return total ** ((norm + 1.0) / norm), largest


@kernel
def draft_columns(
    part_start: IntArray,
    part: IntArray,
    ones: IntArray,
    start: IntArray,
    atom: IntArray,
    entry: FloatArray,
    unit: FloatArray,
) -> int:
    """Columns of the values of a draft, in an order in which parts come first.

    Value i has the parts part[part_start[i]:part_start[i + 1]], its own atom i + 1, and ``ones`` as
    in ``FamilyDraft.ones``.  Entries beyond the end of ``atom`` are only counted.  Returns their
    number.
    """
    count = ones.size
    dense = np.zeros(count + 1)
    known = np.zeros(count + 1, np.bool_)
    touched = np.empty(count + 1, np.int64)
    n = 0
    for i in range(count):
        start[i] = n
        touched[0], size = i + 1, 1
        dense[i + 1], known[i + 1] = 1.0, True
        unit[i] = min(0, ones[i])
        for t in range(part_start[i], part_start[i + 1]):
            unit[i] -= unit[part[t]]
            for at in range(start[part[t]], start[part[t] + 1]):
                s = atom[at]
                if not known[s]:
                    known[s] = True
                    touched[size] = s
                    size += 1
                dense[s] -= entry[at]
        for s in np.sort(touched[:size]):
            if dense[s] != 0.0:
                if n < atom.size:
                    atom[n], entry[n] = s, dense[s]
                n += 1
            dense[s], known[s] = 0.0, False
        if n > atom.size:
            return -1
    start[count] = n
    return n


@kernel
def draft_influence(
    part_start: IntArray, part: IntArray, values: IntArray, influence: FloatArray
) -> None:
    """influence[t, i]: the multiple of a change of the atom of values[t] in the column of i."""
    for t in range(values.size):
        for i in range(part_start.size - 1):
            x = 1.0 if i == values[t] else 0.0
            for at in range(part_start[i], part_start[i + 1]):
                x -= influence[t, part[at]]
            influence[t, i] = x


@kernel
def price_moves(
    number: IntArray,
    start: IntArray,
    atom: IntArray,
    entry: FloatArray,
    unit: FloatArray,
    weight: FloatArray,
    c: FloatArray,
    kappa: FloatArray,
    scaled: FloatArray,
    side: IntArray,
    mine: int,
    weight_per_element: float,
    influence: FloatArray,
    parts: IntArray,
    price: FloatArray,
) -> None:
    """price[i]: the sum of w^(2/3) c^(1/3) after a change of the atom of value ``mine``.

    Value i is ``number[i]`` and has its own atom i + 1.  Pair p, with kappa[p] = j - k, is that of
    the values side[p] (or none, -1), and scaled[p] is its multiplier times inverse[j, k].  The
    candidates are rows of ``parts``: values, or -1.  ``influence[i]`` is that of the changed atom
    on the column of i.  The second norm makes the change of c a quadratic function of the change of
    the column, except for the atom {-1, +1}.
    """
    square, touched_pairs = 0.0, 0
    cross = np.zeros(c.size)
    shift, times, distance, factor = np.empty((4, kappa.size))
    for p in range(kappa.size):
        j, k = side[p]
        multiple = 0.0
        if j >= 0:
            multiple += influence[j]
        if k >= 0:
            multiple -= influence[k]
        if multiple == 0.0:
            continue
        f = scaled[p] * multiple
        square += f * multiple
        a = 0.0
        if j >= 0:
            a += unit[j]
            for at in range(start[j], start[j + 1]):
                cross[atom[at]] += f * entry[at]
        if k >= 0:
            a -= unit[k]
            for at in range(start[k], start[k + 1]):
                cross[atom[at]] -= f * entry[at]
        shift[touched_pairs], times[touched_pairs] = a, multiple
        distance[touched_pairs], factor[touched_pairs] = kappa[p], scaled[p]
        touched_pairs += 1
    third, own = 1.0 / 3.0, mine + 1
    before = 0.0
    for s in range(c.size):
        before += weight[s] ** (2.0 * third) * c[s] ** third
    dense = np.zeros(c.size)
    known = np.zeros(c.size, np.bool_)
    touched = np.empty(c.size, np.int64)
    for row in range(parts.shape[0]):
        size = 0
        for at in range(start[mine], start[mine + 1]):
            s = atom[at]
            if s != own:
                touched[size], dense[s], known[s] = s, -entry[at], True
                size += 1
        total, count, change = number[mine], 0, -unit[mine]
        for t in range(parts.shape[1]):
            q = parts[row, t]
            if q >= 0:
                count += 1
                total += number[q]
                change -= unit[q]
                for at in range(start[q], start[q + 1]):
                    s = atom[at]
                    if not known[s]:
                        touched[size], dense[s], known[s] = s, 0.0, True
                        size += 1
                    dense[s] -= entry[at]
        change += min(0, -total)
        after = (weight_per_element * (1 + count + abs(total))) ** (2.0 * third)
        result = before + (after - weight[own] ** (2.0 * third)) * c[own] ** third
        for t in range(size):
            s = touched[t]
            known[s] = False
            d = dense[s]
            if d != 0.0:
                new = max(c[s] + d * d * square + 2.0 * d * cross[s], 0.0)
                result += weight[s] ** (2.0 * third) * (new**third - c[s] ** third)
        if change != 0.0:
            new = c[0]
            for t in range(touched_pairs):
                old = max(abs(shift[t]), abs(shift[t] + distance[t]))
                a = shift[t] + times[t] * change
                a = max(abs(a), abs(a + distance[t]))
                new += factor[t] * (a * a - old * old)
            result += weight[0] ** (2.0 * third) * (max(new, 0.0) ** third - c[0] ** third)
        price[row] = result
