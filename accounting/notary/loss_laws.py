"""Laws of losses on a grid, their profiles, and laws from profiles (notary.md, section 7).

A law is a ``Factor``: masses of finite losses and the mass at +infinity.  Its profile is delta at
every grid point, rounded up to doubles.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from flint import arb, arb_poly

from accounting.base.arrays import FloatArray, multiples
from accounting.base.balls import above, floor
from accounting.base.bisection import arithmetic_mean, bisection
from accounting.base.deadline import check_time
from accounting.base.errors import InternalError
from accounting.notary.factors import Factor

_OUTWEIGHED = 9.0
"""Negative log of the ratio below which a mass is small compared to the mass at infinity."""
_COARSEST = 64.0
"""Grid cells per unit of 1 / tilt that powers keep at least; a rule of thumb."""
_LARGEST_TILT = 1e5
"""Upper end of the search for a tilt, in units of 1 / loss."""
_ROUNDING = 1e-13
"""More than the absolute rounding error of a few operations with numbers up to 1."""


@dataclass(frozen=True)
class Profile:
    """Upper bounds on delta of some changes: ``value[i]`` at eps = (base + i) * step."""

    base: int
    value: FloatArray
    step: float

    def over(self, first: int, count: int) -> FloatArray:
        """The profile at the grid points first, first + 1, ...

        It is constant after the last point.  Before the first it is the chord from delta = 1 at
        eps = -infinity, since delta is convex in e^eps.
        """
        at = np.arange(first, first + count) - self.base
        inside = self.value[np.clip(at, 0, len(self.value) - 1)]
        chord = 1 - (1 - self.value[0]) * np.exp(np.minimum(at, 0) * self.step) + _ROUNDING
        return np.where(at < 0, np.minimum(chord, 1.0), inside)


def profile(law: Factor, h: arb) -> Profile:
    """delta at every grid point from the law's lowest loss on, rounded up."""
    check_time()
    decay = (-h).exp()
    rise = 1 - decay
    at_least, beyond = arb(0), law.infinite
    value = np.full(max(1, law.poly.length()), above(beyond))
    for i in range(law.poly.length() - 1, -1, -1):
        beyond += rise * at_least
        at_least = law.poly[i] + decay * at_least
        value[i] = above(beyond)
    return Profile(law.base, np.minimum(value, 1.0), float(h.mid()))


def largest(profiles: Sequence[Profile]) -> Profile:
    """The largest of several profiles at every grid point."""
    first = min(found.base for found in profiles)
    count = max(found.base + len(found.value) for found in profiles) - first
    value = profiles[0].over(first, count)
    for found in profiles[1:]:
        np.maximum(value, found.over(first, count), out=value)
    return Profile(first, value, profiles[0].step)


def delta(law: Factor, eps: arb, h: arb) -> arb:
    """delta(eps) of a law on the grid."""
    best = arb(0)
    position = eps / h
    for threshold in {floor(position) + 1, floor(position.upper()) + 1}:
        tail = law.above(threshold)
        scale = (eps - h * tail.base).exp()
        best = best.max(law.infinite + tail.poly(arb(1)) - scale * tail.poly((-h).exp()))
    return best


def composed(law: Factor, later: Factor) -> Factor:
    """The product of two laws of any total mass (notary.md, Lemma 10)."""
    check_time()
    whole = (law.poly(arb(1)) + law.infinite).max(arb(1))
    infinite = law.infinite * later.poly(arb(1)) + later.infinite * whole
    return Factor(law.base + later.base, law.poly * later.poly, infinite)


def convex_law(found: Profile, h: arb) -> Factor:
    """The law whose profile is the lower convex hull of these points and (0, 1) in e^eps.

    The points of the hull are chosen with doubles.  For any choice, masses that are at least the
    changes of slope give a profile that is nowhere below the hull (notary.md, Lemma 9).
    """
    value = np.minimum.accumulate(found.value)  # delta does not increase with eps
    nodes = _hull(value.tolist(), found.step)
    far: dict[int, arb] = {}

    def decay(cells: int) -> arb:
        if cells not in far:
            far[cells] = (-h * cells).exp()
        return far[cells]

    masses = [arb(0)] * (nodes[-1] - nodes[0] + 1)
    before = 1 - arb(float(value[nodes[0]]))
    for b, c in zip(nodes, [*nodes[1:], None], strict=True):
        after, to_next = arb(0), arb(0)
        if c is not None:
            fall = arb(float(value[b])) - arb(float(value[c]))
            gone = decay(c - b)
            after, to_next = fall * gone / (1 - gone), fall / (1 - gone)
        masses[b - nodes[0]] = arb(above((before - after).max(arb(0))))
        before = to_next
    return Factor(found.base + nodes[0], arb_poly(masses), arb(float(value[nodes[-1]])))


def _hull(values: list[float], h: float) -> list[int]:
    """Indices of the lower convex hull in e^eps, computed with doubles."""
    nodes: list[int] = []
    left: list[float] = []
    for c, new in enumerate(values):
        while nodes:
            b = nodes[-1]
            if left[-1] > (values[b] - new) / math.expm1((c - b) * h):
                break
            nodes.pop()
            left.pop()
        a = nodes[-1] if nodes else None
        left.append(1 - new if a is None else (values[a] - new) / -math.expm1((a - c) * h))
        nodes.append(c)
    return nodes


@dataclass(frozen=True)
class Cut:
    """The part of a law's tails that may be cut; only the width of the bounds depends on it.

    ``share`` is the share of the tilted mass whose losses may be raised; ``spare`` is the mass that
    may become infinite.
    """

    tilt: float
    share: float
    spare: float

    def of(self, part: float) -> Cut:
        """This part of what may be cut."""
        return replace(self, share=self.share * part, spare=self.spare * part)

    def __call__(self, law: Factor, h: arb) -> Factor:
        """The law with its lowest losses raised and its highest made infinite (Lemma 2)."""
        coefficients = law.poly.coeffs()
        mass = np.array([float(coefficient.mid()) for coefficient in coefficients])
        if not len(mass):
            return law
        tilted = np.log(np.maximum(mass, 1e-300))
        tilted += self.tilt * multiples(0, len(mass), float(h.mid()))
        weight = np.cumsum(np.exp(tilted - tilted.max()))
        first = int(np.searchsorted(weight, self.share * weight[-1]))
        last = len(mass) - int(np.searchsorted(np.cumsum(mass[::-1]), self.spare))
        last = max(first + 1, last)
        kept = coefficients[first:last]
        kept[0] = sum(coefficients[:first], kept[0])
        infinite = sum(coefficients[last:], law.infinite)
        return Factor(law.base + first, arb_poly(kept), infinite)


def cut_for(law: Factor, h: arb, *, eps: float, times: int, share: float) -> Cut:
    """The tilt under which ``times`` losses have mean eps, and tails that hardly matter then."""
    mass = np.array([float(coefficient.mid()) for coefficient in law.poly.coeffs()])
    losses = multiples(law.base, len(mass), float(h.mid()))
    if not mass.any():
        return Cut(tilt=1.0, share=share, spare=0.0)
    with np.errstate(divide="ignore"):
        log_mass = np.log(mass)

    def reached(tilt: float) -> bool:
        tilted = log_mass + tilt * losses
        weight = np.exp(tilted - tilted.max())
        return float(weight @ losses / weight.sum()) * times >= eps

    _, high = bisection(reached, 0.0, _LARGEST_TILT, mean=arithmetic_mean, halvings=60)

    def chernoff(tilt: float) -> float:
        tilted = log_mass + tilt * losses
        peak = float(tilted.max())
        return times * (peak + math.log(float(np.exp(tilted - peak).sum()))) - tilt * eps

    # if the infinite losses outweigh the rest, a smaller tilt resolves as much
    infinite = above(law.infinite)
    enough = math.log(infinite) - _OUTWEIGHED if infinite > 0 else -math.inf
    while high > 0.1 and chernoff(high / 2) < enough:
        high /= 2
    spare = share * math.exp(max(min(chernoff(high), 0.0), -600.0))
    return Cut(tilt=high, share=share, spare=spare)


def coarser(law: Factor, h: arb) -> Factor:
    """The law on every second grid point; the others are split between neighbors (Lemma 1)."""
    odd = law.base % 2
    coefficients = [arb(0)] * odd + law.poly.coeffs()
    right = 1 / (1 + (-h).exp())
    out = [arb(0)] * (len(coefficients) // 2 + 2)
    for i, mass in enumerate(coefficients):
        if i % 2:
            out[i // 2] += mass * (1 - right)
            out[i // 2 + 1] += mass * right
        else:
            out[i // 2] += mass
    return Factor((law.base - odd) // 2, arb_poly(out), law.infinite)


def power(law: Factor, h: arb, times: int, cut: Cut) -> tuple[Factor, arb]:
    """The law of ``times`` copies, by repeated squaring, and its grid step, which may be larger."""
    if times < 1:
        raise InternalError(f"a law of {times} copies was asked for")
    out: Factor | None = None
    taken, out_step = 1, h
    while True:
        law = cut.of(taken / times)(law, h)
        if times // taken % 2:
            while out is not None and out_step < h:
                out, out_step = coarser(out, out_step), 2 * out_step
            out = law if out is None else cut(composed(out, law), h)
            out_step = h
            if 2 * taken > times:  # the highest binary digit of ``times``, which is 1
                return out, out_step
        law, taken = composed(law, law), 2 * taken
        while (_COARSEST * max(cut.tilt, 1.0) * float(h.mid())) ** 2 * times < taken:
            law, h = coarser(law, h), 2 * h
