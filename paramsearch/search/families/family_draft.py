"""A family in the making: for each value the parts of its atom, ones left implicit.

The atom of a value v is {v} with its parts and as many +1 or -1 as make the sum zero.  Leaving the
ones out, a draft is a graph without cycles over the values, and a move changes the parts of one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from accounting.model.family import UNIT, Family

Parts = tuple[int, ...]
Column = dict[int, int]
"""Entries of a column by the value that the atom defines; -1 stands for {-1, +1}."""


@dataclass(frozen=True)
class Draft:
    """``parts[v]`` for every value in use besides +1 and -1, in an order of definition."""

    max_value: int
    parts: Mapping[int, Parts]

    @staticmethod
    def of(max_value: int, parts: Mapping[int, Iterable[int]]) -> Draft | None:
        """The values that 2..max_value reach, in order; None if they define each other."""
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
        return Draft(max_value, order)

    @staticmethod
    def from_family(family: Family) -> Draft:
        parts = {}
        for value, index in family.basis.items():
            rest = list(family.atoms[index])
            rest.remove(value)
            parts[value] = tuple(other for other in rest if abs(other) > 1)
        del parts[-1]
        draft = Draft.of(family.max_value, parts)
        assert draft is not None
        return draft

    def ones(self, value: int) -> int:
        """How many +1, or minus how many -1, the atom has."""
        return -(value + sum(self.parts[value]))

    def size(self, value: int) -> int:
        return 1 + len(self.parts[value]) + abs(self.ones(value))

    def changed(self, parts: Mapping[int, Iterable[int]]) -> Draft | None:
        return Draft.of(self.max_value, {**self.parts, **parts})

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
        """c_v of every value in use, and of 0 and 1."""
        column: dict[int, Column] = {0: {}, 1: {}}
        for value, parts in self.parts.items():
            entries = Counter({value: 1, -1: min(0, self.ones(value))})
            for other in parts:
                entries.subtract(column[other])
            column[value] = {key: entry for key, entry in entries.items() if entry}
        return column

    @cached_property
    def influence(self) -> Mapping[int, Column]:
        """influence[v][u]: how often the own change of u enters the column of v."""
        found: dict[int, Column] = {0: {}, 1: {}}
        for value, parts in self.parts.items():
            entries = Counter({value: 1})
            for other in parts:
                entries.subtract(found[other])
            found[value] = {key: entry for key, entry in entries.items() if entry}
        return found

    @cached_property
    def dependents(self) -> Mapping[int, frozenset[int]]:
        """Per value, those whose atoms reach it, itself included: it must not use them."""
        found = {value: {value} for value in self.parts}
        for value in reversed(list(self.parts)):
            for other in self.parts[value]:
                found[other] |= found[value]
        return {value: frozenset(reached) for value, reached in found.items()}

    @property
    def key(self) -> tuple[tuple[int, Parts], ...]:
        return tuple(sorted(self.parts.items()))
