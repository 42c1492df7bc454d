"""Bounds of all ordered pairs of a large protocol: every pair from above, the worst from both
sides."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from accounting.base.arrays import FloatArray, IntArray
from accounting.base.deadline import check_time
from accounting.base.progress import Progress, silent
from accounting.evaluator.evaluate import evaluate
from accounting.evaluator.pairs.blocks import InputPairs, group_of, group_upper, slack_edges
from accounting.evaluator.pairs.covered_pairs import covered_pairs

_LIKELY = 48
"""Number of pairs of a group of slacks that are bounded first, from below as well."""
_NEAR = 0.9
"""Share of the largest lower bound down to which upper bounds are not loose."""
_MOST_REFINED = 300_000
"""Largest number of pairs that get closer bounds at a time."""


@dataclass(frozen=True)
class AllBounds:
    """``lower[q] <= divergence of pair q <= upper[q]``, in the order of ``InputPairs.position``.

    ``compared`` are the pairs whose upper bound is that of another pair, which covers them.
    """

    lower: FloatArray
    upper: FloatArray
    compared: IntArray = field(default_factory=lambda: np.zeros(0, np.int64))


def bound_all(
    source: InputPairs,
    eps: float,
    *,
    gap: float,
    absolute: float = 0.0,
    progress: Progress = silent,
) -> AllBounds:
    """Bounds of all pairs at ``eps``; ``gap`` and ``absolute`` are those of the largest, as for
    ``evaluate``."""
    lower, upper = np.zeros(source.pair_count), np.ones(source.pair_count)
    level, compared = absolute / 2, [np.zeros(0, np.int64)]
    for m_first, m_end in reversed(list(pairwise(slack_edges(source, eps)))):
        check_time()
        group = group_of(source, m_first, m_end)
        places = source.position(group.pairs)
        likely = group.likely_worst(eps, _LIKELY)
        found = evaluate(source.chosen(group.pairs[likely]), eps, gap=gap, absolute=absolute)
        lower[places[likely]] = found.lower
        level = max(level, _NEAR * float(found.lower.max(initial=0.0)))
        upper[places], others = group_upper(group, eps, level, progress)
        compared.append(places[others])
        upper[places[likely]] = np.fmin(upper[places[likely]], found.upper)
    return refined(
        source,
        AllBounds(lower, upper, np.concatenate(compared)),
        eps,
        gap=gap,
        absolute=absolute,
        progress=progress,
    )


def refined(
    source: InputPairs,
    known: AllBounds,
    eps: float,
    *,
    gap: float,
    absolute: float = 0.0,
    progress: Progress = silent,
) -> AllBounds:
    """Return closer bounds of the pairs that may be the worst; of very many, of those with the
    largest upper bounds."""
    lower, upper = known.lower.copy(), known.upper.copy()
    left = np.flatnonzero(upper > max(float(lower.max(initial=0.0)), absolute / 2))
    left = np.setdiff1d(left, known.compared, assume_unique=True)
    if not len(left):
        return known
    if len(left) > _MOST_REFINED:
        left = np.sort(left[np.argpartition(-upper[left], _MOST_REFINED)[:_MOST_REFINED]])
    pairs = source.chosen(source.at(left))
    covers = covered_pairs(pairs)
    kept = left[covers.kept]
    found = evaluate(pairs.subset(covers.kept), eps, gap=gap, absolute=absolute, progress=progress)
    lower[kept] = np.fmax(lower[kept], found.lower)
    upper[kept] = np.fmin(upper[kept], found.upper)
    upper[left] = np.fmin(upper[left], upper[left[covers.cover]])
    # what was compared before is still covered by one of these, or by one that was left out
    largest = float(np.delete(upper, known.compared).max(initial=0.0))
    upper[known.compared] = np.fmin(upper[known.compared], largest)
    compared = left[covers.cover != np.arange(len(left))]
    return AllBounds(lower, upper, np.union1d(known.compared, compared))
