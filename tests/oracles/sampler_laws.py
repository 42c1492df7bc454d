"""The law of a sampler: exactly, over all bit strings, and by a chi-square test."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from fractions import Fraction

import numpy as np
from scipy import stats

from paramsearch.deploy.bits import BitSource, EndOfTape, Tape
from paramsearch.parameters.sections import AnyAtomNoise, BurstNoise, CentralNoise

ALARM = 1e-6
"""Probability that a statistical test fails although the law is right."""


def law(draw: Callable[[BitSource], int], depth: int) -> tuple[dict[int, Fraction], Fraction]:
    """The law over all bit strings of length ``depth``, and the mass of those too short."""
    found: dict[int, Fraction] = defaultdict(Fraction)
    short = Fraction(0)
    waiting = [""]
    while waiting:
        text = waiting.pop()
        tape = Tape(text)
        try:
            outcome = draw(tape)
        except EndOfTape:
            if len(text) == depth:
                short += Fraction(1, 1 << depth)
            else:
                waiting += [text + "0", text + "1"]
        else:
            assert tape.read == len(text)  # no bit is read that is not needed
            found[outcome] += Fraction(1, 1 << len(text))
    assert sum(found.values()) + short == 1
    return found, short


def copies_cdf(noise: CentralNoise | AnyAtomNoise) -> Callable[[np.ndarray], np.ndarray]:
    """Of the copies that all users send together.  Of bursts: so many are Poisson, and j of them
    have j copies and NB(j m, p) more."""
    p = float(Fraction(noise.p))
    if not isinstance(noise, BurstNoise):
        return lambda k: stats.nbinom.cdf(k, noise.r, 1 - p)
    rate, m = float(Fraction(noise.rate)), noise.m

    def cdf(k: np.ndarray) -> np.ndarray:
        total = np.full(len(k), stats.poisson.pmf(0, rate))
        for j in range(1, int(np.max(k)) + 1):
            total += stats.poisson.pmf(j, rate) * stats.nbinom.cdf(k - j, j * m, 1 - p)
        return total

    return cdf


def chi_square(drawn: np.ndarray, cdf: Callable[[np.ndarray], np.ndarray]) -> float:
    """The p-value, with cells of at least 20 expected outcomes."""
    n = len(drawn)
    edges: list[int] = []
    below, k, stride = 0.0, 0, 1
    while True:
        here = float(cdf(np.array([k]))[0])
        if (1 - here) * n < 20:
            break
        if (here - below) * n >= 20:
            edges.append(k)
            below = here
        stride = max(1, k // 50)
        k += stride
    assert edges  # too few draws to see anything
    expected = n * np.diff(np.concatenate([[0.0], cdf(np.array(edges)), [1.0]]))
    cells = np.searchsorted(np.array(edges), drawn, side="left")
    seen = np.bincount(cells, minlength=len(expected))
    return float(stats.chi2.sf(((seen - expected) ** 2 / expected).sum(), len(expected) - 1))
