"""The objective "bits": alphabets that need no further bit are tried first, within any budget."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accounting.model.costs import bits_per_message
from accounting.model.problem import Problem
from paramsearch import Request, generate
from paramsearch.search.budget import Budget
from paramsearch.search.families import hub_families
from paramsearch.search.families.family_draft import FamilyDraft
from paramsearch.search.family_search import Search
from paramsearch.search.target import Target


def target(max_value: int, *, n: int = 10**6, dimension: int = 1) -> Target:
    problem = Problem(n=n, eps=1.0, delta=1e-6, max_value=max_value, dimension=dimension)
    return Target(problem, 0.9 if dimension == 1 else 0.45, "bits")


@given(st.integers(1, 300), st.integers(0, 100), st.sampled_from([1, 2, 7, 100]))
def test_a_limit_is_where_a_message_takes_a_further_bit(
    max_value: int, hubs: int, dimension: int
) -> None:
    def bits(count: int) -> int:
        return bits_per_message(dimension * (max_value + 1 + count))

    further = [count for count in range(hubs) if bits(count + 1) > bits(count)]
    assert target(max_value, dimension=dimension).hub_limits(hubs) == further


@given(st.floats(0.0, 1e9), st.integers(2, 300), st.sampled_from([1, 100]))
def test_a_price_has_its_messages(messages: float, symbols: int, dimension: int) -> None:
    goal = target(5, dimension=dimension)
    again = goal.messages_at(goal.price(messages, symbols), symbols)
    assert abs(again - messages) <= 1e-9 * (messages + goal.problem.n)


@settings(deadline=None)
@given(st.integers(9, 80), st.integers(0, 9))
def test_a_family_with_fewer_hubs(max_value: int, most: int) -> None:
    goal = target(max_value)
    for hubs in hub_families.shapes(goal):
        draft = hub_families.draft_from_hubs(goal, hubs)
        assert draft is not None
        fewer = hub_families.with_fewer_hubs(goal, draft, most)
        if fewer is not None:
            assert fewer.hubs <= most
            assert len(fewer.family.values) == fewer.symbols


@pytest.mark.parametrize(("max_value", "bits"), [(7, 3), (15, 4), (30, 5)])
def test_a_short_search_finds_the_smallest_alphabet(max_value: int, bits: int) -> None:
    """With hardly any time, and although families with more hubs have far fewer messages."""
    search = Search(target(max_value), Budget(tries=1, seconds=1e-3))
    best = search.run()
    assert bits_per_message(best.draft.symbols) == bits


def test_few_users_prefer_fewer_messages() -> None:
    """The noise is most of what ten users send, and it has fewer messages with a hub."""
    search = Search(target(15, n=10), Budget(tries=1))
    assert search.run().draft.hubs > 0


def test_a_search_for_messages_says_what_bits_would_cost() -> None:
    asked = Request(n=10**6, eps=1.0, delta=1e-6, max_value=7, tries=2, cold=True)
    made = generate(asked)
    assert made.file.cost.bits_per_message == 4
    assert made.fewer_bits is not None
    ones = FamilyDraft(7, dict.fromkeys(range(2, 8), ()))
    least = Search(Target(asked.problem, 0.9, "bits"), Budget()).solve(ones)
    assert math.isclose(made.fewer_bits, least.price / asked.n, rel_tol=1e-3)
    alone = Request(n=10**6, eps=1.0, delta=1e-6, max_value=3, tries=1, cold=True)
    assert generate(alone).fewer_bits is None
