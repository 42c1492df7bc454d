"""The noise of a fraction of the users: cases and profiles of the fast evaluators against the
coupled noises by enumeration (dropouts.md)."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import coupled
import mpmath as mp
import numpy as np
import pytest

from accounting import ExactCentral, ExactNoise, Mechanism, Question
from accounting.composition.dropouts import coupling_kernels
from accounting.composition.dropouts.central_offsets import ThinnedCentral, _Collected
from accounting.composition.dropouts.thinned_profiles import ThinnedPairs
from accounting.proof.thinned_proof import ThinnedBounds

Case = tuple[int, str, str, int]
"""max_value, the fraction of the users, the step of the central noise, and the dimension."""
CASES: list[Case] = [
    (1, "1/2", "0.8", 1),
    (2, "3/4", "0.8", 1),
    (2, "19/20", "0.8", 1),
    (1, "9/10", "0.8", 3),
    (1, "1/2", "6", 1),
]


def mechanism(top: int, share: str, step: str, dimension: int) -> Mechanism:
    laws = [
        ExactNoise(p=Fraction("0.45"), r=Fraction("4")),
        ExactNoise(p=Fraction("0.3"), r=Fraction("3")),
    ]
    atoms = dict(zip([coupled.UNIT, coupled.TWO][:top], ((law,) for law in laws), strict=False))
    central = ExactCentral(step=Fraction(step), fraction=Fraction(share))
    return Mechanism(top, atoms, central, dimension)


def pairs(case: Case, tail: float) -> ThinnedPairs:
    found = ThinnedBounds(mechanism(*case), Question(eps=1.0)).pairs
    return replace(found, central=replace(found.central, tail=tail))


@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize("eps", [0.1, 0.9, 3.0])
@pytest.mark.parametrize("tail", [1e-3, 1e-12])
def test_every_change_is_bounded_by_its_coupled_noises(case: Case, eps: float, tail: float) -> None:
    found = pairs(case, tail).profiles(eps, 1, gap=1e-5).at(eps)
    for change, upper in zip(mechanism(*case).changes("substitution"), found, strict=True):
        true = coupled.of_change(mechanism(*case), change, eps)
        assert true * (1 - 1e-9) <= upper <= true * (1 + 1e-3) + 2 * tail + 1e-9


@pytest.mark.parametrize("case", CASES[:2], ids=str)
def test_profiles_for_several_releases_are_above(case: Case) -> None:
    found = pairs(case, 1e-12).profiles(1.0, 2, gap=1e-5).as_profiles()
    changes = mechanism(*case).changes("substitution")
    rows = found.rows(np.arange(len(changes)))
    eps = (found.base + np.arange(found.size)) * found.step
    for change, row in zip(changes, rows, strict=True):
        for at in (-1.0, 0.1, 0.5, 1.0, 2.0):
            i = int(np.searchsorted(eps, at))
            true = coupled.of_change(mechanism(*case), change, float(eps[i]))
            assert true * (1 - 1e-9) <= row[i] <= true * (1 + 1e-2) + 1e-6


@pytest.mark.parametrize("share", [0.2, 0.9])
@pytest.mark.parametrize(
    ("distance", "tail"), [(1, 1e-2), (5, 1e-2), (8, 1e-2), (14, 1e-2), (2, 1e-9), (5, 1e-25)]
)
def test_cases_lose_no_mass(share: float, distance: int, tail: float) -> None:
    """What is left out is infinite; and doubles are rounded up, in all masses and offsets."""
    step = 0.7
    central = ThinnedCentral(share, step, tail)
    found = central.cases(distance)
    with mp.workdps(40):
        total = mp.fsum(map(mp.mpf, found.mass.tolist())) + mp.mpf(found.infinite)
        assert 1 <= total <= 1 + 10 * tail + mp.mpf(10) ** -9
        # the second law: every mass with its loss, rounded up, is no more than one in all
        second = mp.fsum(
            mp.mpf(m) * mp.exp(-mp.mpf(o))
            for m, o in zip(found.mass.tolist(), found.offset.tolist(), strict=True)
        )
        assert second <= 1
        ratios = offsets(share, step, distance, central.size)
        for offset in set(found.offset.tolist()):
            nearest = min(ratios, key=lambda ratio: abs(ratio - mp.mpf(offset)))
            assert nearest <= offset <= nearest + mp.mpf(10) ** -9


def offsets(share: float, step: float, distance: int, size: int) -> list[mp.mpf]:
    """log P[|D| = x, M < size] / P[|D| = x', M < size] of all cases, to 40 digits."""
    q, r = mp.exp(-mp.mpf(step)), mp.mpf(share)
    f = [mp.mpf(1)]
    for k in range(1, 2 * size):
        f.append(f[-1] * q * (k - 1 + r) / k)
    total = [mp.fsum(f[m] * f[m + x] for m in range(size)) for x in range(size)]
    ends = [(x, x + distance) for x in range(size - distance)]
    ends += [(b, a) for a, b in ends]
    ends += [(i, distance - i) for i in range(1, distance) if max(i, distance - i) < size]
    return [mp.log(total[a] / total[b]) for a, b in ends]


@pytest.mark.parametrize("step", [1 / 16, 1e-3])
def test_offsets_on_a_grid_keep_both_masses(step: float) -> None:
    found = ThinnedCentral(0.6, 0.7, 1e-9).cases(3)
    grid = found.on_grid(step)
    for shift in np.unique(found.shift).tolist():
        own, other = found.shift == shift, grid.shift == shift
        before, after = found.mass[own].sum(), grid.mass[other].sum()
        assert before <= after <= before * (1 + 1e-11)
        before = (found.mass * np.exp(-found.offset))[own].sum()
        after = (grid.mass * np.exp(-grid.cell * step))[other].sum()
        assert before * (1 - 1e-11) <= after <= before * (1 + 1e-11)
    assert grid.infinite == found.infinite


@pytest.mark.parametrize("distance", [1, 2, 4])
def test_cases_are_those_of_the_definition(distance: int) -> None:
    """The mass of every shift, and the second law's."""
    found = ThinnedCentral(0.6, 0.7, 1e-12).cases(distance)
    for shift in range(-3, distance + 4):
        own = found.shift == shift
        true = [
            (mass, mass * math.exp(-offset))
            for mass, offset, more, place in coupled.cases(0.6, 0.7, distance)
            if place + more == shift
        ]
        first, second = np.sum([(0.0, 0.0), *true], axis=0)
        assert abs(found.mass[own].sum() - first) <= 1e-9
        assert abs((found.mass * np.exp(-found.offset))[own].sum() - second) <= 1e-9


def test_couplings_account_for_all_mass() -> None:
    """What no difference within reach gets is missed; what is too rare is lost."""
    central = ThinnedCentral(0.3, 0.2, 1e-9)
    before, after = np.arange(6), np.arange(6)[::-1] * 3
    scratch = np.empty((2, central.size + 1))
    for reach, cut in ((1, 1e-9), (40, 0.1), (2, 0.05)):
        chance, missed = np.empty((6, 2 * reach + 1)), np.empty(6)
        coupling_kernels.quantile_couplings(
            central._masses, before, after, cut, scratch, chance, missed
        )
        assert abs(chance.sum(axis=1) + missed - 1).max() <= 1e-12
        for rare in (0.0, 1e-3, 0.05):
            found = _Collected(margin=0.0, rare=rare)
            mass = central._totals[before]
            found.add(before, mass, central._totals[after], chance, missed)
            cases = found.cases(1.0)
            assert abs(cases.mass.sum() + cases.infinite - mass.sum()) <= 1e-12
            assert cases.mass.min() > rare


def test_shifted_profiles_add_up() -> None:
    """Below its grid a profile is 1, and above it stays what it is."""
    profiles = np.array([[0.8, 0.5, 0.25], [0.9, 0.5, 0.125]])
    row, cell, weight = np.array([0, 1, 1]), np.array([0, 2, 6]), np.array([0.5, 0.25, 0.125])
    out = np.zeros(9)
    coupling_kernels.add_shifted_profiles(row, cell, weight, profiles, out)
    for i in range(9):
        values = [
            1.0 if i < c else profiles[r, min(i - c, 2)] for r, c in zip(row, cell, strict=True)
        ]
        assert out[i] == np.dot(weight, values)
