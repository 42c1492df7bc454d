"""A claim holds for eps and delta as doubles and as the decimals that are written."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import mpmath as mp
import pytest
from hypothesis import given
from hypothesis import strategies as st

from accounting import Enclosure, ExactCentral, ExactNoise, LossDistribution, Mechanism, Question
from accounting.base.enclosure import readings
from accounting.model.change import Change
from accounting.model.proof import Proof
from accounting.model.proof_types import AuditTier
from accounting.notary.notary import Notary
from accounting.proof.both_readings import lower_at, proof_for_both
from accounting.proof.profile import Profile
from accounting.proof.prove import prove
from accounting.protocol import Protocol
from accounting.reference.reference import Reference

ABOVE = (0.1, 0.2, 0.9, 1.1, 2.2)
"""Doubles above the decimals that they are written as."""
BELOW = (0.3, 0.6, 0.7, 1.4)
"""Doubles below them."""


def mechanism(r: str = "12", p: str = "0.9") -> Mechanism:
    noise = ExactNoise(p=Fraction(p), r=Fraction(r))
    return Mechanism(1, {(-1, 1): (noise,)}, ExactCentral(step=Fraction(9, 10)))


@given(st.floats(0, 1e300))
def test_two_doubles_are_around_both_readings(value: float) -> None:
    low, high = readings(value)
    double, decimal = Fraction(value), Fraction(repr(value))
    assert Fraction(low) <= min(double, decimal) <= max(double, decimal) <= Fraction(high)
    assert value in (low, high)
    # no double in between is left out
    assert low == value or Fraction(math.nextafter(low, math.inf)) > decimal
    assert high == value or Fraction(math.nextafter(high, 0.0)) < decimal


@given(st.floats(0, 1), st.floats(0, 1))
def test_bounds_as_they_are_written_are_bounds(first: float, second: float) -> None:
    bounds = Enclosure(min(first, second), max(first, second))
    written = bounds.as_written()
    for exact in (Fraction, lambda value: Fraction(repr(value))):
        assert exact(written.lower) <= Fraction(bounds.lower)
        assert exact(written.upper) >= Fraction(bounds.upper)
    assert bounds.lower - written.lower <= math.ulp(bounds.lower)
    assert written.upper - bounds.upper <= math.ulp(written.upper)


@pytest.mark.parametrize("tier", ["ball", "fast", "mixed", "reference"])
@pytest.mark.parametrize("eps", [*ABOVE[:3], *BELOW[:2]])
def test_every_prover_is_asked_about_the_smaller_reading(
    eps: float, tier: AuditTier, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Was: the double 0.1, which is above 1/10, where delta is smaller."""
    asked: list[float] = []

    def watched(kind: type, name: str, place: int) -> None:
        original: Callable[..., Any] = getattr(kind, name)

        def watch(*arguments: Any, **options: Any) -> Any:
            asked.append(arguments[place])
            return original(*arguments, **options)

        monkeypatch.setattr(kind, name, watch)

    watched(Notary, "enclose", 1)
    watched(Reference, "enclose", 1)
    watched(Protocol, "delta", 1)
    small = mechanism("2", "0.3")
    found = prove(small, Question(eps=eps, claim=0.5), tier=tier)
    least = min(Fraction(eps), Fraction(repr(eps)))
    assert asked
    assert all(Fraction(at) <= least for at in asked)
    assert found.eps == eps
    assert (eps in ABOVE) == all(at < eps for at in asked)


@pytest.mark.parametrize("delta", [1e-9, 1e-7, 3e-3, 0.1])
def test_the_delta_that_is_decided_about_is_the_smaller_reading(
    delta: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    claims: list[float] = []
    enclose = Notary.enclose

    def watch(*arguments: Any, **options: Any) -> Any:
        claims.append(options["claim"])
        return enclose(*arguments, **options)

    monkeypatch.setattr(Notary, "enclose", watch)
    prove(mechanism(), Question(eps=1.0, claim=delta), tier="ball")
    assert [Fraction(claim) <= Fraction(repr(delta)) for claim in claims] == [True]
    assert 0 <= delta - claims[0] <= math.ulp(delta)


weights = st.lists(st.integers(0, 1000), min_size=2, max_size=5)


@given(weights.filter(any), weights.filter(any), st.floats(0.01, 4), st.integers(1, 1 << 40))
def test_a_lower_bound_at_a_larger_eps(p: list[int], q: list[int], eps: float, steps: int) -> None:
    """Against the definition, at 50 digits; the correction is the smallest one of its form."""
    size = max(len(p), len(q))
    larger = min(eps + steps * math.ulp(eps), math.nextafter(eps + 1, 0))
    with mp.workdps(50):
        laws = [[mp.mpf(w) / sum(law) for w in (*law, *[0] * (size - len(law)))] for law in (p, q)]

        def delta(at: float) -> mp.mpf:
            scale = mp.exp(mp.mpf(at))
            return mp.fsum(max(a - scale * b, 0) for a, b in zip(*laws, strict=True))

        truth = delta(eps)
        known = float(truth)
        known = known if mp.mpf(known) <= truth else math.nextafter(known, 0.0)
        found = lower_at(larger, known, low=eps)
        assert 0 <= found <= delta(larger)
        growth = mp.expm1(mp.mpf(larger) - mp.mpf(eps))
        assert found >= known - growth * (1 + growth) * (1 - known) - mp.mpf(2) ** -1000 - (
            mp.mpf(math.ulp(known))
        )


def proof(lower: float, upper: float, eps: float) -> Proof:
    bounds = Enclosure(lower, upper)
    return Proof(eps, bounds, Change(0, 1), True, True, {"ball": 2}, 128, 0.0)


@pytest.mark.parametrize(("size", "proofs"), [(1e-6, 1), (1e-30, 2)])
@pytest.mark.parametrize("eps", [0.1, 0.3])
def test_a_very_small_lower_bound_is_proved_once_more(size: float, proofs: int, eps: float) -> None:
    asked: list[float] = []

    def at(point: float) -> Proof:
        asked.append(point)
        return proof(size * (1 - 1e-5 * len(asked)), size * (1 + 1e-5), point)

    found = proof_for_both(eps, at, gap=1e-4)
    assert asked == list(readings(eps))[:proofs]
    assert found.eps == eps
    assert found.enclosure.upper == size * (1 + 1e-5)
    assert size * (1 - 3e-5) < found.enclosure.lower < size
    assert at(1.0).enclosure.lower != found.enclosure.lower


def test_a_disclosed_input_is_disclosed_at_every_reading() -> None:
    found = proof_for_both(0.1, lambda eps: proof(1.0, 1.0, eps), gap=1e-4)
    assert found.enclosure == Enclosure(1.0, 1.0)


@pytest.mark.parametrize("eps", [0.3, 0.9])
def test_profiles_and_compositions_are_for_both_readings(
    eps: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[float] = []
    delta = Protocol.delta

    def watch(self: Protocol, at: float, **options: Any) -> Any:
        asked.append(at)
        return delta(self, at, **options)

    monkeypatch.setattr(Protocol, "delta", watch)
    shown = Profile(mechanism()).delta(eps)
    low, high = readings(eps)
    assert asked == [low, high]
    truth = [prove(mechanism(), Question(eps=at), tier="ball", gap=1e-6) for at in (low, high)]
    assert shown.enclosure.lower <= truth[1].enclosure.upper
    assert truth[0].enclosure.lower <= shown.enclosure.upper
    assert shown.enclosure.relative_gap < 0.02
    asked.clear()
    several = LossDistribution.of(mechanism(), 2).delta(eps)
    assert asked == [low]  # the upper bound by induction
    assert 0 < several.lower <= several.upper < 2 * several.lower


def test_the_eps_of_releases_holds_for_the_decimal_delta(monkeypatch: pytest.MonkeyPatch) -> None:
    month = LossDistribution.of(mechanism(), 3)
    asked: list[float] = []
    releases = type(month._all)
    epsilon = releases.epsilon

    def watch(self: Any, delta: float, **options: Any) -> Enclosure:
        asked.append(delta)
        return epsilon(self, delta, **options)

    monkeypatch.setattr(releases, "epsilon", watch)
    found = month.epsilon(1e-3)
    assert Fraction(asked[0]) <= Fraction(1, 1000)
    assert found.lower <= found.upper < 1.1 * found.lower
