"""From integer columns to workloads: every ordered pair of columns, factors shared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from accounting.base.arrays import IntArray
from accounting.base.errors import TooLarge
from accounting.evaluator.view_pairs import CentralMixture, ViewPairs
from accounting.model.noise import NoiseSum

Differences = tuple[IntArray, IntArray, IntArray]
_MOST_ENTRIES = 1 << 30
"""That are compared to find all differences."""
_MOST_FACTORS = 1 << 26
"""Of all pairs together: about 64 bytes each while they are sorted out."""


def ordered_pairs(columns: int) -> IntArray:
    """(j, k) with j != k, row by row, in the order of every view_pairs below."""
    j, k = np.divmod(np.arange(columns * columns), columns)
    pairs: IntArray = np.stack([j, k], axis=1)[j != k]
    return pairs


def differences(columns: Sequence[dict[int, int]]) -> Differences:
    """(start, atom, difference) of all ordered pairs of sparse columns."""
    from accounting.evaluator.kernels import column_differences

    if 2 * len(columns) * sum(map(len, columns)) > _MOST_ENTRIES:
        raise TooLarge(
            f"{len(columns):,} columns with {sum(map(len, columns)):,} entries that are not 0 have "
            "too many differences: take atoms that refer to fewer others, or evaluate fewer pairs"
        )
    entries = [sorted(column.items()) for column in columns]
    ptr = np.concatenate([[0], np.cumsum([len(column) for column in entries])]).astype(np.int64)
    flat = np.array([item for column in entries for item in column], np.int64).reshape(-1, 2)
    index, value = np.ascontiguousarray(flat[:, 0]), np.ascontiguousarray(flat[:, 1])
    start = np.empty(len(columns) * (len(columns) - 1) + 1, np.int64)
    none = np.empty(0, np.int64)
    n = column_differences(ptr, index, value, start, none, none)
    _affordable(n)
    atom, diff = np.empty(n, np.int64), np.empty(n, np.int64)
    if n:
        column_differences(ptr, index, value, start, atom, diff)
    return start, atom, diff


def linear_query_pairs(noises: tuple[NoiseSum, ...], found: Differences) -> ViewPairs:
    """Pairs of columns of a linear query: a product of shifted noises each."""
    start, atom, diff = found
    plain, factor = _distinct(atom, diff)
    return ViewPairs(noises, plain, start, factor)


def protocol_pairs(
    noises: tuple[NoiseSum, ...], found: Differences, unit: int, step: float, inputs: IntArray
) -> ViewPairs:
    """Ordered pairs of ``inputs`` of the protocol (exact_view.md, Theorem 2).

    ``noises[unit]`` is W, the noise of {-1, +1} with the geometric part of the central noise;
    ``step`` is eps_central / max_value.
    """
    pairs = inputs[ordered_pairs(len(inputs))]
    return _with_central(noises, found, unit, step, pairs[:, 0] - pairs[:, 1])


def shifted_pairs(
    noises: tuple[NoiseSum, ...],
    shifts: Sequence[Mapping[int, int]],
    kappa: IntArray,
    unit: int,
    step: float,
) -> ViewPairs:
    """Any pairs: the shift of each noise, zeros left out, and the change of the sum."""
    start = np.concatenate([[0], np.cumsum([len(shift) for shift in shifts])]).astype(np.int64)
    atom = np.fromiter((i for shift in shifts for i in shift), np.int64, int(start[-1]))
    diff = np.fromiter((a for shift in shifts for a in shift.values()), np.int64, int(start[-1]))
    return _with_central(noises, (start, atom, diff), unit, step, kappa)


def _with_central(
    noises: tuple[NoiseSum, ...], found: Differences, unit: int, step: float, kappa: IntArray
) -> ViewPairs:
    start, atom, diff = found
    owner = np.repeat(np.arange(len(kappa)), np.diff(start))
    at_unit = atom == unit
    a_0 = np.zeros(len(kappa), np.int64)
    a_0[owner[at_unit]] = diff[at_unit]
    mix, central = _distinct(np.abs(kappa), a_0 + np.minimum(kappa, 0))
    plain, factor = _distinct(atom[~at_unit], diff[~at_unit])
    # each pair: its plain factors, then its central one
    counts = np.bincount(owner[~at_unit], minlength=len(kappa)) + 1
    new_start = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    merged = np.empty(new_start[-1], np.int64)
    last = new_start[1:] - 1
    merged[last] = central + len(plain)
    plain_places = np.ones(len(merged), bool)
    plain_places[last] = False
    merged[plain_places] = factor
    return ViewPairs(noises, plain, new_start, merged, CentralMixture(unit, step, mix))


def moved_pairs(top: int) -> IntArray:
    """(j, k) with 1 <= j, k <= top, row by row: a value j that becomes k of another coordinate."""
    j, k = np.divmod(np.arange(top * top), top)
    pairs: IntArray = np.stack([j, k], axis=1) + 1
    return pairs


def with_moved_pairs(view_pairs: ViewPairs, top: int) -> ViewPairs:
    """All ordered pairs of 0..top, and after them the moves to another coordinate."""
    pairs = moved_pairs(top)
    two = joined(view_pairs, np.stack([pairs[:, 0] * top, pairs[:, 1] - 1], axis=1))  # (j,0), (0,k)
    start = np.concatenate([view_pairs.start, view_pairs.start[-1] + two.start[1:]])
    return replace(two, start=start, factor=np.concatenate([view_pairs.factor, two.factor]))


def _affordable(factors: int) -> None:
    if factors > _MOST_FACTORS:
        raise TooLarge(
            f"all pairs together have {factors:,} factors, more than the {_MOST_FACTORS:,} that "
            "fit into memory: take atoms that refer to fewer others, or evaluate fewer pairs"
        )


def joined(view_pairs: ViewPairs, rows: IntArray) -> ViewPairs:
    """Independent products: pair i is the product of the pairs rows[i] of the view_pairs."""
    lengths = np.diff(view_pairs.start)[rows]
    _affordable(int(lengths.sum()))
    pieces = [
        view_pairs.factor[view_pairs.start[q] : view_pairs.start[q + 1]] for q in rows.ravel()
    ]
    start = np.concatenate([[0], np.cumsum(lengths.sum(axis=1))]).astype(np.int64)
    factor = np.concatenate(pieces) if pieces else np.zeros(0, np.int64)
    return replace(view_pairs, start=start, factor=factor)


def _distinct(first: IntArray, second: IntArray) -> tuple[IntArray, IntArray]:
    """The distinct rows (first, second), and for every input row the index of its own."""
    if not len(first):
        return np.zeros((0, 2), np.int64), np.zeros(0, np.int64)
    low = int(second.min())
    span = int(second.max()) - low + 1
    keys, inverse = np.unique(first * span + (second - low), return_inverse=True)
    rows = np.stack([keys // span, keys % span + low], axis=1)
    return rows, inverse.astype(np.int64)
