"""The paper's own parameters (its theorem and remark), as configuration files."""

from __future__ import annotations

import math
from typing import Any


def theorem(
    max_value: int,
    *,
    eps: float = 1.0,
    delta: float = 1e-6,
    gamma: float = 0.1,
    log: Any = math.log2,
    cut: float = 1.0,
) -> dict[str, Any]:
    """eps* = (1 - gamma) eps, r = 3(1 + log(./delta)), p = e^{-0.2 eps / .}, all the paper's atoms.

    ``log`` is the logarithm in Gamma = max_value * ceil(1 + log(max_value)); t is divided by
    ``cut``.
    """
    eps1 = eps2 = min(1.0, gamma * eps) / 2
    delta1 = delta2 = delta / 2
    values = [m for k in range(2, max_value + 1) for m in (k, -k)]
    atoms = [[-1, 1]] + [[m, -math.floor(m / 2), -math.ceil(m / 2)] for m in values]
    gamma_ = max_value * math.ceil(1 + log(max_value))
    entries = [
        {
            "atom": [-1, 1],
            "r": 3 * (1 + math.log(1 / delta1)),
            "p": math.exp(-0.2 * eps1 / (max_value / cut)),
        }
    ]
    for atom in atoms:
        m = max(abs(value) for value in atom)
        t = math.ceil(gamma_ / m) / cut
        entries.append(
            {
                "atom": atom,
                "r": 3 * (1 + math.log(len(atoms) / delta2)),
                "p": math.exp(-0.2 * eps2 / (2 * t)),
            }
        )
    return {
        "max_value": max_value,
        "eps": eps,
        "delta": delta,
        "n": 10**6,
        "eps_central": (1 - gamma) * eps,
        "atoms": entries,
    }
