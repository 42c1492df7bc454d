"""The central mechanism for several changes, against sums over all outcomes."""

from __future__ import annotations

import itertools
import math

import pytest

from accounting.model.costs import central_rmse, largest_central
from accounting.model.problem import Problem


def exact_delta(central: float, eps: float, top: int, changes: int) -> float:
    """Sum over all tuples of outcomes of that many Discrete Laplace noises, shifted by ``top``."""
    step = central / top
    q = math.exp(-step)
    span = range(-40 * top, 40 * top + 1)
    law = {k: (1 - q) / (1 + q) * q ** abs(k) for k in span}
    losses: dict[int, float] = {}
    for k in span:
        loss = abs(k + top) - abs(k)
        losses[loss] = losses.get(loss, 0.0) + law[k]
    return math.fsum(
        math.prod(mass for _, mass in case)
        * max(0.0, 1 - math.exp(eps - step * sum(loss for loss, _ in case)))
        for case in itertools.product(losses.items(), repeat=changes)
    )


@pytest.mark.parametrize(("changes", "top"), [(3, 1), (4, 2), (5, 1)])
def test_the_largest_eps_meets_half_of_delta(changes: int, top: int) -> None:
    eps, delta = 1.0, 1e-3
    found = largest_central(eps=eps, delta=delta, max_value=top, changes=changes)
    assert eps / changes < found < eps
    assert exact_delta(found * (1 - 1e-6), eps, top, changes) <= delta / 2 * (1 + 1e-6)
    assert exact_delta(found * (1 + 1e-4), eps, top, changes) > delta / 2


def test_the_error_is_that_of_the_discrete_laplace_law() -> None:
    for top, eps in ((1, 1.0), (7, 0.3)):
        q = math.exp(-eps / top)
        variance = math.fsum(2 * k * k * (1 - q) / (1 + q) * q**k for k in range(1, 60 * top * 10))
        problem = Problem(n=10, eps=eps, delta=1e-6, max_value=top)
        assert abs(central_rmse(problem) ** 2 / variance - 1) < 1e-9
    one = Problem(n=10, eps=1.0, delta=1e-6, max_value=3)
    ten = Problem(n=10, eps=1.0, delta=1e-6, max_value=3, releases=10)
    vector = Problem(n=10, eps=1.0, delta=1e-6, max_value=3, dimension=9)
    assert central_rmse(one) < central_rmse(vector) < central_rmse(ten) < 10.2 * central_rmse(one)


def staircase(eps: float, top: int, stair: int, reach: int) -> dict[int, float]:
    """The discrete staircase law: a stair of ``stair`` integers at each e^-eps of the mass, then
    ``top`` - ``stair`` integers with that mass times e^-eps, and so on."""
    weight = {
        k: math.exp(-eps * (abs(k) // top + (abs(k) % top >= stair))) for k in range(-reach, reach)
    }
    total = math.fsum(weight.values())
    return {k: mass / total for k, mass in weight.items()}


@pytest.mark.parametrize(("top", "eps"), [(2, 0.1), (2, 1.0), (5, 1.0), (5, 4.0), (50, 10.0)])
def test_the_central_mechanism_is_not_the_one_with_the_least_error(top: int, eps: float) -> None:
    """So no message may say so: the staircase mechanism is private, and its error is smaller."""
    problem = Problem(n=10, eps=eps, delta=1e-6, max_value=top)
    reach, least = math.ceil(60 * top / eps) + top, math.inf
    for stair in range(1, top + 1):
        law = staircase(eps, top, stair, reach)
        inside = range(-reach + top, reach - top, max(1, reach // 200))
        worst = max(law[k] / law[k + shift] for k in inside for shift in (-top, -1, 1, top))
        assert worst <= math.exp(eps) * (1 + 1e-12)
        least = min(least, math.sqrt(math.fsum(k * k * mass for k, mass in law.items())))
    assert least < central_rmse(problem)
    if eps == 10:
        assert least < central_rmse(problem) / 4
