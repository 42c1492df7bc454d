"""A budget covers the search and the proof."""

from __future__ import annotations

import math
import time

import pytest

from paramsearch.generation.time_plan import TimePlan
from paramsearch.request import Request


def request(max_value: int, budget: float, **other: object) -> Request:
    return Request(n=1000, eps=1.0, delta=1e-6, max_value=max_value, budget=budget, **other)  # type: ignore[arg-type]  # the fields under test


def announced(plan: TimePlan) -> str:
    lines: list[str] = []
    plan.announce(lines.append)
    return " ".join(lines)


@pytest.mark.parametrize("max_value", [1, 7, 50, 128, 300, 999, 5000, 8192])
@pytest.mark.parametrize("budget", [1.0, 30.0, 1000.0, 1e5])
def test_search_and_proof_fit_into_the_budget_or_it_is_said(max_value: int, budget: float) -> None:
    plan = TimePlan.of(request(max_value, budget))
    total = plan.search_seconds + plan.proof_seconds
    assert plan.search_seconds >= 0.25 * budget
    assert (total <= 1.25 * budget) != ("too small" in announced(plan))
    assert plan.end <= time.monotonic() + budget


def test_a_small_budget_takes_a_faster_proof() -> None:
    assert TimePlan.of(request(100, math.inf)).tier == "auto"
    assert TimePlan.of(request(100, 60.0)).tier == "fast"
    assert TimePlan.of(request(100, 60.0, tier="ball")).tier == "ball"


def test_without_a_budget_there_is_nothing_to_say() -> None:
    plan = TimePlan.of(request(20, math.inf))
    assert announced(plan) == ""
    assert plan.search_seconds == math.inf


def test_larger_problems_take_longer_to_prove() -> None:
    for tops in ((1, 5, 20, 100), (150, 300, 500), (501, 1000, 8000)):
        seconds = [TimePlan.of(request(top, math.inf)).proof_seconds for top in tops]
        assert seconds == sorted(seconds)
