"""Exact samplers for the Poisson, logarithmic and burst laws, and for weighted choices.

Logarithmic(p), P(k) = p^k / (-k log(1 - p)), is drawn by rejection.  Let M be the least integer
with 2^M (1 - p) >= 1.  Values lie in the blocks [2^j, 2^(j+1)), j < M, and [2^M, infinity).  In
block j, p^k / 2^j is at least p^k / k and less than twice that (up to the last block, which decays
anyway); its total weight

    (p^(2^j) - p^(2^(j+1))) / (2^j (1 - p)),  in the last block  p^(2^M) / (2^M (1 - p)),

chooses the block.  Within it k - 2^j is geometric, truncated after 2^j values: its binary digits
are independent, and digit i is 1 with probability p^(2^i) / (1 + p^(2^i)).  In the last block the
digits from M on form another geometric number, with p^(2^M), so that k - 2^M is geometric without
truncation.  Finally k is accepted with probability 2^j / k.

A burst has 1 + G_1 + ... + G_m copies, the G_i independent geometric numbers.

``draw`` reads bit by bit, as the specification of clients says.  The methods for many draws at once
have the same laws, but read other bits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from accounting.base.arrays import IntArray
from accounting.base.balls import ball
from accounting.base.deadline import check_time
from accounting.base.errors import TooLarge
from paramsearch.deploy.bits import BitSource
from paramsearch.deploy.exact_events import (
    ComputedProbability,
    Probability,
    RationalProbability,
    bernoulli,
    bernoulli_many,
    uniform_many,
)

if TYPE_CHECKING:
    from flint import arb

Number = Any
"""A fraction, or a ball (``arb``) where the fraction would be too long."""
_LARGEST_RATE = 1 << 32
"""Largest expected number of events of one draw; each takes microseconds."""
_CLOCK_MASK = (1 << 12) - 1
"""The deadline is checked at every piece whose number has none of these bits."""
_LONGEST_EXACT = 1 << 14
"""Longest denominator of p^(2^M), in bits, up to which fractions are used."""
AT_ONCE = 1 << 16
"""Largest number of events that are drawn at once."""
_MOST_DIGITS = 32
"""Largest M of numbers that are drawn at once, as integers of 64 bits."""


class Poisson:
    """The Poisson law with a rational rate.

    It is drawn as a sum of pieces of rate at most 1, each through its hazards P(N > k) / P(N >= k).
    These are irrational, since e^rate is transcendental.
    """

    def __init__(self, rate: Fraction) -> None:
        if rate > _LARGEST_RATE:
            magnitude = len(str(math.floor(rate))) - 1
            raise TooLarge(
                f"about 10^{magnitude} noise events are too many to be drawn one by one (at most "
                f"{_LARGEST_RATE:,} are); there are too few users for this rate"
            )
        self.rate = rate
        self.pieces = max(1, math.ceil(rate))
        self._rate = rate / self.pieces
        self._hazards: dict[int, Probability] = {}
        if rate:
            self._hazard(0)

    def draw(self, source: BitSource) -> int:
        if not self.rate:
            return 0
        total = 0
        for piece in range(self.pieces):
            if not piece & _CLOCK_MASK:
                check_time()
            k = 0
            while bernoulli(source, self._hazard(k)):
                k += 1
            total += k
        return total

    def draw_at_once(self, source: BitSource) -> int:
        """A draw with all pieces together."""
        total, k, going = 0, 0, self.pieces if self.rate else 0
        while going:
            going = _count_events(source, self._hazard(k), going)
            total += going
            k += 1
        return total

    def _hazard(self, k: int) -> Probability:
        found = self._hazards.get(k)
        if found is None:
            found = self._hazards[k] = ComputedProbability(lambda: self._ratio(k))
        return found

    def _ratio(self, k: int) -> arb:
        from flint import arb

        rate = ball(self._rate)
        term = rate**k / arb(math.factorial(k))
        below = sum((rate**i / arb(math.factorial(i)) for i in range(k)), arb(0))
        at_least = rate.exp() - below
        return (at_least - term) / at_least


class Geometric:
    """The geometric law, P(k) = (1 - p) p^k for k = 0, 1, ..., by its binary digits.

    ``last`` is the least M with 2^M (1 - p) >= 1: digits below M are drawn one by one, and 2^M is
    added as long as an event of probability p^(2^M) happens.
    """

    def __init__(self, p: Fraction) -> None:
        self.p = p
        self.last = max(0, math.ceil(1 / (1 - p)) - 1).bit_length()
        bits = p.denominator.bit_length() << self.last
        self._exact = bits <= _LONGEST_EXACT
        # computed here, so that an unusable p is reported before anything is drawn
        self._digits: list[Probability] = [
            RationalProbability(p / (1 + p))
        ]  # only this one can be dyadic
        self._digits += [self.probability(self._digit, i) for i in range(1, self.last)]
        self._again = self.probability(self.power, self.last)

    def draw(self, source: BitSource) -> int:
        k = self.truncated(source, self.last)
        while bernoulli(source, self._again):
            k += 1 << self.last
        return k

    def draw_many(self, source: BitSource, count: int) -> IntArray:
        """Draw ``count`` independent numbers."""
        k = np.zeros(count, np.int64)
        self.add_digits(source, k, np.full(count, self.last))
        return k

    def add_digits(self, source: BitSource, k: IntArray, digits: IntArray) -> None:
        """Add to every k a draw conditioned to be less than 2^digits, or an unconditioned one where
        ``digits`` is ``last``.

        Raises:
            TooLarge: If p is so close to 1 that draws may exceed integers of 64 bits.
        """
        if self.last > _MOST_DIGITS:
            raise TooLarge(f"1 - p = {float(1 - self.p):.3g} is too small to draw many at once")
        for i in range(self.last):
            chosen = np.flatnonzero(digits > i)
            k[chosen] += bernoulli_many(source, self._digits[i], len(chosen)).astype(np.int64) << i
        going = np.flatnonzero(digits == self.last)
        while len(going):
            going = going[bernoulli_many(source, self._again, len(going))]
            k[going] += 1 << self.last

    def truncated(self, source: BitSource, digits: int) -> int:
        """A draw conditioned to be less than 2^digits, where ``digits`` is at most ``last``."""
        return sum(1 << i for i in range(digits) if bernoulli(source, self._digits[i]))

    def power(self, i: int) -> Number:
        """p^(2^i)."""
        return self.p ** (1 << i) if self._exact else ball(self.p) ** (1 << i)

    def probability(self, value: Callable[[int], Number], argument: int) -> Probability:
        """The value of a function that is made of powers."""
        if self._exact:
            return RationalProbability(Fraction(value(argument)))
        return ComputedProbability(lambda: value(argument))

    def _digit(self, i: int) -> Number:
        return self.power(i) / (1 + self.power(i))


class Logarithmic:
    """The logarithmic law: P(k) is proportional to p^k / k for k = 1, 2, ..."""

    def __init__(self, p: Fraction) -> None:
        self._geometric = Geometric(p)
        self.last = self._geometric.last
        self._stops = [self._geometric.probability(self._stop, j) for j in range(self.last)]

    def draw(self, source: BitSource) -> int:
        while True:
            block = 0
            while block < self.last and not bernoulli(source, self._stops[block]):
                block += 1
            k = 1 << block
            if block < self.last:
                k += self._geometric.truncated(source, block)
            else:
                k += self._geometric.draw(source)
            if k == 1 << block or bernoulli(source, RationalProbability(Fraction(1 << block, k))):
                return k

    def draw_many(self, source: BitSource, count: int) -> IntArray:
        """Draw ``count`` independent numbers."""
        found = np.zeros(count, np.int64)
        left = np.arange(count)
        while len(left):
            block, going = np.zeros(len(left), np.int64), np.arange(len(left))
            for stop in self._stops:
                going = going[~bernoulli_many(source, stop, len(going))]
                block[going] += 1
            k = np.left_shift(1, block)
            self._geometric.add_digits(source, k, block)
            taken = uniform_many(source, k) < np.left_shift(1, block)
            found[left[taken]] = k[taken]
            left = left[~taken]
        return found

    def _weight(self, block: int) -> Number:
        """The total weight of a block, times 1 - p."""
        mass = self._geometric.power(block)
        if block < self.last:
            mass = mass - self._geometric.power(block + 1)
        return mass / (1 << block)

    def _stop(self, block: int) -> Number:
        """The weight of a block divided by the weight of it and all later blocks."""
        weights = [self._weight(j) for j in range(block, self.last + 1)]
        return weights[0] / sum(weights[1:], weights[0])


class Burst:
    """The number of copies of a burst: 1 + G_1 + ... + G_m, each G_i geometric."""

    def __init__(self, p: Fraction, m: int) -> None:
        self._geometric, self.m = Geometric(p), m

    def draw(self, source: BitSource) -> int:
        return 1 + sum(self._geometric.draw(source) for _ in range(self.m))

    def draw_many(self, source: BitSource, count: int) -> IntArray:
        """Draw ``count`` independent numbers."""
        parts = self._geometric.draw_many(source, self.m * count)
        return np.asarray(1 + parts.reshape(self.m, count).sum(axis=0))


class Choice:
    """An index with probability proportional to its weight, by bisection of the list."""

    def __init__(self, weights: Sequence[Fraction]) -> None:
        common = math.lcm(*(weight.denominator for weight in weights))
        whole = [int(weight * common) for weight in weights]
        self._sums = [0]
        for weight in whole:
            self._sums.append(self._sums[-1] + weight)
        self._left = cache(self._left_share)

    def draw(self, source: BitSource) -> int:
        begin, end = 0, len(self._sums) - 1
        while end - begin > 1:
            middle = (begin + end) // 2
            if bernoulli(source, self._left(begin, middle, end)):
                end = middle
            else:
                begin = middle
        return begin

    def counts(self, source: BitSource, draws: int) -> IntArray:
        """Return how often each index is drawn in ``count`` independent draws."""
        found = np.zeros(len(self._sums) - 1, np.int64)
        waiting = [(0, len(found), draws)]
        while waiting:
            begin, end, number = waiting.pop()
            if end - begin == 1 or not number:
                found[begin] += number
                continue
            middle = (begin + end) // 2
            left = _count_events(source, self._left(begin, middle, end), number)
            waiting += [(begin, middle, left), (middle, end, number - left)]
        return found

    def _left_share(self, begin: int, middle: int, end: int) -> RationalProbability:
        left, whole = (self._sums[to] - self._sums[begin] for to in (middle, end))
        return RationalProbability(Fraction(left, whole))


def _count_events(source: BitSource, probability: Probability, count: int) -> int:
    """Draw the number of successes in ``count`` Bernoulli trials."""
    happened = 0
    for begin in range(0, count, AT_ONCE):
        check_time()
        some = bernoulli_many(source, probability, min(AT_ONCE, count - begin))
        happened += int(np.count_nonzero(some))
    return happened
