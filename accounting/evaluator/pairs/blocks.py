"""Upper bounds for all ordered pairs of a large protocol, block by block.

The pairs are grouped by slack, what the central noise leaves of eps, and every group has a grid of
its own (discretisation.md, Theorem 3, holds for any grid).  Within a group they are listed by b and
then by m, so that each recurrence over the cases of a central factor serves one block.  A pair
whose Chernoff bound is below the level of interest needs no more than that; the transform bounds
the others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import numpy as np

from accounting.base.arrays import FloatArray, IntArray
from accounting.base.deadline import check_time
from accounting.base.enclosure import counted
from accounting.base.errors import TooLarge
from accounting.base.progress import Progress, silent
from accounting.base.threads import in_chunks
from accounting.evaluator.build_view_pairs import SparseColumns, chosen_pairs
from accounting.evaluator.evaluate import MEMORY_LIMIT, coarse_estimate
from accounting.evaluator.grid_plan import GridPlan, Refinement, choose_plan
from accounting.evaluator.pair_error_terms import PairTerms, cheap_bounds
from accounting.evaluator.pairs.covered_pairs import covered_pairs
from accounting.evaluator.spectra import (
    RowSpectra,
    correlate,
    plain_spectra,
    shift_spectra,
    transform,
)
from accounting.evaluator.tilted_losses import LARGEST_GRID, TiltedLosses, TiltedRows, tilt_rows
from accounting.evaluator.view_pairs import CentralMixture, ViewPairs
from accounting.model.laws.noise import NoiseSum

_RATIO = 1.5
"""Ratio of the slacks of one group; rule of thumb."""
_LEAST_SLACK, _SMALLEST_EPS = 0.02, 0.05
"""Slack of the last group, as a share of eps or of this eps, if that is larger."""
_PAIRS, _MIXTURES = 1 << 19, 1 << 14
"""Most pairs and most central factors of one block, unless a single b has more."""
_SAMPLE = 512
"""Number of pairs, the worst by their variance, that choose the grid of a group."""
_SHARE = 0.01
"""Accuracy of the grids, relative to the level of interest."""
_ATTEMPTS, _PROGRESS = 4, 0.9
"""Most grids for one pair, and the share of the pairs left over at which another one is no use."""
_MOST_SHIFTS = 1 << 27
"""Largest number of shifts of all laws, used or not: half a GiB."""


@dataclass(frozen=True)
class InputPairs:
    """All ordered pairs (j, k) of the inputs 0..top, without a list of them.

    ``noises`` are the distinct laws and ``law[i]`` is that of atom i; ``unit`` is the atom
    {-1, +1}, whose law is W and nobody else's; ``step`` is eps_central / max_value.
    """

    noises: tuple[NoiseSum, ...]
    columns: SparseColumns
    law: IntArray
    unit: int
    step: float
    releases: int = 1

    @property
    def top(self) -> int:
        return len(self.columns.start) - 2

    @property
    def pair_count(self) -> int:
        return self.top * (self.top + 1)

    @cached_property
    def unit_entries(self) -> IntArray:
        """Per input, the entry of {-1, +1} in its column."""
        columns = self.columns
        owner = np.repeat(np.arange(self.top + 1), np.diff(columns.start))
        entries = np.zeros(self.top + 1, np.int64)
        at_unit = columns.atom == self.unit
        entries[owner[at_unit]] = columns.value[at_unit]
        return entries

    def chosen(self, pairs: IntArray) -> ViewPairs:
        """The pairs (j, k) that ``pairs`` lists, an array of shape (n, 2)."""
        unit = int(self.law[self.unit])
        found = chosen_pairs(self.noises, self.columns, pairs, unit, self.step, self.law)
        return replace(found, releases=self.releases)

    def position(self, pairs: IntArray) -> IntArray:
        """The places of pairs in the list of all, row by row."""
        j, k = pairs[:, 0].astype(np.int64), pairs[:, 1].astype(np.int64)
        return np.asarray(j * self.top + k - (k > j))

    def at(self, positions: IntArray) -> IntArray:
        """The pairs (j, k) at these places of the list of all."""
        j, k = np.divmod(positions, self.top)
        return np.stack([j, k + (k >= j)], axis=1)


@dataclass(frozen=True)
class Group:
    """Pairs with m_first <= |j - k| < m_end, listed by b and m, with all factors they use.

    ``plain`` are the plain factors, ``factor_of[law, shift - low]`` their indices, ``within`` the
    ends of the shifts of W, and ``entries`` and ``size`` per pair the number of plain factors and
    the variance of the loss, roughly.
    """

    source: InputPairs
    pairs: IntArray
    plain: IntArray
    factor_of: IntArray
    low: int
    within: tuple[int, int]
    entries: IntArray
    size: FloatArray

    def b_and_m(self, pairs: IntArray) -> tuple[IntArray, IntArray]:
        unit = self.source.unit_entries
        j, k = pairs[:, 0], pairs[:, 1]
        kappa = (j - k).astype(np.int64)
        return unit[j] - unit[k] + np.minimum(kappa, 0), np.abs(kappa)

    def score(self, eps: float) -> FloatArray:
        """Per pair, the variance of the loss, roughly, over the square of the slack."""
        m = np.abs(self.pairs[:, 0] - self.pairs[:, 1])
        slack = eps - self.source.releases * self.source.step * m
        return np.asarray(self.size / np.maximum(slack, _least_slack(eps)) ** 2)

    def likely_worst(self, eps: float, count: int) -> IntArray:
        return np.sort(_largest(self.score(eps), count))

    def blocks(self) -> Iterator[slice]:
        """Ranges of ``pairs``, cut where b or m changes."""
        b, m = self.b_and_m(self.pairs)
        new = np.flatnonzero((np.diff(b) != 0) | (np.diff(m) != 0)) + 1
        edges = np.concatenate([[0], new, [len(self.pairs)]])
        begin = 0
        while begin < len(edges) - 1:
            most = int(np.searchsorted(edges, edges[begin] + _PAIRS, side="right")) - 1
            end = max(begin + 1, min(most, begin + _MIXTURES, len(edges) - 1))
            yield slice(int(edges[begin]), int(edges[end]))
            begin = end

    def restricted(self, rows: IntArray) -> Group:
        """These pairs with only the factors they use."""
        part = self.view_pairs(rows)
        used = np.unique(part.factor)
        used = used[used < len(self.plain)]
        plain = self.plain[used]
        factor_of = np.zeros_like(self.factor_of)
        factor_of[plain[:, 0], plain[:, 1] - self.low] = np.arange(len(used))
        b, m = self.b_and_m(self.pairs[rows])
        return replace(
            self,
            pairs=self.pairs[rows],
            plain=plain,
            factor_of=factor_of,
            within=(int(b.min()), int((b + m).max())),
            entries=self.entries[rows],
            size=self.size[rows],
        )

    def view_pairs(self, rows: IntArray | slice) -> ViewPairs:
        """These pairs with the numbering of factors of the whole group."""
        from accounting.evaluator.pairs.block_kernels import list_factors

        pairs, source = np.ascontiguousarray(self.pairs[rows]), self.source
        b, m = self.b_and_m(pairs)
        span = source.top + 1
        keys, central = np.unique(b * span + m, return_inverse=True)
        mix = np.stack([keys % span, keys // span], axis=1)
        start = np.concatenate([[0], np.cumsum(self.entries[rows] + 1)]).astype(np.int64)
        factor = np.empty(start[-1], np.int64)
        central = central.astype(np.int64) + len(self.plain)

        def work(a: int, z: int) -> None:
            part = slice(int(start[a]), int(start[z]))
            listed = (
                *source.columns.scratch(),
                self.factor_of,
                central[a:z],
                start[a : z + 1],
                factor[part],
            )
            list_factors(*_key(source), self.low, pairs[a:z], *listed)

        in_chunks(work, len(pairs), smallest=10_000)
        noise = int(source.law[source.unit])
        mixed = CentralMixture(noise, source.step, mix, self.within)
        return ViewPairs(source.noises, self.plain, start, factor, mixed, source.releases)


def _key(source: InputPairs) -> tuple[IntArray, IntArray, IntArray, int, IntArray]:
    columns = source.columns
    return columns.start, columns.atom, columns.value, source.unit, source.law


def _least_slack(eps: float) -> float:
    return _LEAST_SLACK * max(eps, _SMALLEST_EPS)


def slack_edges(source: InputPairs, eps: float) -> list[int]:
    """The values of m at which a new group begins, and the end."""
    edges, top, releases = [1], source.top, source.releases
    slack = np.maximum(eps - releases * source.step * np.arange(top + 2), _least_slack(eps))
    while edges[-1] <= top:
        beyond = np.flatnonzero(slack[edges[-1]] > _RATIO * slack)
        edges.append(min(max(int(beyond[0]), edges[-1] + 1) if len(beyond) else top + 1, top + 1))
    return edges


def group_of(source: InputPairs, m_first: int, m_end: int) -> Group:
    from accounting.evaluator.pairs.block_kernels import count_by_b, list_by_b, survey

    unit = source.unit_entries
    reach = int(unit.max() - unit.min())
    low_b = -reach - m_end
    count = np.empty(2 * reach + m_end + 2, np.int64)
    count_by_b(unit, m_first, m_end, low_b, count)
    place = np.concatenate([[0], np.cumsum(count)[:-1]])
    pairs = np.empty((int(count.sum()), 2), np.int64)
    list_by_b(unit, m_first, m_end, low_b, place, pairs)
    value = source.columns.value
    reach = max(int(value.max(initial=0)), 0) - min(int(value.min(initial=0)), 0)
    if len(source.noises) * (2 * reach + 1) > _MOST_SHIFTS:
        raise TooLarge(
            f"{len(source.noises):,} different noises with shifts up to {reach:,} are too many: "
            "let atoms share their noise, or evaluate fewer pairs at a time"
        )
    used = np.zeros((len(source.noises), 2 * reach + 1), np.int64)
    entries, size = np.empty(len(pairs), np.int64), np.empty(len(pairs))
    weight = np.array([1 / noise.variance for noise in source.noises])

    def work(a: int, b: int) -> None:
        survey(
            *_key(source), weight, -reach, pairs[a:b], *source.columns.scratch(),
            used, entries[a:b], size[a:b],
        )  # fmt: skip

    in_chunks(work, len(pairs), smallest=10_000)
    plain = np.argwhere(used)
    factor_of = used
    factor_of[plain[:, 0], plain[:, 1]] = np.arange(len(plain))
    plain[:, 1] -= reach
    group = Group(source, pairs, plain, factor_of, -reach, (0, 0), entries, size)
    b, m = group.b_and_m(pairs)
    farthest = np.maximum(np.abs(b), np.abs(b + m)).astype(float)
    size += weight[source.law[source.unit]] * farthest**2
    within = (int(b.min()), int((b + m).max())) if len(pairs) else (0, 0)
    return replace(group, within=within)


@dataclass
class _Pass:
    """The evaluation of one group with one grid; the spectra are made when they are needed."""

    group: Group
    plan: GridPlan
    rows: TiltedRows
    known: tuple[RowSpectra, RowSpectra] | None = None

    def upper(self, rows: slice, level: float) -> tuple[FloatArray, IntArray]:
        """Upper bounds of a block; those that are at most ``level`` may be loose.

        Also, per pair, the one of the block that covers it and whose bound it has, or itself.
        """
        block = self.group.view_pairs(rows)
        tilted = self.rows.mixed(block.central)
        upper = cheap_bounds(block, tilted.factors, self.plan)
        keep, cover = np.flatnonzero(upper > level), np.arange(len(upper))
        if len(keep):
            cover[keep] = keep[covered_pairs(_part(block, keep)).cover]
            alone = keep[cover[keep] == keep]
            upper[alone] = np.fmin(upper[alone], self._fine(_part(block, alone), tilted))
            upper[keep] = np.fmin(upper[keep], upper[cover[keep]])
        return upper, cover

    def _fine(self, part: ViewPairs, tilted: TiltedLosses) -> FloatArray:
        if self.known is None:
            plain = plain_spectra(tilted, np.arange(len(part.plain)))
            self.known = plain, shift_spectra(tilted)
        every = np.arange(part.pair_count)
        terms = PairTerms.of(part, tilted.factors, self.plan)
        spectra = transform(part, tilted, every, self.known)
        return terms.bounds(*correlate(spectra, terms, every), every).upper


def _part(block: ViewPairs, pairs: IntArray) -> ViewPairs:
    """These pairs with the numbering of factors of the block."""
    start, factor = block.factors_of(pairs)
    return replace(block, start=start, factor=factor)


def _largest_grid(group: Group) -> int:
    rows = len(group.plain) + group.within[1] - group.within[0] + _MIXTURES
    room = MEMORY_LIMIT // (16 * (rows + 64))
    return min(LARGEST_GRID, 1 << max(8, room.bit_length() - 1))


def _prepared(group: Group, sample: IntArray, eps: float, level: float) -> _Pass:
    """A grid for the group, chosen for the pairs of the sample."""
    chosen = group.view_pairs(sample)
    wanted = Refinement(eps=eps, gap=_SHARE, absolute=0.5 * level)
    coarse = coarse_estimate(chosen, wanted)
    plan = choose_plan(coarse.moments, coarse.saddle, wanted, _largest_grid(group))
    return _Pass(group, plan, tilt_rows(chosen, coarse.tables, plan))


def _largest(values: FloatArray, count: int) -> IntArray:
    if len(values) <= count:
        return np.arange(len(values))
    return np.argpartition(-values, count)[:count]


def upper_bounds(
    source: InputPairs,
    eps: float,
    level: float,
    take: Callable[[IntArray, FloatArray, IntArray], None],
    progress: Progress = silent,
) -> None:
    """Call ``take(pairs, upper, compared)`` for groups of all ordered pairs.

    ``upper`` are upper bounds of the divergences at ``eps``; those that are at most ``level`` may
    be loose, those above are within a percent or so.  The indices ``compared`` are those of pairs
    that have the bound of another pair of the group, which covers them.
    """
    for m_first, m_end in pairwise(slack_edges(source, eps)):
        check_time()
        group = group_of(source, m_first, m_end)
        take(group.pairs, *group_upper(group, eps, level, progress))


def group_upper(
    group: Group, eps: float, level: float, progress: Progress
) -> tuple[FloatArray, IntArray]:
    """The bounds of one group, and the pairs that others cover; pairs that a grid serves badly get
    another one."""
    upper, urgent = np.ones(len(group.pairs)), group.score(eps)
    left = np.arange(len(group.pairs))
    cover = np.arange(len(group.pairs))
    for _ in range(_ATTEMPTS):
        part = group if len(left) == len(group.pairs) else group.restricted(left)
        sample = np.sort(_largest(urgent[left], _SAMPLE))
        work = _prepared(part, sample, eps, level)
        done = 0
        for rows in part.blocks():
            check_time()
            progress(
                f"bounding {done:,} of {counted(len(left), 'pair')} on a grid of "
                f"{work.plan.size:,} points"
            )
            places = left[rows]
            done += len(places)
            found, covers = work.upper(rows, level)
            upper[places], cover[places] = np.fmin(upper[places], found), places[covers]
        found = left[(upper[left] > level) & (cover[left] == left)]
        if len(found) > _PROGRESS * len(left) or not len(found):
            break
        left, urgent = found, upper
    while (cover != cover[cover]).any():  # a cover may have been covered on another grid
        cover = cover[cover]
    return np.fmin(upper, upper[cover]), np.flatnonzero(cover != np.arange(len(cover)))


@dataclass(frozen=True)
class PairsAbove:
    """The pairs (j, k) whose upper bounds exceed a level, with these bounds, and the largest upper
    bound of all pairs.  Pairs that a listed one covers are not listed (covered_pairs.md)."""

    pairs: IntArray
    upper: FloatArray
    largest: float


def pairs_above(
    source: InputPairs, eps: float, claim: float, progress: Progress = silent
) -> PairsAbove:
    """One rigorous pass over all ordered pairs: every pair that is not listed has a divergence of
    at most ``claim`` at ``eps``, or of at most that of a pair that is."""
    pairs: list[IntArray] = [np.zeros((0, 2), np.int64)]
    uppers: list[FloatArray] = [np.zeros(0)]
    largest = 0.0

    def take(block: IntArray, upper: FloatArray, compared: IntArray) -> None:
        nonlocal largest
        above = np.setdiff1d(np.flatnonzero(upper > claim), compared, assume_unique=True)
        pairs.append(block[above].astype(np.int64))
        uppers.append(upper[above])
        largest = max(largest, float(upper.max(initial=0.0)))

    upper_bounds(source, eps, claim, take, progress)
    return PairsAbove(np.concatenate(pairs), np.concatenate(uppers), largest)
