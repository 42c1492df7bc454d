"""T releases with any changes, proved in ball arithmetic (notary.md, section 7).

Every change has a law of its loss on one grid that dominates it.  Upper bounds of delta at all grid
points, rounded up to doubles, are the changes' profiles; changes with similar profiles are taken
together.  Backward over the releases, the largest profile becomes a law again by its convex hull.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from flint import arb, arb_poly

from accounting.arrays import FloatArray, multiples
from accounting.notary.balls import above, below, floor
from accounting.notary.factors import Factor
from accounting.notary.grid import Grid, Step, in_time
from accounting.notary.processes import in_processes

MOST_STEPS = 8
"""Releases up to which every one is a step of the induction; more are a power of one law."""
_MOST_KINDS = 64
_ALIKE, _TINY = 1e-3, 1e-8
"""A profile joins a kind that it exceeds by at most this share, or by this share of the kind's
largest tilted value: joining costs about as much in delta."""
_SHARE, _SPARE = 1e-7, 1e-5
"""Tilted mass that powers may raise, and mass that they may make infinite, relative to delta."""
_ROUNDING = 1e-13
"""More than the absolute rounding error of a few operations with numbers up to 1."""
_COARSEST = 64
"""Grid cells per unit of 1 / tilt that powers keep."""


@dataclass(frozen=True)
class Profile:
    """``value[i]`` is at least delta of some changes at eps = (base + i) * step."""

    base: int
    value: FloatArray
    step: float

    def over(self, first: int, count: int) -> FloatArray:
        """At the grid points first, first + 1, ...; constant after the end, and before the begin on
        the chord from delta = 1 at eps = -infinity, since delta is convex in e^eps."""
        at = np.arange(first, first + count) - self.base
        inside = self.value[np.clip(at, 0, len(self.value) - 1)]
        chord = 1 - (1 - self.value[0]) * np.exp(np.minimum(at, 0) * self.step) + _ROUNDING
        return np.where(at < 0, np.minimum(chord, 1.0), inside)


@dataclass(frozen=True)
class SequenceFinding:
    """No sequence of changes exceeds ``upper``; the fixed ``witness`` attains ``lower``."""

    upper: float
    lower: float
    witness: tuple[tuple[int, int], ...]


def sequence_bounds(
    grid: Grid, steps: Sequence[Step], eps: arb, releases: int, *, deadline: float
) -> SequenceFinding:
    """Bounds on delta(eps) on one grid, whose own number of releases is one.

    The witness is given by indices of ``steps``, each with how often it is made; for many releases
    no lower bound is proved here.
    """
    grid.prepare(steps, deadline)
    profiles = in_processes(lambda step: _profile(grid.law(step, "above"), grid.h), steps)
    in_time(deadline)
    induction = _Induction(grid.h, eps, releases, deadline)
    kinds, founders = induction.kinds(profiles)
    envelope = _largest(kinds)
    laws = [convex_law(kind, grid.h) for kind in kinds]
    whole = convex_law(envelope, grid.h)
    if releases > MOST_STEPS:
        power = _power(whole, grid.h, releases, eps=float(eps.mid()), deadline=deadline)
        return SequenceFinding(above(_delta(power[0], eps, power[1])), 0.0, ())
    later = [whole]
    for _ in range(releases - 2):
        in_time(deadline)
        products = in_processes(lambda law: _profile(composed(law, later[-1]), grid.h), laws)
        later.append(convex_law(_largest(products), grid.h))
    final = in_processes(lambda law: above(_delta(composed(law, later[-1]), eps, grid.h)), laws)
    witness = _witness(grid, laws, later, eps)
    chosen = tuple((founders[kind], times) for kind, times in witness)
    sequence = tuple(c for q, times in chosen for _ in range(times) for c in steps[q])
    return SequenceFinding(max(final), max(0.0, below(grid.lower(sequence, eps))), chosen)


def composed(law: Factor, later: Factor) -> Factor:
    """The product of the laws of a change and of what follows it."""
    finite = later.poly(arb(1))
    return Factor(
        law.base + later.base,
        law.poly * later.poly,
        law.infinite * finite + later.infinite * (law.poly(arb(1)) + law.infinite).max(arb(1)),
    )


def _profile(law: Factor, h: arb) -> Profile:
    """delta at every grid point from the law's lowest loss on, rounded up."""
    decay = (-h).exp()
    rise = 1 - decay
    at_least, beyond = arb(0), law.infinite
    value = np.empty(max(1, law.poly.length()))
    value[:] = above(beyond)
    for i in range(law.poly.length() - 1, -1, -1):
        beyond += rise * at_least
        at_least = law.poly[i] + decay * at_least
        value[i] = above(beyond)
    return Profile(law.base, np.minimum(value, 1.0), float(h.mid()))


def _delta(law: Factor, eps: arb, h: arb) -> arb:
    """delta(eps) of a law on the grid."""
    best = arb(0)
    position = eps / h
    for threshold in {floor(position) + 1, floor(position.upper()) + 1}:
        tail = law.above(threshold)
        scale = (eps - h * tail.base).exp()
        best = best.max(law.infinite + tail.poly(arb(1)) - scale * tail.poly((-h).exp()))
    return best


def _largest(profiles: Sequence[Profile]) -> Profile:
    first = min(profile.base for profile in profiles)
    count = max(profile.base + len(profile.value) for profile in profiles) - first
    value = profiles[0].over(first, count)
    for profile in profiles[1:]:
        np.maximum(value, profile.over(first, count), out=value)
    return Profile(first, value, profiles[0].step)


def convex_law(profile: Profile, h: arb) -> Factor:
    """The law whose profile is the hull of these points and (e^-infinity, 1) in e^eps.

    Doubles choose the points of the hull; whichever they choose, masses that are at least the
    changes of slope there give a profile that is nowhere below (notary.md, Lemma 7).
    """
    value = profile.value
    nodes = _hull(value, float(h.mid()))
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
    return Factor(profile.base + nodes[0], arb_poly(masses), arb(float(value[nodes[-1]])))


def _hull(value: FloatArray, h: float) -> list[int]:
    """Indices of the lower convex hull in e^eps, by doubles."""
    values = value.tolist()
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


class _Induction:
    """What is alike is taken together."""

    def __init__(self, h: arb, eps: arb, releases: int, deadline: float) -> None:
        self.h, self.eps, self.releases = float(h.mid()), float(eps.mid()), releases
        self.deadline = deadline
        self.tilt = 1.0

    def kinds(self, profiles: Sequence[Profile]) -> tuple[list[Profile], list[int]]:
        """Profiles such that each of the given ones lies below one of them, and whose they were."""
        whole = _largest(profiles)
        first, count = whole.base, len(whole.value)
        law = _doubles(whole.value, self.h)
        losses = multiples(first, count, self.h)
        self.tilt = _saddle(law, losses, self.eps / self.releases)
        weight = np.exp(self.tilt * np.minimum(losses - self.eps, 0.0))
        size = [float((p.over(first, count) * weight).max()) for p in profiles]
        kinds: list[FloatArray] = []
        peaks: list[float] = []
        founders: list[int] = []
        for q in np.argsort(size)[::-1].tolist():
            row = profiles[q].over(first, count)
            if kinds:
                over = [
                    float((np.maximum(row - kind * (1 + _ALIKE), 0) * weight).max()) - _TINY * peak
                    for kind, peak in zip(kinds, peaks, strict=True)
                ]
                best = int(np.argmin(over))
                if over[best] <= 0 or len(kinds) == _MOST_KINDS:
                    np.maximum(kinds[best], row, out=kinds[best])
                    continue
            kinds.append(row)
            peaks.append(size[q])
            founders.append(q)
        return [Profile(first, kind, self.h) for kind in kinds], founders


def _doubles(value: FloatArray, h: float) -> FloatArray:
    """About the masses of a profile."""
    fall = np.append(value[:-1] - value[1:], 0.0)
    before = np.append(1 - value[0], fall[:-1] / -math.expm1(-h))
    return np.maximum(before - fall / math.expm1(h), 0.0)


def _saddle(mass: FloatArray, losses: FloatArray, wanted: float) -> float:
    """About the tilt under which the mean loss is the wanted one."""
    with np.errstate(divide="ignore"):
        log_mass = np.log(mass)
    low, high = 0.0, 1e5
    for _ in range(60):
        middle = (low + high) / 2
        tilted = log_mass + middle * losses
        weight = np.exp(tilted - tilted.max())
        mean = float(weight @ losses / weight.sum())
        low, high = (middle, high) if mean < wanted else (low, middle)
    return high


def _witness(
    grid: Grid, laws: Sequence[Factor], later: Sequence[Factor], eps: arb
) -> list[tuple[int, int]]:
    """A fixed sequence of kinds that looks bad: release after release the one that is worst beside
    what came before and the best that may follow; then every one beside all others."""

    def worst(beside: Factor) -> int:
        found = in_processes(
            lambda law: float(_delta(composed(law, beside), eps, grid.h).mid()), laws
        )
        return int(np.argmax(found))

    def product(parts: Sequence[Factor]) -> Factor:
        out = parts[0]
        for part in parts[1:]:
            out = composed(out, part)
        return out

    chosen: list[int] = []
    for follows in [*reversed(later), None]:
        parts = [laws[kind] for kind in chosen] + ([] if follows is None else [follows])
        chosen.append(worst(product(parts)))
    for i in range(len(chosen)):
        chosen[i] = worst(product([laws[kind] for k, kind in enumerate(chosen) if k != i]))
    return [(kind, chosen.count(kind)) for kind in sorted(set(chosen))]


def _power(law: Factor, h: arb, times: int, *, eps: float, deadline: float) -> tuple[Factor, arb]:
    """The law of ``times`` copies and its step, by squaring; tails and step are cut on the safe
    side to what matters for delta at eps."""
    mass = np.array([float(law.poly[i].mid()) for i in range(law.poly.length())])
    losses = multiples(law.base, len(mass), float(h.mid()))
    tilt = _saddle(mass, losses, eps / times)
    tilted = np.log(np.maximum(mass, 1e-300)) + tilt * losses
    log_moment = float(np.log(np.exp(tilted - tilted.max()).sum()) + tilted.max())
    spare = _SPARE * math.exp(max(min(times * log_moment - tilt * eps, 0.0), -600.0))
    out: Factor | None = None
    taken, out_step = 1, h
    while True:
        in_time(deadline)
        law = _short(law, tilt * float(h.mid()), _SHARE * taken / times, spare * taken / times)
        if times // taken % 2:
            if out is None:
                out, out_step = law, h
            else:
                while out_step < h:
                    out, out_step = coarser(out, out_step), 2 * out_step
                out = _short(composed(out, law), tilt * float(h.mid()), _SHARE, spare)
        if 2 * taken > times:
            assert out is not None
            return out, out_step
        law, taken = composed(law, law), 2 * taken
        while (_COARSEST * tilt * float(h.mid())) ** 2 * times < taken:
            law, h = coarser(law, h), 2 * h


def _short(law: Factor, rise: float, share: float, spare: float) -> Factor:
    """The lowest losses raised to one (Lemma 2a) and the highest made infinite."""
    mass = np.array([float(law.poly[i].mid()) for i in range(law.poly.length())])
    tilted = np.log(np.maximum(mass, 1e-300)) + rise * np.arange(len(mass))
    weight = np.cumsum(np.exp(tilted - tilted.max()))
    first = int(np.searchsorted(weight, share * weight[-1]))
    last = max(first + 1, len(mass) - int(np.searchsorted(np.cumsum(mass[::-1]), spare)))
    coefficients = [law.poly[i] for i in range(law.poly.length())]
    kept = coefficients[first:last]
    kept[0] = sum(coefficients[:first], kept[0])
    infinite = sum(coefficients[last:], law.infinite)
    return Factor(law.base + first, arb_poly(kept), infinite)


def coarser(law: Factor, h: arb) -> Factor:
    """On every second grid point; the others are split between their neighbours (Lemma 1)."""
    odd = law.base % 2
    coefficients = [arb(0)] * odd + [law.poly[i] for i in range(law.poly.length())]
    right = 1 / (1 + (-h).exp())
    out = [arb(0)] * (len(coefficients) // 2 + 2)
    for i, mass in enumerate(coefficients):
        if i % 2:
            out[i // 2] += mass * (1 - right)
            out[i // 2 + 1] += mass * right
        else:
            out[i // 2] += mass
    return Factor((law.base - odd) // 2, arb_poly(out), law.infinite)
