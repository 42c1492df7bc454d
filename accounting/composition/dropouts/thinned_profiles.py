"""Upper bounds of the profiles of all changes when only a fraction of the users adds noise.

The loss of a change is the sum of a plain part, of the atoms other than {-1, +1}, and a central
part, which dropouts.md bounds by a mixture of shifts of z_0, the noise of {-1, +1}.  The profiles
of plain parts and of shifts of z_0 come from one evaluation on one grid; the rest is adding up.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass, replace
from functools import cache, cached_property

import numpy as np

from accounting.base.arrays import UNIT_ROUNDOFF, BoolArray, FloatArray, IntArray
from accounting.base.deadline import check_time
from accounting.base.errors import required
from accounting.base.progress import Progress, silent
from accounting.base.threads import in_threads
from accounting.composition.change_profiles import Profiles, change_profiles
from accounting.composition.dominating_pair import DominatingPair
from accounting.composition.dropouts.central_offsets import Cases, OffsetPoints, ThinnedCentral
from accounting.evaluator.view_pairs import CentralMixture, ViewPairs
from accounting.model.laws.noise import NoiseSum

_BLOCK = 64
"""Changes whose profiles are in memory at a time, in every thread."""
_DISTANCES = 16
"""Changes of the sum that are looked at between two reports."""
_LEAST_SLACK = 0.02
"""Smallest share of eps that the plain parts are evaluated for; a rule of thumb."""


@dataclass(frozen=True)
class ThinnedPairs:
    """The changes of a protocol with less central noise than ``view_pairs`` says.

    Args:
        view_pairs: The changes, one release, with the full central noise.
        unit: The noise z_0 of {-1, +1}.
        central: The central noise.
    """

    view_pairs: ViewPairs
    unit: NoiseSum
    central: ThinnedCentral

    @cached_property
    def _is_central(self) -> BoolArray:
        return np.asarray(self.view_pairs.factor >= len(self.view_pairs.plain))

    @property
    def _full(self) -> CentralMixture:
        """The central factors of the full central noise."""
        return required(self.view_pairs.central, "the central noise of a fraction of the users")

    @cached_property
    def mixtures(self) -> IntArray:
        """The rows (m, b) of all central factors (exact_view.md, Theorem 2)."""
        return self._full.mix

    @cached_property
    def central_factors(self) -> list[IntArray]:
        """Per change, the indices of its central factors in ``mixtures``."""
        pairs, n = self.view_pairs, len(self.view_pairs.plain)
        central = np.where(self._is_central, pairs.factor - n, -1)
        return [part[part >= 0] for part in np.split(central, pairs.start[1:-1])]

    def cases(self, progress: Progress = silent) -> dict[int, Cases]:
        """The central noise under every change of the sum that occurs."""
        distances = np.unique(self.mixtures[:, 0]).tolist()
        found: dict[int, Cases] = {}
        for begin in range(0, len(distances), _DISTANCES):
            progress(f"central noise coupled for {begin:,} of {len(distances):,} distances")
            some = distances[begin : begin + _DISTANCES]
            found.update(zip(some, in_threads(self.central.cases, some), strict=True))
        return found

    @cached_property
    def shifts(self) -> IntArray:
        """All shifts of z_0 that occur, from the smallest to the largest."""
        reach = {m: (int(c.shift.min()), int(c.shift.max())) for m, c in self.cases().items()}
        ends = [b + end for m, b in self.mixtures.tolist() for end in reach[m]]
        return np.arange(min(ends), max(ends) + 1)

    @cached_property
    def parts(self) -> ViewPairs:
        """The plain part of every change, and after them all shifts of z_0, as pairs of views.

        An empty part gets one factor with shift 0, whose loss is 0.
        """
        pairs, shifts = self.view_pairs, self.shifts
        noise = self._full.noise
        noises = (*pairs.noises[:noise], self.unit, *pairs.noises[noise + 1 :])
        owner = np.repeat(np.arange(pairs.pair_count), np.diff(pairs.start))[~self._is_central]
        count = np.bincount(owner, minlength=pairs.pair_count)
        empty = np.flatnonzero(count == 0)
        none = len(pairs.plain) - int(shifts[0])  # the factor with shift 0
        factor = np.concatenate([pairs.factor[~self._is_central], np.full(len(empty), none)])
        order = np.argsort(np.concatenate([owner, empty]), kind="stable")
        own = np.arange(len(pairs.plain), len(pairs.plain) + len(shifts))
        sizes = np.concatenate([np.maximum(count, 1), np.ones(len(shifts), np.int64)])
        return ViewPairs(
            noises=noises,
            plain=np.concatenate(
                [pairs.plain, np.stack([np.full_like(shifts, noise), shifts], axis=1)]
            ),
            start=np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
            factor=np.concatenate([factor[order], own]).astype(np.int64),
        )

    def subset(self, changes: IntArray) -> ThinnedPairs:
        """Return only these changes; what is known of the central noise is kept."""
        return replace(self, view_pairs=self.view_pairs.subset(changes))

    def profiles(self, eps: float, releases: int, *, gap: float) -> ThinnedProfiles:
        """Bound the profiles on a grid for a question about ``releases`` releases at ``eps``."""
        largest = max(float(cases.offset.max()) for cases in self.cases().values())
        slack = max(eps / releases - largest, _LEAST_SLACK * eps / releases, 1e-3)
        return ThinnedProfiles(
            self, change_profiles(self.parts, slack * releases, releases, gap=gap)
        )


class ThinnedProfiles:
    """Upper bounds of delta of every change, from the profiles of its parts."""

    def __init__(self, pairs: ThinnedPairs, parts: Profiles) -> None:
        self.pairs, self.parts = pairs, parts
        first = pairs.view_pairs.pair_count
        self._unit = parts.rows(np.arange(first, first + len(pairs.shifts)))
        self._central, self._points = cache(self._mixture), cache(self._on_grid)

    def _mixture(self, index: int) -> DominatingPair:
        """Return a pair that dominates the central factor ``index``."""
        from accounting.composition.dropouts.coupling_kernels import add_shifted_profiles

        m, b = self.pairs.mixtures[index].tolist()
        points = self._points(m)
        low, high = int(points.cell.min()), int(points.cell.max())
        value = np.zeros(self.parts.size + high - low)
        row = points.shift + b - int(self.pairs.shifts[0])
        add_shifted_profiles(row, points.cell - low, points.mass, self._unit, value)
        value = (value + points.infinite) * (1 + (len(row) + 16) * UNIT_ROUNDOFF)
        return DominatingPair.from_profile(
            np.minimum(value, 1.0), base=self.parts.base + low, step=self.parts.step
        )

    def _on_grid(self, distance: int) -> OffsetPoints:
        return self.pairs.central.cases(distance).on_grid(self.parts.step)

    def _central_of(self, factors: tuple[int, ...]) -> DominatingPair:
        """The central part of a change, in every coordinate that it touches."""
        found = self._central(factors[0])
        for other in factors[1:]:
            found = found.composed(self._central(other), self.parts.tilt)
        return found

    def at(self, eps: float) -> FloatArray:
        """Upper bounds of delta(eps) of every change in one release (dropouts.md, Lemma 2)."""
        groups: dict[tuple[int, ...], list[int]] = defaultdict(list)
        for change, factors in enumerate(self.pairs.central_factors):
            groups[tuple(factors.tolist())].append(change)
        out = np.empty(self.pairs.view_pairs.pair_count)

        def work(factors: tuple[int, ...]) -> None:
            central = self._central_of(factors)
            changes = np.array(groups[factors])
            for begin in range(0, len(changes), _BLOCK):
                some = changes[begin : begin + _BLOCK]
                out[some] = self._beside(self.parts.rows(some), central, eps)

        in_threads(work, list(groups))
        return out

    def _beside(self, rows: FloatArray, central: DominatingPair, eps: float) -> FloatArray:
        """delta(eps) of plain parts with these profiles beside the central part.

        Between grid points a profile is at most its chord in e^eps, since it is convex there.
        """
        step, base, size = self.parts.step, self.parts.base, self.parts.size
        whole = math.floor(eps / step)
        share = math.expm1(max(0.0, eps - whole * step)) / math.expm1(step)
        share = min(max(share - 1e-9, 0.0), 1.0)  # less is higher: profiles fall
        chord = np.empty((len(rows), size + 1))
        chord[:, 0], chord[:, -1] = 1.0, rows[:, -1]
        chord[:, 1:-1] = rows[:, :-1] + share * (rows[:, 1:] - rows[:, :-1])
        at = whole - base - central.base - np.arange(len(central.mass))
        values = chord[:, np.clip(at + 1, 0, size)]
        found = values @ central.mass + central.infinite
        return np.asarray(np.minimum(found * (1 + (2 * len(at) + 64) * UNIT_ROUNDOFF), 1.0))

    def as_profiles(self) -> Profiles:
        """Return the profiles of all changes, for several releases."""
        central = [self._central_of(tuple(f.tolist())) for f in self.pairs.central_factors]
        parts = self.parts
        base = parts.base + min(pair.base for pair in central)
        end = parts.base + parts.size + max(pair.base + len(pair.mass) for pair in central)

        def rows(changes: IntArray) -> FloatArray:
            out = np.empty((len(changes), end - base))
            for i, (q, row) in enumerate(zip(changes.tolist(), parts.rows(changes), strict=True)):
                check_time()
                plain = DominatingPair.from_profile(row, base=parts.base, step=parts.step)
                both = plain.composed(central[q], parts.tilt)
                out[i] = both.profile(base, end - base)
            return out

        order = parts.order[parts.order < self.pairs.view_pairs.pair_count]
        return Profiles(base, parts.step, parts.tilt, end - base, order, rows)
