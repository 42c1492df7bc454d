"""A dominating pair on any grid, from pairs on grids of their own: for other accountants.

Each pair's profile is linear in e^eps between two of its grid points, so its value at a point of
the other grid follows from the values at its own points; the least of all pairs' values is an upper
bound, and the convex hull of these is a pair (releases.md, Lemmas 2 and 8).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from accounting.base.arrays import FloatArray
from accounting.base.errors import TooLarge
from accounting.composition.dominating_pair import DominatingPair

LARGEST_EXPORT = 1 << 22
"""Largest number of grid points of a pair that is exported."""
_UP = 1 + 1e-11
"""Covers the relative errors of an interpolation."""


def on_grid(pairs: Sequence[DominatingPair], interval: float) -> DominatingPair:
    """Return one pair whose losses are multiples of ``interval``, and whose profile lies above the
    least of the pairs' profiles.

    Every one of ``pairs`` dominates the same mechanism, so the least of their profiles bounds it.
    """
    low = min(pair.base * pair.step for pair in pairs)
    high = max((pair.base + len(pair.mass)) * pair.step for pair in pairs)
    cells = (high - low) / interval
    if not cells < LARGEST_EXPORT - 4:
        raise TooLarge(
            f"value_discretization_interval = {interval!r} makes a grid of {cells:,.0f} losses, "
            f"more than {LARGEST_EXPORT:,}: take a wider one"
        )
    first = math.floor(low / interval) - 1
    points = (first + np.arange(math.ceil(cells) + 3)) * interval
    # a little to the left, where delta is no smaller: covers the rounding of the points
    points = points - 1e-14 * (1 + np.abs(points))
    value = np.min([_values(pair, points) for pair in pairs], axis=0)
    return DominatingPair.from_profile(value, base=first, step=interval)


def _values(pair: DominatingPair, points: FloatArray) -> FloatArray:
    """Return upper bounds of the pair's profile at these values of eps."""
    own = pair.profile(pair.base, len(pair.mass) + 1)
    place = np.clip(np.floor(points / pair.step).astype(np.int64) - pair.base, 0, len(own) - 2)
    offset = np.clip(points - (pair.base + place) * pair.step, 0.0, pair.step)
    share = np.expm1(offset) / math.expm1(pair.step)
    left, right = own[place], own[place + 1]
    found = np.where(points < (pair.base + len(own) - 1) * pair.step, left, own[-1])
    inside = (points >= pair.base * pair.step) & (points < (pair.base + len(own) - 1) * pair.step)
    found = np.where(inside, left - (left - right) * np.minimum(share, 1.0), found)
    below = points < pair.base * pair.step  # on the line from delta = 1 at e^eps = 0
    rise = np.exp(np.minimum(points - pair.base * pair.step, 0.0)) * (1 - 1e-11)
    found = np.where(below, 1 - (1 - own[0]) * rise, found)
    return np.asarray(np.minimum(found * _UP + 1e-11 * left * inside, 1.0))
