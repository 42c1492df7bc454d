"""The sequences of changes that a search considers where different changes may follow each other.

There are too many to consider all: a search takes every change repeated, and mixtures of the few
changes that may be worst together.  If it overlooks one, the proof fails and more noise is added.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from accounting.base.arrays import IntArray
from accounting.model.change import Change, directions, every_change
from paramsearch.search.target import Target

_ALL_MIXTURES = 30
"""Largest number of changes of which all mixtures of two are considered."""
_LEVELS = 4
"""With more changes, only those between multiples of max_value / _LEVELS are mixed."""


@dataclass(frozen=True)
class Sequences:
    """Sequence i consists of the changes with the indices rows[i] in order, repeated ``times``
    times; ``changes[i]`` are those changes themselves."""

    rows: IntArray
    times: int
    changes: list[tuple[Change, ...]]


def sequences(target: Target, max_value: int) -> Sequences:
    """List the sequences to consider; repeated single changes where all releases have the same
    change."""
    problem = target.problem
    single = every_change(
        max_value=max_value, dimension=problem.dimension, adjacency=problem.adjacency
    )
    if not problem.any_sequence:
        return Sequences(np.arange(len(single))[:, None], problem.releases, [(c,) for c in single])
    length = problem.releases if problem.releases <= 3 else 2
    index = {change: i for i, change in enumerate(single)}
    chosen = [index[c] for c in target.mixed or _mixed_by_default(single, max_value) if c in index]
    rows = [(q,) * length for q in range(len(single))]
    for direction in directions(single, problem.adjacency):
        for a, b in combinations(sorted(set(direction).intersection(chosen)), 2):
            rows += [(a,) * i + (b,) * (length - i) for i in range(1, length)]
    named = [tuple(single[q] for q in row) for row in rows]
    # an odd number of releases above three loses one, which underestimates delta slightly; the
    # proof would catch it
    return Sequences(np.array(rows), problem.releases // length, named)


def _mixed_by_default(single: Sequence[Change], max_value: int) -> Sequence[Change]:
    if len(single) <= _ALL_MIXTURES:
        return single
    levels = {round(max_value * i / _LEVELS) for i in range(_LEVELS + 1)}
    return [change for change in single if levels.issuperset(change.listed)]
