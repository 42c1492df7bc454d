"""Masses of noises and their logarithms, tabulated with error bounds (floating_point.md, F1)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from accounting.base.arrays import UNIT_ROUNDOFF, FloatArray
from accounting.base.errors import TooLarge
from accounting.evaluator.view_pairs import ViewPairs
from accounting.model.noise import NoiseSum

LARGEST_TABLE = 1 << 26
"""Entries of one table: 512 MiB for masses and as much for logarithms."""
LARGEST_TABLES = 1 << 27
"""Entries of all tables together: 2 GiB."""


@dataclass(frozen=True)
class NoiseTable:
    """Masses at 0..n-1.

    True mass = mass * exp(e) with |e| <= ``relative_error``; the loss log f(z) - log f(z + a) read
    off ``log_mass`` is within ``loss_error``; the mass at n and beyond is at most ``tail``.
    """

    mass: FloatArray
    log_mass: FloatArray
    relative_error: float
    loss_error: float
    tail: float


def noise_table(noise: NoiseSum, n: int) -> NoiseTable:
    """Masses at 0..n-1 (Lemma F1)."""
    from accounting.evaluator.compiled.table_kernels import nb_sum_masses, normalize_masses

    if n > LARGEST_TABLE:
        raise TooLarge(
            f"the noise {noise} needs a table of {n:,} entries, more than {LARGEST_TABLE:,}: "
            "its mean is too large for an exact evaluation; lower r or move p away from 1"
        )
    mass, exponent = np.empty(n), np.empty(n, np.int64)
    r = np.array([part.r for part in noise.parts])
    p = np.array([part.p for part in noise.parts])
    nb_sum_masses(r, p, mass, exponent)
    log_mass = np.log(mass)
    largest = normalize_masses(mass, exponent, log_mass)
    tail = noise.tail_bound(n) + n * 2.0**-1021  # masses that underflow are unknown, too
    growth = (len(noise.parts) + 4 + noise.p_ulps) * n * UNIT_ROUNDOFF
    return NoiseTable(
        mass=mass,
        log_mass=log_mass,
        relative_error=2.1 * growth + (n + 20) * UNIT_ROUNDOFF + 2 * tail,
        loss_error=2.1 * growth + 24 * (largest + 800) * UNIT_ROUNDOFF,
        tail=tail,
    )


def tabulate(view_pairs: ViewPairs, tail: float) -> dict[int, NoiseTable]:
    """Tables of the noises in use, long enough to leave about ``tail`` and to reach every shift."""
    noises, shift = view_pairs.noises, view_pairs.largest_shift
    used = [group.noise for group in view_pairs.shift_groups]
    lengths = {i: noises[i].length(tail) + int(shift[i]) for i in used}
    if sum(lengths.values()) > LARGEST_TABLES:
        longest = max(used, key=lengths.__getitem__)
        raise TooLarge(
            f"the noises need tables of {sum(lengths.values()):,} entries in all, more than "
            f"{LARGEST_TABLES:,}; the longest is that of {noises[longest]}: lower r or "
            "move p away from 1, or evaluate fewer pairs at a time"
        )
    return {i: noise_table(noises[i], n) for i, n in lengths.items()}
