"""What is proved: a mechanism whose every parameter is an exact number.

A negative binomial is given by p and either its event rate lambda (compound Poisson:
Poisson(lambda) events, each a logarithmic(p) count; r = -lambda / log(1 - p) follows) or r itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction

from flint import arb

from accounting.base.balls import ball, precision
from accounting.base.errors import TooLarge
from accounting.model.change import Change, every_change

Atom = tuple[int, ...]
_ROUNDING = 2.0**-60
_FINE = 1024
"""Bits for the share, so that its distance from 1 is its own and not that of the arithmetic."""
MOST_PARTS = 64
"""Negative binomials with different p on one atom."""


@dataclass(frozen=True)
class ExactNoise:
    """NB(r, p) by its event rate, or by r where no rate is given."""

    p: Fraction
    rate: Fraction | None = None
    r: Fraction | None = None

    def shape(self) -> arb:
        """r, as a ball."""
        if self.rate is not None:
            return -ball(self.rate) / (1 - ball(self.p)).log()
        assert self.r is not None
        return ball(self.r)

    def plus(self, other: ExactNoise) -> ExactNoise:
        """The sum of this noise and an independent one with the same p, given in the same way."""
        assert self.p == other.p
        if self.rate is not None and other.rate is not None:
            return replace(self, rate=self.rate + other.rate)
        assert self.r is not None
        assert other.r is not None
        return replace(self, r=self.r + other.r)

    def thinned(self, fraction: Fraction) -> ExactNoise:
        """The noise of this fraction of the users: rate and r shrink alike."""
        rate = None if self.rate is None else self.rate * fraction
        return replace(self, rate=rate, r=None if self.r is None else self.r * fraction)


def noises(listed: Iterable[tuple[Atom, ExactNoise | None]]) -> dict[Atom, tuple[ExactNoise, ...]]:
    """The noise of every atom; None is no noise.

    An atom listed more than once carries the sum of the listed noises: those with the same p are
    one negative binomial, whose r, or rate, is the sum.
    """
    found: dict[Atom, dict[tuple[Fraction, bool], ExactNoise]] = {}
    for atom, noise in listed:
        parts = found.setdefault(atom, {})
        if noise is None:
            continue
        kind = noise.p, noise.rate is None
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

    q = p where p is given, otherwise e^{-step}.  share = -rate / log(1 - q), or 1 where no rate is
    given, times the fraction of the users who add noise.
    """

    p: Fraction | None = None
    step: Fraction | None = None
    rate: Fraction | None = None
    fraction: Fraction = Fraction(1)

    def loss(self) -> arb:
        """-log q: the loss of a change by one in the sum."""
        if self.p is not None:
            return -ball(self.p).log()
        assert self.step is not None
        return ball(self.step)

    def share(self) -> arb:
        """r of the noise that the honest users add together."""
        with precision(_FINE):
            share = ball(self.fraction)
            if self.rate is None:
                return share
            return -share * ball(self.rate) / (1 - (-self.loss()).exp()).log()

    def deviation(self) -> arb:
        """The distance in total variation of both noises together from NB(1, q) x NB(1, q).

        NB(r, q) has Poisson(-r log(1 - q)) events, and two Poisson laws are at most as far apart as
        their rates.
        """
        with precision(_FINE):
            return 2 * abs(self.share() - 1) * -(1 - (-self.loss()).exp()).log()

    def whole(self) -> bool:
        """Whether the share is 1 up to rounding, so that the deviation may be counted for it."""
        with precision(_FINE):
            return bool(abs(self.share() - 1) < _ROUNDING)

    def thinned(self, fraction: Fraction) -> ExactCentral:
        return replace(self, fraction=self.fraction * fraction)


@dataclass(frozen=True)
class Mechanism:
    """Inputs 0..max_value, independent noise on every atom, and the central noise.

    An atom with an empty tuple has no noise.  Nothing is assumed about the set of atoms.  With
    ``dimension`` > 1 the inputs are vectors with at most one non-zero coordinate, and every
    coordinate has all this noise of its own.
    """

    max_value: int
    atoms: Mapping[Atom, tuple[ExactNoise, ...]]
    central: ExactCentral
    dimension: int = 1

    @property
    def coordinates(self) -> int:
        """How many coordinates the change of one input touches at most."""
        return min(self.dimension, 2)

    def changes(self) -> list[Change]:
        """Everything that one user can change."""
        return every_change(max_value=self.max_value, dimension=self.dimension)

    def deviation(self, eps: float, releases: int) -> arb:
        """What the central noise's distance from NB(1, q) may add to delta(eps)."""
        return (1 + ball(eps).exp()) * self.central.deviation() * releases * self.coordinates

    def thinned(self, fraction: Fraction) -> Mechanism:
        """What is left when only this fraction of the users adds noise."""
        atoms = {
            atom: tuple(part.thinned(fraction) for part in parts)
            for atom, parts in self.atoms.items()
        }
        return replace(self, atoms=atoms, central=self.central.thinned(fraction))
