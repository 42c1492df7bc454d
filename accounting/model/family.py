"""Atom families and the change of basis (evaluator/exact_view.md, section 1).

An atom is a zero-sum multiset of non-zero message values.  A family is *triangular* when it holds
the atom {-1, +1} and the other values in use can be put in an order such that each value m has
exactly one atom s_m that contains m once and otherwise only +1, -1 and earlier values.  Its matrix
is then unimodular, and the columns of the inverse are the integer vectors

    c_0 = c_1 = 0,   c_{-1} = 1_{-1,+1},   c_m = 1_{s_m} - sum of c_v over the other elements v,

where 1_s is the unit vector of the atom s.
"""

from __future__ import annotations

import heapq
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from accounting.base.arrays import IntArray
from accounting.base.deadline import check_time
from accounting.base.errors import InvalidFamily, InvalidParameter, TooLarge
from accounting.base.validation import shown, whole
from accounting.model.costs import bits_per_message

Atom = tuple[int, ...]
UNIT: Atom = (-1, 1)
_LARGEST_VALUE = 100_000
"""Largest max_value of a family that is built here."""
LARGEST_ELEMENT = (1 << 31) - 1
"""Largest absolute value of an element of an atom, and of an entry of a column."""
_MOST_ENTRIES = 1 << 23
"""Most non-zero entries of all columns together."""


def atom(elements: Iterable[int]) -> Atom:
    """Return the sorted form of a multiset; refuse one that is not a zero-sum atom."""
    values = tuple(elements)
    for value in values:
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
            raise InvalidFamily(f"atom {shown(list(values))}: {shown(value)} is not an integer")
        if abs(value) > LARGEST_ELEMENT:
            raise InvalidFamily(f"an atom has an element beyond {LARGEST_ELEMENT:,}")
        if value == 0:
            raise InvalidFamily(f"atom {shown(list(values))} contains 0, which is never sent")
    if not values:
        raise InvalidFamily("an atom must not be empty")
    if sum(values) != 0:
        raise InvalidFamily(f"atom {list(values)} is not zero-sum: its sum is {sum(values)}")
    return tuple(sorted(int(value) for value in values))


@dataclass(frozen=True)
class Family:
    """A set of atoms that protects the inputs 0..max_value.

    Args:
        max_value: Inputs are the integers 0..max_value.
        atoms: Zero-sum multisets of non-zero integers, each of them once.

    Raises:
        InvalidFamily: If the atoms are not triangular or leave a value unprotected.
        InvalidParameter: If max_value is not a positive integer.

    >>> family = Family(2, ((-1, 1), (-1, -1, 2)))
    >>> family
    <Family max_value=2 atoms=2 message_values=3>
    >>> family.columns.tolist()
    [[0, 0], [0, 0], [-2, 1]]
    """

    max_value: int
    atoms: tuple[Atom, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "max_value", whole("max_value", self.max_value, least=1))
        object.__setattr__(self, "atoms", tuple(atom(elements) for elements in self.atoms))
        repeated = [elements for elements, count in Counter(self.atoms).items() if count > 1]
        if repeated:
            raise InvalidFamily(f"atom {list(repeated[0])} is in the family more than once")
        if UNIT not in self.atoms:
            raise InvalidFamily("the atom [-1, 1] is missing: it protects the central noise")
        _ = self.basis

    def __repr__(self) -> str:
        return (
            f"<Family max_value={self.max_value} atoms={len(self.atoms)} "
            f"message_values={len(self.values)}>"
        )

    @property
    def exact(self) -> bool:
        """Whether there are exactly as many atoms as values in use other than +1.

        If there are more, the columns are those of one triangular subfamily (an integer right
        inverse with zero rows for the other atoms), and only upper bounds can be computed from
        them.
        """
        return len(self.basis) == len(self.atoms)

    @cached_property
    def values(self) -> tuple[int, ...]:
        """The message values in use, by magnitude: the alphabet."""
        used = {1, -1, *range(2, self.max_value + 1)}
        used.update(value for elements in self.atoms for value in elements)
        return tuple(sorted(used, key=lambda value: (abs(value), value < 0)))

    @property
    def bits_per_message(self) -> int:
        return bits_per_message(len(self.values))

    @cached_property
    def basis(self) -> Mapping[int, int]:
        """The index of the atom that defines a value, for every value in use except +1.

        The values are in an order of definition: an atom in which one value is still undefined, and
        occurs once, can define it.  The atom with the smallest column goes first, so that a value
        with several candidates gets the best.
        """
        size = {1: 0}
        basis: dict[int, int] = {}
        users: dict[int, list[int]] = {}
        for index, elements in enumerate(self.atoms):
            for value in set(elements):
                users.setdefault(value, []).append(index)
        undefined = [set(elements) - {1} for elements in self.atoms]
        ready: list[tuple[int, int]] = []

        def consider(index: int) -> None:
            if len(undefined[index]) == 1:
                (value,) = undefined[index]
                elements = self.atoms[index]
                if elements.count(value) == 1:
                    rest = sum(size[other] for other in elements if other != value)
                    heapq.heappush(ready, (1 + rest, index))

        for index in range(len(self.atoms)):
            consider(index)
        while ready:
            cost, index = heapq.heappop(ready)
            if not undefined[index]:
                continue
            (value,) = undefined[index]
            basis[value], size[value] = index, cost
            for other in users[value]:
                undefined[other].discard(value)
                consider(other)
        for value in range(2, self.max_value + 1):  # stops early if max_value is absurdly large
            if value not in size:
                raise InvalidFamily(self._unprotected(value))
        for value in self.values:
            if value not in size:
                raise InvalidFamily(self._unprotected(value))
        return basis

    def _unprotected(self, value: int) -> str:
        rule = "contains it once and otherwise only values that have an atom of their own"
        message = f"value {value} is unprotected: no atom {rule}"
        for elements in self.atoms:
            if value in elements and max(map(abs, elements)) == abs(value):
                return f"{message}; atom {list(elements)} contains it but is not triangular"
        example = f"{[value] + [-_sign(value)] * abs(value)}" if abs(value) < 10 else "its ones"
        return f"{message}; add one such as {example}"

    @cached_property
    def sparse_columns(self) -> tuple[dict[int, int], ...]:
        """The columns c_0..c_max_value as {atom index: entry}, without zero entries."""
        column: dict[int, dict[int, int]] = {0: {}, 1: {}}
        size = 0
        for value, index in self.basis.items():
            check_time()
            entries = {index: 1}
            for other, times in Counter(_rest(self.atoms[index], value)).items():
                for key, entry in column[other].items():
                    entries[key] = entries.get(key, 0) - times * entry
            column[value] = {key: entry for key, entry in entries.items() if entry}
            size += len(column[value])
            if size > _MOST_ENTRIES:
                raise TooLarge(
                    f"the columns of the family have more than {_MOST_ENTRIES:,} entries that are "
                    "not 0: take atoms that refer to fewer others"
                )
            if max(map(abs, column[value].values())) > LARGEST_ELEMENT:
                raise TooLarge(f"the column of {value} has entries beyond {LARGEST_ELEMENT:,}")
        return tuple(column[value] for value in range(self.max_value + 1))

    @cached_property
    def columns(self) -> IntArray:
        """The columns c_0..c_max_value as rows of an integer array with one entry per atom."""
        dense = np.zeros((self.max_value + 1, len(self.atoms)), np.int64)
        for j, column in enumerate(self.sparse_columns):
            for index, entry in column.items():
                dense[j, index] = entry
        return dense


def right_inverse(family: Family) -> IntArray:
    """Return the integer matrix C whose columns say how an input shifts the noise of every atom.

    Let A be the matrix with a row for every message value in use but +1, a column for every atom,
    and the number of times that the atom contains the value as entry.  Then A C is the matrix whose
    column m is the unit vector of the value m, and 0 for m = 0 and m = 1: one more message m looks
    like as many more copies of every atom as column m says, up to messages +1.

    Args:
        family: The atoms.

    Returns:
        A matrix with a row for every atom, in the family's order, and a column for every input
        0..max_value.

    >>> right_inverse(Family(2, ((-1, 1), (-1, -1, 2)))).tolist()
    [[0, 0, -2], [0, 0, 1]]
    """
    return np.ascontiguousarray(family.columns.T)


def _rest(elements: Atom, leader: int) -> list[int]:
    rest = list(elements)
    rest.remove(leader)
    return rest


def _closed(max_value: int, build: Callable[[int], Iterable[int]]) -> Family:
    """Build the family of {-1, +1} and ``build(m)`` for 2..max_value and every value that these
    atoms contain."""
    max_value = whole("max_value", max_value, least=1)
    if max_value > _LARGEST_VALUE:
        raise TooLarge(f"max_value = {max_value}: families are built up to {_LARGEST_VALUE}")
    atoms: dict[int, Atom] = {-1: UNIT}
    waiting = list(range(2, max_value + 1))
    while waiting:
        value = waiting.pop()
        if value in atoms or value == 1:
            continue
        elements = atom(build(value))
        atoms[value] = elements
        waiting.extend(other for other in elements if abs(other) > 1)
    order = sorted(atoms, key=lambda value: (abs(value), value < 0))
    return Family(max_value, tuple(atoms[value] for value in order))


def _sign(value: int) -> int:
    return 1 if value > 0 else -1


def halves(max_value: int) -> Family:
    """Return the paper's family {m, -ceil(m/2), -floor(m/2)}, for the values that are needed.

    Args:
        max_value: Inputs are the integers 0..max_value.

    Returns:
        The family.

    Raises:
        InvalidParameter: If max_value is not a positive integer.
        TooLarge: If max_value is above 100,000.

    >>> halves(4).atoms
    ((-1, 1), (-1, -1, 2), (-2, 1, 1), (-2, -1, 3), (-2, -2, 4))
    """
    return _closed(max_value, lambda m: (m, -(m // 2), -(m - m // 2)))


def ones(max_value: int) -> Family:
    """Return the family {m, -1 x m}: a value and that number of -1.

    Args:
        max_value: Inputs are the integers 0..max_value.

    Returns:
        The family.

    Raises:
        InvalidParameter: If max_value is not a positive integer.
        TooLarge: If max_value is above 100,000.

    >>> ones(3).atoms
    ((-1, 1), (-1, -1, 2), (-1, -1, -1, 3))
    """
    return _closed(max_value, lambda m: (m, *[-_sign(m)] * abs(m)))


def radix(max_value: int, base: int) -> Family:
    """Return the family {m, -(m // base) x base, -1 x (m mod base)}; values below the base use
    ones.

    Args:
        max_value: Inputs are the integers 0..max_value.
        base: The base, at least 2.

    Returns:
        The family.

    Raises:
        InvalidParameter: If max_value or base is not an integer in its range.
        TooLarge: If max_value is above 100,000.

    >>> radix(5, 2).atoms[-1]
    (-2, -2, -1, 5)
    """
    base = whole("base", base, least=2)

    def build(m: int) -> Iterable[int]:
        quotient, remainder = divmod(abs(m), base)
        sign = _sign(m)
        if quotient == 0:
            return (m, *[-sign] * abs(m))
        return (m, *[-sign * quotient] * base, *[-sign] * remainder)

    return _closed(max_value, build)


def hubs(max_value: int, spacing: int | None = None) -> Family:
    """Return a family with hubs at multiples of a spacing a.

    The atom of m = a k + b is {m, -a k, -b}, that of the hub -a k is {-a k, a x k}, and values up
    to a use ones.

    Args:
        max_value: Inputs are the integers 0..max_value.
        spacing: The spacing a, at least 2; by default the rounded square root of max_value.

    Returns:
        The family.

    Raises:
        InvalidParameter: If max_value or spacing is not an integer in its range.
        TooLarge: If max_value is above 100,000.

    >>> hubs(9).atoms[-3:]
    ((-6, -2, 8), (-9, 9), (-9, 3, 3, 3))
    """
    top = whole("max_value", max_value, least=1)
    a = whole("spacing", spacing if spacing is not None else max(2, round(math.sqrt(top))), least=2)

    def build(m: int) -> Iterable[int]:
        if m < 0 and -m > a and -m % a == 0:
            return (m, *[a] * (-m // a))
        if abs(m) <= a:
            return (m, *[-_sign(m)] * abs(m))
        b = m % a
        return (m, -(m - b), -b) if b else (m, -m)

    return _closed(max_value, build)


def greedy(max_value: int, sizes: Iterable[int]) -> Family:
    """Return a family with hubs at given sizes: m takes the largest hubs first, and the rest in
    ones.

    The atom of the hub -h is {-h, 1 x h}.

    Args:
        max_value: Inputs are the integers 0..max_value.
        sizes: The sizes of the hubs, each between 2 and max_value.

    Returns:
        The family.

    Raises:
        InvalidParameter: If max_value or a size is not an integer in its range.
        TooLarge: If max_value is above 100,000.

    >>> greedy(4, [3]).atoms
    ((-1, 1), (-1, -1, 2), (-3, 3), (-3, 1, 1, 1), (-3, -1, 4))
    """
    hubs_down = sorted({whole("hub", size, least=2) for size in sizes}, reverse=True)
    if hubs_down and hubs_down[0] > max_value:
        raise InvalidParameter(f"hub {hubs_down[0]} is larger than max_value = {max_value}")

    def build(m: int) -> Iterable[int]:
        if m < 0:
            return (m, *[1] * -m)
        rest, parts = m, []
        for size in hubs_down:
            parts += [-size] * (rest // size)
            rest %= size
        return (m, *parts, *[-1] * rest)

    return _closed(max_value, build)
