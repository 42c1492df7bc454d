"""Functions of the gridded loss whose expectations bound the divergence (discretisation.md, 2-3).

With x = e^{eps - loss} the divergence is E[(1 - x)_+].  After connect-the-dots the gridded
loss gives y = x (1 + xi) with E xi = 0, so (1 - y)_+ is an upper bound (Theorem 1).  Every function
psi with E psi(y) <= (1 - x)_+ is a lower bound; that of Theorem 2 differs from (1 - y)_+ only near
the kink, by an amount whose integral is of second order in the step.
"""

from __future__ import annotations

import math

import numpy as np

from accounting.base.arrays import UNIT_ROUNDOFF, FloatArray

UPPER, LOWER = 0, 1
"""Columns of arrays with one number for each of the two bounding functions."""
_CURVATURE = 0.65
"""The free constant c of Theorem 2, in units of 1/sqrt(v); any positive value is sound."""


def rounding(tilt: float, reach: float) -> float:
    """Return a bound on the rounding errors of ``upper`` and ``lower``, relative to the largest
    magnitude of their values or of e^{-tilt d} (1 - e^{-d}), d >= 0 (Lemma F6).

    ``reach`` is at least |loss| + eps.
    """
    return 64 * UNIT_ROUNDOFF * ((tilt + 1) * reach + 4)


def log_peak(tilt: float) -> float:
    """log sup_{d >= 0} e^{-tilt d} (1 - e^{-d})."""
    return -math.log1p(tilt) - tilt * math.log1p(1 / tilt) if tilt > 0 else 0.0


def upper(loss: FloatArray, eps: float, tilt: float) -> FloatArray:
    """e^{-tilt (loss - eps)} (1 - e^{eps - loss})_+."""
    values = np.zeros(len(loss))
    above = np.flatnonzero(loss > eps)
    d = loss[above] - eps
    values[above] = np.exp(-tilt * d) * -np.expm1(-d)
    return values


def split_variance(splits: int, step: float) -> float:
    """An upper bound of E[(y - x)^2] for |log x| <= splits * step (Lemma 4)."""
    relative = math.expm1(splits * math.log1p(math.sinh(step / 2) ** 2))
    return relative * math.exp(2 * splits * step) * (1 + 1e-12)


def lower(loss: FloatArray, eps: float, tilt: float, splits: int, step: float) -> FloatArray:
    """e^{-tilt (loss - eps)} psi(e^{eps - loss}) with the psi of Theorem 2, for
    2 * splits * step * max(tilt, 1) up to about 600."""
    values = upper(loss, eps, tilt)
    # more points may count as near (Theorem 2), so none is missed by rounding
    widest = 2 * splits * step * (1 + 1e-12) + 4 * UNIT_ROUNDOFF * (np.abs(loss) + abs(eps))
    near = np.flatnonzero(np.abs(loss - eps) <= widest)
    d = loss[near] - eps
    v = split_variance(splits, step)
    c = _CURVATURE / math.sqrt(v)
    w = -np.expm1(-d)
    size, root = np.abs(w), math.sqrt(v)
    inner = size <= math.sqrt(v + 1 / c**2)
    # (w + sqrt(w^2 - v)) / 2, where w^2 may overflow, and where w < 0 may cancel
    chi = np.sqrt(np.maximum(size - root, 0.0)) * np.sqrt(size + root)
    psi = np.where(w < 0, -0.5 * (v / np.maximum(size + chi, root)), 0.5 * (w + chi))
    psi[inner] = 0.5 * (w[inner] + c * (w[inner] ** 2 - v))
    values[near] = np.exp(-tilt * d) * psi
    return values
