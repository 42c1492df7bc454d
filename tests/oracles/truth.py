"""Divergences by enumeration with mpmath, with brackets that contain the truth.

Slow, obvious, and independent of the package: no grid, no transform, no change of basis.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import mpmath as mp

Noise = tuple[float, float]
DIGITS = 50


@dataclass(frozen=True)
class Bracket:
    """low <= truth <= high."""

    low: mp.mpf
    high: mp.mpf


def masses(r: float, p: float, tail: mp.mpf) -> tuple[list[mp.mpf], mp.mpf]:
    """Masses of NB(r, p) from 0 on until the tail is at most ``tail``, and a bound of the tail."""
    r, p = mp.mpf(r), mp.mpf(p)
    out = [(1 - p) ** r]
    while True:
        k = len(out) - 1
        ratio = p * max(mp.mpf(1), (k + r) / (k + 1))
        if ratio < 1 and out[-1] * ratio / (1 - ratio) < tail:
            return out, out[-1] * ratio / (1 - ratio)
        out.append(out[-1] * p * (k + r) / (k + 1))


def product(noises: Sequence[Noise], shifts: Sequence[int], eps: float, tail: float) -> Bracket:
    """d_eps(prod(D + shift) || prod D), from the pairs (P, Q) of all outcomes.

    The outcomes of all factors but the longest are enumerated; those of the longest are sorted by
    ratio and summed with prefix sums.
    """
    with mp.workdps(DIGITS):
        cut = mp.mpf(tail)
        factors, lost = [], mp.mpf(0)
        for (r, p), a in zip(noises, shifts, strict=True):
            f, left = masses(r, p, cut)
            more = list(f)
            for k in range(len(f) - 1, len(f) - 1 + max(0, a)):
                more.append(more[-1] * mp.mpf(p) * (k + mp.mpf(r)) / (k + 1))
            pairs = [(f[z], more[z + a] if z + a >= 0 else mp.mpf(0)) for z in range(len(f))]
            factors.append(pairs)
            lost += left
        factors.sort(key=len)
        last = sorted(factors[-1], key=lambda pq: pq[1] / pq[0])
        ratio = [q / p for p, q in last]
        sum_p = [mp.mpf(0), *itertools.accumulate(p for p, _ in last)]
        sum_q = [mp.mpf(0), *itertools.accumulate(q for _, q in last)]
        scale = mp.exp(mp.mpf(eps))
        total = mp.mpf(0)
        for outcome in itertools.product(*factors[:-1]):
            p = mp.fprod(pq[0] for pq in outcome)
            q = mp.fprod(pq[1] for pq in outcome) * scale
            n = len(ratio) if q == 0 else _count_below(ratio, p / q)
            total += p * sum_p[n] - q * sum_q[n]
        margin = mp.mpf(10) ** (-DIGITS + 10)
        return Bracket(total * (1 - margin), total * (1 + margin) + lost)


def _count_below(ratio: list[mp.mpf], bound: mp.mpf) -> int:
    low, high = 0, len(ratio)
    while low < high:
        middle = (low + high) // 2
        low, high = (middle + 1, high) if ratio[middle] < bound else (low, middle)
    return low
