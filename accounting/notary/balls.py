"""Small helpers around python-flint's real balls.

Why arb and not mpmath's intervals: an arb product of two polynomials of length 8192 at 128 bits
takes 16 ms and keeps the relative accuracy of *every* coefficient; mpmath's ``iv`` has no
polynomials and costs microseconds for each single operation (benchmarks/notary.py).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction

from flint import arb, ctx, fmpq

from accounting.errors import Undecided

_ENORMOUS = arb(2) ** (1 << 20)
"""No integer of this size is asked for; one with an enormous exponent would end the process."""


@contextmanager
def precision(bits: int) -> Iterator[None]:
    """Work with this many bits; the setting of the thread is restored."""
    before = ctx.prec
    ctx.prec = bits
    try:
        yield
    finally:
        ctx.prec = before


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


def floor(value: arb) -> int:
    """An integer at or below every number of the ball, the largest one if the ball is small."""
    found = value.lower().floor().unique_fmpz() if abs(value) < _ENORMOUS else None
    if found is None:
        raise Undecided("the working precision does not tell a loss from infinity")
    return int(found)


def ceil(value: arb) -> int:
    """An integer at or above every number of the ball."""
    return -floor(-value)
