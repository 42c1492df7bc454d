"""Families built from a few hubs: large negative values that many atoms share.

A hub -h is {-h, some positive inner values, +1 x the rest}; a value m uses up to three hubs and
ones of either sign.  Two things matter.  The shift of {-1, +1} runs over [a_0, a_0 + m] for the
change from m to 0 (exact_view.md), so a value near max_value wants a_0 = -m/2: half of it through
-1, or through a hub with an inner value whose own atom is made of -1.  A value in the middle has
slack to spare and only wants few elements.
"""

from __future__ import annotations

import itertools
import math
import random
from bisect import bisect_left, bisect_right
from collections.abc import Mapping

from paramsearch.search.families.family_draft import FamilyDraft, Parts
from paramsearch.search.noise.noise_model import NoiseModel
from paramsearch.search.noise.noise_optimizer import optimize_noise
from paramsearch.search.target import Target

Hubs = Mapping[int, Parts]
"""h -> the inner values of -h, the positive values in its atom."""
SMALL_PROBLEM = 24
"""Largest max_value of the problems from which costs are predicted; rule of thumb."""
_MOST_HUBS_PER_ATOM = 3
_MANY_HUBS = 24
"""With more hubs than this, an atom has at most two: there are too many combinations."""
_HUB_COST = 1.05
"""Cost of a hub in an atom, in ones; a little above 1 breaks ties in favor of ones."""
_BALANCED_SHIFT = 0.51
"""Share of max_value that the shift of {-1, +1} may reach at no cost; one half is the least."""
_SIZE_RATIO = 3.2
"""Ratio of the sizes of two neighboring small hubs.  These four are rules of thumb."""


def draft_from_hubs(target: Target, hubs: Hubs) -> FamilyDraft | None:
    """Every value by the expression that looks cheapest; None if the hubs form a cycle."""
    parts: dict[int, Parts] = {-h: tuple(inner) for h, inner in hubs.items()}
    parts.update(_cheapest_expressions(target, hubs))
    inner = [(h, value) for h, values in hubs.items() for value in values]
    parts.update({value: (-value,) for h, value in inner if _is_smaller_hub(value, h, hubs)})
    parts.update({value: () for h, value in inner if not _is_smaller_hub(value, h, hubs)})
    return FamilyDraft.of(target.problem.max_value, parts)


def _cheapest_expressions(target: Target, hubs: Hubs) -> dict[int, Parts]:
    top = target.problem.max_value
    most = _MOST_HUBS_PER_ATOM if len(hubs) <= _MANY_HUBS else 2
    combinations = [
        (chosen, sum(chosen), -sum(_unit_shift(h, hubs) for h in chosen))
        for count in range(most + 1)
        for chosen in itertools.combinations_with_replacement(sorted(hubs), count)
    ]
    combinations.sort(key=lambda entry: entry[1])
    totals = [total for _, total, _ in combinations]
    least_slack = target.slack(top)
    reach = max(8, top // 2 + 1) if len(hubs) < 2 else max(8, top // 3)
    cheapest: dict[int, Parts] = {}
    for m in range(2, top + 1):
        ease = target.slack(m) / least_slack
        limit = _BALANCED_SHIFT * top * ease + 0.5
        best: tuple[float, Parts] = (math.inf, ())
        for i in range(bisect_left(totals, m - reach), bisect_right(totals, m + reach)):
            chosen, total, shift = combinations[i]
            rest = m - total
            shift -= max(0, rest)
            excess = max(0.0, max(abs(shift), abs(shift + m)) - limit)
            score = _HUB_COST * len(chosen) + abs(rest) + excess * ease
            if score < best[0]:
                best = score, tuple(-h for h in chosen)
        cheapest[m] = best[1]
    return cheapest


def _unit_shift(h: int, hubs: Hubs) -> int:
    """The entry of {-1, +1} in the column of a hub."""
    return sum(_unit_shift(v, hubs) if _is_smaller_hub(v, h, hubs) else v for v in hubs[h])


def _is_smaller_hub(value: int, h: int, hubs: Hubs) -> bool:
    """Whether an inner value of -h is itself the size of a smaller hub.

    Then its atom is {value, -value}; the atoms of other inner values are made of -1.
    """
    return value in hubs and value < h


def usual_hubs(target: Target) -> Hubs:
    """A shape that is rarely bad: one large hub with half of its sum inside, and smaller ones, each
    about a third of the next."""
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


def hubs_sharing_a_value(top: int) -> list[Hubs]:
    """Large hubs that share one inner value, made of -1, and small ones below them.

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
    """One hub each, of several sizes, with and without an inner value."""
    found: list[Hubs] = []
    for share in (0.45, 0.65, 0.8, 0.9):
        h = round(share * top)
        found += [{h: ()}, {h: _half_inside(h, count=1, offset=-1)}]
    return found


def hubs_of(draft: FamilyDraft) -> Hubs:
    """The hubs of a draft."""
    return {
        -value: tuple(part for part in parts if part > 0)
        for value, parts in draft.parts.items()
        if value < 0
    }


def randomly_changed(hubs: Hubs, top: int, rng: random.Random) -> Hubs:
    """One or two hubs added, removed, moved, or with other inner values."""
    new = dict(hubs)
    for _ in range(rng.choice((1, 1, 2))):
        kind = rng.choice(("add", "remove", "move", "fill", "fill"))
        if kind == "add" or not new:
            log_uniform = math.exp(rng.uniform(math.log(2), math.log(1.1 * top + 1)))
            h = rng.choice((rng.randint(2, max(2, top)), round(log_uniform)))
            new[max(2, h)] = _half_inside(max(2, h), count=rng.choice((0, 0, 1)), offset=0)
            continue
        h = rng.choice(sorted(new))
        if kind == "remove":
            del new[h]
        elif kind == "move":
            reach = max(1, h // 12)
            inner = new.pop(h)
            h = max(2, h + rng.choice((-2, -1, 1, 2)) * rng.randint(1, reach))
            new[h] = inner
        else:
            half = _half_inside(h, count=rng.choice((0, 1, 1, 2)), offset=rng.choice((-1, 0, 0, 1)))
            others = sorted({value for inner in new.values() for value in inner} | {h + 1})
            shared = (rng.choice(others),)
            new[h] = shared if rng.random() < 0.3 else half
    return new


def _half_inside(h: int, *, count: int, offset: int) -> Parts:
    """Inner values of about half of h in total: ``count`` equal ones, each ``offset`` larger."""
    if not count:
        return ()
    size = round(h / 2 / count) + offset
    return (size,) * count if size >= 2 and size * count < h else ()


def rescaled(hubs: Hubs, ratio: float) -> Hubs:
    """The same shape for a max_value that is ``ratio`` times as large."""
    new: dict[int, Parts] = {}
    for h, inner in hubs.items():
        size = max(2, round(h * ratio))
        new[size] = tuple(max(2, round(value * ratio)) for value in inner)
    return new


def predicted_messages(target: Target) -> float:
    """Approximate messages of the usual shape: a quick prediction for choices before a search."""
    draft = draft_from_hubs(target, usual_hubs(target))
    assert draft is not None
    model = NoiseModel(draft.family, target)
    return optimize_noise(model, model.first_guess(), tolerance=1e-2, steps=15).messages
