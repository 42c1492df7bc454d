"""The interface of a baseline: error, messages and bits per user, and a run of the protocol."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from accounting.base.arrays import IntArray
from accounting.base.validation import whole
from accounting.model.costs import bits_per_message
from accounting.model.problem import Problem


@dataclass(frozen=True)
class ForProblem:
    """A mechanism for a problem with at least two users."""

    problem: Problem

    def __post_init__(self) -> None:
        whole("n", self.problem.n, least=2)


def value_bits(problem: Problem) -> int:
    """Bits of a message that is one of 1..max_value."""
    return bits_per_message(problem.max_value)


@dataclass(frozen=True)
class Run:
    """The result of one run: the estimate of the sum, and the messages of all users."""

    estimate: float
    messages: int


class Baseline(Protocol):
    """A way to sum integers.

    ``mse`` is the mean squared error of the sum, ``messages`` and ``bits`` are expected numbers per
    user with a non-zero value, and ``guarantee`` says in words what is known about its privacy.
    """

    @property
    def name(self) -> str: ...

    @property
    def guarantee(self) -> str: ...

    @property
    def problem(self) -> Problem: ...

    @property
    def mse(self) -> float: ...

    @property
    def messages(self) -> float: ...

    @property
    def bits(self) -> float: ...

    def run(self, values: IntArray, random: np.random.Generator) -> Run:
        """Run randomizers, shuffler and analyzer; in floating point, for simulations only."""


def rmse(baseline: Baseline) -> float:
    return math.sqrt(baseline.mse)
