"""The local randomizers: one user's value becomes the user's messages."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from numbers import Integral

import numpy as np

from accounting.base.arrays import IntArray
from accounting.base.enclosure import Summarized, counted, exactly
from accounting.base.errors import InvalidParameter, TooLarge
from accounting.base.validation import instance, real, shown, whole
from paramsearch.deploy.bits import BitSource, SystemBits
from paramsearch.deploy.codec import Codec, Message
from paramsearch.deploy.exact_events import (
    RationalProbability,
    bernoulli,
    random_order,
    shuffle,
    uniform_many,
)
from paramsearch.deploy.noise_events import MOST_MESSAGES, check_event_sizes
from paramsearch.deploy.noise_sampler import Noise, NoiseEvent
from paramsearch.deploy.participation import check_enough, too_few_users
from paramsearch.parameters.assembly import consistent
from paramsearch.parameters.parameter_file import ParameterFile

_MOST_OF_BATCH = 1 << 28
"""Largest expected number of messages of a batch: they and their order take some 8 GiB."""
Value = int | tuple[int, int]
"""An integer; for vectors a coordinate and the integer there, or 0 for the zero vector."""


@dataclass(frozen=True, repr=False)
class Batch(Summarized):
    """Messages of many users: ``symbols[i]`` is sent by user number ``users[i]``.

    They are in a random order, so the symbols without the users are what a shuffler hands on.  With
    the users they are private.

    Attributes:
        symbols: The messages.
        users: The number of the user who sends each message.

    >>> Batch(symbols=np.array([1, 0, 1]), users=np.array([0, 2, 2])).symbols.tolist()
    [1, 0, 1]
    """

    symbols: IntArray
    users: IntArray

    def summary(self) -> tuple[str, str]:
        """The number of messages; who sends which is private."""
        return counted(
            len(self.symbols), "message"
        ), "in a random order; who sends which is private"


class Randomizer(Summarized):
    """The randomizer for integers 0..max_value, or for vectors with one such integer.

    One user's messages protect nothing.  What is private is the multiset of the messages of all n
    users, so whoever receives them must learn nothing else.  Between the users and the analyzer,
    the shuffler has to hide

    - which user a message is from, including addresses and sessions;
    - how many messages a user sends: most users draw no noise; of those, a user with the value 0
      sends nothing, and any other sends the value alone;
    - when messages were sent, and in which order;
    - which messages belong together: an id is drawn at random for every message, and never
      derived from the user, the session or the time.

    The running time depends on the noise that is drawn, so others must not be able to time a call.

    Args:
        file: A certified parameter file.
        source: The random bits; by default those of the operating system, the only private ones.
        not_private: Allows any other source, for tests and simulations: whoever knows a seed knows
            the noise.

    Raises:
        InvalidParameter: If the file has no certificate, or the source is not private.
        TooLarge: If one user, or one noise event, might have too many messages.

    >>> from importlib import resources
    >>> from paramsearch import load
    >>> from paramsearch.deploy import SeededBits
    >>> files = resources.files("paramsearch") / "data" / "files"
    >>> randomizer = Randomizer(load(files / "5-1-1e-06-0.9.json"), SeededBits(1), not_private=True)
    >>> randomizer(3)  # no noise: most users send their value only
    [4]
    >>> len(randomizer.batch([3] * 1_000_000).symbols)
    1006347
    """

    def __init__(
        self, file: ParameterFile, source: BitSource | None = None, *, not_private: bool = False
    ) -> None:
        instance("file", file, ParameterFile, "load(path) reads a parameter file")
        if file.certificate is None:
            raise InvalidParameter("the file has no certificate; `paramsearch certify` adds one")
        consistent(file)
        if file.cost.messages_per_user > MOST_MESSAGES:
            raise TooLarge(
                f"a user would send about {file.cost.messages_per_user:.3g} messages with n = "
                f"{file.problem.n:,}: the noise is for many more users"
            )
        check_event_sizes(file)
        if source is not None and type(source) is not SystemBits and not not_private:
            raise InvalidParameter(
                f"{type(source).__name__} does not protect anybody: only the operating system's "
                "bits do; not_private=True allows it for tests and simulations"
            )
        self.file = file
        self._source = SystemBits() if source is None else source
        self.codec = Codec.of(file)
        self.noise = Noise(file)

    def summary(self) -> tuple[str, str]:
        """The file, and where the random bits come from."""
        bits = "bits of the operating system"
        if type(self._source) is not SystemBits:
            bits = f"{type(self._source).__name__}, which protects nobody"
        return str(
            self.file
        ), f"{self.codec.symbols:,} symbols of {counted(self.codec.bits, 'bit')}; {bits}"

    @property
    def source(self) -> BitSource:
        return self._source

    def __call__(self, value: Value) -> list[int]:
        """Randomize one user's value.

        Args:
            value: An integer; for vectors a coordinate and the integer there, or 0 for the zero
                vector.

        Returns:
            The symbols that the user sends, in a random order, which reveals nothing.

        Raises:
            InvalidParameter: If the value is not a valid input.
        """
        own = self._own_symbol(value)
        symbols = [own] if own >= 0 else []
        for event in self.noise.events(self.source):
            symbols += self._symbols(event) * event.copies
        shuffle(self.source, symbols)
        return symbols

    def checked(self, value: Value) -> Message:
        """The message of a value.

        Args:
            value: As for a call of the randomizer.

        Returns:
            The coordinate, 0 for integers, and the integer.

        Raises:
            InvalidParameter: If the value is not a valid input.
        """
        if self.codec.dimension == 1:
            return 0, self._integer(value)
        if isinstance(value, (list, np.ndarray)):
            value = tuple(value)
        if isinstance(value, Integral) and not isinstance(value, bool) and value == 0:
            return 0, 0
        if not isinstance(value, tuple) or len(value) != 2:
            raise InvalidParameter(
                f"{shown(value)} is not a vector: give a coordinate and its value, or 0 for zero"
            )
        coordinate = whole("coordinate", value[0], least=0, most=self.codec.dimension - 1)
        return coordinate, self._integer(value[1])

    def _integer(self, value: object) -> int:
        return whole("value", value, least=0, most=self.file.problem.max_value)

    def _symbols(self, event: NoiseEvent) -> list[int]:
        """The symbols of one copy of the atom."""
        return [self.codec.symbol((event.coordinate, value)) for value in event.atom]

    def batch(self, values: Sequence[Value] | IntArray, *, allow_few: bool = False) -> Batch:
        """Randomize the values of many users at once, faster than one by one.

        The law is the same: the number of events of all users is Poisson, and each event belongs to
        a uniformly random user.  The messages of all users are shuffled together.

        Args:
            values: The value of every user.
            allow_few: Allow fewer users than the certificate needs.  This is for one of several
                batches whose messages are shuffled together and which have enough users in total.

        Returns:
            The messages, with the users who send them.

        Raises:
            InvalidParameter: If there is no value, or an invalid one.
            TooFew: If there are fewer users than the certificate needs.
            TooLarge: If the messages would not fit into memory.
        """
        own = self._own(values if isinstance(values, np.ndarray) else list(values))
        check_enough(too_few_users(self.file, len(own)), allowed=allow_few)
        expected = len(own) * self.file.cost.messages_per_user
        if expected > _MOST_OF_BATCH:
            raise TooLarge(
                f"{len(own):,} users send about {expected:,.0f} messages, more than "
                f"{_MOST_OF_BATCH:,}: split them into several batches (allow_few=True) whose "
                "messages are shuffled together"
            )
        sending = np.flatnonzero(own >= 0)
        symbols, users = [own[sending]], [sending]
        for events in self.noise.events_of(self.source, len(own)):
            senders = uniform_many(self.source, np.full(len(events.copies), len(own)))
            first = [self.codec.symbol((0, value)) for value in events.atom]
            offsets = np.repeat(events.coordinates * len(self.codec.alphabet), events.copies)
            symbols.append(np.add.outer(offsets, np.array(first)).ravel())
            users.append(np.repeat(senders, events.copies * len(first)))
        order = random_order(self.source, sum(map(len, symbols)))
        return Batch(np.concatenate(symbols)[order], np.concatenate(users)[order])

    def _own(self, values: Sequence[Value] | IntArray) -> IntArray:
        """The symbol of every value; -1 for zero, which is not sent."""
        if len(values) == 0:
            raise InvalidParameter("a batch needs at least one value")
        if self.codec.dimension == 1:
            return self._own_integers(values)
        return np.array([self._own_symbol(value) for value in values], np.int64)

    def _own_symbol(self, value: Value) -> int:
        message = self.checked(value)
        return self.codec.symbol(message) if message[1] else -1

    def _own_integers(self, values: Sequence[Value] | IntArray) -> IntArray:
        top = self.file.problem.max_value
        if isinstance(values, np.ndarray) and values.ndim == 1 and values.dtype.kind in "iu":
            given = values
        else:
            given = np.array([self.checked(value)[1] for value in values], np.int64)
        wrong = np.flatnonzero((given < 0) | (given > top))
        if len(wrong):
            raise InvalidParameter(
                f"value {int(wrong[0])} of the batch is {given[wrong[0]]}, not in 0..{top}"
            )
        table = np.array(
            [-1, *(self.codec.symbol((0, value)) for value in range(1, top + 1))], np.int64
        )
        return np.asarray(table[given.astype(np.int64)])


@dataclass(frozen=True, repr=False)
class RandomizedReals(Summarized):
    """A randomizer of real values: each is rounded at random to one of max_value + 1 steps.

    The rounding is exact: the value of the double is rounded up with the probability that preserves
    its mean.

    Args:
        randomizer: The randomizer of the steps, which are integers.
        low: The smallest value.
        high: The largest value.
        clip: Move values outside [low, high] to its nearest end; otherwise they are an error.

    Raises:
        InvalidParameter: If the range is empty or the file is for vectors.

    >>> from importlib import resources
    >>> from paramsearch import load
    >>> from paramsearch.deploy import SeededBits
    >>> files = resources.files("paramsearch") / "data" / "files"
    >>> file = load(files / "50-1-1e-06-0.9.json")
    >>> reals = RandomizedReals(Randomizer(file, SeededBits(1), not_private=True), low=-1.0)
    >>> reals.rounded(0.25)  # 0.625 of 50 steps, 31.25, is rounded up with probability 1/4
    32
    >>> reals(0.25)
    [34]
    """

    randomizer: Randomizer
    low: float = 0.0
    high: float = 1.0
    clip: bool = False

    def __post_init__(self) -> None:
        if not real("low", self.low) < real("high", self.high):
            raise InvalidParameter(f"low = {self.low!r} must be less than high = {self.high!r}")
        if self.randomizer.codec.dimension > 1:
            raise InvalidParameter("this file is for vectors; real values need one for integers")
        object.__setattr__(self, "low", float(self.low))
        object.__setattr__(self, "high", float(self.high))

    def summary(self) -> tuple[str, str]:
        """The range of the values, and the file."""
        steps = self.randomizer.file.problem.max_value
        clipped = ", values outside moved to its ends" if self.clip else ""
        return (
            f"[{exactly(self.low)}, {exactly(self.high)}] in {counted(steps, 'step')}{clipped}",
            str(self.randomizer.file),
        )

    @cached_property
    def _scale(self) -> Fraction:
        return self.randomizer.file.problem.max_value / (Fraction(self.high) - Fraction(self.low))

    def rounded(self, value: float) -> int:
        """Round one value at random.

        Args:
            value: A real number in [low, high].

        Returns:
            A step, one of 0..max_value, whose mean is the value's place in the range.

        Raises:
            InvalidParameter: If the value is outside the range and ``clip`` is off.
        """
        number = real("value", value)
        if not self.low <= number <= self.high and not self.clip:
            raise InvalidParameter(
                f"value {number!r} is not in [{self.low!r}, {self.high!r}]; clip=True (--clip) "
                "moves it to the nearest end"
            )
        number = min(max(number, self.low), self.high)
        exact = (Fraction(number) - Fraction(self.low)) * self._scale
        below = math.floor(exact)
        rest = exact - below
        return below + (rest > 0 and bernoulli(self.randomizer.source, RationalProbability(rest)))

    def __call__(self, value: float) -> list[int]:
        """Randomize one user's value, as ``Randomizer`` does after rounding it."""
        return self.randomizer(self.rounded(value))

    def batch(self, values: Iterable[float], *, allow_few: bool = False) -> Batch:
        """Randomize the values of many users at once; see ``Randomizer.batch``."""
        given = list(values)
        check_enough(too_few_users(self.randomizer.file, len(given)), allowed=allow_few)
        steps = np.array([self.rounded(value) for value in given], np.int64)
        return self.randomizer.batch(steps, allow_few=allow_few)
