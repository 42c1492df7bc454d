"""A quick look at a view_pairs on a coarse grid, to choose the parameters of a rigorous evaluation.

Nothing here is a bound: a poor choice costs time or width, never soundness.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from accounting.base.arrays import FloatArray, IntArray, multiples
from accounting.base.deadline import check_time
from accounting.base.errors import TooLarge
from accounting.base.threads import in_chunks
from accounting.evaluator.bounding_functions import log_peak
from accounting.evaluator.noise_tables import NoiseTable
from accounting.evaluator.view_pairs import CentralMixture, ViewPairs

Tables = Mapping[int, NoiseTable]
COARSEST_STEP = 1 / 16
_TILTS = 16
_RATIO = 1.5
_MOST_COARSE_CELLS = 60_000
_MOST_CELLS = 1 << 20
_LARGEST_TABLE = 1 << 24
_MOST_CONTENDERS = 4000
_SAMPLES = 8192
_MOST_ENTRIES = 1 << 28
"""Of all coarse grids together: 2 GiB."""
_LARGEST_EXPONENT = 600.0
"""Of the tilt times the cap of W, whose shifts share a reference point."""


@dataclass(frozen=True)
class Survey:
    """Per factor: log-moments on a grid of tilts, the cap on the loss, the mass above the cap.

    ``reach`` is the largest central offset, by which a loss of W may lie below that of its factor.
    """

    tilts: FloatArray
    log_moment: FloatArray
    top: FloatArray
    central_top: FloatArray
    reach: float
    aside: FloatArray


@dataclass(frozen=True)
class Plan:
    """A grid of ``size`` points ``step`` apart from index ``origin`` on, tilted by ``tilt``."""

    eps: float
    step: float
    size: int
    origin: int
    tilt: float
    others: FloatArray
    first: int
    top: FloatArray
    central_top: FloatArray


def mixture(central: CentralMixture, values: FloatArray, tilts: FloatArray) -> FloatArray:
    """Per central factor and column t: sum_i w_i e^{tilts[t] * offset_i} values[shift b + i, t]."""
    low = int(central.shifts[0])
    out = np.empty((len(central.mix), values.shape[1]))
    known: dict[int, FloatArray] = {}
    for row, (m, b) in enumerate(central.mix.tolist()):
        check_time()
        if m not in known:
            known[m] = central.weights(m)[:, None] * np.exp(np.outer(central.offsets(m), tilts))
        out[row] = (known[m] * values[b - low : b - low + m + 1]).sum(axis=0)
    return out


def log_mixture(central: CentralMixture, values: FloatArray, tilts: FloatArray) -> FloatArray:
    """The same for logarithms of values, of any size."""
    low = int(central.shifts[0])
    out = np.empty((len(central.mix), values.shape[1]))
    known: dict[int, FloatArray] = {}
    for row, (m, b) in enumerate(central.mix.tolist()):
        check_time()
        if m not in known:
            known[m] = np.log(central.weights(m))[:, None] + np.outer(central.offsets(m), tilts)
        terms = known[m] + values[b - low : b - low + m + 1]
        peak = terms.max(axis=0)
        peak[peak == -math.inf] = 0.0
        with np.errstate(divide="ignore"):
            out[row] = peak + np.log(np.exp(terms - peak).sum(axis=0))
    return out


def _sample(
    table: NoiseTable,
    shifts: IntArray,
    eps: float,
    step: float,
    first: int,
    cells: FloatArray,
    out: FloatArray,
) -> None:
    from accounting.evaluator.grid_plan_kernels import sample_losses

    stride = max(1, len(table.mass) // _SAMPLES)

    def work(a: int, b: int) -> None:
        sample_losses(
            table.mass,
            table.log_mass,
            shifts[a:b],
            _SAMPLES // 4,
            stride,
            eps + 5.0,
            step,
            first,
            cells[a:b],
            out[a:b],
        )

    in_chunks(work, len(shifts), smallest=max(1, 20_000 // min(len(table.mass), _SAMPLES)))


class Surveyor:
    """Coarse grids of all factors, made once; ``capped`` looks at them with a budget."""

    def __init__(
        self,
        view_pairs: ViewPairs,
        tables: Mapping[int, NoiseTable],
        eps: float,
        *,
        finer: float = 1.0,
    ) -> None:
        self.view_pairs = view_pairs
        self.groups = view_pairs.shift_groups
        scale, smallest, largest = self._extent(tables, eps)
        low = max(smallest, -(2 * eps + 30 * scale))
        high = max(min(largest, eps + max(3.0, 30 * scale) / finer**0.6), low)
        most = _MOST_COARSE_CELLS if view_pairs.factor_count < 100 else _MOST_COARSE_CELLS // 8
        self.step = min(max(scale / 12 * finer, (high - low) / most), COARSEST_STEP)
        many = _TILTS + math.ceil(math.log(1 / finer, _RATIO))
        steep = 0.1 / scale * _RATIO ** np.arange(many)
        gentle = 0.05 * 2.5 ** np.arange(max(0.0, math.log(0.7 * steep[0] / 0.05, 2.5)))
        self.tilts = np.concatenate([[0.0], gentle, steep])
        first, last = math.floor(low / self.step) - 1, math.ceil(high / self.step) + 2
        self.loss = multiples(first, last - first + 1, self.step)
        count = sum(len(shifts) for _, _, shifts in self.groups)
        if count * len(self.loss) > _MOST_ENTRIES:
            raise TooLarge(
                f"{count:,} shifted noises on a grid of {len(self.loss):,} points do not fit into "
                f"{_MOST_ENTRIES >> 27} GiB: evaluate fewer pairs at a time"
            )
        self.decay = np.empty((len(self.tilts), len(self.loss)))
        self.decay[:] = np.exp(-self.tilts * self.step)[:, None]
        self.decay[:, 0] = 1.0
        np.multiply.accumulate(self.decay, axis=1, out=self.decay)
        self.cells: list[FloatArray] = []
        self.out: list[FloatArray] = []
        for noise, _, shifts in self.groups:
            cells, out = np.empty((len(shifts), len(self.loss))), np.empty((len(shifts), 5))
            _sample(tables[noise], shifts, eps, self.step, first, cells, out)
            self.cells.append(cells)
            self.out.append(out)

    def _extent(self, tables: Tables, eps: float) -> tuple[float, float, float]:
        """About the standard deviation of the loss of the widest pair, central offsets left out;
        and the smallest and the largest finite loss of a factor."""
        spread = np.zeros((self.view_pairs.factor_count, 2))
        smallest, largest = math.inf, -math.inf
        for noise, rows, shifts in self.groups:
            out = np.empty((len(shifts), 5))
            _sample(tables[noise], shifts, eps, 1.0, 0, np.empty((len(shifts), 0)), out)
            smallest = min(smallest, float(out[:, 1].min()))
            largest = max(largest, float(out[:, 2].max()))
            if rows is None:
                spread[len(self.view_pairs.plain) :] = np.abs(out[:, 3:]).max(axis=0)
            else:
                spread[rows] = np.abs(out[:, 3:])
        mean, variance = (self.view_pairs.sum_over_pairs(spread) * self.view_pairs.releases).T
        scale = max(
            math.sqrt(float(variance.max(initial=0.0))),
            0.01 * (eps + float(mean.max(initial=0.0))),
            1e-7,
        )
        if not smallest <= largest:  # no finite loss anywhere
            smallest = largest = 0.0
        return scale, smallest, largest

    def capped(self, budget: float) -> Survey:
        """``budget`` is the Q-mass that a factor may lose above its cap."""
        from accounting.evaluator.grid_plan_kernels import capped_moments

        view_pairs = self.view_pairs
        n_plain = len(view_pairs.plain)
        log_moment = np.empty((view_pairs.factor_count, len(self.tilts)))
        top, aside = np.empty(view_pairs.factor_count), np.empty(view_pairs.factor_count)
        central_top = np.zeros(0)
        for (_, rows, shifts), cells, out in zip(self.groups, self.cells, self.out, strict=True):
            n = len(shifts)
            m_out, t_out, a_out = np.empty((n, len(self.tilts))), np.empty(n), np.empty(n)
            above = np.ascontiguousarray(out[:, 1:3])

            def work(a: int, b: int) -> None:
                capped_moments(
                    cells[a:b],
                    above[a:b],
                    self.loss,
                    budget,
                    self.tilts,
                    self.decay,
                    m_out[a:b],
                    t_out[a:b],
                    a_out[a:b],
                )

            in_chunks(work, n, smallest=8)
            a_out += out[:, 0]
            if rows is None:
                central = view_pairs.central
                assert central is not None
                log_moment[n_plain:] = log_mixture(central, m_out, self.tilts)
                aside[n_plain:] = mixture(central, a_out[:, None], np.zeros(1))[:, 0]
                central_top = t_out
                top[n_plain:] = [
                    (t_out[b : b + m + 1] + central.offsets(m)).max()
                    for m, b in central.mix - [0, central.shifts[0]]
                ]
            else:
                log_moment[rows], top[rows], aside[rows] = m_out, t_out, a_out
        central = view_pairs.central
        reach = central.step * int(central.mix[:, 0].max(initial=0)) if central is not None else 0.0
        return Survey(self.tilts, log_moment, top, central_top, reach, aside)


@dataclass(frozen=True)
class Outlook:
    """How large the divergences look, and of the pair that looks worst its tilt and splits.

    ``log_moment`` and ``top`` are those of every pair.
    """

    tilt: float
    splits: int
    kept: float
    total: float
    log_moment: FloatArray
    top: FloatArray


def outlook(view_pairs: ViewPairs, seen: Survey, eps: float) -> Outlook:
    """Saddle-point estimate of every pair; the largest of them."""
    log_moment = view_pairs.sum_over_pairs(seen.log_moment) * view_pairs.releases
    aside = view_pairs.sum_over_pairs(seen.aside[:, None])[:, 0] * view_pairs.releases
    exponent = log_moment - seen.tilts * eps
    exponent[np.isnan(exponent)] = math.inf
    best = np.clip(np.argmin(exponent, axis=1), 1, len(seen.tilts) - 2)
    rows = np.arange(view_pairs.pair_count)
    tilt = seen.tilts[best]
    chernoff = np.exp(np.minimum(exponent[rows, best], 0.0))
    with np.errstate(invalid="ignore"):
        slope = np.diff(exponent, axis=1) / np.diff(seen.tilts)
        bend = (slope[rows, best] - slope[rows, best - 1]) / (
            seen.tilts[best + 1] - seen.tilts[best - 1]
        )
    deviation = np.sqrt(np.where(np.isfinite(bend), np.maximum(2 * bend, 0.0), 0.0))
    kept = chernoff / (1 + tilt) / (1 + 2.5 * tilt * deviation)
    q = int(np.argmax(kept + aside))
    splits = view_pairs.splits[
        view_pairs.factor[view_pairs.start[q] : view_pairs.start[q + 1]]
    ].sum()
    return Outlook(
        tilt=float(tilt[q]),
        splits=max(1, int(splits) * view_pairs.releases),
        kept=max(float(kept[q]), 1e-300),
        total=max(float(kept[q] + aside[q]), 1e-300),
        log_moment=log_moment,
        top=view_pairs.sum_over_pairs(seen.top[:, None])[:, 0] * view_pairs.releases,
    )


@dataclass(frozen=True)
class _Window:
    """The losses that the tilt leaves for a grid to cover; other tilts, by index, prove it."""

    tilt: float
    low: float
    high: float
    log_tail: float
    proved_by: frozenset[int] = frozenset()

    @property
    def cost(self) -> float:
        """Its width, with a penalty where rounding errors would be felt."""
        felt = max(0.0, -25.0 - self.log_tail)
        return (self.high - self.low) * (1 + felt) * math.exp(min(max(0.0, felt - 6.0), 100.0))


def _window(seen: Survey, look: Outlook, a: int, eps: float, log_error: float) -> _Window:
    """Where Markov's inequality leaves, in every pair, less than e^log_error outside."""
    tilts = seen.tilts
    log_c = look.log_moment[:, a] - tilts[a] * eps + log_peak(tilts[a])
    log_tail = log_error - log_c - 5  # the fine grid will differ a little from the coarse one
    rows = np.flatnonzero(log_tail < 0)
    rows = rows[np.argsort(log_tail[rows])[:_MOST_CONTENDERS]]
    if not len(rows):
        return _Window(float(tilts[a]), eps, eps, 0.0)
    log_m = look.log_moment[rows]
    with np.errstate(invalid="ignore", divide="ignore"):
        edge = (log_m - log_m[:, [a]] - log_tail[rows, None]) / (tilts - tilts[a])
    # beyond the last tilt with a finite moment, and at the tilt itself, there is no edge
    edge[~np.isfinite(edge)] = math.nan
    edge[:, :a] = np.where(np.isnan(edge[:, :a]), -math.inf, edge[:, :a])
    edge[:, a:] = np.where(np.isnan(edge[:, a:]), math.inf, edge[:, a:])
    low_at = np.argmax(edge[:, :a], axis=1)
    high_at = a + np.argmin(edge[:, a:], axis=1)
    each = np.arange(len(rows))
    below = np.maximum(edge[each, low_at], -1e3)
    above = np.minimum(edge[each, high_at], look.top[rows])
    proved_by = frozenset(low_at.tolist()) | frozenset(high_at.tolist())
    return _Window(
        float(tilts[a]), float(below.min()), float(above.max()), float(log_tail.min()), proved_by
    )


def choose(
    seen: Survey,
    look: Outlook,
    *,
    eps: float,
    gap: float,
    finer: float,
    delta: float,
    largest_size: int,
    thorough: bool = False,
) -> Plan:
    """The cheapest grid that should reach ``gap`` relative to ``delta``.

    ``thorough`` considers every tilt, not only those near the saddle point.
    """
    steepest = _LARGEST_EXPONENT / max(float(seen.central_top.max(initial=0.0)), 1e-9)
    best = int(np.searchsorted(seen.tilts, look.tilt))
    begin, end = (1, len(seen.tilts)) if thorough else (best - 2, best + 4)
    near = range(max(1, begin), min(end, len(seen.tilts)))
    usable = [a for a in near if seen.tilts[a] <= steepest] or [1]
    log_error = math.log(0.02 * gap * delta)
    windows = [_window(seen, look, a, eps, log_error) for a in usable]
    window = min(windows, key=lambda w: w.cost)
    density = min(look.kept, delta) * look.tilt * (1 + look.tilt)
    wanted = math.sqrt(0.7 * gap * delta / (0.8 * look.splits * density))
    step = min(wanted, COARSEST_STEP) * finer
    room = max(4 * look.splits, 16) * step
    low = min(window.low, eps - room)
    high = max(window.high + 3 * look.splits * step, eps + room)
    size = min(1 << max(8, math.ceil(math.log2((high - low) / step + 4))), largest_size)
    step = min(COARSEST_STEP, max((high - low) / (size - 4), step / 2))
    a = int(np.flatnonzero(seen.tilts == window.tilt)[0])
    of_factor = seen.log_moment[:, a]
    smallest = float(of_factor[np.isfinite(of_factor)].min(initial=0.0))
    lowest = (smallest + min(window.log_tail, -5.0) - math.log(1e3 * look.splits)) / window.tilt
    first = max(math.floor((lowest - seen.reach) / step) - 1, -_MOST_CELLS)
    around = set(range(len(seen.tilts))) if thorough else window.proved_by | {a - 1, a + 1}
    around = around - {a, len(seen.tilts)}
    others = seen.tilts[sorted(around)]
    others = others[others <= steepest]
    cells = float(seen.top.max(initial=0.0)) / step - first
    others = others[:: max(1, math.ceil(cells * len(others) / _LARGEST_TABLE))]
    return Plan(
        eps=eps,
        step=step,
        size=size,
        origin=math.floor(low / step),
        tilt=window.tilt,
        others=others,
        first=first,
        top=seen.top,
        central_top=seen.central_top,
    )
