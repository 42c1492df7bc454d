"""Fast estimates and gradients of log delta for a search.

The numbers have no side: they are estimates and cannot reach a certificate.  They follow the exact
view (exact_view.md, Theorem 2) without proofs: losses on a periodic grid by cubic interpolation,
outcomes in cells, and

    delta = 1/R sum over k of phi(w_k) E[e^{(c + i w_k) L}],   w_k = 2 pi k / R,

where phi is the Fourier transform of e^{-c l} (1 - e^{eps - l})_+.  Outcomes of one atom with a
loss far above the slack eps - eps* |kappa| / max_value of a pair are outliers, which are added
separately, and cases of the central noise with a loss far below are left out: so R is a few times
the slack, and the grid needs a few hundred points whatever eps and max_value are.
"""

from __future__ import annotations

import math
from copy import copy
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from accounting.base.arrays import FloatArray, IntArray, distinct
from accounting.base.deadline import OutOfTime, seconds_left
from accounting.base.errors import TooLarge, required
from accounting.base.threads import in_chunks
from accounting.evaluator.view_pairs import CentralMixture, ViewPairs

if TYPE_CHECKING:  # the module imports numba
    from accounting.estimator.estimate_kernels import ComplexArray

LARGEST_TABLE = 1 << 26
"""Largest number of outcomes in all tables together: 1.5 GiB."""
_SECONDS_PER_OUTCOME = 1e-7
"""Approximate time that one outcome of a table costs."""
_BINS = 12
"""Number of bins of outliers by their loss; the last bin is infinite loss."""
_OUTLIER = 6
"""Entries per bin: mass under both views, and their derivatives by (log mean, log r)."""
_SMALLEST = 1e-290
"""Smallest estimate of delta, so that it has a logarithm."""
_TAIL = 1e-5
"""Outcomes less likely than this share of delta are left out."""
_SPAN = 1.5
"""Pairs share a grid when their slacks differ by no more than this factor."""
_MOST_MIXTURES = 40_000
"""Largest number of pairs in a block: each has a central factor of a kilobyte or more."""

# Rules of thumb for the grid; the tests compare its estimates with the evaluator's bounds.
_BELOW, _ABOVE, _CAP = 3.5, 3.6, 1.8
"""In units of the largest slack: reach of the grid below eps and above eps - slack, and the loss
of one factor above which an outcome is an outlier."""
_FEWEST_CELLS = 4.2
"""Smallest number of cells per slack, in units of z = sqrt(2 log(1 / delta))."""
_STEEPEST = 5.0
"""Largest tilt, in units of 1 / slack; it is 1 for delta above 4e-14."""
_CASES_PER_FACTOR = 120
"""Cases of a central factor beyond which several are taken together."""
_CASES = 0.6
"""Cases of the central noise are kept down to a loss of eps - (1 + 2 * _CASES) * slack."""


@dataclass(frozen=True)
class _PeriodicGrid:
    """Losses from eps - below on, periodic; those of one factor above ``cap`` are outliers."""

    step: float
    size: int
    tilt: float
    cap: float
    below: float

    @property
    def exponents(self) -> ComplexArray:
        """c - i w_k: the exponents at which ``np.fft.rfft`` of a row is a moment."""
        frequency = 2 * np.pi / (self.size * self.step) * np.arange(self.size // 2 + 1)
        return np.asarray(self.tilt - 1j * frequency)

    def weights(self, eps: float, delta: float) -> ComplexArray:
        """Weights of the moments: the transform of e^{-c l} (1 - e^{eps - l})_+ up to the end."""
        power = np.conj(self.exponents)
        weight = np.full(len(power), 2.0)
        weight[[0, -1]] = 1.0
        end = self.size * self.step - self.below
        whole = 1 / power - 1 / (power + 1)
        rest = np.exp(-power * end) / power - np.exp(-(power + 1) * end) / (power + 1)
        transform = np.exp(-power * eps) * (whole - rest) * _filter(power.imag * self.step, delta)
        return np.asarray(np.conj(transform * weight / (self.size * self.step)))


def _filter(phase: FloatArray, delta: float) -> FloatArray:
    """1 for low frequencies and far below delta for the highest, which a narrow loss would turn
    into ripples; flat to fifth order, and narrow itself."""
    u = (1.25 * math.log(1 / delta) + 14) / math.pi**2 * phase**2
    return np.asarray(np.exp(-u) * (1 + u * (1 + u / 2 * (1 + u / 3 * (1 + u / 4)))))


@dataclass(frozen=True)
class _NoiseTables:
    """Tables of all noises, one after the other.

    Column start[i] + z of ``table`` is log f(z) of noise i and its derivatives.  Outcomes are
    taken in cells: for cell_start[i] <= k < cell_start[i + 1], outcome middle[k] of noise i stands
    for width[k] outcomes.
    """

    table: FloatArray
    start: IntArray
    middle: IntArray
    width: FloatArray
    cell_start: IntArray


@dataclass(frozen=True)
class _PairGroup:
    """Pairs that share a grid, with factors numbered anew: first ``plain``, then ``central.mix``,
    sorted by b and then m.  Pair q has the factors ``factor[start[q]:start[q + 1]]``."""

    start: IntArray
    factor: IntArray
    plain: IntArray
    central: CentralMixture

    @staticmethod
    def of(view_pairs: ViewPairs, central: CentralMixture, pairs: IntArray) -> _PairGroup:
        start, ids = view_pairs.factors_of(pairs)
        used, factor = distinct(ids)
        n = int(np.searchsorted(used, len(view_pairs.plain)))
        mix = central.mix[used[n:] - len(view_pairs.plain)]
        order = np.lexsort(mix.T)
        rank = np.arange(len(used))
        rank[n + order] = n + np.arange(len(order))
        sorted_mix = replace(central, mix=np.ascontiguousarray(mix[order]))
        return _PairGroup(start, rank[factor], view_pairs.plain[used[:n]], sorted_mix)

    @property
    def noise(self) -> IntArray:
        """The noise of every entry of ``factor``."""
        central = np.full(len(self.central.mix), self.central.noise)
        noise: IntArray = np.concatenate([self.plain[:, 0], central])[self.factor]
        return noise


class Estimator:
    """Estimates of log delta for pairs of views; of their noises only the number is used.

    Parameters are arrays (log mean, log r) of shape (2, noises); the noise of the central factor
    also has the geometric part of the central noise.

    Args:
        view_pairs: What is compared, such as ``Protocol(...).view_pairs``.
        eps: The eps of the estimates.
        delta: The value of interest: grids are made for pairs near it.
        m: None for negative binomials; otherwise the noises are the bursts of ``Burst.from_mean``,
            with these m.

    Raises:
        TooLarge: If eps leaves nothing to the atoms.

    >>> import numpy as np
    >>> from accounting import Configuration, NegativeBinomial, Protocol
    >>> noise = NegativeBinomial.from_mean(mean=310.0, r=12.0)
    >>> protocol = Protocol(Configuration.of(1, [((-1, 1), noise)], eps_central=0.9))
    >>> estimator = Estimator(protocol.view_pairs, eps=1.0, delta=1e-6)
    >>> estimate = np.exp(estimator.log_delta(np.log([[310.0], [12.0]])).max())
    >>> bool(abs(estimate / protocol.delta(1.0).enclosure.upper - 1) < 0.05)
    True
    """

    def __init__(
        self, view_pairs: ViewPairs, *, eps: float, delta: float, m: IntArray | None = None
    ) -> None:
        self.view_pairs, self.eps, self.delta, self.m = view_pairs, eps, delta, m
        self.central = required(view_pairs.central, "the central noise of the pairs")
        self.z = math.sqrt(2 * math.log(1 / delta))
        places = np.flatnonzero(view_pairs.factor >= len(view_pairs.plain))
        pair = np.searchsorted(view_pairs.start, places, side="right") - 1
        self.most_centrals = int(np.bincount(pair, minlength=1).max())
        # a sum of several central losses needs all cases of each
        self.all_cases = view_pairs.releases > 1 or self.most_centrals > 1
        mix = self.central.mix[view_pairs.factor[places] - len(view_pairs.plain)]
        self.slack = eps - self._central_loss(mix[:, 0], pair)
        if not self.slack.min(initial=math.inf) > 0:
            raise TooLarge(f"eps = {eps:g} leaves nothing to the atoms")

    def with_sizes(self, m: IntArray) -> Estimator:
        """The same for bursts with other m."""
        other = copy(self)
        other.m = m
        return other

    def _central_loss(self, m: IntArray, pair: IntArray) -> FloatArray:
        """About the largest loss of the central noise that matters, per pair; ``m[i]`` is that of a
        central factor of ``pair[i]``."""
        loss = self.central.step * m
        most, mean, square = (
            np.bincount(pair, self.view_pairs.releases * value, self.view_pairs.pair_count)
            for value in (loss, loss * np.tanh(loss / 2), loss**2)
        )
        likely = mean + self.z * np.sqrt(square)
        return np.asarray(np.minimum(most, np.minimum(likely, 0.98 * self.eps)))

    def log_delta(self, parameters: FloatArray, pairs: IntArray | None = None) -> FloatArray:
        """Estimates of log delta of the given pairs, all by default."""
        chosen = np.arange(self.view_pairs.pair_count) if pairs is None else pairs
        return self._evaluate(parameters, chosen, slopes=False)[0]

    def gradient(self, parameters: FloatArray, pairs: IntArray) -> tuple[FloatArray, FloatArray]:
        """Estimates and d log(delta) / d(log mean, log r), of shape (pairs, 2, noises)."""
        return self._evaluate(parameters, pairs, slopes=True)

    def _evaluate(
        self, parameters: FloatArray, pairs: IntArray, *, slopes: bool
    ) -> tuple[FloatArray, FloatArray]:
        tables = self._tables(parameters)
        found = np.empty(len(pairs))
        slope = np.zeros((len(pairs), 2, parameters.shape[1])) if slopes else np.empty((0, 2, 0))
        for where in self._groups(pairs):
            grid = self._grid(float(self.slack[pairs[where]].min()))
            group = _PairGroup.of(self.view_pairs, self.central, pairs[where])
            found[where], of_factor = self._estimates(group, grid, tables, slopes=slopes)
            if slopes:
                row, noise = np.repeat(where, np.diff(group.start)), group.noise
                for t in range(2):
                    by_pair: FloatArray = slope[:, t]
                    np.add.at(by_pair, (row, noise), of_factor[:, t])
        positive = np.maximum(found, _SMALLEST)
        return np.log(positive), slope / positive[:, None, None] if slopes else slope

    def _tables(self, parameters: FloatArray) -> _NoiseTables:
        from accounting.estimator.estimate_kernels import add_geometric, burst_tables, noise_tables

        mean, r = np.exp(parameters)
        variance = mean + mean**2 / r
        shape = mean**2 / variance
        z = math.sqrt(2 * math.log(1 / (_TAIL * self.delta)))
        with np.errstate(over="ignore"):  # an infinite length is refused below
            # the quantile of a gamma law by Wilson and Hilferty, and room for the discrete tail
            length = mean * (1 - 1 / (9 * shape) + z / (3 * np.sqrt(shape))) ** 3 + z * z + 10
        central = z * z / (2 * self.central.step)
        length[self.central.noise] += central
        whole = np.nan_to_num(length, nan=np.inf)
        outcomes = np.clip(whole, 10.0, 2.0 * LARGEST_TABLE).astype(np.int64)
        start = np.concatenate([[0], np.cumsum(outcomes + self.view_pairs.largest_shift + 1)])
        self._check_size(int(start[-1]), central, float(mean.max()))
        table = np.empty((3, start[-1]))
        if self.m is not None:
            burst_tables(mean, r, self.m, start, table)
        else:
            noise_tables(mean, r, start, table)
        of_central = slice(start[self.central.noise], start[self.central.noise + 1])
        add_geometric(math.exp(-2 * self.central.step), table[:, of_central])
        return _NoiseTables(table, start, *_cells(outcomes, np.nan_to_num(np.sqrt(variance))))

    def _check_size(self, outcomes: int, central: float, mean: float) -> None:
        if not outcomes < LARGEST_TABLE and central > LARGEST_TABLE / 2:
            raise TooLarge(
                f"estimates need tables of more than {LARGEST_TABLE:,} outcomes: central noise "
                f"with a loss of {self.central.step:.3g} per unit is too much; take a larger eps "
                "or a larger share of it"
            )
        if not outcomes < LARGEST_TABLE:
            raise TooLarge(
                f"estimates with {mean:,.0f} copies of an atom on average need tables "
                f"of more than {LARGEST_TABLE:,} outcomes: eps = {self.eps:g} leaves the atoms "
                f"only {float(self.slack.min()):.3g}; take a larger eps or a smaller fraction of it"
            )
        if outcomes * _SECONDS_PER_OUTCOME > seconds_left():
            raise OutOfTime(f"there is no time for estimates with {outcomes:,} outcomes")

    def _groups(self, pairs: IntArray) -> list[IntArray]:
        """Positions in ``pairs`` with similar slack, in blocks."""
        slack = self.slack[pairs]
        group = np.floor(np.log(slack / slack.min()) / math.log(_SPAN)).astype(np.int64)
        last = self.view_pairs.factor[self.view_pairs.start[pairs + 1] - 1]
        order = np.lexsort((last, group))
        blocks = []
        for g in range(int(group.max(initial=0)) + 1):
            members = order[group[order] == g]
            pieces = -(-len(members) // _MOST_MIXTURES)
            blocks += [piece for piece in np.array_split(members, max(1, pieces)) if len(piece)]
        return blocks

    def _grid(self, slack: float) -> _PeriodicGrid:
        """A grid for pairs with a slack from this to ``_SPAN`` times this."""
        # the smaller delta, the steeper the tail
        step = slack / (self.z * max(_FEWEST_CELLS, 1.05 * self.z - 1.3))
        below = _BELOW * _SPAN * slack
        if self.all_cases:
            below += self.eps
        cells = (below + (_ABOVE * _SPAN - 1) * slack) / step
        size = next(n for k in range(4, 40) for n in (1 << k, 3 << (k - 1)) if n >= cells)
        tilt = min(max(1.0, math.log(1e-13 / self.delta)), _STEEPEST) / slack
        return _PeriodicGrid(step, size, tilt, cap=_CAP * _SPAN * slack, below=below)

    def _estimates(
        self, group: _PairGroup, grid: _PeriodicGrid, tables: _NoiseTables, *, slopes: bool
    ) -> tuple[FloatArray, FloatArray]:
        """Per pair the estimate, and per entry of ``group.factor`` its two derivatives."""
        from accounting.estimator.estimate_kernels import pair_estimates

        n, shifts = len(group.plain), group.central.shifts
        noise = np.concatenate([group.plain[:, 0], np.full(len(shifts), self.central.noise)])
        shift = np.concatenate([group.plain[:, 1], shifts])
        shifted, outliers = self._shifted_spectra(noise, shift, grid, tables, slopes=slopes)
        mix = group.central.mix
        spectra = np.empty((len(shifted), n + len(mix), shifted.shape[2]), np.complex128)
        spectra[:, :n] = shifted[:, :n]
        aside = self._mix(
            group.central, grid, np.ascontiguousarray(shifted[:, n:]), outliers[n:], spectra[:, n:]
        )
        estimate = np.empty(len(group.start) - 1)
        slope = np.empty((len(group.factor) if slopes else 0, 2))
        weights = grid.weights(self.eps, self.delta)
        question = mix, self.central.step, self.eps, self.view_pairs.releases, weights

        def work(a: int, b: int) -> None:
            s = slice(group.start[a], group.start[b])
            start, factor, out = group.start[a : b + 1] - s.start, group.factor[s], estimate[a:b]
            pair_estimates(spectra, outliers[:n], aside, start, factor, *question, out, slope[s])

        in_chunks(work, len(estimate), smallest=200)
        return estimate, slope

    def _mix(
        self,
        central: CentralMixture,
        grid: _PeriodicGrid,
        shifted: ComplexArray,
        outliers: FloatArray,
        out: ComplexArray,
    ) -> FloatArray:
        """Fill ``out`` with the spectra of the central factors, from those of the shifts of W.

        Returns what their outliers add to the estimates, see ``mixed_outliers``.
        """
        from accounting.estimator.estimate_kernels import mix_spectra, mixed_outliers

        mix, step, exponents = central.mix, central.step, grid.exponents
        low = int(central.shifts[0])
        aside = np.empty((len(mix), self.most_centrals, 3))
        last_case = mix[:, 0].copy()
        stride = 2 * (int(mix[:, 0].max()) // (2 * _CASES_PER_FACTOR)) + 1
        if not self.all_cases:
            wanted = _CASES * (self.eps - mix[:, 0] * step) / step
            last_case = np.clip(wanted, -1, mix[:, 0]).astype(np.int64)

        def work(a: int, b: int) -> None:
            s = slice(a, b)
            mix_spectra(shifted, low, mix[s], last_case[s], step, stride, exponents, out[:, s])
            mixed_outliers(outliers, low, mix[s], step, self.eps, aside[s])

        in_chunks(work, len(mix), smallest=400)
        return aside

    def _shifted_spectra(
        self,
        noise: IntArray,
        shift: IntArray,
        grid: _PeriodicGrid,
        tables: _NoiseTables,
        *,
        slopes: bool,
    ) -> tuple[ComplexArray, FloatArray]:
        """Spectra of shifted noises and, with ``slopes``, of their derivatives; their outliers."""
        from accounting.estimator.estimate_kernels import loss_rows

        rows = np.empty((len(noise), 5 if slopes else 1, grid.size))
        outliers = np.empty((len(noise), _BINS, _OUTLIER))
        bin_width = 2 * self.eps / (_BINS - 2)
        sources = tables.table, tables.start, tables.middle, tables.width, tables.cell_start
        target = grid.step, grid.tilt, grid.cap, bin_width, slopes

        def work(a: int, b: int) -> None:
            s = slice(a, b)
            loss_rows(*sources, noise[s], shift[s], *target, rows[s], outliers[s])

        in_chunks(work, len(noise), smallest=64)
        moments = np.moveaxis(np.fft.rfft(rows, axis=2), 1, 0)
        if slopes:
            moments[1:3] += grid.exponents * moments[3:5]
        return np.ascontiguousarray(moments[:3]), outliers


def _cells(outcomes: IntArray, spread: FloatArray) -> tuple[IntArray, FloatArray, IntArray]:
    """Cells of outcomes that stand for all in them: their middles, widths and, per noise, start."""
    from accounting.estimator.estimate_kernels import outcome_cells

    start = np.empty(len(outcomes) + 1, np.int64)
    outcome_cells(outcomes, spread, np.empty(0, np.int64), np.empty(0), start)
    middle, width = np.empty(start[-1], np.int64), np.empty(start[-1])
    outcome_cells(outcomes, spread, middle, width, start)
    return middle, width, start
