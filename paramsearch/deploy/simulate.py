"""Simulation: the cost and error that a file states, compared with those of its protocol.

The path ``users`` runs the randomizer of every user; ``aggregate`` draws the events of all users
together, the same law at a cost that depends on the noise alone.  The bits are seeded, so simulated
messages protect nobody.
"""

from __future__ import annotations

import math
import multiprocessing
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from accounting.base.arrays import FloatArray, IntArray
from accounting.base.enclosure import Summarized, counted
from accounting.base.errors import InvalidParameter
from accounting.base.progress import Progress, silent
from accounting.base.threads import can_fork, cores
from accounting.base.validation import instance, one_of, share, whole
from paramsearch.deploy.analyzer import Analyzer
from paramsearch.deploy.bits import SeededBits
from paramsearch.deploy.codec import Codec
from paramsearch.deploy.noise_events import noise_terms
from paramsearch.deploy.noise_sampler import Noise
from paramsearch.deploy.participation import check_enough, share_of, too_few_users
from paramsearch.deploy.randomizer import Randomizer
from paramsearch.parameters.parameter_file import ParameterFile

SamplingPath = Literal["users", "aggregate"]
Values = Literal["uniform", "zero", "largest"]
MOST_USERS: dict[SamplingPath, int] = {"users": 10**7, "aggregate": 10**10}
_CHUNK = 100_000
"""Number of users simulated together by one process."""
_MOST_EVENTS = 30_000_000
"""Largest expected number of noise events in a run; each takes microseconds."""


@dataclass(frozen=True)
class Simulation:
    """A simulation of the protocol of one file.

    Args:
        file: The parameter file.
        users: Number of users.
        values: The users' values.
        runs: Number of independent runs.
        seed: Seed of all random bits.
        path: Whether users are simulated one by one or together.
        honest: Fraction of the users who add their noise, whatever it is: who is missing must not
            depend on the noise.
        allow_few: Allow fewer such users than the file's certificate needs.

    Raises:
        InvalidParameter: If a number is outside its domain, or the simulation would take too long.
        TooFew: If too few users add their noise.

    >>> from paramsearch import Query, Table
    >>> file = Table.open().lookup(Query(n=1000, eps=1.0, delta=1e-6, max_value=5)).file
    >>> Simulation(file, users=1000, honest=1.0, runs=3).noisy_users
    1000
    """

    file: ParameterFile
    users: int
    values: Values = "uniform"
    runs: int = 1
    seed: int = 0
    path: SamplingPath = "aggregate"
    honest: float = 1.0
    allow_few: bool = False

    def __post_init__(self) -> None:
        one_of("path", self.path, get_args(SamplingPath))
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
        check_enough(too_few_users(self.file, self.noisy_users), allowed=self.allow_few)
        events = Noise(self.file).rate * self.users / self.file.problem.n
        if events > _MOST_EVENTS:
            raise InvalidParameter(
                f"{self.users:,} users draw about {float(events):.3g} noise events, too many to "
                f"simulate; the file is for n = {self.file.problem.n:,}: rescale it"
            )
        if self.honest < 1 and self.path == "users":
            raise InvalidParameter("honest below 1 needs the path 'aggregate'")

    @property
    def noisy_users(self) -> int:
        """Number of users who add their noise."""
        return share_of(self.users, self.honest)


@dataclass(frozen=True)
class Run:
    """One run.

    Attributes:
        messages: Number of messages that all users sent.
        errors: Error of the sum of every coordinate.
    """

    messages: int
    errors: FloatArray


@dataclass(frozen=True)
class MeasuredMean:
    """A measured mean beside the one that the file predicts.

    Attributes:
        measured: The mean over all runs.
        expected: The mean that follows from the file.
        standard_error: Standard error of ``measured`` that follows from the file.
    """

    measured: float
    expected: float
    standard_error: float

    @property
    def deviation(self) -> float:
        """Difference of the two means in standard errors."""
        return (self.measured - self.expected) / self.standard_error


@dataclass(frozen=True, repr=False)
class SimulationResult(Summarized):
    """All runs of a simulation.

    Attributes:
        simulation: What was simulated.
        runs: The runs, in their order.
    """

    simulation: Simulation
    runs: tuple[Run, ...]

    def summary(self) -> tuple[str, str]:
        """Return what was simulated, and the measured means beside the expected ones."""
        plan, messages, mse = self.simulation, self.messages, self.mse
        return f"{counted(plan.users, 'user')}, {counted(plan.runs, 'run')}, path {plan.path}", (
            f"{messages.measured / plan.users:.6g} messages per user, expected "
            f"{messages.expected / plan.users:.6g}; RMSE {math.sqrt(mse.measured):.6g}, expected "
            f"{math.sqrt(mse.expected):.6g}"
        )

    @property
    def _share(self) -> float:
        """The simulated noise as a fraction of the file's."""
        return self.simulation.users / self.simulation.file.problem.n * self.simulation.honest

    @property
    def messages(self) -> MeasuredMean:
        """Number of messages of all users in a run."""
        simulation, file = self.simulation, self.simulation.file
        sends = {"uniform": 1 - 1 / (file.problem.max_value + 1), "zero": 0.0, "largest": 1.0}
        chance = sends[simulation.values]
        expected = simulation.users * chance + file.cost.noise_messages * self._share
        variance = simulation.users * chance * (1 - chance)
        for term in noise_terms(file):
            variance += file.dimension * self._share * len(term.atom) ** 2 * term.variance
        measured = float(np.mean([run.messages for run in self.runs]))
        return MeasuredMean(measured, expected, math.sqrt(variance / len(self.runs)))

    @property
    def bits_per_user(self) -> float:
        """Measured number of bits that one user sends."""
        return self.messages.measured * Codec.of(self.simulation.file).bits / self.simulation.users

    @property
    def mse(self) -> MeasuredMean:
        """Squared error of a coordinate."""
        squares = np.concatenate([run.errors**2 for run in self.runs])
        central = noise_terms(self.simulation.file)[0]
        odd = central.one_minus_p
        p, r = 1 - odd, 2 * central.amount * self._share
        variance = r * p / odd**2
        fourth = r * p * (1 + 4 * p + p * p) / odd**4 + 3 * variance**2
        error = math.sqrt((fourth - variance**2) / len(squares))
        return MeasuredMean(float(squares.mean()), variance, error)


def simulate(simulation: Simulation, progress: Progress = silent) -> SimulationResult:
    """Run the protocol of a parameter file, and measure its messages and its error.

    The random bits have a seed, so these messages protect nobody.

    Args:
        simulation: What to simulate.
        progress: Called with one line of text now and then.

    Returns:
        All runs, with the measured means beside those that the file predicts.

    >>> from paramsearch import Query, Simulation, Table, simulate
    >>> query = Query(n=1000, eps=1.0, delta=1e-6, max_value=5)
    >>> file = Table.open().lookup(query).file
    >>> found = simulate(Simulation(file, users=1000, runs=20))
    >>> abs(found.messages.deviation) < 4, abs(found.mse.deviation) < 4
    (True, True)
    """
    instance("simulation", simulation, Simulation, "give a Simulation(file, users=...)")
    noise = Noise(simulation.file)
    runs = []
    for number in range(simulation.runs):
        progress(f"run {number + 1} of {simulation.runs}")
        one = (
            _aggregate(simulation, number, noise)
            if simulation.path == "aggregate"
            else _users(simulation, number)
        )
        runs.append(one)
    return SimulationResult(simulation, tuple(runs))


def _aggregate(simulation: Simulation, number: int, noise: Noise) -> Run:
    """A run that draws only what matters: how many users send a value, and all noise events."""
    file, dimension = simulation.file, simulation.file.dimension
    random = np.random.default_rng([simulation.seed, number])
    sending = simulation.users
    if simulation.values == "zero":
        sending = 0
    elif simulation.values == "uniform":
        top = file.problem.max_value
        sending = int(random.binomial(simulation.users, top / (top + 1)))
    errors = np.zeros(dimension)
    messages = sending
    source = SeededBits(f"{simulation.seed}/{number}")
    for events in noise.events_of(source, simulation.noisy_users):
        messages += len(events.atom) * int(events.copies.sum())
        sums = np.bincount(events.coordinates, events.copies, dimension)
        errors += sum(events.atom) * sums
    return Run(messages, errors)


def _users(simulation: Simulation, number: int) -> Run:
    pieces = [
        _Piece(simulation, number, begin, min(begin + _CHUNK, simulation.users))
        for begin in range(0, simulation.users, _CHUNK)
    ]
    errors, messages = np.zeros(simulation.file.dimension), 0
    for found in _in_processes(pieces):
        messages += found.messages
        errors += found.errors
    return Run(messages, errors)


@dataclass(frozen=True)
class _Piece:
    """The users begin..end-1 of the run with this number."""

    simulation: Simulation
    number: int
    begin: int
    end: int


def _in_processes(pieces: list[_Piece]) -> Iterator[Run]:
    if len(pieces) < 4 or cores() < 2:
        yield from map(_piece, pieces)
        return
    context = multiprocessing.get_context("fork" if can_fork() else "spawn")
    with ProcessPoolExecutor(cores(), context) as pool:
        yield from pool.map(_piece, pieces)


def _piece(piece: _Piece) -> Run:
    """Run the randomizers of some users, and the analyzer on their messages."""
    simulation, file = piece.simulation, piece.simulation.file
    seed = (simulation.seed, piece.number, piece.begin)
    randomizer = Randomizer(file, SeededBits("/".join(map(str, seed))), not_private=True)
    random = np.random.default_rng(seed)
    values = _values(simulation, piece.end - piece.begin, random)
    analyzer = Analyzer(file, strict=True)  # it adds up messages; their number is not checked
    if file.dimension == 1:
        analyzer.add(randomizer.batch(values, allow_few=True).symbols)
        truth = np.array([values.sum()])
    else:
        coordinates = random.integers(file.dimension, size=len(values))
        pairs = list(zip(coordinates.tolist(), values.tolist(), strict=True))
        analyzer.add(randomizer.batch(pairs, allow_few=True).symbols)
        truth = np.bincount(coordinates, weights=values, minlength=file.dimension)
    return Run(analyzer.messages, analyzer.sums - truth)


def _values(simulation: Simulation, count: int, random: np.random.Generator) -> IntArray:
    top = simulation.file.problem.max_value
    if simulation.values == "uniform":
        return random.integers(top + 1, size=count)
    return np.full(count, 0 if simulation.values == "zero" else top, np.int64)
