"""What is compared: pairs of views, each a product of independent factors.

A *plain* factor is one noise shifted by an integer.  A *central* factor (exact_view.md, Theorem 2)
is the mixture over i = 0..m of the noise W shifted by b + i, with a known loss offset
(m - 2i) * step and weight w_i.  Every evaluator of this package reduces its question to a
view_pairs; what it asks for is the hockey-stick divergence of every pair.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from accounting.base.arrays import FloatArray, IntArray
from accounting.base.deadline import check_time
from accounting.model.noise import UNIT_ROUNDOFF, NoiseSum


@dataclass(frozen=True)
class CentralMixture:
    """The central factors (m, b), rows of ``mix``: all share the noise W and the offset step."""

    noise: int
    step: float
    mix: IntArray

    def weights(self, m: int) -> FloatArray:
        """w_0..w_m, the probabilities of the |kappa| + 1 = m + 1 cases (Theorem 2)."""
        q = math.exp(-self.step)
        w = (-math.expm1(-self.step)) / (1 + q) * np.exp(-self.step * np.arange(m + 1))
        w[0] = 1 / (1 + q)
        w[m] = math.exp(-self.step * m) / (1 + q)
        return w if m else np.ones(1)

    def offsets(self, m: int) -> FloatArray:
        """(m - 2i) * step for i = 0..m."""
        return np.asarray((m - 2 * np.arange(m + 1)) * self.step, np.float64)

    @cached_property
    def shifts(self) -> IntArray:
        """Every shift of W that some mixture uses, in order and without gaps."""
        if not len(self.mix):
            return np.zeros(0, np.int64)
        low = int(self.mix[:, 1].min())
        return np.arange(low, int(self.mix.sum(axis=1).max()) + 1)


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
        return len(self.plain) + (len(self.central.mix) if self.central else 0)

    @cached_property
    def splits(self) -> IntArray:
        """How many independent connect-the-dots splits each factor goes through."""
        counts = np.ones(self.factor_count, np.int64)
        counts[len(self.plain) :] = 2
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
    def shift_groups(self) -> list[tuple[int, IntArray | None, IntArray]]:
        """(noise, rows of ``plain`` or None for W, shifts) for each noise in use."""
        order = np.argsort(self.plain[:, 0], kind="stable")
        noises, begins = np.unique(self.plain[order, 0], return_index=True)
        groups: list[tuple[int, IntArray | None, IntArray]] = [
            (int(noise), rows, self.plain[rows, 1])
            for noise, rows in zip(noises, np.split(order, begins[1:]), strict=False)  # maybe none
        ]
        if self.central is not None and len(self.central.mix):
            groups.append((self.central.noise, None, self.central.shifts))
        return groups

    @cached_property
    def largest_loss(self) -> FloatArray:
        """Per pair, an upper bound of the loss; infinite when some outcome gives the input away."""
        losses = np.empty(self.factor_count)
        for row, (noise, shift) in enumerate(self.plain):
            check_time()
            losses[row] = self.noises[noise].largest_loss(int(shift))
        if self.central is not None:
            noise = self.noises[self.central.noise]
            of_shift = np.array([noise.largest_loss(int(t)) for t in self.central.shifts])
            mix = self.central.mix - [0, self.central.shifts[0] if len(of_shift) else 0]
            losses[len(self.plain) :] = [
                (self.central.offsets(m) + of_shift[b : b + m + 1]).max() for m, b in mix
            ]
        total = self.sum_over_pairs(losses[:, None])[:, 0] * self.releases
        size = self.sum_over_pairs(np.abs(losses)[:, None])[:, 0] * self.releases
        longest = int(np.diff(self.start).max(initial=1))
        return total + (longest + 8) * UNIT_ROUNDOFF * size

    def sum_over_pairs(self, values: FloatArray) -> FloatArray:
        """Row q: the sum of the rows of ``values`` over the factors of pair q."""
        from accounting.evaluator.kernels import add_up

        out = np.empty((self.pair_count, values.shape[1]))
        add_up(self.start, self.factor, np.ascontiguousarray(values), out)
        return out

    def subset(self, pairs: IntArray) -> ViewPairs:
        """Only these pairs, with only the factors they use."""
        lengths = np.diff(self.start)[pairs]
        start = np.concatenate([[0], np.cumsum(lengths)])
        picks = np.concatenate(
            [np.arange(self.start[q], self.start[q + 1]) for q in pairs] or [np.zeros(0, np.int64)]
        ).astype(np.int64)
        used, factor = np.unique(self.factor[picks], return_inverse=True)
        n = len(self.plain)
        central = self.central
        if central is not None:
            mix = central.mix[used[used >= n] - n]
            central = CentralMixture(central.noise, central.step, mix)
        return ViewPairs(
            self.noises,
            self.plain[used[used < n]],
            start,
            factor.astype(np.int64),
            central,
            self.releases,
        )
