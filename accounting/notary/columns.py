"""The integer columns of a family, by peeling, and the values that no noise protects.

An atom in which exactly one value is still undefined, and occurs once, defines that value.  This is
elimination in any order in which every pivot is 1, so every triangular family is accepted, whatever
the magnitudes of its values.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable
from dataclasses import dataclass

from flint import fmpz_mat

from accounting.base.deadline import check_time
from accounting.base.errors import TooLarge, Undecided
from accounting.model.mechanism import Atom
from accounting.notary.processes import in_a_process

UNIT: Atom = (-1, 1)
_MOST_VALUES = 2000
"""Most values of a family whose kernel is computed: the matrix is dense."""
_QUICK_VALUES = 200
"""Number of values up to which the kernel takes no noticeable time."""
_MOST_ENTRIES = 1 << 23
"""Most non-zero entries of all columns together."""
Column = dict[Atom, int]


@dataclass(frozen=True)
class Columns:
    """c_0..c_max_value; ``exact`` if there are as many atoms as values in use other than +1."""

    of_input: tuple[Column, ...]
    exact: bool


def columns(max_value: int, atoms: Iterable[Atom]) -> Columns:
    """Solve A c_v = 1_v (row +1 left out) for the inputs, over the integers."""
    family = list(dict.fromkeys(atoms))
    found: dict[int, Column] = {}
    entries = 0
    users: dict[int, list[Atom]] = {}
    for atom in family:
        for value in set(atom):
            users.setdefault(value, []).append(atom)
    open_values = {atom: set(atom) - {1} for atom in family}
    ready = deque(sorted((atom for atom in family if len(open_values[atom]) == 1), key=len))
    while ready:
        check_time()
        atom = ready.popleft()
        if not open_values[atom]:
            continue
        (value,) = open_values[atom]
        if atom.count(value) != 1:
            continue
        column = {atom: 1}
        for other, times in Counter(atom).items():
            if other not in (1, value):
                check_time()
                for key, entry in found[other].items():
                    column[key] = column.get(key, 0) - times * entry
        found[value] = {key: entry for key, entry in column.items() if entry}
        entries += len(found[value])
        if entries > _MOST_ENTRIES:
            raise TooLarge(
                f"the columns of {len(found):,} values have more than {_MOST_ENTRIES:,} entries "
                "that are not 0: take atoms that refer to fewer others"
            )
        for other_atom in users[value]:
            open_values[other_atom].discard(value)
            if len(open_values[other_atom]) == 1:
                ready.append(other_atom)
    for value in range(2, max_value + 1):  # stops early if max_value is absurdly large
        if value not in found:
            raise _undefined(value)
    used = {-1, *range(2, max_value + 1), *users} - {1}
    if missing := used - found.keys():
        raise _undefined(min(missing, key=abs))
    inputs = ({}, {}, *(found[value] for value in range(2, max_value + 1)))
    return Columns(inputs[: max_value + 1], exact=len(family) == len(used))


def _undefined(value: int) -> Undecided:
    return Undecided(
        f"value {value} has no atom of its own: none contains it once and otherwise only +1 and "
        f"values that have one; add {value} with {abs(value)} x {-1 if value > 0 else 1}"
    )


def revealed_value(max_value: int, atoms: Iterable[Atom]) -> int | None:
    """An input that some linear statistic reveals because no noise affects it.

    Such a statistic g vanishes on every atom and on +1 and -1 (the central noise) and not on the
    input: the views with and without it have disjoint supports, so delta = 1 for (value, 0).
    """
    family = list(dict.fromkeys(atoms))
    seen = {value for atom in family for value in atom}
    for value in range(2, max_value + 1):
        if value not in seen:
            return value
    values = sorted(seen - {1, -1})
    if len(values) > _MOST_VALUES:
        raise Undecided(f"{len(values):,} values that cannot be separated one by one are too many")
    row = {value: i for i, value in enumerate(values)}
    matrix = fmpz_mat(len(family), len(values))
    for i, atom in enumerate(family):
        for value in atom:
            if value in row:
                matrix[i, row[value]] += 1

    def revealed() -> int | None:
        kernel, dimension = matrix.nullspace()
        for value in range(2, max_value + 1):
            if any(kernel[row[value], k] != 0 for k in range(dimension)):
                return value
        return None

    return revealed() if len(values) < _QUICK_VALUES else in_a_process(revealed)
