"""The limit of delta as eps grows without bound: the probability of a view that the other input
cannot produce.

By exact_view.md, Theorem 1, the view consists of Y_s = z_s + const for every atom s other than
{-1, +1}, and of A = z+ + z_0 and B = z- + z_0 up to constants (A = X + Y_0, B = Y_0), where z_0 is
the noise of {-1, +1} and z+, z- that of the messages +1 and -1.  Each z_s has all of 0, 1, 2, ...
as its support, and (A, B) has all pairs of these.  When the input j becomes k, with kappa = j - k
and a = c_j - c_k, the same view needs z_s + a_s, A + a_0 + kappa and B + a_0 instead: it is
impossible if and only if one of them is negative.  With P the law of the view under j and Q that
under k, delta(eps) = P[Q = 0] + E_P[(1 - e^eps Q / P)_+; Q > 0], and the second term vanishes as
eps grows.  So P[Q = 0] is the limit, and no more than delta at any eps.

Several releases: each shows an impossible view with a probability of at most that of the worst
change, whatever was published before, and the worst change in every release attains it; under
zero-out, too, where it is the same in every release.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import cache

import numpy as np
from flint import arb

from accounting.base.balls import above, below, precision
from accounting.base.deadline import check_time
from accounting.base.enclosure import Enclosure
from accounting.base.errors import TooLarge
from accounting.model.change import SUBSTITUTION, Adjacency, Change
from accounting.model.mechanism import Atom, Mechanism
from accounting.notary.columns import UNIT
from accounting.notary.grid import CoordinateShift
from accounting.notary.notary import Notary
from accounting.notary.tables import NegativeBinomialPart, NoiseTable

_BITS = 192
"""Working precision."""
_LARGEST_SHIFT = 1 << 20
"""Largest shift of a noise whose masses are summed, which bounds time and memory."""


def limit_delta(
    mechanism: Mechanism,
    *,
    releases: int = 1,
    changes: Collection[Change] | None = None,
    adjacency: Adjacency = SUBSTITUTION,
) -> Enclosure:
    """Bound delta(eps) as eps grows without bound: if it exceeds a claimed delta, no eps helps.

    Args:
        mechanism: What is deployed.
        releases: Number of releases that are seen together; it does not matter whether the changes
            in them are the same.
        changes: The changes to consider; by default all that one user can make.
        adjacency: Which data sets are neighbors.

    Returns:
        Bounds of the largest limit among these changes; the lower bound is 0 if there are more
        atoms than values.

    Raises:
        TooLarge: If there are too many changes, or one shifts a noise too far.
        Undecided: If time runs out.

    >>> from fractions import Fraction
    >>> from accounting import ExactCentral, ExactNoise, Mechanism
    >>> noise = ExactNoise(p=Fraction(1, 2), r=Fraction(1))
    >>> mechanism = Mechanism(1, {(-1, 1): (noise,)}, ExactCentral(step=Fraction(9, 10)))
    >>> print(limit_delta(mechanism))  # no message +1 at all: (1 - e^-0.9) / 2
    [0.296715, 0.296716]
    """
    notary = Notary(mechanism, releases, adjacency=adjacency)
    if notary.disclosed is not None:
        return Enclosure(1.0, 1.0)
    with precision(_BITS):
        views = _Views(mechanism)
        lower = upper = 0.0
        for shifted in notary.shifted_changes(changes):
            possible = arb(1)
            for shift in shifted.shifts:
                possible *= views.possible(shift)
            impossible = 1 - possible**releases
            lower, upper = max(lower, below(impossible)), max(upper, above(impossible))
        exact = notary.columns.exact
        return Enclosure(max(0.0, lower) if exact else 0.0, min(1.0, upper))


class _Views:
    """Probabilities that a view under one input is possible under another."""

    def __init__(self, mechanism: Mechanism) -> None:
        self.atoms, self.central = mechanism.atoms, mechanism.central
        self.possible = cache(self._possible)
        self.at_least = cache(self._at_least)
        self.of_pair = cache(self._of_pair)

    def _possible(self, shift: CoordinateShift) -> arb:
        """Return the probability for the change in one coordinate."""
        check_time()
        found = self.of_pair(
            max(0, -(shift.unit_shift + shift.before - shift.after)), max(0, -shift.unit_shift)
        )
        for atom, by in shift.shifts:
            if by < 0:
                found = found * self.at_least(atom, -by)
        return found

    def _at_least(self, atom: Atom, least: int) -> arb:
        """Return P[z_s >= least]."""
        _check_shift(least)
        return 1 - NoiseTable.of(self.atoms[atom]).at(np.array([least - 1])).total[least - 1]

    def _of_pair(self, first: int, second: int) -> arb:
        """Return P[A >= first and B >= second], by the value of z_0."""
        most = max(first, second)
        _check_shift(most)
        if most == 0:
            return arb(1)
        points = np.arange(most)
        one = NegativeBinomialPart(self.central.share(), (-self.central.loss()).exp())
        central = NoiseTable([one]).at(points)
        parts = self.atoms.get(UNIT, ())
        if not parts:
            return (1 - central.total[first - 1]) * (1 - central.total[second - 1])
        unit = NoiseTable.of(parts).at(points)
        found = 1 - unit.total[most - 1]
        for k in range(most):
            check_time()
            missing = (central.total[max(least - k, 0) - 1] for least in (first, second))
            enough, other = (1 - part for part in missing)
            found = found + unit.mass[k] * enough * other
        return found


def _check_shift(size: int) -> None:
    if size > _LARGEST_SHIFT:
        raise TooLarge(f"a change shifts a noise by {size:,}, more than {_LARGEST_SHIFT:,}")
