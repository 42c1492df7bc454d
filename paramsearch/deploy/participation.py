"""Did enough users take part?  Noise that is not there protects nobody.

A certificate holds if the fraction ``honest`` of the file's n users adds its noise.  Whoever knows
how many take part compares; whoever has only the messages counts them.  If enough users took part,
the messages contain independent NB(r_s share, p_s) copies of every atom s (of +1 and of -1), share
at least ``honest``.  The values and all further noise only add to any count of messages, so with
c_s elements of s in the count, for every x > 0,

    P(count <= k) <= e^(xk) product over s of (1 + p_s (1 - e^(-x c_s)) / (1 - p_s))^(-r_s honest).

A count that is less likely than 1e-9 by the best of these bounds means that too few took part.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np

from accounting.base.errors import AccountingError
from accounting.model.family import Atom
from paramsearch.parameters.parameter_file import ParameterFile

IMPLAUSIBLE = 1e-9
"""Probability of a false alarm, of each test."""
_SAFE = 1 - 1e-10
"""More than all rounding errors, and those of a file's r, of which 1e-12 are possible."""


class TooFew(AccountingError):
    """Fewer users, or fewer messages, than the certificate of the file needs."""


def refuse(few: str | None, *, allowed: bool) -> None:
    """An error where something is wrong and nobody has allowed it."""
    if few is not None and not allowed:
        raise TooFew(
            f"{few}.  Nothing is proved about so little noise: do not publish what it hides, and "
            "use a file for as many users as take part (`paramsearch rescale FILE --n USERS`).  "
            "--allow-few (allow_few=True) goes on all the same"
        )


def part_of(users: int, honest: float) -> int:
    """The least number that is this fraction of the users, a decimal: 0.1 of 1,000 are 100."""
    return math.ceil(Fraction(repr(honest)) * users)


def least_users(file: ParameterFile) -> int:
    """How many have to add their noise for the certificate to hold."""
    return part_of(file.problem.n, file.problem.honest)


def too_few_users(file: ParameterFile, users: int) -> str | None:
    """What is wrong with so many users, if anything."""
    least = least_users(file)
    if users >= least:
        return None
    part = f"{file.problem.honest:g} of the " if file.problem.honest < 1 else ""
    return (
        f"{users:,} users who add noise are too few: the file's certificate needs {least:,} "
        f"({part}n = {file.problem.n:,})"
    )


def only_noise(file: ParameterFile, value: int) -> bool:
    """Whether no user's value is sent as this one."""
    return not 1 <= value <= file.problem.max_value


def least_count(file: ParameterFile, counted: Callable[[int], bool]) -> int:
    """Messages with ``counted`` values, of all coordinates: fewer come with a probability below
    1e-9 only if enough users take part; 0 if the noise is too small to tell."""
    central = (file.central.r, file.central.p)
    parts: list[tuple[Atom, float, str]] = [((1,), *central), ((-1,), *central)]
    parts += [(entry.atom, entry.r, entry.p) for entry in file.atoms]
    size = np.array([sum(map(counted, elements)) for elements, _, _ in parts], np.float64)
    shape = np.array([r for _, r, _ in parts]) * file.problem.honest * file.dimension
    odd = np.array([float(1 - Fraction(p)) for _, _, p in parts])
    mean = float((shape * size * (1 - odd) / odd).sum())
    if not mean:
        return 0
    x = np.geomspace(1e-3, 1e6, 400) / mean  # any will do
    gain = -(1 - odd) * np.expm1(-np.outer(x, size)) / odd
    decay = (shape * np.log1p(gain)).sum(axis=1) * _SAFE
    most = float(((decay + math.log(IMPLAUSIBLE)) / x).max()) * _SAFE
    return max(0, math.floor(most) + 1)


def too_few_messages(file: ParameterFile, *, total: int, noise: int) -> str | None:
    """What is wrong with so many messages, ``noise`` of them such as only noise can be."""
    for found, least, what in (
        (noise, least_count(file, lambda value: only_noise(file, value)), " that only noise sends"),
        (total, least_count(file, lambda _: True), ""),
    ):
        if found < least:
            return (
                f"{found:,} messages{what} are too few: the {least_users(file):,} users that the "
                f"file's certificate needs send fewer than {least:,} with a probability below "
                f"{IMPLAUSIBLE:g} only; users or messages are missing"
            )
    return None
