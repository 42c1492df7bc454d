"""Domain checks for numbers and paths that come from outside."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from difflib import get_close_matches
from numbers import Integral
from pathlib import Path
from typing import SupportsFloat

from accounting.base.errors import InvalidParameter

AnyPath = str | os.PathLike[str]
"""A path to a file or folder: a string or a ``Path``."""
_LONGEST = 60
"""Largest number of characters that are shown of a value."""
_LONGEST_INTEGER = 256
"""Largest number of bits of an integer that is shown."""
SMALLEST_GAP = 1e-9
"""Smallest relative gap between two bounds that may be asked for."""


def shown(value: object, longest: int = _LONGEST) -> str:
    """Return a short text for a value of any kind, for messages.

    Python refuses to write out integers of thousands of digits, also within other objects.

    >>> shown("a" * 100, longest=10), shown(-(10**5000))
    ("'aaaaaaaaa", 'a number of 5,001 digits')
    """
    if isinstance(value, int) and value.bit_length() > _LONGEST_INTEGER:
        digits = math.floor(value.bit_length() * math.log10(2)) + 1  # or one more than there are
        return f"a number of {digits:,} digits"
    try:
        return repr(value)[:longest]
    except ValueError:
        return f"a {type(value).__name__} of thousands of digits"


def real(name: str, value: object) -> float:
    """Return a finite float; the error names the value otherwise."""
    if type(value) is float and math.isfinite(value):
        return value
    if isinstance(value, bool) or not isinstance(value, SupportsFloat) or isinstance(value, str):
        raise InvalidParameter(f"{name} = {shown(value)} is not a number")
    try:
        number = float(value)
    except (OverflowError, ValueError, TypeError) as error:
        raise InvalidParameter(f"{name} = {shown(value)} is not a finite double") from error
    if not math.isfinite(number):
        raise InvalidParameter(f"{name} = {number} is not finite")
    return number


def positive(name: str, value: object) -> float:
    number = real(name, value)
    if number <= 0:
        raise InvalidParameter(f"{name} = {number} must be greater than 0")
    return number


def not_negative(name: str, value: object) -> float:
    number = real(name, value)
    if number < 0:
        raise InvalidParameter(f"{name} = {number} must not be negative")
    return number


def probability(name: str, value: object) -> float:
    """Return a number strictly between 0 and 1, or refuse the value."""
    number = real(name, value)
    if not 0 < number < 1:
        raise InvalidParameter(f"{name} = {number} must lie strictly between 0 and 1")
    return number


def gap_width(value: object) -> float:
    """Return a relative gap between two bounds, between SMALLEST_GAP and 1, or refuse the value."""
    number = real("gap", value)
    if not SMALLEST_GAP <= number <= 1:
        raise InvalidParameter(f"gap = {number} must lie between {SMALLEST_GAP} and 1")
    return number


def whole(name: str, value: object, *, least: int, most: int = (1 << 53) - 1) -> int:
    """Return an integer between ``least`` and ``most``, or refuse the value; floats that are
    integers are accepted."""
    if isinstance(value, bool) or not isinstance(value, (Integral, float)):
        raise InvalidParameter(f"{name} = {shown(value)} is not a whole number")
    if isinstance(value, float) and not value.is_integer():
        raise InvalidParameter(f"{name} = {shown(value)} is not a whole number")
    number = int(value)
    if number > most:
        given = f"{number:,}" if number < 1 << 64 else "a number of many digits"
        raise InvalidParameter(f"{name} = {given} must be at most {most:,}")
    if number < least:
        raise InvalidParameter(f"{name} = {shown(number)} must be at least {least}")
    return number


def share(name: str, value: object) -> float:
    """Return a fraction greater than 0 and at most 1, or refuse the value."""
    number = real(name, value)
    if not 0 < number <= 1:
        raise InvalidParameter(f"{name} = {number} must be greater than 0 and at most 1")
    return number


def as_path(path: AnyPath) -> Path:
    """Return the path that is given as a string or a ``Path``."""
    try:
        return Path(path)
    except TypeError:
        raise InvalidParameter(f"{shown(path)} is not a path: give a string or a Path") from None


def instance(name: str, value: object, kind: type | tuple[type, ...], remedy: str) -> None:
    """Refuse a value of another type, with what to give instead."""
    if not isinstance(value, kind):
        raise InvalidParameter(f"{name} = {shown(value)} is a {type(value).__name__}; {remedy}")


def one_of(name: str, value: object, known: Sequence[str]) -> None:
    """Refuse a value that is not one of the known words."""
    if value not in known:
        close = get_close_matches(value, known, 1) if isinstance(value, str) else []
        meant = f"; did you mean {close[0]}?" if close else ""
        raise InvalidParameter(f"{name} = {shown(value)}; known: {', '.join(known)}{meant}")
