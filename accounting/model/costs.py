"""Costs of a configuration: the noise of an atom, expected messages, bits, and the error."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple


class AtomParameters(NamedTuple):
    """An atom, and the negative binomial NB(r, p) of the noise of all users on it."""

    elements: tuple[int, ...]
    r: float
    p: float


def central_messages(step: float) -> float:
    """Expected messages of the central noise, NB(1, e^-step) on +1 and on -1."""
    return 2 / math.expm1(step)


def noise_messages(step: float, atoms: Iterable[AtomParameters]) -> float:
    """Expected noise messages of all users: those of the central noise, and |s| E[D^s] per atom."""
    of_atoms = math.fsum(len(elements) * r * p / (1 - p) for elements, r, p in atoms)
    return central_messages(step) + of_atoms


def bits_per_message(symbols: int) -> int:
    """Bits that distinguish this many symbols; at least one.

    >>> [bits_per_message(symbols) for symbols in (2, 3, 4, 5)]
    [1, 2, 2, 3]
    """
    return max(1, (symbols - 1).bit_length())


def discrete_laplace_variance(step: float) -> float:
    """The variance 2q / (1 - q)^2 of the Discrete Laplace law with q = e^-step."""
    return 0.5 / math.sinh(step / 2) ** 2


def discrete_laplace_deviation(step: float) -> float:
    """The square root of that variance, also where the variance itself would overflow."""
    return math.sqrt(0.5) / math.sinh(step / 2)
