"""Families built from a few hubs: large negative values that many atoms share.

A hub -h is {-h, some positive inner values, +1 x the rest}; a value m uses up to three hubs and
ones of either sign.  Two things matter.  The shift of {-1, +1} runs over [a_0, a_0 + m] for the
change from m to 0 (exact_view.md), so a value near max_value wants a_0 = -m/2: half of it through
-1, or through a hub with an inner value whose own atom is made of -1.  A value in the middle has
slack to spare and only wants few elements.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Mapping

import numpy as np

from paramsearch.search.families.family_draft import FamilyDraft, Parts
from paramsearch.search.target import Target

Hubs = Mapping[int, Parts]
"""h -> the inner values of -h, the positive values in its atom."""
_MOST_HUBS_PER_ATOM = 3
_MANY_HUBS = 24
"""With more hubs than this, an atom has at most two: there are too many combinations."""
_HUB_COST = 1.05
"""Cost of a hub in an atom, in ones; a little above 1 breaks ties in favor of ones."""
_BALANCED_SHIFT = 0.51
"""Share of max_value that the shift of {-1, +1} may reach at no cost; one half is the least."""
_SIZE_RATIO = 3.2
"""Ratio of the sizes of two neighboring small hubs."""
_LARGEST_GAP = 6
"""Largest size of the smallest hub of a rescaled family.  These five are rules of thumb."""


def draft_from_hubs(target: Target, hubs: Hubs) -> FamilyDraft | None:
    """Write every value by the expression that looks cheapest; None if the hubs form a cycle."""
    parts: dict[int, Parts] = {-h: tuple(inner) for h, inner in hubs.items()}
    inner = [(h, value) for h, values in hubs.items() for value in values]
    parts.update({value: (-value,) for h, value in inner if _is_smaller_hub(value, h, hubs)})
    parts.update({value: () for h, value in inner if not _is_smaller_hub(value, h, hubs)})
    return _completed(target, parts)


def _completed(target: Target, parts: Mapping[int, Parts]) -> FamilyDraft | None:
    """Return the draft with these atoms, and every other value by the expression that looks
    cheapest."""
    shifts = _unit_shifts(parts)
    if shifts is None:
        return None
    every = {**_cheapest_expressions(target, shifts), **parts}
    return FamilyDraft.of(target.problem.max_value, every)


def _unit_shifts(parts: Mapping[int, Parts]) -> dict[int, int] | None:
    """Return the entry of {-1, +1} in the column of each hub, by its size; None if there is a
    cycle."""
    known: dict[int, int] = {}
    begun: set[int] = set()

    def shift(value: int) -> int:
        if value not in known:
            if value in begun or value not in parts:
                raise KeyError(value)
            begun.add(value)
            own = parts[value]
            known[value] = min(0, -(value + sum(own))) - sum(shift(other) for other in own)
        return known[value]

    try:
        return {-value: shift(value) for value in parts if value < 0}
    except KeyError:
        return None


def _cheapest_expressions(target: Target, unit_shifts: Mapping[int, int]) -> dict[int, Parts]:
    """Choose up to three hubs and any number of ones for every value."""
    top = target.problem.max_value
    sizes = sorted(unit_shifts)
    most = _MOST_HUBS_PER_ATOM if len(sizes) <= _MANY_HUBS else 2
    combinations = [
        chosen
        for count in range(most + 1)
        for chosen in itertools.combinations_with_replacement(sizes, count)
    ]
    combinations.sort(key=sum)
    totals = np.array([sum(chosen) for chosen in combinations])
    shifts = np.array([-sum(unit_shifts[h] for h in chosen) for chosen in combinations])
    counts = np.array([len(chosen) for chosen in combinations])
    least_slack = target.slack(top)
    reach = max(8, top // 2 + 1) if len(sizes) < 2 else max(8, top // 3)
    cheapest: dict[int, Parts] = {}
    for m in range(2, top + 1):
        ease = target.slack(m) / least_slack
        limit = _BALANCED_SHIFT * top * ease + 0.5
        begin, end = np.searchsorted(totals, (m - reach, m + reach + 1)).tolist()
        rest = m - totals[begin:end]
        shift = shifts[begin:end] - np.maximum(0, rest)
        excess = np.maximum(0.0, np.maximum(np.abs(shift), np.abs(shift + m)) - limit)
        score = _HUB_COST * counts[begin:end] + np.abs(rest) + excess * ease
        best = combinations[begin + int(np.argmin(score))] if end > begin else ()
        cheapest[m] = tuple(-h for h in best)
    return cheapest


def _is_smaller_hub(value: int, h: int, hubs: Hubs) -> bool:
    """Tell whether an inner value of -h is itself the size of a smaller hub.

    Then its atom is {value, -value}; the atoms of other inner values are made of -1.
    """
    return value in hubs and value < h


def usual_hubs(target: Target) -> Hubs:
    """Return a shape that is rarely bad: one large hub with half of its sum inside, and smaller
    ones, each about a third of the next."""
    top = target.problem.max_value
    if top < 4:
        return {}
    if top < 16:
        return {(top + 1) // 2: ()}
    high = round(0.88 * top)
    hubs: dict[int, Parts] = {high: (high // 2,)}
    size = round(0.37 * top)
    while size >= 4:
        hubs[size] = (size // 2,) if size > 12 else ()
        size = round(size / _SIZE_RATIO)
    return hubs


_SHARING_SHAPES = (
    ((0.9, 0.45), 0.2),
    ((0.85, 0.6, 0.35), 0.12),
    ((0.7, 0.4), 0.2),
    ((0.92, 0.48), 0.14),
    ((0.81, 0.41), 0.125),
)
"""Sizes of the large hubs, and of the largest small one, as shares of max_value; by trial."""
_SHARED_VALUES = (0.42, 0.37, 0.47)
"""Sizes of the value that the large hubs share, as shares of max_value; by trial."""


def shapes(target: Target) -> list[Hubs]:
    """List shapes to begin with."""
    top = target.problem.max_value
    found = [usual_hubs(target)]
    if top > 5:
        found += hubs_sharing_a_value(top) + single_hubs(top)
    return found


def hubs_sharing_a_value(top: int) -> list[Hubs]:
    """List shapes with large hubs that share one inner value, made of -1, and small hubs below
    them.

    The shared value is paid for once, and each hub needs only the few ones by which it differs.
    """
    found: list[Hubs] = []
    for (large, small), share in itertools.product(_SHARING_SHAPES, _SHARED_VALUES):
        shared = max(2, round(share * top))
        hubs: dict[int, Parts] = {round(size * top): (shared,) for size in large}
        size = max(2, round(small * top))
        while size >= 2:
            hubs[size] = (max(2, round(0.4 * size)),)
            size = round(size / _SIZE_RATIO)
        found.append(hubs)
    return found


def single_hubs(top: int) -> list[Hubs]:
    """List shapes with one hub, of several sizes, with and without an inner value."""
    found: list[Hubs] = []
    for share in (0.45, 0.65, 0.8, 0.9):
        h = round(share * top)
        half = round(h / 2) - 1
        found += [{h: ()}, {h: (half,) if half >= 2 else ()}]
    return found


def with_fewer_hubs(target: Target, draft: FamilyDraft, most: int) -> FamilyDraft | None:
    """Keep only the ``most`` hubs that most values use, which take over from the others; None if
    that makes a cycle."""
    users = Counter(part for value, parts in draft.parts.items() if value > 0 for part in parts)
    hubs = sorted((value for value in draft.parts if value < 0), key=lambda hub: -users[hub])[:most]
    inner = {part for hub in hubs for part in draft.parts[hub] if part > 0}
    kept = {*hubs, *inner}
    return _completed(
        target,
        {value: tuple(part for part in draft.parts[value] if part in kept) for value in kept},
    )


def rescaled(target: Target, draft: FamilyDraft) -> FamilyDraft | None:
    """Return the same shape for another max_value: hubs, and their inner values, in proportion.

    Small hubs fill the gap that a larger max_value leaves below the smallest one.
    """
    top = target.problem.max_value
    ratio = top / draft.max_value
    inner = {part for value, parts in draft.parts.items() if value < 0 for part in parts}
    kept = {value for value in draft.parts if value < 0 or value in inner}

    def scaled(value: int) -> int:
        size = max(2, round(abs(value) * ratio))
        return min(size, top) if value > 0 else -size

    parts: dict[int, Parts] = {}
    for value in draft.parts:
        if value in kept:
            own = tuple(sorted(scaled(part) for part in draft.parts[value] if part in kept))
            parts.setdefault(scaled(value), own)
    smallest = min((-value for value in parts if value < 0), default=top)
    while smallest > _LARGEST_GAP:
        smallest = round(smallest / _SIZE_RATIO)
        parts[-smallest] = ()
    return _completed(target, parts)
