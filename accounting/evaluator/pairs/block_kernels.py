"""Numba kernels that list the pairs of a large protocol block by block."""

from __future__ import annotations

from accounting.base.arrays import FloatArray, IntArray
from accounting.base.jit import kernel


@kernel
def count_by_b(unit: IntArray, m_first: int, m_end: int, low: int, count: IntArray) -> None:
    """count[b - low] = number of ordered pairs (j, k) with m_first <= |j - k| < m_end and this b.

    ``unit[j]`` is the entry of {-1, +1} in the column of j.
    """
    count[:] = 0
    for m in range(m_first, m_end):
        for j in range(unit.size - m):
            k = j + m
            count[unit[k] - unit[j] - low] += 1
            count[unit[j] - unit[k] - m - low] += 1


@kernel
def list_by_b(
    unit: IntArray, m_first: int, m_end: int, low: int, place: IntArray, pairs: IntArray
) -> None:
    """The pairs by b, then by m; place[b - low] is where those of b begin, and where they end
    afterwards."""
    for m in range(m_first, m_end):
        for j in range(unit.size - m):
            k = j + m
            for side in range(2):
                b = unit[k] - unit[j] if side == 0 else unit[j] - unit[k] - m
                at = place[b - low]
                pairs[at, 0] = k if side == 0 else j
                pairs[at, 1] = j if side == 0 else k
                place[b - low] += 1


@kernel
def difference(
    ptr: IntArray,
    index: IntArray,
    value: IntArray,
    j: int,
    k: int,
    where: IntArray,
    shift: IntArray,
) -> int:
    """The entries of c_j - c_k that are not 0, and their number; the columns are those of
    ``column_differences``."""
    a, end_a = ptr[j], ptr[j + 1]
    b, end_b = ptr[k], ptr[k + 1]
    n = 0
    while a < end_a or b < end_b:
        if b >= end_b or (a < end_a and index[a] < index[b]):
            where[n], shift[n] = index[a], value[a]
            a += 1
        elif a >= end_a or index[b] < index[a]:
            where[n], shift[n] = index[b], -value[b]
            b += 1
        else:
            where[n], shift[n] = index[a], value[a] - value[b]
            a += 1
            b += 1
        if shift[n] != 0:
            n += 1
    return n


@kernel
def column_differences(
    ptr: IntArray,
    index: IntArray,
    value: IntArray,
    pairs: IntArray,
    where: IntArray,
    shift: IntArray,
    start: IntArray,
    atom: IntArray,
    diff: IntArray,
) -> int:
    """Sparse differences c_j - c_k of the columns of ``pairs``, rows (j, k), pair after pair.

    Column j has entries value[i] at index[i], increasing, for ptr[j] <= i < ptr[j+1].  The
    difference of pair q has entries diff[i] at atom[i] from i = start[q] on.  With empty ``atom``
    they are only counted.  Returns the number of entries.
    """
    at = 0
    for q in range(pairs.shape[0]):
        start[q] = at
        n = difference(ptr, index, value, pairs[q, 0], pairs[q, 1], where, shift)
        if atom.size:
            atom[at : at + n] = where[:n]
            diff[at : at + n] = shift[:n]
        at += n
    start[pairs.shape[0]] = at
    return at


@kernel
def survey(
    ptr: IntArray,
    index: IntArray,
    value: IntArray,
    unit: int,
    law: IntArray,
    weight: FloatArray,
    low: int,
    pairs: IntArray,
    where: IntArray,
    shift: IntArray,
    used: IntArray,
    entries: IntArray,
    size: FloatArray,
) -> None:
    """Per pair: the number of its plain factors, and the sum of weight[law] * shift^2 over them.

    used[law, shift - low] becomes 1 for every plain factor that occurs.
    """
    for q in range(pairs.shape[0]):
        n = difference(ptr, index, value, pairs[q, 0], pairs[q, 1], where, shift)
        total = 0.0
        count = 0
        for i in range(n):
            if where[i] != unit:
                noise = law[where[i]]
                used[noise, shift[i] - low] = 1
                total += weight[noise] * float(shift[i]) * float(shift[i])
                count += 1
        entries[q] = count
        size[q] = total


@kernel
def list_factors(
    ptr: IntArray,
    index: IntArray,
    value: IntArray,
    unit: int,
    law: IntArray,
    low: int,
    pairs: IntArray,
    where: IntArray,
    shift: IntArray,
    factor_of: IntArray,
    central: IntArray,
    start: IntArray,
    factor: IntArray,
) -> None:
    """Factors of pair q from factor[start[q] - start[0]] on: factor_of[law, shift - low], in
    increasing order, then central[q]."""
    for q in range(pairs.shape[0]):
        n = difference(ptr, index, value, pairs[q, 0], pairs[q, 1], where, shift)
        first = start[q] - start[0]
        at = first
        for i in range(n):
            if where[i] != unit:
                found = factor_of[law[where[i]], shift[i] - low]
                place = at
                while place > first and factor[place - 1] > found:
                    factor[place] = factor[place - 1]
                    place -= 1
                factor[place] = found
                at += 1
        factor[at] = central[q]
