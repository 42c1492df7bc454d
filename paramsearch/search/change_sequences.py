"""Which sequences of changes a search looks at, where different ones may follow each other.

All of them are too many: a search takes every change made again and again, and mixtures of those
few changes that may be worst together.  What it overlooks, the proof notices and more noise mends.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np

from accounting.base.arrays import IntArray
from accounting.evaluator.build_view_pairs import labels
from paramsearch.search.target import Pair, Target

_ALL = 30
"""Changes up to which all mixtures of two are looked at."""
_LEVELS = 4
"""Otherwise the mixed changes are those between this many steps from 0 to max_value."""


@dataclass(frozen=True)
class Sequences:
    """Row i is made of the changes rows[i], one after the other, ``times`` times."""

    rows: IntArray
    times: int
    labels: list[Pair]


def sequences(target: Target, max_value: int) -> Sequences:
    """Of single changes, where only the same one may be made in several releases."""
    single = labels(max_value, target.dimension)
    if not target.any_sequence:
        return Sequences(np.arange(len(single))[:, None], target.releases, single)
    length = target.releases if target.releases <= 3 else 2
    index = {pair: i for i, pair in enumerate(single)}
    chosen = [index[pair] for pair in target.mixed or _usual(single, max_value) if pair in index]
    rows = [(q,) * length for q in range(len(single))]
    for a, b in combinations(sorted(chosen), 2):
        rows += [(a,) * i + (b,) * (length - i) for i in range(1, length)]
    named = [tuple(value for q in row for value in single[q]) for row in rows]
    # of an odd number of releases one is left out: a lower bound stays one
    return Sequences(np.array(rows), target.releases // length, named)


def _usual(single: list[Pair], max_value: int) -> list[Pair]:
    if len(single) <= _ALL:
        return single
    levels = {round(max_value * i / _LEVELS) for i in range(_LEVELS + 1)}
    return [pair for pair in single if levels.issuperset(pair)]
