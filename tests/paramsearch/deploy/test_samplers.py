"""The exact samplers: by enumeration of all bit strings, as fractions, and by chi-square.

Every statistical test has a fixed seed and fails with probability 1e-6 if the law is right; there
are fewer than 50 of them, so a false alarm has a probability below 5e-5.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from itertools import permutations

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sampler_laws import ALARM, chi_square, law
from scipy import stats

from paramsearch.deploy.bits import BitSource, SeededBits, Tape
from paramsearch.deploy.exact_events import (
    ComputedProbability,
    RationalProbability,
    bernoulli,
    random_order,
    shuffle,
    uniform,
)
from paramsearch.deploy.samplers import Burst, Choice, Geometric, Logarithmic, Poisson


@given(st.fractions(0, 1, max_denominator=300))
def test_an_event_has_exactly_its_probability(x: Fraction) -> None:
    found, short = law(lambda source: bernoulli(source, RationalProbability(x)), 14)
    assert found[True] <= x <= found[True] + short
    assert short <= Fraction(1, 1 << 14)
    if (1 << 14) % x.denominator == 0:
        assert (found[True], short) == (x, 0)


def test_an_irrational_probability() -> None:
    from flint import arb

    one_over_e = ComputedProbability(lambda: arb(-1).exp())
    found, short = law(lambda source: bernoulli(source, one_over_e), 20)
    with mp.workdps(50):
        truth = mp.exp(-1)
        low, high = (
            mp.mpf(x.numerator) / x.denominator for x in (found[True], found[True] + short)
        )
        assert low <= truth <= high
    assert short == Fraction(1, 1 << 20)
    floor, ceil = one_over_e.bounds(400)
    assert ceil == floor + 1
    with mp.workdps(200):
        assert floor == int(mp.floor(mp.exp(-1) * mp.mpf(2) ** 400))


@pytest.mark.parametrize("count", [1, 2, 3, 5, 8, 11])
def test_uniform(count: int) -> None:
    found, short = law(lambda source: uniform(source, count), 16)
    assert set(found) == set(range(count))
    for mass in found.values():
        assert mass <= Fraction(1, count) <= mass + short


@pytest.mark.parametrize("count", [0, 1, 2, 3, 4])
def test_a_shuffle_makes_every_order_equally_likely(count: int) -> None:
    orders = list(permutations(range(count)))

    def draw(source: BitSource) -> int:
        items = list(range(count))
        shuffle(source, items)
        return orders.index(tuple(items))

    found, short = law(draw, 16)
    for i in range(len(orders)):
        assert found[i] <= Fraction(1, len(orders)) <= found[i] + short


@pytest.mark.parametrize("count", [0, 1, 1000])
def test_a_random_order_of_many(count: int) -> None:
    first, second = (random_order(SeededBits(seed), count) for seed in (1, 2))
    assert sorted(first) == sorted(second) == list(range(count))
    assert count < 2 or first.tolist() != second.tolist()


def test_the_place_of_an_item_in_a_random_order_is_uniform() -> None:
    source = SeededBits("places")
    places = np.array([int(np.argmin(random_order(source, 5))) for _ in range(5000)])
    assert chi_square(places, lambda k: (k + 1) / 5) > ALARM


def test_equal_keys_are_drawn_again() -> None:
    class TwoTies:
        """Zeros at first: all keys are equal."""

        def __init__(self) -> None:
            self.calls, self.rest = 0, SeededBits(1)

        def bits(self, count: int) -> int:
            self.calls += 1
            return 0 if self.calls <= 2 else self.rest.bits(count)

    source = TwoTies()
    assert sorted(random_order(source, 3)) == [0, 1, 2]
    assert source.calls == 3


def test_choice_by_weights() -> None:
    weights = [Fraction(1, 3), Fraction(2, 7), Fraction(5), Fraction(1, 11)]
    choice = Choice(weights)
    found, short = law(choice.draw, 16)
    for i, weight in enumerate(weights):
        assert found[i] <= weight / sum(weights) <= found[i] + short


@pytest.mark.parametrize("rate", [Fraction(1, 300), Fraction(1, 2), Fraction(1), Fraction(7, 3)])
def test_poisson_by_enumeration(rate: Fraction) -> None:
    found, short = law(Poisson(rate).draw, 15)
    assert short < Fraction(1, 6)
    with mp.workdps(50):
        for k in range(5):
            truth = mp.exp(-mp.mpf(rate.numerator) / rate.denominator)
            truth *= (mp.mpf(rate.numerator) / rate.denominator) ** k / mp.factorial(k)
            low, high = found[k], found[k] + short
            assert mp.mpf(low.numerator) / low.denominator <= truth
            assert truth <= mp.mpf(high.numerator) / high.denominator


def test_no_rate_no_events_and_no_bits() -> None:
    assert Poisson(Fraction(0)).draw(Tape("")) == 0


@pytest.mark.parametrize("m", [0, 1, 2, 3])
@pytest.mark.parametrize("p", [Fraction(1, 100), Fraction(1, 3), Fraction(1, 2), Fraction(7, 8)])
def test_geometric_and_burst_by_enumeration(p: Fraction, m: int) -> None:
    """m geometric numbers sum to k with probability C(k + m - 1, k) (1 - p)^m p^k; m = 0 stands for
    one geometric number by itself."""
    sampler = Burst(p, m) if m else Geometric(p)
    least, parts = (1, m) if m else (0, 1)
    found, short = law(sampler.draw, 15)
    for k in range(6):
        truth = math.comb(k + parts - 1, k) * (1 - p) ** parts * p**k
        assert found[least + k] <= truth <= found[least + k] + short
    assert min(found) == least


@pytest.mark.parametrize(("p", "m"), [(0.4, 1), (0.97, 4), (0.9999, 2), (0.8, 64)])
def test_bursts_have_their_law(p: float, m: int) -> None:
    sampler, source = Burst(Fraction(p), m), SeededBits(f"burst {p} {m}")
    drawn = np.array([sampler.draw(source) for _ in range(3000)])
    assert chi_square(drawn - 1, lambda k: stats.nbinom.cdf(k, m, 1 - p)) > ALARM


@pytest.mark.parametrize("p", [Fraction(1, 100), Fraction(1, 3), Fraction(1, 2), Fraction(9, 10)])
def test_logarithmic_by_enumeration(p: Fraction) -> None:
    found, short = law(Logarithmic(p).draw, 15)
    with mp.workdps(50):
        share = mp.mpf(p.numerator) / p.denominator
        for k in range(1, 8):
            truth = share**k / (-k * mp.log(1 - share))
            low, high = found[k], found[k] + short
            assert mp.mpf(low.numerator) / low.denominator <= truth
            assert truth <= mp.mpf(high.numerator) / high.denominator


@pytest.mark.parametrize(
    "p", [Fraction(1, 50), Fraction(1, 3), Fraction(1, 2), Fraction(7, 8), Fraction(0.96)]
)
def test_what_logarithmic_takes_is_proportional_to_its_law(p: Fraction) -> None:
    """Block, digits and acceptance multiplied as fractions: p^k / k up to one factor."""
    sampler = Logarithmic(p)
    geometric = sampler._geometric
    assert geometric._exact

    def value(real: object) -> Fraction:
        assert isinstance(real, RationalProbability)
        return real._value

    last = sampler.last
    assert (1 << last) * (1 - p) >= 1
    assert last == 0 or (1 << (last - 1)) * (1 - p) < 1
    ratios = set()
    for k in range(1, 6 << last):
        block = min(k.bit_length() - 1, last)
        mass = Fraction(1)
        for j in range(block):
            mass *= 1 - value(sampler._stops[j])
        if block < last:
            mass *= value(sampler._stops[block])
        rest = k - (1 << block)
        for i in range(block):
            digit = value(geometric._digits[i])
            mass *= digit if rest >> i & 1 else 1 - digit
        if block == last:
            again = value(geometric._again)
            mass *= again ** (rest >> block) * (1 - again)
        mass *= Fraction(1 << block, k)
        ratios.add(mass / (p**k / k))
    assert len(ratios) == 1
    assert ratios.pop() * mp.log(1 / (1 - p)) > 0.3  # not many proposals are in vain


@pytest.mark.parametrize("p", [Fraction(0.9999), 1 - Fraction(1, 2**60), 1 - Fraction(1, 2**130)])
def test_computed_probabilities_against_mpmath(p: Fraction) -> None:
    """Where fractions would be too long, each floor with 64 bits is that of 400 digits."""
    sampler = Logarithmic(p)
    geometric = sampler._geometric
    assert not geometric._exact
    with mp.workdps(400):
        share = mp.mpf(p.numerator) / p.denominator

        def weight(j: int) -> mp.mpf:
            mass = share ** (1 << j)
            if j < sampler.last:
                mass -= share ** (1 << (j + 1))
            return mass / (1 << j)

        def floor(x: mp.mpf) -> int:
            return int(mp.floor(x * 2**64))

        weights = [weight(j) for j in range(sampler.last + 1)]
        for i in range(sampler.last):
            power = share ** (1 << i)
            assert geometric._digits[i].low == floor(power / (1 + power))
            assert sampler._stops[i].low == floor(weights[i] / mp.fsum(weights[i:]))
        assert geometric._again.low == floor(share ** (1 << sampler.last))


def test_a_digit_that_is_a_dyadic_number() -> None:
    """p = a / b with a + b a power of 2, too long to be written down as fractions."""
    sampler = Logarithmic(Fraction(65503, 65569))
    assert not sampler._geometric._exact
    found = [sampler.draw(SeededBits(seed)) for seed in range(200)]
    assert min(found) == 1
    assert max(found) > 50


def test_poisson_of_rates_far_from_one() -> None:
    assert Poisson(Fraction(1, 10**450))._hazard(1).low == 0
    source = SeededBits(4)
    drawn = [Poisson(Fraction(1000)).draw(source) for _ in range(30)]
    assert abs(np.mean(drawn) - 1000) < 5 * math.sqrt(1000 / 30)


def negative_binomial(r: float, p: float, source: BitSource) -> Callable[[], int]:
    rate = Fraction(-r * math.log1p(-p))
    events, copies = Poisson(rate), Logarithmic(Fraction(p))
    return lambda: sum(copies.draw(source) for _ in range(events.draw(source)))


@pytest.mark.parametrize(("r", "users"), [(1e-3, 1000), (0.1, 10), (1.0, 1), (10.0, 1)])
@pytest.mark.parametrize("p", [0.01, 0.5, 0.9, 0.999])
def test_negative_binomial(r: float, users: int, p: float) -> None:
    """Sums of so many independent draws of NB(r, p), where one alone shows hardly anything."""
    draw = negative_binomial(r, p, SeededBits(f"{r} {p}"))
    count = {1000: 400, 10: 3000, 1: 1500 if r > 5 else 3000}[users]
    drawn = np.array([sum(draw() for _ in range(users)) for _ in range(count)])
    if p == 0.01:  # nearly always 0: too few others for cells
        zeros = int(np.count_nonzero(drawn == 0))
        assert stats.binomtest(zeros, count, stats.nbinom.pmf(0, r * users, 1 - p)).pvalue > ALARM
        return
    assert chi_square(drawn, lambda k: stats.nbinom.cdf(k, r * users, 1 - p)) > ALARM


@pytest.mark.parametrize("p", [0.5, 0.985])
def test_tiny_shares_of_many_users_add_up(p: float) -> None:
    """r/n = 1e-7: ten million users have NB(1, p) together."""
    source = SeededBits(p)
    rate, users = Fraction(-1e-7 * math.log1p(-p)), 10**7
    events, copies = Poisson(rate * users), Logarithmic(Fraction(p))
    drawn = np.array(
        [sum(copies.draw(source) for _ in range(events.draw(source))) for _ in range(4000)]
    )
    assert chi_square(drawn, lambda k: stats.nbinom.cdf(k, 1.0, 1 - p)) > ALARM


def test_a_wrong_law_is_noticed() -> None:
    draw = negative_binomial(1.0, 0.9, SeededBits("wrong"))
    drawn = np.array([draw() for _ in range(6000)])
    assert chi_square(drawn, lambda k: stats.nbinom.cdf(k, 1.1, 0.1)) < ALARM
