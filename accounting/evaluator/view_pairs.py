"""Pairs of views to compare, each pair a product of independent factors.

A *plain* factor is one noise shifted by an integer.  A *central* factor (exact_view.md, Theorem 2)
is the mixture over the cases i = 0..m of the noise W shifted by b + i, with the constant loss
offset (m - 2i) * step and weight w_i.  The evaluator bounds, and the estimator estimates, the
hockey-stick divergence of every pair.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import numpy as np

from accounting.base.arrays import UNIT_ROUNDOFF, FloatArray, IntArray
from accounting.base.deadline import check_time
from accounting.base.threads import in_chunks
from accounting.model.laws.noise import NoiseSum


@dataclass(frozen=True)
class CentralMixture:
    """The central factors, rows (m, b) of ``mix``; all share the noise W and the offset step.

    ``within`` are the smallest and the largest shift of W that are looked at, by default those that
    some mixture uses.
    """

    noise: int
    step: float
    mix: IntArray
    within: tuple[int, int] | None = None

    @cached_property
    def weights(self) -> FloatArray:
        """Row i is [w_i for 0 <= i < m, w_i for i = m], for i up to the largest m (exact_view.md,
        Theorem 2)."""
        q = math.exp(-self.step)
        last = np.exp(-self.step * np.arange(int(self.mix[:, 0].max(initial=0)) + 1)) / (1 + q)
        inner = -math.expm1(-self.step) * last
        inner[0] = last[0]
        last[0] = 1.0  # the only case of m = 0
        return np.stack([inner, last], axis=1)

    @cached_property
    def offsets(self) -> FloatArray:
        """2 i * step for i up to the largest m: the offset of case i is m * step minus that."""
        return np.asarray(2 * np.arange(len(self.weights)) * self.step, np.float64)

    @cached_property
    def order(self) -> IntArray:
        """The central factors by b, then by m."""
        return np.lexsort(self.mix.T)

    @cached_property
    def shifts(self) -> IntArray:
        """Every shift of W from the smallest to the largest."""
        if self.within is not None:
            return np.arange(self.within[0], self.within[1] + 1)
        if not len(self.mix):
            return np.zeros(0, np.int64)
        low = int(self.mix[:, 1].min())
        return np.arange(low, int(self.mix.sum(axis=1).max()) + 1)

    @cached_property
    def largest_offset(self) -> float:
        return self.step * int(self.mix[:, 0].max(initial=0))

    def sums(self, values: FloatArray, share: FloatArray | None = None) -> FloatArray:
        """Per central factor and column t: sum_i w_i share[i, t] values[case i, t].

        ``values`` has one row per shift of W; without ``share`` it is 1.
        """
        from accounting.evaluator.pairs.mixture_kernels import mixture_sums

        one = np.ones((len(self.weights), values.shape[1])) if share is None else share
        inner, end = self.weights[:, :1] * one, self.weights[:, 1:] * one
        out = np.empty((len(self.mix), values.shape[1]))
        self._in_order(lambda order: mixture_sums(*self._key, order, inner, end, values, out))
        return out

    def log_average(self, log_values: FloatArray, tilts: FloatArray) -> FloatArray:
        """The logarithm of sum_i w_i e^{tilts[t] * offset_i} values[case i, t], per central factor
        and column t."""
        from accounting.evaluator.pairs.mixture_kernels import mixture_log_sums

        share = -np.outer(self.offsets, tilts)
        inner, end = (np.log(self.weights[:, [i]]) + share for i in (0, 1))
        out = np.empty((len(self.mix), log_values.shape[1]))
        values = np.ascontiguousarray(log_values)
        self._in_order(lambda order: mixture_log_sums(*self._key, order, inner, end, values, out))
        return np.asarray(out + np.outer(self.mix[:, 0] * self.step, tilts))

    def largest(self, values: FloatArray, added: FloatArray) -> FloatArray:
        """Per central factor, the largest added[i] + value of case i; one value per shift of W."""
        from accounting.evaluator.pairs.mixture_kernels import mixture_maxima

        out = np.empty(len(self.mix))
        self._in_order(lambda order: mixture_maxima(*self._key, order, added, values, out))
        return out

    @property
    def _key(self) -> tuple[int, IntArray]:
        """The lowest shift, and the rows (m, b)."""
        return int(self.shifts[0]) if len(self.shifts) else 0, self.mix

    def _in_order(self, work: Callable[[IntArray], None]) -> None:
        in_chunks(lambda a, b: work(self.order[a:b]), len(self.order), smallest=256)


@dataclass(frozen=True)
class ShiftGroup:
    """The shifts of one noise that are in use, and the ids of the factors made of them.

    Without ``central``, ``factors[i]`` is the plain factor with shift ``shifts[i]``.  Otherwise the
    noise is W, and every factor mixes several of the shifts.
    """

    noise: int
    shifts: IntArray
    factors: IntArray
    central: CentralMixture | None = None


@dataclass(frozen=True)
class ViewPairs:
    """Pair q is the product of the factors ``factor[start[q]:start[q + 1]]``.

    Factor ids below ``len(plain)`` are rows (noise, shift) of ``plain``; the others are rows of
    ``central.mix``.  With ``releases`` = T every pair stands for its T-fold product.
    """

    noises: tuple[NoiseSum, ...]
    plain: IntArray
    start: IntArray
    factor: IntArray
    central: CentralMixture | None = None
    releases: int = 1

    @property
    def pair_count(self) -> int:
        return len(self.start) - 1

    @property
    def factor_count(self) -> int:
        """Number of distinct factors."""
        return len(self.plain) + (len(self.central.mix) if self.central else 0)

    @cached_property
    def splits(self) -> IntArray:
        """Number of independent connect-the-dots splits of each factor."""
        counts = np.ones(self.factor_count, np.int64)
        counts[len(self.plain) :] = 3
        return counts

    @cached_property
    def largest_shift(self) -> IntArray:
        """Per noise, the largest magnitude of a shift."""
        largest = np.zeros(len(self.noises), np.int64)
        np.maximum.at(largest, self.plain[:, 0], np.abs(self.plain[:, 1]))
        if self.central is not None and len(self.central.shifts):
            ends = np.abs(self.central.shifts[[0, -1]]).max()
            largest[self.central.noise] = max(largest[self.central.noise], ends)
        return largest

    @cached_property
    def shift_groups(self) -> list[ShiftGroup]:
        """One group per noise in use, that of W last."""
        order = np.argsort(self.plain[:, 0], kind="stable")
        noise = self.plain[order, 0]
        ends = [*(1 + np.flatnonzero(noise[1:] != noise[:-1])).tolist(), len(order)]
        parts = [order[a:b] for a, b in pairwise([0, *ends]) if a < b]
        groups = [ShiftGroup(int(self.plain[at[0], 0]), self.plain[at, 1], at) for at in parts]
        if self.central is not None and len(self.central.mix):
            ids = np.arange(len(self.plain), self.factor_count)
            groups.append(ShiftGroup(self.central.noise, self.central.shifts, ids, self.central))
        return groups

    @property
    def shifted_noises(self) -> tuple[IntArray, IntArray]:
        """Noise and shift of every plain factor, and after them of every shift of W."""
        if self.central is None or not len(self.central.mix):
            return self.plain[:, 0], self.plain[:, 1]
        shifts = self.central.shifts
        noise = np.full(len(shifts), self.central.noise)
        return np.append(self.plain[:, 0], noise), np.append(self.plain[:, 1], shifts)

    @cached_property
    def largest_loss(self) -> FloatArray:
        """Per pair, an upper bound of the loss; infinite when some outcome gives the input away."""
        losses = np.empty(self.factor_count)
        for row, (index, shift) in enumerate(self.plain.tolist()):
            check_time()
            losses[row] = self.noises[index].largest_loss(shift)
        if self.central is not None:
            noise = self.noises[self.central.noise]
            of_shift = np.array([noise.largest_loss(int(t)) for t in self.central.shifts])
            central = self.central.largest(of_shift, -self.central.offsets)
            losses[len(self.plain) :] = central + self.central.mix[:, 0] * self.central.step
        longest = int(np.diff(self.start).max(initial=1))
        error = (longest + 16) * UNIT_ROUNDOFF * self.totals(np.abs(losses))
        return self.totals(losses) + error

    def totals(self, values: FloatArray | IntArray) -> FloatArray:
        """Per pair, the sum of ``values`` over its factors in all releases.

        ``values`` has one entry, or one row, per factor.
        """
        from accounting.evaluator.kernels import add_up

        rows = values[:, None] if values.ndim == 1 else values
        out = np.empty((self.pair_count, rows.shape[1]))
        rows = np.ascontiguousarray(rows, np.float64)

        def work(a: int, b: int) -> None:
            add_up(self.start[a : b + 1], self.factor, rows, out[a:b])

        in_chunks(work, self.pair_count, smallest=10_000)
        if self.releases > 1:
            out *= self.releases
        return out.reshape(self.pair_count, *values.shape[1:])

    def factors_of(self, pairs: IntArray) -> tuple[IntArray, IntArray]:
        """``start`` and ``factor`` of these pairs alone; a pair may be listed more than once."""
        counts = np.diff(self.start)[pairs]
        start = np.concatenate([[0], np.cumsum(counts)])
        places = np.arange(start[-1]) + np.repeat(self.start[pairs] - start[:-1], counts)
        return start, self.factor[places]

    def subset(self, pairs: IntArray) -> ViewPairs:
        """Only these pairs, with only the factors they use."""
        start, chosen = self.factors_of(pairs)
        used, factor = np.unique(chosen, return_inverse=True)
        n = len(self.plain)
        central = self.central
        if central is not None:
            central = replace(central, mix=central.mix[used[used >= n] - n], within=None)
        return replace(
            self,
            plain=self.plain[used[used < n]],
            start=start,
            factor=factor.astype(np.int64),
            central=central,
        )
