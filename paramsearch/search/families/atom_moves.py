"""Other families: one atom with other parts, judged by the multipliers of the best noise so far.

With the noise fixed, a move changes the messages of its atom and the divergence of the pairs that
contain it.  The multipliers say what a change of log delta is worth, so that

    messages of the move + sum over active pairs of multiplier * change of log delta

foretells what the move is worth after the noise has been optimised again.  All moves are judged
together: they share the factors.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import combinations_with_replacement

import numpy as np

from accounting.estimator.estimate import Estimator
from accounting.evaluator.build_view_pairs import shifted_pairs
from paramsearch.search.families.family_draft import Column, Draft, Parts
from paramsearch.search.noise.noise_model import Model
from paramsearch.search.noise.noise_optimizer import Solution

_MOST_PARTS = 3
_GROWTH = 10
"""Ones that a move may add to an atom."""
_PER_VALUE = 80
"""Moves of one atom, those with the fewest elements first."""
_LEAST_SHARE = 1e-3
"""Pairs with a smaller share of the multipliers are not looked at."""
_MOST_FACTORS = 600_000
_CREDIT, _DEBIT = -1.5, 8.0
"""Changes of log delta are counted within these limits: multipliers are local."""


@dataclass(frozen=True, order=True)
class Move:
    """``gain`` is what it is foretold to add to the messages: negative is good."""

    gain: float
    value: int
    parts: Parts


def _candidates(draft: Draft, values: list[int]) -> Iterator[tuple[int, Parts]]:
    """One part more, less or another one; or two that belong to hubs."""
    inside = {part for value, parts in draft.parts.items() if value < 0 for part in parts}
    special = sorted(inside | {value for value in draft.parts if value < 0})
    for value in values:
        parts = draft.parts[value]
        allowed = [other for other in draft.parts if other not in draft.dependents[value]]
        pairs = combinations_with_replacement(
            [other for other in special if other not in draft.dependents[value]], 2
        )
        found: set[Parts] = set(pairs)
        for i in range(-1, len(parts)):
            base = parts[:i] + parts[i + 1 :] if i >= 0 else parts
            found.add(base)
            found.update(tuple(sorted((*base, other))) for other in allowed)
        most = draft.size(value) + _GROWTH
        sizes = {new: 1 + len(new) + abs(value + sum(new)) for new in found - {parts}}
        fitting = [new for new in sizes if len(new) <= _MOST_PARTS and sizes[new] <= most]
        for new in sorted(fitting, key=lambda new: (sizes[new], new))[:_PER_VALUE]:
            yield value, new


def foretell(draft: Draft, model: Model, solution: Solution) -> list[Move]:
    """All moves, best first; in large families those of the most expensive atoms."""
    share = solution.multipliers / solution.multipliers.sum()
    active = np.flatnonzero(share > _LEAST_SHARE)
    pairs = [
        [values for change in model.changes[i] for values in change.coordinates]
        for i in solution.pairs[active].tolist()
    ]
    worth = solution.multipliers[active]
    position = {value: i for i, value in enumerate(model.leader)}
    base = [[_difference(draft.columns[j], draft.columns[k]) for j, k in pair] for pair in pairs]
    shifts = list(base)
    owner: list[tuple[int, int]] = []
    moves: list[tuple[int, Parts]] = []
    total = 0
    messages = model.size * np.exp(solution.x[0])
    dearest = sorted(draft.parts, key=lambda value: -messages[position[value]])
    for value, parts in _candidates(draft, dearest):
        change = _own_change(draft, value, parts)
        for t, pair in enumerate(pairs):
            times = [
                draft.influence[j].get(value, 0) - draft.influence[k].get(value, 0) for j, k in pair
            ]
            if any(times):
                moved = [_moved(*which, change) for which in zip(base[t], times, strict=True)]
                shifts.append(moved)
                owner.append((len(moves), t))
                total += sum(map(len, moved))
        moves.append((value, parts))
        if total > _MOST_FACTORS:
            break
    entries = [
        {position[key]: entry for key, entry in shift.items() if entry}
        for pair in shifts
        for shift in pair
    ]
    kappa = [j - k for t in (*range(len(pairs)), *(t for _, t in owner)) for j, k in pairs[t]]
    single = shifted_pairs(
        model.workload.noises, entries, np.array(kappa), model.unit, model.target.step
    )
    ends = np.concatenate([[0], np.cumsum([len(pair) for pair in shifts])])
    workload = replace(single, start=single.start[ends], releases=model.workload.releases)
    estimator = Estimator(workload, eps=model.target.problem.eps, delta=model.target.goal)
    log_delta = estimator.log_delta(solution.x)
    gain = np.zeros(len(moves))
    for (i, t), value in zip(owner, log_delta[len(pairs) :], strict=True):
        change_of_log = min(max(value - log_delta[t], _CREDIT), _DEBIT)
        gain[i] += worth[t] * change_of_log
    found = []
    for i, (value, parts) in enumerate(moves):
        more = len(parts) + abs(value + sum(parts)) + 1 - draft.size(value)
        found.append(Move(gain[i] + more * math.exp(solution.x[0, position[value]]), value, parts))
    return sorted(found)


def _moved(base: Counter[int], times: int, change: Counter[int]) -> Counter[int]:
    if not times:
        return base
    moved = Counter(base)
    for key, entry in change.items():
        moved[key] += times * entry
    return moved


def _difference(a: Column, b: Column) -> Counter[int]:
    found = Counter(a)
    found.subtract(b)
    return found


def _own_change(draft: Draft, value: int, parts: Parts) -> Counter[int]:
    """How the column of ``value`` changes with its parts."""
    change: Counter[int] = Counter()
    for other in draft.parts[value]:
        change.update(draft.columns[other])
    for other in parts:
        change.subtract(draft.columns[other])
    change[-1] += min(0, -(value + sum(parts))) - min(0, draft.ones(value))
    return change
