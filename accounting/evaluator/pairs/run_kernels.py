"""Numba kernels that put the loss of a log-concave noise on a grid run by run."""

from __future__ import annotations

import math

from accounting.base.arrays import FloatArray
from accounting.base.jit import kernel

RUN = 64
"""Number of masses whose sums are tabulated."""
SMALLEST_RUN = 2.0**-900
"""A run with less P-mass or Q-mass is set aside: what underflows is negligible next to more."""


@kernel
def one_minus_exp(d: float) -> float:
    """1 - exp(-d) for 0 <= d <= 1/16, within 1e-12 (Taylor to the sixth power)."""
    third, fifth, sixth = 1.0 / 3.0, 1.0 / 5.0, 1.0 / 6.0  # products are faster than quotients
    return d * (
        1.0 - 0.5 * d * (1.0 - third * d * (1.0 - 0.25 * d * (1.0 - fifth * d * (1.0 - sixth * d))))
    )


@kernel
def run_sum(mass: FloatArray, sums: FloatArray, begin: int, end: int) -> float:
    """Sum of mass[begin:end]; sums[k] is that of mass[k * RUN : (k + 1) * RUN]."""
    total = 0.0
    at = begin
    while at < end and at % RUN:
        total += mass[at]
        at += 1
    while at + RUN <= end:
        total += sums[at // RUN]
        at += RUN
    while at < end:
        total += mass[at]
        at += 1
    return total


@kernel
def near_edge(
    log_mass: FloatArray, z: int, shift: int, inverse: float, cell: float, margin: float
) -> bool:
    """Whether the loss of the outcome z is within ``margin`` cells of an edge of its cell."""
    inside = (log_mass[z] - log_mass[z + shift]) * inverse - cell
    return not margin < inside < 1.0 - margin


@kernel
def split(
    mass: FloatArray,
    log_mass: FloatArray,
    z: int,
    shift: int,
    step: float,
    scale: float,
    cell: float,
    i: int,
    cells: FloatArray,
) -> None:
    """Split the outcome z between the two grid points of its cell, the first of which is at i."""
    d = min(max(log_mass[z] - log_mass[z + shift] - cell * step, 0.0), step)
    right = mass[z] * min(one_minus_exp(d) * scale, 1.0)
    cells[i] += mass[z] - right
    cells[i + 1] += right


@kernel
def connect_runs(
    mass: FloatArray,
    log_mass: FloatArray,
    sums: FloatArray,
    shift: int,
    step: float,
    first: int,
    last: int,
    margin: float,
    cells: FloatArray,
    out: FloatArray,
) -> None:
    """``connect_the_dots`` for a log-concave noise, whose loss is monotone (Lemma F9).

    All outcomes of a cell are a run, and only the P-mass and the Q-mass of a run matter; those
    within ``margin`` of an edge of the cell, in units of ``step``, are split one at a time.
    """
    n = mass.size
    begin = max(0, -shift)
    end = min(n, n - shift)
    cells[:] = 0.0
    out[:] = 0.0
    out[0] = run_sum(mass, sums, 0, min(n, begin))
    out[3] = run_sum(mass, sums, max(0, n - shift), n)
    inverse = 1.0 / step
    scale = 1.0 / one_minus_exp(step)
    rising = shift >= 0
    i = 0
    z = begin
    while z < end:
        position = (log_mass[z] - log_mass[z + shift]) * inverse
        capped = not position < last
        below = not capped and position < first
        cell = math.floor(position) if not capped and not below else 0.0
        # the run ends before the first outcome whose position is beyond this edge
        if rising:
            edge = math.inf if capped else (float(first) if below else cell + 1.0)
        else:
            edge = float(last) if capped else (-math.inf if below else cell)
        inside = z
        beyond = end
        stride = 1
        while inside + stride < end:
            at = inside + stride
            there = (log_mass[at] - log_mass[at + shift]) * inverse
            if (rising and there >= edge) or (not rising and there < edge):
                beyond = at
                break
            inside = at
            stride *= 2
        while beyond - inside > 1:
            at = (inside + beyond) // 2
            there = (log_mass[at] - log_mass[at + shift]) * inverse
            if (rising and there >= edge) or (not rising and there < edge):
                beyond = at
            else:
                inside = at
        here, z = z, beyond
        if not capped and not below:
            i = int(cell) - first
            while here < beyond and near_edge(log_mass, here, shift, inverse, cell, margin):
                split(mass, log_mass, here, shift, step, scale, cell, i, cells)
                here += 1
            while here < beyond and near_edge(log_mass, beyond - 1, shift, inverse, cell, margin):
                beyond -= 1
                split(mass, log_mass, beyond, shift, step, scale, cell, i, cells)
            if here == beyond:
                continue
        p = run_sum(mass, sums, here, beyond)
        q = run_sum(mass, sums, here + shift, beyond + shift)
        if capped:
            out[1] += p
            out[2] += q
        elif below:
            out[4] += p
        elif p < SMALLEST_RUN or q < SMALLEST_RUN:
            out[3] += p
        else:
            right = min(max((p - math.exp(cell * step) * q) * scale, 0.0), p)
            cells[i] += p - right
            cells[i + 1] += right
