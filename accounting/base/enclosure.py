"""Two-sided bounds, and how they and results are shown."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from html import escape
from itertools import accumulate

from accounting.base.errors import InternalError

_LONGEST_LINE = 300
"""Largest number of characters shown of a line of a summary."""


def at_most(value: float) -> str:
    """Round the value up to six digits."""
    return _six_digits(value, ROUND_CEILING)


def at_least(value: float) -> str:
    """Round the value down to six digits."""
    return _six_digits(value, ROUND_FLOOR)


def exactly(value: float) -> str:
    """Return the shortest text that stands for this double."""
    return repr(value).removesuffix(".0")


def readings(value: float) -> tuple[float, float]:
    """Return the largest double at or below, and the smallest one at or above, both readings of a
    number.

    A number in a file or an option is read as a double or as the decimal that stands there: 0.1 as
    a double is slightly more than 1/10.  A bound that has to hold for both readings is proved for
    one of these two doubles, of which at least one is the number itself.

    Args:
        value: The double; its decimal is the shortest text that stands for it.

    Returns:
        The double below and the double above.

    >>> readings(0.5)
    (0.5, 0.5)
    >>> low, high = readings(0.1)
    >>> Fraction(low) < Fraction(1, 10) < Fraction(high), high == 0.1
    (True, True)
    """
    value = float(value)  # the decimal of another type would not be its shortest text
    stored, written = Fraction(value), Fraction(repr(value))
    low = math.nextafter(value, -math.inf) if written < stored else value
    high = math.nextafter(value, math.inf) if written > stored else value
    return low, high


def counted(count: int, noun: str, plural: str | None = None) -> str:
    """Return a count and the thing that is counted, in the singular or the plural.

    >>> counted(1, "run"), counted(0, "run"), counted(1200, "entry", "entries")
    ('1 run', '0 runs', '1,200 entries')
    """
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"


def _six_digits(value: float, rounding: str) -> str:
    if not math.isfinite(value):
        return str(value)
    decimal = Context(prec=6, rounding=rounding).create_decimal(Decimal(value))
    # denormal doubles have fewer than six digits
    return f"{float(decimal):.6g}" if abs(value) > 1e-300 or not value else f"{decimal:.6g}"


class Summarized:
    """An object that is shown as two lines, in a notebook as well; it may hold millions of numbers.

    >>> class Sum(Summarized):
    ...     def summary(self) -> tuple[str, str]:
    ...         return "1 < 2", "two numbers"
    >>> Sum()
    <Sum 1 < 2
     two numbers>
    >>> Sum()._repr_html_()
    '<div><strong>Sum</strong> 1 &lt; 2<br>two numbers</div>'
    """

    def summary(self) -> tuple[str, str]:
        """Return what the object is, and its most important numbers."""
        raise NotImplementedError

    def __repr__(self) -> str:
        first, second = map(_line, self.summary())
        return f"<{type(self).__name__} {first}\n {second}>"

    def _repr_html_(self) -> str:
        first, second = (escape(_line(text)) for text in self.summary())
        return f"<div><strong>{type(self).__name__}</strong> {first}<br>{second}</div>"


def _line(text: str) -> str:
    """Return one printable line of bounded length, whatever a file or a path contains."""
    cut = text if len(text) <= _LONGEST_LINE else text[:_LONGEST_LINE] + " …"
    return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in cut)


@dataclass(frozen=True)
class Enclosure:
    """A proven statement ``lower <= truth <= upper``; not an estimate.

    Printed bounds are rounded outward.

    Args:
        lower: The lower bound.
        upper: The upper bound.

    Raises:
        InternalError: If the lower bound exceeds the upper bound.

    >>> found = Enclosure(0.1, 0.2)
    >>> print(found, 0.15 in found, found.relative_gap)
    [0.1, 0.200001] True 0.5
    """

    lower: float
    upper: float

    def __post_init__(self) -> None:
        if not self.lower <= self.upper:
            raise InternalError(
                f"not an enclosure: [{self.lower!r}, {self.upper!r}]; bounds that are proved "
                "cannot cross: please report the configuration"
            )

    @property
    def relative_gap(self) -> float:
        """(upper - lower) / upper; 0 when both are 0."""
        return (self.upper - self.lower) / self.upper if self.upper > 0 else 0.0

    def as_written(self) -> Enclosure:
        """Return the same bounds, moved outward by the last digit where their decimals need that.

        What is printed or stored as JSON may be read as a decimal, which is then a bound as well.

        >>> Enclosure(0.1, 0.9).as_written()
        Enclosure(lower=0.1, upper=0.9000000000000001)
        """
        lower, upper = self.lower, self.upper
        if readings(lower)[1] > lower:
            lower = math.nextafter(lower, -math.inf)
        if readings(upper)[0] < upper:
            upper = math.nextafter(upper, math.inf)
        return Enclosure(lower, upper)

    def __contains__(self, value: float) -> bool:
        return self.lower <= value <= self.upper

    def __str__(self) -> str:
        return f"[{at_least(self.lower)}, {at_most(self.upper)}]"


def monotone(found: Sequence[Enclosure]) -> list[Enclosure]:
    """Tighten enclosures of delta at increasing eps: the truth does not increase with eps."""
    upper = list(accumulate((e.upper for e in found), min))
    lower = list(accumulate((e.lower for e in reversed(found)), max))[::-1]
    return [Enclosure(low, high) for low, high in zip(lower, upper, strict=True)]


def with_point(
    curve: Iterable[tuple[float, Enclosure]], eps: float, known: Enclosure
) -> list[tuple[float, Enclosure]]:
    """Return a profile with the bounds that are known at one eps, tightened by them elsewhere.

    Args:
        curve: Pairs (eps, bounds of delta).
        eps: Where delta was evaluated by itself; replaces the pair of the same eps.
        known: The bounds there.

    Returns:
        Pairs by increasing eps, both bounds monotone.

    >>> curve = [(1.0, Enclosure(0.2, 0.4)), (2.0, Enclosure(0.1, 0.3))]
    >>> with_point(curve, 1.0, Enclosure(0.2, 0.25))
    [(1.0, Enclosure(lower=0.2, upper=0.25)), (2.0, Enclosure(lower=0.1, upper=0.25))]
    """
    bounds = {**dict(curve), eps: known}
    grid = sorted(bounds)
    return list(zip(grid, monotone([bounds[at] for at in grid]), strict=True))
