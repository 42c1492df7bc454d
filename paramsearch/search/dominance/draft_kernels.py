"""Numba kernels for drafts: their columns, and the prices of moves."""

from __future__ import annotations

import numpy as np

from accounting.base.arrays import BoolArray, FloatArray, IntArray
from accounting.base.jit import kernel


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


@kernel
def fitting_parts(
    number: IntArray,
    mine: int,
    own: IntArray,
    barred: BoolArray,
    shared: IntArray,
    longest: float,
    triples: bool,
    parts: IntArray,
) -> int:
    """Candidates for the atom of value ``mine``, as rows of ``parts`` with -1 for no part.

    No part, one value, two or three shared values, or the own parts with one of them replaced or
    one added; no value that is ``barred``, and at most ``longest`` elements.  Returns their number.
    """
    goal = number[mine]
    n = 0
    if 1 + abs(goal) <= longest:
        parts[n] = -1
        n += 1
    for i in range(number.size):
        if barred[i]:
            continue
        if 2 + abs(goal + number[i]) <= longest:
            parts[n, 0], parts[n, 1], parts[n, 2] = i, -1, -1
            n += 1
        for drop in range(-1, own.size):
            left = own.size - (drop >= 0)
            if left == 0 or left > 2:
                continue
            total, at = goal + number[i], 1
            for t in range(own.size):
                if t != drop:
                    total += number[own[t]]
            if 2 + left + abs(total) <= longest:
                parts[n, 0], parts[n, 1], parts[n, 2] = i, -1, -1
                for t in range(own.size):
                    if t != drop:
                        parts[n, at] = own[t]
                        at += 1
                n += 1
    for a in range(shared.size):
        if barred[shared[a]]:
            continue
        for b in range(a, shared.size):
            if barred[shared[b]]:
                continue
            total = goal + number[shared[a]] + number[shared[b]]
            if 3 + abs(total) <= longest:
                parts[n, 0], parts[n, 1], parts[n, 2] = shared[a], shared[b], -1
                n += 1
            for c in range(b, shared.size if triples else b):
                if not barred[shared[c]] and 4 + abs(total + number[shared[c]]) <= longest:
                    parts[n, 0], parts[n, 1], parts[n, 2] = shared[a], shared[b], shared[c]
                    n += 1
    return n


@kernel
def best_moves(
    number: IntArray,
    start: IntArray,
    atom: IntArray,
    entry: FloatArray,
    unit: FloatArray,
    part_start: IntArray,
    part: IntArray,
    size: FloatArray,
    weight: FloatArray,
    c: FloatArray,
    kappa: FloatArray,
    scaled: FloatArray,
    side: IntArray,
    row_of: IntArray,
    influence: FloatArray,
    shared: IntArray,
    growth: float,
    triples: bool,
    first: int,
    end: int,
    price: FloatArray,
    chosen: IntArray,
) -> int:
    """The best moves of the values first..end - 1: rows of ``price`` and of parts in ``chosen``.

    row_of[i] is the row of value i in ``influence``, -1 if no other value uses it.  Returns how
    many moves were priced.
    """
    count, kept = number.size, price.shape[1]
    m = shared.size
    room = 1 + 5 * count + m * (m + 1) // 2 + (m * (m + 1) * (m + 2) // 6 if triples else 0)
    parts = np.empty((room, 3), np.int64)
    prices = np.empty(room)
    barred = np.empty(count, np.bool_)
    effect = np.empty(count)
    tried = 0
    for mine in range(first, end):
        effect[:] = 0.0
        effect[mine] = 1.0
        if row_of[mine] >= 0:
            effect[:] = influence[row_of[mine]]
        for i in range(count):
            barred[i] = effect[i] != 0.0
        own = part[part_start[mine] : part_start[mine + 1]]
        longest = size[mine + 1] + growth
        n = fitting_parts(number, mine, own, barred, shared, longest, triples, parts)
        per_element = weight[mine + 1] / size[mine + 1]
        price_moves(
            number, start, atom, entry, unit, weight, c, kappa, scaled, side, mine, per_element,
            effect, parts[:n], prices[:n],
        )  # fmt: skip
        tried += n
        price[mine], chosen[mine] = np.inf, -1
        for i in range(n):
            if prices[i] < price[mine, kept - 1]:
                at = kept - 1
                while at > 0 and price[mine, at - 1] > prices[i]:
                    price[mine, at], chosen[mine, at] = price[mine, at - 1], chosen[mine, at - 1]
                    at -= 1
                price[mine, at], chosen[mine, at] = prices[i], parts[i]
    return tried
