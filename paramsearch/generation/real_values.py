"""Real values: the choice of how finely to round, and how much of the error to spend on rounding.

Values in [low, high] count as values in [0, 1], in units of high - low.  A value is rounded at
random to a multiple of 1 / max_value, which adds a variance of at most 1/4 in units of that step
for each user, and the integers are summed.  The mean squared error is at most

    n / (4 max_value^2) + (variance of DLap(eps* / max_value)) / (honest max_value^2),

since every user adds enough noise for the fraction ``honest`` of the users to suffice.
For each max_value this determines the largest central noise that an error allows.  Coarser rounding
means shorter messages; finer rounding leaves more of eps for the atoms, so that they need fewer
messages.  The paper takes max_value = ceil(eps/2 sqrt(n / zeta)).  Stage 1 predicts the messages of
a few sizes, and those in between follow from them.

Stage 1 knows negative binomials only.  Bursts take about the same share of their messages at every
size, which is all that the choice of a size needs; the final prediction asks stage 2, which knows
both laws.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from accounting.base.bisection import first_integer
from accounting.base.errors import InvalidParameter, required
from accounting.base.progress import Progress, silent
from accounting.base.validation import positive, probability, real
from accounting.model.costs import (
    bits_per_message,
    discrete_laplace_variance,
    largest_central,
    noise_messages,
)
from accounting.model.laws.noise import NoiseLaw
from accounting.model.problem import Problem
from accounting.model.proof_types import LARGEST_VALUE
from paramsearch.request import error_ratio
from paramsearch.search.budget import Budget
from paramsearch.search.families.family_draft import FamilyDraft
from paramsearch.search.family_screening import predicted
from paramsearch.search.family_search import Search
from paramsearch.search.paper_parameters import theorem
from paramsearch.search.screened_family import Screened
from paramsearch.search.target import Target, usual_m

_LARGEST_SHARE = 0.99
"""Largest share of eps for the central noise."""
_FACTORS = (1.01, 1.1, 1.35, 2.0)
"""Values of max_value for which stage 1 runs, as multiples of the smallest possible one."""
_STAGE_2_UNTIL = 100
"""Largest max_value for which stage 2 itself corrects the final prediction; beyond, it does so at
this max_value, where it takes seconds."""
_FIRST_CHOICES = 0.5
"""Share of the time for the predictions of a few sizes."""
_CLOSEST = 0.02
"""Relative difference of two of them below which one is enough."""
_BIT_SIZES = 60
"""Number of values of max_value, between these, that are compared."""
_ROUGH_SIZE, _ROUGH_SECONDS = 48, 1.0
"""The max_value at which stage 1 gives a rough prediction for a larger one, and its time."""
_GROWTH = 1.06
"""Exponent with which messages grow with max_value, measured from 10 to 5,000.  Rules of thumb."""


@dataclass(frozen=True)
class Rounding:
    """A choice of max_value; ``messages`` of noise and ``bits`` per user are predictions, for the
    family ``draft``."""

    max_value: int
    eps_central: float
    messages: float
    bits: float
    draft: FamilyDraft

    def mse(self, problem: Problem) -> float:
        """The largest mean squared error, for values in [0, 1]."""
        noise = discrete_laplace_variance(self.eps_central / self.max_value) / problem.honest
        return (problem.n / 4 + noise) / self.max_value**2


@dataclass(frozen=True)
class PaperRounding:
    """The rounding that the paper takes for the same error.

    Attributes:
        max_value: Number of steps to which it rounds the values.
        messages: Messages per user with the noise of its theorem.
        bits: Bits per user.
    """

    max_value: int
    messages: float
    bits: float


@dataclass(frozen=True)
class RealTarget:
    """The sum of values with a mean squared error of at most ``mse``, in units of the square of the
    range of the values.

    The max_value of ``problem`` is not used.
    """

    problem: Problem
    mse: float
    low: float = 0.0
    high: float = 1.0
    noise: NoiseLaw = "negative-binomial"

    @staticmethod
    def of(
        problem: Problem,
        *,
        zeta: float | None = None,
        max_rmse: float | None = None,
        max_error_ratio: float | None = None,
        low: float = 0.0,
        high: float = 1.0,
        noise: NoiseLaw = "negative-binomial",
    ) -> RealTarget:
        """The target for a root mean square error of the sum of values in [low, high], or for that
        of the Laplace mechanism times ``max_error_ratio``, or with (1 - zeta) of its eps.

        Raises:
            InvalidParameter: If a number is outside its domain, or not exactly one error is given.
        """
        low, high = real("low", low), real("high", high)
        if not (low < high and math.isfinite(high - low)):
            raise InvalidParameter(
                f"the range [{low:g}, {high:g}] of real values needs low < high, both finite"
            )
        if sum(error is not None for error in (zeta, max_rmse, max_error_ratio)) != 1:
            raise InvalidParameter("give one of zeta, max_rmse and max_error_ratio")
        if max_rmse is not None:
            relative = positive("max_rmse", max_rmse) / (high - low)
            relative = positive("max_rmse / (high - low)", relative)
        else:
            laplace = math.sqrt(2) / RealTarget(problem, math.inf).largest
            if zeta is not None:
                relative = laplace / (1 - probability("zeta", zeta))
            else:
                ratio = required(max_error_ratio, "max_error_ratio")
                relative = laplace * error_ratio(ratio)
        return RealTarget(problem, relative**2, low, high, noise)

    @cached_property
    def largest(self) -> float:
        """The largest eps of the central noise for values that are rounded finely."""
        problem = self.problem
        return largest_central(
            eps=problem.eps,
            delta=problem.delta,
            max_value=LARGEST_VALUE,
            changes=problem.releases,
        )

    @property
    def settings(self) -> dict[str, str | float | int]:
        """The entries of a file's provenance about the values."""
        return {
            "values": "real, rounded at random to integers",
            "low": self.low,
            "high": self.high,
            "mse": self.mse * (self.high - self.low) ** 2,
        }

    def eps_central(self, max_value: int) -> float:
        """Return the smallest eps* that meets the error at this max_value; infinite if none
        does."""
        variance = self.problem.honest * (self.mse * max_value**2 - self.problem.n / 4)
        if variance <= 0:
            return math.inf
        return 2 * max_value * math.asinh(1 / math.sqrt(2 * variance))

    def coarsest(self) -> int:
        """The smallest max_value that leaves the atoms a part of eps."""
        problem = self.problem

        def too_coarse(max_value: int) -> bool:
            return self.eps_central(max_value) > _LARGEST_SHARE * self.largest

        low, high = 0, 1
        while high <= LARGEST_VALUE and too_coarse(high):
            low, high = high, 2 * high
        if high > LARGEST_VALUE and too_coarse(LARGEST_VALUE):
            noise = 2 / (problem.honest * self.largest**2)
            least = math.sqrt(problem.n / (4 * LARGEST_VALUE**2) + noise) * (self.high - self.low)
            asked = math.sqrt(self.mse) * (self.high - self.low)
            raise InvalidParameter(
                f"an RMSE of {asked:.4g} is out of reach for n = {problem.n:,} "
                f"values rounded to at most {LARGEST_VALUE} steps; about {1.02 * least:.4g} is "
                "possible"
            )
        return min(first_integer(lambda size: not too_coarse(size), low, high), LARGEST_VALUE)

    def predicted(
        self,
        max_value: int,
        near: FamilyDraft | None = None,
        *,
        thorough: bool = False,
        budget: Budget | None = None,
    ) -> Rounding:
        """The cost of a rounding according to stage 1, for a family like ``near`` if given;
        ``thorough`` takes as long as stage 1 of a search, and asks stage 2 how far off it is."""
        eps_central = self.eps_central(max_value)
        problem = replace(self.problem, max_value=max_value)
        target = Target(problem, eps_central, "bits", m=usual_m(self.noise))
        found = predicted(target, near, thorough=thorough, budget=budget)
        share = _stage_2_per_stage_1(found) if thorough else 1.0
        return self._rounding(max_value, share * found.messages, found.draft)

    def _rounding(self, max_value: int, messages: float, draft: FamilyDraft) -> Rounding:
        target = Target(self.problem, self.eps_central(max_value), "bits")
        bits = target.price(messages, max_value + 1 + draft.hubs) / self.problem.n
        return Rounding(max_value, self.eps_central(max_value), messages, bits, draft)

    def paper_max_value(self) -> int:
        """The paper's max_value, ceil(eps/2 sqrt(n / zeta)), for the zeta of this error."""
        if self.problem.releases > 1 or self.problem.honest < 1:
            raise InvalidParameter("the paper's theorem is for one release and noise from all")
        zeta = 1 - math.sqrt(2 / self.mse) / self.problem.eps
        if zeta <= 0:
            raise InvalidParameter("the error is below that of the central Laplace mechanism")
        return math.ceil(self.problem.eps / 2 * math.sqrt(self.problem.n / zeta))

    def of_the_paper(self) -> PaperRounding:
        """The paper's rounding with the noise of its theorem.

        Raises:
            InvalidParameter: If the error is below that of the central Laplace mechanism.
        """
        top = self.paper_max_value()
        target = Target(replace(self.problem, max_value=top), self.eps_central(top))
        messages = 1 + noise_messages(target.step, theorem(target).atoms) / self.problem.n
        # a sign and a value
        return PaperRounding(top, messages, bits_per_message(2 * top) * messages)

    def rough(self) -> Rounding:
        """The coarsest rounding, with a rough prediction of its cost, in a second or so.

        Messages grow a little faster than max_value, all else being equal.
        """
        least = self.coarsest()
        small = max(2, min(least, _ROUGH_SIZE))  # stage 1 has no program for max_value 1
        problem = replace(self.problem, max_value=small)
        target = Target(problem, self.eps_central(least), m=usual_m(self.noise))
        found = predicted(target, budget=Budget(seconds=_ROUGH_SECONDS))
        messages = found.messages * (least / small) ** _GROWTH
        return self._rounding(least, messages, FamilyDraft(least, {}))

    def choose(self, progress: Progress = silent, budget: Budget | None = None) -> Rounding:
        """The rounding with the fewest predicted bits per user.

        Predictions are rougher when the budget ends.
        """
        budget = budget or Budget()
        least = self.coarsest()
        known: list[Rounding] = []
        for i, factor in enumerate(_FACTORS):
            size = min(math.ceil(least * factor), LARGEST_VALUE)
            if known and size < known[-1].max_value * (1 + _CLOSEST):
                continue
            share = _FIRST_CHOICES * (i + 1) / len(_FACTORS)
            part = replace(budget, seconds=share * budget.seconds)
            near = known[-1].draft if known else None
            known.append(self.predicted(size, near, budget=part))
            progress(f"max_value {size}: about {known[-1].bits:.4f} bits per user")
        best = min(self._between(known), key=lambda choice: (choice.bits, choice.max_value))
        best = self.predicted(best.max_value, best.draft, thorough=True, budget=budget)
        progress(f"max_value {best.max_value}: about {best.bits:.4f} bits per user")
        return best

    def _between(self, known: list[Rounding]) -> Iterator[Rounding]:
        """The known roundings, and others between them: those just below a further bit, and a few
        more, with messages by interpolation of logarithms."""
        yield from known
        logs = [math.log(choice.max_value) for choice in known]
        log_messages = [math.log(choice.messages) for choice in known]
        hubs = max(choice.draft.hubs for choice in known)
        first, last = known[0].max_value, known[-1].max_value
        sizes = {round(first * (last / first) ** (i / _BIT_SIZES)) for i in range(1, _BIT_SIZES)}
        sizes |= {(1 << bits) - 1 - hubs for bits in range(1, last.bit_length() + 1)}
        for size in sorted(size for size in sizes if first < size < last):
            messages = math.exp(float(np.interp(math.log(size), logs, log_messages)))
            near = min(known, key=lambda choice: abs(math.log(choice.max_value / size)))
            yield self._rounding(size, messages, near.draft)


def _stage_2_per_stage_1(found: Screened) -> float:
    """Messages of stage 2 over those that stage 1 predicts, for a family or, if it is large, for
    one of the same shape at a smaller max_value."""
    target = found.target
    if target.problem.max_value > _STAGE_2_UNTIL:
        target = target.at(_STAGE_2_UNTIL)
        found = predicted(target, found.draft)
    solved = Search(target, Budget()).solve_screened(found)
    return solved.solution.messages / found.messages
