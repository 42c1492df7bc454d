"""The two stages for one family, as a person calls them: against definitions and other solvers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from test_dominance import FAMILIES, by_cvxpy

import accounting
from accounting import Family, InvalidParameter, NegativeBinomial, Problem, Protocol, right_inverse
from paramsearch import certify, dominance_program, optimize_noise, uncertified

PROBLEM = Problem(n=1_000_000, eps=1.0, delta=1e-6, max_value=5)
FAMILY = accounting.greedy(5, [3])


@pytest.mark.parametrize("family", FAMILIES)
def test_the_right_inverse_by_its_definition(family: Family) -> None:
    values = [value for value in family.values if value != 1]
    contains = np.array([[elements.count(value) for elements in family.atoms] for value in values])
    expected = np.zeros((len(values), family.max_value + 1), int)
    for m in range(2, family.max_value + 1):
        expected[values.index(m), m] = 1
    assert (contains @ right_inverse(family) == expected).all()


@pytest.mark.parametrize("family", FAMILIES)
def test_the_papers_program_by_another_formulation(family: Family) -> None:
    found = dominance_program(family)
    truth = by_cvxpy(family)
    assert found.lower * (1 - 1e-6) <= truth <= found.value * (1 + 1e-6)
    assert found.gap <= 1e-6


@pytest.mark.parametrize("family", FAMILIES)
def test_multipliers_prove_the_lower_bound(family: Family) -> None:
    """Hoelder's inequality, computed once more from the dictionary alone."""
    found = dominance_program(family)
    columns = right_inverse(family)
    combined = np.zeros(len(family.atoms))
    for (j, k), weight in found.multipliers.items():
        combined += weight * np.abs(columns[:, j] - columns[:, k])
    size = np.array([len(elements) for elements in family.atoms])
    assert abs(sum(found.multipliers.values()) - 1) <= 1e-9
    assert abs(np.sum(np.sqrt(size * combined)) ** 2 / found.lower - 1) <= 1e-9


def test_both_norms_bound_every_pair() -> None:
    columns = right_inverse(FAMILY)
    paper, ours = dominance_program(FAMILY), dominance_program(FAMILY, PROBLEM)
    slack = []
    for j in range(6):
        for k in range(j):
            shift = np.abs(columns[:, j] - columns[:, k])
            assert sum(s / t for s, t in zip(shift, paper.t_prime.values(), strict=True)) < 1 + 1e-9
            unit = FAMILY.atoms.index((-1, 1))
            end = abs(columns[unit, j] - columns[unit, k] + j - k)
            shift[unit] = max(shift[unit], end)
            left = np.linalg.norm(shift / np.array(list(ours.t_prime.values())))
            slack.append((1 - 0.9 * (j - k) / 5) / left)
    # an active pair has the typical radius, and no pair less
    assert 1.1 * np.sqrt(2 * np.log(1e6)) * (1 - 1e-6) <= min(slack)
    assert min(slack) <= 1.1 * np.sqrt(2 * np.log(1e6)) * (1 + 1e-6)


def test_the_noise_meets_delta_and_less_of_any_atom_does_not() -> None:
    found = optimize_noise(FAMILY, PROBLEM, start=dominance_program(FAMILY, PROBLEM))
    delta = Protocol(found.proposal.configuration()).delta(1.0, gap=1e-4).enclosure
    assert 0.98e-6 < delta.lower <= delta.upper < 1.02e-6
    for elements, noise in found.noise.items():
        less = replace(noise, r=noise.r * 0.97)
        atoms = [(s, less if s == elements else law) for s, law in found.noise.items()]
        weaker = accounting.Configuration.of(5, atoms, eps_central=0.9)
        assert Protocol(weaker).delta(1.0, gap=1e-4).enclosure.lower > delta.upper


@pytest.mark.parametrize("start", ["program", "noise", "guess"])
def test_every_start_ends_at_the_same_cost(start: str) -> None:
    starts = {
        "program": dominance_program(FAMILY, PROBLEM),
        "noise": dict.fromkeys(FAMILY.atoms, NegativeBinomial.from_mean(mean=700.0, r=9.0)),
        "guess": None,
    }
    found = optimize_noise(FAMILY, PROBLEM, start=starts[start])
    assert 5_520 < found.messages < 5_560


def test_a_little_less_delta_gives_a_certificate() -> None:
    problem = replace(PROBLEM, delta=0.98e-6)
    found = optimize_noise(FAMILY, problem)
    file = certify(uncertified(replace(found.proposal, delta=1e-6)))
    assert file.certificate is not None
    assert file.certificate.delta_upper <= 1e-6


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="max_value = 6, and the family is for 5"):
        optimize_noise(FAMILY, replace(PROBLEM, max_value=6))
    with pytest.raises(InvalidParameter, match=r"no noise for the atom \[-1, 1\]"):
        optimize_noise(FAMILY, PROBLEM, start={})
    with pytest.raises(InvalidParameter, match="central_fraction"):
        dominance_program(FAMILY, PROBLEM, central_fraction=1.0)


def test_one_value_needs_no_dominance_vector() -> None:
    found = dominance_program(accounting.ones(1))
    assert (found.t_prime, found.value, found.gap) == ({(-1, 1): 0.0}, 0.0, 0.0)
