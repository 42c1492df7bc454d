"""What the table is compared with, for every stop of the explorer's sliders.

Arrays are flat, the last of their ``axes`` fastest.  The correlated noise of the paper does not
depend on n, so that n is not among its axes: the page finds 1 + noise/n.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
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
from accounting.model.problem import Problem
from paramsearch.comparison import of_the_paper

RESPONSE_USERS = 1_000_000
"""The error of randomized response is found for these users alone: it takes longest of all."""
_FINE = 12
"""Digits of messages per user, of which the page takes 1 away."""
_COARSE = 5
"""Digits of the paper's noise: more depend on the number of cores that solve its program."""
_PER_USER = "messages", "bits", "rmse"
Numbers = tuple[float | None, ...]
_NOTHING: Numbers = (None, None, None)
_NONE = AccountingError, OverflowError
"""What a mechanism answers to a problem that it has no parameters for."""


@dataclass(frozen=True)
class Axes:
    """The stops of the sliders."""

    n: tuple[int, ...]
    eps: tuple[float, ...]
    delta: tuple[float, ...]
    max_value: tuple[int, ...]
    central_fraction: tuple[float, ...]


def others(axes: Axes, progress: Progress = silent) -> dict[str, Any]:
    """By a short name: axes and numbers; None where a mechanism has no parameters that do."""
    return {
        **_published(axes, progress),
        "ikos": _split_and_mix(axes),
        "rappor": _rappor(axes, progress),
        "response": _response(axes, progress),
        "central": _central(axes),
    }


def _published(axes: Axes, progress: Progress) -> dict[str, Any]:
    """The paper's own parameters."""
    found: tuple[list[Numbers], list[Numbers]] = [], []
    for top in axes.max_value:  # t' is found once for each, the long part
        progress(f"the paper's parameters for max_value {top:,}")
        for eps, delta, fraction in product(axes.eps, axes.delta, axes.central_fraction):
            problem = Problem(n=axes.n[0], eps=eps, delta=delta, max_value=top)
            for line, numbers in zip(found, _noises(problem, fraction), strict=True):
                line.append(numbers)
    names = "max_value", "eps", "delta", "central_fraction"
    return {
        name: _columns(names, ("noise", "bits_per_message", "rmse"), line)
        for name, line in zip(("theorem", "refined"), found, strict=True)
    }


def _noises(problem: Problem, fraction: float) -> list[Numbers]:
    """Noise messages, bits and error by the theorem and refined."""
    try:
        return [
            (_short(noise.noise_messages, _COARSE), noise.bits_per_message, _root(noise.mse))
            for noise in of_the_paper(problem, fraction)
        ]
    except _NONE:
        return [_NOTHING] * 2


def _split_and_mix(axes: Axes) -> dict[str, Any]:
    every = (
        _numbers(SplitAndMix(Problem(n=n, eps=eps, delta=delta, max_value=top)))
        for n, eps, delta, top in product(axes.n, axes.eps, axes.delta, axes.max_value)
    )
    return _columns(("n", "eps", "delta", "max_value"), _PER_USER, every)


def _rappor(axes: Axes, progress: Progress) -> dict[str, Any]:
    rows = []
    for n, eps, delta in product(axes.n, axes.eps, axes.delta):
        progress(f"fragmented RAPPOR for n = {n:,}")
        first = FragmentedRappor(Problem(n=n, eps=eps, delta=delta, max_value=1))
        for top in axes.max_value:
            mechanism = FragmentedRappor(Problem(n=n, eps=eps, delta=delta, max_value=top))
            with suppress(*_NONE):  # the flip probability is that of any max_value: found once
                mechanism.__dict__["flip"] = first.flip
            rows.append(_numbers(mechanism))
    return _columns(("n", "eps", "delta", "max_value"), _PER_USER, rows)


def _response(axes: Axes, progress: Progress) -> dict[str, Any]:
    rows = []
    for eps, delta, top in product(axes.eps, axes.delta, axes.max_value):
        progress(f"randomized response for eps = {eps:g}")
        problem = Problem(n=RESPONSE_USERS, eps=eps, delta=delta, max_value=top)
        rows.append(_numbers(RandomizedResponse(problem)))
    return _columns(("eps", "delta", "max_value"), _PER_USER, rows)


def _central(axes: Axes) -> dict[str, Any]:
    every = (
        DiscreteLaplace(Problem(n=axes.n[0], eps=eps, delta=axes.delta[0], max_value=top))
        for eps, top in product(axes.eps, axes.max_value)
    )
    return _columns(("eps", "max_value"), _PER_USER, map(_numbers, every))


def _numbers(mechanism: Baseline) -> Numbers:
    """None for what does not exist: an error that is infinite, or no noise that would do."""
    try:
        return _short(mechanism.messages, _FINE), _short(mechanism.bits), _root(mechanism.mse)
    except _NONE:
        return _NOTHING


def _columns(
    axes: tuple[str, ...], names: tuple[str, ...], rows: Iterable[Numbers]
) -> dict[str, Any]:
    columns = zip(*rows, strict=True)
    return {"axes": axes, **{name: list(c) for name, c in zip(names, columns, strict=True)}}


def _root(mse: float) -> float | None:
    return _short(math.sqrt(mse)) if math.isfinite(mse) else None


def _short(value: float, digits: int = 7) -> float:
    """As many digits as are shown, and some more."""
    rounded = float(f"{value:.{digits}g}")
    return int(rounded) if rounded.is_integer() else rounded
