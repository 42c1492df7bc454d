"""The law of (D, Y_0) in two dimensions, for small problems: the exact central term.

With x = |D| and w = Y_0 - max(0, -D) (notary.md, section 5),
    H_x(w) = sum_m f(m) f(m + x) g(w - m),   f = NB(share, q), g = noise of {-1, +1}.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from flint import arb

from accounting.base.arrays import UNIT_ROUNDOFF, FloatArray
from accounting.base.balls import ball, double
from accounting.base.deadline import check_time
from accounting.notary.dropouts.central_pairs import CentralPair, sum_error
from accounting.notary.factors import Group, Groups

_SMALLEST_MASS = 1e-200
"""Smaller masses are dropped, and counted as lost, so that no denormal number has a logarithm."""
_LOG_ERROR = 1e-12
"""Error of a difference of two logarithms of masses above the smallest, which are below 500."""
_MOST_CELLS = 1 << 22
"""Grid cells on either side of zero; losses beyond become +infinity or are raised."""
_BLOCK = 1 << 21
"""Outcomes that are collected before their losses are sorted into cells."""


@dataclass(frozen=True)
class _Row:
    """All outcomes with one value of D."""

    p: FloatArray
    q: FloatArray
    loss: FloatArray
    """Masses under both laws, and losses, of the outcomes that the table has under both."""
    impossible: float
    """Mass of the outcomes that the other law cannot produce."""
    unmatched: float
    """Mass of the outcomes that are beyond the table under the other law."""


@dataclass(frozen=True)
class _Total:
    """Sums of masses under both laws, and an upper bound on the number of additions in them."""

    p: float = 0.0
    q: float = 0.0
    additions: int = 0


class JointTable:
    """The table H, and the groups of outcomes under a change (kappa, a_0)."""

    def __init__(self, pair: CentralPair, unit: FloatArray, unit_lost: arb) -> None:
        size, length = pair.size, len(unit)
        self.lost = pair.lost + unit_lost
        """Mass of the outcomes beyond a table, under either law."""
        table = np.zeros((size, size + length - 1))
        for x in range(size):
            check_time()
            row = np.convolve(pair.joint(x), unit)
            table[x, : len(row)] = row
        table[table < _SMALLEST_MASS] = 0.0
        self.lost += ball(table.size * 2 * _SMALLEST_MASS * 1.001)
        self.table = table
        self.relative_error = sum_error(min(size, length))

    @cached_property
    def _log(self) -> FloatArray:
        out: FloatArray = np.log(
            np.maximum(self.table, _SMALLEST_MASS)
        )  # entries of 0 are not used
        return out

    def _rows(self, kappa: int, a: int) -> Iterator[_Row]:
        size, width = self.table.shape
        for d in range(1 - size, size):
            check_time()
            row, there = self.table[abs(d)], abs(d + kappa)
            shift = a + max(0, -d) - max(0, -d - kappa)
            first = min(max(0, -shift), width)
            last = max(first, width - max(0, shift)) if there < size else first
            impossible, unmatched = float(row[:first].sum()), float(row[last:].sum())
            if first == last:
                yield _Row(row[:0], row[:0], row[:0], impossible, unmatched)
                continue
            other = slice(first + shift, last + shift)
            loss = self._log[abs(d), first:last] - self._log[there, other]
            yield _Row(row[first:last], self.table[there, other], loss, impossible, unmatched)

    def groups(self, kappa: int, a: int, h: arb, clip: float, lowest: int) -> Groups:
        """The outcomes by the cells of their losses, without finite losses below ``lowest``."""
        step = double(h)
        floor = (lowest - 2) * step  # leaves a cell for the error of a loss
        found = _Cells(step, 2 * self.relative_error + _LOG_ERROR)
        certain = 0.0
        for row in self._rows(kappa, a):
            certain += row.impossible
            found.beyond += row.unmatched
            high = (row.loss > floor) | (row.q == 0)
            if not high.any():
                continue
            p, q, loss = row.p[high], row.q[high], row.loss[high]
            both = (p > 0) & (q > 0)
            found.beyond += float(p[~both].sum())
            found.add(p[both], q[both], loss[both])
        found.flush()

        def enclosed(total: float, additions: int) -> arb:
            spread = self.relative_error + 1.01 * (additions + 64) * UNIT_ROUNDOFF
            return arb(total, spread * total * 1.001)

        order = sorted(found.totals) or [(lowest, 1)]
        found.totals.setdefault(order[0], _Total())
        mass = np.array([found.totals[key].p for key in order])
        below = min(int(np.searchsorted(np.cumsum(mass), clip)), len(order) - 1)
        beyond = int(np.searchsorted(np.cumsum(mass[::-1]), clip))
        groups = []
        for low, cells in order:
            total = found.totals[low, cells]
            groups.append(
                Group(
                    p=enclosed(total.p, total.additions),
                    q=enclosed(total.q, total.additions),
                    low=low,
                    high=low + cells,
                )
            )
        return Groups(
            tuple(groups),
            bottom=max(order[below][0], 2 - _MOST_CELLS),
            top=order[max(0, len(order) - 1 - beyond)][0] + 1,
            certain=enclosed(certain, self.table.size),
            rest=enclosed(found.beyond, 4 * self.table.size) + self.lost,
            unknown=self.lost,
        )


class _Cells:
    """Total masses by the (lowest grid point, number of cells) of a loss, collected in blocks.

    ``beyond`` is the mass that becomes +infinity.
    """

    def __init__(self, step: float, error: float) -> None:
        self.step, self.error = step, error
        self.totals: dict[tuple[int, int], _Total] = {}
        self.beyond = 0.0
        self._waiting: list[tuple[FloatArray, FloatArray, FloatArray]] = []
        self._count = 0

    def add(self, p: FloatArray, q: FloatArray, loss: FloatArray) -> None:
        self._waiting.append((p, q, loss))
        self._count += len(p)
        if self._count > _BLOCK:
            self.flush()

    def flush(self) -> None:
        if self._count == 0:
            return
        p, q, loss = (np.concatenate(part) for part in zip(*self._waiting, strict=True))
        self._waiting, self._count = [], 0
        position = loss / self.step
        high_up = position > _MOST_CELLS
        self.beyond += float(p[high_up].sum())
        p, q = p[~high_up], q[~high_up]
        position = np.maximum(position[~high_up], -_MOST_CELLS)  # raised: Groups.bottom is above
        # a loss within its error of a grid point is taken to span two cells
        margin = self.error / self.step + np.abs(position) * 1e-15
        low = np.floor(position - margin).astype(np.int64)
        span = np.maximum(np.ceil(position + margin).astype(np.int64) - low, 1)
        for cells in np.unique(span).tolist():
            chosen = span == cells
            base = int(low[chosen].min())
            index = low[chosen] - base
            ps, qs = (np.bincount(index, weights=x[chosen]).tolist() for x in (p, q))
            counts = np.bincount(index)
            for i in np.flatnonzero(counts).tolist():
                before = self.totals.get((base + i, cells), _Total())
                self.totals[base + i, cells] = _Total(
                    p=before.p + ps[i],
                    q=before.q + qs[i],
                    additions=before.additions + int(counts[i]) + 1,
                )
