"""Losses on a grid: how the outcomes of a noise enter an upper bound and a lower bound.

A *factor* is a measure on the multiples of the step h: coefficient i of the polynomial is the mass
at (base + i) h, and ``infinite`` is the mass of outcomes that the other law cannot produce.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import accumulate, repeat
from operator import mul

import numpy as np
from flint import arb, arb_poly

from accounting.base.arrays import FloatArray, IntArray
from accounting.base.balls import ceil, floor
from accounting.base.deadline import check_time
from accounting.base.errors import TooLarge
from accounting.notary.tables import NoiseTable, Points

_WIDEST_SPLIT = 2
"""Most cells over which a group is split; a loss next to a grid point may span two."""
MOST_CELLS = 1 << 22
"""Most coefficients of a polynomial, at some hundred bytes each."""
_MOST_RUNS = 1 << 22
"""Most runs for all shifts of a noise together, at some hundred bytes each."""


class TooFine(TooLarge):
    """The losses of a noise lie too far apart for a grid of this step."""

    @staticmethod
    def check(cells: int) -> None:
        """Refuse a polynomial of this many cells before it is allocated."""
        if cells > MOST_CELLS:
            raise TooFine(
                f"the losses spread over {cells:,} grid cells, more than {MOST_CELLS:,}; ask for "
                "--tier fast, or for a wider --gap"
            )


@dataclass(frozen=True)
class Factor:
    """A measure on the grid, and the mass at +infinity."""

    base: int
    poly: arb_poly
    infinite: arb

    @property
    def top(self) -> int:
        """The largest index with mass: every finite loss is at most top * h."""
        return self.base + self.poly.length() - 1

    def times(self, other: Factor) -> Factor:
        """The law of the sum of two independent losses."""
        infinite = 1 - (1 - self.infinite) * (1 - other.infinite)
        return Factor(self.base + other.base, self.poly * other.poly, infinite)

    def power(self, exponent: int) -> Factor:
        if exponent == 1:
            return self
        infinite = 1 - (1 - self.infinite) ** exponent
        return Factor(self.base * exponent, self.poly**exponent, infinite)

    def above(self, index: int) -> Factor:
        """Without the mass below an index where it cannot matter (notary.md, section 4)."""
        drop = min(max(0, index - self.base), self.poly.length())
        if drop == 0:
            return self
        return Factor(self.base + drop, self.poly.right_shift(drop), self.infinite)


@dataclass(frozen=True)
class SplitLoss:
    """A loss that is the sum of two independent ones, whose laws are not multiplied out: sums over
    all large losses need only partial sums of either law."""

    first: Factor
    second: Factor

    @property
    def infinite(self) -> arb:
        """The mass at +infinity."""
        return 1 - (1 - self.first.infinite) * (1 - self.second.infinite)

    def mass_from(self, threshold: int) -> arb:
        """The mass of finite losses from ``threshold`` * h on."""
        return self._sum_from(threshold, self.first.poly.coeffs(), self.second.poly.coeffs())

    def excess(self, threshold: int, eps: arb, h: arb) -> arb:
        """The sum of mass(l) (1 - e^{eps - l}) over finite losses l from ``threshold`` * h on."""
        laws = self.first.poly.coeffs(), self.second.poly.coeffs()
        start = (eps - h * (self.first.base + self.second.base)).exp()
        tilted = self._sum_from(threshold, *(_decaying(law, h) for law in laws))
        return self._sum_from(threshold, *laws) - start * tilted

    def _sum_from(self, threshold: int, first: list[arb], second: list[arb]) -> arb:
        """The sum of first[i] * second[j] over all i, j whose losses reach the threshold."""
        tails = list(accumulate(reversed(second), initial=arb(0)))
        # tails[k] is the sum of the last k values; first[i] goes with those from needed - i on
        needed = threshold - self.first.base - self.second.base
        begin = max(0, needed - len(second) + 1)
        some = tails[max(0, len(second) - needed + begin) :]
        every = sum(first[begin + len(some) :], arb(0)) * tails[-1]
        return sum(map(mul, first[begin:], some), every)


def _decaying(law: list[arb], h: arb) -> list[arb]:
    """law[i] * e^{-ih}."""
    return list(map(mul, law, accumulate(repeat((-h).exp()), mul, initial=arb(1))))


def measure(masses: Mapping[int, arb], infinite: arb) -> Factor:
    """The factor with these masses at these indices."""
    if not masses:
        return Factor(0, arb_poly([]), infinite)
    base = min(masses)
    TooFine.check(max(masses) - base + 1)
    coefficients = [arb(0)] * (max(masses) - base + 1)
    for index, mass in masses.items():
        coefficients[index - base] = mass
    return Factor(base, arb_poly(coefficients), infinite)


@dataclass(frozen=True)
class Runs:
    """Runs of consecutive outcomes start[i]..end[i] of a noise whose losses share a grid cell.

    This is only a plan: the bounds below hold whatever it says.  Outcomes after ``last`` are not in
    the table.
    """

    shift: int
    start: IntArray
    end: IntArray
    bottom: int
    top: int
    last: int

    def points(self) -> IntArray:
        """The outcomes at which masses or partial sums are needed."""
        ends = np.concatenate(
            [self.start, self.start - 1, self.end, [self.last, max(0, -self.shift) - 1]]
        )
        points: IntArray = np.maximum(np.concatenate([ends, ends + self.shift]), -1)
        return points


def plan_runs(
    log_mass: FloatArray, shift: int, h: float, clip: float, *, monotone_from: int
) -> Runs:
    """Cut the outcomes where their loss enters another cell, and where it may not be monotone.

    The outermost cells are merged, up to a mass of about ``clip`` at either end.
    """
    first, last = max(0, -shift), len(log_mass) - 1 - max(0, shift)
    here = log_mass[first : last + 1]
    loss = here - log_mass[first + shift : last + 1 + shift]
    cell = np.floor(loss / h).astype(np.int64)
    order = np.argsort(loss, kind="stable")
    mass = np.exp(here[order])
    below = int(np.searchsorted(np.cumsum(mass), clip))
    beyond = int(np.searchsorted(np.cumsum(mass[::-1]), clip))
    low = int(cell[order[min(below, len(order) - 1)]])
    high = int(cell[order[max(0, len(order) - 1 - beyond)]]) + 1
    cell = np.clip(cell, low - 1, high)
    # between two outcomes of a run, neither they nor those they are compared with lie before
    safe = max(monotone_from, monotone_from - shift) + 1 - first
    cuts = np.ones(len(cell), bool)
    cuts[safe:] = cell[safe:] != cell[safe - 1 : -1]
    start = first + np.flatnonzero(cuts)
    end = np.append(start[1:] - 1, last)
    return Runs(shift=shift, start=start, end=end, bottom=low, top=high, last=last)


@dataclass(frozen=True)
class Group:
    """Outcomes with total masses p and q under the two laws and all losses in [low, high] * h."""

    p: arb
    q: arb
    low: int
    high: int


@dataclass(frozen=True)
class Groups:
    """All outcomes of one noise under one shift.

    ``certain`` is the mass of the outcomes that the other law cannot produce, and ``rest`` the mass
    of the outcomes beyond the table.  Losses below ``bottom`` or at least ``top`` are rare.
    ``unknown`` is mass of the other law that is in no group.
    """

    groups: tuple[Group, ...]
    bottom: int
    top: int
    certain: arb
    rest: arb
    unknown: arb


def group(runs: Runs, at: Points, h: arb) -> Groups:
    """The masses of the runs, and proven bounds on their losses.

    A run of several outcomes is used only where the loss is monotone along it, so that its ends
    bound it.
    """
    a = runs.shift
    found = []
    for u, v in zip(runs.start.tolist(), runs.end.tolist(), strict=True):
        check_time()
        losses = [(at.mass[z] / at.mass[z + a]).log() / h if a else arb(0) for z in {u, v}]
        low, high = min(map(floor, losses)), max(map(ceil, losses))
        found.append(
            Group(
                p=at.total[v] - at.total[u - 1],
                q=at.total[v + a] - at.total[max(u + a - 1, -1)],
                low=low,
                high=high if high > low else low + 1,
            )
        )
    return Groups(
        tuple(found),
        bottom=runs.bottom,
        top=runs.top,
        certain=at.total[max(0, -a) - 1],
        rest=1 - at.total[runs.last],
        unknown=arb(0),
    )


def dominating(groups: Groups, h: arb) -> Factor:
    """For upper bounds: split each group between two grid points so that both masses are kept.

    Losses of at least the top become +infinity; losses below the bottom are raised to it.
    """
    masses: dict[int, arb] = defaultdict(lambda: arb(0))
    infinite = groups.certain + groups.rest
    cell = (-h).exp()
    for g in groups.groups:
        if g.low >= groups.top:
            infinite += g.p
            continue
        if g.high <= groups.bottom or g.high - g.low > _WIDEST_SPLIT:
            masses[max(g.high, groups.bottom)] += g.p
            continue
        far = cell ** (g.high - g.low)
        near_mass = (g.q * (h * g.low).exp() - g.p * far) / (1 - far)
        masses[g.low] += near_mass
        masses[g.high] += g.p - near_mass
    return measure(masses, infinite)


def labeled(groups: Groups, h: arb) -> tuple[Factor, Factor]:
    """For lower bounds: both laws of a label, the grid point nearest to a group's log-ratio."""
    first: dict[int, arb] = defaultdict(lambda: arb(0))
    second: dict[int, arb] = defaultdict(lambda: arb(0))
    step = float(h.mid())
    for g in groups.groups:
        exact = float((g.p / g.q).log().mid()) / step
        label = round(exact) if math.isfinite(exact) else g.low
        label = min(max(label, groups.bottom), groups.top)
        first[label] += g.p
        second[label] += g.q
    return measure(first, groups.certain), measure(second, groups.unknown)


def grouped(
    table: NoiseTable, shifts: Iterable[int], h: arb, clip: float, log_mass: FloatArray
) -> dict[int, Groups]:
    """The groups for several shifts of one noise, from one pass over its masses."""
    step = float(h.mid())
    plans, count = [], 0
    for a in shifts:
        check_time()
        start = table.monotone_from(len(log_mass))
        plans.append(plan_runs(log_mass, a, step, clip, monotone_from=start))
        count += len(plans[-1].start)
        if count > _MOST_RUNS:
            raise TooLarge(
                f"the noise of an atom has more than {_MOST_RUNS:,} outcomes to look at one by "
                "one, because it is a sum of noises that is not log-concave; ask for --tier fast"
            )
    at = table.at(np.concatenate([plan.points() for plan in plans]))
    return {plan.shift: group(plan, at, h) for plan in plans}
