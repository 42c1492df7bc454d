"""An upper bound of the central term by coupling the smaller of the two noises.

Given D, the view has M + z_0, z_0 the noise of {-1, +1}, and the law of M depends on |D|.  If the
values m and m' of M before and after the change are coupled, in any way, then the change is
dominated by a mixture of shifts of z_0 alone, shifted by m - m' more than if M were not there
(notary.md, section 5, Lemma 5).  The coupling by quantiles keeps m - m' at 0 or very few units.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np
from flint import arb
from numpy.lib.stride_tricks import sliding_window_view

from accounting.base.arrays import UNIT_ROUNDOFF, FloatArray, IntArray
from accounting.base.balls import double
from accounting.base.deadline import check_time
from accounting.base.errors import Undecided
from accounting.notary.dropouts.central_pairs import CentralPair, sum_error
from accounting.notary.factors import Factor, Group, Groups, TooFine, dominating
from accounting.notary.processes import in_processes

_LARGEST_ERROR = 1e-3
"""Relative error of a mass beyond which the coupling is given up (notary.md, Lemma 6)."""
_CUT = 1e-4
"""Share of the mass that may be clipped which is taken from the tails of M, and by leaving out
rare differences m - m'."""
_FAR = 0.1
"""Share of the mass that may be clipped which is taken from large |D|."""
_TINY = 1e-290
"""Smaller masses count as infinite losses: doubles lose their relative accuracy."""
_BLOCK = 16
"""Couplings that are computed together: more do not fit into fast memory."""


@dataclass(frozen=True)
class Cases:
    """The effect of a change of the sum by ``distance`` on the central noises, after coupling.

    Entry i is a set of outcomes with masses ``p`` and ``q`` under the two laws, ``loss`` the
    logarithm of their ratio, under which z_0 is shifted by first_shift + ``shift``, first_shift
    being the shift b of evaluator/exact_view.md, Theorem 2.  ``rest`` is mass of the first law
    that is in no entry.
    """

    shift: IntArray
    p: FloatArray
    q: FloatArray
    loss: FloatArray
    rest: float


@dataclass(frozen=True)
class _Differences:
    """Laws of m - m', one in every row: ``moved`` are the values, ``chance`` their probabilities,
    and ``left_out`` is what these leave out."""

    moved: IntArray
    chance: FloatArray
    left_out: FloatArray

    @property
    def reversed(self) -> _Differences:
        """The laws of m' - m."""
        return _Differences(-self.moved, self.chance, self.left_out)


@dataclass(frozen=True)
class OffsetLaws:
    """Per shift of z_0, relative to first_shift, a law on the grid that dominates the offsets of
    the loss with which the shift occurs; their total mass and ``infinite`` add up to one."""

    laws: Mapping[int, Factor]
    infinite: arb


class CoupledCentral:
    """Mixtures of shifts of z_0 that dominate the central term of every change."""

    def __init__(self, pair: CentralPair, clip: float) -> None:
        self.pair, self.clip = pair, clip
        self._known: dict[int, Cases] = {}
        self.shifts = cache(self._shifts)

    @cached_property
    def _totals(self) -> FloatArray:
        """P[D = x] for x >= 0, for noises within their tables."""
        size = self.pair.size
        return np.array([self.pair.joint(x)[::-1].sum() for x in range(size)])

    @cached_property
    def error(self) -> float:
        """Bounds the relative errors of the masses of all cases, and of their losses by twice that
        (notary.md, Lemma 6)."""
        pair, start = self.pair, self.pair.masses[0] * self.pair.masses[: self.pair.size]
        spread = 1 / (1 - double(self.pair.q) ** 2)
        with np.errstate(divide="ignore"):
            spread = max(spread, float((self._totals / np.maximum(start, 1e-300)).max()))
        return 4 * sum_error(4 * pair.size) * (1 + 1.01 * spread)

    @cached_property
    def _used(self) -> int:
        """Values of |D| that are looked at: where others have any mass, doubles may underflow."""
        return int(np.count_nonzero(self._totals > _TINY / (self.clip * _CUT)))

    @cached_property
    def _length(self) -> int:
        """Values of M that are looked at: P[M >= m | D = x] is below the cut for the last one."""
        size, used = self.pair.size, max(1, self._used)
        last = self._survivals(np.array([used - 1]), size)[0]
        return min(size, int(np.count_nonzero(last > self.clip * _CUT)) + 1)

    def _survivals(self, x: IntArray, length: int) -> FloatArray:
        """P[M >= m | D = x] for m < length, and a last column of zeros; the first is exactly 1."""
        joint = self.pair.masses[: self.pair.size] * self._windows[x]
        sums = np.cumsum(joint[:, ::-1], axis=1)[:, ::-1]
        out = np.zeros((len(x), length + 1))
        np.divide(sums[:, :length], sums[:, :1], out=out[:, :length])
        return out

    @cached_property
    def _windows(self) -> FloatArray:
        return sliding_window_view(self.pair.masses, self.pair.size)

    def _coupled(self, before: IntArray, after: IntArray) -> _Differences:
        """The laws of m - m' for |D| = before[i] and then after[i].

        Both are functions of one uniform number u: m is the last value with P[M >= m] >= u.  The
        numbers with a given m and m' are an interval, whose length is positive or taken for 0.
        """
        length = self._length
        ours, theirs = self._survivals(before, length), self._survivals(after, length)
        cut = np.maximum(self.clip * _CUT, np.maximum(ours[:, -2], theirs[:, -2]))[:, None]
        our_ends, their_ends = (np.maximum(s[:, 1:], cut) for s in (ours, theirs))

        def chance(moved: int) -> FloatArray:
            a, b = max(0, moved), max(0, -moved)
            n = length - abs(moved)
            top = np.minimum(ours[:, a : a + n], theirs[:, b : b + n])
            bottom = np.maximum(our_ends[:, a : a + n], their_ends[:, b : b + n])
            return np.asarray(np.maximum(top - bottom, 0.0).sum(axis=1))

        def exceeds(first: FloatArray, ends: FloatArray, by: int) -> bool:
            """Whether the first value can exceed the second by so much, or more."""
            return bool((first[:, by:length] > ends[:, : length - by]).any())

        found = {0: chance(0)}
        for sign, first, ends in ((1, ours, their_ends), (-1, theirs, our_ends)):
            by = 1
            while by < length and exceeds(first, ends, by):
                found[sign * by] = chance(sign * by)
                by += 1
        moved = sorted(found)
        return _Differences(np.array(moved), np.stack([found[j] for j in moved], axis=1), cut[:, 0])

    def prepare(self, distances: Iterable[int]) -> None:
        """Look at these distances on all cores."""
        missing = [distance for distance in distances if distance not in self._known]
        _ = self._totals, self.error  # before there are several processes
        self._known.update(zip(missing, in_processes(self._cases, missing), strict=True))

    def cases(self, distance: int) -> Cases:
        if distance not in self._known:
            self._known[distance] = self._cases(distance)
        return self._known[distance]

    def _cases(self, distance: int) -> Cases:
        size, totals = self.pair.size, self._totals
        parts: list[tuple[IntArray, FloatArray, FloatArray]] = []
        rest = 0.0
        rare = self.clip * _CUT / (2 * size)

        def add(case: IntArray, before: IntArray, after: IntArray, law: _Differences) -> None:
            nonlocal rest
            mass, other = (totals[d, None] * law.chance for d in (before, after))
            kept = (mass > max(rare, _TINY)) & (other > _TINY)
            shift = case[:, None] + law.moved
            parts.append((shift[kept], mass[kept], other[kept]))
            rest += float(mass[~kept].sum()) + float(totals[before] @ law.left_out)

        # D = x, D = -x - distance, and D = -i in between: exact_view.md, the proof of Theorem 2
        near, inner = np.arange(self._far(distance)), np.arange(1, distance)
        for x in _blocks(near):
            check_time()
            law = self._coupled(x, x + distance)
            add(np.zeros_like(x), x, x + distance, law)
            add(np.full_like(x, distance), x + distance, x, law.reversed)
        matched = np.maximum(inner, distance - inner) < self._used
        for i in _blocks(inner[matched]):
            add(i, i, distance - i, self._coupled(i, distance - i))
        rest += float(totals[inner[~matched & (inner < size)]].sum())
        rest += float(totals[len(near) :].sum()) + float(totals[len(near) + distance :].sum())
        if not any(len(p) for _, p, _ in parts):
            raise Undecided(
                "the central noise of this fraction of the users is too small beside max_value to "
                "hide anything: take a smaller central fraction"
            )
        shift, p, q = (np.concatenate(part) for part in zip(*parts, strict=True))
        return Cases(shift, p, q, np.log(p / q), rest * (1 + self.error))

    def _far(self, distance: int) -> int:
        """The first x so rare that D = x and beyond count as infinite losses."""
        beyond = np.cumsum(self._totals[::-1])[::-1]
        common = int(np.count_nonzero(beyond > self.clip * _FAR))
        return max(0, min(self._used - distance, common))

    def _shifts(self, distance: int) -> IntArray:
        return np.unique(self.cases(distance).shift)

    def offset_laws(self, distance: int, h: arb) -> OffsetLaws:
        """The offsets of all cases on the grid of step h, by the shift of z_0."""
        if not self.error < _LARGEST_ERROR:
            raise Undecided("doubles do not resolve the central noise of so many honest users")
        cases, step = self.cases(distance), double(h)
        position = cases.loss / step
        TooFine.check(math.ceil(2 * float(np.abs(position).max())) + 2)
        # a loss within its error of a grid point is taken to span two cells
        margin = (2 * self.error + 1e-15) / step + np.abs(position) * 1e-15
        low = np.floor(position - margin).astype(np.int64)
        high = np.maximum(np.ceil(position + margin).astype(np.int64), low + 1)
        order = np.lexsort((high, low, cases.shift))
        keys = np.stack([cases.shift, low, high], axis=1)[order]
        begin = np.flatnonzero(np.append(True, (keys[1:] != keys[:-1]).any(axis=1)))
        groups: dict[int, list[Group]] = defaultdict(list)
        sums = (np.add.reduceat(mass[order], begin).tolist() for mass in (cases.p, cases.q))
        counts = np.diff(np.append(begin, len(order))).tolist()
        for (shift, below, above), p, q, count in zip(
            keys[begin].tolist(), *sums, counts, strict=True
        ):
            spread = 1.001 * (self.error + 2 * (count + 4) * UNIT_ROUNDOFF)
            first, second = (arb(total, spread * total) for total in (p, q))
            groups[shift].append(Group(p=first, q=second, low=below, high=above))
        laws = {shift: _dominating(tuple(found), h) for shift, found in groups.items()}
        return OffsetLaws(laws, arb(cases.rest) + self.pair.lost)


def _blocks(values: IntArray) -> list[IntArray]:
    return np.split(values, range(_BLOCK, len(values), _BLOCK)) if len(values) else []


def _dominating(groups: tuple[Group, ...], h: arb) -> Factor:
    none = arb(0)
    bottom, top = min(g.low for g in groups), max(g.high for g in groups) + 1
    return dominating(Groups(groups, bottom, top, certain=none, rest=none, unknown=none), h)
