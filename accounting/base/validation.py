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
SMALLEST_GAP = 1e-9
"""Smallest relative gap between two bounds that may be asked for."""


def real(name: str, value: object) -> float:
    """A finite float; the error names the value otherwise."""
    if type(value) is float and math.isfinite(value):
        return value
    if isinstance(value, bool) or not isinstance(value, SupportsFloat) or isinstance(value, str):
        raise InvalidParameter(f"{name} = {value!r} is not a number")
    try:
        number = float(value)
    except (OverflowError, ValueError, TypeError) as error:
        raise InvalidParameter(f"{name} = {value!r} is not a finite double") from error
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
    """A number strictly between 0 and 1."""
    number = real(name, value)
    if not 0 < number < 1:
        raise InvalidParameter(f"{name} = {number} must lie strictly between 0 and 1")
    return number


def gap_width(value: object) -> float:
    """A relative gap between two bounds, between SMALLEST_GAP and 1."""
    number = real("gap", value)
    if not SMALLEST_GAP <= number <= 1:
        raise InvalidParameter(f"gap = {number} must lie between {SMALLEST_GAP} and 1")
    return number


def whole(name: str, value: object, *, least: int, most: int = (1 << 53) - 1) -> int:
    """An integer between ``least`` and ``most``; floats that are integers are accepted."""
    if isinstance(value, bool) or not isinstance(value, (Integral, float)):
        raise InvalidParameter(f"{name} = {value!r} is not a whole number")
    if isinstance(value, float) and not value.is_integer():
        raise InvalidParameter(f"{name} = {value!r} is not a whole number")
    number = int(value)
    if number > most:
        shown = f"{number:,}" if number < 1 << 64 else "a number of many digits"
        raise InvalidParameter(f"{name} = {shown} must be at most {most:,}")
    if number < least:
        raise InvalidParameter(f"{name} = {number} must be at least {least}")
    return number


def share(name: str, value: object) -> float:
    """A fraction greater than 0 and at most 1."""
    number = real(name, value)
    if not 0 < number <= 1:
        raise InvalidParameter(f"{name} = {number} must be greater than 0 and at most 1")
    return number


def as_path(path: AnyPath) -> Path:
    """A path that is given as a string or a ``Path``."""
    try:
        return Path(path)
    except TypeError:
        raise InvalidParameter(f"{path!r:.60} is not a path: give a string or a Path") from None


def instance(name: str, value: object, kind: type | tuple[type, ...], remedy: str) -> None:
    """Refuse a value of another type, with what to give instead."""
    if not isinstance(value, kind):
        raise InvalidParameter(f"{name} = {value!r:.60} is a {type(value).__name__}; {remedy}")


def one_of(name: str, value: object, known: Sequence[str]) -> None:
    """Refuse a value that is not one of the known words."""
    if value not in known:
        close = get_close_matches(str(value), known, 1)
        meant = f"; did you mean {close[0]}?" if close else ""
        raise InvalidParameter(f"{name} = {value!r}; known: {', '.join(known)}{meant}")
