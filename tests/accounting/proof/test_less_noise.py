"""A proof for less noise: never below the truth, and only where there is far too much."""

from __future__ import annotations

from fractions import Fraction

import pytest

import accounting
from accounting import NegativeBinomial, Protocol
from accounting.base.balls import ball, precision
from accounting.model.mechanism import ExactCentral, ExactNoise, Mechanism
from accounting.model.question import Question
from accounting.proof.directed_rounding import configuration
from accounting.proof.less_noise import has_heavy_noise, noise_reduction, with_less_noise
from accounting.proof.prove import prove


def mechanism(mean: float, r: float = 12.0, max_value: int = 3) -> Mechanism:
    family = accounting.ones(max_value)
    noise = NegativeBinomial.from_mean(mean=mean, r=r)
    part = ExactNoise(p=Fraction(noise.p), r=Fraction(noise.r))
    by_rate = ExactNoise(p=Fraction(noise.p), rate=Fraction(500))
    atoms = dict.fromkeys(family.atoms, (part, by_rate))
    return Mechanism(max_value, atoms, ExactCentral(step=Fraction(3, 10)))


@pytest.mark.parametrize("factor", [4, 16, 1 << 12])
def test_less_of_everything(factor: int) -> None:
    whole = mechanism(5e4)
    light = with_less_noise(whole, factor)
    assert light.central == whole.central
    with precision(256):
        for elements, parts in whole.atoms.items():
            for old, new in zip(parts, light.atoms[elements], strict=True):
                assert new.p < old.p
                odds = old.p / (1 - old.p)
                assert new.p / (1 - new.p) <= odds / factor
                assert new.r is not None
                assert bool(ball(new.r) <= old.shape())


def test_only_far_too_much_noise_is_lightened() -> None:
    assert not has_heavy_noise(mechanism(300.0))
    assert not has_heavy_noise(mechanism(5e4))
    assert has_heavy_noise(mechanism(5e6))
    assert noise_reduction(mechanism(5e4), Question(eps=1.2, claim=1e-6)) > 1


def test_the_bound_holds_for_the_heavy_mechanism() -> None:
    whole = mechanism(2e4, r=9.0, max_value=2)
    light = prove(whole, Question(eps=1.0, claim=1e-4), tier="light")
    assert light.less_noise
    assert not light.exact
    assert light.enclosure.lower == 0.0
    assert light.enclosure.upper <= 1e-4
    truth = Protocol(configuration(whole, noise="more")).delta(1.0, gap=0.01).enclosure
    assert truth.lower <= light.enclosure.upper


def test_a_claim_that_needs_the_noise_is_proved_with_it() -> None:
    whole = mechanism(300.0, r=9.0, max_value=2)
    plain = prove(whole, Question(eps=1.0), tier="fast")
    close = prove(whole, Question(eps=1.0, claim=plain.enclosure.upper * 1.05), tier="light")
    assert not close.less_noise
    assert close.exact
    assert close.enclosure.lower > 0


def test_noise_too_small_for_the_precision_is_left_out() -> None:
    whole = mechanism(5e4)
    tiny = ExactNoise(p=Fraction(1, 1 << 160), rate=Fraction(1, 1 << 160))
    odd = Mechanism(3, {**whole.atoms, (-3, -1, 2, 2): (tiny,)}, whole.central)
    assert with_less_noise(odd, 4).atoms[(-3, -1, 2, 2)] == ()
    huge = ExactNoise(p=1 - Fraction(1, 1 << 1100), rate=Fraction(5))
    assert has_heavy_noise(Mechanism(3, {**whole.atoms, (-3, -1, 2, 2): (huge,)}, whole.central))
