"""The two central noises when they are not geometric: D = z+ - z- and M = min(z+, z-).

With f = NB(share, q), x = |D| and m = M the joint law is f(m) f(m + x), so D and M are dependent
unless the share is 1.  Masses are balls rounded to doubles, and then only added and multiplied; all
terms are positive, so relative errors are at most the number of operations times 2^-53.
"""

from __future__ import annotations

import numpy as np
from flint import arb

from accounting.base.arrays import UNIT_ROUNDOFF, FloatArray
from accounting.base.balls import ball, double
from accounting.base.errors import TooLarge
from accounting.notary.tables import NegativeBinomialPart, NoiseTable

_UNDERFLOWN = 1e-290
"""More than all products of two masses that are not normal doubles together."""
_LONGEST = 1 << 15
"""Longest table of a central noise: the time grows with its square."""


class CentralPair:
    """Masses of (|D|, M), both below ``size``, which leaves out about ``tail`` of each noise."""

    def __init__(self, share: arb, loss: arb, tail: float, beyond: int) -> None:
        self.q = (-loss).exp()
        table = NoiseTable([NegativeBinomialPart(share, self.q)])
        self.size = len(table.log_masses(tail, beyond))
        if self.size > _LONGEST:
            raise TooLarge(
                f"with {float(share.mid()):.4g} of the central noise each of its two parts has a "
                f"table of {self.size:,} masses, more than {_LONGEST:,}; this fraction of honest "
                "users can be checked for smaller max_value only, or for a file that was made for "
                "it (certify --honest)"
            )
        self.masses, totals = doubles(table, 2 * self.size)
        self.lost = 2 * (1 - totals[self.size - 1]) + ball(_UNDERFLOWN)
        """Bounds the mass of the outcomes with |D| or M beyond their tables, since then one of the
        two noises is at least ``size``, and of those whose mass underflows."""

    def joint(self, x: int) -> FloatArray:
        """The masses f(m) f(m + x) of D = x, or of D = -x, and M = m, for all m < size."""
        return np.asarray(self.masses[: self.size] * self.masses[x : x + self.size])


def doubles(table: NoiseTable, size: int) -> tuple[FloatArray, dict[int, arb]]:
    """The first masses as doubles, each within a relative 2^-51 (or 2^-1000), and their partial
    sums as balls.  ``double`` checks the accuracy of every ball: the working precision may be too
    small."""
    at = table.at(np.arange(size))
    return np.array([double(at.mass[k]) for k in range(size)]), at.total


def sum_error(terms: int) -> float:
    """A relative error of a sum of so many products of such masses."""
    return 1.01 * (terms + 16) * UNIT_ROUNDOFF
