"""Many draws at once: the events word by word and with all their bits, the laws by chi-square.

Every statistical test has a fixed seed and fails with probability 1e-6 if the law is right.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sampler_laws import ALARM, chi_square
from scipy import stats

from accounting.base.errors import TooLarge
from paramsearch.deploy.bits import SeededBits, Tape
from paramsearch.deploy.exact_events import (
    ComputedProbability,
    Probability,
    RationalProbability,
    bernoulli_many,
    random_words,
    uniform_many,
)
from paramsearch.deploy.samplers import Burst, Choice, Geometric, Logarithmic, Poisson

TOP = (1 << 64) - 1


def tape(*words: int, rest: str = "") -> Tape:
    return Tape("".join(f"{word:064b}" for word in words) + rest)


def one_over_e() -> Probability:
    from flint import arb

    return ComputedProbability(lambda: arb(-1).exp())


@given(st.lists(st.integers(0, TOP), max_size=70))
def test_words_are_the_bits_in_their_order(words: list[int]) -> None:
    source = tape(*words)
    assert random_words(source, len(words)).tolist() == words
    assert source.read == 64 * len(words)


@given(st.fractions(0, 1, max_denominator=10**6), st.integers(-2, 2))
def test_events_next_to_their_probability(x: Fraction, distance: int) -> None:
    """The event happens if and only if U < x, for every U that begins with a word next to x 2^64;
    where that depends on the bits that follow, they are read, and no others."""
    word = min(max(math.floor(x * 2**64) + distance, 0), TOP)
    for rest in ("0" * 200, "1" * 200, "01" * 100, "10" * 100):
        source = tape(word, rest=rest)
        (happened,) = bernoulli_many(source, RationalProbability(x), 1)
        after = Fraction(int(rest, 2), 2**200)
        low, high = Fraction(word) + after, Fraction(word) + after + Fraction(1, 2**200)
        # a fraction with such a denominator is decided by 200 more bits, or is on their edge
        assert high <= x * 2**64 if happened else low >= x * 2**64
        decided = Fraction(word) + 1 <= x * 2**64 or Fraction(word) >= x * 2**64
        assert (source.read == 64) == decided


def test_an_irrational_event_reads_on_where_64_bits_do_not_decide() -> None:
    x = one_over_e()
    floor, _ = x.bounds(100)
    word, rest = floor >> 36, floor & ((1 << 36) - 1)
    assert word == x.low
    for change, happens in ((-1, True), (1, False)):
        source = tape(word, 0, TOP, rest=f"{rest + change:036b}")
        assert bernoulli_many(source, x, 3).tolist() == [happens, True, False]
        assert 192 < source.read <= 228


@pytest.mark.parametrize(("x", "happens"), [(Fraction(0), False), (Fraction(1), True)])
def test_certain_and_impossible_events(x: Fraction, happens: bool) -> None:
    for word in (0, 1 << 63, TOP):
        assert bernoulli_many(tape(word), RationalProbability(x), 1).tolist() == [happens]


@given(st.lists(st.integers(1, 2**53), min_size=1, max_size=6), st.data())
def test_uniform_numbers_are_the_leading_bits_or_drawn_again(
    limits: list[int], data: st.DataObject
) -> None:
    """Which is what ``uniform`` does, a word for each number."""
    rounds = [data.draw(st.lists(st.integers(0, TOP), min_size=6, max_size=6)) for _ in range(3)]
    words: list[int] = []
    expected: dict[int, int] = {i: 0 for i, limit in enumerate(limits) if limit == 1}
    for drawn in [*rounds, [0] * 6]:
        left = [i for i in range(len(limits)) if i not in expected]
        words += drawn[: len(left)]
        for i, word in zip(left, drawn, strict=False):
            leading = word >> (64 - (limits[i] - 1).bit_length())
            if leading < limits[i]:
                expected[i] = leading
    source = tape(*words)
    found = uniform_many(source, np.array(limits))
    assert found.tolist() == [expected[i] for i in range(len(limits))]


@pytest.mark.parametrize("limit", [1, 2, 3, 5, 8, 11])
def test_uniform_numbers_have_their_law(limit: int) -> None:
    found = uniform_many(SeededBits(f"limit {limit}"), np.full(6000, limit))
    assert set(found.tolist()) == set(range(limit))
    if limit > 1:
        assert stats.chisquare(np.bincount(found)).pvalue > ALARM


@pytest.mark.parametrize("p", [0.01, 0.4, 0.5, 0.97, 0.9999])
def test_geometric_numbers_have_their_law(p: float) -> None:
    drawn = Geometric(Fraction(p)).draw_many(SeededBits(f"geometric {p}"), 30_000)
    if p == 0.01:  # nearly always 0: too few others for cells
        zeros = int(np.count_nonzero(drawn == 0))
        assert stats.binomtest(zeros, len(drawn), 1 - p).pvalue > ALARM
        return
    assert chi_square(drawn, lambda k: 1 - p ** (k + 1.0)) > ALARM


@pytest.mark.parametrize(("p", "m"), [(0.4, 1), (0.97, 4), (0.9999, 2), (0.8, 64)])
def test_bursts_have_their_law(p: float, m: int) -> None:
    drawn = Burst(Fraction(p), m).draw_many(SeededBits(f"bursts {p} {m}"), 20_000)
    assert chi_square(drawn - 1, lambda k: stats.nbinom.cdf(k, m, 1 - p)) > ALARM


@pytest.mark.parametrize("p", [0.2, 0.5, 0.9, 0.96, 0.9999])
def test_logarithmic_numbers_have_their_law(p: float) -> None:
    drawn = Logarithmic(Fraction(p)).draw_many(SeededBits(f"logarithmic {p}"), 30_000)
    assert drawn.min() == 1
    assert chi_square(drawn, lambda k: stats.logser.cdf(k, p)) > ALARM


@pytest.mark.parametrize("rate", [Fraction(1, 3), Fraction(1), Fraction(7, 3), Fraction(250)])
def test_poisson_numbers_have_their_law(rate: Fraction) -> None:
    sampler, source = Poisson(rate), SeededBits(f"poisson {rate}")
    drawn = np.array([sampler.draw_at_once(source) for _ in range(4000)])
    assert chi_square(drawn, lambda k: stats.poisson.cdf(k, float(rate))) > ALARM


def test_no_rate_no_events_and_no_bits() -> None:
    assert Poisson(Fraction(0)).draw_at_once(Tape("")) == 0


def test_counts_of_choices_have_their_law() -> None:
    weights = [Fraction(1, 3), Fraction(2, 7), Fraction(5), Fraction(1, 11), Fraction(2)]
    choice, source = Choice(weights), SeededBits("choices")
    found = choice.counts(source, 100_000)
    expected = np.array([float(weight / sum(weights)) for weight in weights]) * 100_000
    assert found.sum() == 100_000
    assert stats.chisquare(found, expected).pvalue > ALARM
    # the counts of few draws vary as binomial ones do
    few = np.array([int(choice.counts(source, 3)[2]) for _ in range(3000)])
    share = float(weights[2] / sum(weights))
    assert (
        stats.chisquare(
            np.bincount(few, minlength=4), 3000 * stats.binom.pmf(range(4), 3, share)
        ).pvalue
        > ALARM
    )


def test_a_wrong_law_is_noticed() -> None:
    drawn = Logarithmic(Fraction(9, 10)).draw_many(SeededBits("wrong"), 30_000)
    assert chi_square(drawn, lambda k: stats.logser.cdf(k, 0.91)) < ALARM


def test_numbers_beyond_64_bits_are_refused_before_a_bit_is_read() -> None:
    p = 1 - Fraction(1, 2**60)
    for sampler in (Geometric(p), Burst(p, 3)):
        with pytest.raises(TooLarge, match="too small to draw many"):
            sampler.draw_many(Tape(""), 1)
