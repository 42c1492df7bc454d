"""Numba kernel that compares pairs (covered_pairs.md, Theorem 2)."""

from __future__ import annotations

import numpy as np

from accounting.base.arrays import IntArray
from accounting.base.jit import kernel


@kernel
def covers(
    start: IntArray, code: IntArray, kind: IntArray, size: IntArray, one: int, other: int
) -> bool:
    """Tell whether the factors of pair ``one`` can be matched to those of ``other``.

    Both lists of codes are increasing, that is, by kind and then by decreasing size: if there is a
    match, the largest of one kind can be matched to the largest, and so on.
    """
    at, end = start[other], start[other + 1]
    if start[one + 1] - start[one] > end - at:
        return False
    for position in range(start[one], start[one + 1]):
        wanted = code[position]
        while at < end and kind[code[at]] < kind[wanted]:
            at += 1
        if at == end or kind[code[at]] != kind[wanted] or size[code[at]] < size[wanted]:
            return False
        at += 1
    return True


@kernel
def find_covers(
    order: IntArray,
    group: IntArray,
    bound: IntArray,
    start: IntArray,
    code: IntArray,
    kind: IntArray,
    size: IntArray,
    most: int,
    cover: IntArray,
) -> None:
    """cover[q] = a pair that covers q, or q itself if none was found.

    Pairs are compared with at most 2 * ``most`` others of their group that are kept, the first and
    the latest of them; a pair is covered only by one whose ``bound`` is at least its own.
    """
    kept = np.empty(order.size, np.int64)
    count = 0
    for position in range(order.size):
        q = order[position]
        if position == 0 or group[q] != group[order[position - 1]]:
            count = 0
        cover[q] = q
        for i in range(min(count, 2 * most)):
            other = kept[i if i < most else count - 1 - (i - most)]
            if bound[other] >= bound[q] and covers(start, code, kind, size, q, other):
                cover[q] = other
                break
        if cover[q] == q:
            kept[count] = q
            count += 1
