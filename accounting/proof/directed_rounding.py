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
from accounting.model.mechanism import ExactCentral, Mechanism
from accounting.model.negative_binomial import NegativeBinomial


def configuration(mechanism: Mechanism, *, noise: Literal["less", "more"]) -> Configuration:
    """The mechanism in doubles, with at most or with at least its noise.

    The central noise is taken as NB(1, q); its deviation from that is counted elsewhere.
    """
    round_noise = below if noise == "less" else above
    with precision(128):
        atoms = []
        for elements, parts in mechanism.atoms.items():
            for part in parts:
                r = round_noise(part.shape()) if part.r is None else _rounded(part.r, noise)
                p = _rounded(part.p, noise)
                atoms.append((elements, NegativeBinomial(r, p)))
        if mechanism.central.step is not None:
            exact = mechanism.central.step * mechanism.max_value
            eps_central = _rounded(exact, "more" if noise == "less" else "less")
        else:
            central = mechanism.central.loss() * mechanism.max_value
            eps_central = above(central) if noise == "less" else below(central)
    return Configuration.of(
        mechanism.max_value, atoms, eps_central=eps_central, dimension=mechanism.dimension
    )


def geometric(mechanism: Mechanism, *, noise: Literal["less", "more"]) -> Mechanism:
    """With a central noise NB(1, q) that has at most or at least the noise of the deployed one.

    NB(1 + x, q) with a small x > 0 contains NB(1, q) and is contained in NB(1, (1 + x)q); with
    x < 0 it is the other way round (composition/releases.md, Lemma 10).
    """
    with precision(128):
        share, q = mechanism.central.share(), (-mechanism.central.loss()).exp()
        if noise == "less":
            exact = Fraction(below(q * share.min(1)))
        else:
            exact = Fraction(above(q * share.max(1)))
    return replace(mechanism, central=ExactCentral(p=exact))


def _rounded(exact: Fraction, noise: Literal["less", "more"]) -> float:
    """The nearest double that is not larger, or not smaller."""
    if exact > sys.float_info.max:
        raise TooLarge("the noise of an atom has an r beyond the largest double; take less noise")
    number = float(exact)
    if noise == "less":
        return number if Fraction(number) <= exact else math.nextafter(number, -math.inf)
    return number if Fraction(number) >= exact else math.nextafter(number, math.inf)
