"""Numba kernels of the coarse losses: they choose a grid, and no bound depends on them."""

from __future__ import annotations

import math

import numpy as np

from accounting.base.arrays import BoolArray, FloatArray, IntArray
from accounting.base.jit import kernel


@kernel
def sample_losses(
    all_mass: FloatArray,
    all_log_mass: FloatArray,
    start: IntArray,
    table: IntArray,
    shift: IntArray,
    samples: int,
    clip: float,
    step: float,
    first: int,
    cells: FloatArray,
    out: FloatArray,
) -> None:
    """Histograms of the loss of every shifted table, rounded to the nearest multiple of ``step``.

    Table t begins at start[t].  About ``samples`` outcomes of it are used, with weights: the first
    ones all, later ones at equal distances.  A row of ``out`` is [mass at +infinity, P-mass above
    the grid, Q-mass of that, mean and variance of the loss clipped to [-clip, clip], smallest and
    largest finite loss].  With empty ``cells`` there is no histogram.
    """
    width = cells.shape[1]
    dense = samples // 4
    for row in range(shift.size):
        mass = all_mass[start[table[row]] : start[table[row] + 1]]
        log_mass = all_log_mass[start[table[row]] : start[table[row] + 1]]
        n = mass.size
        stride = max(1, n // samples)
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
def fill_powers(ratio: FloatArray, power: FloatArray) -> None:
    """power[d] = ratio^d, and 0 where that is negligible: subnormal numbers would be slow."""
    power[0] = 1.0
    for d in range(1, power.shape[0]):
        for j in range(ratio.size):
            value = power[d - 1, j] * ratio[j]
            power[d, j] = value if value > 1e-290 else 0.0


@kernel
def capped_moments(
    cells: FloatArray,
    above: FloatArray,
    loss: FloatArray,
    budget: float,
    tilts: FloatArray,
    fine: FloatArray,
    wide: FloatArray,
    log_moment: FloatArray,
    top: FloatArray,
    aside: FloatArray,
) -> None:
    """Cap each row where the Q-mass above is at most ``budget``; log-moments of the rest.

    With n = len(fine) the row ``fine[d]`` has e^{-tilt * d * step} for every tilt, and ``wide[d]``
    the same of n * d.  ``above[row]`` has the P- and Q-mass above the grid; ``top`` becomes the
    loss of the cap and ``aside`` the P-mass above it.
    """
    n = fine.shape[0]
    total = np.empty(tilts.size)
    for row in range(cells.shape[0]):
        i = loss.size - 1
        p_mass = above[row, 0]
        q_mass = above[row, 1]
        while i > 0:
            if cells[row, i] > 0.0:
                q_mass += cells[row, i] * math.exp(-loss[i])
            if q_mass > budget:
                break
            p_mass += cells[row, i]
            i -= 1
        i = min(i + 1, loss.size - 1)  # an outcome below the cap may reach one point above it
        top[row] = loss[i]
        aside[row] = p_mass
        total[:] = 0.0
        for k in range(i + 1):
            mass = cells[row, k]
            if mass > 0.0:
                high = wide[(i - k) // n]
                low = fine[(i - k) % n]
                for j in range(total.size):
                    total[j] += mass * high[j] * low[j]
        for j in range(tilts.size):
            found = total[j] > 0.0
            log_moment[row, j] = math.log(total[j]) + tilts[j] * loss[i] if found else -math.inf


@kernel
def saddle_points(
    start: IntArray,
    factor: IntArray,
    releases: int,
    factor_log_moment: FloatArray,
    factor_cap: FloatArray,
    above_cap: FloatArray,
    tilts: FloatArray,
    eps: float,
    log_moment: FloatArray,
    cap: FloatArray,
    out: FloatArray,
) -> None:
    """Totals over the factors of each pair, and saddle-point estimates of its divergence.

    A row of ``out`` is [tilt of the least Chernoff bound, divergence below the caps, mass above].
    """
    last = tilts.size - 2
    for q in range(start.size - 1):
        log_moment[q] = 0.0
        cap[q] = 0.0
        aside = 0.0
        for position in range(start[q], start[q + 1]):
            f = factor[position]
            cap[q] += releases * factor_cap[f]
            aside += releases * above_cap[f]
            for j in range(tilts.size):
                log_moment[q, j] += releases * factor_log_moment[f, j]
        best = 0
        least = math.inf
        for j in range(tilts.size):
            exponent = log_moment[q, j] - tilts[j] * eps
            if exponent < least:
                best = j
                least = exponent
        best = min(max(best, 1), last)
        here = log_moment[q, best] - tilts[best] * eps
        before = (here - log_moment[q, best - 1] + tilts[best - 1] * eps) / (
            tilts[best] - tilts[best - 1]
        )
        after = (log_moment[q, best + 1] - tilts[best + 1] * eps - here) / (
            tilts[best + 1] - tilts[best]
        )
        bend = (after - before) / (tilts[best + 1] - tilts[best - 1])
        deviation = math.sqrt(max(2 * bend, 0.0)) if math.isfinite(bend) else 0.0
        chernoff = math.exp(min(here, 0.0)) if not math.isnan(here) else 1.0
        tilt = tilts[best]
        out[q, 0] = tilt
        out[q, 1] = chernoff / (1 + tilt) / (1 + 2.5 * tilt * deviation)  # about sqrt(2 pi)
        out[q, 2] = aside


@kernel
def windows(
    log_moment: FloatArray,
    cap: FloatArray,
    tilts: FloatArray,
    indices: IntArray,
    log_allowed: FloatArray,
    largest: FloatArray,
    out: FloatArray,
    proves: BoolArray,
) -> None:
    """Find for every pair the window outside of which Markov's inequality leaves little enough of
    the tilted loss.

    Under tilt number ``indices[i]`` a share of e^log_tail may lie outside, where log_tail is
    ``log_allowed[i]`` less the log-moment of the pair; only pairs with log_tail < 0 that is at most
    ``largest[i]`` count.  A row of ``out`` is [lower end, upper end, smallest log_tail], and
    ``proves[i, j]`` says whether the moment at tilt j proves an end for some pair.
    """
    for i in range(indices.size):
        index = indices[i]
        low = math.inf
        high = -math.inf
        smallest = 0.0
        for q in range(cap.size):
            log_tail = log_allowed[i] - log_moment[q, index]
            if not (log_tail < 0.0 and log_tail <= largest[i]):
                continue
            smallest = min(smallest, log_tail)
            below = -math.inf
            above = math.inf
            low_at = 0
            high_at = index
            for j in range(tilts.size):
                if j == index:
                    continue
                gain = log_moment[q, j] - log_moment[q, index] - log_tail
                edge = gain / (tilts[j] - tilts[index])
                if j < index and math.isfinite(edge) and edge > below:
                    below = edge
                    low_at = j
                elif j > index and math.isfinite(edge) and edge < above:
                    above = edge
                    high_at = j
            low = min(low, max(below, -1e3))
            high = max(high, min(above, cap[q]))
            proves[i, low_at] = True
            proves[i, high_at] = True
        out[i, 0] = low
        out[i, 1] = high
        out[i, 2] = smallest
