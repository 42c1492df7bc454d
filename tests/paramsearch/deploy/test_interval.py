"""Intervals cover with at least their probability, and are no longer than they have to be.

Held against the law itself, summed with mpmath to forty digits: a bound that is a little on the
wrong side fails.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from deployed import file
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf

from accounting.model.configuration import Proposal
from paramsearch import uncertified
from paramsearch.deploy import Analyzer, interval
from paramsearch.deploy.interval import CentralTails, half_width, rounding_tail
from paramsearch.parameters.parameter_file import ParameterFile

mp.dps = 40


@cache
def fine(loss: float, honest: float = 1.0, n: int = 1000) -> ParameterFile:
    """A file whose central noise has q = e^-loss."""
    atoms = [{"atom": [-1, 1], "r": 2.0, "p": 0.6}]
    problem = {"max_value": 1, "eps": 1.0, "delta": 0.9, "n": n, "eps_central": loss}
    return uncertified(Proposal.of({**problem, "atoms": atoms}), honest=honest)


def exact(text: str) -> mpf:
    value = Fraction(text)
    return mpf(value.numerator) / value.denominator


class Truth:
    """P(Z = d) from the generating function ((1-q)^2 / ((1 - qz)(1 - q/z)))^R."""

    def __init__(self, made: ParameterFile, users: int) -> None:
        self.q = exact(made.central.p)
        self.r = exact(made.central.rate) / -mp.log(1 - self.q) * users / made.problem.n

    @cache  # noqa: B019 - a few laws, for the tests of this file
    def mass(self, d: int) -> mpf:
        d, q, r = abs(d), self.q, self.r
        weight = (1 - q) ** (2 * r) * q**d * mp.rf(r, d) / mp.factorial(d)
        return weight * mp.hyp2f1(r, r + d, d + 1, q * q)

    @cache  # noqa: B019 - as above
    def above(self, t: int) -> mpf:
        """P(Z > t)."""
        if t < 0:
            return 1 - self.above(-t - 1)
        return (1 - self.mass(0)) / 2 - mp.fsum(self.mass(d) for d in range(1, t + 1))

    def outside(self, t: int) -> mpf:
        """P(|Z| > t)."""
        return 2 * self.above(t)


LAWS = [
    (1.0, 50),
    (1.0, 49),
    (1.0, 7),
    (1.0, 1),
    (1.0, 51),
    (1.0, 400),
    (0.5, 50),
    (0.5, 25),
    (0.95, 50),
]


@pytest.mark.parametrize(("honest", "users"), LAWS)
def test_the_interval_covers_and_one_step_less_does_not(honest: float, users: int) -> None:
    made = file(honest=honest)
    truth, noise = Truth(made, users), CentralTails(made, users)
    for t in range(60):
        assert truth.above(t) <= noise.above(t) <= truth.above(t) * (1 + mpf("1e-9")) + 1e-28
    for confidence in (0.01, 0.3, 0.7, 0.95, 0.9999, 1 - 1e-9, 1 - 2.0**-50):
        miss = 1 - mpf(confidence)
        for dimension in (1, 3):
            answer = Analyzer(file(dimension, honest), users=users, allow_few=True)
            found = answer.result(confidence)
            steps = int(found.upper[0] - found.value[0])
            assert found.lower.tolist() == (found.value - steps).tolist()
            assert truth.outside(steps) <= miss
            assert steps == 0 or truth.outside(steps - 1) > miss


@pytest.mark.parametrize(("depth", "users"), [(2.0, 50), (4.0, 50), (3.0, 5), (3.0, 2000)])
def test_what_is_left_out_is_accounted_for(
    depth: float, users: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With so much left out, on both sides for 2,000 users, that it matters."""
    monkeypatch.setattr(interval, "_DEPTH", depth)
    truth, noise = Truth(file(), users), CentralTails(file(), users)
    for t in range(0, 100, 3):
        assert truth.above(t) <= noise.above(t)


def test_rounding_errors_are_accounted_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the exact share, 1 to 57 digits, nothing else keeps the bound on its side."""
    monkeypatch.setattr(interval, "_ABOVE", 1.0)
    truth, noise = Truth(file(), 50), CentralTails(file(), 50)
    for t in range(60):
        assert truth.above(t) <= noise.above(t)


@pytest.mark.parametrize(("honest", "users"), LAWS)
def test_it_covers_for_everybody_who_may_have_added_noise(honest: float, users: int) -> None:
    """From the honest fraction to all, and below."""
    made = file(honest=honest)
    for miss in (0.3, 0.05, 1e-6):
        steps = half_width(CentralTails(made, users), miss)
        for noisy in {math.ceil(honest * users), users, users // 2, 1} - {0}:
            assert Truth(made, noisy).outside(steps) <= mpf(miss)


def test_a_file_for_an_honest_fraction() -> None:
    """The 95% interval was +-520, by Chernoff's bound."""
    made = fine(0.0114, honest=0.95)
    found = Analyzer(made).result(0.95)
    assert found.upper[0] - found.value[0] == 269
    truth = Truth(made, 1000)
    assert truth.outside(269) <= mpf("0.05") < truth.outside(268)
    few = fine(0.0114, honest=0.95, n=10**6)  # of which nine took part: was +-325
    assert Analyzer(few, users=9, allow_few=True).result(0.95).upper[0] == 0
    assert Truth(few, 9).outside(0) <= mpf("0.05")


def test_laws_that_are_too_wide_to_be_summed() -> None:
    """By formulas: exact where the noise is geometric, and on the safe side elsewhere."""
    made = fine(1e-6)
    q = exact(made.central.p)
    noise = CentralTails(made, 1000)
    assert not noise.exact
    for miss in (0.3, 0.05, 1e-6):
        t = noise.quantile(miss)
        assert 2 * q ** (t + 1) / (1 + q) <= mpf(miss) < 2 * q ** (t - 2000) / (1 + q)
    half, double = CentralTails(made, 500), CentralTails(made, 2000)
    assert half.quantile(0.05) <= noise.quantile(0.05) < double.quantile(0.05)
    t = double.quantile(0.05)  # R = 2: the sum of two discrete Laplace variables
    first = (1 + q * q) / (1 - q * q) + t + 1
    above = ((1 - q) / (1 + q)) ** 2 * q ** (t + 1) * (first / (1 - q) + q / (1 - q) ** 2)
    assert 2 * above <= mpf("0.05")


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.sampled_from([0.0, 0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 1.0]), min_size=1, max_size=12),
    st.sampled_from([0.5, 0.05, 1e-3]),
)
def test_the_interval_of_real_values_covers_whatever_they_are(
    fractions: list[float], miss: float
) -> None:
    """All roundings of values with these parts between two steps, by enumeration."""
    users = len(fractions)
    for made in (file(n=users), file(n=users, honest=0.5)):
        steps = half_width(CentralTails(made, users), miss, rounded=users)
        for noisy in {users, math.ceil(users / 2)}:
            outside = _missed(Truth(made, noisy), fractions, steps)
            assert outside <= mpf(miss)


@pytest.mark.parametrize("part", [0.0, 0.02, 0.2, 0.5, 0.8])
@pytest.mark.parametrize("users", [40, 250])
def test_the_interval_of_many_real_values(users: int, part: float) -> None:
    made = fine(0.5, n=users)
    for miss in (0.5, 0.05, 1e-6):
        steps = half_width(CentralTails(made, users), miss, rounded=users)
        assert _missed(Truth(made, users), [part] * users, steps) <= mpf(miss)


def _missed(truth: Truth, fractions: list[float], steps: int) -> mpf:
    """P(|Z + W| > steps), W = sum of (Bernoulli - its mean)."""
    law = [mpf(1)]
    for part in fractions:
        up = mpf(part)
        stay, rise = [x * (1 - up) for x in law], [x * up for x in law]
        law = [a + b for a, b in zip([*stay, mpf(0)], [mpf(0), *rise], strict=True)]
    mean = sum(map(Fraction, fractions), Fraction(0))
    total = mpf(0)
    for count, chance in enumerate(law):
        w = count - mean
        above = truth.above(math.floor(steps - w))  # Z > steps - w
        below = truth.above(math.floor(steps + w))  # -Z > steps + w, the same law
        total += chance * (above + below)
    return total


@pytest.mark.parametrize("users", [1, 2, 3, 7, 20, 31])
def test_the_tail_of_the_rounding(users: int) -> None:
    """For equal parts where they are worst: just at an integer less x."""
    for x in [Fraction(k, 4) for k in range(1, 4 * users + 1)]:
        bound = mpf(rounding_tail(float(x), users))
        for count in range(math.ceil(x), users + 1):
            part = (count - x) / users  # W >= x where the count is reached
            up, stay = (mpf(y.numerator) / y.denominator for y in (part, 1 - part))
            law = [mp.binomial(users, k) * up**k * stay ** (users - k) for k in range(users + 1)]
            mean = part * users
            tail = mp.fsum(p for k, p in enumerate(law) if abs(k - mean) >= x)
            assert min(tail, 1) <= bound


@settings(max_examples=60, deadline=None)
@given(st.lists(st.fractions(0, 1, max_denominator=20), min_size=1, max_size=9), st.data())
def test_the_tail_of_unequal_roundings(parts: list[Fraction], data: st.DataObject) -> None:
    law = {0: Fraction(1)}
    for part in parts:
        law = {
            k: law.get(k, 0) * (1 - part) + law.get(k - 1, 0) * part for k in range(len(law) + 1)
        }
    mean = sum(parts, Fraction(0))
    x = abs(data.draw(st.integers(0, len(parts))) - mean)  # where the tail has a step
    tail = sum((p for k, p in law.items() if abs(k - mean) >= x), Fraction(0))
    assert tail <= Fraction(rounding_tail(math.nextafter(float(x), 0), len(parts)))


@pytest.mark.parametrize("loss", [0.1, 0.01, 0.001])
@pytest.mark.parametrize("users", [100, 10_000, 10**6, 10**8])
def test_the_interval_of_real_values_is_not_much_longer(loss: float, users: int) -> None:
    """Than the one for values halfway between steps, where W is almost normal; and never longer
    than with half the probability for each kind of error, as it was."""
    made = fine(loss, n=users)
    noise = CentralTails(made, users)
    found = half_width(noise, 0.05, rounded=users)
    split = noise.quantile(0.025) + math.sqrt(users * math.log(80) / 2)
    assert noise.quantile(0.05) <= found <= math.ceil(split)
    deviation = math.sqrt(users) / 2

    def missed(s: float) -> float:
        """P(|Z + W| > s): over a normal W, of a Laplace variable."""
        w = deviation * np.linspace(-9, 9, 20_001)
        weight = np.exp(-((w / deviation) ** 2) / 2)
        inner, outer = np.exp(-loss * np.abs(s - w)) / 2, np.exp(-loss * np.abs(s + w)) / 2
        above = np.where(w < s, inner, 1 - inner) + np.where(w > -s, outer, 1 - outer)
        return float((weight * above).sum() / weight.sum())

    assert missed(0.95 * found - 3) > 0.05


def test_bounds_of_real_values_are_rounded_outwards() -> None:
    made = file(n=2000)
    analyzer = Analyzer(made, low=0.1, high=0.4)
    analyzer.add(np.zeros(777, np.int64))
    found = analyzer.result(0.9)
    steps = half_width(CentralTails(made, 2000), math.nextafter(1 - 0.9, 0), rounded=2000)
    step = (Fraction(0.4) - Fraction(0.1)) / 3
    value = 2000 * Fraction(0.1) + 777 * step
    assert Fraction(found.lower[0]) <= value - steps * step
    assert Fraction(found.upper[0]) >= value + steps * step
    assert found.upper[0] - found.lower[0] == pytest.approx(2 * steps * 0.1)
