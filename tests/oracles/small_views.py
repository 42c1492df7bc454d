"""delta of small protocols from the raw message counts, by enumeration with mpmath.

max_value 1 with the atom {-1, 1} (its noises add), and 2 with {-1, 1} and {2, -1, -1}.  Counts
only: no change of basis.  Masses come from mpmath and are rounded to multiples of 2^-160, with
which all arithmetic is exact; the rounding and the tails are inside the bracket.
"""

from __future__ import annotations

from bisect import bisect_left
from itertools import accumulate, permutations
from typing import Any

import mpmath as mp
import numpy as np
from truth import Bracket, masses

_BITS = 160
Law = np.ndarray[Any, np.dtype[np.object_]]


def delta(
    units: list[tuple[float, float]],
    double: tuple[float, float] | None,
    eps_central: float,
    eps: float,
    *,
    share: float = 1.0,
    tail: float = 1e-13,
) -> tuple[Bracket, tuple[int, int]]:
    """delta over all ordered pairs, and the pair that attains it; ``share`` is r of the central
    noises."""
    with mp.workdps(60):
        top = 1 if double is None else 2
        cut = mp.mpf(tail)
        q = mp.exp(-mp.mpf(eps_central) / top)
        g, lost = [1 << _BITS], mp.mpf(0)
        for unit in units:
            part, left = _integers(*unit, cut)
            g = [
                sum(g[i] * part[k - i] for i in range(len(g)) if 0 <= k - i < len(part)) >> _BITS
                for k in range(len(g) + len(part) - 1)
            ]
            lost += left
        f, left = _integers(share, q, cut)
        lost += 2 * left
        law = _plus_and_minus(g, f)
        twos, left = ([1 << _BITS], mp.mpf(0)) if double is None else _integers(*double, cut)
        lost += left
        scale = mp.exp(mp.mpf(eps))
        factor = int(scale * (1 << _BITS))
        slack = (lost + mp.mpf(10) ** -30) * (1 + scale)
        at = [(0, 0), (1, 0), (0, 1)][: top + 1]  # messages +1 and 2 of an input
        best, worst = mp.mpf(-1), (0, 1)
        for j, k in permutations(range(top + 1), 2):
            whole = _divergence(law, twos, at[j], at[k], factor)
            found = mp.mpf(whole) / (1 << _BITS)
            if found > best:
                best, worst = found, (j, k)
        return Bracket(best - slack, best + slack), worst


def _integers(r: float, p: mp.mpf, cut: mp.mpf) -> tuple[list[int], mp.mpf]:
    """Masses of NB(r, p) in units of 2^-160, and a bound of the tail."""
    found, left = masses(r, p, cut)
    return [int(mass * (1 << _BITS)) for mass in found], left


def _plus_and_minus(g: list[int], f: list[int]) -> Law:
    """The law of the counts of (+1, -1): n of the atom, plus one central noise on each."""
    central = np.multiply.outer(np.array(f, object), np.array(f, object)) >> _BITS
    size = len(g) + len(f)
    law = np.full((size, size), 0, object)
    for n, mass in enumerate(g):
        law[n : n + len(f), n : n + len(f)] += central * mass
    return law >> _BITS


def _shifted(law: Law, plus: int, minus: int) -> Law:
    """law[i + plus, k + minus] at (i, k), zero outside."""
    out = np.full(law.shape, 0, object)
    n, m = law.shape
    if abs(plus) < n and abs(minus) < m:
        out[max(0, -plus) : n - max(0, plus), max(0, -minus) : m - max(0, minus)] = law[
            max(0, plus) : n - max(0, -plus), max(0, minus) : m - max(0, -minus)
        ]
    return out


def _divergence(
    law: Law, twos: list[int], before: tuple[int, int], after: tuple[int, int], factor: int
) -> int:
    """Sum of (P - e^eps Q)_+; the 2 of an atom comes with two -1, that of an input alone."""
    plus, two = before[0] - after[0], before[1] - after[1]
    # the same counts from the other input: n + two atoms, so 2 * two fewer -1 from elsewhere
    other = _shifted(law, plus, -2 * two) * factor >> _BITS
    total = 0
    for n, mass in enumerate(twos):
        m = n + two
        rival = twos[m] if 0 <= m < len(twos) else 0
        total += np.maximum(law * mass - other * rival, 0).sum() >> _BITS
    return int(total)


def moved(
    unit: tuple[float, float],
    eps_central: float,
    eps: float,
    *,
    share: float = 1.0,
    tail: float = 1e-13,
) -> Bracket:
    """delta for vectors with max_value 1: the value 1 of one coordinate moves to another.

    Both coordinates have counts of +1 and -1.  Outcomes of the first are combined with those of
    the second sorted by their ratio, with prefix sums.
    """
    with mp.workdps(60):
        cut = mp.mpf(tail)
        g, lost = _integers(*unit, cut)
        f, left = _integers(share, mp.exp(-mp.mpf(eps_central)), cut)
        lost = 2 * (lost + 2 * left)
        law = _plus_and_minus(g, f)
        first, second = (
            [
                (mp.mpf(p) / (1 << _BITS), mp.mpf(q) / (1 << _BITS))
                for p, q in zip(law.ravel(), _shifted(law, plus, 0).ravel(), strict=True)
                if p
            ]
            for plus in (1, -1)
        )
        scale = mp.exp(mp.mpf(eps))
        second.sort(key=lambda pq: pq[1] / pq[0])
        ratio = [float(q / p) for p, q in second]
        sum_p = [mp.mpf(0), *accumulate(p for p, _ in second)]
        sum_q = [mp.mpf(0), *accumulate(q for _, q in second)]
        total = mp.mpf(0)
        for p, q in first:
            n = len(ratio) if q == 0 else bisect_left(ratio, float(p / (q * scale)))
            total += p * sum_p[n] - scale * q * sum_q[n]
        slack = (lost + mp.mpf(10) ** -14) * (1 + scale)
        return Bracket(total - slack, total + slack)
