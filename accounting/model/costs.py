"""Costs of a configuration: the noise of an atom, expected messages, bits, and the error."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

from accounting.base.bisection import arithmetic_mean, bisection
from accounting.model.problem import Problem

PURE_CHANGES = 2
"""Number of changes up to which the central noise uses nothing of delta."""
_MOST_LOSSES = 4_000_000
"""Largest number of distinct losses of all changes together, which bounds the memory."""
_FINEST = 400
"""Largest max_value computed with: the Discrete Laplace loss hardly changes beyond it."""


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


def largest_central(*, eps: float, delta: float, max_value: int, changes: int) -> float:
    """Approximately the largest eps* at which the Discrete Laplace mechanism alone is
    (eps, delta/2)-DP for this many simultaneous changes by max_value."""
    if changes <= PURE_CHANGES:  # delta allows hardly more than eps / changes
        return eps / changes
    top = max(1, min(max_value, _FINEST, _MOST_LOSSES // changes))
    found, _ = bisection(
        lambda central: not _laplace_delta(central, eps, top, changes) <= delta / 2,
        eps / changes,
        eps,
        mean=arithmetic_mean,
        halvings=40,
    )
    return found


def _laplace_delta(central: float, eps: float, top: int, changes: int) -> float:
    """delta of the Discrete Laplace mechanism with eps* = ``central`` for all changes together."""
    import numpy as np

    step = central / top
    q = math.exp(-step)
    weight = np.exp(-step * np.arange(top + 1)) * (1 - q) / (1 + q)
    weight[[0, -1]] = np.array([1.0, math.exp(-central)]) / (1 + q)
    size = changes * top + 1
    spectrum = np.fft.rfft(weight, 1 << (size - 1).bit_length())
    mass = np.fft.irfft(spectrum**changes)[:size]
    loss = step * (changes * top - 2 * np.arange(size))
    return float(np.sum(np.clip(mass, 0, None) * -np.expm1(np.minimum(eps - loss, 0.0))))


def largest_central_of(problem: Problem) -> float:
    """Approximately the largest eps* of a problem, for all its releases together."""
    return largest_central(
        eps=problem.eps,
        delta=problem.delta,
        max_value=problem.max_value,
        # a value that moves to another coordinate is two changes at once
        changes=problem.releases * problem.changed_coordinates,
    )


def central_rmse(problem: Problem) -> float:
    """About the smallest error of the Discrete Laplace mechanism for a problem: all its releases
    together are (eps, delta/2)-DP, and for vectors the two coordinates that a change can touch.

    >>> central_rmse(Problem(n=10, eps=1.0, delta=1e-6, max_value=1))  # doctest: +ELLIPSIS
    1.35...
    """
    return discrete_laplace_deviation(largest_central_of(problem) / problem.max_value)
