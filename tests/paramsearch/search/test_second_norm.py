"""The dominance program in the second norm: bounds, prices and solvers against each other."""

from __future__ import annotations

import random
from dataclasses import replace

import cvxpy
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import accounting
from accounting import Undecided
from accounting.base.arrays import FloatArray
from accounting.base.threads import use_cores
from accounting.model.problem import Problem
from paramsearch.search.budget import Budget
from paramsearch.search.dominance.calibration import Calibration, Evidence, TailCorrection
from paramsearch.search.dominance.draft_arrays import DraftArrays
from paramsearch.search.dominance.exact import solve_exactly
from paramsearch.search.dominance.priced_moves import priced_moves
from paramsearch.search.dominance.program import (
    DominanceProgram,
    InputColumns,
    by_distance,
    paper_program,
)
from paramsearch.search.dominance.screening import Multipliers, screen, worst_by_column
from paramsearch.search.families import hub_families
from paramsearch.search.families.family_draft import FamilyDraft
from paramsearch.search.families.random_moves import random_move
from paramsearch.search.family_screening import FamilyScreening, predicted
from paramsearch.search.settings import ScreeningSettings
from paramsearch.search.target import Target


def target(top: int, share: float) -> Target:
    return Target(Problem(n=10**6, eps=1.0, delta=1e-6, max_value=top), share)


def draft(top: int, share: float, seed: int = 0, changes: int = 0) -> FamilyDraft:
    source = random.Random(seed)
    found = hub_families.draft_from_hubs(
        target(top, share), hub_families.usual_hubs(target(top, share))
    )
    assert found is not None
    for _ in range(changes):
        found = random_move(found, source) or found
    return found


def program(made: FamilyDraft, share: float) -> DominanceProgram:
    goal = target(made.max_value, share)
    arrays = DraftArrays.of(made)
    return Calibration.typical(goal).program(goal, arrays.inputs, arrays.size)


def left_sides(
    made: FamilyDraft, share: float, t_prime: FloatArray
) -> dict[tuple[int, int], float]:
    """The left side of every constraint, from the definition."""
    goal = target(made.max_value, share)
    z = 1.1 * np.sqrt(2 * np.log(1e6))
    order = {-1: 0, **{value: i + 1 for i, value in enumerate(made.parts)}}
    found = {}
    for j in range(made.max_value + 1):
        for k in range(j):
            keys = {*made.columns[j], *made.columns[k]} | {-1}
            total = 0.0
            for value in keys:
                a = made.columns[j].get(value, 0) - made.columns[k].get(value, 0)
                a = max(abs(a), abs(a + j - k)) if value == -1 else abs(a)
                total += (a / t_prime[order[value]]) ** 2
            found[j, k] = total * (z / goal.slack(j - k)) ** 2
    return found


@pytest.mark.parametrize(("top", "share"), [(2, 0.9), (7, 0.5), (20, 0.9), (30, 0.1)])
def test_screening_and_cvxpy_enclose_the_optimum(top: int, share: float) -> None:
    """cvxpy with every pair written down is the oracle."""
    made = draft(top, share)
    whole = program(made, share)
    pairs = np.array([(j, k) for j in range(top + 1) for k in range(j)])
    row, column, value = whole.rows(pairs)
    matrix = np.zeros((len(pairs), len(whole.weight)))
    np.add.at(matrix, (np.repeat(np.arange(len(pairs)), np.diff(row)), column), value)
    u = cvxpy.Variable(len(whole.weight), pos=True)
    scale = matrix.max(axis=0)
    cost = cvxpy.sum(cvxpy.multiply(whole.weight * np.sqrt(scale), cvxpy.power(u, -0.5)))
    problem = cvxpy.Problem(cvxpy.Minimize(cost / whole.weight.sum()), [matrix / scale @ u <= 1])
    problem.solve(solver=cvxpy.CLARABEL)
    truth = float(problem.value) * float(whole.weight.sum())
    found = screen(whole)
    assert found.gap <= 1e-3
    assert found.lower * (1 - 1e-6) <= truth <= found.value * (1 + 1e-6)
    exact = solve_exactly(whole)
    assert exact.gap <= 1e-6
    assert exact.lower * (1 - 1e-6) <= truth <= exact.value * (1 + 1e-6)


@settings(deadline=None, max_examples=30)
@given(st.integers(2, 40), st.sampled_from([0.1, 0.5, 0.9]), st.integers(0, 10**6))
def test_solutions_are_feasible_and_bounds_hold(top: int, share: float, seed: int) -> None:
    made = draft(top, share, seed, 4)
    whole = program(made, share)
    found = screen(whole)
    sides = left_sides(made, share, found.t_prime)
    assert max(sides.values()) <= 1 + 1e-9
    assert abs(found.value - whole.weight @ found.t_prime) <= 1e-9 * found.value
    assert found.lower <= found.value * (1 + 1e-12)
    assert abs(whole.bound(found.pairs, found.multipliers) - found.lower) <= 0.02 * found.lower
    # any multipliers bound the optimum
    weights = np.random.default_rng(seed).random(len(found.pairs))
    assert whole.bound(found.pairs, weights / weights.sum()) <= found.value * (1 + 1e-9)


@settings(deadline=None, max_examples=20)
@given(st.integers(2, 40), st.sampled_from([0.1, 0.9]), st.integers(0, 10**6))
def test_passes_over_all_pairs_agree_with_the_definition(top: int, share: float, seed: int) -> None:
    made = draft(top, share, seed, 3)
    whole = program(made, share)
    t_prime = np.exp(np.random.default_rng(seed).normal(4, 1, len(whole.weight)))
    sides = left_sides(made, share, t_prime)
    worst = worst_by_column(whole, t_prime**-2.0)
    violated, largest = worst.violated(), worst.largest
    assert abs(largest - max(sides.values())) <= 1e-9 * largest
    for j, k in violated.tolist():
        assert sides[j, k] > 1 - 1e-9
    level = float(np.median(list(sides.values())))
    listed = {(j, k) for j, k in whole.pairs_above(t_prime, level * (1 + 1e-9)).tolist()}
    assert listed <= {pair for pair, side in sides.items() if side > level}
    assert {pair for pair, side in sides.items() if side > level * (1 + 1e-6)} <= listed


@settings(deadline=None, max_examples=15)
@given(st.integers(3, 30), st.sampled_from([0.1, 0.9]), st.integers(0, 10**6))
def test_prices_are_the_bounds_after_the_moves(top: int, share: float, seed: int) -> None:
    made = draft(top, share, seed, 4)
    whole = program(made, share)
    solution = screen(whole)
    moves = priced_moves(DraftArrays.of(made), whole, solution)
    assert moves == sorted(moves)
    for move in moves[:: max(1, len(moves) // 12)]:
        changed = made.changed({move.value: move.parts})
        assert changed is not None  # no cycles
        truth = program(changed, share).bound(solution.pairs, solution.multipliers)
        # atoms that are no longer in use still cost something in the price
        assert truth <= move.bound * (1 + 1e-6)
        if len(changed.parts) == len(made.parts):
            assert move.bound <= truth * (1 + 1e-6)


def test_a_warm_start_and_an_early_end() -> None:
    whole = program(draft(30, 0.9), 0.9)
    found = screen(whole)
    again = screen(whole, Multipliers(found.pairs, found.multipliers))
    assert again.gap <= 1e-3
    assert again.lower <= found.value
    assert screen(whole, give_up=found.lower / 2).lower > found.lower / 2


def test_columns_of_a_family_put_the_unit_first() -> None:
    family = accounting.halves(9)
    moved = accounting.Family(9, (*family.atoms[1:], family.atoms[0]))
    first, last = InputColumns.of(family), InputColumns.of(moved)
    assert np.array_equal(first.unit, last.unit)
    assert np.array_equal(first.entry, last.entry)
    values = [screen(paper_program(each)).value for each in (family, moved)]
    assert abs(values[0] - values[1]) <= 1e-9 * values[0]


def test_a_matrix_by_distance_is_not_stored() -> None:
    matrix = by_distance(np.array([5.0, 7.0, 9.0]))
    assert matrix.tolist() == [[5, 7, 9], [7, 5, 7], [9, 7, 5]]
    assert by_distance(np.ones(100_000)).shape == (100_000, 100_000)


def test_cvxpy_says_when_the_gap_is_out_of_reach() -> None:
    with pytest.raises(Undecided, match="duality gap"):
        solve_exactly(program(draft(8, 0.9), 0.9), gap=1e-18)


def test_evidence_of_stage_2_changes_the_radii() -> None:
    usual = Calibration.typical(target(20, 0.9))
    evidence = Evidence(
        distance=np.array([20, 10]),
        radius=np.array([5.0, 7.0]),
        weight=np.array([3.0, 1.0]),
        r_unit=12.0,
        r_others=25.0,
    )
    learned = usual.learned(evidence)
    assert abs(learned.radius[20] - 5.0) < 0.1
    assert abs(learned.radius[10] - 7.0) < 0.2
    assert learned.r(3).tolist() == [12.0, 25.0, 25.0]


def screening(top: int, share: float, seed: int = 0) -> FamilyScreening:
    goal = target(top, share)
    return FamilyScreening(goal, Calibration.typical(goal), Budget(), random.Random(seed))


def test_screening_is_deterministic_and_improves() -> None:
    runs = [screening(20, 0.9, 3).run([], 60, until=1.0) for _ in range(2)]
    assert [entry.draft.key for entry in runs[0]] == [entry.draft.key for entry in runs[1]]
    prices = [entry.price for entry in runs[0]]
    assert prices == sorted(prices)
    assert len({entry.shape for entry in runs[0]}) == len(runs[0])
    assert runs[0][0].value < 24_300  # the usual shape has 25,600


def test_threads_do_not_change_what_is_found() -> None:
    try:
        use_cores(1)
        alone = screening(20, 0.1, 5).run([], 40, until=1.0)
    finally:
        use_cores(None)
    together = screening(20, 0.1, 5).run([], 40, until=1.0)
    assert [entry.draft.key for entry in alone] == [entry.draft.key for entry in together]
    assert [entry.price for entry in alone] == [entry.price for entry in together]


def test_heavy_tails_are_learned_from_both_stages() -> None:
    few = TailCorrection.fitted([0.5, 0.6], [1.0, 1.0])
    assert few.typical == 0.55
    assert 0.03 < few.rate < 0.08  # from the typical rate, 0.7, most of the way to 0
    concentrations = np.linspace(0.4, 0.7, 30)
    many = TailCorrection.fitted(concentrations.tolist(), np.exp(1.1 * concentrations).tolist())
    assert abs(many.rate - 1.1) < 0.01
    assert many.factor(many.typical) == 1.0


@settings(deadline=None, max_examples=15)
@given(st.integers(2, 30), st.sampled_from([0.1, 0.9]), st.integers(0, 10**6))
def test_concentration_is_that_of_the_losses_of_the_atoms(
    top: int, share: float, seed: int
) -> None:
    entry = screening(top, share).solve(draft(top, share, seed, 3))
    columns = [dict(column) for column in entry.draft.family.sparse_columns]
    unit = entry.draft.family.atoms.index((-1, 1))
    places = {entry.draft.family.basis[value]: i + 1 for value, i in entry.arrays.place.items()}
    total = 0.0
    for (j, k), weight in zip(
        entry.solution.pairs.tolist(), entry.solution.multipliers.tolist(), strict=True
    ):
        at_unit = columns[j].get(unit, 0) - columns[k].get(unit, 0)
        losses = [max(abs(at_unit), abs(at_unit + j - k)) / entry.solution.t_prime[0]]
        for s in {*columns[j], *columns[k]} - {unit}:
            shift = columns[j].get(s, 0) - columns[k].get(s, 0)
            losses.append(abs(shift) / entry.solution.t_prime[places[s]])
        total += weight * sum(x**3 for x in losses) / sum(x**2 for x in losses) ** 1.5
    assert abs(total / entry.concentration - 1) < 1e-9


@pytest.mark.slow
def test_large_problems_take_shapes_of_smaller_ones() -> None:
    found = screening(150, 0.8).run([], 2, until=1.0)[0]
    usual = screening(150, 0.8).solve(draft(150, 0.8))
    assert found.value < 0.85 * usual.value
    assert found.draft.family.exact


def test_a_prediction_follows_a_similar_family() -> None:
    near = predicted(target(30, 0.8)).draft
    found = predicted(target(45, 0.8), near)
    assert found.draft.max_value == 45
    assert found.messages > found.value
    searched = predicted(target(45, 0.8))
    assert found.messages < 1.1 * searched.messages


def test_fewer_changes_where_each_takes_longer() -> None:
    changes = ScreeningSettings().changes
    at = {top: changes(top, 80) for top in (2, 20, 50, 64, 200, 5000)}
    assert at[20] > at[50] == at[64] > at[200] > at[5000] >= 1
    assert changes(20, 8) == at[20] // 10
    assert at[2] == 32


def test_recalibration_solves_the_pool_again() -> None:
    search = screening(12, 0.9)
    before = search.run([], 20, until=1.0)[0]
    wider = replace(search.calibration, radius=search.calibration.radius * 1.1)
    search.recalibrate(wider)
    assert abs(search.best[0].value / before.value - 1.1) < 0.01
