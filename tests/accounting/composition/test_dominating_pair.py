"""Pairs on a grid of losses, against exact rationals: every operation is on the side it claims."""

from __future__ import annotations

from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest
from flint import arb, arb_poly
from hypothesis import example, given, settings
from hypothesis import strategies as st

from accounting.base.balls import above, ball, below, precision
from accounting.base.errors import Undecided
from accounting.composition.composition_kernels import upward_profile
from accounting.composition.dominating_pair import DominatingPair
from accounting.notary import loss_laws
from accounting.notary.factors import Factor

steps = st.sampled_from([1 / 16, 0.01, 1e-3])
masses = st.lists(st.one_of(st.just(0.0), st.floats(1e-12, 1.0)), min_size=1, max_size=12)


@st.composite
def pairs(draw: st.DrawFn, step: float | None = None) -> DominatingPair:
    """Of total mass one, up to rounding: the pairs of two probability laws."""
    weight = np.array(draw(masses))
    total = float(weight.sum())
    infinite = draw(st.floats(0.0, 0.5)) if total > 0 else 1.0
    mass = weight * ((1 - infinite) / total) if total > 0 else weight
    size = step if step is not None else draw(steps)
    return DominatingPair(size, draw(st.integers(-40, 40)), mass, infinite)


def delta(pair: DominatingPair, eps: float) -> mp.mpf:
    """The profile as defined, at 50 digits."""
    with mp.workdps(50):
        u, found = mp.exp(mp.mpf(eps)), mp.mpf(pair.infinite)
        for i, mass in enumerate(pair.mass.tolist()):
            loss = mp.mpf(pair.step) * (pair.base + i)
            found += mp.mpf(mass) * max(mp.mpf(0), 1 - u * mp.exp(-loss))
        return found


def product(first: DominatingPair, second: DominatingPair) -> DominatingPair:
    """By the definition, with rationals rounded once at the end."""
    mass = [Fraction(0)] * (len(first.mass) + len(second.mass) - 1)
    for i, a in enumerate(map(Fraction, first.mass.tolist())):
        for k, b in enumerate(map(Fraction, second.mass.tolist())):
            mass[i + k] += a * b
    finite = sum(map(Fraction, first.mass.tolist())), sum(map(Fraction, second.mass.tolist()))
    a, b = Fraction(first.infinite), Fraction(second.infinite)
    infinite = a * (finite[1] + b) + finite[0] * b
    exact = np.array([float(m) for m in mass])
    return DominatingPair(first.step, first.base + second.base, exact, float(infinite))


ROUND = mp.mpf(10) ** -14
points = st.floats(-3.0, 3.0)


@settings(deadline=None)
@given(pairs(), points)
def test_delta_is_rounded_up(pair: DominatingPair, eps: float) -> None:
    truth = min(delta(pair, eps), mp.mpf(1))
    assert truth <= pair.delta(eps) <= truth + 100 * ROUND


@settings(deadline=None)
@given(pairs(), st.integers(-60, 60), st.integers(1, 30))
def test_profiles_bound_delta_at_grid_points(pair: DominatingPair, first: int, count: int) -> None:
    for i, value in enumerate(pair.profile(first, count)):
        with mp.workdps(50):
            truth = mp.mpf(pair.infinite) + mp.fsum(
                mp.mpf(m) * -mp.expm1(mp.mpf(pair.step) * min(0, first + i - pair.base - k))
                for k, m in enumerate(pair.mass.tolist())
            )
        assert min(truth, 1) <= value <= truth + 100 * ROUND


@settings(deadline=None)
@given(st.data(), steps, st.floats(0.0, 30.0), points)
def test_products_dominate_and_are_tight(
    data: st.DataObject, step: float, tilt: float, eps: float
) -> None:
    first, second = data.draw(pairs(step=step)), data.draw(pairs(step=step))
    truth = min(delta(product(first, second), eps), mp.mpf(1))
    found = first.composed(second, tilt).delta(eps)
    assert truth - ROUND <= found
    # the hull may raise delta between grid points, by less than a step does
    assert found <= min(delta(product(first, second), eps - 2 * step), mp.mpf(1)) + mp.mpf(10) ** -6


@settings(deadline=None)
@given(pairs(), points)
def test_coarser_grids_dominate(pair: DominatingPair, eps: float) -> None:
    coarse = pair.coarser()
    assert coarse.step == 2 * pair.step
    assert delta(pair, eps) <= delta(coarse, eps)
    assert delta(coarse, eps) <= delta(pair, eps - 2 * pair.step) + 100 * ROUND


LOW_MASS = DominatingPair(1 / 16, 0, np.array([0.9 * 2.0**-54, 0.9]), 0.0)
"""Its lowest mass vanishes in a sum that is rounded to nearest."""


@settings(deadline=None)
@given(pairs(), points, st.floats(0.0, 30.0), st.floats(0.0, 1e-3), st.floats(0.0, 1e-3))
@example(LOW_MASS, -3.0, 0.0, 1e-3, 0.0)
def test_shorter_laws_dominate(
    pair: DominatingPair, eps: float, tilt: float, tolerance: float, spare: float
) -> None:
    if pair.mass.any():
        assert delta(pair, eps) <= delta(pair.shortened(tilt, tolerance, spare), eps)


@pytest.mark.parametrize("low", [0.2, 0.3, 0.5])
def test_products_dominate_where_masses_underflow(low: float) -> None:
    """The mass at the first loss above 0 is 2 low times the smallest double; the tilt, which any
    may be, lifts both masses to about the same size."""
    pair = DominatingPair(1 / 16, 0, np.array([low, 5e-324]), 0.0)
    whole = pair.composed(pair, 12_000.0)
    assert delta(product(pair, pair), 0.0) <= delta(whole, 0.0)
    with mp.workdps(50):
        truth = 2 * mp.mpf(low) * mp.mpf(5e-324) * -mp.expm1(-mp.mpf(1) / 16)
        assert truth <= delta(whole, 0.0) <= 1e-280
        assert truth <= whole.delta(0.0) <= 1e-13


@pytest.mark.parametrize(("step", "lift"), [(1e-3, 0.0), (1e-5, 0.9e-5), (0.05, 0.02)])
def test_profiles_of_long_laws_are_within_their_budget(step: float, lift: float) -> None:
    """releases.md, section 4: the kernel alone, against the same sums in 50 digits."""
    mass, count = np.random.default_rng(5).random(3000) ** 8 / 300, 3000
    found = np.empty(count)
    upward_profile(mass, 0.01, step, lift, found)
    with mp.workdps(50):
        decay, rise, small = mp.exp(-mp.mpf(step)), -mp.expm1(-mp.mpf(step)), -mp.expm1(-lift)
        later, above = mp.mpf(0), mp.mpf(0.01)
        for i in range(count - 1, -1, -1):
            above += rise * later
            later = mp.mpf(mass[i]) + decay * later
            truth = above + small * later
            assert abs(found[i] - truth) <= (6 * count + 32) * mp.mpf(2) ** -53 * truth


def test_a_profile_with_losses_raised_by_less_than_a_step() -> None:
    """Bounds at grid points, for a measure whose losses are no grid points."""
    pair = DominatingPair(1 / 16, -3, np.array([0.25, 0.125, 0.0, 0.5]), 0.125)
    for lift in (0.0, 1e-9, 1 / 32, 0.999 / 16):
        for i, value in enumerate(pair.profile(-5, 8, lift)):
            with mp.workdps(50):
                u = mp.exp(mp.mpf(i - 5) / 16)
                truth = mp.mpf(pair.infinite) + mp.fsum(
                    mp.mpf(m) * max(0, 1 - u * mp.exp(-(mp.mpf(k - 3) / 16 + mp.mpf(lift))))
                    for k, m in enumerate(pair.mass.tolist())
                )
            assert truth <= value <= truth + 100 * ROUND
    for lift in (1 / 16, 0.1, -1e-9, float("nan")):
        with pytest.raises(Undecided, match="wider gap"):
            pair.profile(-5, 8, lift)


@settings(max_examples=50, deadline=None)
@given(pairs(step=0.01), st.integers(2, 9), points)
def test_powers_dominate(pair: DominatingPair, times: int, eps: float) -> None:
    whole = pair
    for _ in range(times - 1):
        whole = product(whole, pair)
    if pair.mass.any():
        found = pair.power(times, eps=eps, tolerance=1e-3)
        assert min(delta(whole, eps), mp.mpf(1)) - times * ROUND <= found.delta(eps)


@settings(deadline=None)
@given(st.data(), st.integers(2, 12), steps)
def test_the_hull_dominates_every_profile_below_its_points(
    data: st.DataObject, count: int, step: float
) -> None:
    """Points above the profile of a pair: the hull is above it everywhere, off the grid, too."""
    pair = data.draw(pairs(step=step))
    first = data.draw(st.integers(-50, 30))
    lifted = data.draw(st.lists(st.floats(0.0, 0.3), min_size=count, max_size=count))
    value = np.minimum(pair.profile(first, count) + np.array(lifted), 1.0)
    hull = DominatingPair.from_profile(value, base=first, step=step)
    eps = data.draw(points)
    assert min(delta(pair, eps), mp.mpf(1)) - ROUND <= delta(hull, eps)
    # and it is no higher than the points themselves
    for i, point in enumerate(value):
        assert delta(hull, float((first + i) * step)) <= mp.mpf(float(point)) + mp.mpf(10) ** -10


# --- the notary's laws, which share no code with these


def as_law(pair: DominatingPair) -> Factor:
    return Factor(pair.base, arb_poly([arb(m) for m in pair.mass.tolist()]), arb(pair.infinite))


@settings(deadline=None)
@given(st.data(), st.sampled_from([0.05, 0.01]), points)
def test_the_notarys_operations_dominate(data: st.DataObject, step: float, eps: float) -> None:
    first, second = data.draw(pairs(step=step)), data.draw(pairs(step=step))
    with precision(128):
        h, at = ball(step), ball(eps)
        a, b = as_law(first), as_law(second)
        exact = product(first, second)

        def bound(law: Factor, grid: arb) -> float:
            return above(loss_laws.delta(law, at, grid))

        truth = delta(exact, eps)
        assert truth - ROUND <= bound(loss_laws.composed(a, b), h)
        assert delta(first, eps) - ROUND <= bound(loss_laws.coarser(a, h), 2 * h)
        cut = loss_laws.Cut(tilt=3.0, share=1e-4, spare=1e-4)
        assert delta(first, eps) - ROUND <= bound(cut(a, h), h)
        profile = loss_laws.largest([loss_laws.profile(a, h), loss_laws.profile(b, h)])
        hull = loss_laws.convex_law(profile, h)
        larger = max(delta(first, eps), delta(second, eps))
        assert min(larger, mp.mpf(1)) - ROUND <= bound(hull, h)
        assert below(hull.poly(arb(1)) + hull.infinite) <= 1 + 1e-9


def test_both_hulls_agree() -> None:
    value = np.array([1.0, 0.9, 0.6, 0.55, 0.3, 0.05, 0.04, 0.01])
    pair = DominatingPair.from_profile(value, base=-3, step=0.05)
    with precision(128):
        law = loss_laws.convex_law(loss_laws.Profile(-3, value, 0.05), ball(0.05))
        for eps in (-0.3, -0.1, 0.0, 0.07, 0.2):
            notary, other = loss_laws.delta(law, ball(eps), ball(0.05)), delta(pair, eps)
            assert below(notary) <= other * (1 + mp.mpf(10) ** -12)
            assert above(notary) >= other * (1 - mp.mpf(10) ** -12)
