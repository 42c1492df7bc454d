"""Real values: the error is met, and predictions agree with what is delivered."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from accounting import InvalidParameter
from accounting.model.costs import bits_per_message
from paramsearch.generation.generate import generate
from paramsearch.generation.real_values import RealTarget
from paramsearch.request import Request


def request(n: int) -> Request:
    return Request(n=n, eps=1.0, delta=1e-6, max_value=1, objective="bits", tries=8)


def test_a_range_is_a_unit() -> None:
    """Values in [-5, 20] with an RMSE of 250 are values in [0, 1] with one of 10."""
    unit = RealTarget.of(request(100), zeta=None, max_rmse=10.0)
    wide = RealTarget.of(request(100), zeta=None, max_rmse=250.0, low=-5.0, high=20.0)
    assert wide.mse == unit.mse
    assert wide.coarsest() == unit.coarsest()
    assert wide.settings["low"] == -5.0
    assert wide.settings["mse"] == 250.0**2


@pytest.mark.parametrize(
    ("low", "high"), [(1.0, 1.0), (2.0, 1.0), (0.0, math.inf), (math.nan, 1.0), (-1e308, 1e308)]
)
def test_ranges_that_are_none(low: float, high: float) -> None:
    with pytest.raises(InvalidParameter, match=r"finite|low < high"):
        RealTarget.of(request(100), zeta=0.25, max_rmse=None, low=low, high=high)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n", "zeta"), [(1000, 0.25), pytest.param(10_000, 0.5, marks=pytest.mark.slow)]
)
def test_the_prediction_agrees_with_the_file(n: int, zeta: float) -> None:
    goal = RealTarget.of(request(n), zeta=zeta, max_rmse=None)
    choice = goal.choose()
    assert choice.max_value >= goal.coarsest()
    assert choice.mse(goal.problem) <= goal.mse * (1 + 1e-9)
    assert choice.bits >= bits_per_message(choice.max_value)
    made = generate(
        replace(
            request(n), max_value=choice.max_value, central_fraction=choice.eps_central, cold=True
        ),
        draft=choice.draft,
    )
    delivered = made.file.cost.bits_per_user
    assert delivered <= choice.bits * 1.03
    assert delivered >= choice.bits * 0.95
