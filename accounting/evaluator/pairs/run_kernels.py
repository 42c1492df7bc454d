"""Numba kernels that put the loss of a noise with a long table on a grid run by run."""

from __future__ import annotations

import math

from accounting.base.arrays import FloatArray
from accounting.base.jit import kernel

RUN = 64
"""Number of masses whose sums are tabulated."""
LONGEST_RUN = 1 << 8
"""Largest number of outcomes of one run."""
LARGEST_RISE = 1e-12
"""By how much log f(k + 1) - log f(k) of a table may grow with k where outcomes form runs: that is
rounding, as long as log f is at most a few thousand in size."""
RUN_MARGIN = 2 * LONGEST_RUN * LARGEST_RISE
"""More than losses within a run can lie outside those of its ends (Lemma F9)."""
SMALLEST_RUN = 2.0**-900
"""A run with less P-mass or Q-mass is no run: what underflows is negligible next to more."""


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
def connect_one(
    mass: FloatArray,
    log_mass: FloatArray,
    z: int,
    shift: int,
    step: float,
    first: int,
    last: int,
    cells: FloatArray,
    out: FloatArray,
) -> None:
    """``connect_the_dots`` for the outcome z alone."""
    loss = log_mass[z] - log_mass[z + shift]
    position = loss * (1.0 / step)
    if not position < last:
        out[1] += mass[z]
        out[2] += mass[z] * math.exp(-loss)
    elif position < first:
        out[4] += mass[z]
    else:
        cell = math.floor(position)
        d = min(max(loss - cell * step, 0.0), step)
        right = mass[z] * min(one_minus_exp(d) / one_minus_exp(step), 1.0)
        i = int(cell) - first
        cells[i] += mass[z] - right
        cells[i + 1] += right


@kernel
def connect_runs(
    mass: FloatArray,
    log_mass: FloatArray,
    sums: FloatArray,
    smooth_from: int,
    shift: int,
    step: float,
    first: int,
    last: int,
    margin: float,
    cells: FloatArray,
    out: FloatArray,
) -> None:
    """``connect_the_dots`` for a table whose losses are monotone from ``smooth_from`` on, up to
    rounding (Lemma F9).

    Outcomes in a row whose losses are in one cell, all at or above the cap or all below the grid
    are a run, and only its P-mass and its Q-mass matter.  Outcomes within ``margin`` of an edge, in
    units of ``step``, and those below ``smooth_from`` are taken one at a time.
    """
    n = mass.size
    smooth = max(smooth_from, smooth_from - shift)
    cells[:] = 0.0
    out[:] = 0.0
    out[0] = run_sum(mass, sums, 0, min(n, max(0, -shift)))
    out[3] = run_sum(mass, sums, max(0, n - shift), n)
    inverse = 1.0 / step
    scale = 1.0 / one_minus_exp(step)
    end = min(n, n - shift)
    z = max(0, -shift)
    while z < end:
        position = (log_mass[z] - log_mass[z + shift]) * inverse
        capped = not position < last
        below = not capped and position < first
        cell = math.floor(position) if not capped and not below else 0.0
        low = (float(last) if capped else (-math.inf if below else cell)) + margin
        high = (math.inf if capped else (float(first) if below else cell + 1.0)) - margin
        if z < smooth or not low < position < high:
            connect_one(mass, log_mass, z, shift, step, first, last, cells, out)
            z += 1
            continue
        inside = z  # the run may end here
        beyond = min(end, z + LONGEST_RUN)  # and must end before
        stride = 1
        while inside + stride < beyond:
            at = inside + stride
            if low < (log_mass[at] - log_mass[at + shift]) * inverse < high:
                inside = at
                stride *= 2
            else:
                beyond = at
        while beyond - inside > 1:
            at = (inside + beyond) // 2
            if low < (log_mass[at] - log_mass[at + shift]) * inverse < high:
                inside = at
            else:
                beyond = at
        p = run_sum(mass, sums, z, beyond)
        q = run_sum(mass, sums, z + shift, beyond + shift)
        begin, z = z, beyond
        if capped:
            out[1] += p
            out[2] += q
        elif below:
            out[4] += p
        elif p < SMALLEST_RUN or q < SMALLEST_RUN:
            for at in range(begin, beyond):
                connect_one(mass, log_mass, at, shift, step, first, last, cells, out)
        else:
            i = int(cell) - first
            right = min(max((p - math.exp(cell * step) * q) * scale, 0.0), p)
            cells[i] += p - right
            cells[i + 1] += right
