"""Refusals of a data model in words: the place, the value, what is allowed, and the remedy."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import rfc8785
from pydantic import ValidationError

from accounting.base.enclosure import counted
from accounting.base.errors import InvalidConfiguration

_LONGEST_VALUE = 60
"""Number of characters of a refused value that are shown."""

Details = Mapping[str, Any]
"""What a kind of error says about itself, such as a bound."""

_PATTERNS = {
    r"^[1-9][0-9]*/[1-9][0-9]*$": "must be a positive fraction of whole numbers, such as 3/4",
    r"^[0-9a-f]{64}$": "must be the 64 hexadecimal digits of a SHA-256",
}
"""What a text of such a pattern is."""
_WORDS: dict[str, Callable[[Details], str]] = {
    "literal_error": lambda it: f"must be {it['expected']}",
    "greater_than": lambda it: f"must be more than {it['gt']:g}",
    "greater_than_equal": lambda it: f"must be at least {it['ge']:g}",
    "less_than": lambda it: f"must be less than {it['lt']:,g}",
    "less_than_equal": lambda it: f"must be at most {it['le']:,g}",
    "too_short": lambda it: f"must have at least {counted(it['min_length'], 'entry', 'entries')}",
    "too_long": lambda it: f"must have at most {counted(it['max_length'], 'entry', 'entries')}",
    "string_too_short": lambda it: f"must have at least {counted(it['min_length'], 'character')}",
    "string_too_long": lambda it: f"must have at most {counted(it['max_length'], 'character')}",
    "string_pattern_mismatch": lambda it: _PATTERNS.get(
        it["pattern"], f"must match the pattern {it['pattern']}"
    ),
    "union_tag_invalid": lambda it: (
        f"has the unknown law {it['tag']!r:.40}: it may be negative-binomial or burst"
    ),
    "value_error": lambda it: str(it["error"]),
}
"""Of a value of the right type, by the kind of error."""
_TYPES = {
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "int_parsing_size": "a whole number of 64 bits",
    "float_type": "a number",
    "finite_number": "a finite number",
    "string_type": "a text",
    "bool_type": "true or false",
    "none_required": "null",
    "tuple_type": "a list",
    "dict_type": "an object",
    "model_type": "an object",
    "model_attributes_type": "an object",
}
"""What is wanted instead of a value of another type, by the kind of error."""


@contextmanager
def refused_in_words(
    source: str, *, hint: str, alternatives: Collection[str] = ()
) -> Iterator[None]:
    """Turn a refusal of a model into one InvalidConfiguration that names the place and the value.

    Args:
        source: What is read, for the message.
        hint: Where the fields are described, for a field that is missing, unknown or of another
            type.
        alternatives: Names of alternative sections in the path of an error, which are no fields.
    """
    try:
        yield
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"] if part not in alternatives)
        raise InvalidConfiguration(f"{source}: {_in_words(first, where, hint)}") from None
    except rfc8785.CanonicalizationError as error:
        raise InvalidConfiguration(
            f"{source} has no canonical form (RFC 8785), which a hash needs: {error}; write whole "
            "numbers beyond 2**53 as texts, and leave out what is not finite"
        ) from error


def _in_words(error: Mapping[str, Any], where: str, hint: str) -> str:
    kind, given = error["type"], error["input"]
    if kind == "missing":
        return f"{where} is missing{_of_atom(given)}: add it; {hint}"
    if isinstance(given, (dict, list)):
        found = where or "it"
    else:
        found = f"{where or 'it'} = {given!r:.{_LONGEST_VALUE}}"
    if kind == "extra_forbidden":
        return f"{found} is unknown here: leave it out, or correct its name; {hint}"
    if kind in _WORDS:
        words = _WORDS[kind](error.get("ctx", {}))
        if kind == "value_error":
            return f"{found}: {words}" if where else words
        return f"{found} {words}"
    other = ", not an object" if isinstance(given, dict) else ""
    other = ", not a list" if isinstance(given, list) else other
    return f"{found} must be {_TYPES.get(kind, 'something else')}{other}; {hint}"


def _of_atom(section: object) -> str:
    """Return which atom's noise a section describes, and its law, if it is one."""
    if not isinstance(section, dict) or "atom" not in section:
        return ""
    law = f" with the law {section['law']!s:.40}" if "law" in section else ""
    if not law and "m" in section:
        law = ', which has an m but not "law": "burst"'
    return f" in the noise of atom {section['atom']!s:.40}{law}"
