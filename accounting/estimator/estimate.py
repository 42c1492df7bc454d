"""Fast estimates and gradients of log delta for a search.

What is returned here has no side: it is an estimate and cannot reach a certificate.  It is the
exact view (exact_view.md, Theorem 2) computed without proofs: losses on a periodic grid by cubic
interpolation, outcomes in cells, and

    delta = 1/R sum over k of phi(w_k) E[e^{(c + i w_k) L}],   w_k = 2 pi k / R,

where phi is the Fourier transform of e^{-c l} (1 - e^{eps - l})_+.  Outcomes of one atom with a
loss far above the slack eps - eps* |kappa| / max_value of a pair are added by hand, and cases of
the central noise with a loss far below are left out: so R is a few times the slack, and the grid
needs a few hundred points whatever eps and max_value are.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from accounting.base.arrays import FloatArray, IntArray
from accounting.base.deadline import OutOfTime, seconds_left
from accounting.base.errors import TooLarge
from accounting.base.threads import in_chunks
from accounting.evaluator.view_pairs import ViewPairs

_SECONDS_EACH = 1e-7
"""About what one outcome of a table costs."""
LARGEST_TABLE = 1 << 26
_BINS = 12
_SMALLEST = 1e-290
_TAIL = 1e-5
"""Outcomes less likely than this share of delta are left out."""
_SPAN = 1.5
"""Pairs share a grid when their slacks differ by no more than this factor."""
_MOST_MIXTURES = 40_000
"""Pairs are taken in blocks of this size: a central factor each, of a kilobyte or more."""


@dataclass(frozen=True)
class _Grid:
    """Losses from eps - below on, periodic; those of one factor above ``cap`` are outliers."""

    step: float
    size: int
    tilt: float
    cap: float
    below: float

    @property
    def power(self) -> np.ndarray[tuple[int], np.dtype[np.complex128]]:
        """c - i w_k: the exponents at which ``np.fft.rfft`` of a row is a moment."""
        frequency = 2 * np.pi / (self.size * self.step) * np.arange(self.size // 2 + 1)
        return np.asarray(self.tilt - 1j * frequency)

    def test(self, eps: float, delta: float) -> np.ndarray[tuple[int], np.dtype[np.complex128]]:
        """Weights of the moments: the transform of e^{-c l} (1 - e^{eps - l})_+ up to the end."""
        power = np.conj(self.power)
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


class Estimator:
    """Estimates of log delta for the pairs of a view_pairs; its noises only lend their number.

    Parameters are arrays (log mean, log r) of shape (2, noises); the noise of the central factor
    has the geometric part of the central noise besides.  ``delta`` is the value of interest: grids
    are made for pairs near it.
    """

    def __init__(self, view_pairs: ViewPairs, *, eps: float, delta: float) -> None:
        assert view_pairs.central is not None
        self.view_pairs, self.eps, self.delta = view_pairs, eps, delta
        self.central = view_pairs.central
        places = np.flatnonzero(view_pairs.factor >= len(view_pairs.plain))
        self.own = view_pairs.factor[places] - len(view_pairs.plain)
        self.own_pair = np.searchsorted(view_pairs.start, places, side="right") - 1
        self.centrals = int(np.bincount(self.own_pair, minlength=1).max())
        self.moves = self.centrals > 1
        self.geometric = np.zeros(len(view_pairs.noises))
        self.geometric[self.central.noise] = math.exp(-2 * self.central.step)
        self.slack = eps - self._central_loss()
        if not self.slack.min(initial=math.inf) > 0:
            raise TooLarge(f"eps = {eps:g} leaves nothing to the atoms")

    def _central_loss(self) -> FloatArray:
        """About the largest loss of the central noise that matters, of every pair."""
        loss, t = self.central.step * self.central.mix[self.own, 0], self.view_pairs.releases
        z = math.sqrt(2 * math.log(1 / self.delta))
        most, mean, square = (
            np.bincount(self.own_pair, t * value, self.view_pairs.pair_count)
            for value in (loss, loss * np.tanh(loss / 2), loss**2)
        )
        return np.asarray(np.minimum(most, np.minimum(mean + z * np.sqrt(square), 0.98 * self.eps)))

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
        from accounting.estimator.estimate_kernels import noise_tables

        mean, r = np.exp(parameters)
        variance = mean + mean**2 / r
        shape = mean**2 / variance
        z = math.sqrt(2 * math.log(1 / (_TAIL * self.delta)))
        with np.errstate(over="ignore"):  # what is infinite is too large, see below
            length = mean * (1 - 1 / (9 * shape) + z / (3 * np.sqrt(shape))) ** 3 + z * z + 10
        central = z * z / (2 * self.central.step)
        length[self.central.noise] += central
        whole = np.nan_to_num(length, nan=np.inf)
        outcomes = np.clip(whole, 10.0, 2.0 * LARGEST_TABLE).astype(np.int64)
        reach = outcomes + self.view_pairs.largest_shift + 1
        start = np.concatenate([[0], np.cumsum(reach)])
        if not start[-1] < LARGEST_TABLE and central > LARGEST_TABLE / 2:
            raise TooLarge(
                f"estimates need tables of more than {LARGEST_TABLE:,} outcomes: central noise "
                f"with a loss of {self.central.step:.3g} per unit is too much; take a larger eps "
                "or a larger share of it"
            )
        if not start[-1] < LARGEST_TABLE:
            raise TooLarge(
                f"estimates with {float(mean.max()):,.0f} copies of an atom on average need tables "
                f"of more than {LARGEST_TABLE:,} outcomes: eps = {self.eps:g} leaves the atoms "
                f"only {float(self.slack.min()):.3g}; take a larger eps or a smaller fraction of it"
            )
        if start[-1] * _SECONDS_EACH > seconds_left():
            raise OutOfTime(f"there is no time for estimates with {start[-1]:,} outcomes")
        table = np.empty((3, start[-1]))
        noise_tables(mean, r, self.geometric, start, table)
        cells = _cells(outcomes, np.nan_to_num(np.sqrt(variance)))
        found = np.empty(len(pairs))
        slope = np.zeros((len(pairs), 2, len(mean))) if slopes else np.empty((0, 2, 0))
        for where in self._groups(pairs):
            grid = self._grid(float(self.slack[pairs[where]].min()))
            self._group(where, pairs, grid, (table, start, *cells), found, slope)
        positive = np.maximum(found, _SMALLEST)
        return np.log(positive), slope / positive[:, None, None] if slopes else slope

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

    def _grid(self, slack: float) -> _Grid:
        """For pairs with this slack up to _SPAN times as much."""
        z = math.sqrt(2 * math.log(1 / self.delta))
        step = slack / (z * max(4.2, 1.05 * z - 1.3))  # the smaller delta, the steeper the tail
        below = 3.5 * _SPAN * slack
        if self.view_pairs.releases > 1 or self.moves:  # no case of the central noise is left out
            below += self.eps
        cells = (below + (3.6 * _SPAN - 1) * slack) / step
        size = next(n for k in range(4, 40) for n in (1 << k, 3 << (k - 1)) if n >= cells)
        tilt = min(max(1.0, math.log(1e-13 / self.delta)), 5.0) / slack
        return _Grid(step, size, tilt, 1.8 * _SPAN * slack, below)

    def _group(
        self,
        where: IntArray,
        pairs: IntArray,
        grid: _Grid,
        tables: tuple[FloatArray, IntArray, IntArray, FloatArray, IntArray],
        found: FloatArray,
        slope: FloatArray,
    ) -> None:
        from accounting.estimator.estimate_kernels import (
            mix_spectra,
            mixed_outliers,
            pair_estimates,
        )

        chosen, view_pairs = pairs[where], self.view_pairs
        counts = np.diff(view_pairs.start)[chosen]
        start = np.concatenate([[0], np.cumsum(counts)])
        picks = np.arange(start[-1]) + np.repeat(view_pairs.start[chosen] - start[:-1], counts)
        used, factor = np.unique(view_pairs.factor[picks], return_inverse=True)
        n = int(np.searchsorted(used, len(view_pairs.plain)))
        mixes = self.central.mix[used[n:] - len(view_pairs.plain)]
        order = np.lexsort(mixes.T)
        mix = np.ascontiguousarray(mixes[order])
        rank = np.arange(len(used))
        rank[n + order] = n + np.arange(len(order))
        factor = rank[factor]
        low, high = int(mix[:, 1].min()), int(mix.sum(axis=1).max())
        shifts = np.arange(low, high + 1)
        slopes = bool(slope.size)
        plain = view_pairs.plain[used[:n]]
        noise = np.concatenate([plain[:, 0], np.full(len(shifts), self.central.noise)])
        moved = np.concatenate([plain[:, 1], shifts])
        shifted, outliers = self._spectra(noise, moved, grid, tables, slopes)
        spectra = np.empty((len(shifted), len(used), shifted.shape[2]), np.complex128)
        spectra[:, :n] = shifted[:, :n]
        shifted = np.ascontiguousarray(shifted[:, n:])
        aside = np.empty((len(mix), self.centrals, 3))
        step, power = self.central.step, grid.power
        terms = mix[:, 0].copy()
        if view_pairs.releases == 1 and not self.moves:  # the others need more than twice the slack
            wanted = 0.6 * (self.eps - mix[:, 0] * step) / step
            terms = np.clip(wanted, -1, mix[:, 0]).astype(np.int64)

        def mixing(a: int, b: int) -> None:
            out = spectra[:, n + a : n + b]
            mix_spectra(shifted, low, mix[a:b], terms[a:b], step, power, out)
            mixed_outliers(outliers[n:], low, mix[a:b], step, self.eps, aside[a:b])

        in_chunks(mixing, len(mix), smallest=400)
        estimate = np.empty(len(chosen))
        pieces = np.empty((len(picks) if slopes else 0, 2))
        test = grid.test(self.eps, self.delta)

        def work(a: int, b: int) -> None:
            begin, end = start[a], start[b]
            pair_estimates(
                spectra,
                outliers[:n],
                aside,
                start[a : b + 1] - begin,
                factor[begin:end],
                mix,
                step,
                self.eps,
                view_pairs.releases,
                test,
                estimate[a:b],
                pieces[begin:end],
            )

        in_chunks(work, len(chosen), smallest=200)
        found[where] = estimate
        if slopes:
            of = np.concatenate([plain[:, 0], np.full(len(mix), self.central.noise)])[factor]
            row = np.repeat(where, counts)
            for t in range(2):
                by_pair: FloatArray = slope[:, t]
                np.add.at(by_pair, (row, of), pieces[:, t])

    def _spectra(
        self,
        noise: IntArray,
        shift: IntArray,
        grid: _Grid,
        tables: tuple[FloatArray, IntArray, IntArray, FloatArray, IntArray],
        slopes: bool,
    ) -> tuple[np.ndarray[tuple[int, ...], np.dtype[np.complex128]], FloatArray]:
        from accounting.estimator.estimate_kernels import loss_rows

        table, start, node, width, node_start = tables
        rows = np.empty((len(noise), 5 if slopes else 1, grid.size))
        outliers = np.empty((len(noise), _BINS, 6))
        bin_width = 2 * self.eps / (_BINS - 2)

        def work(a: int, b: int) -> None:
            loss_rows(
                table,
                start,
                node,
                width,
                node_start,
                noise[a:b],
                shift[a:b],
                grid.step,
                grid.tilt,
                grid.cap,
                bin_width,
                slopes,
                rows[a:b],
                outliers[a:b],
            )

        in_chunks(work, len(noise), smallest=64)
        moments = np.moveaxis(np.fft.rfft(rows, axis=2), 1, 0)
        if slopes:
            moments[1:3] += grid.power * moments[3:5]
        return np.ascontiguousarray(moments[:3]), outliers


def _cells(outcomes: IntArray, spread: FloatArray) -> tuple[IntArray, FloatArray, IntArray]:
    """Cells of outcomes that stand for all in them: their middles, widths and, per noise, start."""
    from accounting.estimator.estimate_kernels import outcome_cells

    start = np.empty(len(outcomes) + 1, np.int64)
    outcome_cells(outcomes, spread, np.empty(0, np.int64), np.empty(0), start)
    node, width = np.empty(start[-1], np.int64), np.empty(start[-1])
    outcome_cells(outcomes, spread, node, width, start)
    node = np.minimum(node, np.repeat(outcomes - 1, np.diff(start)))
    return node, width, start
