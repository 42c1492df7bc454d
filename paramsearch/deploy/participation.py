"""Did enough users take part?  Noise that nobody added protects nobody.

A certificate holds if the fraction ``honest`` of the file's n users adds its noise.  Where the
number of participants is known, it is compared with that; where only the messages are known, they
are counted.  If enough users took part, the messages contain independent NB(r_s share, p_s) copies
of every atom s (of +1 and of -1), share at least ``honest``.  The values and all further noise only
add to any count of messages, so with c_s counted elements of s, for every x > 0,

    P(count <= k) <= e^(xk) product over s of (1 + p_s (1 - e^(-x c_s)) / (1 - p_s))^(-r_s honest).

A count that is less likely than 1e-9 by the best of these bounds means that too few took part.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np

from accounting.base.errors import AccountingError, InvalidParameter
from paramsearch.deploy.noise_terms import noise_terms
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
    """Number of users who have to add their noise for the certificate to hold."""
    return math.ceil(claimed_fraction(file) * file.problem.n)


def too_few_users(file: ParameterFile, users: int) -> str | None:
    """Why this number of users is too small; None if it is not."""
    least = required_users(file)
    if users >= least:
        return None
    part = f"{file.problem.honest:g} of the " if file.problem.honest < 1 else ""
    return (
        f"{users:,} users who add noise are too few: the file's certificate needs {least:,} "
        f"({part}n = {file.problem.n:,})"
    )


def only_noise(file: ParameterFile, value: int) -> bool:
    """Whether a message with this value is always noise: no user's input is sent as it."""
    return not 1 <= value <= file.problem.max_value


def least_count(file: ParameterFile, counted: Callable[[int], bool]) -> int:
    """The least plausible number of messages with ``counted`` values, over all coordinates.

    If enough users take part, there are fewer with probability below 1e-9.  It is 0 if the noise is
    too small to tell.
    """
    terms = noise_terms(file)
    size = np.array([sum(map(counted, term.atom)) for term in terms], np.float64)
    shape = np.array([term.r for term in terms]) * file.problem.honest * file.dimension
    one_minus_p = np.array([term.one_minus_p for term in terms])
    mean = float((shape * size * (1 - one_minus_p) / one_minus_p).sum())
    if not mean:
        return 0
    x = np.geomspace(1e-3, 1e6, 400) / mean  # the bound holds for every x
    gain = -(1 - one_minus_p) * np.expm1(-np.outer(x, size)) / one_minus_p
    decay = (shape * np.log1p(gain)).sum(axis=1) * _SAFE
    most = float(((decay + math.log(FALSE_ALARM)) / x).max()) * _SAFE
    return max(0, math.floor(most) + 1)


def too_few_messages(file: ParameterFile, *, total: int, noise: int) -> str | None:
    """Why these numbers of messages are too small; None if they are not.

    ``noise`` of the ``total`` messages have a value that ``only_noise`` sends.
    """
    for found, least, what in (
        (noise, least_count(file, lambda value: only_noise(file, value)), " that only noise sends"),
        (total, least_count(file, lambda _: True), ""),
    ):
        if found < least:
            return (
                f"{found:,} messages{what} are too few: the {required_users(file):,} users that "
                f"the file's certificate needs send fewer than {least:,} with probability below "
                f"{FALSE_ALARM:g}; users or messages are missing"
            )
    return None


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

    Every user sends the noise and at most one message more.  An atom with |s| elements contributes
    |s| times a negative binomial, bounded by its moment generating function.
    """
    share = users / file.problem.n * file.dimension
    terms = noise_terms(file)
    laws = [(len(term.atom), term.r, _as_double(term.p)) for term in terms]
    largest = min(-math.log(p) / size for size, _, p in laws)

    def bound(s: float) -> float:
        """Chernoff's bound on the number of noise messages."""
        grown = [p * math.exp(s * size) for size, _, p in laws]
        if max(grown) >= 1:  # by rounding, where p is next to 1
            return math.inf
        moment = sum(
            share * r * (math.log1p(-p) - math.log1p(-more))
            for (_, r, p), more in zip(laws, grown, strict=True)
        )
        return (moment - math.log(FALSE_ALARM)) / s

    noise = min(bound(largest * k / 256) for k in range(1, 256))
    if not math.isfinite(noise):
        raise InvalidParameter("the noise of this file is beyond doubles: its r is too large")
    return users + math.ceil(noise)
