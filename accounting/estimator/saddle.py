"""Where delta is small: grids that are tilted to about the saddle point.

A transform has an absolute error of about 1e-16 of the tilted mass e^{-c eps} E[e^{c L}], whatever
delta is.  With c near the saddle point that mass is not much more than delta, unless the loss of
some factor has a heavy tail, and such tails belong to the outliers.  So the cap goes down until the
transform is accurate, but no further: the farther outliers are from the slack, the less do the
losses of the other factors matter to them.  One tilt suits pairs whose divergences are within many
powers of ten; where some are farther apart, they are divided among several.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from accounting.base.arrays import FloatArray, IntArray
from accounting.base.threads import in_chunks
from accounting.estimator.pair_group import CellTables, PairGroup

# Rules of thumb, as in ``estimate``; the tests compare the estimates with rigorous bounds.
_CAPS = np.array([1.15, 1.25, 1.35, 1.5, 1.65, 1.8, 2.0, 2.3, 2.7])
"""Caps that are tried, in units of the largest slack."""
_STEEPEST, _PER_OCTAVE = 1.5, 3
"""Steepest tilt in units of z^2 / slack, the saddle point of a normal loss; number of tilts in each
octave below it."""
_LARGEST_EXPONENT = 600.0
"""Largest tilt times loss of one factor, so that doubles hold the moments."""
_LOST_DIGITS, _HARMLESS = 6.5, 3.0
"""Powers of ten by which the tilted mass may exceed delta, and up to which gentler tilts are
better: steep ones make a caped loss end abruptly."""
_FAR_BELOW = 6.0
"""Powers of ten below the delta of interest from which on divergences need no accuracy."""


@dataclass(frozen=True)
class Saddle:
    """A tilt for some pairs of a group, and the loss of one factor from which an outcome is an
    outlier."""

    pairs: IntArray
    tilt: float
    cap: float


def saddles(group: PairGroup, tables: CellTables, eps: float, delta: float) -> Iterator[Saddle]:
    """A saddle for every pair of a group, and few in all; ``delta`` is the value of interest."""
    slack = float(group.slack.min())
    caps = _CAPS * group.slack.max()
    steepest = min(_STEEPEST * 2 * math.log(1 / delta) / slack, _LARGEST_EXPONENT / caps[-1])
    octaves = math.log2(steepest * (eps if group.sums_centrals else slack))
    tilts = steepest * 2.0 ** (np.arange(-_PER_OCTAVE * math.ceil(octaves), 1) / _PER_OCTAVE)
    log_moment, beyond = _of_factors(group, tables, tilts, caps)
    # e^{-c eps} E[e^{c L}] for losses below a cap, times about the largest (1 - e^{-l}) e^{-c l}
    log_mass = group.totals(log_moment)
    log_mass -= tilts * eps + np.log(tilts + 1)
    with np.errstate(divide="ignore"):
        log_delta = np.logaddexp(log_mass.min(axis=2), np.log(group.totals(beyond))).min(axis=1)
    needed = np.maximum(log_delta, math.log(delta) - _FAR_BELOW * math.log(10))
    lost = (log_mass - needed[:, None, None]) / math.log(10)
    left = np.arange(len(needed))
    while len(left):
        suits = lost[left] <= _LOST_DIGITS
        chosen = np.ones(len(left), np.bool_)
        if not suits.all(axis=0).any():  # at the lowest cap, some tilt suits each of them
            chosen = suits[:, 0, suits[:, 0].sum(axis=0).argmax()]
        cap = int(np.flatnonzero(suits[chosen].all(axis=0).any(axis=1)).max())
        most = lost[left[chosen], cap].max(axis=0)
        tilt = int(np.argmax(most <= max(_HARMLESS, most.min())))  # the first
        yield Saddle(left[chosen], float(tilts[tilt]), float(caps[cap]))
        left = left[~chosen]


def _of_factors(
    group: PairGroup, tables: CellTables, tilts: FloatArray, caps: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """For every factor and cap, the log-moments of losses below the cap at all tilts, and the
    P-mass of those above it, with the largest offset for a central factor."""
    from accounting.estimator.estimate_kernels import mix_spectra
    from accounting.estimator.saddle_kernels import capped_moments

    noise, shift = group.shifted_noises
    moments = np.empty((len(caps), len(noise), len(tilts)))
    beyond = np.empty((len(noise), len(caps)))

    def work(a: int, b: int) -> None:
        s = slice(a, b)
        rows = noise[s], shift[s], tilts[:_PER_OCTAVE], caps
        capped_moments(*tables.arrays, *rows, moments[:, s], beyond[s])

    in_chunks(work, len(noise), smallest=64)
    n, central, m = len(group.plain), group.central, group.central.mix[:, 0]
    shifted, low = moments[:, n:].astype(np.complex128), int(central.shifts[0])
    mixed = np.empty((len(caps), len(m), len(tilts)), np.complex128)
    exponents = tilts.astype(np.complex128)

    def mix(a: int, b: int) -> None:
        cases = central.mix[a:b], m[a:b], central.step, group.stride
        mix_spectra(shifted, low, *cases, exponents, np.zeros_like(exponents), mixed[:, a:b])

    in_chunks(mix, len(m), smallest=400)
    with np.errstate(divide="ignore"):  # where all losses are above a cap
        log_moment = np.log(np.concatenate([moments[:, :n], mixed.real], axis=1))
    log_moment[:, n:] += np.outer(m * central.step, tilts)
    top = n + central.mix[:, 1] - low
    beyond = np.concatenate([beyond[:n], beyond[top] * central.weights[0, 0]])
    return np.moveaxis(log_moment, 0, 1), beyond
