"""Claims about bursts next to the truth, and typical mistakes about bursts, planted one by one."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from functools import cache
from itertools import count
from typing import Any

import pytest
from agreement import KINDS, Case, drawn
from flint import arb

from accounting import Burst, Enclosure, ExactBurst, NoiseSum, Undecided, prove
from accounting.base.errors import TooLarge
from accounting.model.proof_types import Tier
from accounting.notary.tables import BurstPart
from accounting.proof import directed_rounding

WITH_BURSTS = [kind for kind in KINDS if "bursts" in kind or "both laws" in kind]
CLOSE = Fraction(1, 10**6)
MANY = 112
"""Mechanisms of every kind in the slow test."""
SECONDS = 2.0
"""Time for the truth of one of them; those that take longer are left out."""
TIERS: tuple[Tier, ...] = ("ball", "fast")


def truth(case: Case, seconds: float = math.inf) -> Enclosure:
    """By the definition, to a relative 1e-7."""
    proof = prove(
        case.mechanism,
        case.question,
        tier="reference",
        gap=1e-7,
        deadline=time.monotonic() + seconds,
    )
    if not proof.met:
        raise Undecided("the enumeration takes too long")
    return proof.enclosure


def wrong_verdicts(case: Case, true: Enclosure) -> Iterator[str]:
    """Claims 1e-6 above the truth that are called violated, or as far below that are certified."""
    above, below = float(Fraction(true.upper) * (1 + CLOSE)), float(true.lower * (1 - CLOSE))
    for tier in TIERS:
        for claim in (above, below):
            asked = replace(case.question, claim=claim)
            try:
                found = prove(case.mechanism, asked, tier=tier, gap=1e-7).enclosure
            except (Undecided, TooLarge):
                continue
            if claim == above and found.lower > claim:
                yield f"{tier}: {claim} is called violated, the truth is {true}"
            if claim == below and found.upper <= claim:
                yield f"{tier}: {claim} is certified, the truth is {true}"


@pytest.mark.parametrize("kind", WITH_BURSTS)
def test_claims_next_to_the_truth(kind: str) -> None:
    case = drawn(kind, 5002)
    assert list(wrong_verdicts(case, truth(case))) == []


@pytest.mark.slow
@pytest.mark.parametrize("kind", WITH_BURSTS)
def test_two_thousand_claims_next_to_the_truth(kind: str) -> None:
    assert len(WITH_BURSTS) * MANY >= 2000
    left = MANY
    for seed in count(6000):
        case = drawn(kind, seed)
        with suppress(Undecided, TooLarge):
            assert list(wrong_verdicts(case, truth(case, SECONDS))) == [], seed
            left -= 1
        if left == 0:
            break


@cache
def cases() -> tuple[tuple[Case, Enclosure], ...]:
    found = [drawn(kind, seed) for kind in ("bursts to 1", "both laws to 1") for seed in range(4)]
    rare = ExactBurst(p=Fraction(1, 3), rate=Fraction(1, 2), m=3)
    found.append(replace(found[0], mechanism=replace(found[0].mechanism, atoms={(-1, 1): (rare,)})))
    return tuple((case, truth(case)) for case in found)


def complaints(tier: Tier) -> Iterator[str]:
    for case, true in cases():
        proof = prove(case.mechanism, case.question, tier=tier, gap=1e-2)
        found = proof.enclosure
        if not proof.met:  # masses that do not sum to 1 count as infinite losses
            yield f"the bounds {found} are far apart"
        if found.lower > true.upper:
            yield f"the lower bound {found.lower} is above the truth {true.upper}"
        if found.upper < true.lower:
            yield f"the upper bound {found.upper} is below the truth {true.lower}"


@pytest.mark.parametrize("tier", TIERS)
def test_no_complaint_without_a_mistake(tier: Tier) -> None:
    assert list(complaints(tier)) == []


def one_sum_less(self: Any) -> int:
    return int(self.m)


def no_second_weight(self: Any) -> tuple[Any, Any]:
    first = self.rate * (1 - self.p) ** self.m
    return first, 0 * first


def sizes_begin_at_zero(self: Any) -> tuple[Any, Any]:
    """The weights for bursts of NB(m, p) copies."""
    first = self.rate * (1 - self.p) ** self.m * self.m * self.p
    return first, 0 * first


def one_geometric(self: Any) -> tuple[Any, Any]:
    first = self.rate * (1 - self.p)
    return first, first * (self.m - 1) * self.p


def no_burst_is_rarer(self: BurstPart) -> arb:
    return (-self.rate * self.p).exp()


def everybody_stays(self: ExactBurst, fraction: Fraction) -> ExactBurst:
    return self


def no_tail(self: NoiseSum, n: int) -> float:
    return 0.0


def short_table(self: NoiseSum, tail: float) -> int:
    return 8


_law = directed_rounding._law


def more_for_less(part: Any, noise: Any) -> Any:
    """A tenth more bursts where fewer were asked for."""
    found = _law(part, noise)
    return found.times(1.1 if noise == "less" else 1 / 1.1)


Mistake = list[tuple[object, str, Any]]
MISTAKES: dict[str, tuple[Tier, Mistake]] = {
    "notary: a sum too few": ("ball", [(BurstPart, "order", property(one_sum_less))]),
    "notary: no second weight": ("ball", [(BurstPart, "weights", property(no_second_weight))]),
    "notary: bursts may be empty": (
        "ball",
        [(BurstPart, "weights", property(sizes_begin_at_zero))],
    ),
    "notary: one geometric number": ("ball", [(BurstPart, "weights", property(one_geometric))]),
    "notary: the mass at 0": ("ball", [(BurstPart, "none", property(no_burst_is_rarer))]),
    "evaluator: a sum too few": ("fast", [(Burst, "order", property(one_sum_less))]),
    "evaluator: no second weight": ("fast", [(Burst, "weights", property(no_second_weight))]),
    "evaluator: bursts may be empty": ("fast", [(Burst, "weights", property(sizes_begin_at_zero))]),
    "evaluator: one geometric number": ("fast", [(Burst, "weights", property(one_geometric))]),
    "evaluator: a tail that is not counted": (
        "fast",
        [(NoiseSum, "tail_bound", no_tail), (NoiseSum, "length", short_table)],
    ),
    "rounding to the wrong side": ("fast", [(directed_rounding, "_law", more_for_less)]),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_every_mistake_is_noticed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    cases()  # the truth first, untouched
    tier, planted = MISTAKES[name]
    for owner, attribute, wrong in planted:
        monkeypatch.setattr(owner, attribute, wrong)
    try:
        noticed = next(complaints(tier), None)
    except AssertionError as error:  # lower > upper: an enclosure that cannot be
        noticed = str(error)
    assert noticed is not None


def test_dropouts_that_are_ignored_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    case = drawn("bursts to 1", 7)
    thinned = replace(case, mechanism=case.mechanism.thinned(Fraction(1, 2)))
    true = truth(thinned)
    monkeypatch.setattr(ExactBurst, "thinned", everybody_stays)
    wrong = case.mechanism.thinned(Fraction(1, 2))
    assert prove(wrong, case.question, tier="ball").enclosure.upper < true.lower
