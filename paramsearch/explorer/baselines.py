"""Cost and error of the baselines for all stops of the explorer's sliders.

Arrays are flat; the last of their ``axes`` varies fastest.  The correlated noise of the paper does
not depend on n, so n is not among its axes: the page computes 1 + noise/n messages per user.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from itertools import product
from typing import Any

from accounting.base.errors import AccountingError
from accounting.base.progress import Progress, silent
from accounting.baselines import (
    Baseline,
    DiscreteLaplace,
    FragmentedRappor,
    RandomizedResponse,
    SplitAndMix,
)
from accounting.model.change import SUBSTITUTION, Adjacency
from accounting.model.problem import Problem
from paramsearch.comparison import published_noise

RESPONSE_USERS = 1_000_000
"""Randomized response is evaluated for this number of users only: it takes longest of all."""
_FINE = 12
"""Digits of messages per user, from which the page subtracts 1."""
_COARSE = 5
"""Digits of the paper's noise; more of them depend on the number of cores."""
_NO_PARAMETERS = AccountingError, OverflowError
"""What a mechanism raises if it has no parameters for a problem."""
_EPS_DELTA_VALUE = "eps", "delta", "max_value"


@dataclass(frozen=True)
class PerUser:
    """Messages and bits per user, and the error of the sum; None where there is none."""

    messages: float | None = None
    bits: float | None = None
    rmse: float | None = None


@dataclass(frozen=True)
class PublishedNoise:
    """Noise messages of all users, bits per message, and the error; None where there is none."""

    noise: float | None = None
    bits_per_message: int | None = None
    rmse: float | None = None


@dataclass(frozen=True)
class Axes:
    """The stops of the sliders, and the adjacency of all files."""

    n: tuple[int, ...]
    eps: tuple[float, ...]
    delta: tuple[float, ...]
    max_value: tuple[int, ...]
    central_fraction: tuple[float, ...]
    adjacency: Adjacency = SUBSTITUTION

    def problem(self, *, n: int, eps: float, delta: float, max_value: int) -> Problem:
        """Return the problem at these stops."""
        return Problem(n=n, eps=eps, delta=delta, max_value=max_value, adjacency=self.adjacency)


def baselines(axes: Axes, progress: Progress = silent) -> dict[str, Any]:
    """Return the axes, and arrays of every mechanism by a short name."""
    return {
        **_paper(axes, progress),
        "ikos": _split_and_mix(axes),
        "rappor": _rappor(axes, progress),
        "response": _response(axes, progress),
        "central": _central(axes),
    }


def _paper(axes: Axes, progress: Progress) -> dict[str, Any]:
    """Return the paper's own parameters, by its theorem and refined."""
    rows = []
    for top in axes.max_value:  # computing t', once for each, takes most of the time
        progress(f"the paper's parameters for max_value {top:,}")
        for eps, delta, fraction in product(axes.eps, axes.delta, axes.central_fraction):
            problem = axes.problem(n=axes.n[0], eps=eps, delta=delta, max_value=top)
            rows.append(_both_noises(problem, fraction))
    names = "max_value", "eps", "delta", "central_fraction"
    return {
        name: _columns(names, PublishedNoise, column)
        for name, column in zip(("theorem", "refined"), zip(*rows, strict=True), strict=True)
    }


def _both_noises(problem: Problem, central_fraction: float) -> list[PublishedNoise]:
    try:
        return [
            PublishedNoise(
                _short(found.noise_messages, _COARSE), found.bits_per_message, _root(found.mse)
            )
            for found in published_noise(problem, central_fraction=central_fraction)
        ]
    except _NO_PARAMETERS:
        return [PublishedNoise()] * 2


def _split_and_mix(axes: Axes) -> dict[str, Any]:
    rows = [
        _per_user(SplitAndMix(axes.problem(n=n, eps=eps, delta=delta, max_value=top)))
        for n, eps, delta, top in product(axes.n, axes.eps, axes.delta, axes.max_value)
    ]
    return _columns(("n", *_EPS_DELTA_VALUE), PerUser, rows)


def _rappor(axes: Axes, progress: Progress) -> dict[str, Any]:
    rows = []
    for n, eps, delta in product(axes.n, axes.eps, axes.delta):
        progress(f"fragmented RAPPOR for n = {n:,}")
        for top in axes.max_value:
            problem = axes.problem(n=n, eps=eps, delta=delta, max_value=top)
            rows.append(_per_user(FragmentedRappor(problem)))
    return _columns(("n", *_EPS_DELTA_VALUE), PerUser, rows)


def _response(axes: Axes, progress: Progress) -> dict[str, Any]:
    rows = []
    for eps, delta, top in product(axes.eps, axes.delta, axes.max_value):
        progress(f"randomized response for eps = {eps:g}")
        problem = axes.problem(n=RESPONSE_USERS, eps=eps, delta=delta, max_value=top)
        rows.append(_per_user(RandomizedResponse(problem)))
    return _columns(_EPS_DELTA_VALUE, PerUser, rows)


def _central(axes: Axes) -> dict[str, Any]:
    rows = [
        _per_user(
            DiscreteLaplace(axes.problem(n=axes.n[0], eps=eps, delta=axes.delta[0], max_value=top))
        )
        for eps, top in product(axes.eps, axes.max_value)
    ]
    return _columns(("eps", "max_value"), PerUser, rows)


def _per_user(mechanism: Baseline) -> PerUser:
    try:
        return PerUser(
            _short(mechanism.messages, _FINE), _short(mechanism.bits), _root(mechanism.mse)
        )
    except _NO_PARAMETERS:
        return PerUser()


def _columns(
    axes: tuple[str, ...],
    kind: type[PerUser] | type[PublishedNoise],
    rows: Sequence[PerUser] | Sequence[PublishedNoise],
) -> dict[str, Any]:
    """Return the rows as an array for each attribute."""
    names = [field.name for field in fields(kind)]
    return {"axes": axes, **{name: [getattr(row, name) for row in rows] for name in names}}


def _root(mse: float) -> float | None:
    return _short(math.sqrt(mse)) if math.isfinite(mse) else None


def _short(value: float, digits: int = 7) -> float:
    """Round a number to slightly more digits than the page shows."""
    rounded = float(f"{value:.{digits}g}")
    return int(rounded) if rounded.is_integer() else rounded
