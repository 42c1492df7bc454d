"""Proofs for less noise: with far more noise than a claim needs, tables grow too large, and it is
enough to prove the claim for less.

NB(r, p) grows with r and with p (notary.md, section 6), bursts grow with their rate, and more noise
never hurts: an upper bound of delta for a mechanism with less of these on every atom holds for the
mechanism itself.
Estimates choose how much smaller; the proof is that of the mechanism with less noise.
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
from accounting.model.mechanism import ExactBurst, ExactLaw, ExactNoise, Mechanism
from accounting.model.question import Question
from accounting.proof.directed_rounding import configuration
from accounting.protocol import Protocol

HEAVY = 3e7
"""Mean noise of an atom other than {-1, +1} times the square of max_value, beyond which a proof
with all the noise takes many minutes, if max_value is at most ``_FEW``."""
_FEW, _HEAVY_OF_MANY = 128, 1e5
"""Beyond this max_value few changes are proved in ball arithmetic, and the time hardly depends on
the noise: mean noise of an atom that is heavy there."""
_FINE = 4096
"""Working precision in bits, more than any p of a file has."""
_SMALLEST_P = Fraction(1, 1 << 128)
"""Noise with a smaller p is left out: the fast evaluators refuse it."""
_LARGEST_FACTOR = 1 << 16
"""Factor of the odds at which the search for less noise ends; rule of thumb."""
_MARGIN, _MARGIN_OF_ANY = 10.0, 1000.0
"""How far below the claim the estimates must lie; more where changes may differ, since estimates
are of the same change in every release."""
_SMALLEST_CLAIM = 1e-250
"""The smallest delta that estimates can be made for."""


def with_less_noise(mechanism: Mechanism, factor: int) -> Mechanism:
    """Take away noise on every atom: the odds p / (1 - p) of a negative binomial, or the rate of
    bursts, are divided by ``factor``, and r is rounded down."""

    def part(noise: ExactLaw) -> Iterator[ExactLaw]:
        """Where r or p are too small to matter, no noise at all is less noise as well."""
        if isinstance(noise, ExactBurst):
            yield noise.thinned(Fraction(1, factor))
            return
        p = _rounded_down(noise.p / (noise.p + (1 - noise.p) * factor))
        with precision(128):
            r = noise.r if noise.r is not None else _finite(below(noise.shape()))
        if p > _SMALLEST_P and r > 0:
            yield ExactNoise(p=p, r=r)

    atoms = {
        elements: tuple(light for noise in noises for light in part(noise))
        for elements, noises in mechanism.atoms.items()
    }
    return replace(mechanism, atoms=atoms)


def _rounded_down(exact: Fraction) -> Fraction:
    """Return a short fraction at or below."""
    with precision(128):
        return _finite(below(ball(exact)))


def _finite(number: float) -> Fraction:
    return Fraction(number) if math.isfinite(number) else Fraction(0)


def has_heavy_noise(mechanism: Mechanism) -> bool:
    """Tell whether some atom has so much noise that a proof with all of it would take very long."""
    limit = HEAVY / mechanism.max_value**2 if mechanism.max_value <= _FEW else _HEAVY_OF_MANY
    with precision(_FINE):
        for elements, noises in mechanism.atoms.items():
            for part in noises if len(elements) > 2 else ():
                check_time()
                if part.mean() > limit:
                    return True
    return False


def noise_reduction(mechanism: Mechanism, question: Question) -> int:
    """Find the largest factor by which the odds can be divided while the estimated delta stays well
    below the claim; 1 if none."""
    claim = probability("claim", question.claim)
    goal = claim / (_MARGIN_OF_ANY if question.any_sequence else _MARGIN)
    factor = 1
    while factor < _LARGEST_FACTOR:
        try:
            less = configuration(with_less_noise(mechanism, 4 * factor), noise="less")
            # the estimates are for the same change in every release
            protocol = Protocol(less, question.releases, True, question.adjacency)
            found = _estimate(protocol.view_pairs, question.eps, claim)
        except AccountingError:
            return factor
        if not found < goal:
            return factor
        factor *= 4
    return factor


def _estimate(view_pairs: ViewPairs, eps: float, claim: float) -> float:
    """Uses only the first negative binomial of each atom, which is less noise still."""
    mean = np.array([noise.parts[0].mean for noise in view_pairs.noises])
    r = np.array([noise.parts[0].r for noise in view_pairs.noises])
    delta = max(claim, _SMALLEST_CLAIM)
    found = Estimator(view_pairs, eps=eps, delta=delta).log_delta(np.log([mean, r]))
    return float(np.exp(found.max()))
