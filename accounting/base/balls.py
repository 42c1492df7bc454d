"""Small helpers around python-flint's real balls.

Why arb and not mpmath's intervals: an arb product of two polynomials of length 8192 at 128 bits
takes 16 ms and keeps the relative accuracy of *every* coefficient; mpmath's ``iv`` has no
polynomials and costs microseconds for each single operation (benchmarks/notary.py).
"""

from __future__ import annotations

import math
from fractions import Fraction

from flint import arb, fmpq

from accounting.base.errors import Undecided
from accounting.base.precision import precision

__all__ = ["above", "ball", "below", "ceil", "double", "floor", "precision"]

_ENORMOUS = arb(2) ** (1 << 20)
"""No integer of this size is asked for; one with an enormous exponent would end the process."""

_ENOUGH_BITS = 60
"""Of relative accuracy, for a double next to every number of a ball."""
_SMALLEST = 2.0**-1000


def ball(value: Fraction | float) -> arb:
    """A ball around an exact number, rounded to the working precision."""
    if isinstance(value, float):
        return arb(value)
    exact = Fraction(value)
    return arb(fmpq(exact.numerator, exact.denominator))


def above(value: arb) -> float:
    """A double that no number of the ball exceeds."""
    top = value.upper()
    number = float(top)
    if math.isnan(number):
        return math.inf
    while not (number == math.inf or arb(number) >= top):
        number = math.nextafter(number, math.inf)
    return number


def below(value: arb) -> float:
    """A double that no number of the ball is smaller than."""
    return -above(-value)


def double(value: arb) -> float:
    """A double within a relative 2^-51 of every number of the ball, or within 2^-1000 of it.

    Undecided if the ball is too wide for that.
    """
    if not (value.is_finite() and value.rel_accuracy_bits() >= _ENOUGH_BITS):
        if value.is_finite() and above(abs(value)) < _SMALLEST:
            return 0.0
        raise Undecided(f"{value} is known to less than {_ENOUGH_BITS} bits: too little precision")
    return float(value.mid())


def floor(value: arb) -> int:
    """An integer at or below every number of the ball, the largest one if the ball is small."""
    found = value.lower().floor().unique_fmpz() if abs(value) < _ENORMOUS else None
    if found is None:
        raise Undecided("the working precision does not tell a loss from infinity")
    return int(found)


def ceil(value: arb) -> int:
    """An integer at or above every number of the ball."""
    return -floor(-value)
