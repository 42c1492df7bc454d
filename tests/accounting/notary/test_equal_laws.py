"""Atoms with equal laws share what the notary computes of them, and nothing else changes."""

from __future__ import annotations

from fractions import Fraction

import pytest

from accounting import Configuration, NegativeBinomial, Protocol
from accounting.model.change import Change
from accounting.model.family import UNIT, greedy
from accounting.model.mechanism import Atom, ExactCentral, ExactNoise, Mechanism
from accounting.notary.notary import Notary

TOP, HUBS = 6, [3]
LOUD, QUIET = (12.0, 0.96875), (8.0, 0.9375)


def tied() -> Mechanism:
    """All atoms have one of two laws, and {-1, +1} has the law of other atoms, too."""
    laws = [ExactNoise(p=Fraction(p), r=Fraction(r)) for r, p in (LOUD, QUIET)]
    atoms = {atom: (laws[i % 2],) for i, atom in enumerate(greedy(TOP, HUBS).atoms)}
    return Mechanism(TOP, atoms, ExactCentral(step=Fraction(3, 20)))


def test_one_table_for_each_law() -> None:
    notary = Notary(tied())
    names = set(notary.laws.values())
    assert len(names) == 2
    assert UNIT not in notary.laws  # W is its noise and more
    assert set(notary.tables()) == {UNIT, *names}
    for atom, name in notary.laws.items():
        assert notary.mechanism.atoms[atom] == notary.mechanism.atoms[name]


def test_a_product_may_have_a_factor_several_times() -> None:
    listed = [c.shifts for one in Notary(tied()).shifted_changes() for c in one.shifts]
    assert any(len(set(shifts)) < len(shifts) for shifts in listed)


@pytest.mark.parametrize("releases", [1, 2])
def test_the_bounds_are_those_of_separate_laws(
    releases: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    changes = [Change(0, TOP), Change(5, 0), Change(4, 2)]
    shared = Notary(tied(), releases, same_change=True).enclose(1.0, changes=changes)

    def separate(notary: Notary) -> dict[Atom, Atom]:
        return {atom: atom for atom in notary.mechanism.atoms if atom != UNIT}

    monkeypatch.setattr(Notary, "laws", property(separate))
    alone = Notary(tied(), releases, same_change=True).enclose(1.0, changes=changes)
    assert shared.enclosure.lower == pytest.approx(alone.enclosure.lower, rel=1e-12)
    assert shared.enclosure.upper == pytest.approx(alone.enclosure.upper, rel=1e-12)
    assert shared.worst_change == alone.worst_change


def test_the_evaluator_agrees() -> None:
    atoms = [
        (atom, NegativeBinomial(*(LOUD, QUIET)[i % 2]))
        for i, atom in enumerate(greedy(TOP, HUBS).atoms)
    ]
    protocol = Protocol(Configuration.of(TOP, atoms, eps_central=0.15 * TOP))
    found = protocol.delta(1.0, gap=1e-4).enclosure
    proved = Notary(tied()).enclose(1.0, gap=1e-4).enclosure
    # 0.9 / 6 and 3 / 20 differ in the last digits of a double, hence the margin
    assert proved.lower <= found.upper * (1 + 1e-9)
    assert found.lower <= proved.upper * (1 + 1e-9)
    assert max(found.relative_gap, proved.relative_gap) <= 1e-4
