"""Atom families: the inverse is an inverse, and what is not a family is refused by name."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accounting import Family, InvalidFamily, InvalidParameter, greedy, halves, hubs, ones, radix


def matrix(family: Family) -> np.ndarray:
    """Rows: the values in use except +1; columns: the atoms."""
    rows = [value for value in family.values if value != 1]
    return np.array([[elements.count(value) for elements in family.atoms] for value in rows])


def check(family: Family) -> None:
    rows = [value for value in family.values if value != 1]
    a = matrix(family)
    for j in range(2, family.max_value + 1):
        unit = np.array([int(value == j) for value in rows])
        assert np.array_equal(a @ family.columns[j], unit)
    assert not family.columns[:2].any()
    if family.exact:
        assert a.shape[0] == a.shape[1]
        assert abs(round(np.linalg.det(a.astype(float)))) == 1 or len(rows) > 60


@settings(deadline=None)
@given(st.integers(1, 40), st.integers(2, 9))
def test_named_families_invert(max_value: int, size: int) -> None:
    check(halves(max_value))
    check(ones(max_value))
    check(radix(max_value, size))
    check(hubs(max_value, size))
    if size <= max_value:
        check(greedy(max_value, [size]))


def test_only_reached_values_are_in_use() -> None:
    assert min(halves(10).values) == -5
    assert ones(10).values == (1, -1, 2, 3, 4, 5, 6, 7, 8, 9, 10)
    assert ones(10).bits_per_message == 4
    assert ones(1).bits_per_message == 1
    assert len(hubs(200).values) <= 256


def test_a_pair_atom_is_triangular_when_the_negative_is_defined() -> None:
    check(Family(3, ((-1, 1), (-3, 1, 1, 1), (-3, 3), (-1, -1, 2))))


def test_any_order_of_definition_will_do() -> None:
    check(Family(3, ((-1, 1), (-5, 1, 1, 1, 1, 1), (-5, 1, 1, 3), (-5, 2, 3))))


def test_more_atoms_than_values() -> None:
    family = Family(2, ((-1, 1), (-1, -1, 2), (-2, 2), (-2, 1, 1)))
    assert not family.exact
    check(family)


@pytest.mark.parametrize(
    ("atoms", "message"),
    [
        ([(-1, 1), (2, -1)], r"\[2, -1\] is not zero-sum: its sum is 1"),
        ([(-1, 1)], r"value 2 is unprotected"),
        ([(2, -1, -1)], r"\[-1, 1\] is missing"),
        ([(-1, 1), (2, -2)], r"value 2 is unprotected|value -2 is unprotected"),
        ([(-1, 1), (2, 2, -4), (4, -2, -2)], r"value 2 is unprotected"),
        ([(-1, 1), (2, 2, -1, -1, -1, -1)], r"\[-1, -1, -1, -1, 2, 2\] contains it but is not tri"),
        ([(-1, 1), (2, -1, -1), (0,)], r"contains 0"),
        ([(-1, 1), ()], r"must not be empty"),
        ([(-1, 1), (2, -1, -1), (-1, 2, -1)], r"more than once"),
        ([(-1, 1), (2.0, -1, -1)], r"2.0 is not an integer"),
        ([(-1, 1), (3, -2, -1), (2, -1, -1)], r"value -2 is unprotected"),
    ],
)
def test_refusals_name_the_atom_or_the_value(atoms: list[tuple[int, ...]], message: str) -> None:
    with pytest.raises(InvalidFamily, match=message):
        Family(2, tuple(atoms))


@pytest.mark.parametrize("max_value", [0, -3, 1.5, float("nan"), True])
def test_bad_max_value(max_value: float) -> None:
    with pytest.raises(InvalidParameter, match="max_value"):
        Family(max_value, ((-1, 1),))  # type: ignore[arg-type]  # that is what is tested
