"""Bounds of delta from the definition: how much to enumerate, and how far the sum may be off.

Lemmas are those of README.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import mpmath
import numpy as np

from accounting.base.deadline import OutOfTime, sets_deadline
from accounting.base.enclosure import Enclosure
from accounting.base.errors import TooLarge
from accounting.base.progress import Progress, silent
from accounting.model.change import (
    SUBSTITUTION,
    Adjacency,
    Change,
    directions,
)
from accounting.model.mechanism import Mechanism
from accounting.model.proof import Proof
from accounting.model.proof_types import GAP, LOOSE, REFERENCE, TYPICAL_DELTA
from accounting.reference.definition import (
    Coordinate,
    Number,
    Numbers,
    Releases,
    View,
    check_size,
    place_values,
)
from accounting.reference.noise_masses import least_lengths, noise_masses

_DOUBLE = 53
"""Bits of a double."""
_GUARD_BITS = 96
"""Bits beyond those of the accuracy that is asked for, where doubles are not accurate enough."""
_MOST_HELD = {"doubles": 1 << 24, "mpmath": 1 << 19}
"""Most outcomes in memory: a gigabyte of doubles; of mpmath's numbers, those of some seconds."""
_MOST_TERMS = {"doubles": 1 << 33, "mpmath": 1 << 23}
"""Most terms of all sums together, which take about a minute."""
_SEARCHED = 64
"""Terms in the time of finding one ratio among sorted ones."""
_LARGEST_EPS = 1e4
_SMALLEST = 1e-280
"""Smallest delta that is resolved: doubles, which bounds are, end near 1e-308."""

Play = tuple[Sequence[Coordinate], int]
"""The coordinates that change first, and the number of later releases with any change in each."""


@dataclass(frozen=True)
class Reference:
    """Proofs about one mechanism by enumeration, for releases in which one user's value changes.

    The value may change in any way from release to release; with ``same_change``, the same change
    is made in every release.

    Args:
        mechanism: The exact parameters.
        releases: Number of releases that are seen together.
        same_change: Whether all releases have the same change.
        adjacency: Which data sets are neighbors.

    >>> from fractions import Fraction
    >>> from accounting import ExactCentral, ExactNoise, Mechanism
    >>> noise = ExactNoise(p=Fraction(1, 2), r=Fraction(2))
    >>> mechanism = Mechanism(1, {(-1, 1): (noise,)}, ExactCentral(step=Fraction(1)))
    >>> print(Reference(mechanism).enclose(1.0))
    delta(1) in [0.179417, 0.179418], worst where input 0 becomes 1 (2 enumeration)
    """

    mechanism: Mechanism
    releases: int = 1
    same_change: bool = False
    adjacency: Adjacency = SUBSTITUTION

    @sets_deadline
    def enclose(
        self,
        eps: float,
        *,
        gap: float = GAP,
        claim: float | None = None,
        deadline: float = math.inf,
        progress: Progress = silent,
    ) -> Proof:
        """Enclose delta(eps).

        Args:
            eps: The eps of the guarantee.
            gap: Relative gap between the bounds; the proof says whether it was met.
            claim: The delta to decide about; once the bounds decide it, ``LOOSE`` is close enough.
            deadline: When to stop, on the clock of ``time.monotonic``.
            progress: Called with one line of text for every enumeration.

        Raises:
            TooLarge: If there are too many outcomes.
            OutOfTime: If nothing was proved before the deadline.
        """
        scale = max(TYPICAL_DELTA if claim is None else claim, _SMALLEST)
        proof: Proof | None = None
        while True:
            progress(f"enumerating all message counts, to resolve delta = {scale:.3g}")
            try:
                proof = self._proof(eps, gap * scale / 2)
            except (TooLarge, OutOfTime):
                if proof is None:
                    raise
                return proof
            found = proof.enclosure
            decided = claim is not None and not found.lower <= claim < found.upper
            if found.relative_gap <= (max(gap, LOOSE) if decided else gap):
                return replace(proof, met=True)
            smaller = found.lower or scale * min(scale, 1e-6)
            if not _SMALLEST <= smaller < scale:
                return proof
            scale = smaller

    def of_sequence(
        self, changes: Sequence[Change], eps: float, *, accuracy: float = 1e-9
    ) -> Enclosure:
        """Enclose delta(eps) of a sequence of changes that is fixed in advance.

        Args:
            changes: The change in every release.
            eps: The eps of the guarantee.
            accuracy: Distance of the bounds, if that can be reached.

        Raises:
            TooLarge: If there are too many outcomes.
        """
        coordinates = [both for change in changes for both in change.coordinates]
        enumeration, (found,) = self._sums(eps, accuracy / 2, [(coordinates, 0)], changes)
        return enumeration.enclosure(found)

    def _proof(self, eps: float, accuracy: float) -> Proof:
        changes = self.mechanism.changes(self.adjacency)
        groups = [list(range(len(changes)))]
        if self.releases > 1 and not self.same_change:
            groups = directions(changes, self.adjacency)
        proofs = [self._of_group([changes[i] for i in group], eps, accuracy) for group in groups]
        worst = max(proofs, key=lambda proof: proof.enclosure.lower)
        upper = max(proof.enclosure.upper for proof in proofs)
        return replace(
            worst,
            enclosure=Enclosure(worst.enclosure.lower, upper),
            covered={REFERENCE: len(changes)},
        )

    def _of_group(self, changes: Sequence[Change], eps: float, accuracy: float) -> Proof:
        """For changes each of which may follow any other in several releases."""
        plays: list[Play] = [(change.coordinates, self.releases - 1) for change in changes]
        if self.same_change:
            plays = [(change.coordinates * self.releases, 0) for change in changes]
        enumeration, found = self._sums(eps, accuracy, plays, changes)
        worst = max(range(len(found)), key=found.__getitem__)
        return Proof(
            eps=eps,
            enclosure=enumeration.enclosure(found[worst]),
            worst_change=changes[worst],
            exact=True,
            met=False,
            covered={REFERENCE: len(changes)},
            precision=enumeration.bits,
            deviation=0.0,  # what is enumerated is the deployed noise
        )

    def _sums(
        self, eps: float, accuracy: float, plays: Sequence[Play], changes: Sequence[Change]
    ) -> tuple[Enumeration, list[Number]]:
        """In doubles if they are accurate enough; or if mpmath's numbers would take too long."""
        bits = _GUARD_BITS + math.ceil(-math.log2(accuracy))
        what = self.mechanism, eps, accuracy, plays, changes
        doubles = Enumeration(*what, bits=_DOUBLE)
        if doubles.rounding > accuracy / 2:
            try:
                finer = Enumeration(*what, bits=bits)
                return finer, finer.sums()
            except TooLarge:
                if doubles.rounding > TYPICAL_DELTA:  # nothing would be known
                    raise
        return doubles, doubles.sums()


class Enumeration:
    """The sums of the definition at one eps, in floating point with a given precision.

    Args:
        mechanism: The exact parameters.
        eps: The eps of the guarantee.
        accuracy: What truncation may add on each side is half of this.
        plays: What changes: one sum for each.
        changes: What may change in later releases.
        bits: Precision of the numbers, which are doubles if it is theirs.
    """

    def __init__(
        self,
        mechanism: Mechanism,
        eps: float,
        accuracy: float,
        plays: Sequence[Play],
        changes: Sequence[Change],
        *,
        bits: int,
    ) -> None:
        if eps > _LARGEST_EPS:
            raise TooLarge(
                f"eps = {eps:g} is more than --tier reference takes, {_LARGEST_EPS:g}: ask for "
                "--tier fast"
            )
        self.bits, self._plays = bits, plays
        self._kind = "doubles" if bits == _DOUBLE else "mpmath"
        self._context = mpmath.MPContext()
        self._context.prec = bits
        real = self._context.mpf
        self._x = self._context.exp(real(eps))
        most = max(len(change.coordinates) for change in changes)
        self._coordinates = max(len(now) + later * most for now, later in plays)
        tables = 2 + sum(map(len, mechanism.atoms.values()))
        tail = real(accuracy) / (2 * self._coordinates * tables * (1 + self._x))
        place_values(mechanism.max_value, least_lengths(mechanism, tail))  # before any long table
        noises = noise_masses(mechanism, tail, bits)
        self._lost = 1.01 * self._coordinates * sum(real(noise.lost) for noise in noises)
        masses = [(noise.atom, self._numbers([f.a for f in noise.masses])) for noise in noises]
        masses.sort(key=lambda noise: len(noise[0]))  # those that share most messages first
        self._view = View(mechanism.max_value, masses, most=_MOST_HELD[self._kind])
        huge = 2.0**1000 if self._kind == "doubles" else self._context.ldexp(1, 30_000)
        self._releases = Releases(self._view, changes, huge)
        roundings = self._coordinates * (4 * len(noises) + self._view.summands + 12)
        if self._coordinates > 1:
            roundings += 2 * math.isqrt(self._view.outcomes) + 12
        self.rounding = roundings * self._unit * 2.1 + 4 * self._coordinates * self._x / real(huge)
        """What rounding may add on each side, besides a tiny part of the sum (README.md,
        Lemmas 3 to 5)."""

    @property
    def _unit(self) -> Number:
        return self._context.ldexp(1, -self.bits)

    def _numbers(self, values: Sequence[Any]) -> Numbers:
        if self._kind == "doubles":
            return np.array([float(value) for value in values])
        return np.array([self._context.mpf(value) for value in values], np.object_)

    def sums(self) -> list[Number]:
        """The sum of max(P - e^eps Q, 0) over all outcomes, for every play.

        Raises:
            TooLarge: If there are too many outcomes.
        """
        outcomes, terms = self._view.outcomes, 0
        for now, later in self._plays:
            if len(now) + later == 1:
                terms += outcomes
            else:
                check_size(len(self._plays) * outcomes, _MOST_HELD[self._kind])
                terms += _SEARCHED * self._releases.terms(now, later)
        check_size(terms, _MOST_TERMS[self._kind])
        x = self._numbers([self._x])
        return [
            self._view.pair(*now[0]).divergence(x[0])
            if len(now) + later == 1
            else self._releases.divergence(x, now, later)[0]
            for now, later in self._plays
        ]

    def enclosure(self, found: Number) -> Enclosure:
        """Bounds of the truth, if the sum comes out as this number."""
        value = self._context.mpf(found)
        terms = self._coordinates * (self._view.outcomes + 16)
        margin = self.rounding + value * terms * self._unit * 1.1
        lower = value - margin - self._x * self._lost
        upper = value + margin + self._lost
        return Enclosure(
            max(0.0, math.nextafter(float(lower), -1.0)),
            min(1.0, math.nextafter(float(upper), 2.0)),
        )
