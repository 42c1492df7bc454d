"""Random large changes of a draft: a hub moves, appears or disappears, along with all its uses.

Ones are implicit, so the atoms that contain a hub adjust by themselves.
"""

from __future__ import annotations

import random

from paramsearch.search.families.family_draft import FamilyDraft, Parts


def random_move(draft: FamilyDraft, rng: random.Random) -> FamilyDraft | None:
    """Change a draft at random; None if the change makes no sense for this draft."""
    move = rng.choice(
        (
            _move_hub,
            _move_hub,
            _remove_hub,
            _add_hub,
            _exchange_inner_value,
            _replace_inner_values,
            _replace_inner_values,
        )
    )
    return move(draft, rng)


def _move_hub(draft: FamilyDraft, rng: random.Random) -> FamilyDraft | None:
    """Change the value of a hub."""
    hubs = _hubs(draft)
    if not hubs:
        return None
    old = rng.choice(hubs)
    new = old + rng.choice((-1, 1)) * rng.randint(1, max(1, -old // 10))
    if new > -2 or new in draft.parts:
        return None
    parts = {v: _substituted(own, old, (new,)) for v, own in draft.parts.items() if v != old}
    parts[new] = draft.parts[old]
    return FamilyDraft.of(draft.max_value, parts)


def _remove_hub(draft: FamilyDraft, rng: random.Random) -> FamilyDraft | None:
    """Replace a hub everywhere by the nearest other hub or by ones."""
    hubs = _hubs(draft)
    if not hubs:
        return None
    old = rng.choice(hubs)
    others = [h for h in hubs if h != old and h not in draft.dependents[old]]
    nearest = min(others, key=lambda h: abs(h - old), default=None)
    substitute = (nearest,) if nearest is not None and rng.random() < 0.7 else ()
    parts = {v: _substituted(own, old, substitute) for v, own in draft.parts.items() if v != old}
    return FamilyDraft.of(draft.max_value, parts)


def _add_hub(draft: FamilyDraft, rng: random.Random) -> FamilyDraft | None:
    """Add a hub for the values around it."""
    top = draft.max_value
    h = rng.randint(2, max(2, top))
    if -h in draft.parts:
        return None
    inner = rng.choice(_inner_choices(draft, h, rng))
    reach = rng.randint(1, max(2, top // 12))
    users = [m for m in range(max(2, h - reach), min(top, h + reach) + 1) if m not in inner]
    return draft.changed({-h: inner, **dict.fromkeys(users, (-h,))})


def _exchange_inner_value(draft: FamilyDraft, rng: random.Random) -> FamilyDraft | None:
    """Exchange an inner value of hubs for a near one, in all of them."""
    inner = _inner_values(draft)
    if not inner:
        return None
    old = rng.choice(inner)
    new = old + rng.choice((-1, 1)) * rng.randint(1, max(1, old // 8))
    if not 2 <= new <= draft.max_value:
        return None
    before = draft.parts
    parts = {v: _substituted(p, old, (new,)) if v < 0 else p for v, p in before.items()}
    parts[old], parts[new] = before[new], before[old]  # their atoms trade places, too
    return FamilyDraft.of(draft.max_value, parts)


def _replace_inner_values(draft: FamilyDraft, rng: random.Random) -> FamilyDraft | None:
    """Give a hub one inner value, whose atom is then made of -1, or none."""
    hubs = _hubs(draft)
    if not hubs:
        return None
    hub = rng.choice(hubs)
    near = rng.choice((-hub, -hub // 2)) + rng.randint(-1, 1)
    inner = rng.choice(((), (near,), *((value,) for value in _inner_values(draft))))
    if inner == draft.parts[hub] or any(not 2 <= value <= draft.max_value for value in inner):
        return None
    new = draft.changed({hub: inner, **dict.fromkeys(inner, ())})
    if new is None:
        return None
    hubs = _hubs(new)  # without those that are no longer in use
    if not hubs:
        return new
    released = set(_inner_values(draft)) - set(_inner_values(new))
    nearest = {value: min(hubs, key=lambda h: abs(h + value)) for value in released}
    return new.changed({value: (h,) for value, h in nearest.items()})


def _inner_choices(draft: FamilyDraft, h: int, rng: random.Random) -> list[Parts]:
    """List inner values that a hub -h may have: none, about half of it, or one that is in use
    already, once or twice."""
    half = h // 2 + rng.choice((-1, 0, 1))
    used = [v for v in _inner_values(draft) if v <= h + 1]
    choices: list[Parts] = [(), ()]
    if half >= 2:
        choices += [(half,), (half,)]
    choices += [(v,) for v in used]
    choices += [(v, v) for v in used if 2 * v <= h + 1]
    return choices


def _hubs(draft: FamilyDraft) -> list[int]:
    return sorted(value for value in draft.parts if value < 0)


def _inner_values(draft: FamilyDraft) -> list[int]:
    """List the positive values inside hubs."""
    return sorted({u for v, own in draft.parts.items() if v < 0 for u in own if u > 0})


def _substituted(parts: Parts, old: int, new: Parts) -> Parts:
    return tuple(other for part in parts for other in (new if part == old else (part,)))
