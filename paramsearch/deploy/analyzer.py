"""The analyzer: from the shuffled messages of all users to an estimate, in one pass.

The sum of the messages is the sum of the values plus z+ - z-, a difference of two negative
binomials; all other noise sums to zero.  Memory does not grow with the number of messages.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import islice

import numpy as np

from accounting.base.arrays import FloatArray, IntArray
from accounting.base.enclosure import Summarized, counted, exactly
from accounting.base.errors import AccountingError, InvalidParameter
from accounting.base.validation import probability, real, shown, whole
from paramsearch.deploy.codec import Codec
from paramsearch.deploy.interval import CentralTails, half_width
from paramsearch.deploy.participation import (
    check_enough,
    fewer_than_assumed,
    only_noise,
    too_few_messages,
    too_few_users,
    too_many_messages,
    unlike_file,
)
from paramsearch.parameters.assembly import consistent
from paramsearch.parameters.parameter_file import ParameterFile

_CHUNK = 1 << 16
"""Number of messages processed at a time."""
_MOST_COUNTED = 1 << 14
"""Largest number of symbols for which each symbol is counted; otherwise values are added up."""
_LARGEST_DIMENSION = 1 << 27
_SHOWN = 3
"""Number of coordinates shown of an estimate."""
_EXACT_DOUBLES = 1 << 53
"""Integers up to this are doubles."""
_LARGEST_INTEGER = 1 << 62
"""Integers up to this are added without overflow."""


class NotMessages(AccountingError):
    """Most of the messages are not symbols of the file.

    >>> from importlib import resources
    >>> from paramsearch import load
    >>> files = resources.files("paramsearch") / "data" / "files"
    >>> analyzer = Analyzer(load(files / "1-1-1e-06-0.9.json"))
    >>> analyzer.add([7, 1, 8])
    >>> try:
    ...     analyzer.result()
    ... except NotMessages as error:
    ...     print(str(error).split(";")[0])
    the messages: 2 of 3 are not symbols of the parameter file, 0..1
    """


@dataclass(frozen=True, repr=False)
class Estimate(Summarized):
    """An estimate of the sum of all values, with a confidence interval for each coordinate.

    The interval and the standard deviation assume that all ``users`` of the analyzer add their
    noise.  With less noise the error is smaller, so the interval also covers if only the file's
    honest fraction of them does, or fewer (``interval.py`` has the proof).  For integers and
    vectors it is the shortest such interval of whole steps.  For real values it covers whatever
    they are, and includes the rounding of all users.

    Attributes:
        value: The estimated sum of each coordinate; integers and real values have one coordinate.
        standard_deviation: Standard deviation of each coordinate.
        lower: Lower ends of the intervals.
        upper: Upper ends of the intervals.
        confidence: Least probability with which an interval contains the true sum.
        messages: Number of messages that were added up.
        rejected: Number of messages that are not symbols of the file.
        duplicates: Number of messages left out because their id had been seen before.
        implausible: What is wrong with the numbers of messages or users; None if nothing is.

    >>> from importlib import resources
    >>> from paramsearch import load
    >>> files = resources.files("paramsearch") / "data" / "files"
    >>> analyzer = Analyzer(load(files / "1-1-1e-06-0.9.json"))
    >>> analyzer.add([0] * 251_000 + [1] * 1_000)  # the symbols of 1 and -1
    >>> estimate = analyzer.result(confidence=0.95)
    >>> estimate.value.tolist(), estimate.lower.tolist(), estimate.upper.tolist()
    ([250000.0], [249997.0], [250003.0])
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

    def summary(self) -> tuple[str, str]:
        """The estimate with its interval, and what it was made from."""
        shown = [
            f"{exactly(float(value))} in [{exactly(float(lower))}, {exactly(float(upper))}]"
            for value, lower, upper in zip(
                self.value[:_SHOWN], self.lower[:_SHOWN], self.upper[:_SHOWN], strict=True
            )
        ]
        more = ["…"] if len(self.value) > _SHOWN else []
        several = f" of {len(self.value):,} coordinates" if len(self.value) > 1 else ""
        counts = (
            f"confidence {exactly(self.confidence)}, standard deviation "
            f"{self.standard_deviation:.6g}; {counted(self.messages, 'message')}, "
            f"{self.rejected:,} rejected, {counted(self.duplicates, 'duplicate')}"
        )
        if self.implausible is not None:
            counts += f"; {self.implausible}"
        return f"sum{several} {', '.join([*shown, *more])}", counts


class Analyzer(Summarized):
    """Adds up messages, in portions of any size, and estimates the sum of the users' values.

    Args:
        file: The parameter file that the users' randomizers have.
        users: Number of users who took part, by default the file's n; more users add more noise.
            Who is missing must not depend on the noise: that cannot be seen from here.
        low: For real values, the lower end of their range.
        high: For real values, the upper end of their range.
        strict: Make the first message that is not a symbol of the file an error, and the first
            duplicate id.
        allow_few: Accept fewer users than the certificate needs, or fewer messages than these send
            with probability 1 - 1e-9, and say so in the result.  The values of those who took part
            then have less protection than the file promises, or none.

    Attributes:
        messages: Number of messages added so far.
        rejected: Number of messages so far that are not symbols of the file.
        duplicates: Number of messages so far whose id had been seen before.

    Raises:
        TooFew: If there are fewer users than the certificate needs.
        InvalidParameter: If the range is not one, or the dimension is too large.

    >>> from importlib import resources
    >>> from paramsearch import load
    >>> from paramsearch.deploy import Randomizer, SeededBits
    >>> files = resources.files("paramsearch") / "data" / "files"
    >>> file = load(files / "5-1-1e-06-0.9.json")
    >>> randomizer = Randomizer(file, SeededBits(1), not_private=True)
    >>> analyzer = Analyzer(file)
    >>> analyzer.add(randomizer.batch([2] * file.problem.n).symbols)
    >>> analyzer.result().value.tolist()  # the true sum is 2,000,000
    [1999997.0]
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
        check_enough(too_few_users(file, self.users), allowed=allow_few)
        if file.dimension > _LARGEST_DIMENSION:
            raise InvalidParameter(
                f"dimension = {file.dimension:,} is too large: the sums of at most "
                f"{_LARGEST_DIMENSION:,} coordinates are kept in memory"
            )
        self.reals = low is not None or high is not None
        self._step, self._offset = Fraction(1), Fraction(0)
        if self.reals:
            self._step = _step(file, low, high)
            self._offset = Fraction(low or 0) * self.users
        self.messages = self.rejected = self.duplicates = 0
        self._values = np.array(self.codec.alphabet, np.int64)
        self._only_noise = np.array([only_noise(file, value) for value in file.alphabet])
        counted = self.codec.symbols <= _MOST_COUNTED
        self._counts = np.zeros(self.codec.symbols if counted else 0, np.int64)
        self._sums = np.zeros(0 if counted else self.codec.dimension, np.int64)
        self._value_counts = np.zeros(len(self._values), np.int64)
        self._noise_counts = np.zeros(self.codec.dimension, np.int64)
        self._seen: set[object] = set()

    def summary(self) -> tuple[str, str]:
        """The file, and the messages so far."""
        return str(self.file), (
            f"{counted(self.messages, 'message')} so far, {self.rejected:,} rejected, "
            f"{counted(self.duplicates, 'duplicate')}; for {counted(self.users, 'user')}"
        )

    def add(self, symbols: Iterable[int] | IntArray, ids: Sequence[object] | None = None) -> None:
        """Add more messages.

        Args:
            symbols: The messages: integers, or an array of integers.
            ids: An id for each message, where the transport provides one; None or "" for none.
                Messages are anonymous, so only an id distinguishes a duplicate from another user's
                message.  All ids are kept in memory.

        Raises:
            InvalidParameter: If a message is not an integer, an id is not hashable, or their
                numbers differ; with ``strict``, also if a message is not a symbol of the file or
                has the id of another one.
        """
        if ids is not None:
            portions = list(_chunks(symbols))
            given = np.concatenate(portions) if portions else np.zeros(0, np.int64)
            symbols = self._without_duplicates(given, ids)
        for chunk in _chunks(symbols):
            self._add(chunk)

    def _without_duplicates(self, symbols: IntArray, ids: Sequence[object]) -> IntArray:
        if len(ids) != len(symbols):
            raise InvalidParameter(
                f"{counted(len(ids), 'id')} for {counted(len(symbols), 'message')}: give "
                "each one id"
            )
        new = np.ones(len(symbols), bool)
        for i, name in enumerate(ids):
            if name is None or name == "":
                continue
            try:
                new[i] = name not in self._seen
                self._seen.add(name)
            except TypeError:
                raise InvalidParameter(
                    f"{shown(name)} is not an id: use numbers or texts"
                ) from None
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
            coordinate, index = np.divmod(symbols, len(self.codec.alphabet))
            np.add.at(self._sums, coordinate, self._values[index])
            self._value_counts += np.bincount(index, minlength=len(self._values))
            np.add.at(self._noise_counts, coordinate, self._only_noise[index])

    @property
    def sums(self) -> IntArray:
        """The sum of the messages of every coordinate."""
        if not len(self._counts):
            return self._sums
        return np.asarray(self._counts.reshape(self.codec.dimension, -1) @ self._values)

    @property
    def by_value(self) -> IntArray:
        """Number of messages with each value of the alphabet, over all coordinates."""
        if not len(self._counts):
            return self._value_counts
        return np.asarray(self._counts.reshape(self.codec.dimension, -1).sum(axis=0))

    @property
    def noise_by_coordinate(self) -> IntArray:
        """Number of messages of every coordinate whose value no input is sent as, only noise."""
        if not len(self._counts):
            return self._noise_counts
        return np.asarray(self._counts.reshape(self.codec.dimension, -1) @ self._only_noise)

    @property
    def noise_messages(self) -> int:
        """Number of all these messages."""
        return int(self.noise_by_coordinate.sum())

    def result(self, confidence: float = 0.95) -> Estimate:
        """Estimate the sum from the messages so far; more may be added afterwards.

        Args:
            confidence: Probability with which each interval has to contain the true sum.

        Returns:
            The estimate with its confidence interval.

        Raises:
            TooFew: If there are implausibly few messages, unless ``allow_few``.
            NotMessages: If more messages were rejected than not.
            InvalidParameter: If the confidence is not a probability, or the result overflows.
        """
        miss = math.nextafter(1 - probability("confidence", confidence), 0)
        self.require_messages("the messages")
        few = too_few_users(self.file, self.users) or too_few_messages(
            self.file, total=self.messages, noise=self.noise_messages
        )
        check_enough(few, allowed=self.allow_few)
        rounded = self.users if self.reals else 0
        steps = half_width(CentralTails(self.file, self.users), miss, rounded=rounded)
        share = self.users / self.file.problem.n  # of the file's noise
        deviation = float(self._step) * math.sqrt(self.file.error.mse * share + rounded / 4)
        return Estimate(
            value=self._shifted(0),
            standard_deviation=deviation,
            lower=self._shifted(-steps),
            upper=self._shifted(steps),
            confidence=confidence,
            messages=self.messages,
            rejected=self.rejected,
            duplicates=self.duplicates,
            implausible=few or self.implausible(),
        )

    def require_messages(self, source: str, *, read: int = 0, rejected: int = 0) -> None:
        """Check that most messages are symbols of the file.

        Args:
            source: Where the messages come from, for the error message.
            read: Number of messages that had been added before this source.
            rejected: Number of messages that had been rejected before this source.

        Raises:
            NotMessages: If more messages of this source were rejected than not.
        """
        new, wrong = self.messages - read, self.rejected - rejected
        if wrong > new:
            raise NotMessages(
                f"{source}: {wrong:,} of {new + wrong:,} are not symbols of the parameter "
                f"file, 0..{self.codec.symbols - 1}; were these messages made with this file?"
            )

    def _shifted(self, steps: int) -> FloatArray:
        """The estimate shifted by this number of steps, rounded away from the estimate."""
        outside = math.copysign(math.inf, steps)
        if not self.reals:
            if abs(steps) > _LARGEST_INTEGER:
                raise InvalidParameter("the noise of this file is too large: sums overflow")
            found = np.asarray(self.sums + steps, np.float64)
            inexact = (np.abs(found) >= _EXACT_DOUBLES) & (steps != 0)
            return np.where(inexact, np.nextafter(found, outside), found)
        exact = self._offset + self._step * (int(self.sums[0]) + steps)
        try:
            nearest = float(exact)
        except OverflowError:
            raise InvalidParameter("the estimate exceeds the largest double") from None
        inside = (Fraction(nearest) - exact) * steps < 0
        return np.array([math.nextafter(nearest, outside) if inside else nearest])

    def unlike_file(self) -> str | None:
        """Why the messages so far were hardly made with this file, or not by so few users; None if
        nothing says so.  A false alarm has probability at most 2e-9."""
        return too_many_messages(self.file, self.users, self.messages) or unlike_file(
            self.file,
            self.users,
            by_value=self.by_value,
            noise_by_coordinate=self.noise_by_coordinate,
            sums=self.sums,
            allow_few=self.allow_few,
        )

    def implausible(self) -> str | None:
        """Say why the messages, if not too few for the certificate, are odd; None if they are
        not."""
        odd = self.unlike_file()
        if odd is None and not self.allow_few:  # which allows the counts to be small
            odd = fewer_than_assumed(self.file, self.users, self.noise_messages)
        return odd


def _step(file: ParameterFile, low: float | None, high: float | None) -> Fraction:
    """The difference of two neighboring steps of real values in [low, high]."""
    ordered = low is not None and high is not None and real("low", low) < real("high", high)
    if low is None or high is None or not ordered or not math.isfinite(high - low):
        raise InvalidParameter(
            f"the range [{low}, {high}] of real values needs low < high, both finite and not too "
            "far apart"
        )
    if file.dimension > 1:
        raise InvalidParameter("this file is for vectors; a range is for real values")
    return (Fraction(high) - Fraction(low)) / file.problem.max_value


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
                raise InvalidParameter(f"{shown(symbol)} is not a symbol: messages are integers")
        limited = [max(-1, min(int(symbol), _LARGEST_INTEGER)) for symbol in portion]
        yield np.array(limited, np.int64)
