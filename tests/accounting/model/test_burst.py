"""Noise that comes in bursts: all three sets of masses against the definition in 50 digits."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accounting import Burst, Configuration, ExactBurst, NegativeBinomial, NoiseSum, Proposal
from accounting.base.balls import precision
from accounting.base.errors import InvalidConfiguration, InvalidParameter
from accounting.evaluator.noise_tables import noise_table
from accounting.model.configuration import loads
from accounting.notary.tables import NoiseTable
from accounting.reference.noise_masses import _bursts

LAWS = [
    Burst(3.0, 0.5, 1),
    Burst(10.0, 0.3, 4),
    Burst(0.25, 0.9, 2),
    Burst(20.0, 0.4, 8),
    Burst(1e-3, 0.75, 3),
    Burst(2.0, 1e-9, 2),
    Burst(0.5, 0.25, 64),
]
laws = st.builds(
    Burst,
    rate=st.floats(1e-3, 15),
    p=st.floats(1e-6, 0.8),
    m=st.integers(1, 8),
)


few = st.builds(Burst, rate=st.floats(1e-3, 3), p=st.floats(1e-6, 0.4), m=st.integers(1, 3))


def definition(law: Burst, count: int) -> list[mp.mpf]:
    """P[Z = k] for k below ``count``: n bursts have n copies and NB(m n, p) more."""
    with mp.workdps(50):
        rate, p, m = mp.mpf(law.rate), mp.mpf(law.p), law.m
        found = []
        for k in range(count):
            terms = [mp.exp(-rate) if k == 0 else mp.mpf(0)]
            for n in range(1, k + 1):
                of_size = mp.binomial(k - n + m * n - 1, k - n) * (1 - p) ** (m * n) * p ** (k - n)
                terms.append(mp.exp(-rate) * rate**n / mp.factorial(n) * of_size)
            found.append(mp.fsum(terms))
        return found


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_masses_and_logarithms_are_within_their_bounds(law: Burst) -> None:
    truth = definition(law, 60)
    table = noise_table(NoiseSum.of(law), 4000)
    assert table.relative_error < 1e-9
    with mp.workdps(50):
        for found, log_found, true in zip(table.mass, table.log_mass, truth, strict=False):
            width = table.relative_error * (1 + 1e-9)
            assert abs(mp.mpf(found) - true) <= width * true + mp.mpf(2) ** -1000
            width = table.loss_error + 2 * table.tail + 4000 * 2.0**-52
            assert abs(mp.mpf(log_found) - mp.log(true)) <= width


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_losses_are_within_their_bounds(law: Burst) -> None:
    truth = definition(law, 40)
    table = noise_table(NoiseSum.of(law), 500)
    with mp.workdps(50):
        for z in range(30):
            for shift in (1, 7):
                loss = mp.mpf(table.log_mass[z]) - mp.mpf(table.log_mass[z + shift])
                assert abs(loss - mp.log(truth[z] / truth[z + shift])) <= table.loss_error


@settings(deadline=None, max_examples=40)
@given(laws)
def test_the_notarys_masses_contain_the_truth(law: Burst) -> None:
    truth = definition(law, 25)
    exact = ExactBurst(p=Fraction(law.p), rate=Fraction(law.rate), m=law.m)
    with precision(128):
        at = NoiseTable.of([exact]).at(np.arange(25))
    with mp.workdps(50):
        for k, true in enumerate(truth):
            middle = mp.mpf(at.mass[k].mid().str(45, radius=False))
            radius = mp.mpf(at.mass[k].rad().str(10, radius=False))
            assert abs(middle - true) <= radius * 2 + true * mp.mpf(10) ** -40


@settings(deadline=None, max_examples=20)
@given(few)
def test_the_references_masses_contain_the_truth(law: Burst) -> None:
    exact = ExactBurst(p=Fraction(law.p), rate=Fraction(law.rate), m=law.m)
    found = _bursts((-1, 1), exact, 1e-6, 60, 1 << 12)
    truth = definition(law, len(found.masses))
    with mp.workdps(50):
        for mass, true in zip(found.masses, truth, strict=True):
            low, high = (mp.mpf(end) for end in (mass.a, mass.b))
            assert low * (1 - mp.mpf(10) ** -40) <= true <= high * (1 + mp.mpf(10) ** -40)
        assert 1 - mp.fsum(truth) <= mp.mpf(found.lost) + mp.mpf(10) ** -40
    assert found.lost < 1e-6


@settings(deadline=None, max_examples=40)
@given(laws)
def test_the_mean_and_the_variance(law: Burst) -> None:
    table = noise_table(NoiseSum.of(law), NoiseSum.of(law).length(1e-18))
    k = np.arange(len(table.mass))
    mean = float(table.mass @ k)
    assert abs(mean / law.mean - 1) < 1e-9
    assert abs(float(table.mass @ (k - mean) ** 2) / law.variance - 1) < 1e-6


@settings(deadline=None, max_examples=40)
@given(laws, st.integers(1, 80))
def test_tails_are_bounded(law: Burst, n: int) -> None:
    noise = NoiseSum.of(law)
    table = noise_table(noise, max(n + 1, noise.length(1e-25)))
    assert noise.tail_bound(n) >= table.mass[n:].sum() * (1 - 1e-9)


@settings(deadline=None, max_examples=40)
@given(laws, st.integers(1, 6))
def test_no_loss_is_larger_than_the_largest(law: Burst, shift: int) -> None:
    noise = NoiseSum.of(law)
    table = noise_table(noise, noise.length(1e-12) + shift)
    losses = table.log_mass[:-shift] - table.log_mass[shift:]
    assert losses.max() <= noise.largest_loss(shift) + table.loss_error


def test_the_largest_loss_of_a_shift_by_one_is_attained_at_zero() -> None:
    law = Burst(0.01, 0.5, 3)  # hardly ever a burst
    truth = definition(law, 2)
    largest = NoiseSum.of(law).largest_loss(1)
    with mp.workdps(50):
        true = mp.log(truth[0] / truth[1])
        assert true <= largest <= true + mp.mpf(10) ** -12


def test_a_negative_shift_has_an_infinite_loss() -> None:
    assert NoiseSum.of(LAWS[0]).largest_loss(-1) == math.inf


@settings(deadline=None, max_examples=40)
@given(laws)
def test_monotone_losses_are_proven_where_they_are_monotone(law: Burst) -> None:
    exact = ExactBurst(p=Fraction(law.p), rate=Fraction(law.rate), m=law.m)
    size = 60
    with precision(128):
        start = NoiseTable.of([exact]).monotone_from(size)
    truth = definition(law, size)
    with mp.workdps(50):
        ratios = [after / here for here, after in pairwise(truth[start:])]
        assert all(after <= here for here, after in pairwise(ratios))
        if start:  # where it is not proven, it is not true, or too close to tell
            assert truth[start] ** 2 <= truth[start - 1] * truth[start + 1] * (1 + 1e-30)


def test_bursts_are_not_log_concave() -> None:
    with precision(128):
        found = NoiseTable.of([ExactBurst(Fraction(1, 2), Fraction(1), 3)]).monotone_from(40)
    assert found > 0
    assert not NoiseSum.of(Burst(1.0, 0.5, 3)).log_concave


@settings(deadline=None, max_examples=40)
@given(st.floats(1, 1e4), st.floats(0.5, 100), st.integers(1, 64))
def test_from_mean(mean: float, r: float, m: int) -> None:
    law = Burst.from_mean(mean=mean, r=r, m=m)
    assert abs(law.mean / mean - 1) < 1e-9
    assert abs(law.r / r - 1) < 1e-9
    assert law.rate < mean


def test_large_bursts_have_the_variance_of_the_negative_binomial() -> None:
    for m in (1, 4, 16):
        ratio = Burst.from_mean(mean=1e6, r=12.0, m=m).variance / (1e12 / 12)
        assert abs(ratio - 1) < 1e-3


def test_sums_of_both_laws_are_convolutions() -> None:
    burst, other = Burst(2.0, 0.4, 3), NegativeBinomial(1.5, 0.6)
    both = noise_table(NoiseSum.of([burst, other]), 300)
    one, two = (noise_table(NoiseSum.of(law), 300) for law in (burst, other))
    convolved = np.convolve(one.mass, two.mass)[:60]
    error = both.relative_error + one.relative_error + two.relative_error + 1e-13
    assert (np.abs(both.mass[:60] - convolved) <= error * convolved).all()


def test_equal_bursts_merge() -> None:
    law = Burst(3.0, 0.5, 2)
    found = Configuration.of(1, [((-1, 1), law), ((1, -1), law)], eps_central=0.9)
    assert found.noise[-1, 1].parts == (Burst(6.0, 0.5, 2),)
    odd = Configuration.of(1, [((-1, 1), law), ((-1, 1), Burst(3.0, 0.5, 3))], eps_central=0.9)
    assert len(odd.noise[-1, 1].parts) == 2


def test_configurations_name_the_law() -> None:
    atoms = '[{"atom": [-1, 1], "law": "burst", "rate": 30.0, "p": 0.75, "m": 4}]'
    text = '{"max_value": 1, "eps_central": 0.9, "atoms": ' + atoms + "}"
    assert loads(text).noise[-1, 1].parts == (Burst(30.0, 0.75, 4),)


@pytest.mark.parametrize(
    ("entry", "error", "words"),
    [
        ({"law": "burst", "rate": 3.0, "p": 0.5}, InvalidConfiguration, "exactly the keys"),
        ({"law": "burst", "r": 3.0, "p": 0.5, "m": 1}, InvalidConfiguration, "exactly the keys"),
        ({"law": "bursts", "rate": 3.0, "p": 0.5, "m": 1}, InvalidParameter, "known: negative"),
        ({"law": ["burst"], "rate": 3.0, "p": 0.5, "m": 1}, InvalidParameter, "law"),
        ({"law": "burst", "rate": 3.0, "p": 0.5, "m": 0}, InvalidParameter, "at least 1"),
        ({"law": "burst", "rate": 3.0, "p": 0.5, "m": 65}, InvalidParameter, "at most 64"),
        ({"law": "burst", "rate": 3.0, "p": 0.5, "m": 1.5}, InvalidParameter, "whole number"),
        ({"law": "burst", "rate": 3.0, "p": 1.0, "m": 1}, InvalidParameter, "less than 1"),
        ({"law": "burst", "rate": 3.0, "p": 0.0, "m": 1}, InvalidParameter, "greater than 0"),
        ({"law": "burst", "rate": -1, "p": 0.5, "m": 1}, InvalidParameter, "negative"),
        ({"r": 3.0, "p": 0.5, "m": 1}, InvalidConfiguration, "exactly the keys"),
    ],
)
def test_bad_bursts_are_refused(entry: dict[str, object], error: type, words: str) -> None:
    data = {"max_value": 1, "eps_central": 0.9, "atoms": [{"atom": [-1, 1], **entry}]}
    with pytest.raises(error, match=words):
        Proposal.of(data)


def test_bursts_beyond_every_table_are_refused() -> None:
    with pytest.raises(InvalidParameter, match="outside the range"):
        NoiseSum.of(Burst(1.0, 1 - 1e-9, 64))
    with pytest.raises(InvalidParameter, match="outside the range"):
        NoiseSum.of(Burst(1e12, 0.5, 1))


def test_no_rate_is_no_noise() -> None:
    entry = {"atom": [-1, 1], "law": "burst", "rate": 0.0, "p": 0.5, "m": 2}
    proposal = Proposal.of({"max_value": 1, "eps_central": 0.9, "atoms": [entry]})
    assert proposal.atoms[0].noise is None
    with pytest.raises(InvalidParameter, match="has no noise"):
        proposal.configuration()


def test_a_smaller_shift_may_reveal_more() -> None:
    """bursts.md, section 3: so changes with bursts are compared by equal shifts only."""
    law = Burst(14.6, 0.613, 8)
    f = definition(law, 60)
    with mp.workdps(50):
        p, single = mp.mpf(law.p), mp.mpf(law.rate) * (1 - mp.mpf(law.p)) ** law.m
        one, two = f[0] / f[1], f[0] / f[2]
        assert abs(one * single - 1) < mp.mpf(10) ** -45
        assert abs(one / two - (law.m * p + single / 2)) < mp.mpf(10) ** -45
        assert 136 < one < 137
        assert 27 < two < 28
        gamma = mp.mpf(60)
        # E_2: outcome 0, those that are listed, and by bursts.md, Lemma 2, all others
        assert max(f[z] - gamma * f[z + 2] for z in range(58)) < 0
        assert gamma > p**-2
        assert f[0] - gamma * f[1] > 2e-7  # E_1
    assert not NoiseSum.of(law).log_concave
