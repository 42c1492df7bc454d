"""The paper's own parameters: its theorem, alone or with the t' of its program.

Ghazi, Kumar, Manurangsi, Pagh, Sinha (ICML 2021), thm:main-dp-opt and its remark: with eps - eps* =
eps_1 + eps_2, delta = delta_1 + delta_2 and the family {m, -ceil(m/2), -floor(m/2)},

    {-1, +1} has NB(3 (1 + log(1/delta_1)), e^{-0.2 eps_1 / max_value}) and, like every atom s,
    NB(3 (1 + log(|S|/delta_2)), e^{-0.2 eps_2 / t'_s}),

where t' dominates every difference of two columns.  The theorem takes t' = 2 t with
t_s = ceil(Gamma / m), Gamma = max_value ceil(1 + log2(max_value)).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache

import numpy as np

from accounting.base.arrays import FloatArray
from accounting.base.errors import InvalidParameter
from accounting.base.progress import Progress, silent
from accounting.model.configuration import Proposal
from accounting.model.costs import AtomParameters
from accounting.model.family import UNIT, Family, halves
from accounting.model.laws.negative_binomial import NegativeBinomial
from paramsearch.search.dominance.screening import dominance
from paramsearch.search.target import Target

_halves = cache(halves)


def theorem(target: Target) -> Proposal:
    """Return the analytic parameters, with the slack split into halves."""
    family = _family(target)
    top = target.problem.max_value
    gamma = top * math.ceil(1 + math.log2(top))
    t = np.array([math.ceil(gamma / max(map(abs, elements))) for elements in family.atoms])
    slack = min(1.0, target.problem.eps - target.eps_central)
    half = slack / 2 if top > 1 else slack
    return _proposal(target, family, 2.0 * t, eps_1=half, eps_2=half)


def refined(
    target: Target,
    progress: Progress = silent,
    t_prime: FloatArray | None = None,
) -> Proposal:
    """Return the theorem's parameters with t' from the dominance program and the best split of the
    slack.

    ``t_prime`` is computed if it is not given.
    """
    family = _family(target)
    slack = target.problem.eps - target.eps_central
    if target.problem.max_value == 1:
        return _proposal(target, family, np.zeros(1), eps_1=slack, eps_2=0.0)
    if t_prime is None:
        t_prime = dominance(family).t_prime
    cost = _split_cost(target, family, t_prime, slack)
    low, high = 0.01, 0.99
    for _ in range(60):
        first, second = low + (high - low) / 3, high - (high - low) / 3
        low, high = (low, second) if cost(first) < cost(second) else (first, high)
    share = (low + high) / 2
    return _proposal(target, family, t_prime, eps_1=share * slack, eps_2=(1 - share) * slack)


def _family(target: Target) -> Family:
    if target.problem.releases > 1:
        raise InvalidParameter("the paper's parameters are for one release; use --method search")
    return _halves(target.problem.max_value)


def _proposal(
    target: Target, family: Family, t_prime: FloatArray, *, eps_1: float, eps_2: float
) -> Proposal:
    problem = target.problem
    top = problem.max_value
    part = problem.delta if top == 1 else problem.delta / 2
    listed = [(UNIT, 3 * (1 + math.log(1 / part)), math.exp(-0.2 * eps_1 / top))]
    if top > 1:
        r = 3 * (1 + math.log((2 * top - 1) / part))  # the paper counts atoms for m and for -m
        listed += [
            (elements, r, math.exp(-0.2 * eps_2 / float(t)))
            for elements, t in zip(family.atoms, t_prime, strict=True)
            if t > 0
        ]
    if any(p >= 1 for _, _, p in listed):
        raise InvalidParameter(
            f"eps - eps* = {problem.eps - target.eps_central:g} is so small that a p rounds to 1"
        )
    return Proposal(
        max_value=top,
        atoms=tuple(AtomParameters(s, NegativeBinomial(r, p)) for s, r, p in listed),
        eps_central=target.eps_central,
        eps=problem.eps,
        delta=problem.delta,
        n=problem.n,
        adjacency=problem.adjacency,
    )


def _split_cost(
    target: Target, family: Family, t_prime: FloatArray, slack: float
) -> Callable[[float], float]:
    """Return the messages of a proposal as a function of the first atom's share of the slack."""
    even = _proposal(target, family, t_prime, eps_1=slack / 2, eps_2=slack / 2)
    noises = [(len(elements), noise) for elements, noise in even.atoms if noise]
    weight = np.array([size * noise.r for size, noise in noises])
    rate = -2 * np.log([noise.p for _, noise in noises])  # -log p per unit of share

    def cost(share: float) -> float:
        first = weight[0] / math.expm1(rate[0] * share)
        return float(first + np.sum(weight[1:] / np.expm1(rate[1:] * (1 - share))))

    return cost
