"""Did enough users take part?  Noise that nobody added protects nobody.

A certificate holds if the fraction ``honest`` of the file's n users adds its noise, and who is
missing must not depend on the noise that was drawn: no count of users or of messages shows that
(GUIDE.md says what clients and shufflers do for it).  Where the number of participants is known, it
is compared with that; where only the messages are known, they are counted.  If enough users took
part, the messages contain independent NB(r_s share, p_s) copies of every atom s (of +1 and of -1),
share at least ``honest``.  The values and all further noise only add to any count of messages, so
with c_s counted elements of s, for every x > 0,

    P(count <= k) <= e^(xk) product over s of (1 + p_s (1 - e^(-x c_s)) / (1 - p_s))^(-r_s honest).

For bursts, with g_s the number in brackets, the factor is
exp(rate honest (e^(-x c_s) g_s^(-m) - 1)).

A count that is less likely than 1e-9 by the best of these bounds means that too few took part.

Nothing in a message says which file it was made with.  But the count of every value, and that of
the noise in every coordinate, has its own law, so that most messages of another file have an
implausible one.  The sum of a coordinate lies between 0 and U max_value, for U users, but for the
central noise, whose tails interval.py bounds.  With a values and d coordinates, each of these
2 a + 4 d bounds has probability at most 1e-9 / (2 a + 4 d), hence a false alarm of any of them at
most 1e-9.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from accounting.base.arrays import FloatArray, IntArray
from accounting.base.enclosure import counted
from accounting.base.errors import AccountingError, InvalidParameter
from paramsearch.deploy.interval import CentralTails
from paramsearch.deploy.noise_events import NoiseTerm, noise_terms
from paramsearch.parameters.honest_fraction import claimed_fraction
from paramsearch.parameters.parameter_file import ParameterFile

FALSE_ALARM = 1e-9
"""Largest probability that a test of the number of messages fails although nothing is wrong."""
_SAFE = 1 - 1e-10
"""Factor that covers all rounding errors, and the relative 1e-12 allowed in a file's r."""


class TooFew(AccountingError):
    """Fewer users, or fewer messages, than the certificate of the file needs.

    >>> from importlib import resources
    >>> from paramsearch import load
    >>> from paramsearch.deploy import Analyzer
    >>> files = resources.files("paramsearch") / "data" / "files"
    >>> try:
    ...     Analyzer(load(files / "1-1-1e-06-0.9.json"), users=10)
    ... except TooFew as error:
    ...     print(str(error).split(":")[0])
    10 users who add noise are too few
    """


def check_enough(shortage: str | None, *, allowed: bool) -> None:
    """Raise ``TooFew`` if there is a shortage, as ``too_few_users`` returns it, and it is not
    allowed."""
    if shortage is not None and not allowed:
        raise TooFew(
            f"{shortage}.  Nothing is proved about so little noise: do not publish the result, and "
            "use a file for as many users as take part (`paramsearch rescale FILE --n USERS`).  "
            "--allow-few (allow_few=True) continues anyway"
        )


def share_of(users: int, honest: float) -> int:
    """The fraction ``honest`` of the users, rounded up; the fraction is read as a decimal, so that
    0.1 of 1,000 is 100."""
    return math.ceil(Fraction(repr(honest)) * users)


def required_users(file: ParameterFile) -> int:
    """Number of users who have to add their noise for the certificate to hold; who is missing must
    not depend on the noise."""
    return math.ceil(claimed_fraction(file) * file.problem.n)


def too_few_users(file: ParameterFile, users: int) -> str | None:
    """Say why this number of users is too small; None if it is not."""
    least = required_users(file)
    if users >= least:
        return None
    part = f"{file.problem.honest:g} of the " if file.problem.honest < 1 else ""
    return (
        f"{counted(users, 'user')} who add{'s' * (users == 1)} noise {_are(users)} too few: the "
        f"file's certificate needs {least:,} "
        f"({part}n = {file.problem.n:,})"
    )


def _are(count: int) -> str:
    return "is" if count == 1 else "are"


def only_noise(file: ParameterFile, value: int) -> bool:
    """Tell whether a message with this value is always noise: no user's input is sent as it."""
    return not 1 <= value <= file.problem.max_value


@dataclass(frozen=True)
class CountedNoise:
    """The noise messages in one coordinate that are counted: the sum over some atoms of ``size``
    times their copies, where all n users of the file add their noise.

    The copies are NB(``amount``, ``p``) where ``m`` is 0, and otherwise Poisson(``amount``) many
    bursts of 1 + NB(``m``, ``p``) copies.
    """

    size: FloatArray
    amount: FloatArray
    p: FloatArray
    one_minus_p: FloatArray
    m: FloatArray

    @staticmethod
    def of(counted: Sequence[tuple[int, NoiseTerm]]) -> CountedNoise:
        """Count the noise of atoms, each with its number of counted elements."""
        some = [(size, term) for size, term in counted if size]
        return CountedNoise(
            np.array([size for size, _ in some], np.float64),
            np.array([term.amount for _, term in some], np.float64),
            np.array([_as_double(term.p) for _, term in some], np.float64),
            np.array([term.one_minus_p for _, term in some], np.float64),
            np.array([term.m for _, term in some], np.float64),
        )

    @property
    def mean(self) -> float:
        """Expected number of counted messages."""
        odds = self.p / self.one_minus_p
        return float((self.size * self.amount * np.where(self.m, 1 + self.m * odds, odds)).sum())

    def fewest(self, share: float, alarm: float) -> int:
        """A number that ``share`` times this noise falls below with probability below ``alarm``."""
        mean = self.mean * share
        if not mean:
            return 0
        x = np.geomspace(1e-3, 1e6, 400) / mean  # the bound holds for every x
        counted = np.outer(x, self.size)
        gain = np.log1p(-self.p * np.expm1(-counted) / self.one_minus_p)
        of_law = np.where(self.m, -np.expm1(-counted - self.m * gain), gain)
        decay = (share * self.amount * of_law).sum(axis=1) * _SAFE
        most = float(((decay + math.log(alarm)) / x).max()) * _SAFE
        return max(0, math.floor(most) + 1)

    def most(self, share: float, alarm: float) -> int:
        """A number that ``share`` times this noise exceeds with probability below ``alarm``.

        Chernoff's bound: E[e^(s count)] is the product of h^(r share), and for bursts of
        exp(rate share (e^(s size) h^m - 1)), with h = (1 - p) / (1 - p e^(s size)).
        """
        if not len(self.size):
            return 0
        largest = float((-np.log(self.p) / self.size).min())
        s = largest * np.arange(1, 256) / 256
        grown = self.p * np.exp(np.outer(s, self.size))
        inside = (grown < 1).all(axis=1)  # by rounding not all, where p is next to 1
        with np.errstate(over="ignore"):  # what overflows is refused below
            moment = np.log1p(-self.p) - np.log1p(-grown[inside])
            jump = np.outer(s[inside], self.size) + self.m * moment
            of_law = np.where(self.m, np.expm1(jump), moment)
            bound = ((share * self.amount * of_law).sum(axis=1) - math.log(alarm)) / s[inside]
        least = float(bound.min(initial=np.inf))
        if not math.isfinite(least):
            raise InvalidParameter(
                "the noise of this file is beyond doubles: its r, or its rate, is too large"
            )
        return math.ceil(least / _SAFE)


def _noise_of(file: ParameterFile, counted: Callable[[int], bool]) -> CountedNoise:
    """The noise messages with ``counted`` values."""
    return CountedNoise.of([(sum(map(counted, term.atom)), term) for term in noise_terms(file)])


def least_count(
    file: ParameterFile, counted: Callable[[int], bool], share: float | None = None
) -> int:
    """The least plausible number of messages with ``counted`` values, over all coordinates.

    If the ``share`` of the users adds its noise, by default the one that the certificate needs,
    there are fewer with probability below 1e-9.  It is 0 if the noise is too small to tell.
    """
    enough = file.problem.honest if share is None else share
    return _noise_of(file, counted).fewest(enough * file.dimension, FALSE_ALARM)


def too_few_messages(file: ParameterFile, *, total: int, noise: int) -> str | None:
    """Say why these numbers of messages are too small; None if they are not.

    ``noise`` of the ``total`` messages have a value that ``only_noise`` sends.
    """
    for found, least, what in (
        (noise, least_count(file, lambda value: only_noise(file, value)), " that only noise sends"),
        (total, least_count(file, lambda _: True), ""),
    ):
        if found < least:
            return (
                f"{counted(found, 'message')}{what} {_are(found)} too few: the "
                f"{counted(required_users(file), 'user')} of the file's certificate would send "
                f"fewer than {least:,} with probability below {FALSE_ALARM:g}; users or messages "
                "are missing, or the messages were made with another file"
            )
    return None


def fewer_than_assumed(file: ParameterFile, users: int, noise: int) -> str | None:
    """Say why fewer than ``users`` users seem to have taken part, though no fewer than the
    certificate needs; None if nothing says so. ``noise`` messages have a value that ``only_noise``
    sends."""
    least = least_count(file, lambda value: only_noise(file, value), users / file.problem.n)
    if noise >= least:
        return None
    return (
        f"{counted(noise, 'message')} that only noise sends {_are(noise)} too few for {users:,} "
        "users, who send fewer "
        f"than {least:,} with probability below {FALSE_ALARM:g}: fewer took part, or added noise; "
        "--users says how many did"
    )


def noticed_below(file: ParameterFile, users: int) -> int:
    """Estimate the number of users below which ``fewer_than_assumed`` notices that not all
    ``users`` took part: their expected noise is the least plausible one. It is 0 if nothing is
    noticed."""
    noise = _noise_of(file, lambda value: only_noise(file, value))
    share = users / file.problem.n * file.dimension
    return round(users * noise.fewest(share, FALSE_ALARM) / (noise.mean * share))


def unlike_file(
    file: ParameterFile,
    users: int,
    *,
    by_value: IntArray,
    noise_by_coordinate: IntArray,
    sums: IntArray,
    allow_few: bool = False,
) -> str | None:
    """Say why the messages were hardly made with this file; None if nothing says so.

    Args:
        file: The parameter file.
        users: Number of users who took part.
        by_value: Number of messages with each value of the alphabet, over all coordinates.
        noise_by_coordinate: Number of messages in each coordinate that only noise sends.
        sums: Sum of the messages of each coordinate.
        allow_few: Accept counts that are too small.
    """
    alarm = FALSE_ALARM / (2 * len(by_value) + 4 * file.dimension)
    fewest, most = 0.0 if allow_few else file.problem.honest, users / file.problem.n
    odd = []
    for value, noise, found in zip(
        file.alphabet, _noise_by_value(file), by_value.tolist(), strict=True
    ):
        low = noise.fewest(fewest * file.dimension, alarm)
        high = noise.most(most * file.dimension, alarm)
        if not only_noise(file, value):
            high += users
        if not low <= found <= high:
            have = "has" if found == 1 else "have"
            odd.append((f"{counted(found, 'message')} {have} the value {value}", low, high))
    noise = _noise_of(file, lambda value: only_noise(file, value))
    low, high = noise.fewest(fewest, alarm), noise.most(most, alarm)
    for place in np.flatnonzero((noise_by_coordinate < low) | (noise_by_coordinate > high)):
        found = int(noise_by_coordinate[place])
        what = f"{counted(found, 'message')} of coordinate {place} {_are(found)} only noise"
        odd.append((what, low, high))
    spread = CentralTails(file, users).quantile(2 * alarm)  # the bound of both tails together
    low, high = -spread, users * file.problem.max_value + spread
    for place in np.flatnonzero((sums < low) | (sums > high)):
        of = f" of coordinate {place}" if file.dimension > 1 else ""
        odd.append((f"the messages{of} sum to {int(sums[place]):,}", low, high))
    if not odd:
        return None
    what, low, high = odd[0]
    others = ""
    if len(odd) > 1:
        more = len(odd) - 1
        others = f", and {counted(more, 'more number')} {_are(more)} as odd"
    return (
        f"{what}, where this file has between {low:,} and {high:,} except with probability "
        f"{FALSE_ALARM:g}{others}: were these messages made with another file?"
    )


def _noise_by_value(file: ParameterFile) -> Iterator[CountedNoise]:
    """The noise messages with each value of the alphabet."""
    counted: dict[int, list[tuple[int, NoiseTerm]]] = {value: [] for value in file.alphabet}
    for term in noise_terms(file):
        for value, size in Counter(term.atom).items():
            counted[value].append((size, term))
    return map(CountedNoise.of, counted.values())


def _as_double(p: Fraction) -> float:
    """The double nearest to a p, which has to lie strictly between 0 and 1."""
    number = float(p)
    if not 0 < number < 1:
        raise InvalidParameter(
            f"the file has a p that is {number:g} as a double ({p!s:.40}): an interval for such "
            "noise cannot be computed; choose a p further away from it"
        )
    return number


def most_messages(file: ParameterFile, users: int) -> int:
    """A number of messages that this number of users exceeds with probability below 1e-9.

    Every user sends the noise and at most one message more.
    """
    share = users / file.problem.n * file.dimension
    return users + _noise_of(file, lambda _: True).most(share, FALSE_ALARM)


def too_many_messages(file: ParameterFile, users: int, total: int) -> str | None:
    """Say why this number of messages is implausibly large; None if it is not."""
    most = most_messages(file, users)
    if total <= most:
        return None
    return (
        f"{counted(total, 'message')} {_are(total)} too many: {counted(users, 'user')} would send "
        f"more than {most:,} with probability below {FALSE_ALARM:g}; were some counted twice, or "
        "made with another file?"
    )
