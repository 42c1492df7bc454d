"""delta(eps) of T releases in which one user's values change in any way, from above."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from accounting.arrays import FloatArray
from accounting.composition.change_profiles import Profiles, change_profiles
from accounting.composition.dominating_pair import DominatingPair
from accounting.workload import Workload

MOST_STEPS = 8
"""Releases up to which every one is a step of the induction; more are a power of the envelope."""
_MOST_KINDS = 48
_SAME = 1e-3


def upper_bound(
    workload: Workload, eps: float, releases: int, *, gap: float = 0.01, finer: float = 1.0
) -> float:
    profiles = change_profiles(workload, eps, releases, gap=gap, finer=finer)
    kinds = grouped(profiles, 1 if releases > MOST_STEPS else _MOST_KINDS)
    pairs = [
        DominatingPair.from_profile(row, base=profiles.base, step=profiles.step) for row in kinds
    ]
    tilt = profiles.tilt
    if releases > MOST_STEPS:
        (pair,) = pairs
        return pair.power(releases, tilt=tilt, tolerance=gap / 8, spare=0.0).delta(eps)
    so_far = DominatingPair.from_profile(kinds.max(axis=0), base=profiles.base, step=profiles.step)
    for _ in range(releases - 2):
        so_far = step(pairs, so_far, tilt)
    return max(pair.composed(so_far, tilt).delta(eps) for pair in pairs)


def step(pairs, so_far, tilt):
    products = [pair.composed(so_far, tilt) for pair in pairs]
    first = min(p.base for p in products)
    count = max(p.base + len(p.mass) for p in products) - first
    value = np.max([p.profile(first, count) for p in products], axis=0)
    return DominatingPair.from_profile(value, base=first, step=so_far.step)


def grouped(profiles: Profiles, most: int) -> FloatArray:
    """Profiles such that each change lies below one of them."""
    weight = np.exp(profiles.tilt * profiles.step * np.arange(profiles.size))
    kinds: list[FloatArray] = []
    for _, rows in profiles.blocks():
        for row in rows:
            for i, kind in enumerate(kinds):
                if (row <= kind * (1 + _SAME)).all() or len(kinds) >= most:
                    kinds[i] = np.maximum(kind, row)
                    break
            else:
                kinds.append(row.copy())
    return np.array(kinds)
