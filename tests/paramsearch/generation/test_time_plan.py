"""A budget covers the search and the proof."""

from __future__ import annotations

import math
import time
from typing import Any

import numpy as np
import pytest

from accounting.base.arrays import FloatArray
from accounting.model.family import ones
from accounting.model.proof_types import BALL, FAST
from accounting.model.question import Question
from accounting.proof.prove import usual_tier
from paramsearch.generation.finish import calibrated, certified_in_time
from paramsearch.generation.pair_bounds import proposed_file
from paramsearch.generation.polish import polished
from paramsearch.generation.time_plan import TimePlan
from paramsearch.request import Request
from paramsearch.search.candidate import Candidate
from paramsearch.search.families.family_draft import FamilyDraft
from paramsearch.search.noise import sequence_noise
from paramsearch.search.noise.noise_model import NoiseModel
from paramsearch.search.noise.noise_optimizer import Solution
from paramsearch.search.target import Target


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
    assert TimePlan.of(request(100, 30.0)).tier == "fast"
    assert TimePlan.of(request(100, 30.0, tier="ball")).tier == "ball"


def test_without_a_budget_a_long_proof_is_said_at_once() -> None:
    """Was: first when the proof began."""
    plan = TimePlan.of(request(10, math.inf))
    assert announced(plan) == ""
    assert plan.search_seconds == math.inf
    long = TimePlan.of(request(60, math.inf, releases=30))
    assert f"the proof after it about {long.proof_in_words}; --budget SECONDS" in announced(long)


@pytest.mark.parametrize("max_value", [5, 24, 60, 200, 700])
@pytest.mark.parametrize(
    "releases", [{}, {"releases": 3}, {"releases": 30}, {"releases": 30, "same_change": True}]
)
def test_the_estimate_is_of_the_proof_that_is_made(
    max_value: int, releases: dict[str, Any]
) -> None:
    """Was: the time of balls without a budget, for a proof by the fast evaluators."""
    question = Question(eps=1.0, **releases)
    made = usual_tier(max_value, question)
    usual = TimePlan.of(request(max_value, math.inf, **releases))
    asked = TimePlan.of(request(max_value, math.inf, tier=made, **releases))
    ample = TimePlan.of(request(max_value, 1e9, **releases))
    assert usual.proof_seconds == asked.proof_seconds == ample.proof_seconds


def test_larger_problems_take_longer_to_prove() -> None:
    for tops in ((1, 5, 20, 100), (150, 300, 500), (501, 1000, 8000)):
        seconds = [TimePlan.of(request(top, math.inf)).proof_seconds for top in tops]
        assert seconds == sorted(seconds)


def test_bursts_take_longer_to_prove() -> None:
    for top in (5, 50, 300, 1000):
        plain, bursts = (
            TimePlan.of(request(top, math.inf, noise=law)).proof_seconds
            for law in ("negative-binomial", "burst")
        )
        assert plain < bursts


def sequence_model() -> NoiseModel:
    """For three releases in which one user's inputs change in any way."""
    asked = request(2, math.inf, releases=3)
    return NoiseModel(ones(2), Target(asked.problem, 0.2, "messages"))


def test_a_proof_that_is_late_is_left_to_the_fast_evaluators() -> None:
    """Was: however long it took."""
    model = sequence_model()
    asked = request(2, math.inf, releases=3)
    x = calibrated(model, model.first_guess(), asked)
    file = proposed_file(model, x, asked)
    for late, tier, method in (
        (False, "auto", BALL),
        (True, "auto", FAST),
        (True, "ball", BALL),  # as it was asked for
    ):
        deadline = time.monotonic() - 1 if late else math.inf
        made = certified_in_time(file, request(2, math.inf, releases=3, tier=tier), deadline)
        assert made.certificate is not None
        assert set(made.certificate.proof) == {method}
        assert made.certificate.delta_upper <= 1e-6


def test_the_last_steps_of_a_search_end_with_its_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    """Was: two minutes of their own for sequences of changes."""
    model = sequence_model()
    x = model.first_guess()
    asked: list[float] = []

    def rough(*_: object) -> FloatArray:
        asked.append(time.monotonic())
        return np.full(1, 1e-5)

    monkeypatch.setattr(sequence_noise, "rough_uppers", rough)
    found = sequence_noise.optimize_sequence_noise(model, x, deadline=time.monotonic() - 1)
    assert (asked, found is x) == ([], True)
    candidate = Candidate(FamilyDraft(1, {}), Solution(model, x, 1.0, np.zeros(0), np.zeros(0)))
    assert polished(candidate, deadline=time.monotonic() - 1).solution.x is x
    assert asked == []
