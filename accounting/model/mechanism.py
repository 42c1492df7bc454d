"""Mechanisms, the objects of all proofs: all their parameters are exact numbers.

A negative binomial is given by p and either r or its event rate: as a compound Poisson law, it is
the sum of Poisson(rate) many logarithmic(p) counts, with r = -rate / log(1 - p).  Bursts are
Poisson(rate) many, each of 1 + NB(m, p) copies.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from accounting.base.balls import ball, log_of_rest, precision
from accounting.base.errors import InvalidParameter, TooLarge
from accounting.model.change import Adjacency, EveryChange, every_change, touched_coordinates
from accounting.model.proof_types import MOST_PARTS

if TYPE_CHECKING:
    from flint import arb

Atom = tuple[int, ...]
"""Repeated from ``family`` on purpose, as is ``UNIT`` in ``notary.columns``: the notary shares no
code with the fast evaluators."""
_ROUNDING = 2.0**-60
"""Distance of a share from 1 that rounding of its rate explains."""
_FINE = 1024
"""Bits for the share, so that its distance from 1 is not an artifact of the arithmetic."""


def _refuse_other_kind(one: Hashable, other: Hashable) -> None:
    """Raise unless two noises are of the same kind, so that their sum is, too."""
    if one != other:
        raise InvalidParameter(f"noises of the kinds {one} and {other} do not add up to one noise")


@dataclass(frozen=True)
class ExactNoise:
    """The law NB(r, p), given by its event rate, or by r if there is no rate.

    Args:
        p: The parameter p, between 0 and 1.
        rate: The event rate -r log(1 - p).
        r: The parameter r; needed if there is no rate.

    >>> ExactNoise(p=Fraction(1, 2), r=Fraction(12)).shape()
    12.0000000000000
    """

    p: Fraction
    rate: Fraction | None = None
    r: Fraction | None = None

    def shape(self) -> arb:
        """Return the parameter r, as a ball."""
        if self.rate is not None:
            return -ball(self.rate) / log_of_rest(self.p)
        return ball(self._own_r)

    def event_rate(self) -> arb:
        """Return the expected number of events, -r log(1 - p)."""
        if self.rate is not None:
            return ball(self.rate)
        return -self.shape() * log_of_rest(self.p)

    def with_rate(self, rate: Fraction) -> ExactNoise:
        """Return the law with the same p and this event rate."""
        return ExactNoise(p=self.p, rate=rate)

    def mean(self) -> arb:
        """Return the expected number of copies."""
        return self.shape() * ball(self.p / (1 - self.p))

    @property
    def kind(self) -> Hashable:
        """Noises of the same kind add up to one."""
        return self.p, self.rate is None

    @property
    def _own_r(self) -> Fraction:
        """The parameter r of a noise without a rate."""
        if self.r is None:
            raise InvalidParameter(f"ExactNoise(p={self.p}) has neither a rate nor r: give one")
        return self.r

    def plus(self, other: ExactNoise) -> ExactNoise:
        """Return the sum of this noise and an independent one of the same kind."""
        _refuse_other_kind(self.kind, other.kind)
        if self.rate is not None and other.rate is not None:
            return replace(self, rate=self.rate + other.rate)
        return replace(self, r=self._own_r + other._own_r)

    def thinned(self, fraction: Fraction) -> ExactNoise:
        """Return the noise of this fraction of the users, which multiplies the rate and r."""
        rate = None if self.rate is None else self.rate * fraction
        return replace(self, rate=rate, r=None if self.r is None else self.r * fraction)


@dataclass(frozen=True)
class ExactBurst:
    """The law of Poisson(rate) many bursts, each of 1 + NB(m, p) copies.

    Args:
        p: The parameter p of the sizes, between 0 and 1.
        rate: Expected number of bursts.
        m: The parameter m of the sizes, a whole number, at least 1.

    >>> ExactBurst(p=Fraction(1, 2), rate=Fraction(30), m=3).mean()
    120.000000000000
    """

    p: Fraction
    rate: Fraction
    m: int

    def event_rate(self) -> arb:
        """Return the expected number of bursts."""
        return ball(self.rate)

    def with_rate(self, rate: Fraction) -> ExactBurst:
        """Return bursts of the same sizes with this rate."""
        return replace(self, rate=rate)

    def mean(self) -> arb:
        """Return the expected number of copies."""
        return ball(self.rate * (1 + self.m * self.p / (1 - self.p)))

    @property
    def kind(self) -> Hashable:
        """Bursts of the same kind add up to bursts."""
        return self.p, self.m, "burst"

    def plus(self, other: ExactBurst) -> ExactBurst:
        """Return the sum of this noise and an independent one of the same kind."""
        _refuse_other_kind(self.kind, other.kind)
        return replace(self, rate=self.rate + other.rate)

    def thinned(self, fraction: Fraction) -> ExactBurst:
        """Return the noise of this fraction of the users, which multiplies the rate."""
        return replace(self, rate=self.rate * fraction)


ExactLaw = ExactNoise | ExactBurst
"""The noise of an atom, or a part of it."""


def noises(listed: Iterable[tuple[Atom, ExactLaw | None]]) -> dict[Atom, tuple[ExactLaw, ...]]:
    """Add up the noise of every atom; None means no noise.

    An atom that is listed more than once carries the sum of the listed noises; those of one law
    with the same p are merged into one, whose r or rate is the sum.
    """
    found: dict[Atom, dict[Hashable, Any]] = {}
    for atom, noise in listed:
        parts = found.setdefault(atom, {})
        if noise is None:
            continue
        kind = noise.kind
        parts[kind] = parts[kind].plus(noise) if kind in parts else noise
        if len(parts) > MOST_PARTS:
            raise TooLarge(
                f"atom {list(atom)!s:.60} is listed with more than {MOST_PARTS} different p; give "
                "it fewer, or one"
            )
    return {atom: tuple(parts.values()) for atom, parts in found.items()}


@dataclass(frozen=True)
class ExactCentral:
    """The noise on +1 and on -1, each NB(share, q).

    q is p if it is given, and e^{-step} otherwise.  The share is -rate / log(1 - q), or 1 if no
    rate is given, times the fraction of the users who add noise.

    Args:
        p: The parameter q.
        step: The loss -log q; needed if p is not given.
        rate: The event rate of each of the two noises.
        fraction: Fraction of the users who add noise.

    >>> ExactCentral(step=Fraction(9, 10)).thinned(Fraction(3, 4)).share()
    0.750000000000000
    """

    p: Fraction | None = None
    step: Fraction | None = None
    rate: Fraction | None = None
    fraction: Fraction = Fraction(1)

    def loss(self) -> arb:
        """Return -log q, the privacy loss of a change of the sum by one."""
        if self.p is not None:
            return -ball(self.p).log()
        if self.step is None:
            raise InvalidParameter("ExactCentral has neither p nor a step: give one")
        return ball(self.step)

    def _log_of_rest(self) -> arb:
        """log(1 - q)."""
        if self.p is not None:
            return log_of_rest(self.p)
        return (1 - (-self.loss()).exp()).log()

    def share(self) -> arb:
        """Return the parameter r of the noise that all honest users add together."""
        with precision(_FINE):
            share = ball(self.fraction)
            if self.rate is None:
                return share
            return -share * ball(self.rate) / self._log_of_rest()

    def event_rate(self) -> arb:
        """Expected number of events of each of the two noises."""
        if self.rate is not None:
            return ball(self.fraction * self.rate)
        return -ball(self.fraction) * (-(-self.loss()).expm1()).log()

    def deviation(self) -> arb:
        """Bound the total variation distance of both noises from NB(1, q) x NB(1, q).

        NB(r, q) has Poisson(-r log(1 - q)) events, and the distance of two Poisson laws is at most
        the difference of their rates.
        """
        with precision(_FINE):
            return 2 * abs(self.share() - 1) * -self._log_of_rest()

    def whole(self) -> bool:
        """Tell whether the share is 1 up to rounding, so that the deviation covers the
        difference."""
        with precision(_FINE):
            return bool(abs(self.share() - 1) < _ROUNDING)

    def thinned(self, fraction: Fraction) -> ExactCentral:
        return replace(self, fraction=self.fraction * fraction)


@dataclass(frozen=True)
class Mechanism:
    """A mechanism for inputs 0..max_value: independent noise on every atom, and the central noise.

    Args:
        max_value: Inputs are the integers 0..max_value.
        atoms: The noises whose sum each atom carries, none if the tuple is empty.  Nothing is
            assumed about the set of atoms.
        central: The noise on +1 and -1.
        dimension: More than 1 for vectors with at most one non-zero coordinate; every coordinate
            has independent noise.

    >>> noise = ExactNoise(p=Fraction(24, 25), r=Fraction(12))
    >>> Mechanism(1, {(-1, 1): (noise,)}, ExactCentral(step=Fraction(9, 10)))
    <Mechanism max_value=1 atoms=1 dimension=1 central_loss=0.9>
    """

    max_value: int
    atoms: Mapping[Atom, tuple[ExactLaw, ...]]
    central: ExactCentral
    dimension: int = 1

    def __repr__(self) -> str:
        return (
            f"<Mechanism max_value={self.max_value} atoms={len(self.atoms)} "
            f"dimension={self.dimension} central_loss={float(self.central.loss().mid()):.6g}>"
        )

    def coordinates(self, adjacency: Adjacency) -> int:
        """Return the largest number of coordinates that the change of one input touches."""
        return touched_coordinates(self.dimension, adjacency)

    def changes(self, adjacency: Adjacency) -> EveryChange:
        """List all changes that one user can make."""
        return every_change(max_value=self.max_value, dimension=self.dimension, adjacency=adjacency)

    def deviation(self, eps: float, releases: int, adjacency: Adjacency) -> arb:
        """Bound the change of delta(eps) by the distance of the central noise from NB(1, q)."""
        touched = releases * self.coordinates(adjacency)
        return (1 + ball(eps).exp()) * self.central.deviation() * touched

    def event_rate(self) -> arb:
        """Expected number of noise events of all users in one release, in all coordinates.

        >>> noise = ExactNoise(p=Fraction(24, 25), rate=Fraction(40))
        >>> central = ExactCentral(p=Fraction(2, 5), rate=Fraction(1, 2))
        >>> Mechanism(1, {(-1, 1): (noise,)}, central, dimension=3).event_rate()
        123.000000000000
        """
        parts = (part for parts in self.atoms.values() for part in parts)
        of_atoms = sum((part.event_rate() for part in parts), ball(0.0))
        return self.dimension * (2 * self.central.event_rate() + of_atoms)

    def thinned(self, fraction: Fraction) -> Mechanism:
        """Return the mechanism in which only this fraction of the users adds noise.

        Who is missing must not depend on the noise that was drawn: only then are the rates
        multiplied by the fraction.  Otherwise nothing may be left (accounting/proof/lost_noise.md).
        """
        atoms = {
            atom: tuple(part.thinned(fraction) for part in parts)
            for atom, parts in self.atoms.items()
        }
        return replace(self, atoms=atoms, central=self.central.thinned(fraction))
