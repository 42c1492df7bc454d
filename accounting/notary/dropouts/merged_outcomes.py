"""A lower bound of the central term: outcomes are merged into blocks, and blocks are tested.

Merging outcomes is post-processing, so any blocks give a lower bound (notary.md, Lemma 3); good
ones hold outcomes of similar losses.  A block is a range of D, over which the offset of the loss
hardly changes, times a run of consecutive values of w = M + z_0.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import pairwise

import numpy as np
from flint import arb

from accounting.base.arrays import FloatArray, IntArray
from accounting.base.balls import double
from accounting.base.deadline import check_time
from accounting.notary.dropouts.central_pairs import CentralPair, sum_error
from accounting.notary.factors import Group, Groups, TooFine, plan_runs

_TINY = 1e-290
"""Smaller masses of a value of D are not resolved."""
_MOST_RANGES, _MOST_RUNS = 48, 192
"""Most ranges of D on either side of 0, and most runs of w in each: finer blocks gain little."""


@dataclass(frozen=True)
class _Range:
    """Values of D with about the same ``offset`` and the same shift of z_0, first_shift + ``case``:
    M has the masses ``before`` and ``after`` under the two laws, summed over the range."""

    offset: float
    case: int
    before: FloatArray
    after: FloatArray


@dataclass(frozen=True)
class _Masses:
    """Masses of blocks: doubles, and bounds of their errors."""

    value: FloatArray
    error: FloatArray


class MergedOutcomes:
    """Blocks of outcomes under a change, where z_0 has the masses ``unit``."""

    def __init__(self, pair: CentralPair, unit: FloatArray, unit_lost: arb) -> None:
        self.pair, self.unit = pair, unit
        self.lost = pair.lost + unit_lost
        """Mass of the outcomes beyond a table, under either law."""

    @cached_property
    def _up_to(self) -> FloatArray:
        """P[z_0 <= k] for k = -1, 0, ..., within the table."""
        return np.append(0.0, np.cumsum(self.unit))

    @cached_property
    def _beyond(self) -> FloatArray:
        """P[z_0 > k] for k = -1, 0, ..., within the table."""
        return np.append(np.cumsum(self.unit[::-1])[::-1], 0.0)

    @cached_property
    def _totals(self) -> FloatArray:
        return np.array([self.pair.joint(x).sum() for x in range(self.pair.size)])

    def _ranges(self, distance: int, step: float) -> Iterator[_Range]:
        """All values of D, as in ``CoupledCentral``, except for those that doubles do not resolve
        before and after the change: no test rejects there."""
        totals, joint = self._totals, self.pair.joint
        size = int(np.count_nonzero(totals > _TINY))
        near, far = np.arange(max(0, size - distance)), np.arange(distance, max(distance, size))
        for before, after, case in ((near, far, 0), (far, near, distance)):
            if not len(before):
                continue
            offset = np.log(totals[before] / totals[after])
            width = max(step / 2, float(np.ptp(offset)) / _MOST_RANGES)
            cell = np.floor(offset / width)
            cuts = [0, *(np.flatnonzero(np.diff(cell)) + 1).tolist(), len(cell)]
            for a, b in pairwise(cuts):
                yield _Range(
                    float(np.average(offset[a:b], weights=totals[before[a:b]])),
                    case,
                    self._merged(before[a:b]),
                    self._merged(after[a:b]),
                )
        for i in range(1, distance):
            if max(i, distance - i) < size:
                alone = math.log(totals[i] / totals[distance - i])
                yield _Range(alone, i, joint(i), joint(distance - i))

    def _merged(self, values: IntArray) -> FloatArray:
        """The masses of M, summed over these values of |D|."""
        return np.asarray(sum(map(self.pair.joint, values.tolist())))

    def _between(self, masses: FloatArray, ends: IntArray) -> _Masses:
        """The mass of M + z_0 above ends[i] and up to ends[i + 1], for M with these masses.

        Differences of sums from below for small outcomes and from above for large ones: both tails
        keep their relative accuracy.
        """
        up_to, beyond = (self._mixed(t, masses, ends) for t in (self._up_to, self._beyond))
        low = up_to[1:] < beyond[:-1]
        value = np.where(low, np.diff(up_to), -np.diff(beyond))
        error = sum_error(2 * self.pair.size + len(self.unit)) * 4
        return _Masses(np.maximum(value, 0.0), error * np.where(low, up_to[1:], beyond[:-1]))

    def _mixed(self, table: FloatArray, masses: FloatArray, ends: IntArray) -> FloatArray:
        """The sum over m of masses[m] * table at ends - m."""
        check_time()
        count, backwards = len(masses), masses[::-1].copy()
        # before its first entry and after its last one, the table is constant
        padded = np.pad(table, (count - 1, count), mode="edge")
        at = np.clip(ends + 1, 0, len(table) + count - 1)
        return np.array([np.dot(padded[i : i + count], backwards) for i in at.tolist()])

    def groups(
        self,
        distance: int,
        first_shift: int,
        h: arb,
        *,
        clip: float,
        lowest: int,
        log_mass: FloatArray,
    ) -> Groups:
        """The blocks by the grid points next to their log-ratios, without those below ``lowest``.

        ``log_mass`` are estimates for z_0, by which runs are planned.
        """
        step, certain = double(h), arb(0)
        found: list[tuple[_Masses, _Masses]] = []
        for one in self._ranges(distance, step):
            shift = first_shift + one.case
            middle, after = (
                round(float(np.average(np.arange(len(law)), weights=law)))
                for law in (one.before, one.after)
            )
            plan = partial(plan_runs, log_mass, shift + middle - after, clip=clip, monotone_from=0)
            runs = plan(step)
            if runs.top + one.offset / step < lowest:
                continue
            if len(runs.start) > _MOST_RUNS:
                runs = plan(step * len(runs.start) / _MOST_RUNS)
            first, last = max(0, -shift) - 1, self.pair.size + len(self.unit)
            inner = runs.end[:-1] + middle
            ends = np.concatenate([[first], inner[(inner > first) & (inner < last)], [last]])
            found.append((self._between(one.before, ends), self._between(one.after, ends + shift)))
            if first >= 0:
                sure = self._between(one.before, np.array([-1, first]))
                certain += arb(float(sure.value[0]), float(sure.error[0]))
        return self._by_label(found, step, clip, lowest, certain)

    def _by_label(
        self,
        found: list[tuple[_Masses, _Masses]],
        step: float,
        clip: float,
        lowest: int,
        certain: arb,
    ) -> Groups:
        """Blocks with the same label are one group."""
        p, p_error, q, q_error = (
            np.concatenate([getattr(pair[i], name) for pair in found]) if found else np.zeros(0)
            for i in (0, 1)
            for name in ("value", "error")
        )
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.where(p > 0, np.log(p) - np.log(q), -np.inf) / step
        kept = ratio > lowest - 1
        bottom, top = _ends(ratio[kept], p[kept], clip, lowest)
        TooFine.check(top - bottom + 1)
        label = np.rint(np.clip(ratio[kept], bottom, top)).astype(np.int64) - bottom
        sums = [
            np.bincount(label, weights=part[kept], minlength=1) for part in (p, p_error, q, q_error)
        ]
        count = np.bincount(label, minlength=1)
        spread = 1.001 * (1 + sum_error(int(count.max())))
        groups = []
        for i in np.flatnonzero(count).tolist():
            extra = sum_error(int(count[i]))
            mass, error, other, other_error = (float(part[i]) for part in sums)
            groups.append(
                Group(
                    p=arb(mass, spread * (error + extra * mass)),
                    q=arb(other, spread * (other_error + extra * other)),
                    low=bottom + i,
                    high=bottom + i + 1,
                )
            )
        none = arb(0)
        return Groups(tuple(groups), bottom, top, certain=certain, rest=none, unknown=self.lost)


def _ends(ratio: FloatArray, mass: FloatArray, clip: float, lowest: int) -> tuple[int, int]:
    """The lowest and the highest label: beyond them lies a mass of about ``clip``."""
    order = np.argsort(ratio, kind="stable")
    finite = order[np.isfinite(ratio[order])]
    if not len(finite):
        return lowest, lowest
    total = np.cumsum(mass[finite])
    first = min(int(np.searchsorted(total, clip)), len(finite) - 1)
    last = int(np.searchsorted(total, total[-1] - clip))
    bottom = max(lowest, math.floor(ratio[finite[first]]))
    return bottom, max(bottom, math.ceil(ratio[finite[min(last, len(finite) - 1)]]))
