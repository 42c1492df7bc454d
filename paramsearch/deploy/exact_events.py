"""Events with an exact probability: a uniform number, read bit by bit, is compared with a real one.

``bernoulli(source, x)`` reads the bits of U = 0.b1 b2 ... until all numbers that begin with them
lie on one side of x, and returns whether U < x.  So the event has probability exactly x, and about
two bits are read on average.  All that is needed of x is floor(x 2^k) and ceil(x 2^k), computed
with integers for rational x and by ball arithmetic, as precise as it takes, for others.

``bernoulli_many`` reads 64 bits of each of many such numbers at once.  They decide all but one in
2^64 events, and for that one more bits are read: just as exact, many times faster, and with other
bits than one event after the other.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import TYPE_CHECKING, Protocol

import numpy as np

from accounting.base.arrays import BoolArray, IntArray, WordArray
from accounting.base.balls import ball, ceil, floor, precision
from accounting.base.errors import InvalidParameter, Undecided
from paramsearch.deploy.bits import BitSource

if TYPE_CHECKING:
    from flint import arb

_WORD = 64
"""Bits of the bounds that are computed in advance, and guard bits of ball arithmetic."""
_BLOCK = 512
"""Bytes of random keys that are read at a time."""
_MOST_BITS = 1 << 16
"""Largest working precision of ball arithmetic, in bits."""


class Probability(Protocol):
    """A number x in [0, 1]; ``low`` and ``high`` are ``bounds(64)``."""

    low: int
    high: int

    def bounds(self, bits: int) -> tuple[int, int]:
        """floor(x 2^bits) and ceil(x 2^bits)."""


class RationalProbability:
    """A probability that is written down as a fraction."""

    __slots__ = ("_value", "high", "low")

    def __init__(self, value: Fraction) -> None:
        if not 0 <= value <= 1:
            raise InvalidParameter(f"{value} is not a probability: give a number from 0 to 1")
        self._value = value
        self.low, self.high = self.bounds(_WORD)

    def bounds(self, bits: int) -> tuple[int, int]:
        top = self._value.numerator << bits
        return top // self._value.denominator, -(-top // self._value.denominator)


class ComputedProbability:
    """A probability that ball arithmetic computes to any precision: an irrational one, or one whose
    denominator is too long to write down."""

    __slots__ = ("_ball", "high", "low")

    def __init__(self, ball: Callable[[], arb]) -> None:
        self._ball = ball
        self.low, self.high = self.bounds(_WORD)

    def bounds(self, bits: int) -> tuple[int, int]:
        working = bits + _WORD
        while working <= _MOST_BITS:
            with precision(working):
                scaled = self._ball() * ball(2.0) ** bits
                # with too few bits, a power may be a ball wider than any integer in memory
                if abs(scaled) < ball(2.0) ** (bits + 1):
                    low, high = floor(scaled.lower()), ceil(scaled.upper())
                    if high - low == 1:
                        return low, high
            working *= 2
        raise Undecided(f"a probability cannot be distinguished from a multiple of 2^-{bits}")


def bernoulli(source: BitSource, probability: Probability, u: int = 0, read: int = 0) -> bool:
    """Tell whether the uniform number that begins with the next bits is less than the probability.

    ``u`` is made of the first ``read`` of its bits, at most 64, if these have been read already.
    """
    low, high, size = probability.low, probability.high, _WORD
    while True:
        unread = size - read
        if (u + 1) << unread <= low:
            return True
        if u << unread >= high:
            return False
        if not unread:
            size *= 2
            low, high = probability.bounds(size)
        u = u << 1 | source.bits(1)
        read += 1


def uniform(source: BitSource, count: int) -> int:
    """A uniform integer in 0..count-1, by rejection."""
    bits = (count - 1).bit_length()
    while True:
        found = source.bits(bits)
        if found < count:
            return found


def shuffle(source: BitSource, items: list[int]) -> None:
    """Put a list into a uniformly random order, in place: from the last place down to the second,
    each gets one of the items that are not placed yet."""
    for last in range(len(items) - 1, 0, -1):
        chosen = uniform(source, last + 1)
        items[last], items[chosen] = items[chosen], items[last]


def random_words(source: BitSource, count: int) -> WordArray:
    """Uniform numbers of 64 bits."""
    size = 8 * count
    blocks = [min(_BLOCK, size - begin) for begin in range(0, size, _BLOCK)]
    words = b"".join(source.bits(8 * block).to_bytes(block, "big") for block in blocks)
    return np.frombuffer(words, ">u8").astype(np.uint64)


def bernoulli_many(source: BitSource, probability: Probability, count: int) -> BoolArray:
    """Draw ``count`` independent Bernoulli trials of one probability; return which succeed."""
    low, high = probability.low, probability.high
    words = random_words(source, count)
    if low >> _WORD:
        return np.ones(count, np.bool_)
    happened = np.asarray(words < np.uint64(low))
    if low < high:
        for i in np.flatnonzero(words == np.uint64(low)):
            happened[i] = bernoulli(source, probability, int(words[i]), _WORD)
    return happened


def uniform_many(source: BitSource, limits: IntArray) -> IntArray:
    """For each of these limits, from 1 to 2^53, an independent uniform integer below it."""
    found = np.zeros(len(limits), np.int64)
    bits = np.frexp((limits - 1).astype(float))[1].astype(np.uint64)
    left = np.flatnonzero(limits > 1)
    while len(left):
        drawn = random_words(source, len(left)) >> (np.uint64(_WORD) - bits[left])
        good = drawn < limits[left].astype(np.uint64)
        found[left[good]] = drawn[good]
        left = left[~good]
    return found


def random_order(source: BitSource, count: int) -> IntArray:
    """The indices 0..count-1 in a uniformly random order, fast for many: sorted by random keys,
    which are drawn again in the rare case that two of them are equal."""
    while True:
        keys = random_words(source, count)
        order = np.argsort(keys)
        if not (np.diff(keys[order]) == 0).any():
            return order
