"""Laws from below, against exact rationals: every operation is on the side it claims."""

from __future__ import annotations

import random
from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from accounting import Configuration, NegativeBinomial, Protocol
from accounting.composition.lower_law import Focus, LowerLaw
from accounting.evaluator.evaluate import evaluate

steps = st.sampled_from([2.0**-4, 2.0**-7, 2.0**-10])
masses = st.lists(st.one_of(st.just(0.0), st.floats(1e-12, 1.0)), min_size=1, max_size=12)
points = st.floats(-3.0, 3.0)
focuses = st.builds(Focus, st.floats(0.0, 30.0), st.floats(0.0, 1e-3))
ROUND = mp.mpf(10) ** -13


@st.composite
def laws(draw: st.DrawFn, step: float | None = None) -> LowerLaw:
    weight = np.array(draw(masses))
    total = float(weight.sum())
    infinite = draw(st.floats(0.0, 0.5))
    mass = weight * ((1 - infinite) / total) if total > 0 else weight
    return LowerLaw(
        draw(steps) if step is None else step, draw(st.integers(-40, 40)), mass, infinite
    )


def delta(law: LowerLaw, eps: float) -> mp.mpf:
    with mp.workdps(50):
        u, found = mp.exp(mp.mpf(eps)), mp.mpf(law.infinite)
        for i, mass in enumerate(law.mass.tolist()):
            found += mp.mpf(mass) * max(
                mp.mpf(0), 1 - u * mp.exp(-mp.mpf(law.step) * (law.base + i))
            )
        return found


def product(first: LowerLaw, second: LowerLaw, eps: float) -> mp.mpf:
    """delta of the sum of both losses, by the definition."""
    with mp.workdps(50):
        u = mp.exp(mp.mpf(eps))
        total = [sum(map(Fraction, law.mass.tolist())) for law in (first, second)]
        a, b = Fraction(first.infinite), Fraction(second.infinite)
        infinite = a * (total[1] + b) + total[0] * b
        found = mp.mpf(infinite.numerator) / infinite.denominator
        for i, m in enumerate(first.mass.tolist()):
            for k, n in enumerate(second.mass.tolist()):
                loss = mp.mpf(first.step) * (first.base + i) + mp.mpf(second.step) * (
                    second.base + k
                )
                found += mp.mpf(m) * mp.mpf(n) * max(mp.mpf(0), 1 - u * mp.exp(-loss))
        return found


@settings(deadline=None)
@given(laws(), points)
def test_delta_is_rounded_down(law: LowerLaw, eps: float) -> None:
    truth = delta(law, eps)
    assert truth - 100 * ROUND <= law.delta(eps) <= truth


SUBNORMAL = LowerLaw(0.0625, 0, np.zeros(1), 5e-324)
"""A mass that underflow may have raised."""
THIRDS = LowerLaw(0.0625, 0, np.array([2 / 3, 1 / 3]), 0.0)


@settings(deadline=None)
@given(laws(), laws(), focuses, points)
@example(SUBNORMAL, THIRDS, Focus(0.0, 0.0), 0.0)
def test_sums_are_below_and_close(
    first: LowerLaw, second: LowerLaw, focus: Focus, eps: float
) -> None:
    found = first.composed(second, focus)
    assert found.delta(eps) <= product(first, second, eps)
    # a coarser grid and shorter ends lower the losses by no more than this
    lost = 2 * max(first.step, second.step)
    exact = Focus(0.0, 0.0)
    assert product(first, second, eps + lost) - 1e-9 <= first.composed(second, exact).delta(eps)


@settings(deadline=None)
@given(laws(), focuses, points)
def test_coarser_and_shorter_laws_are_below(law: LowerLaw, focus: Focus, eps: float) -> None:
    assert delta(law.coarser(), eps) <= delta(law, eps)
    assert delta(law, eps + law.step) - ROUND <= delta(law.coarser(), eps)
    assert delta(law.shortened(focus), eps) <= delta(law, eps)


@settings(deadline=None, max_examples=30)
@given(laws(step=2.0**-7), st.integers(2, 6), focuses, points)
def test_powers_are_below(law: LowerLaw, times: int, focus: Focus, eps: float) -> None:
    exact = Focus(0.0, 0.0)
    whole = law
    for _ in range(times - 2):
        whole = whole.composed(law, exact)
    assert (
        law.power(times, focus=focus, tolerance=1e-3).delta(eps) <= product(whole, law, eps) + ROUND
    )


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("dimension", [1, 3])
def test_of_a_change_it_is_below_and_close(seed: int, dimension: int) -> None:
    rng = random.Random(seed)
    atoms = [
        (atom, NegativeBinomial(rng.uniform(0.5, 6), rng.uniform(0.3, 0.9)))
        for atom in ((-1, 1), (-1, -1, 2), (-3, 1, 1, 1), (-3, 3))
    ]
    config = Configuration.of(3, atoms, eps_central=rng.uniform(0.5, 3), dimension=dimension)
    pairs = Protocol(config).view_pairs
    change, eps = rng.randrange(pairs.pair_count), rng.uniform(0.0, 2.0)
    truth = evaluate(pairs.subset(np.array([change])), eps, gap=1e-5)
    law = LowerLaw.of(pairs, change, step=2.0**-14, focus=Focus(1.0, 1e-13), within=(-40.0, 40.0))
    assert law.delta(eps) <= truth.upper[0]
    assert truth.lower[0] * (1 - 2e-3) <= law.delta(eps)
