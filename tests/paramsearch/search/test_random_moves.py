"""Random moves of families: a long walk meets no exception and no invalid family."""

from __future__ import annotations

import random

import pytest

import accounting
from accounting import Family
from accounting.model.problem import Problem
from paramsearch.search.families import hub_families as hubs
from paramsearch.search.families.family_draft import FamilyDraft
from paramsearch.search.families.random_moves import random_move
from paramsearch.search.target import Target

STEPS = 20_000
SIZES = (5, 6, 9, 14, 22, 34, 48, 60)


def starts(max_value: int) -> list[FamilyDraft]:
    """The hubs a search begins with, and the package's other families."""
    target = Target(Problem(n=10**6, eps=1.0, delta=1e-6, max_value=max_value), 0.9)
    shapes = [hubs.usual_hubs(target), hubs.hubs_sharing_a_value(max_value)[0]]
    drafts = [hubs.draft_from_hubs(target, shape) for shape in shapes]
    families = [accounting.ones(max_value), accounting.halves(max_value)]
    return [draft for draft in drafts if draft] + [FamilyDraft.from_family(f) for f in families]


def is_valid(family: Family, max_value: int) -> bool:
    """Triangular by construction: ``Family`` refuses others."""
    return (
        family.exact
        and family.max_value == max_value
        and {*range(2, max_value + 1)} <= {*family.basis}
    )


@pytest.mark.parametrize("max_value", SIZES)
def test_every_random_move_is_a_family_or_nothing(max_value: int) -> None:
    rng = random.Random(max_value)
    beginnings = starts(max_value)
    changed = 0
    for start in beginnings:
        draft = start
        for _ in range(STEPS // len(SIZES) // len(beginnings)):
            new = random_move(draft, rng)
            if new is not None:
                assert is_valid(new.family, max_value)
                draft, changed = new, changed + 1
    assert changed > 500  # the walk goes somewhere


def test_a_hub_that_falls_out_of_use_is_not_used_again() -> None:
    """The hub -4 takes 3 as its inner value, so 3 can no longer use -4, and nothing else does."""
    draft = FamilyDraft.of(3, {2: (), 3: (-4,), -4: (2,)})
    assert draft is not None
    found = [random_move(draft, random.Random(seed)) for seed in range(500)]
    assert any(new is not None and dict(new.parts) == {2: (), 3: ()} for new in found)
