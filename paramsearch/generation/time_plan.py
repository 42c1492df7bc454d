"""The division of a budget in seconds between the search and the proof."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from itertools import pairwise

from accounting.base.errors import Undecided
from accounting.base.progress import Progress
from accounting.model.proof_types import Tier
from accounting.model.question import Question
from accounting.proof.prove import usual_tier
from paramsearch.request import Request

_SECONDS: dict[Tier, tuple[tuple[int, float], ...]] = {
    "ball": ((1, 0.5), (10, 2.0), (20, 5.0), (50, 12.0), (100, 30.0), (200, 90.0)),
    "mixed": ((1, 1.0), (50, 10.0), (200, 36.0), (500, 42.0), (1000, 200.0)),
    "fast": ((1, 0.5), (100, 8.0), (300, 20.0), (500, 25.0), (1000, 40.0), (5000, 400.0)),
}
"""Seconds of calibration and proof on two cores by max_value, measured with negative binomials."""
_WITH_BURSTS: dict[Tier, float] = {"ball": 2.5, "mixed": 1.5, "fast": 1.2}
"""Ratio of these seconds with bursts, roughly, from processor times at max_value 20, 50, 300 and
500."""
_FIRST_ANSWER = ((1, 0.5), (50, 3.0), (200, 8.0), (500, 20.0), (1000, 60.0), (5000, 600.0))
"""Seconds after which the shortest search has a family with its noise."""
_SCALINGS = 5
"""Bounds for arbitrary sequences of changes that calibration and proof take together."""
_LARGEST_SHARE = 0.5
"""Largest share of a budget for a proof by balls; above, the fast evaluators prove most pairs."""
_TOLERANCE = 1.25
"""Ratio by which a budget may be exceeded."""
_SLACK = 20.0
"""Seconds by which it may be exceeded as well: small problems take seconds, whatever the budget."""
_WORTH_SAYING = 10.0
"""Seconds of a proof from which on its time is said where there is no budget."""
_SMALLEST_SEARCH = 0.25
"""Smallest share of a budget for the search, even if the proof needs more than the rest."""


@dataclass(frozen=True)
class TimePlan:
    """A plan for a budget: how much goes to the search, how much to the proof.

    Attributes:
        tier: How the result is proved.
        budget: Seconds for everything.
        proof_seconds: About how long calibration and proof take.
        end: When the budget ends, on the monotonic clock.
        first_answer: About how long the shortest search takes.
        max_value: The largest input, which all of this depends on.
        proves_optimality: Whether to prove that no single parameter can be lowered.
    """

    tier: Tier
    budget: float
    proof_seconds: float
    end: float
    first_answer: float
    max_value: int
    proves_optimality: bool = True

    @staticmethod
    def of(request: Request) -> TimePlan:
        """The plan for a request that begins now."""
        tier, top = request.tier, request.max_value
        if tier in ("auto", "light"):
            tiers: tuple[Tier, ...] = ("ball", "mixed", "fast")
            usual = usual_tier(top, _question(request))
            room = _LARGEST_SHARE * request.budget
            choices = tiers[tiers.index(usual) :]
            cheapest = min(choices, key=lambda tier: _expected(tier, request))
            chosen = usual if _expected(usual, request) <= room else cheapest
            tier = request.tier if chosen == usual else chosen
            seconds = _expected(chosen, request)
        else:
            seconds = _expected(tier, request)
        end, first = time.monotonic() + request.budget, _interpolated(_FIRST_ANSWER, top)
        return TimePlan(tier, request.budget, seconds, end, first, top)

    @property
    def search_seconds(self) -> float:
        """When the search ends, or about when it can."""
        return max(
            self.budget - self.proof_seconds, _SMALLEST_SEARCH * self.budget, self.first_answer
        )

    @property
    def announcement(self) -> str:
        """How the budget is divided, or that it is too small for the proof; without a budget, how
        long the proof takes, which is empty if that is hardly any time."""
        if self.budget == math.inf:
            if self.proof_seconds < _WORTH_SAYING:
                return ""
            return (
                f"no budget: the search takes the time of its --tries, the proof after it about "
                f"{self.proof_in_words}; --budget SECONDS is for both together"
            )
        search, proof = self.search_seconds, self.proof_seconds
        parts = f"{_seconds(search)} for the search, about {_seconds(proof)} for the proof"
        if self.tier not in ("auto", "light"):
            parts += f" (tier {self.tier})"
        if search + proof > _TOLERANCE * self.budget:
            return (
                f"a budget of {self.budget:,.6g} s is too small and will be exceeded: {parts}, in "
                f"all about {_seconds(search + proof)}"
            )
        return f"budget: {parts}"

    @property
    def needed(self) -> float:
        """About the seconds that the shortest search and the proof take together."""
        return self.first_answer + self.proof_seconds

    def check(self, share: float = 1.0) -> None:
        """Refuse a budget that is far too small, before any of it is spent.

        Args:
            share: Of the budget that is left for the search and the proof.

        Raises:
            Undecided: If even the shortest search and the proof together take much longer.
        """
        if self.needed > _TOLERANCE * share * self.budget + _SLACK:
            enough = _rounded_up(1.2 * self.needed / share)
            raise Undecided(
                f"a budget of {self.budget:,.6g} s is too small for max_value {self.max_value:,}: "
                f"the shortest search takes about {_seconds(self.first_answer)}, the proof about "
                f"{_seconds(self.proof_seconds)}; give --budget {enough:.0f} or more, or none"
            )

    @property
    def proof_in_words(self) -> str:
        """About how long calibration and proof take, in words."""
        return _seconds(self.proof_seconds)

    def announce(self, progress: Progress) -> None:
        """Say how the time is divided, if there is something to say."""
        if self.announcement:
            progress(self.announcement)


def _question(request: Request) -> Question:
    """What is to be proved of the result: with its honest users, it has all its central noise."""
    return Question(
        eps=request.eps,
        releases=request.releases,
        same_change=request.same_change,
        adjacency=request.adjacency,
    )


def _seconds(seconds: float) -> str:
    """A time in whole seconds, at least one: estimates are no more accurate.

    >>> _seconds(0.02), _seconds(1234.5)
    ('1 s', '1,234 s')
    """
    return f"{max(1.0, seconds):,.0f} s"


def _rounded_up(seconds: float) -> float:
    """To two significant digits."""
    unit = 10.0 ** (math.floor(math.log10(seconds)) - 1)
    return math.ceil(seconds / unit) * unit


def _expected(tier: Tier, request: Request) -> float:
    """Seconds of a proof."""
    seconds = _interpolated(_SECONDS[tier], request.max_value)
    scalings = _SCALINGS if request.any_sequence else 1
    if request.noise == "burst":
        seconds *= _WITH_BURSTS[tier]
    return seconds * request.changed_coordinates * request.releases * scalings


def _interpolated(points: tuple[tuple[int, float], ...], max_value: int) -> float:
    """Seconds by interpolation between measurements; beyond, as the square of max_value."""
    top = min(max(max_value, points[0][0]), points[-1][0])
    for (a, low), (b, high) in pairwise(points):
        if top <= b:
            share = math.log(top / a) / math.log(b / a)
            seconds = low * (high / low) ** share
            break
    return float(seconds * max(1.0, max_value / points[-1][0]) ** 2)
