"""Atom families and the change of basis (exact_view.md, section 1).

An atom is a zero-sum multiset of non-zero message values.  A family is *triangular* when it holds
the atom {-1, +1} and the other values in use can be put in an order such that each value m has
exactly one atom s_m that contains m once and otherwise only +1, -1 and earlier values.  Its matrix
is then unimodular, and the columns of the inverse are the integer vectors

    c_0 = c_1 = 0,   c_{-1} = e_{-1,+1},   c_m = e_{s_m} - sum of c_v over the other elements v.
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
from accounting.base.validation import whole
from accounting.model.costs import bits_per_message

Atom = tuple[int, ...]
UNIT: Atom = (-1, 1)
_LARGEST_VALUE = 100_000
LARGEST_ELEMENT = (1 << 31) - 1
_MOST_ENTRIES = 1 << 23
"""Of all columns together."""


def atom(elements: Iterable[int]) -> Atom:
    """The canonical form of a multiset: sorted.  Refuses what is not a zero-sum atom."""
    values = tuple(elements)
    for value in values:
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
            raise InvalidFamily(f"atom {list(values)}: {value!r} is not an integer")
        if abs(value) > LARGEST_ELEMENT:
            raise InvalidFamily(f"an atom has an element beyond {LARGEST_ELEMENT:,}")
        if value == 0:
            raise InvalidFamily(f"atom {list(values)} contains 0, which is never sent")
    if not values:
        raise InvalidFamily("an atom must not be empty")
    if sum(values) != 0:
        raise InvalidFamily(f"atom {list(values)} is not zero-sum: its sum is {sum(values)}")
    return tuple(sorted(int(value) for value in values))


@dataclass(frozen=True)
class Family:
    """A set of atoms that protects the inputs 0..max_value.

    ``exact`` is False when there are more atoms than values: then the columns are those of one
    triangular subfamily (an integer right inverse with zero rows for the other atoms), and what is
    computed from them is an upper bound only.
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

    @property
    def exact(self) -> bool:
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
        """For every value in use except +1 the index of its atom, in an order of definition.

        An atom in which one value is still undefined, and occurs once, can define it.  The one with
        the smallest column goes first, so that a value with several candidates gets the best.
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
        for value in range(2, self.max_value + 1):  # ends early where max_value is absurd
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
        """Columns c_0..c_max_value as {atom index: entry}, zero entries left out."""
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
        """The columns c_0..c_max_value as rows of an integer array, one entry per atom."""
        dense = np.zeros((self.max_value + 1, len(self.atoms)), np.int64)
        for j, column in enumerate(self.sparse_columns):
            for index, entry in column.items():
                dense[j, index] = entry
        return dense


def _rest(elements: Atom, leader: int) -> list[int]:
    rest = list(elements)
    rest.remove(leader)
    return rest


def _closed(max_value: int, build: Callable[[int], Iterable[int]]) -> Family:
    """The family {-1, +1} and ``build(m)`` for 2..max_value and every value those reach."""
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
    """The paper's family {m, -ceil(m/2), -floor(m/2)}, without the values that nothing reaches."""
    return _closed(max_value, lambda m: (m, -(m // 2), -(m - m // 2)))


def ones(max_value: int) -> Family:
    """{m, -1 x m}."""
    return _closed(max_value, lambda m: (m, *[-_sign(m)] * abs(m)))


def radix(max_value: int, base: int) -> Family:
    """{m, -(m // base) x base, -1 x (m mod base)}; small values by ones."""
    base = whole("base", base, least=2)

    def build(m: int) -> Iterable[int]:
        quotient, remainder = divmod(abs(m), base)
        sign = _sign(m)
        if quotient == 0:
            return (m, *[-sign] * abs(m))
        return (m, *[-sign * quotient] * base, *[-sign] * remainder)

    return _closed(max_value, build)


def hubs(max_value: int, spacing: int | None = None) -> Family:
    """m = a k + b is {m, -a k, -b}; the hub -a k is {-a k, a x k}; small values by ones.

    ``spacing`` is a, by default the rounded square root of max_value.
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
    """Hubs at the given sizes, used greedily: m takes the largest hubs first, the rest in ones.

    The hub -h is {-h, 1 x h}.
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
