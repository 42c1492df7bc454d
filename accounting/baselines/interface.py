"""One small interface: error, messages and bits per user, and a run of the protocol."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from accounting.base.arrays import IntArray
from accounting.base.validation import positive, probability, whole


@dataclass(frozen=True)
class Problem:
    """Sum integers 0..max_value of n users with (eps, delta)-privacy under substitution."""

    n: int
    eps: float
    delta: float
    max_value: int

    def __post_init__(self) -> None:
        whole("n", self.n, least=2)
        positive("eps", self.eps)
        probability("delta", self.delta)
        whole("max value", self.max_value, least=1)

    @property
    def value_bits(self) -> int:
        """Of a message that is one of 1..max_value; a bit at least."""
        return max(1, (self.max_value - 1).bit_length())


@dataclass(frozen=True)
class Run:
    """What one run of a protocol gave."""

    estimate: float
    messages: int


class Baseline(Protocol):
    """``mse`` of the sum, and expected ``messages`` and ``bits`` per user who has a value.

    ``guarantee`` says in words what is known about its privacy.
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
        """Randomizers, shuffler and analyzer; in floating point, for simulations only."""


def rmse(baseline: Baseline) -> float:
    return math.sqrt(baseline.mse)
