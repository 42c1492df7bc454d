"""The search against all families of few values, and against the costs that it reached before."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from itertools import chain, combinations, combinations_with_replacement, product

import numpy as np
import pytest

from accounting import Problem
from paramsearch import optimize_noise
from paramsearch.request import DEFAULT_TRIES
from paramsearch.search.budget import Budget
from paramsearch.search.dominance.calibration import Calibration
from paramsearch.search.dominance.program import InputColumns
from paramsearch.search.dominance.screening import screen
from paramsearch.search.families.family_draft import FamilyDraft
from paramsearch.search.family_search import Search
from paramsearch.search.target import Target

PROBLEM = Problem(n=10**6, eps=1.0, delta=1e-6, max_value=1)
MOST_PARTS = 2
"""Elements of an atom besides the value that it defines and ones."""
NEAR = 1.4
"""Families are solved whose program is within this factor of the cheapest one."""
COSTS = {1: 599.9, 2: 2_135.5, 5: 5_481.0, 10: 10_936.0}
"""Noise messages that a search with the default number of tries has reached, at 0.9 of eps."""


def every_draft(max_value: int) -> Iterator[FamilyDraft]:
    """All triangular families of the messages -max_value..max_value."""
    hubs = [-value for value in range(2, max_value + 1)]
    seen = set()
    for used in chain.from_iterable(combinations(hubs, k) for k in range(len(hubs) + 1)):
        values = [*range(2, max_value + 1), *used]
        choices = [
            [
                parts
                for count in range(MOST_PARTS + 1)
                for parts in combinations_with_replacement([v for v in values if v != m], count)
            ]
            for m in values
        ]
        for parts in product(*choices):
            draft = FamilyDraft.of(max_value, dict(zip(values, parts, strict=True)))
            if draft is not None and draft.key not in seen:
                seen.add(draft.key)
                yield draft


@cache
def searched(max_value: int, central_fraction: float = 0.9) -> float:
    problem = replace(PROBLEM, max_value=max_value)
    search = Search(Target(problem, central_fraction), Budget(tries=DEFAULT_TRIES))
    return search.run().solution.messages


@pytest.mark.parametrize("central_fraction", [0.9, 0.3])
@pytest.mark.parametrize(("max_value", "count"), [(2, 3), (3, 560)])
def test_no_family_is_cheaper(max_value: int, count: int, central_fraction: float) -> None:
    problem = replace(PROBLEM, max_value=max_value)
    target = Target(problem, central_fraction)
    values, drafts = [], list(every_draft(max_value))
    assert len(drafts) == count
    for draft in drafts:
        sizes = np.array([2.0, *(draft.size(value) for value in order(draft))])
        columns = InputColumns.of(draft.family)
        values.append(screen(Calibration.typical(target).program(target, columns, sizes)).value)
    solved = {
        draft.key: optimize_noise(draft.family, problem, central_fraction=central_fraction).messages
        for draft, value in zip(drafts, values, strict=True)
        if value <= NEAR * min(values)
    }
    assert (
        searched(max_value, central_fraction) <= min(solved.values()) * 1.002
    )  # steps end within 0.1 %


def order(draft: FamilyDraft) -> list[int]:
    """The values in the order in which their atoms are in the family, after -1."""
    return sorted(draft.parts, key=lambda value: (abs(value), value < 0))


@pytest.mark.parametrize("max_value", COSTS)
def test_costs_are_no_worse_than_they_were(max_value: int) -> None:
    """By more than 0.2 %."""
    found = searched(max_value)
    assert math.isfinite(found)
    assert found <= COSTS[max_value] * 1.002
