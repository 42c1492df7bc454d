"""A lower bound by a strategy that chooses every change based on what was published before.

The test sees a label of every outcome (a grid point near its loss; ``labeled`` in factors.py).  It
adds up the labels and rejects once the sum reaches a threshold, or once an outcome is impossible in
the second world.  For any strategy, the probabilities of rejecting in both worlds follow by
backward induction over the releases (notary.md, Lemma 11); the strategy that looks best is taken.
All numbers are doubles, rounded down in the first world and up in the second: only sums and
products of non-negative numbers occur.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from flint import arb

from accounting.base.arrays import UNIT_ROUNDOFF, FloatArray, multiples
from accounting.base.balls import above, ball, below, floor
from accounting.base.deadline import check_time
from accounting.notary.factors import Factor

_UNDERFLOW = 1e-300
"""More than products of masses can lose by underflow."""
_NEGLIGIBLE = 1e-7
"""Advantage over rejecting at once, times min(e^eps, 1), below which no strategy is tabulated."""


@dataclass(frozen=True)
class LabelLaws:
    """The laws of one change's label in both worlds, as masses at the grid points from ``base`` on.

    ``certain`` is the first world's mass of outcomes that are impossible in the second;
    ``unknown`` is the second world's mass that counts as rejecting.
    """

    base: int
    first: FloatArray
    second: FloatArray
    certain: float
    unknown: float

    @staticmethod
    def of(p: Factor, q: Factor) -> LabelLaws:
        base = min(p.base, q.base)
        count = max(p.top, q.top) - base + 1
        first, second = np.zeros(count), np.zeros(count)
        for i, mass in enumerate(p.poly.coeffs()):
            first[p.base - base + i] = max(0.0, below(mass))
        for i, mass in enumerate(q.poly.coeffs()):
            second[q.base - base + i] = above(mass)
        return LabelLaws(
            base=base,
            first=first,
            second=second,
            certain=max(0.0, below(p.infinite)),
            unknown=above(q.infinite),
        )


@dataclass(frozen=True)
class _Rejection:
    """Probabilities of rejecting within the remaining releases, by the sum of labels still needed.

    ``first[i]`` is a lower bound in the first world and ``second[i]`` an upper bound in the second
    if base + i more is needed.  If less than ``base`` is needed, both are 1; if more than the last,
    they are ``at_least`` and ``at_most``.
    """

    base: int
    first: FloatArray
    second: FloatArray
    at_least: float
    at_most: float

    def before(self, labels: LabelLaws) -> _Rejection:
        """The probabilities one release earlier, if this change is made there."""
        check_time()
        first = _convolved(labels.first, self.first, self.at_least) + labels.certain
        second = _convolved(labels.second, self.second, self.at_most) + labels.unknown
        terms = len(labels.first) + len(self.first) + 16
        first *= 1 - 2 * terms * UNIT_ROUNDOFF
        second *= 1 + 2 * terms * UNIT_ROUNDOFF
        second += _UNDERFLOW
        at_least = labels.certain + self.at_least * float(labels.first.sum()) * (1 - 1e-9)
        at_most = (labels.unknown + self.at_most * float(labels.second.sum())) * (1 + 1e-9)
        return _Rejection(
            base=self.base + labels.base,
            first=first,
            second=second,
            at_least=max(0.0, at_least),
            at_most=at_most + _UNDERFLOW,
        )

    def over(self, first: int, count: int) -> tuple[FloatArray, FloatArray]:
        """Both bounds if first, first + 1, ... more is needed."""
        at = np.arange(first, first + count) - self.base
        inside = np.clip(at, 0, len(self.first) - 1)
        low = np.where(at < 0, 1.0, np.where(at == inside, self.first[inside], self.at_least))
        high = np.where(at < 0, 1.0, np.where(at == inside, self.second[inside], self.at_most))
        return low, high


def _convolved(label: FloatArray, rejects: FloatArray, beyond: float) -> FloatArray:
    """Entry m is the sum over labels l of label[l] * rejects[m - l], where ``rejects`` is continued
    by 1 below and by ``beyond`` above."""
    out: FloatArray = np.convolve(label, rejects)
    rest = np.append(np.cumsum(label[::-1])[::-1], 0.0)  # labels >= l
    done = np.append(0.0, np.cumsum(label))  # labels < l
    m = np.arange(len(out))
    out += rest[np.minimum(m + 1, len(label))]
    return out + beyond * done[np.clip(m - len(rejects) + 1, 0, len(label))]


def adaptive_lower(
    changes: Sequence[LabelLaws], eps: arb, h: arb, releases: int
) -> tuple[float, int]:
    """A lower bound on delta(eps) of some adaptive sequence of these changes, and the index of the
    change it begins with."""
    step = float(h.mid())
    left = _Rejection(base=1, first=np.zeros(1), second=np.zeros(1), at_least=0.0, at_most=0.0)
    for _ in range(releases - 1):
        left = _best([left.before(labels) for labels in changes], step)
    middle, best = floor(eps / h) + 1, (0.0, 0)
    for i, labels in enumerate(changes):
        low, high = left.before(labels).over(middle - 1, 3)
        for first, second in zip(low.tolist(), high.tolist(), strict=True):
            best = max(best, (below(ball(first) - eps.exp() * ball(second)), i))
    return best


def _best(found: Sequence[_Rejection], step: float) -> _Rejection:
    """The best-looking change for every sum of labels that may still be needed."""
    base = min(one.base for one in found)
    count = max(one.base + len(one.first) for one in found) - base
    scale = np.exp(np.minimum(multiples(base, count, step), 600.0))
    first, second = found[0].over(base, count)
    for one in found[1:]:
        low, high = one.over(base, count)
        better = low - scale * high > first - scale * second
        first, second = np.where(better, low, first), np.where(better, high, second)
    top = max(found, key=lambda one: one.at_least)
    # rejecting at once is also allowed, and better where hardly anything is needed
    gain = first - scale * second
    useful = np.flatnonzero(gain > (1 - scale) + _NEGLIGIBLE * np.minimum(scale, 1.0))
    begin = int(useful[0]) if len(useful) else 0
    worth = np.flatnonzero(gain > top.at_least * (1 + 1e-6) + 1e-300)
    end = max(begin, int(worth[-1]) if len(worth) else begin) + 1
    return _Rejection(
        base=base + begin,
        first=first[begin:end],
        second=second[begin:end],
        at_least=top.at_least,
        at_most=top.at_most,
    )
