"""A draft as arrays: the columns of all its values, for kernels."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from accounting.base.arrays import FloatArray, IntArray
from paramsearch.search.dominance.program import InputColumns
from paramsearch.search.families.family_draft import FamilyDraft

_ENTRIES_PER_VALUE = 16
"""Room for entries in the first attempt."""


@dataclass(frozen=True)
class DraftArrays:
    """The values of ``draft`` in its order, each after its parts, as arrays: value i has the atom i
    + 1, and the atom {-1, +1} is number 0.

    Value i has the parts ``part[part_start[i]:part_start[i + 1]]`` and its column the entries
    ``entry[j]`` at ``atom[j]`` for start[i] <= j < start[i + 1], and ``unit[i]`` at {-1, +1}.
    """

    draft: FamilyDraft
    number: IntArray
    part_start: IntArray
    part: IntArray
    size: FloatArray
    start: IntArray
    atom: IntArray
    entry: FloatArray
    unit: FloatArray

    @staticmethod
    def of(draft: FamilyDraft) -> DraftArrays:
        place = {value: i for i, value in enumerate(draft.parts)}
        number = np.array(list(place), np.int64)
        counts = np.array([len(parts) for parts in draft.parts.values()], np.int64)
        part_start = np.concatenate([[0], np.cumsum(counts)])
        flat = [place[other] for parts in draft.parts.values() for other in parts]
        part = np.array(flat, np.int64)
        totals = [sum(parts) for parts in draft.parts.values()]
        ones = -(number + np.array(totals, np.int64))
        sizes = np.concatenate([[2.0], 1.0 + counts + np.abs(ones)])
        columns = _columns(part_start, part, ones)
        return DraftArrays(draft, number, part_start, part, sizes, *columns)

    @cached_property
    def place(self) -> dict[int, int]:
        """The index of each value."""
        return {value: i for i, value in enumerate(self.number.tolist())}

    @cached_property
    def place_of_input(self) -> IntArray:
        """The index of each input; -1 for 0 and 1, whose columns are empty."""
        top = self.draft.max_value
        place = self.place
        return np.array([-1, -1, *(place[j] for j in range(2, top + 1))], np.int64)[: top + 1]

    @cached_property
    def inputs(self) -> InputColumns:
        places = self.place_of_input
        counts = np.where(places < 0, 0, np.diff(self.start)[places])
        start = np.concatenate([[0], np.cumsum(counts)])
        source = np.arange(start[-1]) + np.repeat(self.start[places] - start[:-1], counts)
        unit = np.where(places < 0, 0.0, self.unit[places]) if len(self.unit) else np.zeros(2)
        return InputColumns(start, self.atom[source], self.entry[source], unit)


def _columns(
    part_start: IntArray, part: IntArray, ones: IntArray
) -> tuple[IntArray, IntArray, FloatArray, FloatArray]:
    from paramsearch.search.dominance.draft_kernels import draft_columns

    count = len(ones)
    start, unit = np.zeros(count + 1, np.int64), np.empty(count)
    room = _ENTRIES_PER_VALUE * (count + 1)
    while True:
        atom, entry = np.empty(room, np.int64), np.empty(room)
        n = draft_columns(part_start, part, ones, start, atom, entry, unit)
        if n >= 0:
            return start, atom[:n], entry[:n], unit
        room *= 4
