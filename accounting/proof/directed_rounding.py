"""Exact parameters in doubles, with at most or with at least their noise."""

from __future__ import annotations

import math
import sys
from dataclasses import replace
from fractions import Fraction
from typing import Literal

from accounting.base.balls import above, below, precision
from accounting.base.errors import TooLarge
from accounting.model.configuration import Configuration
from accounting.model.laws.burst import Burst
from accounting.model.laws.negative_binomial import NegativeBinomial
from accounting.model.laws.noise import Law
from accounting.model.mechanism import ExactBurst, ExactCentral, ExactLaw, Mechanism

_SMALLEST_P, _BELOW_ONE = sys.float_info.min, math.nextafter(1.0, 0.0)


def configuration(mechanism: Mechanism, *, noise: Literal["less", "more"]) -> Configuration:
    """Return the mechanism in doubles, with at most or with at least its noise.

    The central noise is taken as NB(1, q); its deviation from that is counted elsewhere.
    """
    with precision(128):
        atoms = [
            (elements, _law(part, noise))
            for elements, parts in mechanism.atoms.items()
            for part in parts
        ]
        if mechanism.central.step is not None:
            exact = mechanism.central.step * mechanism.max_value
            eps_central = _rounded(exact, "more" if noise == "less" else "less")
        else:
            central = mechanism.central.loss() * mechanism.max_value
            eps_central = above(central) if noise == "less" else below(central)
    return Configuration.of(
        mechanism.max_value, atoms, eps_central=eps_central, dimension=mechanism.dimension
    )


def _law(part: ExactLaw, noise: Literal["less", "more"]) -> Law:
    """Return one noise in doubles.

    NB(r, p) grows with r and with p (notary.md, Lemma 7), bursts with their rate alone: their p is
    the nearest double, and says how far from the true one it may be.
    """
    if isinstance(part, ExactBurst):
        p = min(max(float(part.p), _SMALLEST_P), _BELOW_ONE)
        ulps = abs(Fraction(p) / part.p - 1) * (1 << 53)
        return Burst(_rounded(part.rate, noise), p, part.m, p_ulps=float(ulps) * (1 + 1e-9))
    round_noise = below if noise == "less" else above
    r = round_noise(part.shape()) if part.r is None else _rounded(part.r, noise)
    return NegativeBinomial(r, _rounded(part.p, noise))


def geometric(mechanism: Mechanism, *, noise: Literal["less", "more"]) -> Mechanism:
    """Return the mechanism with a central noise NB(1, q) that has at most or at least the noise of
    the deployed one.

    NB(1 + x, q) with a small x > 0 contains NB(1, q) and is contained in NB(1, (1 + x)q); with
    x < 0 it is the other way round (composition/releases.md, Lemma 7).
    """
    with precision(128):
        share, q = mechanism.central.share(), (-mechanism.central.loss()).exp()
        if noise == "less":
            exact = Fraction(below(q * share.min(1)))
        else:
            exact = Fraction(above(q * share.max(1)))
    return replace(mechanism, central=ExactCentral(p=exact))


def _rounded(exact: Fraction, noise: Literal["less", "more"]) -> float:
    """Return the nearest double that is not larger, or not smaller."""
    if exact > sys.float_info.max:
        raise TooLarge("the noise of an atom has an r beyond the largest double; take less noise")
    number = float(exact)
    if noise == "less":
        return number if Fraction(number) <= exact else math.nextafter(number, -math.inf)
    return number if Fraction(number) >= exact else math.nextafter(number, math.inf)
