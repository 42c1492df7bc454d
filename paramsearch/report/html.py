"""Text, numbers and markup for the report; everything that is not markup is escaped."""

from __future__ import annotations

import re
from collections.abc import Iterable
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal
from fractions import Fraction
from html import escape
from typing import Literal

from paramsearch.parameters.words import atom_in_words

Side = Literal["nearest", "lower", "upper"]
_ROUNDING = {"nearest": ROUND_HALF_EVEN, "lower": ROUND_FLOOR, "upper": ROUND_CEILING}
_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_LONGEST = 200
"""Largest number of characters shown of a text from the audited file."""
_LONGEST_SENTENCE = 2000
"""Largest number of characters shown of a reason, which may quote the audited file."""
LARGEST_TABLE = 2000
"""Largest number of rows shown of a table; a file may have a million atoms."""
Fact = tuple[str, str]
"""A name and its value."""


class Html(str):
    """Markup.  Any other string is escaped when it becomes part of an element."""

    __slots__ = ()


def element(name: str, *children: str, **attributes: object) -> Html:
    """An element; ``class_`` and ``aria_label`` become class and aria-label, None is left out."""
    given = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(str(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    return Html(f"<{name}{given}>{join(children)}</{name}>")


def join(parts: Iterable[str]) -> Html:
    """Concatenate markup and text."""
    return Html("".join(part if isinstance(part, Html) else escape(part) for part in parts))


def section(name: str, heading: str, *content: str) -> Html:
    title = element("h2", heading, id=name)
    return element("section", title, *content, aria_labelledby=name)


def facts(items: Iterable[Fact]) -> Html:
    """A list of names and values."""
    rows = [element("div", element("dt", name), element("dd", value)) for name, value in items]
    return element("dl", *rows)


def table(
    caption: str, heads: Iterable[str], rows: Iterable[Iterable[str]], kind: str = ""
) -> Html:
    """A table in a box that can be scrolled, also by keyboard; the first column names the row."""
    head = element("tr", *(element("th", text, scope="col") for text in heads))
    body = []
    for first, *rest in rows:
        cells = (element("td", text) for text in rest)
        body.append(element("tr", element("th", first, scope="row"), *cells))
    whole = element(
        "table", element("caption", caption), element("thead", head), element("tbody", *body)
    )
    return element(
        "div", whole, class_=f"box {kind}".rstrip(), role="region", tabindex=0, aria_label=caption
    )


def untrusted(text: str, longest: int = _LONGEST) -> str:
    """A text from the audited file, cut to a readable length and with invisible characters
    replaced."""
    cut = text if len(text) <= longest else text[:longest] + " …"
    return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in cut)


def sentence(text: str) -> Html:
    """A sentence of the audit, with symbols and numbers written as in the rest of the report."""
    shown = untrusted(text, _LONGEST_SENTENCE)
    words = re.sub(r"\bdelta\b", "δ", re.sub(r"\beps\b", "ε", shown))
    words = words if words.startswith(("δ", "ε")) else words[:1].upper() + words[1:]
    words = words if words.endswith("…") else words.rstrip(".") + "."
    pieces = re.split(r"((?<![\w.])\d(?:\.\d+)?e[-+]\d+(?!\w))", words)
    for i in range(1, len(pieces), 2):
        pieces[i] = element("span", _scientific(Decimal(pieces[i])), class_="number")
    return join(pieces)


def number(value: float, digits: int | None = None, side: Side = "nearest") -> Html:
    """A readable number with the exact double in its title.

    With ``digits`` it is rounded to that many digits; a bound is rounded to its own side.
    """
    return _number(_decimal(value, digits, side), repr(value))


def quotient(value: Fraction, *, exact: str, digits: int = 6) -> Html:
    """A rational as a decimal, with its exact form in the title."""
    return _number(_divided(value, digits), exact)


def probability(value: Fraction, *, exact: str) -> Html:
    """A probability with enough digits to show how far below 1 it is."""
    nines = -_divided(1 - value, 1).adjusted() - 1
    return quotient(value, exact=exact, digits=6 + nines)


def share(part: float) -> Html:
    """A fraction as a percentage."""
    return element("span", f"{100 * part:.3g} %", class_="number", title=repr(part))


def percent(share: str) -> str:
    """A fraction written as a decimal as a percentage with the same digits."""
    return f"{_plain(Decimal(share).scaleb(2))} %"


def label(value: float, digits: int | None = None, side: Side = "nearest") -> str:
    """A number as plain text, for drawings and titles."""
    found = _decimal(value, digits, side)
    if not _is_scientific(found):
        return _plain(found)
    mantissa, exponent = _split(found)
    return f"{mantissa} × {power(exponent)}" if mantissa != "1" else power(exponent)


def power(exponent: int) -> str:
    """A power of ten as plain text."""
    return "10" + str(exponent).translate(_RAISED)


def atom_text(atom: tuple[int, ...]) -> str:
    """An atom as a text like {5, −1 × 5}."""
    return atom_in_words(atom).replace("-", "−").replace(" x ", " × ")


def _signed(value: int) -> str:
    return f"{value:,}".replace("-", "−")


def _decimal(value: float, digits: int | None, side: Side) -> Decimal:
    if digits is None:
        return Decimal(repr(value))
    exact = Decimal(value)
    # all digits before the decimal point are kept where they are written out
    kept = digits if _is_scientific(exact) else max(digits, exact.adjusted() + 1)
    found = Context(prec=kept, rounding=_ROUNDING[side]).create_decimal(exact)
    if side == "nearest" or not _is_scientific(found):
        return found.normalize()
    return found.quantize(Decimal((0, (1,), found.adjusted() - digits + 1)))  # bounds line up


def _divided(value: Fraction, digits: int) -> Decimal:
    return Context(prec=digits).divide(Decimal(value.numerator), Decimal(value.denominator))


def _is_scientific(value: Decimal) -> bool:
    return value != 0 and not -4 < value.adjusted() < 7


def _number(value: Decimal, exact: str) -> Html:
    shown = _scientific(value) if _is_scientific(value) else _plain(value)
    return element("span", shown, class_="number", title=exact)


def _plain(value: Decimal) -> str:
    text = f"{value:,f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _split(value: Decimal) -> tuple[str, int]:
    exponent = value.adjusted()
    return f"{value.scaleb(-exponent):f}", exponent


def _scientific(value: Decimal) -> Html:
    mantissa, exponent = _split(value)
    raised = element("sup", _signed(exponent))
    return join([f"{mantissa} × 10" if mantissa != "1" else "10", raised])
