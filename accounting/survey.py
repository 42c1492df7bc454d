"""A quick look at a workload on a coarse grid, to choose the parameters of a rigorous evaluation.

Nothing here is a bound: a poor choice costs time or width, never soundness.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from accounting.arrays import FloatArray, IntArray
from accounting.noise import NoiseTable
from accounting.parallel import in_chunks
from accounting.testfunctions import log_peak
from accounting.workload import CentralMixture, Workload

COARSEST_STEP = 1 / 16
_TILTS = 20
_MOST_COARSE_CELLS = 60_000
_MOST_CELLS = 1 << 22
_LARGEST_EXPONENT = 690.0


@dataclass(frozen=True)
class Survey:
    """Per factor: log-moments on a grid of tilts, the cap on the loss, the mass above the cap."""

    tilts: FloatArray
    log_moment: FloatArray
    top: FloatArray
    central_top: float
    aside: FloatArray


@dataclass(frozen=True)
class Plan:
    """A grid of ``size`` points ``step`` apart, starting at index ``origin``, tilted by ``tilt``."""

    eps: float
    step: float
    size: int
    origin: int
    tilt: float
    others: FloatArray
    first: int
    top: FloatArray
    central_top: float


def mixture(central: CentralMixture, values: FloatArray, tilts: FloatArray) -> FloatArray:
    """Per central factor and tilt t: sum_i w_i e^{t * offset_i} values[shift b + i]."""
    low = int(central.shifts[0]) if len(central.shifts) else 0
    out = np.empty((len(central.mix), values.shape[1]))
    known: dict[int, FloatArray] = {}
    for row, (m, b) in enumerate(central.mix):
        m, b = int(m), int(b)
        if m not in known:
            exponent = np.minimum(np.outer(central.offsets(m), tilts), _LARGEST_EXPONENT)
            known[m] = central.weights(m)[:, None] * np.exp(exponent)
        out[row] = (known[m] * values[b - low : b - low + m + 1]).sum(axis=0)
    return out


class Surveyor:
    """Coarse grids of all factors, made once; ``capped`` looks at them with a budget."""

    def __init__(self, workload: Workload, tables: Sequence[NoiseTable], eps: float) -> None:
        from accounting.kernels import cell_rows

        self.workload = workload
        self.groups = shift_groups(workload)
        scale = self._scale(tables, eps)
        self.step = min(scale / 16, COARSEST_STEP)
        self.tilts = np.append(0.0, 0.1 / scale * 2.0 ** (np.arange(_TILTS) / 2))
        first = -math.ceil((2 * eps + 30 * scale) / self.step)
        last = math.ceil((eps + max(3.0, 30 * scale)) / self.step)
        last = min(last, first + _MOST_COARSE_CELLS)
        self.loss = np.arange(first, last + 1) * self.step
        exponent = np.outer(self.tilts, self.loss)
        self.powers = np.exp(np.clip(exponent, -700.0, _LARGEST_EXPONENT))
        self.cells: list[FloatArray] = []
        self.out: list[FloatArray] = []
        for noise, _, shifts in self.groups:
            cells, out = np.empty((len(shifts), len(self.loss))), np.empty((len(shifts), 5))
            table = tables[noise]

            def work(a: int, b: int) -> None:
                cell_rows(
                    table.mass, table.log_mass, shifts[a:b], self.step, first, cells[a:b], out[a:b]
                )

            in_chunks(work, len(shifts), smallest=max(1, 20_000 // len(table.mass)))
            self.cells.append(cells)
            self.out.append(out)

    def _scale(self, tables: Sequence[NoiseTable], eps: float) -> float:
        """About the standard deviation of the loss of the widest pair, central offsets left out."""
        from accounting.kernels import loss_moments

        spread = np.zeros((self.workload.factors, 2))
        for noise, rows, shifts in self.groups:
            out = np.zeros((len(shifts), 2))
            loss_moments(tables[noise].mass, tables[noise].log_mass, shifts, eps + 5.0, out)
            if rows is None:
                spread[len(self.workload.plain) :] = np.abs(out).max(axis=0)
            else:
                spread[rows] = np.abs(out)
        mean, variance = (self.workload.sum_over_pairs(spread) * self.workload.releases).T
        return max(
            math.sqrt(float(variance.max(initial=0.0))),
            0.01 * (eps + float(mean.max(initial=0.0))),
            1e-7,
        )

    def capped(self, budget: float) -> Survey:
        """``budget`` is the Q-mass that a factor may lose above its cap."""
        from accounting.kernels import capped_moments

        workload = self.workload
        n_plain = len(workload.plain)
        moments = np.empty((workload.factors, len(self.tilts)))
        top, aside = np.empty(workload.factors), np.empty(workload.factors)
        central_top = 0.0
        for (_, rows, shifts), cells, out in zip(self.groups, self.cells, self.out, strict=True):
            n = len(shifts)
            m_out, t_out, a_out = np.empty((n, len(self.tilts))), np.empty(n), np.empty(n)
            above = np.ascontiguousarray(out[:, 1:3])

            def work(a: int, b: int) -> None:
                capped_moments(
                    cells[a:b], above[a:b], self.loss, budget, self.powers, m_out[a:b], t_out[a:b],
                    a_out[a:b],
                )

            in_chunks(work, n, smallest=8)
            a_out += out[:, 0]
            if rows is None:
                central = workload.central
                assert central is not None
                moments[n_plain:] = mixture(central, m_out, self.tilts)
                aside[n_plain:] = mixture(central, a_out[:, None], np.zeros(1))[:, 0]
                central_top = float(t_out.max())
                top[n_plain:] = central_top + central.step * central.mix[:, 0]
            else:
                moments[rows], top[rows], aside[rows] = m_out, t_out, a_out
        with np.errstate(divide="ignore"):
            return Survey(self.tilts, np.log(moments), top, central_top, aside)


def shift_groups(workload: Workload) -> list[tuple[int, IntArray | None, IntArray]]:
    """(noise, rows of ``plain`` or None for the central noise, shifts) for each noise in use."""
    groups: list[tuple[int, IntArray | None, IntArray]] = []
    for noise in np.unique(workload.plain[:, 0]):
        rows = np.flatnonzero(workload.plain[:, 0] == noise)
        groups.append((int(noise), rows, workload.plain[rows, 1]))
    if workload.central is not None and len(workload.central.mix):
        groups.append((workload.central.noise, None, workload.central.shifts))
    return groups


@dataclass(frozen=True)
class Outlook:
    """The pair that looks worst and how large its divergence looks."""

    pair: int
    tilt: float
    kept: float
    total: float
    log_moment: FloatArray
    top: float
    splits: int


def outlook(workload: Workload, seen: Survey, eps: float) -> Outlook:
    """Saddle-point estimate of every pair; the largest of them."""
    log_moment = workload.sum_over_pairs(seen.log_moment) * workload.releases
    aside = workload.sum_over_pairs(seen.aside[:, None])[:, 0] * workload.releases
    with np.errstate(invalid="ignore"):
        exponent = log_moment - seen.tilts * eps
    exponent = np.where(np.isnan(exponent), math.inf, exponent)
    best = np.clip(np.argmin(exponent, axis=1), 1, len(seen.tilts) - 2)
    rows = np.arange(workload.pairs)
    tilt = seen.tilts[best]
    chernoff = np.minimum(exponent[rows, best], 0.0)
    left = (exponent[rows, best] - exponent[rows, best - 1]) / (tilt - seen.tilts[best - 1])
    right = (exponent[rows, best + 1] - exponent[rows, best]) / (seen.tilts[best + 1] - tilt)
    width = seen.tilts[best + 1] - seen.tilts[best - 1]
    with np.errstate(invalid="ignore"):
        deviation = np.sqrt(np.maximum(2 * (right - left) / width, 0.0))
    kept_all = np.exp(chernoff) / (1 + tilt) / (1 + 2.5 * tilt * np.nan_to_num(deviation))
    estimate = kept_all + aside
    q = int(np.argmax(estimate))
    splits = int(workload.splits[workload.factor[workload.start[q] : workload.start[q + 1]]].sum())
    tops = workload.sum_over_pairs(seen.top[:, None])[q, 0] * workload.releases
    return Outlook(
        pair=q,
        tilt=float(tilt[q]),
        kept=max(float(kept_all[q]), 1e-300),
        total=max(float(estimate[q]), 1e-300),
        log_moment=log_moment[q],
        top=float(tops),
        splits=max(1, splits * workload.releases),
    )


@dataclass(frozen=True)
class _Window:
    """A window of losses and the indices of the tilts that justify it."""

    low: float
    high: float
    log_tail: float
    tilt: int
    low_at: int
    high_at: int

    @property
    def cost(self) -> float:
        """Its width, and a penalty where rounding errors would be felt."""
        return (self.high - self.low) * (1 + max(0.0, -25.0 - self.log_tail))


def choose(
    workload: Workload, seen: Survey, look: Outlook, *, eps: float, gap: float, finer: float,
    delta: float, largest_size: int,
) -> Plan:
    """The cheapest grid that should reach ``gap`` relative to ``delta``; see discretisation.md, 5."""
    tilts, log_m = seen.tilts, look.log_moment
    log_delta = math.log(delta)
    best: _Window | None = None
    for a in range(1, len(tilts)):
        if not math.isfinite(log_m[a]) or tilts[a] * seen.top.max() > _LARGEST_EXPONENT:
            continue
        log_c = log_m[a] - tilts[a] * eps
        log_tail = math.log(0.02 * gap) + log_delta - log_c - log_peak(tilts[a])
        usable = [b for b in range(len(tilts)) if math.isfinite(log_m[b]) and b != a]
        usable = [b for b in usable if tilts[b] * seen.top.max() <= _LARGEST_EXPONENT]
        # Markov's inequality puts the edge where the tilted mass beyond it is e^log_tail
        edge = {b: (log_m[b] - log_m[a] - log_tail) / (tilts[b] - tilts[a]) for b in usable}
        low_at = max((b for b in usable if b < a), key=edge.__getitem__)
        high_at = min((b for b in usable if b > a), key=edge.__getitem__, default=a)
        low = min(edge[low_at], eps)
        high = max(min(edge.get(high_at, look.top), look.top), eps)
        window = _Window(low, high, log_tail, a, low_at, high_at)
        if best is None or window.cost < best.cost:
            best = window
    if best is None:
        best = _Window(-eps - 20.0, look.top, math.log(1e-6), 1, 0, 2)
    low, high, log_tail, a = best.low, best.high, best.log_tail, best.tilt
    tilt = float(tilts[a])
    saddle = look.tilt
    density = min(look.kept, delta) * saddle * (1 + saddle)
    wanted = math.sqrt(0.7 * gap * delta / (0.8 * look.splits * density)) * finer
    step = min(wanted, COARSEST_STEP)
    room = max(4 * look.splits, 16) * step
    low, high = min(low, eps - room), max(high, eps + room)
    size = 1 << max(8, math.ceil(math.log2((high - low) / step + 4)))
    size = min(size, largest_size)
    step = min(COARSEST_STEP, max((high - low) / (size - 4), step / 2))
    first = math.floor((min(log_tail, -5.0) - math.log(1e3 * look.splits)) / tilt / step) - 1
    first = max(first, -_MOST_CELLS)
    around = {best.low_at, best.high_at, a - 1, a + 1} - {a, len(tilts)}
    others = tilts[sorted(around)]
    others = others[others * seen.top.max() <= _LARGEST_EXPONENT]
    return Plan(
        eps=eps, step=step, size=size, origin=math.floor(low / step), tilt=tilt, others=others,
        first=first, top=seen.top, central_top=seen.central_top,
    )
