"""Masses of noises and their logarithms, tabulated with error bounds (floating_point.md, F1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from accounting.base.arrays import UNIT_ROUNDOFF, FloatArray, IntArray
from accounting.base.errors import TooLarge
from accounting.evaluator.elementary_functions import check_elementary_functions
from accounting.evaluator.view_pairs import ViewPairs
from accounting.model.laws.noise import NoiseSum

LARGEST_TABLE = 1 << 26
"""Entries of one table: 512 MiB for masses and as much for logarithms."""
_LONG, _MOST_ROUGH = 1 << 14, 0.25
"""Entries from which on a table is summed in runs, and the share of them that may come before."""
_CHECKED, _STEEPEST = 1 << 16, 64.0
"""Entries that are checked at a time, and the largest change of log f from one to the next where a
table counts as smooth: its rounding is far below what is allowed."""
LARGEST_TABLES = 1 << 27
"""Entries of all tables together: 2 GiB."""


@dataclass(frozen=True)
class NoiseTable:
    """Masses at 0..n-1.

    True mass = mass * exp(e) with |e| <= ``relative_error``; the loss log f(z) - log f(z + a) read
    off ``log_mass`` is within ``loss_error``; the mass at n and beyond is at most ``tail``.
    ``sums`` are those of runs of masses, for long tables whose losses are monotone from
    ``smooth_from`` on, up to rounding (floating_point.md, F9), and that is most of the table.
    """

    mass: FloatArray
    log_mass: FloatArray
    relative_error: float
    loss_error: float
    tail: float
    sums: FloatArray
    smooth_from: int


@dataclass(frozen=True)
class NoiseTables:
    """Tables of several noises, one after the other.

    ``index`` is the number of the table of a noise, -1 without one; table t has the masses
    ``mass[start[t]:start[t + 1]]`` and the sums of runs ``sums[sum_start[t]:sum_start[t + 1]]``;
    the other arrays have its error bounds.
    """

    index: IntArray
    start: IntArray
    mass: FloatArray
    log_mass: FloatArray
    sum_start: IntArray
    sums: FloatArray
    smooth_from: IntArray
    relative_error: FloatArray
    loss_error: FloatArray
    tail: FloatArray

    def __getitem__(self, noise: int) -> NoiseTable:
        """The table of one noise."""
        t = int(self.index[noise])
        part = slice(int(self.start[t]), int(self.start[t + 1]))
        runs = slice(int(self.sum_start[t]), int(self.sum_start[t + 1]))
        return NoiseTable(
            mass=self.mass[part],
            log_mass=self.log_mass[part],
            relative_error=float(self.relative_error[t]),
            loss_error=float(self.loss_error[t]),
            tail=float(self.tail[t]),
            sums=self.sums[runs],
            smooth_from=int(self.smooth_from[t]),
        )

    @staticmethod
    def of(noises: Mapping[int, NoiseSum], lengths: Sequence[int]) -> NoiseTables:
        """Masses at 0..n-1 for every noise and its length n (Lemma F1).

        Raises:
            InexactArithmetic: If an elementary function of this machine is not accurate enough.
        """
        from accounting.evaluator.compiled.table_kernels import noise_masses, normalize_masses

        check_elementary_functions()  # every bound begins with these tables
        parts = [noise.parts for noise in noises.values()]
        n, counts = np.array(lengths), np.array([len(of) for of in parts])
        start, first = (np.concatenate([[0], np.cumsum(of)]) for of in (n, counts))
        every = [part for of in parts for part in of]
        p, order, weights = (
            np.array([getattr(part, name) for part in every]) for name in ("p", "order", "weights")
        )
        mass, exponent = np.empty(start[-1]), np.empty(start[-1], np.int64)
        noise_masses(start, first, p, order, weights, mass, exponent)
        log_mass, largest = np.log(mass), np.empty(len(n))
        normalize_masses(start, mass, exponent, log_mass, largest)
        bounds = [noise.tail_bound(k) for noise, k in zip(noises.values(), lengths, strict=True)]
        tail = np.array(bounds) + n * 2.0**-1021  # masses that underflow are unknown, too
        growth = np.array([noise.roundings for noise in noises.values()]) * n * UNIT_ROUNDOFF
        index = np.full(max(noises, default=0) + 1, -1)
        index[list(noises)] = np.arange(len(n))
        each = list(pairwise(start.tolist()))
        smooth = [_smooth_from(log_mass[a:b]) if b - a > _LONG else b - a for a, b in each]
        sums = [
            _run_sums(mass[a:b]) if rough < _MOST_ROUGH * (b - a) else np.zeros(0)
            for rough, (a, b) in zip(smooth, each, strict=True)
        ]
        return NoiseTables(
            index=index,
            start=start,
            mass=mass,
            log_mass=log_mass,
            sum_start=np.concatenate([[0], np.cumsum([len(runs) for runs in sums])]),
            sums=np.concatenate(sums) if sums else np.zeros(0),
            smooth_from=np.array(smooth, np.int64),
            relative_error=2.1 * growth + (n + 20) * UNIT_ROUNDOFF + 2 * tail,
            loss_error=2.1 * growth + 24 * (largest + 800) * UNIT_ROUNDOFF,
            tail=tail,
        )


def _smooth_from(log_mass: FloatArray) -> int:
    """From where on log f(k + 1) - log f(k) decreases in k, up to rounding (Lemma F9)."""
    from accounting.evaluator.pairs.run_kernels import LARGEST_RISE

    largest = -np.inf
    for end in range(len(log_mass) - 1, 0, -_CHECKED):
        begin = max(0, end - _CHECKED)
        change = np.diff(log_mass[begin : end + 1])
        later = np.maximum.accumulate(np.append(largest, change[::-1]))[::-1]
        smooth = (np.abs(change) < _STEEPEST) & (later[1:] <= change + LARGEST_RISE)
        rough = np.flatnonzero(~smooth)
        if len(rough):
            return begin + int(rough[-1]) + 1
        largest = later[0]
    return 0


def _run_sums(mass: FloatArray) -> FloatArray:
    from accounting.evaluator.pairs.run_kernels import RUN

    return np.asarray(mass[: len(mass) - len(mass) % RUN].reshape(-1, RUN).sum(axis=1))


def noise_table(noise: NoiseSum, n: int) -> NoiseTable:
    """Masses of one noise at 0..n-1."""
    _check_length(noise, n)
    return NoiseTables.of({0: noise}, [n])[0]


def tabulate(view_pairs: ViewPairs, tail: float) -> NoiseTables:
    """Tables of the noises in use, long enough to leave about ``tail`` and to reach every shift."""
    noises, shift = view_pairs.noises, view_pairs.largest_shift.tolist()
    used = {group.noise: noises[group.noise] for group in view_pairs.shift_groups}
    lengths = [noise.length(tail) + shift[i] for i, noise in used.items()]
    for noise, n in zip(used.values(), lengths, strict=True):
        _check_length(noise, n)
    if sum(lengths) > LARGEST_TABLES:
        longest = list(used.values())[lengths.index(max(lengths))]
        raise TooLarge(
            f"the noises need tables of {sum(lengths):,} entries in all, more than "
            f"{LARGEST_TABLES:,}; the longest is that of {longest}: lower r or "
            "move p away from 1, or evaluate fewer pairs at a time"
        )
    return NoiseTables.of(used, lengths)


def _check_length(noise: NoiseSum, n: int) -> None:
    if n > LARGEST_TABLE:
        raise TooLarge(
            f"the noise {noise} needs a table of {n:,} entries, more than {LARGEST_TABLE:,}: "
            "its mean is too large for an exact evaluation; lower r or move p away from 1"
        )
