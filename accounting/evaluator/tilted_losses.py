"""Gridded and tilted losses of every factor (discretisation.md, sections 2 and 5).

The loss of a factor is put on the grid, multiplied by e^{tilt * loss}, and wrapped modulo the size
of the grid.  A central factor is a mixture of the rows of the shifts of W.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from accounting.base.arrays import FloatArray, IntArray, multiples
from accounting.base.errors import TooLarge
from accounting.base.threads import in_chunks
from accounting.evaluator.grid_plan import Plan, mixture
from accounting.evaluator.noise_tables import NoiseTable, noise_table
from accounting.evaluator.view_pairs import ViewPairs
from accounting.model.noise import UNIT_ROUNDOFF

LARGEST_GRID = 1 << 22
LARGEST_TABLES = 1 << 27
"""Entries of all tables together: 2 GiB."""
LARGEST_ROWS = 1 << 28
"""Entries of all rows together, and of the weights of all tilts: 2 GiB each."""
TINY = 2.0**-1021
_SMALLEST_MOMENT = 1e-280
"""A factor whose tilted mass is smaller, in the unit of its row, counts as lying below the grid."""


@dataclass(frozen=True)
class Factors:
    """What is known of each factor besides its row.

    ``log_moment``: of the plan's tilt, then of the others.  ``aside``: P-mass with infinite or
    capped loss, Q-mass of the capped part, P-mass of which nothing is known.  ``log_whole``: the
    log-moment of the plan's tilt with a bound of what lies below the grid added.  ``eta``: bound of
    all relative errors of rows and moments of the plan's tilt, and ``eta_others`` of the moments of
    the others.  ``last``: highest grid point in use.

    A factor whose log-moment is minus infinity has no row: what it holds counts as lying below the
    grid.  That is decided here, once, and nowhere else (floating_point.md, F3).
    """

    log_moment: FloatArray
    log_whole: FloatArray
    aside: FloatArray
    eta: FloatArray
    eta_others: FloatArray
    last: IntArray


def tabulate(view_pairs: ViewPairs, tail: float) -> dict[int, NoiseTable]:
    """Tables of the noises in use, long enough to leave about ``tail`` and to reach every shift."""
    used = [i for i, _, _ in view_pairs.shift_groups]
    lengths = {
        i: view_pairs.noises[i].length(tail) + int(view_pairs.largest_shift[i]) for i in used
    }
    if sum(lengths.values()) > LARGEST_TABLES:
        longest = max(used, key=lengths.__getitem__)
        raise TooLarge(
            f"the noises need tables of {sum(lengths.values()):,} entries in all, more than "
            f"{LARGEST_TABLES:,}; the longest is that of {view_pairs.noises[longest]}: lower r or "
            "move p away from 1, or evaluate fewer pairs at a time"
        )
    return {i: noise_table(view_pairs.noises[i], n) for i, n in lengths.items()}


def tilt_factors(
    view_pairs: ViewPairs, tables: Mapping[int, NoiseTable], plan: Plan
) -> tuple[FloatArray, FloatArray, Factors]:
    """Tilted rows of the plain factors and of the shifts of W, and what Factors records.

    A row is scaled by e^{-tilt * reference * step}, and so are its moments before the logarithm.
    """
    from accounting.evaluator.kernels import tilted_rows

    tilts = np.append(plan.tilt, plan.others)
    n_plain = len(view_pairs.plain)
    last_plain, last_central = (
        np.clip(np.ceil(top / plan.step).astype(np.int64), plan.first + 2, LARGEST_GRID)
        for top in (plan.top[:n_plain], plan.central_top)
    )
    highest = max(int(last_plain.max(initial=0)), int(last_central.max(initial=0)))
    cells = highest - plan.first + 1
    decay = np.exp(-np.outer(tilts, multiples(0, cells, plan.step)))
    shifts_of_w = len(plan.central_top)
    if (n_plain + shifts_of_w) * plan.size > LARGEST_ROWS or cells * len(tilts) > LARGEST_ROWS:
        raise TooLarge(
            f"{n_plain + shifts_of_w:,} shifted noises on a grid of {plan.size:,} points, with "
            f"losses over {cells:,} cells, do not fit into memory: evaluate fewer pairs at a time, "
            "or ask for a wider gap"
        )
    rows = np.empty((n_plain, plan.size))
    central_rows = np.empty((0, plan.size))
    log_moment = np.empty((view_pairs.factor_count, len(tilts)))
    aside = np.empty((view_pairs.factor_count, 3))
    log_whole, etas = np.empty(view_pairs.factor_count), np.empty((view_pairs.factor_count, 2))
    steepest = np.array([plan.tilt, np.abs(plan.others).max(initial=0.0)])
    ends = np.empty(view_pairs.factor_count, np.int64)
    for noise, where, shifts in view_pairs.shift_groups:
        table = tables[noise]
        n = len(shifts)
        last = last_central if where is None else last_plain[where]
        reference = np.full(n, last.max()) if where is None else last
        target = np.empty((n, plan.size))
        moments, out = np.empty((n, len(tilts))), np.empty((n, 5))

        def work(a: int, b: int) -> None:
            tilted_rows(
                table.mass,
                table.log_mass,
                shifts[a:b],
                last[a:b],
                reference[a:b],
                plan.step,
                plan.first,
                decay,
                target[a:b],
                moments[a:b],
                out[a:b],
            )

        in_chunks(work, n, smallest=max(1, 20_000 // len(table.mass)))
        # What underflows is less than 2^-1021 in the unit of the row.  It is added to what lies
        # below the grid, and to the moments of the other tilts, which bound from above.
        moments[:, 1:] += TINY
        empty = moments[:, 0] < _SMALLEST_MOMENT
        moments[empty, 0], target[empty] = 0.0, 0.0
        floor = np.exp(-plan.tilt * (reference - plan.first) * plan.step) * (1 + 1e-9)
        below = out[:, 4] * floor + np.where(moments[:, 0] > 0, TINY, 2 * _SMALLEST_MOMENT)
        kept = np.stack([out[:, 0] + out[:, 1], out[:, 2], out[:, 3] + table.tail], axis=1)
        exponent = np.minimum(steepest * (cells + abs(highest)) * plan.step, 1500.0)
        size = 3 * len(table.mass) + 2 * cells + 12 * exponent + 100
        size += 8 * max(-plan.first, abs(highest)) * plan.step
        error = table.relative_error + table.loss_error + 2e-12 + size * UNIT_ROUNDOFF
        top = reference[:, None] * plan.step * tilts
        if where is None:
            central = view_pairs.central
            assert central is not None
            central_rows = target
            mixed, whole = _mix_moments(view_pairs, moments, below, tilts, plan.step)
            log_moment[n_plain:] = mixed + top[0]
            log_whole[n_plain:] = whole + top[0, 0]
            aside[n_plain:] = mixture(central, kept, np.array([0.0, -1.0, 0.0]))
            terms = central.mix[:, :1]
            size = 2 * terms + 16 * (steepest + 1) * (central.step * terms) + 64
            etas[n_plain:] = error + 2e-12 + size * UNIT_ROUNDOFF
            ends[n_plain:] = [
                (last[b : b + m + 1] + _split(central.offsets(m), plan.step)[0]).max() + 1
                for m, b in (central.mix - [0, central.shifts[0]]).tolist()
            ]
        else:
            rows[where] = target
            with np.errstate(divide="ignore"):
                log_moment[where] = np.log(moments) + top
            log_whole[where] = np.log(moments[:, 0] + below) + top[:, 0]
            aside[where] = kept
            etas[where] = error
            ends[where] = last
    eta, eta_others = etas[:, 0], etas[:, 1]
    return rows, central_rows, Factors(log_moment, log_whole, aside, eta, eta_others, ends)


def _split(offset: FloatArray, step: float) -> tuple[IntArray, FloatArray]:
    """Connect the dots for a constant loss: index of its left neighbour, share of the right one."""
    index = np.floor(offset / step)
    d = np.clip(offset - index * step, 0.0, step)
    return index.astype(np.int64), np.minimum(np.expm1(-d) / math.expm1(-step), 1.0)


def _offset_weights(
    view_pairs: ViewPairs, m: int, tilts: FloatArray, step: float
) -> tuple[IntArray, FloatArray, FloatArray]:
    """For the offsets of m: grid index, and tilted weights of the left and the right neighbour,
    both scaled by e^{-tilt * (index[0] + 1) * step}, the largest that occurs."""
    central = view_pairs.central
    assert central is not None
    index, share = _split(central.offsets(m), step)
    right = central.weights(m)[:, None] * np.exp(np.outer((index - index[0]) * step, tilts))
    share = share[:, None]
    return index, right * (1 - share) * np.exp(-step * tilts), right * share


def _mix_moments(
    view_pairs: ViewPairs, moments: FloatArray, below: FloatArray, tilts: FloatArray, step: float
) -> tuple[FloatArray, FloatArray]:
    """Log-moments of the gridded central factors; of the first tilt also with ``below`` added."""
    central = view_pairs.central
    assert central is not None
    low = int(central.shifts[0])
    out, whole = np.empty((len(central.mix), len(tilts))), np.empty(len(central.mix))
    known: dict[int, tuple[FloatArray, FloatArray]] = {}
    for row, (m, b) in enumerate(central.mix.tolist()):
        if m not in known:
            index, left, right = _offset_weights(view_pairs, m, tilts, step)
            known[m] = left + right, (index[0] + 1) * step * tilts
        weight, top = known[m]
        of = slice(b - low, b - low + m + 1)
        total = (weight * moments[of]).sum(axis=0)
        total[1:] += (m + 1) * TINY
        if total[0] < _SMALLEST_MOMENT:
            total[0] = 0.0
        with np.errstate(divide="ignore"):
            out[row] = np.log(total) + top
        lost = weight[:, 0] @ below[of] + (m + 1) * TINY + 2 * _SMALLEST_MOMENT * (total[0] == 0)
        whole[row] = math.log(total[0] + lost) + top[0]
    return out, whole


def mixed_row(
    view_pairs: ViewPairs, central_rows: FloatArray, factor: int, plan: Plan
) -> FloatArray:
    """The tilted row of a central factor, from those of the shifts of W."""
    from accounting.evaluator.kernels import mix_rows

    central = view_pairs.central
    assert central is not None
    m, b = central.mix[factor - len(view_pairs.plain)].tolist()
    index, left, right = _offset_weights(view_pairs, m, np.array([plan.tilt]), plan.step)
    take = np.arange(m + 1) + (b - int(central.shifts[0]))
    out = np.empty(plan.size)
    mix_rows(
        central_rows,
        take,
        index,
        np.ascontiguousarray(left[:, 0]),
        np.ascontiguousarray(right[:, 0]),
        out,
    )
    return out
