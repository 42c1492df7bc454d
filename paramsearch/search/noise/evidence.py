"""Conclusions from a solution of stage 2 for stage 1."""

from __future__ import annotations

import numpy as np

from paramsearch.search.dominance.calibration import Evidence
from paramsearch.search.noise.noise_optimizer import Solution

_SMALLEST_SHARE = 1e-3
"""Pairs with a smaller share of the sum of all multipliers are ignored."""


def evidence_of(solution: Solution) -> Evidence:
    """Return the radii of the active pairs of a solution, and the r of its laws."""
    model = solution.model
    mean, r = np.exp(model.per_atom(solution.x))
    t_prime = mean / np.sqrt(r)
    share = solution.multipliers / solution.multipliers.sum()
    columns = model.family.sparse_columns
    distance, radius, weight = [], [], []

    def variance_of(j: int, k: int) -> float:
        """Return the variance of the loss of a change, roughly."""
        unit = columns[j].get(model.unit, 0) - columns[k].get(model.unit, 0)
        found = (max(abs(unit), abs(unit + j - k)) / t_prime[model.unit]) ** 2
        for s in {*columns[j], *columns[k]} - {model.unit}:
            found += ((columns[j].get(s, 0) - columns[k].get(s, 0)) / t_prime[s]) ** 2
        return float(found)

    for place in np.flatnonzero(share > _SMALLEST_SHARE).tolist():
        for change in model.changes[solution.pairs[place]]:
            variance = sum(variance_of(j, k) for j, k in change.coordinates)
            longest = max(abs(j - k) for j, k in change.coordinates)
            distance.append(longest)
            radius.append(model.target.slack(longest) / np.sqrt(variance))
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
