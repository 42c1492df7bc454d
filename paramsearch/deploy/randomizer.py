"""The local randomizers: one user's value becomes the user's messages.

The noise of a file is compound Poisson over its n users.  All of a user's events together are one
Poisson number; each is then one of the atoms (or +1 or -1, the central noise) with probability
proportional to its rate, and brings a logarithmic number of copies.  A user without events costs
one draw.  Nothing is approximate: the law of every message is the one that the file's rationals
define.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from numbers import Integral

import numpy as np

from accounting.base.arrays import IntArray
from accounting.base.errors import InvalidParameter, TooLarge
from accounting.base.validation import real, whole
from accounting.model.family import Atom
from paramsearch.deploy.bits import BitSource, SystemBits
from paramsearch.deploy.codec import Codec, Message
from paramsearch.deploy.exact_events import Rational, happens, uniform
from paramsearch.deploy.participation import refuse, too_few_users
from paramsearch.deploy.samplers import Choice, Logarithmic, Poisson
from paramsearch.parameters.assembly import consistent
from paramsearch.parameters.parameter_file import ParameterFile

_MOST_MESSAGES = 1 << 24
"""At once, in memory."""
Value = int | tuple[int, int]
"""An integer; for vectors a coordinate and the integer there, or 0 for the zero vector."""


class Noise:
    """The noise of all of a file's users, or of some of them."""

    def __init__(self, file: ParameterFile) -> None:
        self.users, self.dimension = file.problem.n, file.dimension
        central = (file.central.rate, file.central.p)
        parts: list[tuple[Atom, str, str]] = [((1,), *central), ((-1,), *central)]
        parts += [(entry.atom, entry.rate, entry.p) for entry in file.atoms]
        self.atoms = [elements for elements, _, _ in parts]
        rates = [Fraction(rate) for _, rate, _ in parts]
        self.rate = sum(rates, Fraction(0)) * file.dimension
        """Events of all users."""
        self._which = Choice(rates)
        laws = {p: Logarithmic(Fraction(p)) for _, _, p in parts}
        self._copies = [laws[p] for _, _, p in parts]
        self._events = {1: Poisson(self.rate / self.users)}

    def events(self, source: BitSource, users: int = 1) -> Iterator[tuple[int, int, int]]:
        """(coordinate, atom, copies) of each event of so many users."""
        count = self._events.get(users)
        if count is None:
            count = Poisson(self.rate * Fraction(users, self.users))
            self._events = {1: self._events[1], users: count}
        for _ in range(count.draw(source)):
            which = self._which.draw(source)
            coordinate = uniform(source, self.dimension) if self.dimension > 1 else 0
            copies = self._copies[which].draw(source)
            if copies * len(self.atoms[which]) > _MOST_MESSAGES:
                raise TooLarge(
                    f"one event of noise has more than {_MOST_MESSAGES:,} messages: the p of atom "
                    f"{list(self.atoms[which])!s:.60} is too close to 1"
                )
            yield coordinate, which, copies


@dataclass(frozen=True)
class Batch:
    """Messages of many users: ``symbols[i]`` is sent by ``users[i]``.

    Not shuffled: the true values come first, in the order of the users, then the noise.  Whoever
    sees the symbols in this order knows the values.
    """

    symbols: IntArray
    users: IntArray


class Randomizer:
    """For the integers 0..max_value, or for vectors with one such integer.

    Bits come from the operating system.  Another source has to be asked for by name, with
    ``not_private=True``: whoever knows a seed knows the noise.

    One user's messages protect nothing.  What is private is the multiset of the messages of all n
    users, so whoever gets them must learn nothing else; between the users and the analyzer, the
    shuffler has to hide

    - which user a message is from, its address and session included;
    - how many messages a user sends: most users draw no noise; of those, one with the value 0
      sends nothing, and any other sends the value alone;
    - when messages were sent, and in which order;
    - which messages belong together: an id is drawn at random for every message, and never made
      from the user, the session or the time.

    The running time depends on the noise that is drawn, so the call must not be timed from outside.
    """

    def __init__(
        self, file: ParameterFile, source: BitSource | None = None, *, not_private: bool = False
    ) -> None:
        if file.certificate is None:
            raise InvalidParameter("the file has no certificate; paramsearch certify proves it")
        consistent(file)
        if file.cost.messages_per_user > _MOST_MESSAGES:
            raise TooLarge(
                f"each of the {file.problem.n:,} users would send about "
                f"{file.cost.messages_per_user:.3g} messages: the noise is for many more users"
            )
        if source is not None and type(source) is not SystemBits and not not_private:
            raise InvalidParameter(
                f"{type(source).__name__} does not protect anybody: only the operating system's "
                "bits do; not_private=True allows it for tests and simulations"
            )
        self.file = file
        self._source = SystemBits() if source is None else source
        self.codec = Codec.of(file)
        self.noise = Noise(file)

    @property
    def source(self) -> BitSource:
        return self._source

    def __call__(self, value: Value) -> list[int]:
        """The symbols that one user sends, sorted: their order says nothing."""
        own = self._own_symbol(value)
        symbols = [own] if own >= 0 else []
        for coordinate, which, copies in self.noise.events(self.source):
            symbols += self._symbols(coordinate, which) * copies
        return sorted(symbols)

    def checked(self, value: Value) -> Message:
        """The message of a value, or an error before anything is sent."""
        if self.codec.dimension == 1:
            return 0, self._integer(value)
        if isinstance(value, (list, np.ndarray)):
            value = tuple(value)
        if isinstance(value, Integral) and not isinstance(value, bool) and value == 0:
            return 0, 0
        if not isinstance(value, tuple) or len(value) != 2:
            raise InvalidParameter(
                f"{value!r:.60} is no vector: give its coordinate and value, or 0 for none"
            )
        return whole("coordinate", value[0], least=0, most=self.codec.dimension - 1), self._integer(
            value[1]
        )

    def _integer(self, value: object) -> int:
        return whole("value", value, least=0, most=self.file.problem.max_value)

    def _symbols(self, coordinate: int, which: int) -> list[int]:
        return [self.codec.symbol((coordinate, value)) for value in self.noise.atoms[which]]

    def batch(self, values: Sequence[Value] | IntArray, *, allow_few: bool = False) -> Batch:
        """The messages of many users at once: the same law, since the events of all of them are
        Poisson and each belongs to any of them.

        True values come first: shuffle the symbols before they leave.  Fewer users than the
        certificate needs are an error (``TooFew``) unless ``allow_few``: for one of several batches
        whose messages are shuffled together, where the sum of their users has to be enough.
        """
        own = self._own(values if isinstance(values, np.ndarray) else list(values))
        refuse(too_few_users(self.file, len(own)), allowed=allow_few)
        sending = np.flatnonzero(own >= 0)
        symbols, users = [own[sending]], [sending]
        for coordinate, which, copies in self.noise.events(self.source, len(own)):
            new = np.tile(np.array(self._symbols(coordinate, which), np.int64), copies)
            symbols.append(new)
            users.append(np.full(len(new), uniform(self.source, len(own)), np.int64))
        return Batch(np.concatenate(symbols), np.concatenate(users))

    def _own(self, values: Sequence[Value] | IntArray) -> IntArray:
        """The symbol of every value, -1 for zero."""
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


@dataclass(frozen=True)
class RandomizedReals:
    """Real values in [low, high]: rounded at random to one of max_value + 1 steps, then integers.

    The rounding is exact: a double is the number it is, and is rounded up with the probability that
    keeps its mean.  Values outside are an error, or moved to the end if ``clip``.
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

    @cached_property
    def _scale(self) -> Fraction:
        return self.randomizer.file.problem.max_value / (Fraction(self.high) - Fraction(self.low))

    def rounded(self, value: float) -> int:
        """One of 0..max_value, with the mean of the value."""
        number = real("value", value)
        if not self.low <= number <= self.high and not self.clip:
            raise InvalidParameter(
                f"value {number!r} is not in [{self.low!r}, {self.high!r}]; clip it if that is "
                "what you want"
            )
        number = min(max(number, self.low), self.high)
        exact = (Fraction(number) - Fraction(self.low)) * self._scale
        below = math.floor(exact)
        rest = exact - below
        return below + (rest > 0 and happens(self.randomizer.source, Rational(rest)))

    def __call__(self, value: float) -> list[int]:
        return self.randomizer(self.rounded(value))

    def batch(self, values: Iterable[float], *, allow_few: bool = False) -> Batch:
        """As ``Randomizer.batch``: shuffle the symbols before they leave."""
        given = list(values)
        refuse(too_few_users(self.randomizer.file, len(given)), allowed=allow_few)
        steps = np.array([self.rounded(value) for value in given], np.int64)
        return self.randomizer.batch(steps, allow_few=allow_few)
