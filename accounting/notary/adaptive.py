"""A lower bound by a strategy that chooses every change by what was published before.

Whoever sees labels of the outcomes (grid points near their losses, ``labelled`` in factors.py) adds
them up and rejects once the sum reaches a threshold, or once an outcome is certain.  The test's
probabilities under both laws follow backward over the releases (notary.md, Lemma 9), for whatever
strategy; the one that looks best is taken.  Doubles, rounded down under the first law and up under
the second one: sums and products of numbers that are not negative.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from flint import arb

from accounting.base.arrays import FloatArray, multiples
from accounting.base.balls import above, ball, below, floor
from accounting.base.deadline import check_time
from accounting.notary.factors import Factor

_UNIT_ROUNDOFF = 2.0**-53
_UNDERFLOW = 1e-300
"""More than what products of masses can lose below the smallest double."""
_NEGLIGIBLE = 1e-7
"""Of delta: chances of rejecting that are this small are given up."""


@dataclass(frozen=True)
class Labels:
    """Both laws of one change's label: masses from ``base`` on, and what rejects at once."""

    base: int
    first: FloatArray
    second: FloatArray
    certain: float
    unknown: float

    @staticmethod
    def of(p: Factor, q: Factor) -> Labels:
        base = min(p.base, q.base)
        count = max(p.top, q.top) - base + 1
        first, second = np.zeros(count), np.zeros(count)
        for i, mass in enumerate(p.poly.coeffs()):
            first[p.base - base + i] = max(0.0, below(mass))
        for i, mass in enumerate(q.poly.coeffs()):
            second[q.base - base + i] = above(mass)
        return Labels(base, first, second, max(0.0, below(p.infinite)), above(q.infinite))


@dataclass(frozen=True)
class _Chances:
    """Of rejecting by the releases that are left: ``first[i]`` where labels of base + i more are
    needed.  With fewer than ``base`` it rejects, with more than the last only what is certain."""

    base: int
    first: FloatArray
    second: FloatArray
    at_least: float
    at_most: float

    def before(self, labels: Labels) -> _Chances:
        """One release earlier, if that makes this change."""
        check_time()
        first = _convolved(labels.first, self.first, self.at_least) + labels.certain
        second = _convolved(labels.second, self.second, self.at_most) + labels.unknown
        terms = len(labels.first) + len(self.first) + 16
        first *= 1 - 2 * terms * _UNIT_ROUNDOFF
        second *= 1 + 2 * terms * _UNIT_ROUNDOFF
        second += _UNDERFLOW
        return _Chances(
            self.base + labels.base,
            first,
            second,
            max(0.0, labels.certain + self.at_least * float(labels.first.sum()) * (1 - 1e-9)),
            (labels.unknown + self.at_most * float(labels.second.sum())) * (1 + 1e-9) + _UNDERFLOW,
        )

    def over(self, first: int, count: int) -> tuple[FloatArray, FloatArray]:
        at = np.arange(first, first + count) - self.base
        inside = np.clip(at, 0, len(self.first) - 1)
        low = np.where(at < 0, 1.0, np.where(at == inside, self.first[inside], self.at_least))
        high = np.where(at < 0, 1.0, np.where(at == inside, self.second[inside], self.at_most))
        return low, high


def _convolved(label: FloatArray, chance: FloatArray, beyond: float) -> FloatArray:
    """Entry m: the sum over labels l of label[l] * (chance of what is left after l): of
    chance[m - l] inside, of 1 below and of ``beyond`` above."""
    out: FloatArray = np.convolve(label, chance)
    rest = np.append(np.cumsum(label[::-1])[::-1], 0.0)  # labels >= l
    done = np.append(0.0, np.cumsum(label))  # labels < l
    m = np.arange(len(out))
    out += rest[np.minimum(m + 1, len(label))]
    return out + beyond * done[np.clip(m - len(chance) + 1, 0, len(label))]


def adaptive_lower(changes: Sequence[Labels], eps: arb, h: arb, releases: int) -> tuple[float, int]:
    """delta(eps) of some adaptive sequence of these changes is at least this; and with which of
    them that begins."""
    step = float(h.mid())
    left = _Chances(1, np.zeros(1), np.zeros(1), 0.0, 0.0)
    for _ in range(releases - 1):
        left = _best([left.before(labels) for labels in changes], step)
    middle, best = floor(eps / h) + 1, (0.0, 0)
    for i, labels in enumerate(changes):
        low, high = left.before(labels).over(middle - 1, 3)
        for first, second in zip(low.tolist(), high.tolist(), strict=True):
            best = max(best, (below(ball(first) - eps.exp() * ball(second)), i))
    return best


def _best(found: Sequence[_Chances], step: float) -> _Chances:
    """For every number of labels that are needed, the change that looks best then."""
    base = min(chances.base for chances in found)
    count = max(chances.base + len(chances.first) for chances in found) - base
    scale = np.exp(np.minimum(multiples(base, count, step), 600.0))
    first, second = found[0].over(base, count)
    for chances in found[1:]:
        low, high = chances.over(base, count)
        better = low - scale * high > first - scale * second
        first, second = np.where(better, low, first), np.where(better, high, second)
    top = max(found, key=lambda chances: chances.at_least)
    # to reject at once is a choice as well, the better one where hardly anything is needed
    gain = first - scale * second
    useful = np.flatnonzero(gain > (1 - scale) + _NEGLIGIBLE * np.minimum(scale, 1.0))
    begin = int(useful[0]) if len(useful) else 0
    worth = np.flatnonzero(gain > top.at_least * (1 + 1e-6) + 1e-300)
    end = max(begin, int(worth[-1]) if len(worth) else begin) + 1
    return _Chances(base + begin, first[begin:end], second[begin:end], top.at_least, top.at_most)
