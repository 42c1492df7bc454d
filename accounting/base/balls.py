"""Small helpers for python-flint's real balls, and the working precision.

Why arb and not mpmath's intervals: an arb product of two polynomials of length 8192 at 128 bits
takes 16 ms and keeps the relative accuracy of *every* coefficient; mpmath's ``iv`` has no
polynomials and takes microseconds for every single operation (benchmarks/notary.py).

python-flint has one working precision for the whole process.  A ball is valid at any precision, but
only as small as the precision allows, and threads that set it concurrently would disturb each
other.  So one thread at a time works with balls, and the others wait.  They lose nothing, since
python-flint holds the interpreter lock; several proofs at once need processes.

python-flint is imported when it is first used: clients load this module, and may never need it.
"""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from functools import cache
from typing import TYPE_CHECKING

from accounting.base.errors import Undecided

if TYPE_CHECKING:
    from flint import arb

_ENOUGH_BITS = 60
"""Bits of relative accuracy with which a double can stand for a ball."""
_SMALLEST = 2.0**-1000
"""Balls of smaller numbers become 0 if they are not accurate."""
_turn = threading.RLock()


@contextmanager
def precision(bits: int) -> Iterator[None]:
    """Work with this number of bits, excluding other threads; then restore the previous setting."""
    from flint import ctx

    with _turn:
        before = ctx.prec
        ctx.prec = bits
        try:
            yield
        finally:
            ctx.prec = before


def _new_lock() -> None:
    """Make a new lock: in a forked process, the thread that held the old one may be missing."""
    global _turn  # noqa: PLW0603 - a property of the process
    _turn = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_new_lock)


def ball(value: Fraction | float) -> arb:
    """Return a ball around an exact number, rounded to the working precision."""
    from flint import arb, fmpq

    if isinstance(value, float):
        return arb(value)
    exact = Fraction(value)
    return arb(fmpq(exact.numerator, exact.denominator))


def log_of_rest(p: Fraction) -> arb:
    """log(1 - p) for 0 < p < 1, to the working precision also where p is next to 0 or to 1."""
    return (-ball(p)).log1p() if 2 * p < 1 else ball(1 - p).log()


def above(value: arb) -> float:
    """Return a double at or above every number of the ball."""
    top = value.upper()
    number = float(top)
    if math.isnan(number):
        return math.inf
    while not (number == math.inf or ball(number) >= top):
        number = math.nextafter(number, math.inf)
    return number


def below(value: arb) -> float:
    """Return a double at or below every number of the ball."""
    return -above(-value)


def double(value: arb) -> float:
    """Return a double within a relative 2^-51 of every number of the ball, or within 2^-1000 of it.

    Raises Undecided if the ball is too wide for that.
    """
    if not (value.is_finite() and value.rel_accuracy_bits() >= _ENOUGH_BITS):
        if value.is_finite() and above(abs(value)) < _SMALLEST:
            return 0.0
        raise Undecided(f"{value} is known to less than {_ENOUGH_BITS} bits: too little precision")
    return float(value.mid())


@cache
def _enormous() -> arb:
    """Tell whether a ball is too large to be converted to an integer: its exponent would crash the
    process."""
    return ball(2.0) ** (1 << 20)


def floor(value: arb) -> int:
    """Return an integer at or below every number of the ball, the largest one if the ball is
    small."""
    found = value.lower().floor().unique_fmpz() if abs(value) < _enormous() else None
    if found is None:
        raise Undecided("the working precision does not tell a loss from infinity")
    return int(found)


def ceil(value: arb) -> int:
    """Return an integer at or above every number of the ball."""
    return -floor(-value)
