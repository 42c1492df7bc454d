"""From integer columns to pairs of views: every ordered pair of columns, with factors shared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from accounting.base.arrays import IntArray, distinct
from accounting.base.errors import TooLarge
from accounting.evaluator.view_pairs import CentralMixture, ViewPairs
from accounting.model.change import SUBSTITUTION, Adjacency
from accounting.model.laws.noise import NoiseSum

_MOST_ENTRIES = 1 << 30
"""Largest number of entries that are compared to find all differences."""
_MOST_FACTORS = 1 << 26
"""Largest number of factors of all pairs together: about 64 bytes each while they are sorted."""


@dataclass(frozen=True)
class Differences:
    """Pair q shifts the noise ``atom[i]`` by ``shift[i]`` for start[q] <= i < start[q + 1]."""

    start: IntArray
    atom: IntArray
    shift: IntArray


def ordered_pairs(columns: int) -> IntArray:
    """(j, k) with j != k, row by row: the order of all pairs of columns in this module."""
    j, k = np.divmod(np.arange(columns * columns), columns)
    pairs: IntArray = np.stack([j, k], axis=1)[j != k]
    return pairs


def changed_pairs(max_value: int, adjacency: Adjacency) -> IntArray:
    """(j, k) of all changes within a coordinate, in the order of ``EveryChange``."""
    if adjacency == SUBSTITUTION:
        return ordered_pairs(max_value + 1)
    values, none = np.arange(1, max_value + 1), np.zeros(max_value, np.int64)
    return np.concatenate([np.stack([values, none], axis=1), np.stack([none, values], axis=1)])


@dataclass(frozen=True)
class SparseColumns:
    """Column j has the entries ``value[i]`` at ``atom[i]``, increasing, for
    start[j] <= i < start[j + 1]."""

    start: IntArray
    atom: IntArray
    value: IntArray

    @staticmethod
    def of(columns: Sequence[Mapping[int, int]]) -> SparseColumns:
        entries = [sorted(column.items()) for column in columns]
        start = np.concatenate([[0], np.cumsum([len(column) for column in entries])])
        flat = np.array([item for column in entries for item in column], np.int64).reshape(-1, 2)
        atom, value = np.ascontiguousarray(flat[:, 0]), np.ascontiguousarray(flat[:, 1])
        return SparseColumns(start.astype(np.int64), atom, value)

    def differences(self, pairs: IntArray) -> Differences:
        """Differences c_j - c_k for the rows (j, k) of ``pairs``."""
        from accounting.evaluator.pairs.block_kernels import column_differences

        start = np.empty(len(pairs) + 1, np.int64)
        none = np.empty(0, np.int64)
        key = self.start, self.atom, self.value, np.ascontiguousarray(pairs, np.int64)
        scratch = self.scratch()
        n = column_differences(*key, *scratch, start, none, none)
        _check_memory(n)
        atom, shift = np.empty(n, np.int64), np.empty(n, np.int64)
        if n:
            column_differences(*key, *scratch, start, atom, shift)
        return Differences(start, atom, shift)

    def scratch(self) -> tuple[IntArray, IntArray]:
        """Room for the difference of two columns."""
        longest = 2 * int(np.diff(self.start).max(initial=0)) + 1
        return np.empty(longest, np.int64), np.empty(longest, np.int64)


def differences(columns: Sequence[Mapping[int, int]], law: IntArray | None = None) -> Differences:
    """Differences c_j - c_k of all ordered pairs of sparse columns; ``law`` as for
    ``chosen_differences``."""
    if 2 * len(columns) * sum(map(len, columns)) > _MOST_ENTRIES:
        raise TooLarge(
            f"{len(columns):,} columns with {sum(map(len, columns)):,} entries that are not 0 have "
            "too many differences: take atoms that refer to fewer others, or evaluate fewer pairs"
        )
    return chosen_differences(columns, ordered_pairs(len(columns)), law)


def chosen_differences(
    columns: Sequence[Mapping[int, int]] | SparseColumns,
    pairs: IntArray,
    law: IntArray | None = None,
) -> Differences:
    """Differences c_j - c_k of sparse columns, for the rows (j, k) of ``pairs``.

    Atoms whose noises have the same law may share one entry of ``ViewPairs.noises``: ``law`` maps
    the index of an atom to that of its law, and is the identity by default.  A pair may then shift
    the same noise by the same amount more than once; these are independent factors.
    """
    sparse = columns if isinstance(columns, SparseColumns) else SparseColumns.of(columns)
    found = sparse.differences(pairs)
    return found if law is None else replace(found, atom=law[found.atom])


def linear_query_pairs(noises: tuple[NoiseSum, ...], found: Differences) -> ViewPairs:
    """Pairs of columns of a linear query, each a product of shifted noises."""
    plain, factor = _distinct(found.atom, found.shift)
    return ViewPairs(noises, plain, found.start, factor)


def protocol_pairs(
    noises: tuple[NoiseSum, ...], found: Differences, unit: int, step: float, inputs: IntArray
) -> ViewPairs:
    """Ordered pairs of ``inputs`` of the protocol (exact_view.md, Theorem 2).

    ``noises[unit]`` is W, the noise of {-1, +1} with the geometric part of the central noise, which
    no other atom may share; ``step`` is eps_central / max_value.
    """
    pairs = inputs[ordered_pairs(len(inputs))]
    return _with_central(noises, found, unit, step, pairs[:, 0] - pairs[:, 1])


def chosen_pairs(
    noises: tuple[NoiseSum, ...],
    columns: Sequence[Mapping[int, int]] | SparseColumns,
    pairs: IntArray,
    unit: int,
    step: float,
    law: IntArray | None = None,
) -> ViewPairs:
    """The pairs (j, k) of inputs that ``pairs`` lists, an array of shape (n, 2).

    ``columns[j]`` is the column of the input j; ``noises``, ``unit`` and ``step`` are as for
    ``protocol_pairs``, with ``noises`` and ``unit`` counted by law if ``law`` is given
    (``chosen_differences``).
    """
    found = chosen_differences(columns, pairs, law)
    return _with_central(noises, found, unit, step, pairs[:, 0] - pairs[:, 1])


def by_law(noises: Sequence[NoiseSum], unit: int) -> tuple[tuple[NoiseSum, ...], IntArray]:
    """The distinct laws of the noises of all atoms, and for every atom the index of its law.

    The noise of the atom ``unit`` stays alone even if another one equals it.
    """
    known: dict[tuple[NoiseSum, bool], int] = {}
    law = [known.setdefault((noise, i == unit), len(known)) for i, noise in enumerate(noises)]
    return tuple(noise for noise, _ in known), np.array(law, np.int64)


def shifted_pairs(
    noises: tuple[NoiseSum, ...],
    shifts: Sequence[Sequence[tuple[int, int]]],
    kappa: IntArray,
    unit: int,
    step: float,
) -> ViewPairs:
    """Arbitrary pairs: noises with their shifts, none of them 0, and kappa, the change of the
    sum."""
    start = np.concatenate([[0], np.cumsum([len(shift) for shift in shifts])]).astype(np.int64)
    flat = np.array([item for shift in shifts for item in shift], np.int64).reshape(-1, 2)
    found = Differences(start, flat[:, 0], flat[:, 1])
    return _with_central(noises, found, unit, step, kappa)


def _with_central(
    noises: tuple[NoiseSum, ...], found: Differences, unit: int, step: float, kappa: IntArray
) -> ViewPairs:
    """Each pair has its plain factors first, then one central factor."""
    owner = np.repeat(np.arange(len(kappa)), np.diff(found.start))
    at_unit = found.atom == unit
    a_0 = np.zeros(len(kappa), np.int64)
    a_0[owner[at_unit]] = found.shift[at_unit]
    mix, central = _distinct(np.abs(kappa), a_0 + np.minimum(kappa, 0))
    plain, plain_factor = _distinct(found.atom[~at_unit], found.shift[~at_unit])
    counts = np.bincount(owner[~at_unit], minlength=len(kappa)) + 1
    start = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    last = start[1:] - 1
    factor = np.empty(start[-1], np.int64)
    factor[last] = central + len(plain)
    is_plain = np.ones(len(factor), bool)
    is_plain[last] = False
    factor[is_plain] = plain_factor
    return ViewPairs(noises, plain, start, factor, CentralMixture(unit, step, mix))


def with_moved_pairs(view_pairs: ViewPairs, top: int) -> ViewPairs:
    """All ordered pairs of 0..top, and after them those of a value that moves.

    The value j of one coordinate becomes k of another, 1 <= j, k <= top, row by row: the product
    of the pairs (j, 0) and (0, k).
    """
    j, k = np.divmod(np.arange(top * top), top)  # each less one
    moved = joined(view_pairs, np.stack([(j + 1) * top, k], axis=1))
    start = np.concatenate([view_pairs.start, view_pairs.start[-1] + moved.start[1:]])
    return replace(moved, start=start, factor=np.concatenate([view_pairs.factor, moved.factor]))


def joined(view_pairs: ViewPairs, rows: IntArray) -> ViewPairs:
    """Independent products: pair i is the product of the pairs ``rows[i]``."""
    counts = np.diff(view_pairs.start)[rows].sum(axis=1)
    _check_memory(int(counts.sum()))
    start = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    return replace(view_pairs, start=start, factor=view_pairs.factors_of(rows.ravel())[1])


def _check_memory(factors: int) -> None:
    if factors > _MOST_FACTORS:
        raise TooLarge(
            f"all pairs together have {factors:,} factors, more than the {_MOST_FACTORS:,} that "
            "fit into memory: take atoms that refer to fewer others, or evaluate fewer pairs"
        )


def _distinct(first: IntArray, second: IntArray) -> tuple[IntArray, IntArray]:
    """The distinct rows (first, second), and for every input row the index of its own."""
    if not len(first):
        return np.zeros((0, 2), np.int64), np.zeros(0, np.int64)
    low = int(second.min())
    span = int(second.max()) - low + 1
    keys, inverse = distinct(first * span + (second - low))
    return np.stack([keys // span, keys % span + low], axis=1), inverse
