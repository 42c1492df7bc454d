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

from accounting.arrays import FloatArray, IntArray
from accounting.checks import probability, real, whole
from accounting.errors import InvalidParameter
from paramsearch.auditor import consistent
from paramsearch.deploy.codec import Codec
from paramsearch.parameter_file import ParameterFile

_CHUNK = 1 << 16
_LARGEST_TABLE = 1 << 14
"""Symbols up to which each is counted; beyond it values are added up."""
_LARGEST_DIMENSION = 1 << 27
_LARGEST_SUM = 2.0**64
_IMPLAUSIBLE = 1e-9
"""Probability of more messages than ``expected_messages`` says."""


@dataclass(frozen=True)
class Estimate:
    """``value`` is the sum, or one for each coordinate; the interval contains the truth with at
    least the probability ``confidence``, of each coordinate.

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
    the range [low, high] and the number of users who took part, all n by default.
    """

    def __init__(
        self,
        file: ParameterFile,
        *,
        users: int | None = None,
        low: float | None = None,
        high: float | None = None,
        strict: bool = False,
    ) -> None:
        consistent(file)
        self.file, self.strict = file, strict
        self.codec = Codec.of(file)
        self.users = file.problem.n if users is None else whole("users", users, least=1)
        if file.dimension > _LARGEST_DIMENSION:
            raise InvalidParameter(
                f"dimension = {file.dimension:,} needs a sum for each coordinate in memory; up to "
                f"{_LARGEST_DIMENSION:,} are possible"
            )
        self.scale, lowest, self.reals = _affine(file, low, high)
        self.offset = lowest * self.users
        if not math.isfinite(abs(self.offset) + self.scale * _LARGEST_SUM):
            raise InvalidParameter(
                f"the range [{low}, {high}] is too wide for a sum of {self.users:,} values"
            )
        self.messages = self.rejected = self.duplicates = 0
        size = len(self.codec.alphabet)
        self._values = np.array(self.codec.alphabet, np.int64)
        tabled = self.codec.symbols <= _LARGEST_TABLE
        self._counts = np.zeros(self.codec.symbols if tabled else 0, np.int64)
        self._sums = np.zeros(0 if tabled else self.codec.dimension, np.int64)
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

    @property
    def sums(self) -> IntArray:
        """The sum of the messages, of every coordinate."""
        if not len(self._counts):
            return self._sums
        found: IntArray = self._counts.reshape(self.codec.dimension, -1) @ self._values
        return found

    def result(self, confidence: float = 0.95) -> Estimate:
        """The estimate; messages may still be added afterwards."""
        miss = 1 - probability("confidence", confidence)
        rounding = self.users / 4 if self.reals else 0.0
        share = self.users / self.file.problem.n  # of the noise
        deviation = self.scale * math.sqrt(self.file.error.mse * share + rounding)
        # each kind of error stays within its half of the interval up to half the probability
        reach = float(noise_quantile(self.file, miss / 2 if self.reals else miss, share))
        if self.reals:
            reach += math.sqrt(self.users * math.log(4 / miss) / 2)  # Hoeffding
        value: FloatArray = np.asarray(self.offset + self.scale * self.sums, np.float64)
        return Estimate(
            value=value,
            standard_deviation=deviation,
            lower=value - self.scale * reach,
            upper=value + self.scale * reach,
            confidence=confidence,
            messages=self.messages,
            rejected=self.rejected,
            duplicates=self.duplicates,
            implausible=self._implausible(),
        )

    def _implausible(self) -> str | None:
        problem = self.file.problem
        least = math.ceil(problem.honest * problem.n)
        if self.users < least:
            return f"{self.users:,} users are fewer than the {least:,} that the certificate needs"
        most = expected_messages(self.file, self.users)
        if self.messages > most:
            return (
                f"{self.messages:,} messages are more than the {most:,} that {self.users:,} users "
                f"send but with a probability below {_IMPLAUSIBLE:g}: were some counted twice?"
            )
        return None


def _affine(
    file: ParameterFile, low: float | None, high: float | None
) -> tuple[float, float, bool]:
    if low is None and high is None:
        return 1.0, 0.0, False
    ordered = low is not None and high is not None and real("low", low) < real("high", high)
    if low is None or high is None or not ordered or not math.isfinite(high - low):
        raise InvalidParameter(
            f"the range [{low}, {high}] of real values needs low < high, both finite and not too "
            "far apart"
        )
    if file.dimension > 1:
        raise InvalidParameter("this file is for vectors; a range is for real values")
    return (high - low) / file.problem.max_value, low, True


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


def noise_quantile(file: ParameterFile, miss: float, users: float = 1.0) -> int:
    """The least t with P(|z+ - z-| > t) <= ``miss``, or a little more, for this share of users.

    By the moment generating function where the noise is not geometric: for every s, P(Z > t) is at
    most E[e^{sZ}] e^{-st}.
    """
    q = _inside(file.central.p)
    share = file.central.r * users
    loss = -math.log(q)
    if abs(share - 1) < 1e-9:  # P(|Z| > t) = 2 q^(t+1) / (1 + q)
        return max(0, math.ceil(math.log(2 / ((1 + q) * miss)) / loss - 1 + 1e-6))

    def bound(s: float) -> float:
        moment = 2 * math.log1p(-q) - math.log1p(-q * math.exp(s)) - math.log1p(-q * math.exp(-s))
        return (share * moment + math.log(2 / miss)) / s

    return _whole(min(bound(loss * k / 256) for k in range(1, 256)))


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
        moment = sum(
            share * r * (math.log1p(-p) - math.log1p(-p * math.exp(s * size)))
            for size, r, p in parts
        )
        return (moment - math.log(_IMPLAUSIBLE)) / s

    return users + _whole(min(bound(steepest * k / 256) for k in range(1, 256)))
