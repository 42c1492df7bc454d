"""Far more noise than needed makes tables too large; a proof for less of it does as well.

NB(r, p) grows with r and with p (notary.md, section 6), and more noise never hurts: an upper bound
of delta for a mechanism with smaller r and p on every atom holds for the mechanism.  Estimates
choose how much smaller; the proof is that of the lighter mechanism.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction

import numpy as np

from accounting.base.balls import ball, below, precision
from accounting.base.deadline import check_time
from accounting.base.errors import AccountingError
from accounting.base.validation import probability
from accounting.estimator.estimate import Estimator
from accounting.evaluator.view_pairs import ViewPairs
from accounting.model.mechanism import ExactNoise, Mechanism
from accounting.proof.directed_rounding import configuration
from accounting.protocol import Protocol

HEAVY = 3e7
"""Mean noise of an atom, but {-1, +1}, times the square of max_value: beyond it a proof with all
the noise takes many minutes."""
_FINE = 4096
"""Bits, more than any p of a file has."""
_MOST = 1 << 16
_MIXED = 1000.0
"""How far below the claim estimates of one change must lie where different ones may follow."""
_SMALLEST_CLAIM = 1e-250
"""That estimates can be made for."""


def lightened(mechanism: Mechanism, factor: int) -> Mechanism:
    """The odds p / (1 - p) of every atom divided by ``factor``, and r rounded down."""

    def part(noise: ExactNoise) -> Iterator[ExactNoise]:
        """Nothing is less noise, too, where r or p are too small for this precision."""
        p = _below(noise.p / (noise.p + (1 - noise.p) * factor))
        with precision(128):
            r = noise.r if noise.r is not None else _finite(below(noise.shape()))
        if p > 0 and r > 0:
            yield ExactNoise(p=p, r=r)

    atoms = {
        elements: tuple(light for noise in noises for light in part(noise))
        for elements, noises in mechanism.atoms.items()
    }
    return replace(mechanism, atoms=atoms)


def _below(exact: Fraction) -> Fraction:
    """A short fraction at or below."""
    with precision(128):
        return _finite(below(ball(exact)))


def _finite(number: float) -> Fraction:
    return Fraction(number) if math.isfinite(number) else Fraction(0)


def heavy(mechanism: Mechanism) -> bool:
    limit = HEAVY / mechanism.max_value**2
    with precision(_FINE):
        for elements, noises in mechanism.atoms.items():
            for part in noises if len(elements) > 2 else ():
                check_time()
                if part.shape() * ball(part.p) / (1 - ball(part.p)) > limit:
                    return True
    return False


def light_enough(
    mechanism: Mechanism, eps: float, releases: int, claim: float, *, same_change: bool = False
) -> int:
    """By how much the odds may be divided with delta still well below ``claim``, by estimates; 1 if
    they should stay.

    The estimates are of the same change every time; any sequence of them is allowed for.
    """
    probability("claim", claim)
    factor = 1
    while factor < _MOST:
        try:
            less = configuration(lightened(mechanism, 4 * factor), noise="less")
            found = _estimate(Protocol(less, releases).view_pairs, eps, claim)
        except AccountingError:
            return factor
        if not found < claim / (10 if releases == 1 or same_change else _MIXED):
            return factor
        factor *= 4
    return factor


def _estimate(view_pairs: ViewPairs, eps: float, claim: float) -> float:
    """With the first negative binomial of every atom alone: less noise again."""
    mean = np.array([noise.parts[0].mean for noise in view_pairs.noises])
    r = np.array([noise.parts[0].r for noise in view_pairs.noises])
    delta = max(claim, _SMALLEST_CLAIM)
    found = Estimator(view_pairs, eps=eps, delta=delta).log_delta(np.log([mean, r]))
    return float(np.exp(found.max()))
