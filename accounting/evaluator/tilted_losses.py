"""Gridded and tilted losses of every factor (discretisation.md, sections 2 and 5).

The loss of a factor is put on the grid, multiplied by e^{tilt * loss}, and wrapped modulo the size
of the grid.  A central factor is a mixture of the rows of the shifts of W.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property

import numpy as np

from accounting.base.arrays import UNIT_ROUNDOFF, FloatArray, IntArray, multiples
from accounting.base.errors import TooLarge
from accounting.base.threads import in_chunks
from accounting.evaluator.grid_plan import GridPlan, Tables
from accounting.evaluator.noise_tables import NoiseTable
from accounting.evaluator.view_pairs import CentralMixture, ShiftGroup, ViewPairs

LARGEST_GRID = 1 << 22
"""Largest number of grid points, and largest index of a grid point of one factor."""
LARGEST_ROWS = 1 << 28
"""Entries of all rows together, and of the weights of all tilts: 2 GiB each."""
TINY = 2.0**-1021
"""Bound of what a sum loses by underflow (Lemma F3)."""
SMALLEST_DELTA = 1e-280
"""Below, products of doubles lose relative accuracy: smaller lower bounds are reported as 0."""
_FEWEST_OUTCOMES = 100_000
"""Number of outcomes that are worth a thread."""
_SMALLEST_MOMENT = SMALLEST_DELTA
"""A factor whose tilted mass is smaller, in the unit of its row, counts as lying below the grid."""


@dataclass(frozen=True)
class Factors:
    """One entry per factor.

    ``log_moment``: for the plan's tilt, then for the others.  ``log_whole``: the log-moment for the
    plan's tilt including a bound of the mass below the grid.  ``capped`` and ``capped_q``: P-mass
    with infinite or capped loss, and its Q-mass.  ``unknown``: P-mass of which nothing is known.
    ``eta`` bounds all relative errors of the row and of the moment for the plan's tilt,
    ``eta_others`` those of the other moments.  ``last``: highest grid point in use.

    A factor whose log-moment is minus infinity has no row: all its mass counts as lying below the
    grid.  This is decided only here (floating_point.md, F3).
    """

    log_moment: FloatArray
    log_whole: FloatArray
    capped: FloatArray
    capped_q: FloatArray
    unknown: FloatArray
    eta: FloatArray
    eta_others: FloatArray
    last: IntArray


@dataclass(frozen=True)
class TiltedLosses:
    """The tilted rows of the plain factors and of the shifts of W, with numbers per factor."""

    plan: GridPlan
    rows: FloatArray
    central: CentralMixture | None
    central_rows: FloatArray
    factors: Factors

    def row(self, factor: int) -> FloatArray:
        """The tilted row of a factor; that of a central one is mixed from the shifts of W."""
        from accounting.evaluator.kernels import mix_rows

        if factor < len(self.rows) or self.central is None:
            row: FloatArray = self.rows[factor]
            return row
        m, b = self.central.mix[factor - len(self.rows)].tolist()
        tilt = np.array([self.plan.tilt])
        index, left, right = _offset_weights(self.central, m, tilt, self.plan.step)
        take = np.arange(m + 1) + (b - int(self.central.shifts[0]))
        left, right = np.ascontiguousarray(left[:, 0]), np.ascontiguousarray(right[:, 0])
        out = np.empty(self.plan.size)
        mix_rows(self.central_rows, take, index, left, right, out)
        return out


@dataclass(frozen=True)
class _Cells:
    """The grid points of single factors, up to ``last`` for plain factors and ``central_last`` for
    shifts of W; decay[j, d] = e^{-tilts[j] * d * step}.  The plan's tilt is the first."""

    tilts: FloatArray
    last: IntArray
    central_last: IntArray
    decay: FloatArray

    @staticmethod
    def of(view_pairs: ViewPairs, plan: GridPlan) -> _Cells:
        tilts = np.append(plan.tilt, plan.other_tilts)
        n_plain, n_central = len(view_pairs.plain), len(plan.central_cap)
        last, central_last = (
            np.clip(np.ceil(cap / plan.step).astype(np.int64), plan.first + 2, LARGEST_GRID)
            for cap in (plan.cap[:n_plain], plan.central_cap)
        )
        highest = max(int(last.max(initial=0)), int(central_last.max(initial=0)))
        count = highest - plan.first + 1
        decay = np.exp(-np.outer(tilts, multiples(0, count, plan.step)))
        if (n_plain + n_central) * plan.size > LARGEST_ROWS or count * len(tilts) > LARGEST_ROWS:
            raise TooLarge(
                f"{n_plain + n_central:,} shifted noises on a grid of {plan.size:,} points, with "
                f"losses over {count:,} cells, do not fit into memory: evaluate fewer pairs at a "
                "time, or ask for a wider gap"
            )
        return _Cells(tilts, last, central_last, decay)

    @cached_property
    def steepest(self) -> FloatArray:
        """The plan's tilt, and the largest magnitude of the others."""
        return np.array([self.tilts[0], np.abs(self.tilts[1:]).max(initial=0.0)])

    def errors(self, table: NoiseTable, plan: GridPlan) -> FloatArray:
        """Relative errors of rows and moments at the tilts ``steepest`` (Lemma F3)."""
        count = self.decay.shape[1]
        highest = abs(plan.first + count - 1)
        error = table.relative_error + table.loss_error + 2e-12
        size = 3 * len(table.mass) + 2 * count + 100 + 8 * max(-plan.first, highest) * plan.step
        exponent = np.minimum(self.steepest * (count + highest) * plan.step, 1500.0)
        return np.asarray(error + (size + 12 * exponent) * UNIT_ROUNDOFF)


@dataclass(frozen=True)
class _Shifted:
    """Tilted losses of plain factors, or of the shifts of W.  Rows, ``moment`` and ``below``, a
    bound of what lies below the grid at the plan's tilt, are in units of e^log_unit of their tilt;
    ``error`` has the relative errors of rows and moments for the plan's tilt and the others."""

    rows: FloatArray
    moment: FloatArray
    log_unit: FloatArray
    below: FloatArray
    capped: FloatArray
    capped_q: FloatArray
    unknown: FloatArray
    error: FloatArray
    last: IntArray


def tilt_factors(view_pairs: ViewPairs, tables: Tables, plan: GridPlan) -> TiltedLosses:
    """Put the losses of all factors on the grid of the plan and tilt them."""
    cells = _Cells.of(view_pairs, plan)
    plain = [group for group in view_pairs.shift_groups if group.central is None]
    shifted = _tilt_shifts(tables, plain, cells, plan)
    rows, central_rows = shifted.rows, np.empty((0, plan.size))
    factors = _plain_factors(shifted)
    for group in view_pairs.shift_groups[len(plain) :]:
        assert group.central is not None
        shifted = _tilt_shifts(tables, [group], cells, plan)
        central_rows = shifted.rows
        mixed = _central_factors(group.central, shifted, cells, plan.step)
        factors = Factors(
            **{
                field.name: np.concatenate(
                    [getattr(factors, field.name), getattr(mixed, field.name)]
                )
                for field in fields(Factors)
            }
        )
    return TiltedLosses(plan, rows, view_pairs.central, central_rows, factors)


def _tilt_shifts(
    tables: Tables, groups: Sequence[ShiftGroup], cells: _Cells, plan: GridPlan
) -> _Shifted:
    """Put the losses of all plain factors, or of the shifts of W, on the grid and tilt them."""
    from accounting.evaluator.kernels import tilted_rows

    central = any(group.central is not None for group in groups)
    reference = last = cells.central_last if central else cells.last
    if central:  # rows that are mixed need a common unit
        reference = np.full(len(last), last.max())
    n, step, first = len(last), plan.step, plan.first
    rows, moment, aside = (
        np.empty((n, plan.size)),
        np.empty((n, len(cells.tilts))),
        np.empty((n, 5)),
    )
    tail, error = np.empty(n), np.empty((n, 2))
    for group in groups:
        table, shifts = tables[group.noise], group.shifts
        place = np.arange(n) if central else group.factors
        tail[place], error[place] = table.tail, cells.errors(table, plan)

        def work(a: int, b: int) -> None:
            grid = place[a:b], last, reference, step, first, cells.decay
            tilted_rows(table.mass, table.log_mass, shifts[a:b], *grid, rows, moment, aside)

        in_chunks(work, len(shifts), smallest=max(1, _FEWEST_OUTCOMES // len(table.mass)))
    # Underflow loses less than 2^-1021 in the unit of the row.  That is added to ``below``, and to
    # the moments of the other tilts, which serve as upper bounds.
    moment[:, 1:] += TINY
    empty = moment[:, 0] < _SMALLEST_MOMENT
    moment[empty, 0], rows[empty] = 0.0, 0.0
    infinite, capped, capped_q, unknown, below_grid = aside.T
    floor = np.exp(-plan.tilt * (reference - first) * step) * (1 + 1e-9)
    return _Shifted(
        rows=rows,
        moment=moment,
        log_unit=reference[:, None] * step * cells.tilts,
        below=below_grid * floor + np.where(empty, 2 * _SMALLEST_MOMENT, TINY),
        capped=infinite + capped,
        capped_q=capped_q,
        unknown=unknown + tail,
        error=error,
        last=last,
    )


def _plain_factors(shifted: _Shifted) -> Factors:
    """Every shift is a factor."""
    with np.errstate(divide="ignore"):
        log_moment = np.log(shifted.moment) + shifted.log_unit
    eta, eta_others = shifted.error.T
    return Factors(
        log_moment=log_moment,
        log_whole=np.log(shifted.moment[:, 0] + shifted.below) + shifted.log_unit[:, 0],
        capped=shifted.capped,
        capped_q=shifted.capped_q,
        unknown=shifted.unknown,
        eta=eta,
        eta_others=eta_others,
        last=shifted.last,
    )


def _central_factors(
    central: CentralMixture, shifted: _Shifted, cells: _Cells, step: float
) -> Factors:
    """Every factor mixes shifts of W, whose rows have a common unit."""
    log_moment, log_whole = _mix_moments(central, shifted, cells.tilts, step)
    aside = np.stack([shifted.capped, shifted.capped_q, shifted.unknown], axis=1)
    capped, capped_q, unknown = central.average(aside, np.array([0.0, -1.0, 0.0])).T
    m = central.mix[:, :1]
    size = 2 * m + 16 * (cells.steepest + 1) * (central.step * m) + 64
    eta, eta_others = (shifted.error[0] + 2e-12 + size * UNIT_ROUNDOFF).T
    last = [
        (shifted.last[at] + _split(central.offsets(m), step)[0]).max() + 1
        for m, at in central.cases()
    ]
    return Factors(
        log_moment=log_moment + shifted.log_unit[0],
        log_whole=log_whole + shifted.log_unit[0, 0],
        capped=capped,
        capped_q=capped_q,
        unknown=unknown,
        eta=eta,
        eta_others=eta_others,
        last=np.array(last),
    )


def _split(offset: FloatArray, step: float) -> tuple[IntArray, FloatArray]:
    """Connect the dots for a constant loss: index of its left neighbor, share of the right one."""
    index = np.floor(offset / step)
    d = np.clip(offset - index * step, 0.0, step)
    return index.astype(np.int64), np.minimum(np.expm1(-d) / math.expm1(-step), 1.0)


def _offset_weights(
    central: CentralMixture, m: int, tilts: FloatArray, step: float
) -> tuple[IntArray, FloatArray, FloatArray]:
    """For the offsets of m: grid index, and tilted weights of the left and the right neighbor,
    both scaled by e^{-tilt * (index[0] + 1) * step}, the largest that occurs."""
    index, share = _split(central.offsets(m), step)
    right = central.weights(m)[:, None] * np.exp(np.outer((index - index[0]) * step, tilts))
    share = share[:, None]
    return index, right * (1 - share) * np.exp(-step * tilts), right * share


def _mix_moments(
    central: CentralMixture, shifted: _Shifted, tilts: FloatArray, step: float
) -> tuple[FloatArray, FloatArray]:
    """Log-moments of the gridded central factors, in the unit of the shifts; for the first tilt
    also with what lies below the grid."""
    log_moment, log_whole = np.empty((len(central.mix), len(tilts))), np.empty(len(central.mix))
    known: dict[int, tuple[FloatArray, FloatArray]] = {}
    for row, (m, cases) in enumerate(central.cases()):
        if m not in known:
            index, left, right = _offset_weights(central, m, tilts, step)
            known[m] = left + right, (index[0] + 1) * step * tilts
        weight, log_unit = known[m]
        total = (weight * shifted.moment[cases]).sum(axis=0)
        total[1:] += (m + 1) * TINY
        if total[0] < _SMALLEST_MOMENT:
            total[0] = 0.0
        with np.errstate(divide="ignore"):
            log_moment[row] = np.log(total) + log_unit
        lost = weight[:, 0] @ shifted.below[cases] + (m + 1) * TINY
        lost += 2 * _SMALLEST_MOMENT * (total[0] == 0)
        log_whole[row] = math.log(total[0] + lost) + log_unit[0]
    return log_moment, log_whole
