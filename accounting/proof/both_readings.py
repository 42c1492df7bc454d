"""Bounds of delta(eps) that hold whether eps is read as the double or as the decimal.

Let ``low <= eps <= high`` be the doubles around both readings (``readings``); at most one of them
differs from the double, by one unit in its last place.  delta(eps) does not increase with eps, so
an upper bound at ``low`` is one at both readings.  A lower bound at ``low`` is corrected:

    delta(high) >= delta(low) - (e^(high - low) - 1) (1 - delta(low)).

Proof.  Take a pair of laws P, Q and S = {P > e^low Q}, so that delta(low) = P(S) - e^low Q(S) and
e^low Q(S) = P(S) - delta(low) <= 1 - delta(low).  Then delta(high) >= P(S) - e^high Q(S)
= delta(low) - (e^(high - low) - 1) e^low Q(S).  The right-hand side of the claim increases with
delta(low), so the inequality holds with a lower bound in its place, and for the largest delta over
all pairs, also over those of adaptive sequences of changes.

The correction is about 1e-16 eps.  Where it matters, next to a very small delta, the lower bound
is proved at ``high`` instead.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction

from accounting.base.enclosure import Enclosure, readings
from accounting.base.errors import TooLarge, Undecided
from accounting.model.proof import Proof

_NEGLIGIBLE = 0.1
"""Share of the gap that the correction of a lower bound may take."""


def lower_at(high: float, lower: float, *, low: float) -> float:
    """Return a lower bound of delta at ``high`` from one at ``low``, the double below it.

    >>> lower_at(1.0, 1e-6, low=1.0), lower_at(0.1, 1.0, low=math.nextafter(0.1, 0.0))
    (1e-06, 1.0)
    >>> 1e-6 - 2e-17 < lower_at(0.1, 1e-6, low=math.nextafter(0.1, 0.0)) < 1e-6
    True
    """
    step, known = Fraction(high) - Fraction(low), Fraction(lower)
    if step > 1:  # eps is beyond 2^53: delta = 1 alone is known to hold for the next one
        return 1.0 if lower == 1 else 0.0
    growth = step + step**2  # at least e^step - 1
    exact = max(Fraction(0), known - growth * (1 - known))
    nearest = float(exact)
    return nearest if Fraction(nearest) <= exact else math.nextafter(nearest, 0.0)


def proof_for_both(eps: float, prove: Callable[[float], Proof], *, gap: float) -> Proof:
    """Return a proof whose bounds hold for the double and for the decimal.

    Args:
        eps: The eps as it was given.
        prove: A proof at one double.  A second one that is not done in time is left out.
        gap: Relative gap between its bounds.

    Returns:
        The proof at the smaller reading, with a lower bound for the larger one.
    """
    low, high = readings(eps)
    found = prove(low)
    known = found.enclosure
    lower = lower_at(high, known.lower, low=low)
    proof = replace(
        found,
        eps=eps,
        enclosure=Enclosure(lower, known.upper),
        sequence_lower=lower_at(high, found.sequence_lower, low=low),
    )
    if known.lower - lower > _NEGLIGIBLE * gap * known.lower:
        with suppress(TooLarge, Undecided):  # what is proved stands
            proof = proof.with_lower_of(prove(high))
    return proof
