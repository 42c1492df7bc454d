"""delta as eps grows without bound, beside the definition and beside the proofs at a large eps."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from accounting import ExactCentral, ExactNoise, Mechanism
from accounting.base.balls import precision
from accounting.base.errors import TooLarge
from accounting.model.change import Change
from accounting.model.mechanism import Atom
from accounting.model.question import Question
from accounting.proof.limit_delta import _Views, limit_delta
from accounting.proof.prove import prove

LARGE = 60.0
"""An eps beyond every finite loss that matters in these mechanisms."""


def mechanism(max_value: int, unit: tuple[str, str] | None, *, dimension: int = 1) -> Mechanism:
    atoms = {}
    if unit is not None:
        atoms[-1, 1] = (ExactNoise(r=Fraction(unit[0]), p=Fraction(unit[1])),)
    if max_value == 2:
        atoms[-1, -1, 2] = (ExactNoise(r=Fraction(2), p=Fraction(1, 3)),)
    return Mechanism(max_value, atoms, ExactCentral(step=Fraction(4, 5)), dimension)


@pytest.mark.parametrize("max_value", [1, 2])
@pytest.mark.parametrize("unit", [None, ("3/2", "1/4"), ("1/2", "2/3")])
@pytest.mark.parametrize("releases", [1, 3])
def test_the_limit_is_delta_at_a_large_eps(
    max_value: int, unit: tuple[str, str] | None, releases: int
) -> None:
    found = mechanism(max_value, unit)
    limit = limit_delta(found, releases=releases)
    far = prove(found, Question(eps=LARGE, releases=releases, same_change=releases > 1)).enclosure
    assert limit.upper - limit.lower < 1e-12
    assert limit.lower <= far.upper
    assert far.upper <= limit.upper + 1e-3 * far.upper
    near = prove(found, Question(eps=0.5, releases=releases, same_change=releases > 1)).enclosure
    assert limit.lower <= near.upper  # delta falls towards its limit, never below


def test_by_hand() -> None:
    """Without noise on {-1, +1}, only the central noise hides an input of 1: a view without any
    message +1 has probability 1 - q, and input 1 cannot produce it."""
    limit = limit_delta(mechanism(1, None))
    assert 1 - math.exp(-0.8) in limit
    # input 1 becoming 0 is hidden by nothing less: every view of input 1 is one of input 0
    assert limit_delta(mechanism(1, None), changes=[Change(1, 0)]).upper < 1e-50


def test_a_fraction_of_the_users_and_vectors() -> None:
    thinned = mechanism(2, ("3/2", "1/4")).thinned(Fraction(3, 4))
    limit, far = limit_delta(thinned), prove(thinned, Question(eps=20.0)).enclosure
    assert limit.lower <= far.upper <= limit.upper * (1 + 1e-3)
    assert limit.lower > limit_delta(mechanism(2, ("3/2", "1/4"))).upper  # less noise, more risk
    vectors = mechanism(1, ("3/2", "1/4"), dimension=5)
    limit, far = limit_delta(vectors), prove(vectors, Question(eps=LARGE)).enclosure
    assert limit.lower <= far.upper <= limit.upper * (1 + 1e-3)


def test_a_message_without_noise_is_a_limit_of_one() -> None:
    bare = Mechanism(2, {}, ExactCentral(step=Fraction(4, 5)))
    assert limit_delta(bare).lower == limit_delta(bare).upper == 1.0


def test_more_atoms_than_values_have_no_lower_bound() -> None:
    noise = (ExactNoise(r=Fraction(2), p=Fraction(1, 3)),)
    atoms: dict[Atom, tuple[ExactNoise, ...]]
    atoms = dict.fromkeys([(-1, 1), (-1, -1, 2), (-2, 1, 1), (-2, 2)], noise)
    limit = limit_delta(Mechanism(2, atoms, ExactCentral(step=Fraction(4, 5))))
    assert limit.lower == 0 < limit.upper


def test_a_shift_beyond_every_table_is_refused_before_memory_is_taken() -> None:
    noise = ExactNoise(p=Fraction(1, 2), r=Fraction(1))
    mechanism = Mechanism(1, {(-1, 1): (noise,)}, ExactCentral(step=Fraction(9, 10)))
    with precision(64):
        views = _Views(mechanism)
        with pytest.raises(TooLarge, match="shifts a noise"):
            views.at_least((-1, 1), 1 << 40)
        with pytest.raises(TooLarge, match="shifts a noise"):
            views.of_pair(0, 1 << 40)
