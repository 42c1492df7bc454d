"""Laws of a loss from below: masses that are at most the true ones, at losses that are too low.

The mass of an outcome is moved down to a grid point, and what is small is left out.  Each lowers
delta, alone and in every composition (releases.md, Lemma 6), so a composition of such laws gives a
lower bound of what the changes they stand for attain.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property, reduce

import numpy as np

from accounting.base.arrays import UNIT_ROUNDOFF, FloatArray, multiples
from accounting.base.deadline import check_time
from accounting.base.errors import InvalidParameter, required
from accounting.composition.dominating_pair import LARGEST_LAW, TiltedSums
from accounting.evaluator.noise_tables import NoiseTable, tabulate
from accounting.evaluator.view_pairs import ViewPairs

_TAIL = 1e-25
"""Mass beyond the table of a noise; it is left out."""
_TRUSTED = 1e-290
"""Smaller masses are left out: products of doubles lose their relative accuracy."""
_SHARE = 1e-12
"""Share of the tilted mass that is left out at the lower end."""
_LONGEST = 1 << 20
"""Largest number of losses of one law: coarser grids are taken for more."""


@dataclass(frozen=True)
class Focus:
    """The question that a law is computed for; any numbers are sound.

    ``tilt``: errors are small relative to the mass tilted by e^{tilt * loss}, and so are the lowest
    losses, which are left out.  ``spare``: plain mass of the highest losses, which are lowered.
    """

    tilt: float
    spare: float


@dataclass(frozen=True)
class LowerLaw:
    """A law from below: at least ``mass[i]`` at the loss (base + i) * step or above, and
    ``infinite`` at +infinity.

    The doubles are exact by definition, as those of ``DominatingPair``.
    """

    step: float
    base: int
    mass: FloatArray
    infinite: float

    @staticmethod
    def of(
        view_pairs: ViewPairs,
        change: int,
        *,
        step: float,
        focus: Focus,
        within: tuple[float, float],
    ) -> LowerLaw:
        """Compute the law of the loss of one change, on a grid whose step is a power of two.

        Losses of a factor that are not ``within`` are lowered to its end or left out.
        """
        one = view_pairs.subset(np.array([change]))
        if one.releases != 1:
            raise InvalidParameter(
                f"the pairs stand for {one.releases:,} releases: give those of one release, and "
                "take a power of its law"
            )
        return reduce(
            lambda law, part: law.composed(part, focus),
            (_on_grid(factor, step, *within).shortened(focus) for factor in _factors(one)),
        )

    @cached_property
    def losses(self) -> FloatArray:
        return multiples(self.base, len(self.mass), self.step)

    @cached_property
    def finite(self) -> float:
        """A lower bound of the mass at finite losses."""
        return _sum_below(self.mass)

    def delta(self, eps: float) -> float:
        """Return the profile at ``eps``, rounded down."""
        inexact = (2 * np.abs(self.losses) + abs(eps) + 8) * 8 * UNIT_ROUNDOFF
        gain = -np.expm1(np.minimum(eps - self.losses + inexact, 0.0)) - inexact
        found = float(self.mass @ np.maximum(gain, 0.0)) + self.infinite
        return _trusted(found * (1 - (2 * len(self.mass) + 16) * UNIT_ROUNDOFF))

    def composed(self, other: LowerLaw, focus: Focus) -> LowerLaw:
        """Return the law of the sum of both losses, on the coarser grid of both."""
        first, second = self, other
        while first.step < second.step or _too_long(first, second):
            first = first.coarser()
        while second.step < first.step:
            second = second.coarser()
        infinite = first.infinite * (second.finite + second.infinite)
        infinite = _trusted((infinite + first.finite * second.infinite) * (1 - 1e-14))
        sums = TiltedSums.of(first.mass, second.mass, first.step, focus.tilt)
        base = first.base + second.base
        if sums is None:
            return LowerLaw(first.step, base, np.zeros(1), infinite)
        with np.errstate(over="ignore", under="ignore"):
            mass = np.maximum(sums.value - sums.error, 0.0) * np.exp(sums.log_scale)
        mass = mass * np.maximum(1 - sums.inexact - 1e-11, 0.0)
        mass[~(mass >= _TRUSTED)] = 0.0
        return LowerLaw(first.step, base, mass, infinite).shortened(focus)

    def power(self, times: int, *, focus: Focus, tolerance: float) -> LowerLaw:
        """Return the law of the sum of ``times`` losses, by squaring.

        Coarser grids may lower delta by a share of about ``tolerance``.
        """
        if times < 1:
            raise InvalidParameter(f"times = {times} must be at least 1")
        factor, taken = self, 1
        out: LowerLaw | None = None
        while True:
            if times // taken % 2:
                out = factor if out is None else out.composed(factor, focus)
                if 2 * taken > times:  # the highest binary digit of ``times``, which is 1
                    return out
            check_time()
            factor = factor.composed(factor, focus)
            taken *= 2
            # a coarser step lowers each of times / taken losses by half a step on average
            while max(focus.tilt, 1.0) * factor.step * times < taken * tolerance / 8:
                factor = factor.coarser()

    def coarser(self) -> LowerLaw:
        """Return the law on a grid of twice the step: every second loss moves down to its
        neighbor."""
        begin, mass = self.base, self.mass
        if begin % 2:
            begin, mass = begin - 1, np.concatenate([[0.0], mass])
        if len(mass) % 2:
            mass = np.concatenate([mass, [0.0]])
        both = (mass[0::2] + mass[1::2]) * (1 - 4 * UNIT_ROUNDOFF)
        return LowerLaw(2 * self.step, begin // 2, both, self.infinite)

    def shortened(self, focus: Focus) -> LowerLaw:
        """Leave out the lowest losses, a negligible share of the tilted mass, and lower the highest
        ones, a mass of about ``focus.spare``, to where they begin."""
        held = np.flatnonzero(self.mass)
        if not len(held):
            return replace(self, mass=np.zeros(1))
        law = replace(self, base=self.base + int(held[0]), mass=self.mass[held[0] : held[-1] + 1])
        last = len(law.mass) - int(np.searchsorted(np.cumsum(law.mass[::-1]), focus.spare))
        last = max(last, 1)
        mass = law.mass[:last].copy()
        mass[-1] = (mass[-1] + _sum_below(law.mass[last:])) * (1 - 4 * UNIT_ROUNDOFF)
        with np.errstate(divide="ignore"):
            tilted = np.log(mass) + focus.tilt * multiples(0, last, law.step)
        weight = np.cumsum(np.exp(tilted - tilted.max()))
        first = min(int(np.searchsorted(weight, _SHARE * weight[-1])), last - 1)
        return LowerLaw(law.step, law.base + first, mass[first:], law.infinite)


def _too_long(first: LowerLaw, second: LowerLaw) -> bool:
    ends = len(first.mass) * first.step + len(second.mass) * second.step
    return ends > min(_LONGEST, LARGEST_LAW // 4) * max(first.step, second.step)


def _sum_below(mass: FloatArray) -> float:
    return float(mass.sum()) * (1 - (len(mass) + 4) * UNIT_ROUNDOFF)


def _trusted(mass: float) -> float:
    """Return a mass, or 0 in place of one that underflow may have raised."""
    return mass if mass >= _TRUSTED else 0.0


@dataclass(frozen=True)
class _Outcomes:
    """Masses from below, with their losses from below; ``infinite``: mass of infinite losses."""

    mass: FloatArray
    loss: FloatArray
    infinite: float


def _factors(one: ViewPairs) -> Iterator[list[_Outcomes]]:
    """The factors of a single pair, each a list of outcomes (exact_view.md, Theorem 2)."""
    tables = tabulate(one, _TAIL)
    plain, central = len(one.plain), one.central
    for index in one.factor.tolist():
        check_time()
        if index < plain:
            noise, shift = one.plain[index].tolist()
            yield [_shifted(tables[noise], shift)]
            continue
        mixture = required(central, "the central noise of a central factor")
        m, b = mixture.mix[index - plain].tolist()
        cases = []
        for i in range(m + 1):
            weight = float(mixture.weights[i, int(i == m)]) * (1 - 1e-13 * (1 + i * mixture.step))
            offset = (m - 2 * i) * mixture.step
            found = _shifted(tables[mixture.noise], b + i)
            cases.append(
                _Outcomes(
                    found.mass * weight,
                    found.loss + offset - 1e-14 * (1 + abs(offset) + np.abs(found.loss)),
                    found.infinite * weight * (1 - 1e-15),
                )
            )
        yield cases


def _shifted(table: NoiseTable, shift: int) -> _Outcomes:
    """Return the loss log f(z) - log f(z + shift) of every outcome z in the table."""
    lowered = 1 - table.relative_error - 1e-14
    kept = len(table.mass) - max(shift, 0)
    first = max(-shift, 0)  # before it nothing is possible in the other world
    infinite = _sum_below(table.mass[:first]) * lowered
    mass, other = table.mass[first:kept], table.mass[first + shift : kept + shift]
    trusted = (mass > _TRUSTED) & (other > _TRUSTED)
    loss = table.log_mass[first:kept] - table.log_mass[first + shift : kept + shift]
    loss = loss[trusted] * (1 - np.sign(loss[trusted]) * 1e-15) - table.loss_error
    return _Outcomes(mass[trusted] * lowered, loss, max(infinite, 0.0))


def _on_grid(cases: list[_Outcomes], step: float, low: float, high: float) -> LowerLaw:
    """Move all outcomes down to grid points; dividing by a power of two is exact."""
    if math.frexp(step)[0] != 0.5:
        raise InvalidParameter(
            f"step = {step!r} is not a power of two, by which a loss is divided without rounding"
        )
    cases = [
        _Outcomes(case.mass[within], np.minimum(case.loss[within], high), case.infinite)
        for case in cases
        for within in [case.loss >= low]
    ]
    places = [np.floor(case.loss / step).astype(np.int64) for case in cases]
    held = [place for place in places if len(place)]
    if not held:
        infinite = sum(case.infinite for case in cases) * (1 - 1e-12)
        return LowerLaw(step, 0, np.zeros(1), _trusted(infinite))
    base = min(int(place.min()) for place in held)
    top = max(int(place.max()) for place in held)
    mass = np.zeros(top - base + 1)
    for case, place in zip(cases, places, strict=True):
        mass += np.bincount(place - base, case.mass, len(mass))
    count = sum(map(len, places)) + len(cases)
    infinite = sum(case.infinite for case in cases)
    lowered = 1 - (count + 4) * UNIT_ROUNDOFF
    return LowerLaw(step, base, mass * lowered, _trusted(infinite * lowered))
