"""Which sequences of changes a search looks at, where different ones may follow each other.

All of them are too many: a search takes every change made again and again, and mixtures of those
few changes that may be worst together.  What it overlooks, the proof notices and more noise mends.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np

from accounting.base.arrays import IntArray
from accounting.model.change import Change, every_change
from paramsearch.search.target import Target

_ALL = 30
"""Changes up to which all mixtures of two are looked at."""
_LEVELS = 4
"""Otherwise the mixed changes are those between this many steps from 0 to max_value."""


@dataclass(frozen=True)
class Sequences:
    """Row i is made of the changes rows[i], one after the other, ``times`` times."""

    rows: IntArray
    times: int
    changes: list[tuple[Change, ...]]


def sequences(target: Target, max_value: int) -> Sequences:
    """Of single changes, where only the same one may be made in several releases."""
    problem = target.problem
    single = every_change(max_value=max_value, dimension=problem.dimension)
    if not problem.any_sequence:
        return Sequences(np.arange(len(single))[:, None], problem.releases, [(c,) for c in single])
    length = problem.releases if problem.releases <= 3 else 2
    index = {change: i for i, change in enumerate(single)}
    chosen = [index[c] for c in target.mixed or _usual(single, max_value) if c in index]
    rows = [(q,) * length for q in range(len(single))]
    for a, b in combinations(sorted(chosen), 2):
        rows += [(a,) * i + (b,) * (length - i) for i in range(1, length)]
    named = [tuple(single[q] for q in row) for row in rows]
    # of an odd number of releases one is left out: a lower bound stays one
    return Sequences(np.array(rows), problem.releases // length, named)


def _usual(single: list[Change], max_value: int) -> list[Change]:
    if len(single) <= _ALL:
        return single
    levels = {round(max_value * i / _LEVELS) for i in range(_LEVELS + 1)}
    return [change for change in single if levels.issuperset(change.listed)]
