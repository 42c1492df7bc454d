"""JSON from outside: UTF-8, of bounded size, no duplicate keys, no NaN or infinity.

Every failure is one InvalidConfiguration that names the source and the cause.
"""

from __future__ import annotations

import json
import math
import os
import stat
from collections import Counter
from typing import Any

from accounting.base.errors import InvalidConfiguration
from accounting.base.validation import AnyPath, as_path

LARGEST_FILE = 64 << 20
"""Bytes."""
_MOST_DIGITS = 640
"""Python turns texts with as many digits into integers whatever the limit is set to."""


def read(path: AnyPath) -> Any:
    """Read the value in a file."""
    return parse(read_text(path), source=str(path))


def read_text(path: AnyPath) -> str:
    return decoded(read_bytes(path), source=str(path))


def decoded(content: bytes, *, source: str) -> str:
    """Decode bytes in UTF-8; errors name the source."""
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InvalidConfiguration(f"{source} is not UTF-8: {error.reason}") from error


def read_bytes(path: AnyPath, *, most: int = LARGEST_FILE) -> bytes:
    """Read a regular file; reading a pipe or a device might never end."""
    path = as_path(path)
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise InvalidConfiguration(f"{path} is not a regular file")
        with open(path, "rb") as stream:
            content = stream.read(most + 1)
    except OSError as error:
        raise InvalidConfiguration(f"cannot read {path}: {error.strerror}") from error
    except ValueError as error:  # a name with a null character
        if isinstance(error, InvalidConfiguration):
            raise
        raise InvalidConfiguration(f"cannot read {str(path)!r:.80}: {error}") from error
    if len(content) > most:
        size = f"{most >> 20} MiB" if most >> 20 else f"{most >> 10} KiB"
        raise InvalidConfiguration(f"{path} is larger than {size}")
    return content


def parse(text: str, *, source: str) -> Any:
    """Parse a JSON text; errors name the source."""
    try:
        return json.loads(
            text,
            object_pairs_hook=_no_duplicates,
            parse_constant=_no_constant,
            parse_float=_finite,
            parse_int=_integer,
        )
    except InvalidConfiguration as error:
        raise InvalidConfiguration(f"{source}: {error}") from error
    except (ValueError, RecursionError) as error:
        raise InvalidConfiguration(f"{source} is not JSON: {error}") from error


def _no_duplicates(items: list[tuple[str, Any]]) -> dict[str, Any]:
    out = dict(items)
    if len(out) != len(items):
        ((repeated, _),) = Counter(name for name, _ in items).most_common(1)
        raise InvalidConfiguration(f"the key {repeated!r} is given twice")
    return out


def _no_constant(name: str) -> Any:
    raise InvalidConfiguration(f"{name} is not a number here")


def _integer(text: str) -> int:
    if len(text) > _MOST_DIGITS:
        raise InvalidConfiguration(
            f"the whole number {text[:20]}... has {len(text):,} digits, and none here has as many "
            f"as {_MOST_DIGITS}: correct it"
        )
    return int(text)


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise InvalidConfiguration(f"{text[:40]} is not a finite double")
    return number
