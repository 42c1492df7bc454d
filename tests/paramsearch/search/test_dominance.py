"""The dominance program against cvxpy, and the paper's parameters against its numbers."""

from __future__ import annotations

import math

import cvxpy
import numpy as np
import pytest

import accounting
from accounting import Family, Undecided
from accounting.model.costs import noise_messages
from accounting.model.problem import Problem
from paramsearch.search import paper_parameters as paper
from paramsearch.search.dominance.screening import dominance
from paramsearch.search.target import Target


def by_cvxpy(family: Family) -> float:
    """All pairs written down; another solver."""
    columns = family.columns
    top = family.max_value
    rows = np.array(
        [np.abs(columns[j] - columns[k]) for j in range(top + 1) for k in range(j)], float
    )
    used = rows.any(axis=0)
    size = np.array([len(elements) for elements in family.atoms], float)[used]
    u = cvxpy.Variable(int(used.sum()), pos=True)
    problem = cvxpy.Problem(cvxpy.Minimize(size @ cvxpy.inv_pos(u)), [rows[:, used] @ u <= 1])
    problem.solve(solver=cvxpy.CLARABEL)
    return float(problem.value)


FAMILIES = [
    accounting.ones(2),
    accounting.halves(10),
    accounting.ones(10),
    accounting.hubs(30),
    accounting.radix(25, 4),
    accounting.greedy(20, [9, 3]),
]


@pytest.mark.parametrize("family", FAMILIES)
def test_value_and_lower_bound_enclose_the_optimum(family: Family) -> None:
    found = dominance(family)
    truth = by_cvxpy(family)
    assert found.gap <= 1e-3
    assert found.lower * (1 - 1e-6) <= truth <= found.value * (1 + 1e-6)


@pytest.mark.parametrize("family", FAMILIES)
def test_the_vector_dominates_every_difference(family: Family) -> None:
    t_prime = dominance(family, gap=1e-2).t_prime
    columns = family.columns
    for j in range(family.max_value + 1):
        for k in range(j):
            assert np.sum(np.abs(columns[j] - columns[k]) / t_prime) <= 1 + 1e-9


def test_known_values() -> None:
    """The design notes' table, rounded there."""
    for family, value in [
        (accounting.halves(10), 446),
        (accounting.ones(10), 202),
        (accounting.halves(50), 6639),
        (accounting.ones(50), 3358),
    ]:
        found = dominance(family)
        assert found.lower - 0.5 <= value <= found.value + 0.5


def test_closed_form_at_two() -> None:
    """1/t_2 + 2/t_1 <= 1: (sqrt(3) + sqrt(4))^2."""
    found = dominance(accounting.ones(2), gap=1e-5)
    assert found.lower * (1 - 1e-12) <= (math.sqrt(3) + 2) ** 2 <= found.value * (1 + 1e-12)


def test_nothing_to_dominate_and_a_gap_out_of_reach() -> None:
    assert dominance(accounting.ones(1)).value == 0
    with pytest.raises(Undecided, match="duality gap"):
        dominance(accounting.halves(10), gap=1e-9, rounds=1)


@pytest.mark.parametrize(
    ("max_value", "share", "published"),
    [(1, 0.9, 4_400), (2, 0.9, 79_768), (5, 0.9, 515_929), (10, 0.9, 1_760_219),
     (20, 0.9, 5_516_625), (50, 0.1, 2_723_487)],
)  # fmt: skip
def test_the_papers_refined_numbers(max_value: int, share: float, published: float) -> None:
    goal = Target(Problem(n=10**6, eps=1.0, delta=1e-6, max_value=max_value), share)
    found = noise_messages(goal.step, paper.refined(goal).atoms)
    assert abs(found - published) <= 1e-3 * published


def test_the_theorem_is_the_tests_own() -> None:
    from theorem import theorem

    goal = Target(Problem(n=10**6, eps=1.0, delta=1e-6, max_value=10), 0.9)
    ours = {(a, round(law.r, 6), round(law.p, 12)) for a, law in paper.theorem(goal).atoms}
    theirs = {
        (tuple(sorted(entry["atom"])), round(entry["r"], 6), round(entry["p"], 12))
        for entry in theorem(10)["atoms"]
    }
    assert ours <= theirs  # without the atoms that nothing reaches
