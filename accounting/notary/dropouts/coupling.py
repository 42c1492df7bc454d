"""An upper bound of the central term by coupling the smaller of the two noises (notary.md, 5).

Given D, the view has M + z_0, z_0 the noise of {-1, +1}, and the law of M depends on |D|.  If the
values m and m' of M before and after the change are coupled, in any way, then the change is
dominated by a mixture of shifts of z_0 alone, shifted by m - m' more than if M were not there
(Lemma 10).  The coupling by quantiles keeps m - m' at 0 or very few units.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np
from flint import arb

from accounting.base.arrays import UNIT_ROUNDOFF, FloatArray, IntArray
from accounting.base.balls import double
from accounting.base.deadline import check_time
from accounting.base.errors import Undecided
from accounting.notary.dropouts.central_pairs import CentralPair, sum_error
from accounting.notary.factors import Factor, Group, Groups, TooFine, dominating

_LARGEST_ERROR = 1e-3
"""Relative error of a mass beyond which the coupling is given up (notary.md, Lemma 11)."""
_CUT = 1e-4
"""Share of the mass that may be clipped which is taken from the tails of M, and by leaving out
rare differences m - m'."""


@dataclass(frozen=True)
class Cases:
    """What a change of the sum by ``distance`` does to the central noises, after coupling.

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
class OffsetLaws:
    """Per shift of z_0, relative to first_shift, a law on the grid that dominates the offsets of
    the loss with which the shift occurs; their total mass and ``infinite`` add up to one."""

    laws: Mapping[int, Factor]
    infinite: arb


class CoupledCentral:
    """Mixtures of shifts of z_0 that dominate the central term of every change."""

    def __init__(self, pair: CentralPair, clip: float) -> None:
        self.pair, self.clip = pair, clip
        self.cases = cache(self._cases)
        self.shifts = cache(self._shifts)

    @cached_property
    def _totals(self) -> FloatArray:
        """P[D = x] for x >= 0, for noises within their tables."""
        size = self.pair.size
        return np.array([self.pair.joint(x)[::-1].sum() for x in range(size)])

    @cached_property
    def error(self) -> float:
        """Bounds the relative errors of the masses of all cases, and of their losses by twice that
        (notary.md, Lemma 11)."""
        pair, start = self.pair, self.pair.masses[0] * self.pair.masses[: self.pair.size]
        spread = 1 / (1 - double(self.pair.q) ** 2)
        with np.errstate(divide="ignore"):
            spread = max(spread, float((self._totals / np.maximum(start, 1e-300)).max()))
        return 4 * sum_error(4 * pair.size) * (1 + 1.01 * spread)

    def _coupled(self, before: int, after: int) -> tuple[IntArray, FloatArray, float]:
        """The law of m - m' for |D| = before and then after: values, probabilities, and what they
        leave out."""
        upper = [self._survival(x) for x in (before, after)]
        cut = max(self.clip * _CUT, *(float(s[-1]) for s in upper))
        ends = np.concatenate([s[s > cut] for s in upper])
        first = np.arange(len(ends)) < np.count_nonzero(upper[0] > cut)
        order = np.argsort(-ends, kind="stable")
        # between two neighboring ends, m and m' are the numbers of ends of each that lie above
        ours = np.cumsum(first[order]) - 1
        theirs = np.arange(len(order)) - 1 - ours
        weight = -np.diff(np.append(ends[order], cut))
        used = weight > 0
        difference = (ours - theirs)[used]
        low = int(difference.min())
        found = np.bincount(difference - low, weights=weight[used])
        kept = np.flatnonzero(found)
        return kept.astype(np.int64) + low, np.asarray(found[kept], np.float64), cut

    def _survival(self, x: int) -> FloatArray:
        """P[M >= m | D = x] for all m; the first entry is exactly 1."""
        sums = np.cumsum(self.pair.joint(x)[::-1])[::-1]
        return np.asarray(sums / sums[0])

    def _cases(self, distance: int) -> Cases:
        size, totals = self.pair.size, self._totals
        parts: list[tuple[IntArray, FloatArray, FloatArray]] = []
        rest = 0.0
        rare = self.clip * _CUT / (2 * size)

        def add(case: int, before: int, after: int, moved: IntArray, weight: FloatArray) -> None:
            nonlocal rest
            mass = totals[before] * weight
            kept = (mass > rare) & (totals[after] > 0)
            parts.append((case + moved[kept], mass[kept], totals[after] * weight[kept]))
            rest += float(mass[~kept].sum())

        # D = x, D = -x - distance, and D = -i in between: exact_view.md, the proof of Theorem 2
        for x in range(size - distance):
            check_time()
            moved, weight, cut = self._coupled(x, x + distance)
            add(0, x, x + distance, moved, weight)
            add(distance, x + distance, x, -moved, weight)
            rest += cut * float(totals[x] + totals[x + distance])
        for i in range(1, distance):
            if max(i, distance - i) < size:
                moved, weight, cut = self._coupled(i, distance - i)
                add(i, i, distance - i, moved, weight)
                rest += cut * float(totals[i])
            else:
                rest += float(totals[i]) if i < size else 0.0
        rest += float(totals[max(0, size - distance) :].sum())
        shift, p, q = (np.concatenate(part) for part in zip(*parts, strict=True))
        return Cases(shift, p, q, np.log(p / q), rest * (1 + self.error))

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


def _dominating(groups: tuple[Group, ...], h: arb) -> Factor:
    none = arb(0)
    bottom, top = min(g.low for g in groups), max(g.high for g in groups) + 1
    return dominating(Groups(groups, bottom, top, certain=none, rest=none, unknown=none), h)
