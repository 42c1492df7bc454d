"""Costs of a configuration: the noise of an atom, expected messages, bits, and the error."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from accounting.base.bisection import arithmetic_mean, bisection
from accounting.base.errors import InvalidParameter
from accounting.base.validation import positive, real
from accounting.model.problem import Problem

if TYPE_CHECKING:  # the module imports numpy
    from accounting.model.laws.noise import Law

PURE_CHANGES = 2
"""Number of changes up to which the central noise uses nothing of delta."""
_MOST_LOSSES = 4_000_000
"""Largest number of distinct losses of all changes together, which bounds the memory."""
_FINEST = 400
"""Largest max_value computed with: the Discrete Laplace loss hardly changes beyond it."""
LARGEST_STEP = 34.0
"""Largest eps_central / max_value: beyond it e^{-2 step} leaves the range of the evaluators."""
_LARGEST_LOSS = 1400.0
"""Beyond it sinh overflows, and the error is smaller than any that is asked for."""
_SMALLEST_RMSE = 1e-300
"""Errors below it are out of reach anyway, and divisions by them may overflow."""
_LARGEST_SHARE = 0.999
"""Share of the largest eps* from which on an error counts as out of reach: nothing is left for the
atoms."""
_ALLOWED_SHARE = 0.99
"""Share of the largest eps* whose error is named as one to allow instead."""


class AtomParameters(NamedTuple):
    """An atom, and the noise of all users on it, None if there is none."""

    elements: tuple[int, ...]
    noise: Law | None


def central_messages(step: float) -> float:
    """Return the expected messages of the central noise, NB(1, e^-step) on +1 and on -1."""
    return 2 / math.expm1(step)


def noise_messages(step: float, atoms: Iterable[AtomParameters]) -> float:
    """Return the expected noise messages of all users: those of the central noise, and |s| E[D^s]
    per atom."""
    of_atoms = math.fsum(len(elements) * noise.mean for elements, noise in atoms if noise)
    return central_messages(step) + of_atoms


def bits_per_message(symbols: int) -> int:
    """Return the number of bits that distinguish this number of symbols; at least one.

    >>> [bits_per_message(symbols) for symbols in (2, 3, 4, 5)]
    [1, 2, 2, 3]
    """
    return max(1, (symbols - 1).bit_length())


def discrete_laplace_variance(step: float) -> float:
    """Return the variance 2q / (1 - q)^2 of the Discrete Laplace law with q = e^-step."""
    return 0.5 / math.sinh(step / 2) ** 2


def discrete_laplace_deviation(step: float) -> float:
    """Return the standard deviation of the Discrete Laplace law, also where its variance would
    overflow; positive where it would underflow."""
    if step > _LARGEST_LOSS:
        return sys.float_info.min
    return math.sqrt(0.5) / math.sinh(step / 2)


def largest_central(*, eps: float, delta: float, max_value: int, changes: int) -> float:
    """Find about the largest eps* at which the Discrete Laplace mechanism alone is (eps,
    delta/2)-DP for this number of simultaneous changes by max_value."""
    if changes <= PURE_CHANGES:  # delta allows hardly more than eps / changes
        return eps / changes
    found, _ = bisection(
        lambda central: not _is_private(central, eps, delta, max_value, changes),
        eps / changes,
        eps,
        mean=arithmetic_mean,
        halvings=40,
    )
    return found


def _is_private(central: float, eps: float, delta: float, max_value: int, changes: int) -> bool:
    """Tell whether the Discrete Laplace mechanism with eps* = ``central`` is (eps, delta/2)-DP for
    more than two changes."""
    top = max(1, min(max_value, _FINEST, _MOST_LOSSES // changes))
    return _laplace_delta(central, eps, top, changes) <= delta / 2


def _laplace_delta(central: float, eps: float, top: int, changes: int) -> float:
    """Return delta of the Discrete Laplace mechanism with eps* = ``central`` for all changes
    together."""
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


def central_rmse(problem: Problem) -> float:
    """Estimate the smallest error of the Discrete Laplace mechanism for a problem: all its releases
    together are (eps, delta/2)-DP, and for vectors the two coordinates that a change can touch.

    >>> central_rmse(Problem(n=10, eps=1.0, delta=1e-6, max_value=1))  # doctest: +ELLIPSIS
    1.35...
    """
    return discrete_laplace_deviation(largest_central_of(problem) / problem.max_value)


def largest_central_of(problem: Problem) -> float:
    """Return ``largest_central`` for all changes that a problem covers together."""
    return largest_central(
        eps=problem.eps,
        delta=problem.delta,
        max_value=problem.max_value,
        changes=_changes(problem),
    )


def _changes(problem: Problem) -> int:
    """Return the number of changes by max_value that are made together; a value that moves to
    another coordinate is two."""
    return problem.releases * problem.changed_coordinates


def central_by_fraction(fraction: float, largest: float) -> float:
    """Return eps* as a fraction of the largest possible one.

    Raises:
        InvalidParameter: If the fraction is not strictly between 0 and 1.
    """
    share = real("central_fraction", fraction)
    if not 0 < share < 1:
        raise InvalidParameter(
            f"central_fraction = {share:g} must lie strictly between 0 and 1: the atoms need the "
            "rest of eps"
        )
    return share * largest


def central_by_rmse(max_rmse: float, max_value: int, largest: float, honest: float = 1.0) -> float:
    """Find the smallest eps* whose Discrete Laplace noise has at most this root mean square error.

    Every user adds enough noise for the fraction ``honest`` of the users to suffice.

    Raises:
        InvalidParameter: If eps does not allow so small an error.
    """
    central = _central_of(max_rmse, max_value, honest)
    if central >= _LARGEST_SHARE * largest:
        least, allowed = _errors_in_reach(max_value, largest, honest)
        raise InvalidParameter(
            f"max_rmse = {max_rmse:g} is out of reach: the protocol's central noise is discrete "
            f"Laplace, whose RMSE would be {least:.6g} with all of eps, and the atoms need a part "
            f"of it; allow at least {allowed:.4g}, or raise eps"
        )
    return central


def _central_of(max_rmse: float, max_value: int, honest: float) -> float:
    """Return the eps* of an error, in or out of reach."""
    rmse = max(positive("max_rmse", max_rmse) * math.sqrt(honest), _SMALLEST_RMSE)
    return 2 * max_value * math.asinh(1 / (math.sqrt(2) * rmse)) * (1 + 1e-12)


def _errors_in_reach(max_value: int, largest: float, honest: float) -> tuple[float, float]:
    """Return the error of the largest eps*, and an error that leaves a part of it for the atoms."""
    step = largest / max_value
    least, allowed = (
        discrete_laplace_deviation(found) / math.sqrt(honest)
        for found in (step, _ALLOWED_SHARE * min(step, LARGEST_STEP))
    )
    return least, allowed


def allowed_rmse(problem: Problem) -> float:
    """Estimate the smallest error that can be asked for."""
    return _errors_in_reach(problem.max_value, largest_central_of(problem), problem.honest)[1]


def require_rmse_in_reach(problem: Problem, max_rmse: float) -> None:
    """Refuse an error that ``central_by_rmse`` refuses.

    Where the error is in reach, this is much faster than computing the largest eps*.

    Raises:
        InvalidParameter: If eps does not allow so small an error.
    """
    central = _central_of(max_rmse, problem.max_value, problem.honest) / _LARGEST_SHARE
    changes = _changes(problem)
    if changes > 2 and central < problem.eps:
        numbers = (problem.eps, problem.delta, problem.max_value, changes)
        if central <= problem.eps / changes or _is_private(central, *numbers):
            return
    central_by_rmse(max_rmse, problem.max_value, largest_central_of(problem), problem.honest)


def require_error_ratio_in_reach(problem: Problem, ratio: float) -> None:
    """Refuse an error in units of ``central_rmse`` that leaves nothing for the atoms.

    The share of the largest eps* that a ratio needs grows with that eps*, which is at most eps.

    Raises:
        InvalidParameter: If eps does not allow so small an error.
    """
    top, honest = problem.max_value, problem.honest

    def in_reach(largest: float) -> bool:
        rmse = ratio * discrete_laplace_deviation(largest / top)
        return _central_of(rmse, top, honest) < _LARGEST_SHARE * largest

    if not in_reach(problem.eps) and not in_reach(largest := largest_central_of(problem)):
        central = discrete_laplace_deviation(largest / top)
        least, allowed = (error / central for error in _errors_in_reach(top, largest, honest))
        raise InvalidParameter(
            f"max_error_ratio = {ratio:g} is out of reach: it is {least:.6g} where the central "
            f"noise takes all of eps (honest = {honest:g}), and the atoms need a part of it; allow "
            f"at least {allowed:.4g}"
        )
