"""Families from a few hubs: large negative values that many atoms share.

A hub -h is {-h, some positive values, +1 x the rest}; a value m takes up to three hubs and ones of
either sign.  Two things matter.  The shift of {-1, +1} runs over [a_0, a_0 + m] for the change from
m to 0 (exact_view.md), so a value near max_value wants a_0 = -m/2: half of it through -1, or by
a hub that contains a positive value, whose own atom is made of -1.  A value in the middle has slack
to spare and only wants few elements.
"""

from __future__ import annotations

import itertools
import math
import random
from bisect import bisect_left, bisect_right
from collections.abc import Mapping

from paramsearch.search.families.family_draft import Draft, Parts
from paramsearch.search.noise.noise_model import Model
from paramsearch.search.noise.noise_optimizer import minimise
from paramsearch.search.target import Target

Hubs = Mapping[int, Parts]
"""h -> the positive values in the atom of -h."""
_MOST_HUBS = 3
"""In one atom."""
_MANY = 24
"""With more hubs than this, two in one atom must do."""


def draft(target: Target, hubs: Hubs) -> Draft | None:
    """Every value by the expression that looks cheapest; None if the hubs define each other."""
    parts: dict[int, Parts] = {-h: tuple(inner) for h, inner in hubs.items()}
    parts.update(_expressions(target, hubs))
    inner = [(h, value) for h, values in hubs.items() for value in values]
    parts.update({value: (-value,) for h, value in inner if _paired(value, h, hubs)})
    parts.update({value: () for h, value in inner if not _paired(value, h, hubs)})
    return Draft.of(target.problem.max_value, parts)


def _expressions(target: Target, hubs: Hubs) -> dict[int, Parts]:
    top = target.problem.max_value
    most = _MOST_HUBS if len(hubs) <= _MANY else 2
    combinations = [
        (chosen, sum(chosen), -sum(_shift(h, hubs) for h in chosen))
        for count in range(most + 1)
        for chosen in itertools.combinations_with_replacement(sorted(hubs), count)
    ]
    combinations.sort(key=lambda entry: entry[1])
    totals = [total for _, total, _ in combinations]
    least = target.slack(top)
    found: dict[int, Parts] = {}
    for m in range(2, top + 1):
        ease = target.slack(m) / least
        limit = 0.51 * top * ease + 0.5
        best: tuple[float, Parts] = (math.inf, ())
        reach = max(8, top // 2 + 1) if len(hubs) < 2 else max(8, top // 3)
        for i in _near(totals, m, reach):
            chosen, total, shift = combinations[i]
            rest = m - total
            shift -= max(0, rest)
            over = max(0.0, max(abs(shift), abs(shift + m)) - limit)
            score = 1.05 * len(chosen) + abs(rest) + over * ease
            if score < best[0]:
                best = score, tuple(-h for h in chosen)
        found[m] = best[1]
    return found


def _shift(h: int, hubs: Hubs) -> int:
    """The entry of {-1, +1} in the column of a hub."""
    return sum(_shift(v, hubs) if _paired(v, h, hubs) else v for v in hubs[h])


def _paired(value: int, h: int, hubs: Hubs) -> bool:
    """Values inside -h that are smaller hubs themselves have the pair atom {value, -value}; the
    others are made of -1."""
    return value in hubs and value < h


def _near(totals: list[int], m: int, reach: int) -> range:
    return range(bisect_left(totals, m - reach), bisect_right(totals, m + reach))


def first(target: Target) -> Hubs:
    """A usual shape: one hub at the top that carries half of its sum both ways, smaller ones by
    steps of about three below."""
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
        size = round(size / 3.2)
    return hubs


_CORED = (
    ((0.9, 0.45), 0.2),
    ((0.85, 0.6, 0.35), 0.12),
    ((0.7, 0.4), 0.2),
    ((0.92, 0.48), 0.14),
    ((0.81, 0.41), 0.125),
)
"""Large hubs and the largest small one, as shares of max_value."""


def cored(top: int) -> list[Hubs]:
    """Large hubs that share one positive value, made of -1, and small ones below them.

    The shared value is paid for once, and each hub needs only the few ones by which it differs.
    """
    found: list[Hubs] = []
    for (large, small), share in itertools.product(_CORED, (0.42, 0.37, 0.47)):
        core = max(2, round(share * top))
        hubs: dict[int, Parts] = {round(size * top): (core,) for size in large}
        size = max(2, round(small * top))
        while size >= 2:
            hubs[size] = (max(2, round(0.4 * size)),)
            size = round(size / 3.2)
        found.append(hubs)
    return found


def inside(draft: Draft) -> Hubs:
    """The hubs of a draft."""
    return {
        -value: tuple(part for part in parts if part > 0)
        for value, parts in draft.parts.items()
        if value < 0
    }


def foretold(target: Target) -> float:
    """About the messages of the usual shape: a quick look, for choices before a search."""
    found = draft(target, first(target))
    assert found is not None
    model = Model(found.family, target)
    return minimise(model, model.start(), tolerance=1e-2, steps=15).messages


def single(top: int) -> list[Hubs]:
    """One hub each, of several sizes, with and without a positive value inside."""
    found: list[Hubs] = []
    for share in (0.45, 0.65, 0.8, 0.9):
        h = round(share * top)
        found += [{h: ()}, {h: _filled(h, 1, -1)}]
    return found


def mutated(hubs: Hubs, top: int, random_: random.Random) -> Hubs:
    """One or two hubs added, removed, moved, or with other positive values inside."""
    new = dict(hubs)
    for _ in range(random_.choice((1, 1, 2))):
        kind = random_.choice(("add", "remove", "move", "fill", "fill"))
        if kind == "add" or not new:
            small = math.exp(random_.uniform(math.log(2), math.log(1.1 * top + 1)))
            h = random_.choice((random_.randint(2, max(2, top)), round(small)))
            new[max(2, h)] = _filled(max(2, h), random_.choice((0, 0, 1)), 0)
            continue
        h = random_.choice(sorted(new))
        if kind == "remove":
            del new[h]
        elif kind == "move":
            reach = max(1, h // 12)
            inner = new.pop(h)
            h = max(2, h + random_.choice((-2, -1, 1, 2)) * random_.randint(1, reach))
            new[h] = inner
        else:
            half = _filled(h, random_.choice((0, 1, 1, 2)), random_.choice((-1, 0, 0, 1)))
            others = sorted({value for inner in new.values() for value in inner} | {h + 1})
            shared = (random_.choice(others),)
            new[h] = shared if random_.random() < 0.3 else half
    return new


def _filled(h: int, count: int, off: int) -> Parts:
    """About half of h in ``count`` equal positive values."""
    if not count:
        return ()
    size = round(h / 2 / count) + off
    return (size,) * count if size >= 2 and size * count < h else ()


def scaled(hubs: Hubs, ratio: float) -> Hubs:
    """The same shape for another max_value."""
    new: dict[int, Parts] = {}
    for h, inner in hubs.items():
        size = max(2, round(h * ratio))
        new[size] = tuple(max(2, round(value * ratio)) for value in inner)
    return new
