"""Larger changes of a draft, at random: a hub moves, goes or comes, with all that use it.

Ones are implicit, so the atoms that contain a hub adjust by themselves.
"""

from __future__ import annotations

import random

from paramsearch.search.families.family_draft import Draft, Parts


def shaken(draft: Draft, random_: random.Random) -> Draft | None:
    """One change; None where it makes no sense."""
    kind = random_.choice((_moved, _moved, _removed, _added, _exchanged, _refilled, _refilled))
    return kind(draft, random_)


def _hubs(draft: Draft) -> list[int]:
    return sorted(value for value in draft.parts if value < 0)


def _moved(draft: Draft, random_: random.Random) -> Draft | None:
    """A hub takes another value."""
    hubs = _hubs(draft)
    if not hubs:
        return None
    old = random_.choice(hubs)
    new = old + random_.choice((-1, 1)) * random_.randint(1, max(1, -old // 10))
    if new > -2 or new in draft.parts:
        return None
    parts = {v: _replaced(own, old, (new,)) for v, own in draft.parts.items() if v != old}
    parts[new] = draft.parts[old]
    return Draft.of(draft.max_value, parts)


def _removed(draft: Draft, random_: random.Random) -> Draft | None:
    """A hub's users take the nearest other hub, or ones."""
    hubs = _hubs(draft)
    if not hubs:
        return None
    old = random_.choice(hubs)
    others = [h for h in hubs if h != old and h not in draft.dependents[old]]
    nearest = min(others, key=lambda h: abs(h - old), default=None)
    stand_in = (nearest,) if nearest is not None and random_.random() < 0.7 else ()
    parts = {v: _replaced(own, old, stand_in) for v, own in draft.parts.items() if v != old}
    return Draft.of(draft.max_value, parts)


def _added(draft: Draft, random_: random.Random) -> Draft | None:
    """A new hub for the values around it."""
    top = draft.max_value
    h = random_.randint(2, max(2, top))
    if -h in draft.parts:
        return None
    inner = h // 2 + random_.choice((-1, 0, 1))
    own: Parts = (inner,) if inner >= 2 and random_.random() < 0.5 else ()
    reach = random_.randint(1, max(2, top // 12))
    values = [m for m in range(max(2, h - reach), min(top, h + reach) + 1) if m not in own]
    return draft.changed({-h: own, **dict.fromkeys(values, (-h,))})


def _exchanged(draft: Draft, random_: random.Random) -> Draft | None:
    """A positive value inside hubs is exchanged for one near it, in all of them."""
    inside = _inside(draft)
    if not inside:
        return None
    old = random_.choice(inside)
    new = old + random_.choice((-1, 1)) * random_.randint(1, max(1, old // 8))
    if not 2 <= new <= draft.max_value:
        return None
    own = dict(draft.parts)
    parts = {v: _replaced(p, old, (new,)) if v < 0 else p for v, p in own.items()}
    parts[old], parts[new] = own[new], own[old]  # the new one is made as the old one was
    return Draft.of(draft.max_value, parts)


def _refilled(draft: Draft, random_: random.Random) -> Draft | None:
    """A hub takes one positive value inside, made of -1, or none."""
    hubs = _hubs(draft)
    if not hubs:
        return None
    hub = random_.choice(hubs)
    near = random_.choice((-hub, -hub // 2)) + random_.randint(-1, 1)
    own = random_.choice(((), (near,), *((value,) for value in _inside(draft))))
    if own == draft.parts[hub] or any(not 2 <= value <= draft.max_value for value in own):
        return None
    new = draft.changed({hub: own, **dict.fromkeys(own, ())})
    if new is None:
        return None
    hubs = _hubs(new)  # some may be out of use now
    if not hubs:
        return new
    left = set(_inside(draft)) - set(_inside(new))
    nearest = {value: min(hubs, key=lambda other: abs(other + value)) for value in left}
    return new.changed({value: (other,) for value, other in nearest.items()})


def _inside(draft: Draft) -> list[int]:
    """The positive values inside hubs."""
    return sorted({u for v, own in draft.parts.items() if v < 0 for u in own if u > 0})


def _replaced(parts: Parts, old: int, new: Parts) -> Parts:
    return tuple(other for part in parts for other in (new if part == old else (part,)))
