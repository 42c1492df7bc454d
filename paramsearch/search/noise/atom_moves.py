"""Moves to other families: one atom gets other parts, judged by the multipliers of the best noise.

With the noise fixed, a move changes the messages of its atom and the divergences of the pairs that
contain it.  The multipliers say what a change of log delta is worth, so that

    messages of the move + sum over active pairs of multiplier * change of log delta

predicts what the move is worth after the noise has been optimized again.  All moves are evaluated
together because they share factors.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import combinations_with_replacement

import numpy as np

from accounting.base.arrays import FloatArray
from accounting.estimator.estimate import Estimator
from accounting.evaluator.build_view_pairs import shifted_pairs
from paramsearch.search.families.family_draft import Column, FamilyDraft, Parts
from paramsearch.search.noise.noise_model import NoiseModel
from paramsearch.search.noise.noise_optimizer import Solution

_MOST_PARTS = 3
"""Largest number of parts of an atom after a move."""
_LARGEST_GROWTH = 10
"""Largest number of elements that a move adds to an atom."""
_MOVES_PER_VALUE = 80
"""Moves of one atom that are evaluated: those with the fewest elements."""
_SMALLEST_SHARE = 1e-3
"""Pairs with a smaller share of the sum of all multipliers are ignored."""
_MOST_FACTORS = 600_000
"""Factors of all evaluated pairs at which no further moves are added."""
_LARGEST_DECREASE, _LARGEST_INCREASE = -1.5, 8.0
"""Changes of log delta are clipped to this range, because multipliers hold only locally."""


@dataclass(frozen=True, order=True)
class Move:
    """New ``parts`` for the atom of ``value``.

    ``gain`` is the predicted change of the messages: negative is good.
    """

    gain: float
    value: int
    parts: Parts


@dataclass(frozen=True)
class _Pair:
    """An active pair: the (before, after) of every coordinate in every release, the shifts of the
    noises in each, by the value that an atom defines, and the multiplier."""

    inputs: list[tuple[int, int]]
    shifts: list[Counter[int]]
    multiplier: float


@dataclass(frozen=True)
class _Effect:
    """The shifts of a pair after a move, with the indices of both."""

    move: int
    pair: int
    shifts: list[Counter[int]]


def predicted_gains(draft: FamilyDraft, model: NoiseModel, solution: Solution) -> list[Move]:
    """List all moves, best first; in large families, only moves of the most expensive atoms."""
    pairs = _active_pairs(draft, model, solution)
    index = {value: i for i, value in enumerate(model.defined_values)}
    means = np.exp(model.per_atom(solution.x)[0])
    messages = model.atom_size * means
    most_expensive_first = sorted(draft.parts, key=lambda value: -messages[index[value]])
    moves: list[tuple[int, Parts]] = []
    effects: list[_Effect] = []
    factors = 0
    for value, parts in _candidates(draft, most_expensive_first):
        found = list(_effects(draft, len(moves), value, parts, pairs))
        factors += sum(len(shifts) for effect in found for shifts in effect.shifts)
        effects += found
        moves.append((value, parts))
        if factors > _MOST_FACTORS:
            break
    log_delta = _log_delta(model, solution, pairs, effects)
    gain = np.zeros(len(moves))
    for effect, after in zip(effects, log_delta[len(pairs) :], strict=True):
        change = after - log_delta[effect.pair]
        clipped = min(max(change, _LARGEST_DECREASE), _LARGEST_INCREASE)
        gain[effect.move] += pairs[effect.pair].multiplier * clipped
    for i, (value, parts) in enumerate(moves):
        growth = _size(value, parts) - draft.size(value)
        gain[i] += growth * means[index[value]]
    return sorted(Move(float(gain[i]), value, parts) for i, (value, parts) in enumerate(moves))


def _active_pairs(draft: FamilyDraft, model: NoiseModel, solution: Solution) -> list[_Pair]:
    share = solution.multipliers / solution.multipliers.sum()
    pairs = []
    for place in np.flatnonzero(share > _SMALLEST_SHARE).tolist():
        changes = model.changes[solution.pairs[place]]
        inputs = [both for change in changes for both in change.coordinates]
        shifts = [_difference(draft.columns[j], draft.columns[k]) for j, k in inputs]
        pairs.append(_Pair(inputs, shifts, float(solution.multipliers[place])))
    return pairs


def _candidates(draft: FamilyDraft, values: list[int]) -> Iterator[tuple[int, Parts]]:
    """List values with new parts: one part added, removed or replaced; or two hubs or inner
    values."""
    inner = {part for value, parts in draft.parts.items() if value < 0 for part in parts}
    hubs_and_inner = sorted(inner | {value for value in draft.parts if value < 0})
    for value in values:
        parts = draft.parts[value]
        allowed = [other for other in draft.parts if other not in draft.dependents[value]]
        pairs = combinations_with_replacement(
            [other for other in hubs_and_inner if other not in draft.dependents[value]], 2
        )
        found: set[Parts] = set(pairs)
        for i in range(-1, len(parts)):
            kept = parts[:i] + parts[i + 1 :] if i >= 0 else parts
            found.add(kept)
            found.update(tuple(sorted((*kept, other))) for other in allowed)
        largest = draft.size(value) + _LARGEST_GROWTH
        sizes = {new: _size(value, new) for new in found - {parts}}
        fitting = [new for new in sizes if len(new) <= _MOST_PARTS and sizes[new] <= largest]
        for new in sorted(fitting, key=lambda new: (sizes[new], new))[:_MOVES_PER_VALUE]:
            yield value, new


def _size(value: int, parts: Parts) -> int:
    """Return the number of elements of the atom of ``value`` with these parts."""
    return 1 + len(parts) + abs(value + sum(parts))


def _effects(
    draft: FamilyDraft, move: int, value: int, parts: Parts, pairs: list[_Pair]
) -> Iterator[_Effect]:
    """List the effects of a move on all pairs that it changes."""
    change = _column_change(draft, value, parts)
    for t, pair in enumerate(pairs):
        multiples = [
            draft.influence[j].get(value, 0) - draft.influence[k].get(value, 0)
            for j, k in pair.inputs
        ]
        if any(multiples):
            shifts = zip(pair.shifts, multiples, strict=True)
            yield _Effect(move, t, [_added(before, times, change) for before, times in shifts])


def _log_delta(
    model: NoiseModel, solution: Solution, pairs: list[_Pair], effects: list[_Effect]
) -> FloatArray:
    """Estimate log delta, first of the pairs as they are, then after each effect."""
    index = dict(zip(model.defined_values, model.laws.tolist(), strict=True))
    shifts = [pair.shifts for pair in pairs] + [effect.shifts for effect in effects]
    inputs = [pair.inputs for pair in pairs] + [pairs[effect.pair].inputs for effect in effects]
    entries = [
        [(index[value], entry) for value, entry in shift.items() if entry]
        for of_pair in shifts
        for shift in of_pair
    ]
    change_of_sum = np.array([j - k for of_pair in inputs for j, k in of_pair])
    single = shifted_pairs(
        model.view_pairs.noises,
        entries,
        change_of_sum,
        int(model.laws[model.unit]),
        model.target.step,
    )
    # a pair with several coordinates or releases is the product of its single ones
    start = np.concatenate([[0], np.cumsum([len(of_pair) for of_pair in shifts])])
    view_pairs = replace(single, start=single.start[start], releases=model.view_pairs.releases)
    target = model.target
    estimator = Estimator(
        view_pairs,
        eps=target.problem.eps,
        delta=target.goal,
        m=model.burst_sizes if target.m else None,
    )
    return estimator.log_delta(solution.x)


def _added(before: Counter[int], times: int, change: Counter[int]) -> Counter[int]:
    """Return ``before`` + ``times`` * ``change``."""
    if not times:
        return before
    after = Counter(before)
    for key, entry in change.items():
        after[key] += times * entry
    return after


def _difference(a: Column, b: Column) -> Counter[int]:
    found = Counter(a)
    found.subtract(b)
    return found


def _column_change(draft: FamilyDraft, value: int, parts: Parts) -> Counter[int]:
    """Return the change of the column of ``value`` when its atom gets these parts."""
    change: Counter[int] = Counter()
    for other in draft.parts[value]:
        change.update(draft.columns[other])
    for other in parts:
        change.subtract(draft.columns[other])
    change[-1] += min(0, -(value + sum(parts))) - min(0, draft.ones(value))
    return change
