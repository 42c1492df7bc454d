"""Gridded and tilted losses of every factor (discretisation.md, sections 2 and 5).

The loss of a factor is put on the grid, multiplied by e^{tilt * loss}, and wrapped modulo the size
of the grid.  A central factor is a mixture of the rows of the shifts of W; only its moments are
computed here, and its spectrum is mixed from theirs (spectra.py).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields
from functools import cached_property

import numpy as np

from accounting.base.arrays import UNIT_ROUNDOFF, FloatArray, IntArray, multiples
from accounting.base.enclosure import counted
from accounting.base.errors import TooLarge
from accounting.base.threads import in_chunks
from accounting.evaluator.grid_plan import GridPlan
from accounting.evaluator.noise_tables import NoiseTables
from accounting.evaluator.view_pairs import CentralMixture, ViewPairs

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
    """The tilted rows of the plain factors and of the shifts of W, with numbers per factor.

    ``central_moment`` are the moments of the shifts of W at the plan's tilt, in the unit of
    ``central_rows``; ``scale`` are the reciprocals of those of the central factors, 0 for those
    without a row, in the units of ``central_rows`` and of ``Offsets``.
    """

    plan: GridPlan
    rows: FloatArray
    central: CentralMixture | None
    central_rows: FloatArray
    factors: Factors
    central_moment: FloatArray = field(default_factory=lambda: np.zeros(0))
    scale: FloatArray = field(default_factory=lambda: np.zeros(0))


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
                f"{counted(n_plain + n_central, 'shifted noise')} on a grid of {plan.size:,} "
                f"points, with losses over {count:,} cells, cannot fit into memory: evaluate fewer "
                "pairs at a time, or ask for a wider gap"
            )
        return _Cells(tilts, last, central_last, decay)

    @cached_property
    def steepest(self) -> FloatArray:
        """The plan's tilt, and the largest magnitude of the others."""
        return np.array([self.tilts[0], np.abs(self.tilts[1:]).max(initial=0.0)])

    def errors(self, tables: NoiseTables, table: IntArray, plan: GridPlan) -> FloatArray:
        """Relative errors of rows and moments at the tilts ``steepest`` (Lemma F3)."""
        count = self.decay.shape[1]
        highest = abs(plan.first + count - 1)
        size = 3 * np.diff(tables.start) + 2 * count + 100
        exponent = np.minimum(self.steepest * (count + highest) * plan.step, 1500.0)
        exponent = 12 * exponent + 8 * max(-plan.first, highest) * plan.step
        error = tables.relative_error + tables.loss_error + 2e-12 + size * UNIT_ROUNDOFF
        return np.asarray(error[table][:, None] + exponent * UNIT_ROUNDOFF)


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


@dataclass(frozen=True)
class TiltedRows:
    """The tilted rows of the plain factors and of the shifts of W, before these are mixed."""

    plan: GridPlan
    cells: _Cells
    rows: FloatArray
    plain: Factors
    shifted: _Shifted | None

    def mixed(self, central: CentralMixture | None) -> TiltedLosses:
        """With the central factors, whose shifts must be those of the rows."""
        if central is None or self.shifted is None or not len(central.mix):
            none = np.zeros((0, self.plan.size))
            return TiltedLosses(self.plan, self.rows, central, none, self.plain)
        w, step = self.shifted, self.plan.step
        found, scale = _central_factors(central, w, self.cells, step)
        both = {
            column.name: np.concatenate(
                [getattr(part, column.name) for part in (self.plain, found)]
            )
            for column in fields(Factors)
        }
        factors = Factors(**both)
        return TiltedLosses(self.plan, self.rows, central, w.rows, factors, w.moment[:, 0], scale)


def tilt_factors(view_pairs: ViewPairs, tables: NoiseTables, plan: GridPlan) -> TiltedLosses:
    """Put the losses of all factors on the grid of the plan and tilt them."""
    return tilt_rows(view_pairs, tables, plan).mixed(view_pairs.central)


def tilt_rows(view_pairs: ViewPairs, tables: NoiseTables, plan: GridPlan) -> TiltedRows:
    """Put the losses of all plain factors and of all shifts of W on the grid and tilt them."""
    cells = _Cells.of(view_pairs, plan)
    n, (noise, shift) = len(view_pairs.plain), view_pairs.shifted_noises
    table = tables.index[noise]
    plain = _tilt_shifts(tables, table[:n], shift[:n], cells.last, cells.last, cells, plan)
    shifted = None
    if len(shift) > n:  # rows that are mixed need a common unit
        last, unit = cells.central_last, np.full(len(shift) - n, cells.central_last.max())
        shifted = _tilt_shifts(tables, table[n:], shift[n:], last, unit, cells, plan)
    return TiltedRows(plan, cells, plain.rows, _plain_factors(plain), shifted)


def _tilt_shifts(
    tables: NoiseTables,
    table: IntArray,
    shift: IntArray,
    last: IntArray,
    reference: IntArray,
    cells: _Cells,
    plan: GridPlan,
) -> _Shifted:
    """Put the loss of every shifted table on the grid up to ``last`` and tilt it in the unit of
    the grid point ``reference``."""
    from accounting.evaluator.kernels import tilted_rows
    from accounting.evaluator.pairs.run_kernels import RUN_MARGIN

    n, step, first = len(last), plan.step, plan.first
    rows, moment = np.empty((n, plan.size)), np.empty((n, len(cells.tilts)))
    aside = np.empty((n, 5))
    error = cells.errors(tables, table, plan)
    margin = (2 * error[:, 0] + RUN_MARGIN) / step  # Lemma F9

    def work(a: int, b: int) -> None:
        s = slice(a, b)
        grid = last[s], reference[s], margin[s], step, first, cells.decay
        where = tables.start, tables.sum_start, tables.smooth_from, table[s], shift[s], *grid
        results = rows[s], moment[s], aside[s]
        tilted_rows(tables.mass, tables.log_mass, tables.sums, *where, *results)

    length = len(tables.mass) // (len(tables.start) - 1)
    in_chunks(work, n, smallest=max(1, _FEWEST_OUTCOMES // length))
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
        capped_q=capped_q + np.diff(tables.start)[table] * TINY,  # what underflows
        unknown=unknown + tables.tail[table],
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
) -> tuple[Factors, FloatArray]:
    """Every factor mixes shifts of W, whose rows have a common unit.

    Also ``TiltedLosses.scale``.
    """
    offsets, m = Offsets.of(central, step, cells.tilts), central.mix[:, 0]
    total = central.sums(shifted.moment, offsets.case_mass) * offsets.top_mass[m]
    below = central.sums(shifted.below[:, None], offsets.case_mass[:, :1])[:, 0]
    lost = below * offsets.top_mass[m, 0] + (m + 1) * TINY
    total[:, 1:] += (m[:, None] + 1) * TINY
    empty = total[:, 0] < _SMALLEST_MOMENT
    total[empty, 0] = 0.0
    lost[empty] += 2 * _SMALLEST_MOMENT
    log_unit = shifted.log_unit[0] + np.outer((offsets.top_index[m] + 2) * step, cells.tilts)
    aside = np.stack([shifted.capped, shifted.capped_q, shifted.unknown], axis=1)
    share = np.exp(np.outer(central.offsets, [0.0, 1.0, 0.0]))
    capped, capped_q, unknown = central.sums(aside, share).T
    size = 8 * m[:, None] + 64 * (cells.steepest + 1) * (central.step * m[:, None] + step) + 256
    eta, eta_others = (shifted.error[0] + 4e-12 + size * UNIT_ROUNDOFF).T
    last = central.largest(shifted.last.astype(float), offsets.case_index.astype(float))
    with np.errstate(divide="ignore"):
        log_moment = np.log(total) + log_unit
        scale = np.where(empty, 0.0, 1 / total[:, 0])
    factors = Factors(
        log_moment=log_moment,
        log_whole=np.log(total[:, 0] + lost) + log_unit[:, 0],
        capped=capped,
        capped_q=capped_q * np.exp(-central.step * m),
        unknown=unknown,
        eta=eta,
        eta_others=eta_others,
        last=last.astype(np.int64) + offsets.top_index[m] + 2,
    )
    return factors, scale


@dataclass(frozen=True)
class Offsets:
    """The offset (m - 2i) * step of case i in two parts, each split between two grid points.

    The part m * step lies between ``top_index[m]`` and the next point, with tilted masses
    ``top[m]``, left and right, in units of e^{tilt * (top_index[m] + 1) * h} for a grid of step h;
    the part -2i * step lies at ``case_index[i]`` with masses ``case[i]`` in units of e^{tilt * h}.
    These masses are those of the first tilt; ``top_mass`` and ``case_mass`` are the sums of left
    and right for every tilt.
    """

    top_index: IntArray
    case_index: IntArray
    top: FloatArray
    case: FloatArray
    top_mass: FloatArray
    case_mass: FloatArray

    @staticmethod
    def of(central: CentralMixture, step: float, tilts: FloatArray) -> Offsets:
        top_index, share = _split(central.offsets / 2, step)
        left, right = (1 - share)[:, None] * np.exp(-step * tilts), share[:, None]
        case_index, share = _split(-central.offsets, step)
        tilted = np.exp(np.outer(case_index * step, tilts))
        case_left = tilted * (1 - share)[:, None] * np.exp(-step * tilts)
        case_right = tilted * share[:, None]
        return Offsets(
            top_index,
            case_index,
            top=np.stack([left[:, 0], right[:, 0]], axis=1),
            case=np.stack([case_left[:, 0], case_right[:, 0]], axis=1),
            top_mass=left + right,
            case_mass=case_left + case_right,
        )


def _split(offset: FloatArray, step: float) -> tuple[IntArray, FloatArray]:
    """Connect the dots for a constant loss: index of its left neighbor, share of the right one."""
    index = np.floor(offset / step)
    d = np.clip(offset - index * step, 0.0, step)
    return index.astype(np.int64), np.minimum(np.expm1(-d) / math.expm1(-step), 1.0)
