"""Numba kernels of the coarse losses: they choose a grid, and no bound depends on them."""

from __future__ import annotations

import math

from accounting.base.arrays import FloatArray, IntArray
from accounting.base.jit import kernel

STATISTICS = 7
"""Number of columns of ``out`` of ``sample_losses``."""


@kernel
def sample_losses(
    mass: FloatArray,
    log_mass: FloatArray,
    shift: IntArray,
    dense: int,
    stride: int,
    clip: float,
    step: float,
    first: int,
    cells: FloatArray,
    out: FloatArray,
) -> None:
    """Histograms of the loss of every shift, rounded to the nearest multiple of ``step``.

    After the first ``dense`` outcomes only every ``stride``-th is used, with that weight.  A row of
    ``out`` is [mass at +infinity, P-mass above the grid, Q-mass of that, mean and variance of the
    loss clipped to [-clip, clip], smallest and largest finite loss].  With empty ``cells`` there is
    no histogram.
    """
    n = mass.size
    width = cells.shape[1]
    for row in range(shift.size):
        a = shift[row]
        out[row, :] = 0.0
        if width:
            cells[row, :] = 0.0
        for z in range(min(n, max(0, -a))):
            out[row, 0] += mass[z]
        m0 = m1 = m2 = 0.0
        smallest = math.inf
        largest = -math.inf
        z = max(0, -a)
        while z < min(n, n - a):
            jump = 1 if z < dense else stride
            m = mass[z] * jump
            loss = log_mass[z] - log_mass[z + a]
            z += jump
            smallest = min(smallest, loss)
            largest = max(largest, loss)
            clipped = min(max(loss, -clip), clip)
            m0 += m
            m1 += m * clipped
            m2 += m * clipped * clipped
            if width:
                i = math.floor(loss / step + 0.5) - first
                if i >= width:
                    out[row, 1] += m
                    out[row, 2] += m * math.exp(-loss)
                else:
                    cells[row, max(int(i), 0)] += m
        out[row, 5] = smallest
        out[row, 6] = largest
        if m0 > 0.0:
            out[row, 3] = m1 / m0
            out[row, 4] = m2 / m0 - (m1 / m0) ** 2


@kernel
def capped_moments(
    cells: FloatArray,
    above: FloatArray,
    loss: FloatArray,
    budget: float,
    tilts: FloatArray,
    decay: FloatArray,
    log_moment: FloatArray,
    top: FloatArray,
    aside: FloatArray,
) -> None:
    """Cap each row where the Q-mass above is at most ``budget``; log-moments of the rest.

    ``above[row]`` has the P- and Q-mass above the grid; ``top`` becomes the loss of the cap and
    ``aside`` the P-mass above it.
    """
    for row in range(cells.shape[0]):
        i = loss.size - 1
        p_mass = above[row, 0]
        q_mass = above[row, 1]
        while i > 0:
            q_mass += cells[row, i] * math.exp(-loss[i])
            if q_mass > budget:
                break
            p_mass += cells[row, i]
            i -= 1
        i = min(i + 1, loss.size - 1)  # an outcome below the cap may reach one point above it
        top[row] = loss[i]
        aside[row] = p_mass
        for j in range(tilts.size):
            total = 0.0
            for k in range(i + 1):
                total += cells[row, k] * decay[j, i - k]
            log_moment[row, j] = math.log(total) + tilts[j] * loss[i] if total > 0.0 else -math.inf
