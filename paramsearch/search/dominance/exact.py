"""The dominance program in cvxpy: a readable model, and a solution to many digits.

Screening solves thousands of programs to a gap of a tenth of a percent; this solves one, for the
family that screening chose.  Only the pairs that matter are constraints: those that screening
found, and then whatever the solution violates.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from scipy import sparse

from accounting.base.arrays import FloatArray, IntArray
from accounting.base.errors import Undecided
from paramsearch.search.dominance.program import Dominance, DominanceProgram
from paramsearch.search.dominance.screening import Multipliers, screen, worst_by_column

_ROUNDS = 30
"""Largest number of programs with more and more pairs."""


def solve_exactly(
    program: DominanceProgram, near: Multipliers | None = None, *, gap: float = 1e-6
) -> Dominance:
    """Solve a program with cvxpy.

    Args:
        program: The program, in either norm.
        near: Multipliers to begin with; by default, those of screening.
        gap: Largest relative duality gap.

    Raises:
        Undecided: If the gap is out of reach.
    """
    if near is None:
        found = screen(program)
        near = Multipliers(found.pairs, found.multipliers)
    pairs, count = near.pairs, program.columns.count
    best = Dominance(np.empty(0), np.inf, 1.0, pairs, near.weights)
    for _ in range(_ROUNDS):
        u, multipliers = _solution(program, pairs)
        worst = worst_by_column(program, u)
        scale = max(worst.largest, 1e-300)
        weights = np.maximum(multipliers, 0) / np.maximum(multipliers, 0).sum()
        lower = program.bound(pairs, weights)
        value = program.cost(u / scale)
        if value / lower < best.value / best.lower:
            best = Dominance((scale / u) ** (1 / program.norm), value, lower, pairs, weights)
        if best.gap <= gap:
            return best
        violated = worst.violated()
        new = violated[~np.isin(violated @ [count, 1], pairs @ [count, 1])]
        if not len(new):
            break
        pairs = np.concatenate([pairs, new])
    raise Undecided(f"cvxpy stopped at a duality gap of {best.gap:.1e}; {gap:g} was asked for")


def _solution(program: DominanceProgram, pairs: IntArray) -> tuple[FloatArray, FloatArray]:
    """Solve the program with these pairs alone; return u and the multipliers."""
    import cvxpy

    cp: Any = cvxpy  # its types are incomplete
    row, column, value = program.rows(pairs)
    shape = len(pairs), len(program.weight)
    matrix = sparse.csr_matrix((value, column, row), shape=shape)
    # with the solution of screening as the unit, all variables are near 1
    unit = program.balanced(pairs)
    variable = cp.Variable(shape[1], pos=True)
    weight = program.weight * unit ** (-1 / program.norm)
    cost = cp.sum(cp.multiply(weight / weight.sum(), cp.power(variable, -1 / program.norm)))
    constraint = matrix @ sparse.diags(unit) @ variable <= 1
    problem = cp.Problem(cp.Minimize(cost), [constraint])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # the gap says how accurate a solution is
        problem.solve(solver=cp.CLARABEL)
    if variable.value is None:
        raise Undecided(f"cvxpy found no solution of the dominance program: {problem.status}")
    return np.asarray(variable.value * unit), np.asarray(constraint.dual_value)
