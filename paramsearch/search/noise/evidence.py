"""What a solution of stage 2 tells stage 1."""

from __future__ import annotations

import numpy as np

from paramsearch.search.dominance.calibration import Evidence
from paramsearch.search.noise.noise_optimizer import Solution

_SMALLEST_SHARE = 1e-3
"""Pairs with a smaller share of the sum of all multipliers are ignored."""


def evidence_of(solution: Solution) -> Evidence:
    """The radii of the active pairs of a solution, and the r of its noises."""
    model = solution.model
    mean, r = np.exp(model.per_atom(solution.x))
    t_prime = mean / np.sqrt(r)
    share = solution.multipliers / solution.multipliers.sum()
    columns = model.family.sparse_columns
    distance, radius, weight = [], [], []
    for place in np.flatnonzero(share > _SMALLEST_SHARE).tolist():
        for change in model.changes[solution.pairs[place]]:
            j, k = change.before, change.after
            shifts = {
                s: columns[j].get(s, 0) - columns[k].get(s, 0) for s in {*columns[j], *columns[k]}
            }
            unit = shifts.pop(model.unit, 0)
            variance = (max(abs(unit), abs(unit + j - k)) / t_prime[model.unit]) ** 2
            variance += sum((shift / t_prime[s]) ** 2 for s, shift in shifts.items())
            distance.append(abs(j - k))
            radius.append(model.target.slack(abs(j - k)) / np.sqrt(variance))
            weight.append(share[place])
    messages = model.atom_size * mean
    others = np.delete(np.arange(len(mean)), model.unit)
    average = np.average(np.sqrt(r[others]), weights=messages[others]) if len(others) else 1.0
    return Evidence(
        distance=np.array(distance),
        radius=np.array(radius),
        weight=np.array(weight),
        r_unit=float(r[model.unit]),
        r_others=float(average) ** 2,
    )
