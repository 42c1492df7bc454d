"""What the estimates of some pairs are made of: tables of noises, and factors on a common grid."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from accounting.base.arrays import FloatArray, IntArray, distinct
from accounting.base.errors import required
from accounting.base.threads import in_chunks
from accounting.evaluator.view_pairs import CentralMixture, ViewPairs

_CASES_PER_FACTOR = 120
"""Cases of a central factor beyond which several are taken together; rule of thumb."""


@dataclass(frozen=True)
class CellTables:
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

    @staticmethod
    def of(
        table: FloatArray, start: IntArray, outcomes: IntArray, widest: FloatArray
    ) -> CellTables:
        """Put the ``outcomes`` of every noise into cells of at most about twice ``widest``."""
        from accounting.estimator.estimate_kernels import outcome_cells

        cell_start = np.empty(len(outcomes) + 1, np.int64)
        outcome_cells(outcomes, widest, np.empty(0, np.int64), np.empty(0), cell_start)
        middle, width = np.empty(cell_start[-1], np.int64), np.empty(cell_start[-1])
        outcome_cells(outcomes, widest, middle, width, cell_start)
        return CellTables(table, start, middle, width, cell_start)

    @property
    def arrays(self) -> tuple[FloatArray, IntArray, IntArray, FloatArray, IntArray]:
        """The fields, as kernels take them."""
        return self.table, self.start, self.middle, self.width, self.cell_start


@dataclass(frozen=True)
class PairGroup:
    """Pairs that share a grid, with factors numbered anew: first ``plain``, then ``central.mix``,
    sorted by b and then m.  Pair q has the factors ``factor[start[q]:start[q + 1]]``, whose losses
    in ``releases`` releases together may use up ``slack[q]``."""

    start: IntArray
    factor: IntArray
    plain: IntArray
    central: CentralMixture
    releases: int
    slack: FloatArray

    @staticmethod
    def of(view_pairs: ViewPairs, pairs: IntArray, slack: FloatArray) -> PairGroup:
        """The group of these pairs, of which each has its ``slack``."""
        whole = required(view_pairs.central, "the central factors")
        start, ids = view_pairs.factors_of(pairs)
        used, factor = distinct(ids)
        n = int(np.searchsorted(used, len(view_pairs.plain)))
        mix = whole.mix[used[n:] - len(view_pairs.plain)]
        order = np.lexsort(mix.T)
        rank = np.arange(len(used))
        rank[n + order] = n + np.arange(len(order))
        central = replace(whole, mix=np.ascontiguousarray(mix[order]))
        plain = view_pairs.plain[used[:n]]
        return PairGroup(start, rank[factor], plain, central, view_pairs.releases, slack)

    def totals(self, values: FloatArray) -> FloatArray:
        """Per pair the sum of ``values``, which has an entry, a row or more for every factor, over
        the factors in all releases."""
        from accounting.evaluator.kernels import add_up

        rows = np.ascontiguousarray(values.reshape(len(values), -1))
        out = np.empty((len(self.start) - 1, rows.shape[1]))

        def work(a: int, b: int) -> None:
            add_up(self.start[a : b + 1], self.factor, rows, out[a:b])

        in_chunks(work, len(out), smallest=1000)
        out *= self.releases
        return out.reshape(len(out), *values.shape[1:])

    @property
    def sums_centrals(self) -> bool:
        """Whether the losses of several central factors add up in a pair."""
        of_pair = np.add.reduceat(self.factor >= len(self.plain), self.start[:-1])
        return self.releases > 1 or int(of_pair.max()) > 1

    @property
    def stride(self) -> int:
        """Number of cases of a central factor that are taken together, an odd number."""
        return 2 * (int(self.central.mix[:, 0].max()) // (2 * _CASES_PER_FACTOR)) + 1

    @property
    def noise(self) -> IntArray:
        """The noise of every entry of ``factor``."""
        central = np.full(len(self.central.mix), self.central.noise)
        noise: IntArray = np.concatenate([self.plain[:, 0], central])[self.factor]
        return noise

    @property
    def shifted_noises(self) -> tuple[IntArray, IntArray]:
        """Noise and shift of every plain factor, and after them of every shift of W."""
        shifts = self.central.shifts
        noise = np.full(len(shifts), self.central.noise)
        return np.append(self.plain[:, 0], noise), np.append(self.plain[:, 1], shifts)
