"""The fraction of the users that is meant: the double that a file stores, or the decimal behind it.

0.9 as a double is slightly more than 9/10.  Whoever asks for 0.9 wants to be safe when nine of ten
users add noise, so the proof is for the smaller of the double and the shortest decimal that reads
as it; since more noise never hurts (exact_view.md, section 3), it holds for both.

In either case it is a fraction that was not chosen by the noise: who is missing must not depend on
the noise that was drawn (deploy/GUIDE.md).

Files of earlier versions were made and proved for the double, and they are read that way: the noise
on +1 and -1 of a file is rounded up from exactly what its fraction needs, so a file with too little
of it for the decimal was made for the double.
"""

from __future__ import annotations

from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from typing import TYPE_CHECKING

from accounting.base.enclosure import exactly

if TYPE_CHECKING:
    from paramsearch.parameters.parameter_file import ParameterFile


def as_written(honest: float) -> Fraction:
    """The fraction that is meant by this number as it is written, never more than the double."""
    return min(Fraction(honest), Fraction(repr(honest)))


def claimed_fraction(file: ParameterFile) -> Fraction:
    """The fraction of the users that the claim of a file is about."""
    honest = file.problem.honest
    written, stored = as_written(honest), Fraction(honest)
    if written < stored and not file.mechanism().central.thinned(written).share() >= 1:
        return stored
    return written


def in_words(honest: float, proved: Fraction) -> str:
    """The number as written, or, where slightly more users are needed, digits that show it."""
    if proved <= Fraction(repr(honest)):
        return exactly(honest)
    return str(Context(prec=17, rounding=ROUND_CEILING).create_decimal(Decimal(honest)))
