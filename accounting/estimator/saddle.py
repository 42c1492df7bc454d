"""Where delta is small: a grid that is tilted to about the saddle point of the worst pair.

A transform has an absolute error of about 1e-16 of the tilted mass e^{-c eps} E[e^{c L}], whatever
delta is.  With c at the saddle point that mass is not much more than delta, unless the loss of some
factor has a heavy tail, and such tails belong to the outliers.  So the cap goes down until the
transform is accurate, but no further: the farther outliers are from the slack, the less do the
losses of the other factors matter to them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from accounting.base.arrays import FloatArray
from accounting.base.threads import in_chunks
from accounting.estimator.pair_group import CellTables, PairGroup

# Rules of thumb, as in ``estimate``; the tests compare the estimates with rigorous bounds.
_CAPS = np.array([1.15, 1.25, 1.35, 1.5, 1.65, 1.8])
"""Caps that are tried, in units of the largest slack."""
_STEEPEST, _OCTAVES, _PER_OCTAVE = 1.5, 7, 3
"""Steepest tilt in units of z^2 / slack, the saddle point of a normal loss; octaves of tilts below
it, and how many are tried in each."""
_LARGEST_EXPONENT = 600.0
"""Largest tilt times loss of one factor, so that doubles hold the moments."""
_LOST_DIGITS = 9.0
"""Powers of ten by which the tilted mass may exceed delta."""
_MOST_CONTENDERS = 1000
"""Number of pairs that are looked at, the worst under a tilt in the middle."""


@dataclass(frozen=True)
class Saddle:
    """A tilt, and the loss of one factor above which an outcome is an outlier."""

    tilt: float
    cap: float

    @staticmethod
    def of(group: PairGroup, tables: CellTables, eps: float, z: float) -> Saddle:
        """The saddle of the worst pairs of a group; z is sqrt(2 log(1 / delta)) where delta is the
        value of interest."""
        caps = _CAPS * group.slack.max()
        steepest = min(_STEEPEST * z * z / group.slack.min(), _LARGEST_EXPONENT / caps[-1])
        tilts = steepest * 2.0 ** np.arange(-_OCTAVES, 0.5 / _PER_OCTAVE, 1 / _PER_OCTAVE)
        log_moment, beyond = _of_factors(group, tables, tilts, caps)
        middle = group.totals(log_moment[0, :, len(tilts) // 2])
        worst = group.subset(np.argsort(-middle)[:_MOST_CONTENDERS])
        # e^{-c eps} E[e^{c L}] times about the largest (1 - e^{-l}) e^{-c l}
        log_mass = np.array([worst.totals(of_cap).max(axis=0) for of_cap in log_moment])
        log_mass -= tilts * eps + np.log(tilts * (tilts + 1))
        least = log_mass.min(axis=1)
        with np.errstate(divide="ignore"):
            log_beyond = np.log([worst.totals(of_cap).max() for of_cap in beyond])
        log_delta = np.logaddexp(least, log_beyond).min()
        accurate = np.flatnonzero(least <= log_delta + _LOST_DIGITS * math.log(10))
        best = int(accurate.max(initial=0))
        return Saddle(float(tilts[log_mass[best].argmin()]), float(caps[best]))


def _of_factors(
    group: PairGroup, tables: CellTables, tilts: FloatArray, caps: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """For every cap and factor, the log-moments of losses below the cap at all tilts, and the
    P-mass of those above it, with the largest offset for a central factor."""
    from accounting.estimator.estimate_kernels import mix_spectra
    from accounting.estimator.saddle_kernels import capped_moments

    noise, shift = group.shifted_noises
    moments = np.empty((len(caps), len(noise), len(tilts)))
    beyond = np.empty((len(caps), len(noise)))

    def work(a: int, b: int) -> None:
        s = slice(a, b)
        rows = noise[s], shift[s], tilts[:_PER_OCTAVE], caps
        capped_moments(*tables.arrays, *rows, moments[:, s], beyond[:, s])

    in_chunks(work, len(noise), smallest=64)
    n, central, m = len(group.plain), group.central, group.central.mix[:, 0]
    spectra, low = moments[:, n:].astype(np.complex128), int(central.shifts[0])
    mixed = np.empty((len(caps), len(m), len(tilts)), np.complex128)
    exponents = tilts.astype(np.complex128)
    cases = central.mix, m, central.step, group.stride
    mix_spectra(spectra, low, *cases, exponents, np.zeros_like(exponents), mixed)
    with np.errstate(divide="ignore"):  # where all losses are above a cap
        log_moment = np.log(np.concatenate([moments[:, :n], mixed.real], axis=1))
    log_moment[:, n:] += np.outer(m * central.step, tilts)
    top = n + central.mix[:, 1] - low
    beyond = np.concatenate([beyond[:, :n], beyond[:, top] * central.weights[0, 0]], axis=1)
    return log_moment, beyond
