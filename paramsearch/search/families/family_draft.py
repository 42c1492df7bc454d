"""An atom family under construction: the parts of each value's atom, with implicit ones.

The atom of a value v consists of v, its parts, and as many +1 or -1 as make the sum zero.  Without
the ones, a draft is an acyclic graph over the values, and a move changes the parts of one value.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from accounting.base.errors import required
from accounting.model.family import UNIT, Family

Parts = tuple[int, ...]
"""Elements of an atom other than the value it defines and the ones, in ascending order."""
Column = dict[int, int]
"""Nonzero entries of a column, by the value that the atom defines; -1 stands for {-1, +1}."""
DraftKey = tuple[tuple[int, Parts], ...]


@dataclass(frozen=True)
class FamilyDraft:
    """A family under construction: ``parts[v]`` for every value v in use except +1 and -1, each
    after the values that it uses."""

    max_value: int
    parts: Mapping[int, Parts]

    @staticmethod
    def of(max_value: int, parts: Mapping[int, Iterable[int]]) -> FamilyDraft | None:
        """Build the draft of the values that 2..max_value use; None if there is a cycle."""
        order: dict[int, Parts] = {}
        begun: set[int] = set()
        for top in range(2, max_value + 1):
            path = [top]
            while path:
                value = path[-1]
                if value in order:
                    path.pop()
                    continue
                own = tuple(sorted(parts[value]))
                missing = [other for other in own if other not in order]
                if not missing:
                    order[value] = own
                elif value in begun or value in missing:
                    return None
                begun.add(value)
                path += missing
        return FamilyDraft(max_value, order)

    @staticmethod
    def from_family(family: Family) -> FamilyDraft:
        """Return the draft whose ``family`` has the same atoms."""
        parts = {}
        for value, index in family.basis.items():
            rest = list(family.atoms[index])
            rest.remove(value)
            parts[value] = tuple(other for other in rest if abs(other) > 1)
        del parts[-1]
        return required(FamilyDraft.of(family.max_value, parts), "the draft of a family")

    def ones(self, value: int) -> int:
        """Return the number of +1 in the atom, or minus the number of -1."""
        return -(value + sum(self.parts[value]))

    def size(self, value: int) -> int:
        """Return the number of elements of the atom."""
        return 1 + len(self.parts[value]) + abs(self.ones(value))

    def changed(self, parts: Mapping[int, Iterable[int]]) -> FamilyDraft | None:
        """Return the draft with other parts for some values; None if that makes a cycle."""
        return FamilyDraft.of(self.max_value, {**self.parts, **parts})

    @cached_property
    def family(self) -> Family:
        atoms = [UNIT]
        for value in sorted(self.parts, key=lambda v: (abs(v), v < 0)):
            ones = self.ones(value)
            fill = (1,) * ones if ones > 0 else (-1,) * -ones
            atoms.append(tuple(sorted((value, *self.parts[value], *fill))))
        return Family(self.max_value, tuple(atoms))

    @cached_property
    def columns(self) -> Mapping[int, Column]:
        """The column c_v of every value in use, and of 0 and 1."""
        return self._solved({value: {-1: min(0, self.ones(value))} for value in self.parts})

    @cached_property
    def influence(self) -> Mapping[int, Column]:
        """influence[v][u]: the multiple of a change of u's atom that enters the column of v."""
        return self._solved({value: {} for value in self.parts})

    def _solved(self, own: Mapping[int, Column]) -> Mapping[int, Column]:
        """Solve for every value: 1 for its own atom, plus ``own``, minus the columns of its
        parts."""
        column: dict[int, Column] = {0: {}, 1: {}}
        for value, parts in self.parts.items():
            entries = Counter({value: 1, **own[value]})
            for other in parts:
                entries.subtract(column[other])
            column[value] = {key: entry for key, entry in entries.items() if entry}
        return column

    @cached_property
    def dependents(self) -> Mapping[int, frozenset[int]]:
        """The values that use each value, directly or not, and itself: parts from among them would
        make a cycle."""
        found = {value: {value} for value in self.parts}
        for value in reversed(list(self.parts)):
            for other in self.parts[value]:
                found[other] |= found[value]
        return {value: frozenset(reached) for value, reached in found.items()}

    @property
    def hubs(self) -> int:
        """Number of negative values in use besides -1."""
        return sum(value < 0 for value in self.parts)

    @property
    def symbols(self) -> int:
        """Number of values that a message can have: +-1, 2..max_value and the hubs."""
        return self.max_value + 1 + self.hubs

    @property
    def key(self) -> DraftKey:
        """The parts in a canonical order, to recognize equal drafts."""
        return tuple(sorted(self.parts.items()))
