"""The interface of a baseline: error, messages and bits per user, and a run of the protocol."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from accounting.base.arrays import IntArray
from accounting.base.errors import InvalidParameter
from accounting.base.validation import whole
from accounting.model.costs import bits_per_message, largest_central_of
from accounting.model.problem import Problem


@dataclass(frozen=True)
class ForProblem:
    """A mechanism for a problem with at least two users."""

    problem: Problem

    def __post_init__(self) -> None:
        whole("n", self.problem.n, least=2)

    @property
    def changes(self) -> int:
        """The largest number of sums that one user changes: one in each release, or two where the
        value of a vector may move to another coordinate."""
        return self.problem.releases * self.problem.changed_coordinates

    @property
    def honest_users(self) -> int:
        """Number of users whose noise has to suffice."""
        count = math.floor(self.problem.honest * self.problem.n)
        return whole("number of honest users", count, least=2)

    @property
    def central_step(self) -> float:
        """The privacy loss of the Discrete Laplace noise in each sum when the sum changes by
        one."""
        return largest_central_of(self.problem) / self.problem.max_value


def for_one_release(name: str, problem: Problem) -> None:
    """Refuse several releases for a mechanism whose privacy is only known for one."""
    if problem.releases > 1:
        raise InvalidParameter(
            f"{name}: its privacy is computed for one release, not for {problem.releases:,} "
            "together"
        )


def value_bits(problem: Problem) -> int:
    """Return the bits of a message that is one of 1..max_value, in one of the coordinates."""
    return bits_per_message(problem.dimension * problem.max_value)


@dataclass(frozen=True)
class Run:
    """The result of one run: the estimate of the sum, and the messages of all users."""

    estimate: float
    messages: int


class Baseline(Protocol):
    """A way to sum integers, or vectors with at most one non-zero coordinate.

    ``mse`` is the mean squared error of the sum, or of each coordinate; ``messages`` and ``bits``
    are expected numbers per user with a non-zero value in one release, and ``guarantee`` says in
    words what is known about the privacy of all releases together.
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
        """Run randomizers, shuffler and analyzer for integers, with noise from everybody.

        In floating point, for simulations only.
        """


def rmse(baseline: Baseline) -> float:
    return math.sqrt(baseline.mse)
