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
def connect_runs(
    mass: FloatArray,
    log_mass: FloatArray,
    sums: FloatArray,
    shift: int,
    step: float,
    first: int,
    last: int,
    cells: FloatArray,
    out: FloatArray,
) -> None:
    """``connect_the_dots`` for a log-concave noise, whose loss is monotone (Lemma F9).

    All outcomes of a cell are a run, and only the P-mass and the Q-mass of a run matter.
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
        p = run_sum(mass, sums, z, beyond)
        q = run_sum(mass, sums, z + shift, beyond + shift)
        z = beyond
        if capped:
            out[1] += p
            out[2] += q
        elif below:
            out[4] += p
        elif p < SMALLEST_RUN or q < SMALLEST_RUN:
            out[3] += p
        else:
            right = min(max((p - math.exp(cell * step) * q) * scale, 0.0), p)
            i = int(cell) - first
            cells[i] += p - right
            cells[i + 1] += right
