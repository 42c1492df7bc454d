"""Scalar functions against mpmath, and the tables against the scalar functions."""

from __future__ import annotations

import math

import mpmath as mp
import numpy as np
import pytest

from accounting import InvalidParameter, NegativeBinomial, NoiseSum, TooLarge
from accounting.evaluator.noise_tables import noise_table

EXTREMES = [(r, p) for r in (1e-3, 0.5, 1.0, 11.3, 1e5) for p in (1e-9, 0.3, 0.999, 1 - 1e-9)]


def points(noise: NegativeBinomial) -> list[int]:
    spread = math.sqrt(noise.variance)
    return sorted({0, 1, 7, int(noise.mean), int(noise.mean + 3 * spread)})


def log_mass(r: float, p: float, k: int) -> mp.mpf:
    r, p = mp.mpf(r), mp.mpf(p)
    return (
        mp.loggamma(k + r) - mp.loggamma(r) - mp.loggamma(k + 1) + r * mp.log(1 - p) + k * mp.log(p)
    )


@pytest.mark.parametrize(("r", "p"), EXTREMES)
def test_mass_and_ratio_to_the_last_bit(r: float, p: float) -> None:
    noise = NegativeBinomial(r, p)
    with mp.workdps(60):
        for k in points(noise):
            truth = log_mass(r, p, k)
            assert abs(noise.log_pmf(k) - truth) <= abs(truth) * mp.mpf(2) ** -52
            mass = mp.exp(truth)
            if mass > mp.mpf(10) ** -300:
                assert abs(noise.pmf(k) - mass) <= mass * mp.mpf(2) ** -52
            for shift in (1, -1, 3, 100):
                if k + shift >= 0:
                    ratio = truth - log_mass(r, p, k + shift)
                    assert abs(noise.log_ratio(k, shift) - ratio) <= abs(ratio) * mp.mpf(2) ** -52
            assert noise.log_ratio(k, -k - 1) == math.inf


@pytest.mark.parametrize(("r", "p"), [(0.3, 0.5), (4.0, 0.9), (50.0, 0.2), (1500.0, 0.7)])
def test_tails_are_sums_of_masses(r: float, p: float) -> None:
    noise = NegativeBinomial(r, p)
    with mp.workdps(60):
        for k in points(noise):
            below = mp.fsum(mp.exp(log_mass(r, p, i)) for i in range(k + 1))
            tiny = mp.mpf(10) ** -300  # below the doubles the value is 0.0
            assert abs(noise.cdf(k) - below) <= below * mp.mpf(2) ** -52 + tiny
            above = 1 - below
            assert abs(noise.sf(k + 1) - above) <= above * mp.mpf(2) ** -52 + mp.mpf(10) ** -50


@pytest.mark.parametrize(("r", "p"), EXTREMES)
def test_tails_of_extreme_parameters_are_complementary(r: float, p: float) -> None:
    noise = NegativeBinomial(r, p)
    for k in points(noise):
        assert abs(noise.cdf(k) + noise.sf(k + 1) - 1) <= 2.0**-51


def test_moments() -> None:
    noise = NegativeBinomial(4.0, 0.75)
    assert noise.mean == 12.0
    assert noise.variance == 48.0
    assert NegativeBinomial.from_mean(mean=12.0, r=4.0) == noise


@pytest.mark.parametrize(
    "parts",
    [
        [(0.2, 0.9)],
        [(1.0, 0.5)],
        [(11.0, 0.97)],
        [(3.0, 0.8), (0.4, 0.95)],
        [(400.0, 0.6)],
        [(1500.0, 0.9)],
        [(2.0, 1e-6)],
    ],
)
def test_tables_are_within_their_stated_errors(parts: list[tuple[float, float]]) -> None:
    noise = NoiseSum.of([NegativeBinomial(r, p) for r, p in parts])
    n = noise.length(1e-40)
    table = noise_table(noise, n)
    with mp.workdps(60):
        truth = [mp.mpf(1)]
        state = [mp.mpf(0)] * len(parts)
        for k in range(1, n):
            state = [mp.mpf(p) * (truth[-1] + s) for (_, p), s in zip(parts, state, strict=True)]
            truth.append(mp.fsum(mp.mpf(r) * s for (r, _), s in zip(parts, state, strict=True)) / k)
        first = mp.fprod((1 - mp.mpf(p)) ** mp.mpf(r) for r, p in parts)
        truth = [value * first for value in truth]
        for k in range(0, n, max(1, n // 60)):
            if table.mass[k] > 1e-290:
                error = abs(mp.log(mp.mpf(table.mass[k]) / truth[k]))
                assert error <= table.relative_error
            if k + 2 < n:
                loss = mp.log(truth[k] / truth[k + 2])
                assert abs(table.log_mass[k] - table.log_mass[k + 2] - loss) <= table.loss_error
        assert 1 - mp.fsum(truth) <= table.tail
    assert table.tail <= 1e-39


def test_a_sum_of_two_is_a_convolution() -> None:
    a, b = NegativeBinomial(2.5, 0.6), NegativeBinomial(0.7, 0.8)
    both = noise_table(NoiseSum.of([a, b]), 200).mass
    direct = np.convolve([a.pmf(k) for k in range(200)], [b.pmf(k) for k in range(200)])[:200]
    assert np.all(np.abs(both - direct) <= 1e-13 * direct)


@pytest.mark.parametrize(("r", "p"), EXTREMES)
def test_tail_bound_is_above_the_tail(r: float, p: float) -> None:
    noise = NegativeBinomial(r, p)
    total = NoiseSum.of(noise)
    for k in points(noise):
        if k > 0:
            assert total.tail_bound(k) >= noise.sf(k) * (1 - 1e-15)


def test_largest_loss_is_the_supremum() -> None:
    for r, p, shift in [(3.0, 0.4, 2), (0.4, 0.4, 3), (1.0, 0.9, 1)]:
        noise = NegativeBinomial(r, p)
        bound = NoiseSum.of(noise).largest_loss(shift)
        seen = max(noise.log_ratio(k, shift) for k in (0, 1, 5, 10**4, 10**9))
        assert seen <= bound
        assert bound <= seen + 1e-8
    assert NoiseSum.of(NegativeBinomial(3.0, 0.4)).largest_loss(-1) == math.inf


@pytest.mark.parametrize(
    ("r", "p"),
    [
        (0.0, 0.5),
        (-1.0, 0.5),
        (math.nan, 0.5),
        (math.inf, 0.5),
        (1.0, 0.0),
        (1.0, 1.0),
        (1.0, math.nan),
        (1.0, -0.1),
        (True, 0.5),
        ("3", 0.5),
    ],
)
def test_bad_parameters_are_named(r: float, p: float) -> None:
    with pytest.raises(InvalidParameter, match=r"^[rp] = "):
        NegativeBinomial(r, p)


def test_a_table_that_would_not_fit_is_refused_before_it_is_made() -> None:
    noise = NoiseSum.of(NegativeBinomial(1e5, 1 - 1e-9))
    with pytest.raises(TooLarge, match="entries"):
        noise_table(noise, noise.length(1e-20))


@pytest.mark.parametrize("p", [4e-30, 1e-8, 0.3, 0.99])
@pytest.mark.parametrize("share", [1.0, 1 - 1e-9, 0.5])
def test_tail_bounds_of_sums_are_above_the_first_terms_of_the_tail(p: float, share: float) -> None:
    parts = [NegativeBinomial(1.5, p), NegativeBinomial(2.0, p * share)]
    total = NoiseSum.of(parts)
    with mp.workdps(50):
        mass = [
            [
                mp.rf(mp.mpf(part.r), k) / mp.factorial(k) * mp.mpf(part.p) ** k
                * (1 - mp.mpf(part.p)) ** mp.mpf(part.r)
                for k in range(60)
            ]
            for part in parts
        ]  # fmt: skip
        for n in (1, 2, 5, 20):
            first = mp.fsum(
                mp.fsum(mass[0][i] * mass[1][k - i] for i in range(k + 1)) for k in range(n, 60)
            )
            assert mp.mpf(total.tail_bound(n)) >= first
