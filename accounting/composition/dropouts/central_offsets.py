"""The central noise of a fraction of the users as a mixture of shifts of z_0, the noise of {-1, +1}
(dropouts.md, Theorem 1): how often each shift occurs with which offset of the loss."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from accounting.base.arrays import UNIT_ROUNDOFF, FloatArray, IntArray
from accounting.base.deadline import check_time
from accounting.base.errors import TooLarge, Undecided
from accounting.model.laws.negative_binomial import NegativeBinomial
from accounting.model.laws.noise import NoiseSum

_LONGEST = 1 << 15
"""Longest table of a central noise: the time grows with its square."""
_FARTHEST = 1024
"""Largest difference of two coupled noises that is looked at; larger ones count as infinite."""
_AT_ONCE = 256
"""Couplings between two looks at the clock."""
_MOST_CELLS = 1 << 40
"""Bounds the grid point of an offset."""
_LARGEST_ERROR = 1e-3
"""Relative error of a mass beyond which the coupling is given up."""
_P_ULPS = 8.0
"""Bounds the relative error of q, in units of 2^-53."""


@dataclass(frozen=True)
class Cases:
    """Case e: the shift b + ``shift[e]`` of z_0 occurs with an offset of the loss of at most
    ``offset[e]``, with mass ``mass[e]``; b is that of exact_view.md, Theorem 2.  ``infinite`` is
    the mass that counts as an infinite loss."""

    shift: IntArray
    offset: FloatArray
    mass: FloatArray
    infinite: float

    def on_grid(self, step: float) -> OffsetPoints:
        """Split every offset between two grid points, and merge equal points."""
        position = self.offset / step
        if not np.abs(position).max() < _MOST_CELLS:
            raise TooLarge(
                f"offsets of the loss up to {np.abs(self.offset).max():.3g} do not fit on a grid "
                f"of {step:.3g}: ask for --tier ball"
            )
        low = np.floor(position)
        right = np.clip(np.expm1((low - position) * step) / math.expm1(-step), 0.0, 1.0)
        cell = low.astype(np.int64)
        first, count = int(cell.min()), int(np.ptp(cell)) + 2
        key = self.shift * count + (cell - first)
        keys, place = np.unique(np.concatenate([key, key + 1]), return_inverse=True)
        mass = np.concatenate([self.mass * (1 - right), self.mass * right])
        total: FloatArray = np.bincount(place, weights=mass).astype(np.float64)
        total *= 1 + (len(mass) + 8) * UNIT_ROUNDOFF
        used = np.flatnonzero(total)
        keys = keys[used]
        return OffsetPoints(keys // count, keys % count + first, total[used], self.infinite)


@dataclass(frozen=True)
class OffsetPoints:
    """``Cases`` with all offsets at grid points: ``cell[e]`` * step."""

    shift: IntArray
    cell: IntArray
    mass: FloatArray
    infinite: float


@dataclass(frozen=True)
class ThinnedCentral:
    """The noise NB(share, e^{-step}) on +1 and on -1, up to mass of about ``tail``.

    Args:
        share: The parameter r of each of the two noises, at most 1.
        step: The loss of one unit of the sum.
        tail: Mass that may count as an infinite loss.
    """

    share: float
    step: float
    tail: float
    _known: dict[int, Cases] = field(default_factory=dict, init=False, repr=False, compare=False)

    @cached_property
    def _noise(self) -> NoiseSum:
        part = NegativeBinomial(self.share, math.exp(-self.step))
        return NoiseSum((part,), p_ulps=_P_ULPS + 4 * self.step)

    @cached_property
    def size(self) -> int:
        """Bound of |D| and of M that leaves about ``tail`` beyond."""
        size = self._noise.length(self.tail / 4)
        if size > _LONGEST:
            raise TooLarge(
                f"with {self.share:.4g} of the central noise each of its two parts has a table of "
                f"{size:,} masses, more than {_LONGEST:,}: this fraction of honest users can be "
                "checked for a smaller max_value, or a larger central fraction"
            )
        return size

    @cached_property
    def _masses(self) -> FloatArray:
        """f(k) for k < 2 size, each within a relative (8k + 80)u (dropouts.md, section 3)."""
        k = np.arange(1, 2 * self.size)
        rise = math.exp(-self.step) * ((k - 1 + self.share) / k)
        start = math.exp(self.share * math.log(-math.expm1(-self.step)))
        return np.cumprod(np.append(start, rise))

    @cached_property
    def _totals(self) -> FloatArray:
        """P[D = x] for 0 <= x < size, with M < size."""
        f, size = self._masses, self.size
        return np.array([f[:size] @ f[x : x + size] for x in range(size)])

    @cached_property
    def error(self) -> float:
        """Bounds the relative errors of all masses, and of their losses by twice that."""
        spread = max(
            -1 / math.expm1(-2 * self.step),
            float((self._totals / (self._masses[0] * self._masses[: self.size])).max()),
        )
        size = self.size
        ratios = (16 + 8 * self.step) * size + 80
        return 1.01 * UNIT_ROUNDOFF * 4 * (ratios + (size + 16) * (1 + spread))

    def cases(self, distance: int) -> Cases:
        """Return the cases for a change of the sum by ``distance``."""
        if distance not in self._known:
            self._known[distance] = self._cases(distance)
        return self._known[distance]

    def _cases(self, distance: int) -> Cases:
        if not self.error < _LARGEST_ERROR:
            raise Undecided("doubles do not resolve the central noise of these honest users")
        size, totals = self.size, self._totals
        near, inner = np.arange(max(0, size - distance)), np.arange(1, min(distance, size))
        matched = distance - inner < size
        found = _Collected(margin=4 * self.error + 1e-12, rare=self.tail / (64 * size))
        found.lost = 2 * self._noise.tail_bound(size) + float(totals[len(near) :].sum())
        found.lost += float(totals[inner[~matched]].sum())
        inner = inner[matched]
        # D = x, D = -x - distance, and D = -i in between: exact_view.md, the proof of Theorem 2
        reach = self._reach(distance)
        for x in np.split(near, range(_AT_ONCE, len(near), _AT_ONCE)):
            chance, missed = self._coupled(x, x + distance, reach)
            here, there = totals[x], totals[x + distance]
            found.add(np.zeros_like(x), here, there, chance, missed)
            found.add(np.full_like(x, distance), there, here, chance[:, ::-1], missed)
        chance, missed = self._coupled(inner, distance - inner, reach)
        found.add(inner, totals[inner], totals[distance - inner], chance, missed)
        return found.cases(1 + self.error)

    def _reach(self, distance: int) -> int:
        """Estimate the largest difference of M for D = 0 and D = ``distance``, where it is
        largest."""
        zero = np.zeros(1, np.int64)
        chance, _ = self._coupled(zero, zero + min(distance, self.size - 1), _FARTHEST)
        return min(int(np.abs(np.nonzero(chance[0])[0] - _FARTHEST).max()) + 2, _FARTHEST)

    def _coupled(
        self, before: IntArray, after: IntArray, reach: int
    ) -> tuple[FloatArray, FloatArray]:
        """Return the laws of the differences of M before and after, and the mass that they leave
        out."""
        from accounting.composition.dropouts.coupling_kernels import quantile_couplings

        check_time()
        chance, missed = np.empty((len(before), 2 * reach + 1)), np.empty(len(before))
        scratch, cut = np.empty((2, self.size + 1)), self.tail / 8
        quantile_couplings(self._masses, before, after, cut, scratch, chance, missed)
        return chance, missed


class _Collected:
    """Cases so far, with offsets raised by ``margin``.

    Those with a mass below ``rare`` are not worth an entry: they are ``lost``.
    """

    def __init__(self, *, margin: float, rare: float) -> None:
        self.margin, self.rare, self.lost = margin, rare, 0.0
        self._parts: list[tuple[IntArray, FloatArray, FloatArray]] = []

    def add(
        self,
        case: IntArray,
        before: FloatArray,
        after: FloatArray,
        chance: FloatArray,
        missed: FloatArray,
    ) -> None:
        """Values of D with these masses under the two laws, that shift z_0 by ``case`` and by
        j - reach more with probability ``chance[:, j]``."""
        mass = before[:, None] * chance
        kept = (mass > self.rare) & (after > 0)[:, None]
        self.lost += float(mass[~kept].sum()) + float(before @ missed)
        d, j = np.nonzero(kept)
        with np.errstate(divide="ignore", invalid="ignore"):  # those are not kept
            offset = np.log(before / after) + self.margin
        self._parts.append((case[d] + j - chance.shape[1] // 2, offset[d], mass[kept]))

    def cases(self, factor: float) -> Cases:
        """All of them, with masses times ``factor``.

        Raises:
            Undecided: If all are lost.
        """
        shift, offset, mass = map(np.concatenate, zip(*self._parts, strict=True))
        if not len(mass):
            raise Undecided(
                "the central noise of this fraction of the users is too small beside max_value to "
                "hide anything: take a smaller central fraction"
            )
        return Cases(shift, offset, mass * factor, self.lost * factor)
