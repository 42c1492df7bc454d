"""Every operation on laws of losses is on the side it claims: exactly, with nothing allowed for
rounding, because masses are the doubles that they are (releases.md, section 4)."""

from __future__ import annotations

import random
from collections.abc import Iterator
from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest

from accounting.composition import regridding
from accounting.composition.dominating_pair import DominatingPair, TiltedSums
from accounting.composition.lower_law import Focus, LowerLaw

Law = DominatingPair | LowerLaw
DIGITS = 45
TINY = mp.mpf(10) ** -280
"""More than what is added for numbers that underflow."""
STEPS = (1 / 16, 1 / 128, 1 / 1024)
MANY = 16
"""Number of random laws; roundings fall on either side, so half of them would show a mistake."""


def drawn(rng: random.Random, *, step: float, wide: bool) -> tuple[int, np.ndarray, float]:
    """Losses and masses; ``wide``: masses down to 1e-12, often falling or rising with the loss."""
    size = rng.randint(2, 14)
    weight = [10 ** rng.uniform(-12, 0) if wide else rng.random() for _ in range(size)]
    if wide and rng.random() < 0.7:
        weight.sort(reverse=rng.random() < 0.5)
    weight = [0.0 if rng.random() < 0.15 else one for one in weight]
    weight[rng.randrange(size)] = max(weight) or 1.0
    infinite = rng.choice([0.0, rng.uniform(0, 0.3)])
    mass = np.array(weight) * ((1 - infinite) / sum(weight))
    return rng.randint(-30, 30), mass, infinite


def pairs(seed: int, *, wide: bool = False) -> Iterator[tuple[random.Random, DominatingPair]]:
    rng = random.Random(seed)
    for _ in range(MANY):
        step = rng.choice(STEPS)
        yield rng, DominatingPair(step, *drawn(rng, step=step, wide=wide))


def laws(seed: int, *, wide: bool = False) -> Iterator[tuple[random.Random, LowerLaw]]:
    for rng, pair in pairs(seed, wide=wide):
        yield rng, LowerLaw(pair.step, pair.base, pair.mass, pair.infinite)


def points(law: Law) -> list[mp.mpf]:
    """About 24 values of eps on the grid, off the grid and on either side of all losses."""
    size = len(law.mass) + 6
    every = [mp.mpf(i) / 2 for i in range(2 * (law.base - 3), 2 * (law.base - 3 + size))]
    return [law.step * i for i in every[:: size // 16 + 1]]


def losses(law: Law) -> list[tuple[mp.mpf, mp.mpf]]:
    return [
        (mp.mpf(law.step) * (law.base + i), mp.mpf(m)) for i, m in enumerate(law.mass.tolist()) if m
    ]


def profile(law: list[tuple[mp.mpf, mp.mpf]], infinite: mp.mpf, eps: mp.mpf) -> mp.mpf:
    return infinite + mp.fsum(-mass * mp.expm1(min(eps - loss, 0)) for loss, mass in law)


def delta(law: Law, eps: mp.mpf) -> mp.mpf:
    return profile(losses(law), mp.mpf(law.infinite), eps)


def product(first: Law, second: Law) -> tuple[list[tuple[mp.mpf, mp.mpf]], mp.mpf]:
    """The law of the sum of both losses, and its mass at infinity."""
    one, two = losses(first), losses(second)
    both = [(a + b, m * n) for a, m in one for b, n in two]
    a, b = mp.mpf(first.infinite), mp.mpf(second.infinite)
    finite = mp.fsum(m for _, m in one), mp.fsum(n for _, n in two)
    return both, a * (finite[1] + b) + finite[0] * b


# --- upper bounds


def test_profiles_are_rounded_up() -> None:
    with mp.workdps(DIGITS):
        for _, pair in pairs(1, wide=True):
            found = pair.profile(pair.base - 2, len(pair.mass) + 4)
            for i, value in enumerate(found.tolist()):
                true = delta(pair, mp.mpf(pair.step) * (pair.base - 2 + i))
                assert min(true, 1) <= value <= true * (1 + mp.mpf(10) ** -13) + TINY


def test_raised_losses_count_in_profiles() -> None:
    with mp.workdps(DIGITS):
        for rng, pair in pairs(2):
            lift = pair.step * rng.choice([1e-9, 0.3, 0.99])
            raised = [(loss + mp.mpf(lift), mass) for loss, mass in losses(pair)]
            for i, value in enumerate(pair.profile(pair.base, len(pair.mass), lift).tolist()):
                at = mp.mpf(pair.step) * (pair.base + i)
                above = [(loss, mass) for loss, mass in raised if loss - mp.mpf(lift) >= at]
                true = profile(above, mp.mpf(pair.infinite), at)
                assert min(true, 1) <= value <= true * (1 + mp.mpf(10) ** -13) + TINY


def test_the_hull_is_above_what_its_points_bound() -> None:
    """Points are the exact values, rounded up to doubles: nothing else pays for the rounding of
    the hull."""
    with mp.workdps(DIGITS):
        for _, pair in pairs(3, wide=True):
            grid = range(pair.base - 1, pair.base + len(pair.mass) + 1)
            true = [delta(pair, mp.mpf(pair.step) * i) for i in grid]
            value = np.array([min(1.0, float(np.nextafter(float(v), 2.0))) for v in true])
            hull = DominatingPair.from_profile(value, base=grid.start, step=pair.step)
            for eps in points(pair):
                assert min(delta(pair, eps), 1) <= delta(hull, eps)
            for i, v in zip(grid, true, strict=True):
                assert delta(hull, mp.mpf(pair.step) * i) <= v + mp.mpf(10) ** -13


def test_coarser_and_shorter_pairs_are_above() -> None:
    with mp.workdps(DIGITS):
        for rng, pair in pairs(4, wide=True):
            coarse = pair.coarser()
            tilt, cut = rng.uniform(0, 30), 10 ** rng.uniform(-12, -2)
            short = pair.shortened(tilt, cut, cut)
            for eps in points(pair):
                true = delta(pair, eps)
                assert true <= delta(coarse, eps)
                assert true <= delta(short, eps)
                assert delta(coarse, eps) <= delta(pair, eps - 2 * pair.step) + mp.mpf(10) ** -13


@pytest.mark.parametrize("wide", [False, True])
def test_sums_of_rows_are_within_their_error(wide: bool) -> None:
    """Against exact rationals: far below the largest entries the error is all that is known."""
    rng = random.Random(5)
    for _ in range(MANY):
        step = rng.choice(STEPS)
        (_, first, _), (_, second, _) = (drawn(rng, step=step, wide=wide) for _ in range(2))
        tilt = rng.choice([0.0, 1.0, 30.0, 1e5])
        found = TiltedSums.of(first, second, step, tilt)
        assert found is not None
        with mp.workdps(DIGITS):
            for k in range(len(first) + len(second) - 1):
                inside = range(max(0, k - len(second) + 1), min(k + 1, len(first)))
                exact = sum((Fraction(first[i]) * Fraction(second[k - i]) for i in inside), 0)
                true = mp.mpf(exact.numerator) / exact.denominator if exact else mp.mpf(0)
                scale, inexact = (mp.mpf(float(of[k])) for of in (found.log_scale, found.inexact))
                low, high = (mp.mpf(float(found.value[k])) + s * found.error for s in (-1, 1))
                assert low * mp.exp(scale) * (1 - inexact) <= true
                assert true <= high * mp.exp(scale) * (1 + inexact)
                assert found.error <= 1e-12
                assert inexact <= 1e-10 * (1 + tilt / 1e3)


@pytest.mark.parametrize("wide", [False, True])
def test_products_are_above(wide: bool) -> None:
    with mp.workdps(DIGITS):
        for rng, first in pairs(6, wide=wide):
            base, mass, infinite = drawn(rng, step=first.step, wide=wide)
            second = DominatingPair(first.step, base, mass, infinite)
            found = first.composed(second, rng.choice([0.0, 1.0, 30.0]))
            true, both = product(first, second)
            for eps in points(found):
                exact = min(profile(true, both, eps), 1)
                assert exact <= delta(found, eps)
                above = profile(true, both, eps - 2 * first.step)
                assert delta(found, eps) <= above + mp.mpf(10) ** -10


def test_powers_are_above() -> None:
    with mp.workdps(DIGITS):
        for rng, pair in pairs(7):
            times = rng.choice([2, 3, 4])
            true, infinite = losses(pair), mp.mpf(pair.infinite)
            total = mp.fsum(m for _, m in true)
            for _ in range(times - 1):
                infinite = infinite * (total + pair.infinite) + (
                    mp.fsum(m for _, m in true) * pair.infinite
                )
                sums: dict[mp.mpf, mp.mpf] = {}
                for a, m in true:
                    for b, n in losses(pair):
                        sums[a + b] = sums.get(a + b, mp.mpf(0)) + m * n
                true = list(sums.items())
            found = pair.power(times, eps=times * float(true[-1][0]) / 2, tolerance=1e-3)
            for eps in points(found):
                assert min(profile(true, infinite, eps), 1) <= delta(found, eps)


@pytest.mark.parametrize("interval", [1e-2, 0.0123, 1 / 16])
def test_pairs_on_another_grid_are_above(interval: float) -> None:
    """Both pairs bound one mechanism: so does the pair of the smaller profile."""
    with mp.workdps(DIGITS):
        for rng, pair in pairs(8):
            weaker = DominatingPair(
                pair.step, pair.base, pair.mass * 0.5, pair.infinite + float(pair.mass.sum()) / 2
            )
            found = regridding.on_grid([pair, weaker] if rng.random() < 0.5 else [pair], interval)
            low, high = points(pair)[0], points(pair)[-1]
            for eps in [low + (high - low) * i / 24 for i in range(25)]:
                true = min(delta(pair, eps), 1)
                assert true <= delta(found, eps)
                assert delta(found, eps) <= delta(pair, eps - interval - pair.step) + mp.mpf("1e-9")


# --- lower bounds


def test_lower_laws_only_move_down() -> None:
    with mp.workdps(DIGITS):
        for rng, law in laws(9, wide=True):
            coarse = law.coarser()
            short = law.shortened(Focus(rng.choice([0.0, 300.0, 3e3]), 10 ** rng.uniform(-12, -2)))
            for eps in points(law):
                true = delta(law, eps)
                assert delta(coarse, eps) <= true
                assert delta(short, eps) <= true
                assert law.delta(float(eps)) <= delta(law, mp.mpf(float(eps)))
                assert delta(law, eps + law.step) - mp.mpf(10) ** -13 <= delta(coarse, eps)


@pytest.mark.parametrize("wide", [False, True])
def test_sums_of_lower_laws_are_below(wide: bool) -> None:
    with mp.workdps(DIGITS):
        for rng, first in laws(10, wide=wide):
            base, mass, infinite = drawn(rng, step=first.step, wide=wide)
            second = LowerLaw(first.step, base, mass, infinite)
            tilt = rng.choice([0.0, 1.0, 30.0])
            found = first.composed(second, Focus(tilt, 0.0))
            true, both = product(first, second)
            for eps in points(found):
                exact = profile(true, both, eps)
                assert delta(found, eps) <= exact
                # a tilt gives up the lowest losses
                assert tilt or exact - mp.mpf(10) ** -10 <= delta(found, eps)


@pytest.mark.parametrize("times", [2, 3, 5])
def test_powers_of_lower_laws_are_below(times: int) -> None:
    exact = Focus(0.0, 0.0)
    with mp.workdps(DIGITS):
        for _, law in list(laws(11))[:4]:
            whole = law
            for _ in range(times - 2):
                whole = whole.composed(law, exact)
            found = law.power(times, focus=exact, tolerance=1e-3)
            true, both = product(whole, law)
            for eps in points(found):
                value, below = (profile(true, both, at) for at in (eps, eps + times * law.step))
                assert below - mp.mpf(10) ** -9 <= delta(found, eps) <= value + mp.mpf(10) ** -9
