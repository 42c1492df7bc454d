"""How a budget in seconds is divided between the search and the proof."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from itertools import pairwise

from accounting.base.progress import Progress
from accounting.model.proof_types import Tier
from paramsearch.request import Request

_SECONDS: dict[Tier, tuple[tuple[int, float], ...]] = {
    "ball": ((1, 0.5), (10, 1.5), (20, 5.0), (50, 15.0), (100, 60.0), (200, 300.0)),
    "mixed": ((1, 1.0), (50, 10.0), (200, 40.0), (500, 90.0), (1000, 400.0)),
    "fast": ((1, 0.5), (100, 5.0), (500, 20.0), (1000, 60.0), (5000, 900.0)),
}
"""Seconds of calibration and proof on two cores by max_value, measured."""
_LARGEST_SHARE = 0.5
"""Largest share of a budget for a proof by balls; above, the fast evaluators prove most pairs."""
_SMALLEST_SEARCH = 0.25
"""Smallest share of a budget for the search, even if the proof needs more than the rest."""


@dataclass(frozen=True)
class TimePlan:
    """What a budget is spent on.

    Attributes:
        tier: How the result is proved.
        budget: Seconds for everything.
        proof_seconds: About how long calibration and proof take.
        end: When the budget ends, on the monotonic clock.
        proves_optimality: Whether to prove that no single parameter can be lowered.
    """

    tier: Tier
    budget: float
    proof_seconds: float
    end: float
    proves_optimality: bool = True

    @staticmethod
    def of(request: Request) -> TimePlan:
        """The plan for a request that begins now."""
        tier, top = request.tier, request.max_value
        if tier in ("auto", "light"):
            tiers: tuple[Tier, ...] = ("ball", "mixed", "fast")
            usual = tiers[(top > _LAST["ball"]) + (top > _LAST["mixed"])]
            room = _LARGEST_SHARE * request.budget
            choices = tiers[tiers.index(usual) :]
            cheapest = min(choices, key=lambda tier: _expected(tier, request))
            chosen = usual if _expected(usual, request) <= room else cheapest
            tier = request.tier if chosen == usual else chosen
            seconds = _expected(chosen, request)
        else:
            seconds = _expected(tier, request)
        return TimePlan(tier, request.budget, seconds, time.monotonic() + request.budget)

    @property
    def search_seconds(self) -> float:
        return max(self.budget - self.proof_seconds, _SMALLEST_SEARCH * self.budget)

    def announce(self, progress: Progress) -> None:
        """Say how the budget is divided, and when it is too small for the proof."""
        if math.isinf(self.budget):
            return
        proof = f"about {self.proof_seconds:,.0f} s for the proof"
        if self.search_seconds + self.proof_seconds > 1.25 * self.budget:
            progress(
                f"a budget of {self.budget:,.0f} s is too small: {self.search_seconds:,.0f} s for "
                f"the search and {proof}; this takes about "
                f"{self.search_seconds + self.proof_seconds:,.0f} s"
            )
        else:
            progress(f"budget: {self.search_seconds:,.0f} s for the search, {proof}")


_LAST = {"ball": 128, "mixed": 500}
"""Largest max_value of a tier where nothing else is asked for; see ``accounting.proof.prove``."""


def _expected(tier: Tier, request: Request) -> float:
    """Seconds of a proof, by interpolation between measurements."""
    points = _SECONDS[tier]
    top = min(max(request.max_value, points[0][0]), points[-1][0])
    for (a, low), (b, high) in pairwise(points):
        if top <= b:
            share = math.log(top / a) / math.log(b / a)
            seconds = low * (high / low) ** share
            break
    beyond = max(1.0, request.max_value / points[-1][0])
    return float(seconds * beyond**2 * request.changed_coordinates * request.releases)
