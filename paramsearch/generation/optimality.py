"""A proof that no listed move of one parameter helps.

Listed are, for every atom, 1% less of p / (1 - p) at the same r, and 1% less of r at the same p:
the moves of a single parameter that save messages.  A move is useless when some pair's divergence,
bounded from below with all rounding errors, exceeds delta afterwards.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from accounting.base.arrays import FloatArray
from accounting.base.progress import Progress, silent
from accounting.notary.notary import Notary
from paramsearch.certification.certify import claimed
from paramsearch.generation.finish import proposed, worst_bounds
from paramsearch.problem import Request
from paramsearch.search.noise.noise_model import Model

_STEP = 0.01
_LOG_STEP = math.log1p(-_STEP)
_MOST_ANY = 12
"""Releases times max_value, for moves against any sequence of changes: a proof each."""
_PAIRS = 4
_GAP = 3e-4


@dataclass(frozen=True)
class Useless:
    """``proven`` of the ``listed`` moves violate delta; the others are undecided."""

    listed: int
    proven: int
    saving: float
    """Relative saving of the most that an undecided move could save."""


def useless_moves(
    model: Model, x: FloatArray, request: Request, progress: Progress = silent
) -> Useless | None:
    """None where every single proof would take too long."""
    target = model.target
    if target.problem.any_sequence:
        if target.problem.releases * target.problem.max_value > _MOST_ANY:
            return None
        return _counted(
            model, x, lambda moved, *_: _any_sequence_breaks(model, moved, request), progress
        )
    excess = model.excess(x)
    near = np.flatnonzero(excess > excess.max() - 0.3)
    near = near[np.argsort(-excess[near])][:4000]
    _, gradient = model.estimator.gradient(x, near)

    def breaks(moved: FloatArray, atom: int, with_r: float) -> bool:
        rise = _LOG_STEP * (gradient[:, 0, atom] + with_r * gradient[:, 1, atom])
        pairs = near[np.argsort(-(excess[near] + rise))[:_PAIRS]]
        lower, _ = worst_bounds(model, moved, pairs, _GAP)
        return bool(lower.max() > target.problem.delta)

    return _counted(model, x, breaks, progress)


def _any_sequence_breaks(model: Model, x: FloatArray, request: Request) -> bool:
    """By the notary, whose lower bounds are of adaptive sequences."""
    file = proposed(model, x, request)
    notary = Notary(claimed(file), model.target.problem.releases)
    found = notary.enclose(model.target.problem.eps, gap=1e-3, claim=model.target.problem.delta)
    return found.enclosure.lower > model.target.problem.delta


def _counted(
    model: Model,
    x: FloatArray,
    breaks: Callable[[FloatArray, int, float], bool],
    progress: Progress = silent,
) -> Useless:
    listed = proven = 0
    saving = 0.0
    for atom in range(len(model.size)):
        for with_r in (0.0, 1.0):
            moved = x.copy()
            moved[0, atom] += _LOG_STEP
            moved[1, atom] += _LOG_STEP * with_r
            listed += 1
            if breaks(moved, atom, with_r):
                proven += 1
            else:
                less = model.size[atom] * np.exp(x[0, atom]) * _STEP
                saving = max(saving, float(less / model.messages(x)))
        progress(f"{proven:,} of {listed:,} moves are useless")
    return Useless(listed, proven, saving)
