"""The choice of the grid of a rigorous evaluation, from losses on a coarse grid.

Nothing here is a bound: a poor choice costs time or width, never soundness.  Constants without a
derivation are rules of thumb.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from accounting.base.arrays import FloatArray, IntArray, multiples
from accounting.base.errors import InvalidParameter, TooLarge
from accounting.base.threads import in_chunks
from accounting.evaluator.bounding_functions import log_peak
from accounting.evaluator.noise_tables import NoiseTables
from accounting.evaluator.view_pairs import ViewPairs

COARSEST_STEP = 1 / 16
"""Largest step of a grid, in units of the loss: ``one_minus_exp`` is accurate up to there."""
NEARLY_ZERO = 1e-300
"""Stands for a divergence of zero where a logarithm or a quotient of it is taken."""
_INFINITE, _P_ABOVE, _Q_ABOVE, _MEAN, _VARIANCE, _SMALLEST, _LARGEST = range(7)
"""Columns of ``out`` of the kernel ``sample_losses``."""
_REACH = 30
"""Distance of the ends of the coarse grid from eps, in standard deviations of the loss."""
_CELLS_PER_DEVIATION = 12
"""Number of cells of the coarse grid within one standard deviation of the loss."""
_MOST_COARSE_CELLS = 60_000
"""Largest number of cells of a coarse grid, for fewer than 100 factors."""
_MOST_ENTRIES = 1 << 28
"""Largest number of entries of all coarse grids together: 2 GiB."""
_FINE = 64
"""Number of neighbouring cells whose weights e^{-tilt * loss} are tabulated together."""
_SAMPLES = 1024
"""Number of outcomes of a long table that are looked at, roughly."""
_FEWEST_ROWS = 64
"""Number of rows that are worth a thread."""
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
_OUTSIDE_SHARE, _STEP_SHARE = 0.02, 0.68
"""Shares of the gap that may be lost to the mass outside the window and to the step."""
_STEP_ERROR = 0.8
"""Gap of the lower bound (discretisation.md, Theorem 2) in units of splits * step^2 * density;
about 0.6, rounded up."""
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

    Raises:
        InvalidParameter: If the step is not positive or above ``COARSEST_STEP``, the size is no
            power of two, or the tilt is negative: discretisation.md assumes no more of a plan.
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

    def __post_init__(self) -> None:
        if not 0 < self.step <= COARSEST_STEP:
            raise InvalidParameter(
                f"step = {self.step!r} must be positive and at most {COARSEST_STEP}, up to which "
                "the shares of grid points are accurate"
            )
        if self.size < 4 or self.size & (self.size - 1):
            raise InvalidParameter(f"size = {self.size:,} must be a power of two, at least 4")
        if not 0 <= self.tilt < math.inf:
            raise InvalidParameter(f"tilt = {self.tilt!r} must be finite and not negative")


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
        return max(self.attained, min(saddle.total, self.seen), self.absolute)


class CoarseLosses:
    """Losses on a coarse grid; ``capped`` summarizes them for a given cap.

    There is a row for every plain factor, and after them one for every shift of W.
    """

    def __init__(
        self, view_pairs: ViewPairs, tables: NoiseTables, eps: float, *, step_factor: float
    ) -> None:
        from accounting.evaluator.compiled.planning_kernels import fill_powers

        self.view_pairs = view_pairs
        self.noise, self.shift = view_pairs.shifted_noises
        self.row_count = len(self.shift)
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
        if self.row_count * len(self.loss) > _MOST_ENTRIES:
            raise TooLarge(
                f"{self.row_count:,} shifted noises on a grid of {len(self.loss):,} points do not "
                f"fit into {_MOST_ENTRIES >> 27} GiB: evaluate fewer pairs at a time"
            )
        ratio = np.exp(-self.tilts * self.step)
        self.fine = np.empty((_FINE, len(self.tilts)))
        self.wide = np.empty((len(self.loss) // _FINE + 1, len(self.tilts)))
        fill_powers(ratio, self.fine)
        fill_powers(self.fine[-1] * ratio, self.wide)
        self.cells = np.empty((self.row_count, len(self.loss)))
        self.found = self._sample(tables, eps, self.step, first, self.cells)

    def _sample(
        self, tables: NoiseTables, eps: float, step: float, first: int, cells: FloatArray
    ) -> FloatArray:
        """Fill ``cells`` with a histogram of the loss of every row; the result has the columns of
        ``sample_losses``."""
        from accounting.evaluator.compiled.planning_kernels import sample_losses

        table, out = tables.index[self.noise], np.empty((self.row_count, _LARGEST + 1))

        def work(a: int, b: int) -> None:
            rows = tables.start, table[a:b], self.shift[a:b], _SAMPLES, eps + 5.0, step, first
            sample_losses(tables.mass, tables.log_mass, *rows, cells[a:b], out[a:b])

        in_chunks(work, self.row_count, smallest=_FEWEST_ROWS)
        return out

    def _extent(self, tables: NoiseTables, eps: float) -> tuple[float, float, float]:
        """Estimate the standard deviation of the loss of the widest pair, without central offsets,
        and the smallest and the largest finite loss of a factor."""
        view_pairs, n_plain = self.view_pairs, len(self.view_pairs.plain)
        found = self._sample(tables, eps, 1.0, 0, np.empty((self.row_count, 0)))
        smallest = float(found[:, _SMALLEST].min(initial=math.inf))
        largest = float(found[:, _LARGEST].max(initial=-math.inf))
        spread = np.zeros((view_pairs.factor_count, 2))
        spread[:n_plain] = found[:n_plain, _MEAN : _VARIANCE + 1]
        spread[n_plain:] = np.abs(found[n_plain:, _MEAN : _VARIANCE + 1]).max(axis=0, initial=0.0)
        mean, variance = view_pairs.totals(np.abs(spread)).T
        widest = math.sqrt(float(variance.max(initial=0.0)))
        deviation = max(widest, 0.01 * (eps + float(mean.max(initial=0.0))), 1e-7)
        if not smallest <= largest:  # no finite loss anywhere
            smallest = largest = 0.0
        return deviation, smallest, largest

    def capped(self, budget: float) -> CappedMoments:
        """With caps above which every factor has a Q-mass of at most ``budget``."""
        from accounting.evaluator.compiled.planning_kernels import capped_moments

        loss, tilts, fine, wide = self.loss, self.tilts, self.fine, self.wide
        above = self.found[:, _P_ABOVE : _Q_ABOVE + 1]
        log_moment = np.empty((self.row_count, len(tilts)))
        cap, aside = np.empty(self.row_count), np.empty(self.row_count)

        def work(a: int, b: int) -> None:
            s = slice(a, b)
            of_rows = log_moment[s], cap[s], aside[s]
            capped_moments(self.cells[s], above[s], loss, budget, tilts, fine, wide, *of_rows)

        in_chunks(work, self.row_count, smallest=_FEWEST_ROWS)
        aside += self.found[:, _INFINITE]
        central, n_plain = self.view_pairs.central, len(self.view_pairs.plain)
        if central is None:
            return CappedMoments(tilts, log_moment, cap, np.zeros(0), aside, 0.0)
        of_mixed = (
            central.log_average(log_moment[n_plain:], tilts),
            central.largest(cap[n_plain:], -central.offsets) + central.mix[:, 0] * central.step,
            central.sums(aside[n_plain:, None])[:, 0],
        )
        log_moment, mixed_cap, aside = (
            np.concatenate([of_rows[:n_plain], of_factors])
            for of_rows, of_factors in zip((log_moment, cap, aside), of_mixed, strict=True)
        )
        offset = central.largest_offset
        return CappedMoments(tilts, log_moment, mixed_cap, cap[n_plain:], aside, offset)


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
    from accounting.evaluator.compiled.planning_kernels import saddle_points

    start, factor, releases = view_pairs.start, view_pairs.factor, view_pairs.releases
    log_moment = np.empty((view_pairs.pair_count, len(moments.tilts)))
    cap, out = np.empty(view_pairs.pair_count), np.empty((view_pairs.pair_count, 3))
    of_factors = moments.log_moment, moments.cap, moments.above_cap
    saddle_points(start, factor, releases, *of_factors, moments.tilts, eps, log_moment, cap, out)
    worst = int(np.argmax(out[:, 1] + out[:, 2]))
    tilt, kept, aside = out[worst].tolist()
    splits = int(view_pairs.splits[factor[start[worst] : start[worst + 1]]].sum())
    return SaddleEstimate(
        tilt=tilt,
        splits=max(1, splits * releases),
        kept=max(kept, NEARLY_ZERO),
        total=max(kept + aside, NEARLY_ZERO),
        log_moment=log_moment,
        cap=cap,
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


def _windows(
    moments: CappedMoments, saddle: SaddleEstimate, indices: IntArray, eps: float, log_error: float
) -> list[_Window]:
    """Per tilt, where Markov's inequality leaves less than e^log_error outside in every pair."""
    from accounting.evaluator.compiled.planning_kernels import windows

    tilts, count = moments.tilts, len(indices)
    log_peaks = np.array([log_peak(tilt) for tilt in tilts[indices].tolist()])
    log_allowed = log_error + tilts[indices] * eps - log_peaks - _LOG_MARGIN
    largest = np.zeros(count)
    if len(saddle.cap) > _MOST_CONTENDERS:
        log_tails = log_allowed - saddle.log_moment[:, indices]
        largest = np.partition(log_tails, _MOST_CONTENDERS, axis=0)[_MOST_CONTENDERS]
    out, proves = np.empty((count, 3)), np.zeros((count, len(tilts)), np.bool_)
    of_pairs = saddle.log_moment, saddle.cap
    windows(*of_pairs, tilts, indices, log_allowed, largest, out, proves)
    return [
        _Window(index, low, high, log_tail, frozenset(np.flatnonzero(proved).tolist()))
        if log_tail < 0
        else _Window(index, eps, eps, 0.0)
        for index, (low, high, log_tail), proved in zip(
            indices.tolist(), out.tolist(), proves, strict=True
        )
    ]


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
    near = np.arange(max(1, begin), min(end, len(tilts)))
    usable = near[tilts[near] <= steepest]
    usable = usable if len(usable) else np.ones(1, np.int64)
    log_error = math.log(_OUTSIDE_SHARE * wanted.gap * delta)
    candidates = _windows(moments, saddle, usable, eps, log_error)
    window = min(candidates, key=lambda candidate: candidate.cost)
    density = min(saddle.kept, delta) * saddle.tilt * (1 + saddle.tilt)
    step = math.sqrt(_STEP_SHARE * wanted.gap * delta / (_STEP_ERROR * saddle.splits * density))
    step = min(step, COARSEST_STEP) * wanted.step_factor
    # the lower bound (discretisation.md, Theorem 2) needs half of that around eps
    room = max(4 * saddle.splits, 16) * step
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
