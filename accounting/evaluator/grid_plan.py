"""The choice of the grid of a rigorous evaluation, from losses on a coarse grid.

Nothing here is a bound: a poor choice costs time or width, never soundness.  Constants without a
derivation are rules of thumb.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from accounting.base.arrays import FloatArray, IntArray, multiples
from accounting.base.errors import TooLarge
from accounting.base.threads import in_chunks
from accounting.evaluator.bounding_functions import log_peak
from accounting.evaluator.noise_tables import NoiseTable
from accounting.evaluator.view_pairs import ShiftGroup, ViewPairs

Tables = Mapping[int, NoiseTable]
"""Tables by the index of their noise."""
COARSEST_STEP = 1 / 16
"""Largest step of a grid, in units of the loss: ``one_minus_exp`` is accurate up to there."""
NEARLY_ZERO = 1e-300
"""Stands for a divergence of zero where a logarithm or a quotient of it is taken."""
_REACH = 30
"""Distance of the ends of the coarse grid from eps, in standard deviations of the loss."""
_CELLS_PER_DEVIATION = 12
"""Number of cells of the coarse grid within one standard deviation of the loss."""
_MOST_COARSE_CELLS = 60_000
"""Largest number of cells of a coarse grid, for fewer than 100 factors."""
_MOST_ENTRIES = 1 << 28
"""Largest number of entries of all coarse grids together: 2 GiB."""
_SAMPLES = 8192
"""Number of outcomes of a long table that are looked at, roughly."""
_TILTS, _RATIO, _FIRST_TILT = 16, 1.5, 0.1
"""Number and ratio of the steep tilts, and the first of them times the deviation of the loss."""
_GENTLE_RATIO, _GENTLEST_TILT = 2.5, 0.05
"""Ratio of the tilts below the steep ones, and the first of them, in units of 1 / loss."""
_MOST_CELLS = 1 << 20
"""Largest number of cells of the loss of a factor below 0."""
_LARGEST_DECAY = 1 << 24
"""Largest number of entries of the table of all e^{-tilt * loss}: 128 MiB."""
_MOST_CONTENDERS = 4000
"""Number of pairs that place the window; the others have smaller divergences."""
_LARGEST_EXPONENT = 600.0
"""Largest tilt times cap of W, whose shifts share a reference point: exp must not overflow."""
_OUTSIDE_SHARE, _STEP_SHARE = 0.02, 0.7
"""Shares of the gap that may be lost to the mass outside the window and to the step."""
_STEP_ERROR = 0.8
"""Gap of Theorem 5 in units of splits * step^2 * density; about 0.6, rounded up."""
_LOG_MARGIN = 5.0
"""Logarithm of the factor by which moments on the fine grid may differ from the coarse ones."""
_LOG_ROUNDING = -25.0
"""Logarithm of the tilted mass outside below which rounding errors of the transform matter."""


@dataclass(frozen=True)
class CappedMoments:
    """Per factor: log-moments at ``tilts``, the cap on its loss, and the P-mass above the cap.

    ``central_cap`` has the caps of the shifts of W.  A loss of W may lie below that of its factor
    by up to ``largest_offset``.
    """

    tilts: FloatArray
    log_moment: FloatArray
    cap: FloatArray
    central_cap: FloatArray
    above_cap: FloatArray
    largest_offset: float


@dataclass(frozen=True)
class GridPlan:
    """A grid of ``size`` points ``step`` apart from index ``origin`` on, tilted by ``tilt``.

    Losses of single factors lie between the index ``first`` and their ``cap``, those of the shifts
    of W below ``central_cap``.  Moments at ``other_tilts`` bound the mass outside the grid.
    """

    eps: float
    step: float
    size: int
    origin: int
    tilt: float
    other_tilts: FloatArray
    first: int
    cap: FloatArray
    central_cap: FloatArray


@dataclass(frozen=True)
class Refinement:
    """The question, and what the next attempt to answer it takes from the earlier ones.

    ``tail``: P-mass that may lie beyond a table.  ``step_factor``: factor by which the step is
    finer than the rule of thumb.  ``attained``: largest lower bound so far, or 0.  ``seen``:
    estimate of the divergence by the last attempt.
    """

    eps: float
    gap: float
    absolute: float = 0.0
    attempt: int = 0
    tail: float = 1e-18
    step_factor: float = 1.0
    attained: float = 0.0
    seen: float = math.inf

    @property
    def cap_share(self) -> float:
        """Share of the divergence that may be lost to caps and tails."""
        return 0.2 * self.gap * 0.5 ** (self.attempt // 3)

    def expected(self, saddle: SaddleEstimate) -> float:
        """The divergence that errors are compared with."""
        return max(self.attained or min(saddle.total, self.seen), self.absolute)


@dataclass(frozen=True)
class _LossStatistics:
    """The columns of ``sample_losses``, one entry per shift."""

    infinite: FloatArray
    p_above: FloatArray
    q_above: FloatArray
    mean: FloatArray
    variance: FloatArray
    smallest: FloatArray
    largest: FloatArray


def _sample(
    table: NoiseTable, shifts: IntArray, eps: float, step: float, first: int, cells: FloatArray
) -> _LossStatistics:
    """Fill ``cells`` with a histogram of the loss of every shift."""
    from accounting.evaluator.grid_plan_kernels import STATISTICS, sample_losses

    mass, log_mass, clip = table.mass, table.log_mass, eps + 5.0
    dense, stride = _SAMPLES // 4, max(1, len(mass) // _SAMPLES)
    out = np.empty((len(shifts), STATISTICS))

    def work(a: int, b: int) -> None:
        s = slice(a, b)
        sample_losses(mass, log_mass, shifts[s], dense, stride, clip, step, first, cells[s], out[s])

    in_chunks(work, len(shifts), smallest=max(1, 20_000 // min(len(mass), _SAMPLES)))
    return _LossStatistics(*out.T)


class CoarseLosses:
    """Losses of all factors on a coarse grid; ``capped`` summarizes them for a given cap."""

    def __init__(
        self, view_pairs: ViewPairs, tables: Tables, eps: float, *, step_factor: float
    ) -> None:
        self.view_pairs = view_pairs
        deviation, smallest, largest = self._extent(tables, eps)
        low = max(smallest, -(2 * eps + _REACH * deviation))
        reach = max(3.0, _REACH * deviation) / step_factor**0.6
        high = max(min(largest, eps + reach), low)
        most = _MOST_COARSE_CELLS // (1 if view_pairs.factor_count < 100 else 8)
        wanted = deviation / _CELLS_PER_DEVIATION * step_factor
        self.step = min(max(wanted, (high - low) / most), COARSEST_STEP)
        self.tilts = _tilts(deviation, step_factor)
        first, last = math.floor(low / self.step) - 1, math.ceil(high / self.step) + 2
        self.loss = multiples(first, last - first + 1, self.step)
        count = sum(len(group.shifts) for group in view_pairs.shift_groups)
        if count * len(self.loss) > _MOST_ENTRIES:
            raise TooLarge(
                f"{count:,} shifted noises on a grid of {len(self.loss):,} points do not fit into "
                f"{_MOST_ENTRIES >> 27} GiB: evaluate fewer pairs at a time"
            )
        self.decay = np.empty((len(self.tilts), len(self.loss)))
        self.decay[:] = np.exp(-self.tilts * self.step)[:, None]
        self.decay[:, 0] = 1.0
        np.multiply.accumulate(self.decay, axis=1, out=self.decay)
        self.histograms: list[tuple[ShiftGroup, FloatArray, _LossStatistics]] = []
        for group in view_pairs.shift_groups:
            cells = np.empty((len(group.shifts), len(self.loss)))
            found = _sample(tables[group.noise], group.shifts, eps, self.step, first, cells)
            self.histograms.append((group, cells, found))

    def _extent(self, tables: Tables, eps: float) -> tuple[float, float, float]:
        """About the standard deviation of the loss of the widest pair, without central offsets,
        and the smallest and the largest finite loss of a factor."""
        spread = np.zeros((self.view_pairs.factor_count, 2))
        smallest, largest = math.inf, -math.inf
        for group in self.view_pairs.shift_groups:
            nothing = np.empty((len(group.shifts), 0))
            found = _sample(tables[group.noise], group.shifts, eps, 1.0, 0, nothing)
            smallest = min(smallest, float(found.smallest.min()))
            largest = max(largest, float(found.largest.max()))
            each = np.abs(np.stack([found.mean, found.variance], axis=1))
            spread[group.factors] = each if group.central is None else each.max(axis=0)
        mean, variance = self.view_pairs.totals(spread).T
        widest = math.sqrt(float(variance.max(initial=0.0)))
        deviation = max(widest, 0.01 * (eps + float(mean.max(initial=0.0))), 1e-7)
        if not smallest <= largest:  # no finite loss anywhere
            smallest = largest = 0.0
        return deviation, smallest, largest

    def capped(self, budget: float) -> CappedMoments:
        """With caps above which every factor has a Q-mass of at most ``budget``."""
        from accounting.evaluator.grid_plan_kernels import capped_moments

        loss, tilts, decay = self.loss, self.tilts, self.decay
        factors = self.view_pairs.factor_count
        log_moment = np.empty((factors, len(tilts)))
        cap, above_cap, central_cap = np.empty(factors), np.empty(factors), np.zeros(0)
        for group, cells, found in self.histograms:
            n = len(group.shifts)
            moment, top, aside = np.empty((n, len(tilts))), np.empty(n), np.empty(n)
            above = np.stack([found.p_above, found.q_above], axis=1)

            def work(a: int, b: int) -> None:
                s = slice(a, b)
                capped_moments(
                    cells[s], above[s], loss, budget, tilts, decay, moment[s], top[s], aside[s]
                )

            in_chunks(work, n, smallest=8)
            aside += found.infinite
            if group.central is not None:
                central = group.central
                moment = central.log_average(moment, tilts)
                aside = central.sums(aside[:, None])[:, 0]
                central_cap, top = top, central.largest(top, -central.offsets)
                top += central.mix[:, 0] * central.step
            log_moment[group.factors], cap[group.factors] = moment, top
            above_cap[group.factors] = aside
        mixed = self.view_pairs.central
        offset = mixed.largest_offset if mixed is not None else 0.0
        return CappedMoments(tilts, log_moment, cap, central_cap, above_cap, offset)


def _tilts(deviation: float, step_factor: float) -> FloatArray:
    """0, then gentle tilts, then steep ones; more of these for a finer grid."""
    count = _TILTS + math.ceil(math.log(1 / step_factor, _RATIO))
    steep = _FIRST_TILT / deviation * _RATIO ** np.arange(count)
    count_gentle = math.log(0.7 * steep[0] / _GENTLEST_TILT, _GENTLE_RATIO)
    gentle = _GENTLEST_TILT * _GENTLE_RATIO ** np.arange(max(0.0, count_gentle))
    return np.concatenate([[0.0], gentle, steep])


@dataclass(frozen=True)
class SaddleEstimate:
    """Saddle-point estimates of the divergences.

    For the pair with the largest one: the ``tilt`` at the saddle point, the number of ``splits``,
    and the divergence of losses below the caps (``kept``) and in all (``total``).  ``log_moment``
    and ``cap`` are those of every pair.
    """

    tilt: float
    splits: int
    kept: float
    total: float
    log_moment: FloatArray
    cap: FloatArray


def saddle_estimate(view_pairs: ViewPairs, moments: CappedMoments, eps: float) -> SaddleEstimate:
    tilts = moments.tilts
    log_moment = view_pairs.totals(moments.log_moment)
    aside = view_pairs.totals(moments.above_cap)
    exponent = log_moment - tilts * eps
    exponent[np.isnan(exponent)] = math.inf
    best = np.clip(np.argmin(exponent, axis=1), 1, len(tilts) - 2)
    rows = np.arange(view_pairs.pair_count)
    tilt = tilts[best]
    chernoff = np.exp(np.minimum(exponent[rows, best], 0.0))
    with np.errstate(invalid="ignore"):
        slope = np.diff(exponent, axis=1) / np.diff(tilts)
        bend = (slope[rows, best] - slope[rows, best - 1]) / (tilts[best + 1] - tilts[best - 1])
    deviation = np.sqrt(np.where(np.isfinite(bend), np.maximum(2 * bend, 0.0), 0.0))
    kept = chernoff / (1 + tilt) / (1 + 2.5 * tilt * deviation)  # 2.5 is about sqrt(2 pi)
    q = int(np.argmax(kept + aside))
    splits = view_pairs.splits[view_pairs.factors_of(np.array([q]))[1]].sum()
    return SaddleEstimate(
        tilt=float(tilt[q]),
        splits=max(1, int(splits) * view_pairs.releases),
        kept=max(float(kept[q]), NEARLY_ZERO),
        total=max(float(kept[q] + aside[q]), NEARLY_ZERO),
        log_moment=log_moment,
        cap=view_pairs.totals(moments.cap),
    )


@dataclass(frozen=True)
class _Window:
    """The losses that a grid must cover under tilt number ``index``.

    ``log_tail`` is the logarithm of the tilted mass that may lie outside; the moments at the tilts
    ``proved_by`` bound it.
    """

    index: int
    low: float
    high: float
    log_tail: float
    proved_by: frozenset[int] = frozenset()

    @property
    def cost(self) -> float:
        """The width, with a penalty where rounding errors would show."""
        excess = max(0.0, _LOG_ROUNDING - self.log_tail)
        return (self.high - self.low) * (1 + excess) * math.exp(min(max(0.0, excess - 6.0), 100.0))


def _window(
    moments: CappedMoments, saddle: SaddleEstimate, index: int, eps: float, log_error: float
) -> _Window:
    """Where Markov's inequality leaves, in every pair, less than e^log_error outside."""
    tilts, tilt = moments.tilts, moments.tilts[index]
    log_chernoff = saddle.log_moment[:, index] - tilt * eps + log_peak(tilt)
    log_tail = log_error - log_chernoff - _LOG_MARGIN
    rows = np.flatnonzero(log_tail < 0)
    rows = rows[np.argsort(log_tail[rows])[:_MOST_CONTENDERS]]
    if not len(rows):
        return _Window(index, eps, eps, 0.0)
    log_moment = saddle.log_moment[rows]
    with np.errstate(invalid="ignore", divide="ignore"):
        edge = (log_moment - log_moment[:, [index]] - log_tail[rows, None]) / (tilts - tilt)
    # beyond the last tilt with a finite moment, and at the tilt itself, there is no edge
    edge[~np.isfinite(edge)] = math.nan
    edge[:, :index] = np.where(np.isnan(edge[:, :index]), -math.inf, edge[:, :index])
    edge[:, index:] = np.where(np.isnan(edge[:, index:]), math.inf, edge[:, index:])
    low_at = np.argmax(edge[:, :index], axis=1)
    high_at = index + np.argmin(edge[:, index:], axis=1)
    each = np.arange(len(rows))
    return _Window(
        index,
        low=float(np.maximum(edge[each, low_at], -1e3).min()),
        high=float(np.minimum(edge[each, high_at], saddle.cap[rows]).max()),
        log_tail=float(log_tail.min()),
        proved_by=frozenset(low_at.tolist()) | frozenset(high_at.tolist()),
    )


def choose_plan(
    moments: CappedMoments, saddle: SaddleEstimate, wanted: Refinement, largest_size: int
) -> GridPlan:
    """The cheapest grid of at most ``largest_size`` points that should reach the gap.

    After the first attempt every tilt is considered, not only those near the saddle point.
    """
    eps, tilts, thorough = wanted.eps, moments.tilts, wanted.attempt > 0
    delta = max(wanted.expected(saddle), NEARLY_ZERO)
    steepest = _LARGEST_EXPONENT / max(float(moments.central_cap.max(initial=0.0)), 1e-9)
    best = int(np.searchsorted(tilts, saddle.tilt))
    begin, end = (1, len(tilts)) if thorough else (best - 2, best + 4)
    near = range(max(1, begin), min(end, len(tilts)))
    usable = [index for index in near if tilts[index] <= steepest] or [1]
    log_error = math.log(_OUTSIDE_SHARE * wanted.gap * delta)
    windows = [_window(moments, saddle, index, eps, log_error) for index in usable]
    window = min(windows, key=lambda candidate: candidate.cost)
    density = min(saddle.kept, delta) * saddle.tilt * (1 + saddle.tilt)
    step = math.sqrt(_STEP_SHARE * wanted.gap * delta / (_STEP_ERROR * saddle.splits * density))
    step = min(step, COARSEST_STEP) * wanted.step_factor
    room = max(4 * saddle.splits, 16) * step  # Theorem 5 needs half of that around eps
    low = min(window.low, eps - room)
    high = max(window.high + 3 * saddle.splits * step, eps + room)
    bits = math.ceil(math.log2((high - low) / step + 4))
    size = min(1 << max(8, bits), largest_size)
    step = min(COARSEST_STEP, max((high - low) / (size - 4), step / 2))
    first = _first_index(moments, saddle, window, step)
    a = window.index
    others = frozenset(range(len(tilts))) if thorough else window.proved_by | {a - 1, a + 1}
    other_tilts = tilts[sorted(others - {a, len(tilts)})]
    other_tilts = other_tilts[other_tilts <= steepest]
    cells = float(moments.cap.max(initial=0.0)) / step - first
    stride = max(1, math.ceil(cells * len(other_tilts) / _LARGEST_DECAY))
    return GridPlan(
        eps=eps,
        step=step,
        size=size,
        origin=math.floor(low / step),
        tilt=float(tilts[a]),
        other_tilts=other_tilts[::stride],
        first=first,
        cap=moments.cap,
        central_cap=moments.central_cap,
    )


def _first_index(
    moments: CappedMoments, saddle: SaddleEstimate, window: _Window, step: float
) -> int:
    """The grid point below which the losses of single factors have negligible tilted mass."""
    log_moment = moments.log_moment[:, window.index]
    smallest = float(log_moment[np.isfinite(log_moment)].min(initial=0.0))
    log_mass = smallest + min(window.log_tail, -_LOG_MARGIN) - math.log(1e3 * saddle.splits)
    lowest = log_mass / float(moments.tilts[window.index])
    return max(math.floor((lowest - moments.largest_offset) / step) - 1, -_MOST_CELLS)
