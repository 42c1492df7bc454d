"""Moves of single atoms, priced by the multipliers of the dominance program.

With the multipliers v fixed, the bound of the program for the family after a move is a lower bound
of its value (program.py), and first-order exact for small moves.  A move changes c = A^T v only at
the atoms in the columns of its old and new parts, so that a price costs well below a microsecond.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from accounting.base.arrays import FloatArray, IntArray
from accounting.base.threads import in_chunks
from paramsearch.search.dominance.draft_arrays import DraftArrays
from paramsearch.search.dominance.program import Dominance, DominanceProgram
from paramsearch.search.families.family_draft import Parts

_MOST_PARTS = 3
"""Largest number of parts of an atom after a move."""
_LARGEST_GROWTH = 10
"""Largest number of elements that a move adds to an atom."""
_TRIPLES = 24
"""Shared values up to which atoms of any three of them are tried."""
_MOVES_PER_VALUE = 3
"""The best moves of each value that are kept."""
_VALUES_PER_THREAD = 100
"""Values from which a second thread is worthwhile."""
_TINY = 1e-30
"""Smallest entry of c, in the place of 0."""


@dataclass(frozen=True, order=True)
class PricedMove:
    """New ``parts`` for the atom of ``value``; ``bound`` is a lower bound of the value of the
    program after the move."""

    bound: float
    value: int
    parts: Parts


def priced_moves(
    arrays: DraftArrays, program: DominanceProgram, solution: Dominance
) -> list[PricedMove]:
    """List the best few moves of every value, best first."""
    from paramsearch.search.dominance.draft_kernels import best_moves, draft_influence

    count = len(arrays.number)
    used = np.unique(arrays.part)
    influence = np.zeros((len(used), count))
    draft_influence(arrays.part_start, arrays.part, used, influence)
    row_of: IntArray = np.full(count, -1)
    row_of[used] = np.arange(len(used))
    shared = np.union1d(used, np.flatnonzero(arrays.number < 0))
    j, k = solution.pairs.T
    price = np.empty((count, _MOVES_PER_VALUE))
    chosen = np.empty((count, _MOVES_PER_VALUE, _MOST_PARTS), np.int64)
    columns = arrays.number, arrays.start, arrays.atom, arrays.entry, arrays.unit
    parts = arrays.part_start, arrays.part, arrays.size
    c = np.maximum(program.combined(solution.pairs, solution.multipliers), _TINY)
    pairs = (
        (j - k).astype(np.float64),
        solution.multipliers * program.inverse[j, k],
        np.ascontiguousarray(arrays.place_of_input[solution.pairs]),
    )
    triples = len(shared) <= _TRIPLES

    def work(a: int, b: int) -> None:
        best_moves(
            *columns,
            *parts,
            program.weight,
            c,
            *pairs,
            row_of,
            influence,
            shared,
            _LARGEST_GROWTH,
            triples,
            a,
            b,
            price,
            chosen,
        )

    in_chunks(work, count, smallest=_VALUES_PER_THREAD)
    return sorted(_moves(arrays, price, chosen))


def _moves(arrays: DraftArrays, price: FloatArray, chosen: IntArray) -> Iterator[PricedMove]:
    padded = np.append(arrays.number, 0)  # entry -1 stands for no part
    parts = np.sort(padded[chosen], axis=2).tolist()
    bound = (price**1.5).tolist()
    for value, own, prices, rows in zip(
        arrays.number.tolist(), arrays.draft.parts.values(), bound, parts, strict=True
    ):
        for limit, row in zip(prices, rows, strict=True):
            new = tuple(part for part in row if part)
            if limit < np.inf and new != own:
                yield PricedMove(limit, value, new)
