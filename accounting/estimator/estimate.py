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
from collections.abc import Iterator
from copy import copy
from typing import TYPE_CHECKING

import numpy as np

from accounting.base.arrays import FloatArray, IntArray
from accounting.base.deadline import OutOfTime, seconds_left
from accounting.base.errors import TooLarge, required
from accounting.base.threads import in_chunks
from accounting.estimator.pair_group import CellTables, PairGroup
from accounting.estimator.periodic_grid import PeriodicGrid
from accounting.estimator.saddle import saddles
from accounting.evaluator.view_pairs import ViewPairs

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
_STEEP_CELLS, _STEEP_BELOW, _STEEP_ABOVE, _STEEP_ABOVE_OF_SUMS = 9.0, 4.0, 4.5, 9.0
"""The same of a steep grid: cells per slack in units of z, reach below and above eps, and above
where several central losses or releases add up."""
_FEWEST_CELLS = 4.2
"""Smallest number of cells per slack, in units of z = sqrt(2 log(1 / delta))."""
_STEEP_FROM = 1e-11
"""The delta below which the grid is tilted to the saddle point; above, the tilt is 1 / slack."""
_MOST_SPENT, _MOST_SPENT_FINELY = 0.98, 0.998
"""Largest share of eps that counts as spent by the central noise, and that of a steep grid for one
release."""
_STEEP_WIDTH = 4.0
"""Width of the cells of outcomes there, in units of 1 / z of the usual width."""
_CASES = 0.6
"""Cases of the central noise are kept down to a loss of eps - (1 + 2 * _CASES) * slack."""


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
        """Return the same estimator for bursts with other m."""
        other = copy(self)
        other.m = m
        return other

    def _central_loss(self, m: IntArray, pair: IntArray) -> FloatArray:
        """Estimate the largest loss of the central noise that matters, per pair; ``m[i]`` belongs
        to a central factor of ``pair[i]``."""
        loss = self.central.step * m
        most, mean, square = (
            np.bincount(pair, self.view_pairs.releases * value, self.view_pairs.pair_count)
            for value in (loss, loss * np.tanh(loss / 2), loss**2)
        )
        likely = mean + self.z * np.sqrt(square)
        # a slack that is as small as that is resolved where only a few slacks around eps matter
        fine = self.delta < _STEEP_FROM and not self.all_cases
        largest = (_MOST_SPENT_FINELY if fine else _MOST_SPENT) * self.eps
        return np.asarray(np.minimum(most, np.minimum(likely, largest)))

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
            for part, group, grid in self._gridded(pairs[where], tables):
                chosen = where[part]
                found[chosen], of_factor = self._estimates(group, grid, tables, slopes=slopes)
                if slopes:
                    row, noise = np.repeat(chosen, np.diff(group.start)), group.noise
                    for t in range(2):
                        by_pair: FloatArray = slope[:, t]
                        np.add.at(by_pair, (row, noise), of_factor[:, t])
        positive = np.maximum(found, _SMALLEST)
        return np.log(positive), slope / positive[:, None, None] if slopes else slope

    def _tables(self, parameters: FloatArray) -> CellTables:
        from accounting.estimator.estimate_kernels import add_geometric, burst_tables, noise_tables

        z = math.sqrt(2 * math.log(1 / (_TAIL * self.delta)))
        with np.errstate(over="ignore", invalid="ignore"):  # an infinite length is refused below
            mean, r = np.exp(parameters)
            variance = mean + mean**2 / r
            shape = mean**2 / variance
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
        width = np.nan_to_num(np.sqrt(variance)) / 32
        if self.delta < _STEEP_FROM:  # the smaller delta, the steeper the tail
            width *= _STEEP_WIDTH / self.z
        return CellTables.of(table, start, outcomes, width)

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
                f"only {float(self.slack.min()):.3g}, for delta = {self.delta:g}; take a larger "
                "eps, a smaller fraction of it for the central noise, or a larger delta"
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

    def _gridded(
        self, pairs: IntArray, tables: CellTables
    ) -> Iterator[tuple[IntArray, PairGroup, PeriodicGrid]]:
        """Grids for pairs whose slacks differ by a factor of at most ``_SPAN``; with each grid the
        positions of its pairs in ``pairs``, and their group."""
        group = PairGroup.of(self.view_pairs, pairs, self.slack[pairs])
        if self.delta >= _STEEP_FROM:
            slack = float(group.slack.min())
            # the smaller delta, the steeper the tail
            cells = max(_FEWEST_CELLS, 1.05 * self.z - 1.3)
            grid = self._grid(slack, cells, _BELOW * _SPAN, _ABOVE * _SPAN - 1)
            yield np.arange(len(pairs)), group, grid
            return
        for saddle in saddles(group, tables, self.eps, self.delta):
            part = group
            if len(saddle.pairs) < len(pairs):
                some = pairs[saddle.pairs]
                part = PairGroup.of(self.view_pairs, some, self.slack[some])
            above = _STEEP_ABOVE_OF_SUMS if self.all_cases else _STEEP_ABOVE
            grid = self._grid(float(part.slack.min()), _STEEP_CELLS, _STEEP_BELOW, above)
            yield saddle.pairs, part, grid.steep(saddle.tilt, saddle.cap)

    def _grid(self, slack: float, cells: float, below: float, above: float) -> PeriodicGrid:
        """A grid for pairs with a slack from this to ``_SPAN`` times this, from ``below`` slacks
        below eps to ``above`` above, with ``cells`` in slack / z."""
        step = slack / (self.z * cells)
        start = below * slack
        if self.all_cases:
            start += self.eps
        least = (start + above * slack) / step
        size = next(n for k in range(4, 40) for n in (1 << k, 3 << (k - 1)) if n >= least)
        return PeriodicGrid(step, size, 1 / slack, _CAP * _SPAN * slack, start, self.delta)

    def _estimates(
        self, group: PairGroup, grid: PeriodicGrid, tables: CellTables, *, slopes: bool
    ) -> tuple[FloatArray, FloatArray]:
        """Per pair the estimate, and per entry of ``group.factor`` its two derivatives."""
        from accounting.estimator.estimate_kernels import pair_estimates

        n, mix = len(group.plain), group.central.mix
        shifted, outliers = self._shifted_spectra(group, grid, tables, slopes=slopes)
        spectra = np.empty((len(shifted), n + len(mix), shifted.shape[2]), np.complex128)
        spectra[:, :n] = shifted[:, :n]
        aside = self._mix(group, grid, shifted[:, n:], outliers[n:], spectra[:, n:])
        log_unit = np.zeros(n + len(mix))
        if grid.is_steep:
            log_unit[n:] = grid.tilt * mix[:, 0] * self.central.step
            log_unit += _scaled_to_one(spectra)
        weights, log_weight_unit = grid.weights(self.eps), -grid.taken_out * self.eps
        estimate = np.empty(len(group.start) - 1)
        slope = np.empty((len(group.factor) if slopes else 0, 2))
        question = mix, self.central.step, self.eps, group.releases
        terms = *question, weights, log_unit, log_weight_unit

        def work(a: int, b: int) -> None:
            s = slice(group.start[a], group.start[b])
            start, factor, out = group.start[a : b + 1] - s.start, group.factor[s], estimate[a:b]
            pair_estimates(spectra, outliers[:n], aside, start, factor, *terms, out, slope[s])

        in_chunks(work, len(estimate), smallest=200)
        return estimate, slope

    def _mix(
        self,
        group: PairGroup,
        grid: PeriodicGrid,
        shifted: ComplexArray,
        outliers: FloatArray,
        out: ComplexArray,
    ) -> FloatArray:
        """Fill ``out`` with the spectra of the central factors, from those of the shifts of W.

        Returns what their outliers add to the estimates, see ``mixed_outliers``.
        """
        from accounting.estimator.estimate_kernels import mix_spectra, mixed_outliers

        mix, step, low = group.central.mix, self.central.step, int(group.central.shifts[0])
        exponents = grid.exponents, grid.exponents - grid.taken_out
        aside = np.empty((len(mix), self.most_centrals, 3))
        last_case = mix[:, 0].copy()
        if not self.all_cases:
            wanted = _CASES * (self.eps - mix[:, 0] * step) / step
            last_case = np.clip(wanted, -1, mix[:, 0]).astype(np.int64)
        spectra = np.ascontiguousarray(shifted)

        def work(a: int, b: int) -> None:
            s = slice(a, b)
            cases = mix[s], last_case[s], step, group.stride
            mix_spectra(spectra, low, *cases, *exponents, out[:, s])
            mixed_outliers(outliers, low, mix[s], step, self.eps, aside[s])

        in_chunks(work, len(mix), smallest=400)
        return aside

    def _shifted_spectra(
        self, group: PairGroup, grid: PeriodicGrid, tables: CellTables, *, slopes: bool
    ) -> tuple[ComplexArray, FloatArray]:
        """Spectra of shifted noises and, with ``slopes``, of their derivatives; their outliers."""
        from accounting.estimator.estimate_kernels import loss_rows

        noise, shift = group.shifted_noises
        rows = np.empty((len(noise), 5 if slopes else 1, grid.size))
        outliers = np.empty((len(noise), _BINS, _OUTLIER))
        bin_width = 2 * self.eps / (_BINS - 2)
        target = grid.step, grid.tilt, grid.cap, bin_width, slopes

        def work(a: int, b: int) -> None:
            s = slice(a, b)
            loss_rows(*tables.arrays, noise[s], shift[s], *target, rows[s], outliers[s])

        in_chunks(work, len(noise), smallest=64)
        moments = np.moveaxis(np.fft.rfft(rows, axis=2), 1, 0)
        if slopes:
            moments[1:3] += grid.exponents * moments[3:5]
        return np.ascontiguousarray(moments[:3]), outliers


def _scaled_to_one(spectra: ComplexArray) -> FloatArray:
    """Divide the spectra of every factor by its moment at frequency 0; the logarithms of these."""
    moment = spectra[0, :, 0].real
    unit = np.where(moment > 0, moment, 1.0)
    spectra /= unit[:, None]
    return np.log(unit)
