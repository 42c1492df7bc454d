"""A proof that no listed move of one parameter helps.

Listed are, for every atom, 1% less of p / (1 - p) at the same r, and 1% less of r at the same p:
the moves of a single parameter that save messages.  A move is useless when some pair's divergence,
bounded from below with all rounding errors, exceeds delta afterwards.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from accounting.arrays import FloatArray
from accounting.notary.notary import Report
from paramsearch.search.finish import worst_bounds
from paramsearch.search.model import Model

_STEP = 0.01
_PAIRS = 4
_GAP = 3e-4


@dataclass(frozen=True)
class Useless:
    """``proven`` of the ``listed`` moves violate delta; the others are undecided."""

    listed: int
    proven: int
    saving: float
    """Relative saving of the most that an undecided move could save."""


def useless_moves(model: Model, x: FloatArray, report: Report | None = None) -> Useless:
    excess = model.excess(x)
    near = np.flatnonzero(excess > excess.max() - 0.3)
    near = near[np.argsort(-excess[near])][:4000]
    _, gradient = model.estimator.gradient(x, near)
    step = np.log1p(-_STEP)
    listed = proven = 0
    saving = 0.0
    for atom in range(len(model.size)):
        for with_r in (0.0, 1.0):
            moved = x.copy()
            moved[0, atom] += step
            moved[1, atom] += step * with_r
            rise = step * (gradient[:, 0, atom] + with_r * gradient[:, 1, atom])
            pairs = near[np.argsort(-(excess[near] + rise))[:_PAIRS]]
            lower, _ = worst_bounds(model, moved, pairs, _GAP)
            listed += 1
            if lower.max() > model.target.delta:
                proven += 1
            else:
                less = model.size[atom] * np.exp(x[0, atom]) * _STEP
                saving = max(saving, float(less / model.messages(x)))
        if report is not None:
            report(f"{proven:,} of {listed:,} moves are useless")
    return Useless(listed, proven, saving)
