"""The periodic grid of losses on which estimates are made."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from accounting.base.arrays import FloatArray

if TYPE_CHECKING:  # the module imports numba
    from accounting.estimator.estimate_kernels import ComplexArray

_STEEP_PRECISION = 1e-10
"""Precision of a steep grid; rule of thumb."""


@dataclass(frozen=True)
class PeriodicGrid:
    """Losses from eps - below on, periodic; those of one factor above ``cap`` are outliers.

    Attributes:
        step: Distance of two grid points.
        size: Number of grid points.
        tilt: c, the real part of the exponents of the moments.
        cap: Loss of one factor above which an outcome is an outlier.
        below: Distance of the first grid point from eps.
        precision: Size below which errors relative to the moment at frequency 0 do not matter.
        is_steep: Whether e^{c loss} may be beyond the range of doubles: then moments and weights
            are in units of their own.
    """

    step: float
    size: int
    tilt: float
    cap: float
    below: float
    precision: float
    is_steep: bool = False

    def steep(self, tilt: float, cap: float) -> PeriodicGrid:
        """The same grid with a tilt near the saddle point."""
        return replace(self, tilt=tilt, cap=cap, precision=_STEEP_PRECISION, is_steep=True)

    @property
    def exponents(self) -> ComplexArray:
        """c - i w_k: the exponents at which ``np.fft.rfft`` of a row is a moment."""
        frequency = 2 * np.pi / (self.size * self.step) * np.arange(self.size // 2 + 1)
        return np.asarray(self.tilt - 1j * frequency)

    @property
    def taken_out(self) -> float:
        """The part of c that constant losses do not enter with; their logarithms account for it."""
        return self.tilt if self.is_steep else 0.0

    def weights(self, eps: float) -> ComplexArray:
        """Weights of the moments: the transform of e^{-c l} (1 - e^{eps - l})_+ up to the end, in
        units of e^{-taken_out * eps}."""
        power = np.conj(self.exponents)
        weight = np.full(len(power), 2.0)
        weight[[0, -1]] = 1.0
        end = self.size * self.step - self.below
        whole = 1 / power - 1 / (power + 1)
        rest = np.exp(-power * end) / power - np.exp(-(power + 1) * end) / (power + 1)
        at_eps = np.exp((self.taken_out - power) * eps)
        transform = at_eps * (whole - rest) * _filter(power.imag * self.step, self.precision)
        return np.asarray(np.conj(transform * weight / (self.size * self.step)))


def _filter(phase: FloatArray, precision: float) -> FloatArray:
    """1 for low frequencies and far below ``precision`` for the highest, which a narrow loss would
    turn into ripples; flat to fifth order, and narrow itself."""
    u = (1.25 * math.log(1 / precision) + 14) / math.pi**2 * phase**2
    return np.asarray(np.exp(-u) * (1 + u * (1 + u / 2 * (1 + u / 3 * (1 + u / 4)))))
