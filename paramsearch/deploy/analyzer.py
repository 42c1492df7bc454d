"""The analyzer: from the shuffled messages of all users to an estimate, in one pass.

The sum of the messages is the sum of the values plus z+ - z-, two negative binomials, whatever the
other noise was: it sums to zero.  Memory does not grow with the messages.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import islice

import numpy as np

from accounting.base.arrays import FloatArray, IntArray
from accounting.base.errors import AccountingError, InvalidParameter
from accounting.base.validation import probability, real, whole
from paramsearch.deploy.codec import Codec
from paramsearch.deploy.interval import CentralNoise, reach
from paramsearch.deploy.participation import (
    IMPLAUSIBLE,
    only_noise,
    refuse,
    too_few_messages,
    too_few_users,
)
from paramsearch.parameters.assembly import consistent
from paramsearch.parameters.parameter_file import ParameterFile

_CHUNK = 1 << 16
_LARGEST_TABLE = 1 << 14
"""Symbols up to which each is counted; beyond it values are added up."""
_LARGEST_DIMENSION = 1 << 27
_EXACT_DOUBLES = 1 << 53
_LARGEST_STEPS = 1 << 62


class NotMessages(AccountingError):
    """Most of what was to be analyzed are no symbols of the file."""


@dataclass(frozen=True)
class Estimate:
    """``value`` is the sum, or one for each coordinate; the interval contains the truth with at
    least the probability ``confidence``, of each coordinate.

    The interval and the standard deviation are those of all ``users`` of the analyzer adding their
    noise.  With less noise the error is smaller, so the interval covers for every participation up
    to that: all of them, the file's honest fraction, or fewer (``interval.py`` proves it).  It is
    the shortest such interval of whole steps for integers and vectors.  For real values it covers
    whatever they are, and counts the rounding of all users.

    ``rejected`` symbols were none of the file's, ``duplicates`` had an id again.  ``implausible``
    says what is wrong with the number of messages or users, if anything.
    """

    value: FloatArray
    standard_deviation: float
    lower: FloatArray
    upper: FloatArray
    confidence: float
    messages: int
    rejected: int
    duplicates: int
    implausible: str | None


class Analyzer:
    """Add messages in any portions, then ask for the result.

    With ``strict`` the first symbol that is none of the file's is an error.  For real values give
    the range [low, high].  ``users`` is how many took part, by default the file's n: more of them
    bring more noise, and fewer than the certificate needs are an error (``TooFew``).  So are fewer
    messages than those users send with probability 1 - 1e-9.  ``allow_few`` makes it a remark in
    the result: the values of those who took part have less protection than the file says, or none.
    """

    def __init__(
        self,
        file: ParameterFile,
        *,
        users: int | None = None,
        low: float | None = None,
        high: float | None = None,
        strict: bool = False,
        allow_few: bool = False,
    ) -> None:
        consistent(file)
        self.file, self.strict, self.allow_few = file, strict, allow_few
        self.codec = Codec.of(file)
        self.users = file.problem.n if users is None else whole("users", users, least=1)
        refuse(too_few_users(file, self.users), allowed=allow_few)
        if file.dimension > _LARGEST_DIMENSION:
            raise InvalidParameter(
                f"dimension = {file.dimension:,} needs a sum for each coordinate in memory; up to "
                f"{_LARGEST_DIMENSION:,} are possible"
            )
        self._scale, self._offset, self.reals = _affine(file, low, high, self.users)
        self.messages = self.rejected = self.duplicates = 0
        size = len(self.codec.alphabet)
        self._values = np.array(self.codec.alphabet, np.int64)
        tabled = self.codec.symbols <= _LARGEST_TABLE
        self._counts = np.zeros(self.codec.symbols if tabled else 0, np.int64)
        self._sums = np.zeros(0 if tabled else self.codec.dimension, np.int64)
        self._only_noise = np.array([only_noise(file, value) for value in file.alphabet])
        self._noise_beside_counts = 0
        self._alphabet = size
        self._seen: set[object] = set()

    def add(self, symbols: Iterable[int] | IntArray, ids: Sequence[object] | None = None) -> None:
        """More messages: numbers in any iterable, or an array of integers.

        Messages are anonymous, so that a copy cannot be told from another user's message; where
        the transport gives every message an id, ``ids`` does that, at the price of a set in memory.
        """
        if ids is not None:
            portions = list(_chunks(symbols))
            given = np.concatenate(portions) if portions else np.zeros(0, np.int64)
            symbols = self._first_only(given, ids)
        for chunk in _chunks(symbols):
            self._add(chunk)

    def _first_only(self, symbols: IntArray, ids: Sequence[object]) -> IntArray:
        if len(ids) != len(symbols):
            raise InvalidParameter(f"{len(symbols):,} messages have {len(ids):,} ids")
        new = np.ones(len(symbols), bool)
        for i, name in enumerate(ids):
            if name is None or name == "":
                continue  # without an id, nothing can be said
            try:
                new[i] = name not in self._seen
                self._seen.add(name)
            except TypeError:
                raise InvalidParameter(f"{name!r:.60} is no id: take numbers or texts") from None
        again = int(np.count_nonzero(~new))
        if again and self.strict:
            raise InvalidParameter(f"the message {ids[int(np.argmin(new))]!r:.60} comes twice")
        self.duplicates += again
        return symbols[new]

    def _add(self, symbols: IntArray) -> None:
        wrong = (symbols < 0) | (symbols >= self.codec.symbols)
        bad = int(np.count_nonzero(wrong))
        if bad:
            if self.strict:
                first = symbols[int(np.argmax(wrong))]
                raise InvalidParameter(
                    f"message {self.messages + self.rejected + int(np.argmax(wrong)) + 1} is "
                    f"{first}, not a symbol in 0..{self.codec.symbols - 1}"
                )
            symbols = symbols[~wrong]
        self.rejected += bad
        self.messages += len(symbols)
        symbols = symbols.astype(np.int64)
        if len(self._counts):
            self._counts += np.bincount(symbols, minlength=self.codec.symbols)
        else:
            coordinate, index = np.divmod(symbols, self._alphabet)
            np.add.at(self._sums, coordinate, self._values[index])
            self._noise_beside_counts += int(np.count_nonzero(self._only_noise[index]))

    @property
    def sums(self) -> IntArray:
        """The sum of the messages, of every coordinate."""
        if not len(self._counts):
            return self._sums
        found: IntArray = self._counts.reshape(self.codec.dimension, -1) @ self._values
        return found

    @property
    def noise_messages(self) -> int:
        """Messages such as no value is sent as, only noise."""
        if not len(self._counts):
            return self._noise_beside_counts
        return int(self._counts.reshape(self.codec.dimension, -1).sum(axis=0) @ self._only_noise)

    def result(self, confidence: float = 0.95) -> Estimate:
        """The estimate; messages may still be added afterwards.

        ``TooFew`` messages, and more rejected ones than others (``NotMessages``), are errors.
        """
        miss = math.nextafter(1 - probability("confidence", confidence), 0)
        self.require_messages("the messages")
        few = too_few_users(self.file, self.users) or too_few_messages(
            self.file, total=self.messages, noise=self.noise_messages
        )
        refuse(few, allowed=self.allow_few)
        rounded = self.users if self.reals else 0
        steps = reach(CentralNoise(self.file, self.users), miss, rounded=rounded)
        share = self.users / self.file.problem.n  # of the noise
        deviation = float(self._scale) * math.sqrt(self.file.error.mse * share + rounded / 4)
        return Estimate(
            value=self._located(0),
            standard_deviation=deviation,
            lower=self._located(-steps),
            upper=self._located(steps),
            confidence=confidence,
            messages=self.messages,
            rejected=self.rejected,
            duplicates=self.duplicates,
            implausible=few or self.too_many(),
        )

    def require_messages(self, source: str, *, read: int = 0, rejected: int = 0) -> None:
        """An error if more were rejected than not, since that many were read and rejected."""
        new, wrong = self.messages - read, self.rejected - rejected
        if wrong > new:
            raise NotMessages(
                f"{source}: {wrong:,} of {new + wrong:,} are no symbols of the parameter file, "
                f"0..{self.codec.symbols - 1}; are these messages, and made with this file?"
            )

    def _located(self, steps: int) -> FloatArray:
        """Where the sums are that many steps further, rounded outwards; 0 is the estimate."""
        outside = math.copysign(math.inf, steps)
        if not self.reals:
            if abs(steps) > _LARGEST_STEPS:
                raise InvalidParameter("the noise of this file is beyond what can be counted")
            found = np.asarray(self.sums + steps, np.float64)
            inexact = (np.abs(found) >= _EXACT_DOUBLES) & (steps != 0)
            return np.where(inexact, np.nextafter(found, outside), found)
        exact = self._offset + self._scale * (int(self.sums[0]) + steps)
        try:
            nearest = float(exact)
        except OverflowError:
            raise InvalidParameter("the estimate is beyond the largest double") from None
        inside = (Fraction(nearest) - exact) * steps < 0
        return np.array([math.nextafter(nearest, outside) if inside else nearest])

    def too_many(self) -> str | None:
        """What is wrong if there are more messages than the users send."""
        most = expected_messages(self.file, self.users)
        if self.messages <= most:
            return None
        return (
            f"{self.messages:,} messages are more than the {most:,} that {self.users:,} users "
            f"send but with a probability below {IMPLAUSIBLE:g}: were some counted twice?"
        )


def _affine(
    file: ParameterFile, low: float | None, high: float | None, users: int
) -> tuple[Fraction, Fraction, bool]:
    """The value of a step, that of no message, and whether values are real."""
    if low is None and high is None:
        return Fraction(1), Fraction(0), False
    ordered = low is not None and high is not None and real("low", low) < real("high", high)
    if low is None or high is None or not ordered or not math.isfinite(high - low):
        raise InvalidParameter(
            f"the range [{low}, {high}] of real values needs low < high, both finite and not too "
            "far apart"
        )
    if file.dimension > 1:
        raise InvalidParameter("this file is for vectors; a range is for real values")
    step = (Fraction(high) - Fraction(low)) / file.problem.max_value
    return step, Fraction(low) * users, True


def _chunks(symbols: Iterable[int] | IntArray) -> Iterator[IntArray]:
    if isinstance(symbols, np.ndarray) and symbols.size:
        if symbols.ndim != 1 or symbols.dtype.kind not in "iu":
            raise InvalidParameter(
                f"messages must be integers, not {symbols.dtype} of {symbols.ndim} dimensions"
            )
        yield from (symbols[i : i + _CHUNK] for i in range(0, len(symbols), _CHUNK))
        return
    stream = iter(symbols)
    while portion := list(islice(stream, _CHUNK)):
        for symbol in portion:
            if isinstance(symbol, bool) or not isinstance(symbol, (int, np.integer)):
                raise InvalidParameter(f"{symbol!r:.60} is no symbol: messages are integers")
        limit = 1 << 62
        yield np.array([max(-1, min(int(symbol), limit)) for symbol in portion], np.int64)


def _inside(p: str) -> float:
    """The double nearest to a rational strictly between 0 and 1, if that is between them, too."""
    number = float(Fraction(p))
    if not 0 < number < 1:
        raise InvalidParameter(
            f"the file has a p that is {number:g} as a double ({p:.40}): the interval of such a "
            "noise cannot be computed; take a p further away from it"
        )
    return number


def _whole(bound: float) -> int:
    if not math.isfinite(bound):
        raise InvalidParameter("the noise of this file is beyond doubles: its r is too large")
    return math.ceil(bound)


def expected_messages(file: ParameterFile, users: int) -> int:
    """A number of messages that so many users exceed with a probability below 1e-9 only.

    Every user sends at most one message and the noise; that of an atom with |s| elements is |s|
    copies of a negative binomial, bounded by its moment generating function.
    """
    share = users / file.problem.n * file.dimension
    parts = [(1, file.central.r, _inside(file.central.p))] * 2
    parts += [(len(entry.atom), entry.r, _inside(entry.p)) for entry in file.atoms]
    steepest = min(-math.log(p) / size for size, _, p in parts)

    def bound(s: float) -> float:
        grown = [p * math.exp(s * size) for size, _, p in parts]
        if max(grown) >= 1:  # by rounding, where p is next to 1
            return math.inf
        moment = sum(
            share * r * (math.log1p(-p) - math.log1p(-more))
            for (_, r, p), more in zip(parts, grown, strict=True)
        )
        return (moment - math.log(IMPLAUSIBLE)) / s

    return users + _whole(min(bound(steepest * k / 256) for k in range(1, 256)))
