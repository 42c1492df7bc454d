"""How long tables will be is known before they are made."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from small_claims import small_mechanism

from accounting import ExactBurst, ExactCentral, ExactNoise, Mechanism, Reference, TooLarge
from accounting.model.mechanism import ExactLaw
from accounting.reference.noise_masses import least_lengths, noise_masses

CENTRAL = ExactCentral(step=Fraction(9, 20))


def mechanism(law: ExactLaw) -> Mechanism:
    return Mechanism(1, {(-1, 1): (law,)}, CENTRAL)


@pytest.mark.parametrize("tail", [1e-2, 1e-9, pytest.param(1e-40, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "law",
    [
        ExactNoise(r=Fraction(1, 10), p=Fraction(99, 100)),
        ExactNoise(r=Fraction(500), p=Fraction(1, 100)),
        ExactNoise(rate=Fraction(20), p=Fraction(9, 10)),
        ExactBurst(rate=Fraction(8), p=Fraction(7, 10), m=3),
        ExactBurst(rate=Fraction(1, 100), p=Fraction(1, 2), m=64),
        ExactBurst(rate=Fraction(40), p=Fraction(1, 10), m=1),
    ],
)
def test_no_table_is_shorter(law: ExactLaw, tail: float) -> None:
    tables = noise_masses(mechanism(law), tail, 53)
    least = least_lengths(mechanism(law), tail)
    assert [atom for atom, _ in least] == [table.atom for table in tables]
    for (_, length), table in zip(least, tables, strict=True):
        assert 1 <= length <= len(table.masses)
    if tail < 1e-2:
        assert 2 * least[-1][1] > len(tables[-1].masses)


@pytest.mark.parametrize(
    "law",
    [
        ExactNoise(r=Fraction(1), p=1 - Fraction(1, 10**400)),
        ExactNoise(r=Fraction(1, 10**400), p=Fraction(1, 2)),
        ExactNoise(r=Fraction(10**300), p=Fraction(1, 10**299)),
        ExactBurst(rate=Fraction(1, 10**400), p=Fraction(1, 10**400), m=1),
        ExactBurst(rate=Fraction(10**12), p=Fraction(1, 2), m=1),
    ],
)
def test_laws_beyond_doubles_are_no_trouble(law: ExactLaw) -> None:
    assert all(length >= 1 for _, length in least_lengths(mechanism(law), 1e-12))


def test_what_is_too_large_is_refused_before_a_table_is_made(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def made(*_: Any) -> Any:
        raise AssertionError("a table was made")

    monkeypatch.setattr("accounting.reference.reference.noise_masses", made)
    bursts = (ExactBurst(rate=Fraction(8), p=Fraction(95, 100), m=3),)
    with pytest.raises(TooLarge, match=r"bursts of atom \[-1, 1\].*--tier ball"):
        Reference(Mechanism(1, {(-1, 1): bursts}, CENTRAL)).enclose(1.0)
    with pytest.raises(TooLarge, match=r"more than 131,072 outcomes.*--tier ball"):
        Reference(small_mechanism([(12.0, 0.9999)], eps_central=0.9)).enclose(1.0)
    atoms = {
        tuple([-1] * m + [m]): (ExactNoise(r=Fraction(12), p=Fraction(97, 100)),)
        for m in range(1, 8)
    }
    with pytest.raises(TooLarge, match=r"8 messages take about 10.*--tier ball"):
        Reference(Mechanism(7, atoms, CENTRAL)).enclose(1.0)
