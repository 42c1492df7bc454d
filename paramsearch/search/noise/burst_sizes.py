"""A search for the m of the bursts of every atom: how much the sizes of bursts vary.

Families are compared with one m for all atoms.  Different m for different atoms save a few tenths
of a per cent more: atoms that the worst changes shift far want other sizes than those that they
shift by one.  What another m would save is priced with the multipliers of stage 2, atom by atom at
the same mean and r; then all atoms change at once, and stage 2 decides.  That ends in an optimum
that depends on where it began, so few atoms begin once more with larger sizes.
"""

from __future__ import annotations

import math
import time
from dataclasses import replace

import numpy as np

from accounting.base.arrays import FloatArray, IntArray
from accounting.base.deadline import check_time
from accounting.base.errors import required
from paramsearch.search.noise.noise_model import NoiseModel
from paramsearch.search.noise.noise_optimizer import Solution, optimize_noise

SIZES = (1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 24, 32, 48, 64)
"""The m that are tried."""
_ROUNDS = 8
"""Most times that all atoms change."""
_STEPS, _TOLERANCE = 12, 1e-4
"""Of stage 2 after each change."""
_WORTHWHILE = 1e-5
"""Relative gain in messages from which a change of one atom, or a round, is worthwhile."""
_FEW_LAWS, _LARGER = 24, 2
"""Laws up to which sizes begin once more, larger by this factor: saves 0.08 % at max_value 2 and
0.03 % at 5, nothing at 10."""
_ACTIVE = 1e-3
"""Pairs with a smaller share of the sum of all multipliers are ignored."""


def with_best_sizes(solution: Solution, *, deadline: float = math.inf) -> Solution:
    """Choose m for every law as long as that pays; no round begins after the ``deadline``."""
    best = _improved(solution, deadline)
    sizes = np.minimum(_LARGER * solution.model.burst_sizes, SIZES[-1])
    if len(sizes) > _FEW_LAWS or time.monotonic() >= deadline:
        return best
    other = _improved(_resized(solution, sizes, deadline), deadline)
    return other if other.messages < best.messages else best


def _resized(solution: Solution, sizes: IntArray, deadline: float) -> Solution:
    """Find the best noise with these sizes."""
    model = replace(solution.model, sizes=sizes)
    return optimize_noise(model, solution.x, tolerance=_TOLERANCE, steps=_STEPS, deadline=deadline)


def _improved(solution: Solution, deadline: float) -> Solution:
    reach = len(SIZES)
    for _ in range(_ROUNDS):
        if time.monotonic() >= deadline:
            break
        sizes = _cheaper_sizes(solution, reach)
        if (sizes == solution.model.burst_sizes).all():
            break
        found = _resized(solution, sizes, deadline)
        if found.messages < solution.messages * (1 - _WORTHWHILE):
            solution = found
        elif reach > 1:
            reach = 1  # prices are good for small changes only
        else:
            break
    return solution


def _cheaper_sizes(solution: Solution, reach: int) -> IntArray:
    """Return the m of each law that promises the largest gain, at most ``reach`` sizes away."""
    active = solution.multipliers > _ACTIVE * solution.multipliers.sum()
    pairs, price = solution.pairs[active], solution.multipliers[active]
    sizes = solution.model.burst_sizes
    best = sizes.copy()
    for law, shifted in enumerate(_pairs_by_law(solution.model, pairs)):
        if not len(shifted):
            continue
        check_time()
        some, prices = pairs[shifted], price[shifted]
        before = _cost(solution, sizes, some, prices)
        here = int(np.searchsorted(SIZES, sizes[law]))
        gain = _WORTHWHILE * solution.messages
        for other in SIZES[max(0, here - reach) : here + reach + 1]:
            changed = sizes.copy()
            changed[law] = other
            saved = before - _cost(solution, changed, some, prices)
            if saved > gain:
                best[law], gain = other, saved
    return best


def _pairs_by_law(model: NoiseModel, pairs: IntArray) -> list[IntArray]:
    """Return for each law the places of the pairs that shift its noise."""
    view = model.view_pairs
    central = required(view.central, "the central noise of the pairs")
    start, factors = view.factors_of(pairs)
    plain = factors < len(view.plain)
    noise = np.full(len(factors), central.noise)
    noise[plain] = view.plain[factors[plain], 0]
    row = np.repeat(np.arange(len(pairs)), np.diff(start))
    return [np.unique(row[noise == law]) for law in range(len(model.size))]


def _cost(solution: Solution, sizes: IntArray, pairs: IntArray, price: FloatArray) -> float:
    """Return the cost of the divergences of these pairs, in messages, up to a constant."""
    return float(price @ solution.model.estimator.with_sizes(sizes).log_delta(solution.x, pairs))
