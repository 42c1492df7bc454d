"""Pairs of laws on a grid of losses whose profiles are upper bounds.

The first law is stored: the double ``mass[i]`` at the loss (base + i) * step and ``infinite`` at
+infinity; the second law has e^{-loss} times that mass.  The doubles are exact by definition: code
that makes a pair rounds so that it dominates what it stands for (releases.md).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from accounting.base.arrays import UNIT_ROUNDOFF, FloatArray, IntArray, multiples
from accounting.base.bisection import arithmetic_mean, bisection
from accounting.base.errors import InvalidParameter, TooLarge, Undecided

LARGEST_LAW = 1 << 23
"""Largest number of grid points of a law; a composition needs about ten arrays of this size."""
LOG_NEGLIGIBLE = 9.0
"""Logarithm of the factor by which a negligible term is smaller than what it is compared with."""
_UP = 1 + 1e-11
"""Covers the relative errors of an exponential of moderate size and of a few operations."""
_UNDERFLOW = 1e-290
"""Mass that exceeds all that underflows in a composition; every profile contains it."""


def products_of_rows(
    re: FloatArray,
    im: FloatArray,
    start: IntArray,
    factor: IntArray,
    pairs: IntArray,
    scratch: FloatArray,
) -> FloatArray:
    """Return the inverse transforms of the products of the spectra factor[start[q]:start[q + 1]], q
    in pairs.

    ``scratch`` has the shape of the result (releases.md, Lemmas 4 and 5).
    """
    from accounting.composition.composition_kernels import hartley_values, multiply_spectra
    from accounting.evaluator.kernels import rfft_rows
    from accounting.evaluator.spectra import twiddles

    count, size = scratch.shape
    multiply_spectra(re, im, start, factor, pairs, scratch)
    real, imaginary = np.empty((2, count, size // 2 + 1))
    rfft_rows(scratch, np.ones(count), *twiddles(size), real, imaginary)
    out = np.empty_like(scratch)
    hartley_values(real, imaginary, out)
    return out


@dataclass(frozen=True)
class TiltedSums:
    """The convolution of two rows of masses: (value +- error) * e^log_scale at every point, up to a
    relative error ``inexact`` (releases.md, Lemma 4)."""

    value: FloatArray
    error: float
    log_scale: FloatArray
    inexact: FloatArray

    @staticmethod
    def of(first: FloatArray, second: FloatArray, step: float, tilt: float) -> TiltedSums | None:
        """Convolve by a transform of the masses times e^{tilt * loss}; None if a row has no
        mass."""
        from accounting.evaluator.kernels import rfft_rows
        from accounting.evaluator.spectra import twiddles

        length = len(first) + len(second) - 1
        size = 1 << max(4, (length - 1).bit_length())
        if size > LARGEST_LAW:
            raise TooLarge(
                f"a composition on a grid of {size:,} losses is more than {LARGEST_LAW:,}: ask for "
                "fewer releases or a smaller eps"
            )
        rows = np.zeros((2, size))
        logs = np.empty(2)
        for i, masses in enumerate((first, second)):
            row = rows[i]
            exponent = tilt * multiples(0, len(masses), step)
            with np.errstate(divide="ignore", under="ignore"):
                tilted = np.log(masses) + exponent
                peak = float(tilted.max(initial=-math.inf))
                if peak == -math.inf:
                    return None
                row[: len(tilted)] = np.exp(tilted - peak)
            total = float(row.sum())
            row /= total
            logs[i] = peak + math.log(total)
        norms = np.linalg.norm(rows, axis=1) * (1 + 1e-9)
        re, im = np.empty((2, 2, size // 2 + 1))
        rfft_rows(rows, np.ones(2), *twiddles(size), re, im)
        both, only = np.arange(2), np.zeros(1, np.int64)
        value = products_of_rows(re, im, np.array([0, 2]), both, only, np.empty((1, size)))[0]
        stages = 28 * math.log2(size)
        error = (2 * stages + 8) * norms[0] * norms[1] + 2 * (stages + 4) * norms.min()
        rise = tilt * multiples(0, length, step)
        return TiltedSums(
            value=value[:length],
            error=1.01 * UNIT_ROUNDOFF * float(error),
            log_scale=float(logs.sum()) - rise,
            inexact=64 * UNIT_ROUNDOFF * (rise + float(np.abs(logs).sum()) + 800),
        )


@dataclass(frozen=True)
class DominatingPair:
    """A pair of laws on a grid of losses, see above; ``delta`` is its profile."""

    step: float
    base: int
    mass: FloatArray
    infinite: float

    @staticmethod
    def from_profile(value: FloatArray, *, base: int, step: float) -> DominatingPair:
        """Return the pair of the convex hull of upper bounds of a profile at consecutive grid
        points.

        ``value[i]`` bounds delta at eps = (base + i) * step; Lemma 2 of releases.md.
        """
        from accounting.composition.composition_kernels import convex_masses

        value = np.minimum.accumulate(np.minimum(value, 1.0))  # delta does not increase with eps
        mass = np.empty(len(value))
        convex_masses(value, step, mass)
        return DominatingPair(step, base, mass, float(value[-1]))

    @cached_property
    def losses(self) -> FloatArray:
        return multiples(self.base, len(self.mass), self.step)

    @cached_property
    def finite(self) -> float:
        """An upper bound of the mass at finite losses."""
        return _sum_above(self.mass)

    def delta(self, eps: float) -> float:
        """Return the profile at ``eps``, rounded up."""
        inexact = (2 * np.abs(self.losses) + abs(eps) + 8) * 8 * UNIT_ROUNDOFF
        gain = -np.expm1(np.minimum(eps - self.losses - inexact, 0.0)) + inexact
        above = self.losses > eps - inexact
        found = float(self.mass @ np.where(above, np.minimum(gain, 1.0), 0.0)) + self.infinite
        return min(1.0, found * (1 + (2 * len(self.mass) + 16) * UNIT_ROUNDOFF) + _UNDERFLOW)

    def profile(self, first: int, count: int, lift: float = 0.0) -> FloatArray:
        """Return upper bounds on delta at ``count`` grid points from ``first`` on, with all losses
        raised by ``lift``.

        Raises:
            Undecided: If the losses are raised by a step or more: rounding errors of masses are
                then coarser than the grid.
        """
        from accounting.composition.composition_kernels import upward_profile

        refuse_lift(lift, self.step)
        mass = np.zeros(max(count, self.base + len(self.mass) - first))
        begin = self.base - first
        inside = self.mass[max(0, -begin) :]
        mass[max(0, begin) : max(0, begin) + len(inside)] = inside
        out = np.empty(len(mass))
        upward_profile(mass, self.infinite, self.step, lift, out)
        out *= 1 + (6 * len(mass) + 32) * UNIT_ROUNDOFF
        out += _UNDERFLOW
        return np.asarray(np.minimum(out[:count], 1.0))

    def saddle(self, eps: float, times: int) -> float:
        """Find the tilt under which the mean of the sum of ``times`` losses is about ``eps``."""
        return common_saddle([(self, times)], eps)

    def mean_loss(self, tilt: float) -> float:
        """Return the mean of the finite losses under the tilt; 0 if there are none."""
        tilted = self._log_mass + tilt * self.losses
        peak = float(tilted.max(initial=-math.inf))
        if peak == -math.inf:
            return 0.0
        weight = np.exp(tilted - peak)
        return float(weight @ self.losses / weight.sum())

    @cached_property
    def _log_mass(self) -> FloatArray:
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.mass))

    def composed(self, other: DominatingPair, tilt: float) -> DominatingPair:
        """The product of both pairs (releases.md, Lemma 4).

        Any ``tilt`` is sound; errors are small relative to the mass tilted by e^{tilt * loss}.
        """
        if self.step != other.step:
            raise InvalidParameter(
                f"pairs on grids of the steps {self.step!r} and {other.step!r} do not compose: "
                "bring both to the coarser grid first"
            )
        sums = TiltedSums.of(self.mass, other.mass, self.step, tilt)
        if sums is None:
            return self._without_finite(other)
        kept = np.maximum(sums.value, 0.0) + sums.error + _UNDERFLOW
        with np.errstate(over="ignore"):
            mass = kept * np.exp(sums.log_scale) * (1 + sums.inexact) * _UP
        mass = np.minimum(mass, self.finite * other.finite * _UP)
        found = DominatingPair(self.step, self.base + other.base, mass, self._infinite(other))
        return found.normalized()

    def normalized(self) -> DominatingPair:
        """Return the pair of the convex hull of this profile and of delta <= 1, of total mass
        one."""
        value = self.profile(self.base, len(self.mass))
        return DominatingPair.from_profile(value, base=self.base, step=self.step)

    def _infinite(self, other: DominatingPair) -> float:
        """The mass of the product at infinity (Theorem 2), rounded up."""
        whole = max(1.0, self.finite + self.infinite)
        return min((self.infinite * other.finite + other.infinite * whole) * _UP, 2.0)

    def _without_finite(self, other: DominatingPair) -> DominatingPair:
        """Return the product where one of both has no finite loss."""
        return DominatingPair(self.step, self.base + other.base, np.zeros(1), self._infinite(other))

    def coarser(self) -> DominatingPair:
        """Return the pair on a grid of twice the step: every second loss is split between its
        neighbors."""
        begin, mass = self.base, self.mass
        if begin % 2:
            begin, mass = begin - 1, np.concatenate([[0.0], mass])
        mass = np.concatenate([mass, np.zeros(len(mass) % 2)])
        even, odd = mass[0::2].copy(), mass[1::2]
        right = odd / (1 + math.exp(-self.step)) * (1 + 64 * UNIT_ROUNDOFF)
        even += (odd - np.minimum(right, odd)) * (1 + 64 * UNIT_ROUNDOFF) + odd * 64 * UNIT_ROUNDOFF
        even = np.concatenate([even, [0.0]])
        even[1:] += right
        return DominatingPair(2 * self.step, begin // 2, even * (1 + 1e-15), self.infinite)

    def power(self, times: int, *, eps: float, tolerance: float) -> DominatingPair:
        """Return the product of ``times`` copies, by squaring, for its delta at about ``eps``.

        ``tolerance`` is about the relative error in delta that coarser grids and shorter tails may
        add; they never subtract.
        """
        tilt = self.saddle(eps, times)
        log_delta = times * self.log_moment(tilt) - tilt * eps
        spare = 1e-3 * tolerance * math.exp(max(min(log_delta, 0.0), -690.0))
        return self.powered(times, tilt=tilt, tolerance=tolerance, spare=spare)

    def powered(self, times: int, *, tilt: float, tolerance: float, spare: float) -> DominatingPair:
        """Return the product of ``times`` copies under a given tilt; a mass of about ``spare`` may
        become infinite."""
        if times < 1:
            raise InvalidParameter(f"times = {times} must be at least 1")
        sharp = max(tilt, 1.0, 1 / self._deviation(times))
        factor, taken = self.shortened(tilt, tolerance / times, spare / times), 1
        out: DominatingPair | None = None
        while True:
            if times // taken % 2:
                out = factor if out is None else out.matched(factor).composed(factor, tilt)
                out = out.shortened(tilt, tolerance, spare)
                if 2 * taken > times:  # the highest binary digit of ``times``, which is 1
                    return out
            factor = factor.composed(factor, tilt)
            taken *= 2
            factor = factor.shortened(tilt, tolerance * taken / times, spare * taken / times)
            # a coarser step adds variance to each of times / taken factors
            while (sharp * factor.step) ** 2 * times < 4 * taken * tolerance / 8:
                factor = factor.coarser()

    def _deviation(self, times: int) -> float:
        """Return the standard deviation of the sum of ``times`` finite losses, at least one
        step."""
        total = max(float(self.mass.sum()), 1e-300)
        mean = float(self.mass @ self.losses) / total
        variance = float(self.mass @ (self.losses - mean) ** 2) / total
        return max(math.sqrt(variance * times), self.step)

    def log_moment(self, tilt: float) -> float:
        """Estimate the logarithm of the mass tilted by e^{tilt * loss}."""
        tilted = self._log_mass + tilt * self.losses
        peak = float(tilted.max())
        if peak == -math.inf:
            return peak
        return peak + math.log(float(np.exp(tilted - peak).sum()))

    def shortened(self, tilt: float, tolerance: float, spare: float) -> DominatingPair:
        """Without the lowest losses, a share of the tilted mass far below ``tolerance``, which are
        raised, and without the highest ones, a mass of about ``spare``, which become infinite."""
        if not self.mass.any():
            return self
        tilted = self._log_mass + tilt * multiples(0, len(self.mass), self.step)
        weight = np.cumsum(np.exp(tilted - tilted.max()))
        first = int(np.searchsorted(weight, 1e-3 * tolerance * weight[-1]))
        last = len(weight) - int(np.searchsorted(np.cumsum(self.mass[::-1]), spare))
        last = max(last, first + 1)
        mass = self.mass[first:last].copy()
        mass[0] = (mass[0] + _sum_above(self.mass[:first])) * _UP
        above = _sum_above(self.mass[last:])
        return DominatingPair(self.step, self.base + first, mass, (self.infinite + above) * _UP)

    def matched(self, other: DominatingPair) -> DominatingPair:
        """Return the pair on the grid of ``other`` if that is coarser; steps differ by powers of
        two."""
        pair = self
        while pair.step < other.step:
            pair = pair.coarser()
        return pair


def _sum_above(mass: FloatArray) -> float:
    """Return an upper bound on the sum of masses."""
    return float(mass.sum()) * (1 + (len(mass) + 4) * UNIT_ROUNDOFF)


def refuse_lift(lift: float, step: float) -> None:
    """Raise Undecided unless losses on a grid are raised by less than its step, as the sums of
    ``upward_profile`` assume."""
    if not 0 <= lift < step:
        raise Undecided(
            f"rounding errors may raise every loss by {lift:.3g}, and the grid has a step of "
            f"{step:.3g}: ask for a wider gap or a larger eps, or for --tier ball"
        )


def common_saddle(pairs: Sequence[tuple[DominatingPair, int]], eps: float) -> float:
    """Find the tilt under which the mean of the sum of all losses is about ``eps``.

    Each pair comes with the number of independent losses that it stands for.
    """
    if not any(pair.mass.any() for pair, _ in pairs):
        return 1.0

    def mean(tilt: float) -> float:
        return sum(times * pair.mean_loss(tilt) for pair, times in pairs)

    high = 1.0
    while mean(high) < eps and high < 1e6:
        high *= 2
    _, high = bisection(
        lambda tilt: not mean(tilt) < eps, 0.0, high, mean=arithmetic_mean, halvings=40
    )
    # where infinite losses outweigh the rest, a gentler tilt resolves as much
    infinite = max(pair.infinite for pair, _ in pairs)
    enough = math.log(infinite) - LOG_NEGLIGIBLE if infinite > 0 else -math.inf
    while high > 0.1 and log_chernoff(pairs, high / 2, eps) < enough:
        high /= 2
    return high


def log_chernoff(pairs: Sequence[tuple[DominatingPair, int]], tilt: float, eps: float) -> float:
    """Estimate the logarithm of the Chernoff bound of delta at ``eps``."""
    return sum(times * pair.log_moment(tilt) for pair, times in pairs) - tilt * eps
