"""The noise of one user, or of many users together, drawn exactly.

The noise of a file is compound Poisson over its n users.  The number of a user's events is one
Poisson draw; each event is one of the atoms (or +1 or -1, the central noise) with probability
proportional to its rate, and has as many copies as the atom's law says: a logarithmic number, or a
burst.  A user without events costs one draw.  Nothing is approximate: the law of every message is
the one that the file's rationals define.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from accounting.base.arrays import IntArray
from accounting.base.deadline import check_time
from accounting.base.errors import TooLarge
from accounting.model.family import Atom
from paramsearch.deploy.bits import BitSource
from paramsearch.deploy.exact_events import uniform, uniform_many
from paramsearch.deploy.noise_events import MOST_MESSAGES, noise_terms
from paramsearch.deploy.samplers import AT_ONCE, Burst, Choice, Logarithmic, Poisson
from paramsearch.parameters.parameter_file import ParameterFile


@dataclass(frozen=True)
class NoiseEvent:
    """All messages of an atom, each sent ``copies`` times, in one coordinate."""

    coordinate: int
    atom: Atom
    copies: int


@dataclass(frozen=True)
class NoiseEvents:
    """Several events of one atom: their coordinates, and the copies of each."""

    atom: Atom
    coordinates: IntArray
    copies: IntArray


class Noise:
    """A sampler of the noise of one user, or of several users together.

    The events of an atom form a Poisson process.  Those of all atoms together are a Poisson process
    with the sum of the rates, in which every event belongs to an atom with probability proportional
    to its rate, independently of all others (superposition): this is the same joint law.  So a user
    costs one draw, and an event as many more as the logarithm of the number of atoms.
    """

    def __init__(self, file: ParameterFile) -> None:
        self.users, self.dimension = file.problem.n, file.dimension
        terms = noise_terms(file)
        rates = [term.rate for term in terms]
        self.rate = sum(rates, Fraction(0)) * file.dimension
        """Expected number of events of all users."""
        self._atoms = [term.atom for term in terms]
        self._which = Choice(rates)
        laws = {
            (p, m): Burst(p, m) if m else Logarithmic(p)
            for p, m in dict.fromkeys((term.p, term.m) for term in terms)
        }
        self._copies = [laws[term.p, term.m] for term in terms]
        self._counts = {1: Poisson(self.rate / self.users)}

    def events(self, source: BitSource) -> Iterator[NoiseEvent]:
        """The events of one user, as the specification of clients says."""
        for _ in range(self._counts[1].draw(source)):
            which = self._which.draw(source)
            coordinate = uniform(source, self.dimension) if self.dimension > 1 else 0
            copies = self._copies[which].draw(source)
            atom = self._atoms[which]
            _check_size(atom, copies)
            yield NoiseEvent(coordinate, atom, copies)

    def events_of(self, source: BitSource, users: int) -> Iterator[NoiseEvents]:
        """The events of this number of users together, atom by atom.

        The same law as that of as many calls of ``events``, but other bits.
        """
        count = self._counts.get(users)
        if count is None:
            count = Poisson(self.rate * Fraction(users, self.users))
            self._counts = {1: self._counts[1], users: count}
        of_atoms = self._which.counts(source, count.draw_at_once(source)).tolist()
        for atom, copies, left in zip(self._atoms, self._copies, of_atoms, strict=True):
            while left:
                check_time()
                some = min(left, AT_ONCE)
                left -= some
                drawn = copies.draw_many(source, some)
                _check_size(atom, int(drawn.max()))
                yield NoiseEvents(atom, uniform_many(source, np.full(some, self.dimension)), drawn)


def _check_size(atom: Atom, copies: int) -> None:
    if copies * len(atom) > MOST_MESSAGES:
        raise TooLarge(
            f"one noise event has more than {MOST_MESSAGES:,} messages: the p of atom "
            f"{list(atom)!s:.60} is too close to 1"
        )
