"""Fast estimates and gradients for a search: the discretisation of ``evaluate`` without its proofs.

What is returned here has no side: it is an estimate and cannot reach a certificate.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from accounting import testfunctions
from accounting.arrays import FloatArray, IntArray, multiples
from accounting.checks import gap_width, not_negative
from accounting.evaluate import look_closely
from accounting.noise import NoiseSum, NoiseTable
from accounting.pair_terms import PairTerms
from accounting.parallel import in_chunks
from accounting.spectra import Spectra, correlate, transform, twiddles
from accounting.survey import Plan, choose, mixture
from accounting.tilting import LARGEST_GRID, mixed_row, tabulate, tilt_factors
from accounting.workload import Workload


@dataclass(frozen=True)
class _Pass:
    tables: dict[int, NoiseTable]
    rows: FloatArray
    central_rows: FloatArray
    terms: PairTerms
    spectra: Spectra
    pairs: IntArray
    kept: FloatArray
    lost: FloatArray


class Estimator:
    """Divergences of the pairs of a workload near the noise it was made for.

    Grid, tilt and caps are chosen once; other noises (same atoms, other r and p) can then be
    evaluated on them, so that estimates are smooth in the parameters.
    """

    def __init__(self, workload: Workload, *, eps: float, gap: float = 0.01) -> None:
        self.workload = workload
        self.eps = not_negative("eps", eps)
        gap = gap_width(gap)
        self.tail = 1e-18
        _, seen, look, self.tail = look_closely(
            workload, eps, self.tail, 0.1 * gap, 1.0, 0.0, math.inf, 0.0
        )
        self.plan: Plan = choose(
            seen,
            look,
            eps=self.eps,
            gap=gap,
            finer=2.0,
            delta=look.total,
            largest_size=LARGEST_GRID >> 6,
        )

    def delta(
        self, noises: tuple[NoiseSum, ...] | None = None, pairs: IntArray | None = None
    ) -> FloatArray:
        """Estimates of the divergence of the given pairs (all by default)."""
        done = self._pass(noises, pairs)
        return done.kept + done.lost

    def gradient(
        self, pairs: IntArray, noises: tuple[NoiseSum, ...] | None = None
    ) -> tuple[FloatArray, FloatArray]:
        """Estimates and d log(delta) / d(log mean, log r), of shape (pairs, noises, 2).

        The parameters are those of the first negative binomial of each noise.
        """
        from accounting.gradient_kernels import pair_gradients
        from accounting.kernels import rfft_rows

        done = self._pass(noises, pairs)
        workload = self.workload if noises is None else replace(self.workload, noises=noises)
        slope_rows, slope_lost = self._slopes(workload, done)
        n = self.plan.size
        width = n // 2 + 1
        slope_re, slope_im = np.empty((len(slope_rows), width)), np.empty((len(slope_rows), width))
        ones = np.ones(len(slope_rows))

        def to_spectra(a: int, b: int) -> None:
            rfft_rows(slope_rows[a:b], ones[a:b], *twiddles(n), slope_re[a:b], slope_im[a:b])

        in_chunks(to_spectra, len(slope_rows), smallest=8)
        test_re, test_im = self._test_function()
        factor = np.maximum(done.spectra.row_of, 0)[workload.factor]
        counts = np.diff(workload.start)[pairs]
        out = np.empty((len(pairs), int(counts.max(initial=1)), 2))

        def work(a: int, b: int) -> None:
            pair_gradients(
                done.spectra.re,
                done.spectra.im,
                slope_re,
                slope_im,
                workload.start,
                factor,
                workload.releases,
                test_re,
                test_im,
                pairs[a:b],
                out[a:b],
            )

        in_chunks(work, len(pairs), smallest=4)
        delta = done.kept + done.lost
        gradient = np.zeros((len(pairs), len(workload.noises), 2))
        noise_of = np.concatenate(
            [workload.plain[:, 0], np.full(workload.factors - len(workload.plain), self._central())]
        )
        scale = done.terms.scale_up[pairs]
        for index, q in enumerate(pairs):
            factors = workload.factor[workload.start[q] : workload.start[q + 1]]
            kept = scale[index] * out[index, : len(factors)]
            aside = slope_lost[done.spectra.row_of[factors]]
            lost = workload.releases * (1 - done.lost[index]) * aside
            np.add.at(gradient[index], noise_of[factors], (kept + lost) / delta[index])
        return delta, gradient

    def _central(self) -> int:
        return self.workload.central.noise if self.workload.central is not None else 0

    def _pass(self, noises: tuple[NoiseSum, ...] | None, pairs: IntArray | None) -> _Pass:
        workload = self.workload if noises is None else replace(self.workload, noises=noises)
        chosen = np.arange(workload.pairs) if pairs is None else np.asarray(pairs, np.int64)
        tables = tabulate(workload, self.tail)
        rows, central_rows, factors = tilt_factors(workload, tables, self.plan)
        factors = replace(factors, eta=np.zeros_like(factors.eta))
        terms = PairTerms.of(workload, factors, self.plan)
        spectra = transform(workload, rows, central_rows, self.plan, chosen)
        sums, _ = correlate(workload, spectra, terms, self.plan, chosen)
        return _Pass(
            tables,
            rows,
            central_rows,
            terms,
            spectra,
            chosen,
            terms.scale_up[chosen] * sums[:, 0],
            terms.not_kept[chosen],
        )

    def _test_function(self) -> tuple[FloatArray, FloatArray]:
        from accounting.kernels import rfft_rows

        n = self.plan.size
        loss = multiples(self.plan.origin, n, self.plan.step)
        function = np.roll(
            testfunctions.upper(loss, self.eps, self.plan.tilt), self.plan.origin % n
        )
        re, im = np.empty((1, n // 2 + 1)), np.empty((1, n // 2 + 1))
        rfft_rows(function[None, :], np.ones(1), *twiddles(n), re, im)
        weight = np.full(n // 2 + 1, 2.0 / n)
        weight[[0, -1]] = 1.0 / n
        return re * weight, im * weight

    def _slopes(self, workload: Workload, done: _Pass) -> tuple[FloatArray, FloatArray]:
        """Derivative rows of the factors in use, normalised like their spectra, and the relative
        derivative d nu / (1 - nu) of the mass nu they set aside."""
        from accounting.gradient_kernels import nb_sum_scores, tilted_gradient_rows

        plan = self.plan
        used = np.flatnonzero(done.spectra.row_of >= 0)
        n_plain = len(workload.plain)
        slope = np.empty((2 * len(used), plan.size))
        lost = np.empty((len(used), 2))
        decay = np.exp(-plan.tilt * multiples(0, self._cells(), plan.step))[None, :]
        for noise, where, shifts in workload.shift_groups:
            table = done.tables[noise]
            active = None if where is None else np.flatnonzero(done.spectra.row_of[where] >= 0)
            if (active is not None and not len(active)) or (where is None and used[-1] < n_plain):
                continue
            parts = workload.noises[noise].parts
            scores = np.empty((2, len(table.mass)))
            nb_sum_scores(
                np.array([part.r for part in parts]), np.array([part.p for part in parts]), scores
            )
            caps = plan.central_top if where is None else plan.top[where]
            last = np.clip(np.ceil(caps / plan.step).astype(np.int64), plan.first + 2, LARGEST_GRID)
            reference = np.full(len(last), last.max()) if where is None else last
            if active is not None:
                shifts, last, reference = shifts[active], last[active], reference[active]
            target, aside = np.empty((2 * len(shifts), plan.size)), np.empty(2 * len(shifts))

            def work(a: int, b: int) -> None:
                tilted_gradient_rows(
                    table.mass,
                    table.log_mass,
                    scores,
                    shifts[a:b],
                    last[a:b],
                    reference[a:b],
                    plan.step,
                    plan.first,
                    decay,
                    target[2 * a : 2 * b],
                    aside[2 * a : 2 * b],
                )

            in_chunks(work, len(shifts), smallest=max(1, 20_000 // len(table.mass)))
            if where is not None and active is not None:
                for i, f in enumerate(where[active]):
                    at = done.spectra.row_of[f]
                    slope[2 * at : 2 * at + 2] = target[2 * i : 2 * i + 2] / done.rows[f].sum()
                    lost[at] = aside[2 * i : 2 * i + 2]
            else:
                central = workload.central
                assert central is not None
                mixed = mixture(central, aside.reshape(-1, 2), np.zeros(2))
                for f in used[used >= n_plain]:
                    at = done.spectra.row_of[f]
                    total = mixed_row(workload, done.central_rows, int(f), plan).sum()
                    for t in range(2):
                        row = mixed_row(workload, target[t::2], int(f), plan)
                        slope[2 * at + t] = row / total
                    lost[at] = mixed[f - n_plain]
        return slope, lost

    def _cells(self) -> int:
        tops = np.append(self.plan.top[: len(self.workload.plain)], self.plan.central_top)
        return (
            max(math.ceil(float(tops.max(initial=0.0)) / self.plan.step), 2) - self.plan.first + 3
        )
