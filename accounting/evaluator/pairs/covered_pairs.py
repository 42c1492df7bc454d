"""Which pairs need no evaluation, because another pair has at least their divergence at every eps
(covered_pairs.md, Theorem 2)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from accounting.base.arrays import IntArray
from accounting.evaluator.view_pairs import ViewPairs

_COMPARISONS = 12
"""Number of kept pairs, of the first and of the latest of a group, that a pair is compared with."""


@dataclass(frozen=True)
class Covered:
    """``cover[q]`` has at least the divergence of pair q at every eps; it is q if q is kept."""

    cover: IntArray

    @property
    def kept(self) -> IntArray:
        return np.flatnonzero(self.cover == np.arange(len(self.cover)))

    @property
    def count(self) -> int:
        """Number of pairs that another one covers."""
        return len(self.cover) - len(self.kept)


def covered_pairs(view_pairs: ViewPairs) -> Covered:
    """Pairs that are covered by a pair that is kept; not all that there are are found."""
    from accounting.evaluator.pairs.covered_kernels import find_covers

    kind, size = _kinds(view_pairs)
    rank = np.lexsort((-size, kind))
    code_of = np.empty(len(rank), np.int64)
    code_of[rank] = np.arange(len(rank))
    group, bound = _groups(view_pairs)
    owner = np.repeat(np.arange(view_pairs.pair_count), np.diff(view_pairs.start))
    # the one central factor of a pair is compared by group and bound
    compared = (view_pairs.factor < len(view_pairs.plain)) | (group[owner] < 0)
    owner, code = owner[compared], code_of[view_pairs.factor[compared]]
    in_order = np.lexsort((code, owner))
    owner, code = owner[in_order], np.ascontiguousarray(code[in_order])
    counts = np.bincount(owner, minlength=view_pairs.pair_count)
    start = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    weight = _weights(view_pairs)
    total = np.bincount(owner, weight[rank][code], view_pairs.pair_count)
    # the largest come first; equal pairs have equal sums, and are neighbors
    mixed = np.bincount(owner, np.sin(1.0 + code), view_pairs.pair_count)
    order = np.lexsort((mixed, -total, -bound, group))
    cover = np.empty(view_pairs.pair_count, np.int64)
    ranked = kind[rank], size[rank]
    find_covers(order, group, bound, start, code, *ranked, _COMPARISONS, cover)
    return Covered(cover)


def _kinds(view_pairs: ViewPairs) -> tuple[IntArray, IntArray]:
    """Per factor: what it may be matched with, and its size.

    Plain factors of a log-concave noise are matched by noise and sign; all others are of a kind of
    their own.
    """
    n = len(view_pairs.plain)
    noise, shift = view_pairs.plain.T
    free = np.array([law.log_concave for law in view_pairs.noises], bool)[noise]
    kind = 2 * len(view_pairs.noises) + np.arange(view_pairs.factor_count)
    size = np.zeros(view_pairs.factor_count, np.int64)
    kind[:n][free] = (2 * noise + (shift < 0))[free]
    size[:n][free] = np.abs(shift)[free]
    return kind, size


def _weights(view_pairs: ViewPairs) -> np.ndarray:
    """Per factor, about the variance of its loss: larger ones are compared first."""
    weight = np.zeros(view_pairs.factor_count)
    variance = np.array([law.variance for law in view_pairs.noises])
    noise, shift = view_pairs.plain.T
    weight[: len(view_pairs.plain)] = shift.astype(float) ** 2 / variance[noise]
    return weight


def _groups(view_pairs: ViewPairs) -> tuple[IntArray, IntArray]:
    """Per pair: an index of those it may be compared with, and a number that must not be larger
    than that of the pair that covers it.

    The groups of pairs without exactly one central factor are negative: their central factors, if
    any, must be the same.
    """
    count, n = view_pairs.pair_count, len(view_pairs.plain)
    group, bound = np.full(count, -1, np.int64), np.zeros(count, np.int64)
    places = np.flatnonzero(view_pairs.factor >= n)
    pair = np.searchsorted(view_pairs.start, places, side="right") - 1
    central = view_pairs.central
    if central is None or not len(places):
        return group, bound
    single = np.bincount(pair, minlength=count)[pair] == 1
    pair, factor = pair[single], view_pairs.factor[places[single]] - n
    m, b = central.mix[factor].T
    ordered = view_pairs.noises[central.noise].log_concave
    above, below = ordered & (b >= 0), ordered & (b < 0) & (b + m <= 0)
    key = np.where(above, 0, np.where(below, 1, 2 + b - int(b.min(initial=0))))
    group[pair] = m * (int(key.max(initial=0)) + 1) + key
    bound[pair] = np.where(above, b, np.where(below, -b, 0))
    return group, bound
