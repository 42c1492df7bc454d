"""Simulation: what a file says about cost and error, against what its protocol does.

``users`` runs the randomizer of every user; ``aggregate`` draws the events of all users together,
the same law at a cost that depends on the noise alone.  The bits are seeded, so a simulation
protects nobody.
"""

from __future__ import annotations

import math
import multiprocessing
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, get_args

import numpy as np

from accounting.base.arrays import FloatArray, IntArray
from accounting.base.errors import InvalidParameter
from accounting.base.progress import Progress, silent
from accounting.base.threads import cores
from accounting.base.validation import one_of, share, whole
from paramsearch.deploy.analyzer import Analyzer
from paramsearch.deploy.bits import SeededBits
from paramsearch.deploy.codec import Codec
from paramsearch.deploy.participation import part_of, refuse, too_few_users
from paramsearch.deploy.randomizer import Noise, Randomizer
from paramsearch.parameters.parameter_file import ParameterFile

Way = Literal["users", "aggregate"]
Values = Literal["uniform", "zero", "largest"]
MOST_USERS: dict[Way, int] = {"users": 10**7, "aggregate": 10**10}
_CHUNK = 100_000
_MOST_EVENTS = 30_000_000


@dataclass(frozen=True)
class Plan:
    """What to simulate; ``honest`` is the fraction of the users who add noise.

    If those are fewer than the file's certificate needs, this is an error unless ``allow_few``.
    """

    file: ParameterFile
    users: int
    values: Values = "uniform"
    runs: int = 1
    seed: int = 0
    path: Way = "aggregate"
    honest: float = 1.0
    allow_few: bool = False

    def __post_init__(self) -> None:
        one_of("path", self.path, get_args(Way))
        one_of("values", self.values, get_args(Values))
        whole("users", self.users, least=1)
        if self.users > MOST_USERS[self.path]:
            raise InvalidParameter(
                f"users = {self.users:,} is more than the {MOST_USERS[self.path]:,} of the path "
                f"{self.path!r}"
            )
        whole("runs", self.runs, least=1)
        whole("seed", self.seed, least=0)
        object.__setattr__(self, "honest", share("honest", self.honest))
        refuse(too_few_users(self.file, self.noisy_users), allowed=self.allow_few)
        events = Noise(self.file).rate * self.users / self.file.problem.n
        if events > _MOST_EVENTS:
            raise InvalidParameter(
                f"{self.users:,} users draw about {float(events):.3g} events of noise, too many to "
                f"simulate; the file is for n = {self.file.problem.n:,}, rescale it"
            )
        if self.honest < 1 and self.path == "users":
            raise InvalidParameter("honest below 1 is simulated on the path 'aggregate'")

    @property
    def noisy_users(self) -> int:
        return part_of(self.users, self.honest)


@dataclass(frozen=True)
class Run:
    """One run: messages sent, and the error of every coordinate."""

    messages: int
    errors: FloatArray


@dataclass(frozen=True)
class Comparison:
    """A measured mean beside the mean and standard error that the file leads to."""

    measured: float
    expected: float
    standard_error: float

    @property
    def deviation(self) -> float:
        """In standard errors."""
        return (self.measured - self.expected) / self.standard_error


@dataclass(frozen=True)
class Outcome:
    """All runs together."""

    plan: Plan
    runs: tuple[Run, ...]

    @property
    def _share(self) -> float:
        """Of the file's noise."""
        return self.plan.users / self.plan.file.problem.n * self.plan.honest

    @property
    def messages(self) -> Comparison:
        """Of all users."""
        plan, file = self.plan, self.plan.file
        sends = {"uniform": 1 - 1 / (file.problem.max_value + 1), "zero": 0.0, "largest": 1.0}
        chance = sends[plan.values]
        expected = plan.users * chance + file.cost.noise_messages * self._share
        noise = [(1, file.central.r, file.central.p)] * 2
        noise += [(len(entry.atom), entry.r, entry.p) for entry in file.atoms]
        variance = plan.users * chance * (1 - chance)
        for size, r, p in noise:
            odd = float(1 - Fraction(p))
            variance += file.dimension * self._share * size**2 * r * (1 - odd) / odd**2
        measured = float(np.mean([run.messages for run in self.runs]))
        return Comparison(measured, expected, math.sqrt(variance / len(self.runs)))

    @property
    def bits_per_user(self) -> float:
        return self.messages.measured * Codec.of(self.plan.file).bits / self.plan.users

    @property
    def mse(self) -> Comparison:
        """Of every coordinate."""
        squares = np.concatenate([run.errors**2 for run in self.runs])
        central = self.plan.file.central
        odd = float(1 - Fraction(central.p))
        p, r = 1 - odd, 2 * central.r * self._share
        variance = r * p / odd**2
        fourth = r * p * (1 + 4 * p + p * p) / odd**4 + 3 * variance**2
        error = math.sqrt((fourth - variance**2) / len(squares))
        return Comparison(float(squares.mean()), variance, error)


def simulate(plan: Plan, progress: Progress = silent) -> Outcome:
    """All runs, one after the other."""
    noise = Noise(plan.file)
    runs = []
    for number in range(plan.runs):
        progress(f"run {number + 1} of {plan.runs}")
        one = _aggregate(plan, number, noise) if plan.path == "aggregate" else _users(plan, number)
        runs.append(one)
    return Outcome(plan, tuple(runs))


def _aggregate(plan: Plan, number: int, noise: Noise) -> Run:
    """How many send what is multinomial; errors are what the noise adds."""
    file, dimension = plan.file, plan.file.dimension
    random = np.random.default_rng([plan.seed, number])
    sending = plan.users
    if plan.values == "zero":
        sending = 0
    elif plan.values == "uniform":
        top = file.problem.max_value
        sending = int(random.binomial(plan.users, top / (top + 1)))
    errors = np.zeros(dimension)
    messages = sending
    source = SeededBits(f"{plan.seed}/{number}")
    for coordinate, which, copies in noise.events(source, plan.noisy_users):
        elements = noise.atoms[which]
        messages += len(elements) * copies
        errors[coordinate] += sum(elements) * copies
    return Run(messages, errors)


def _users(plan: Plan, number: int) -> Run:
    pieces = [
        (plan, number, begin, min(begin + _CHUNK, plan.users))
        for begin in range(0, plan.users, _CHUNK)
    ]
    errors, messages = np.zeros(plan.file.dimension), 0
    for found in _in_processes(pieces):
        messages += found.messages
        errors += found.errors
    return Run(messages, errors)


Piece = tuple[Plan, int, int, int]


def _in_processes(pieces: list[Piece]) -> Iterator[Run]:
    if len(pieces) < 4 or cores() < 2:
        yield from map(_piece, pieces)
        return
    fork = "fork" in multiprocessing.get_all_start_methods()
    context = multiprocessing.get_context("fork" if fork else "spawn")
    with ProcessPoolExecutor(cores(), context) as pool:
        yield from pool.map(_piece, pieces)


def _piece(piece: Piece) -> Run:
    """The randomizers of some users, and the analyzer on their messages."""
    plan, number, begin, end = piece
    file = plan.file
    randomizer = Randomizer(file, SeededBits(f"{plan.seed}/{number}/{begin}"), not_private=True)
    random = np.random.default_rng([plan.seed, number, begin])
    values = _values(plan, end - begin, random)
    analyzer = Analyzer(file, strict=True)  # of the messages, not of their number
    if file.dimension == 1:
        analyzer.add(randomizer.batch(values, allow_few=True).symbols)
        truth = np.array([values.sum()])
    else:
        coordinates = random.integers(file.dimension, size=len(values))
        pairs = list(zip(coordinates.tolist(), values.tolist(), strict=True))
        analyzer.add(randomizer.batch(pairs, allow_few=True).symbols)
        truth = np.bincount(coordinates, weights=values, minlength=file.dimension)
    return Run(analyzer.messages, analyzer.sums - truth)


def _values(plan: Plan, count: int, random: np.random.Generator) -> IntArray:
    top = plan.file.problem.max_value
    if plan.values == "uniform":
        return random.integers(top + 1, size=count)
    return np.full(count, 0 if plan.values == "zero" else top, np.int64)
