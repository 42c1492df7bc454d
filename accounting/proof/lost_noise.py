"""What holds if the uploads of some users with noise are lost (lost_noise.md).

Dropouts that have nothing to do with the noise leave the noise of a fraction of the users.  These
do not: the users who are lost are among the few who drew noise.  If who is lost may depend on
everything that was drawn, a single loss is enough to reveal an input (Theorem 1).  If it depends on
who drew noise alone, what is left is a mixture of the noises of fractions of the users (Theorem 2),
and proofs for a few fractions give an upper bound of delta.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING

from accounting.base.balls import above, ball, below, precision
from accounting.base.deadline import OutOfTime, check_time
from accounting.base.enclosure import Enclosure
from accounting.base.errors import InvalidParameter, TooLarge, Undecided
from accounting.base.progress import Progress, silent
from accounting.base.validation import whole
from accounting.model.mechanism import Mechanism
from accounting.model.proof_types import LOOSE, AuditTier
from accounting.model.question import Question
from accounting.proof.crossing import crossing
from accounting.proof.less_noise import has_heavy_noise
from accounting.proof.prove import prove

if TYPE_CHECKING:
    from flint import arb

_BITS = 192
"""Working precision."""
_LARGEST_EPS = 500.0
"""Largest eps that is tried: a larger one hardly protects."""
_GAP = 4e-3
"""Accuracy of the eps that holds, relative above 1 and absolute below."""
_REST = 0.01
"""Share of delta that the chance of more losses than any fraction allows for may add."""
_FIRST, _MOST = 4, 12
"""Number of fractions that are proved at first, and at most."""
_EXCESS = 0.1
"""Share of the bound that a further fraction could save at most, below which none is added."""
_OF_CLAIM = 1 / 16
"""The proof of a fraction is refined until it meets this share of delta."""
_NEGLIGIBLE = 2.0**-40
"""Size of the rest of a binomial tail, relative to its sum, at which it is bounded."""
_MOST_TERMS = 100_000
"""Most terms of a binomial tail; where more are needed, 1 is used."""


def worst_way(mechanism: Mechanism, *, users: int, noisy: int) -> float:
    """Return a number that delta is at least, at every eps, if one upload with noise may be lost
    and who is lost may depend on everything that was drawn (lost_noise.md, Theorem 1).

    Args:
        mechanism: What is deployed, with the noise of all users.
        users: Number of users.
        noisy: Number of users who add their noise.

    Returns:
        The lower bound.

    >>> from accounting import ExactCentral, ExactNoise, Mechanism
    >>> noise = ExactNoise(p=Fraction(96, 100), r=Fraction(12))
    >>> mechanism = Mechanism(1, {(-1, 1): (noise,)}, ExactCentral(step=Fraction(9, 10)))
    >>> worst_way(mechanism, users=1000, noisy=1000) > 0.9996
    True
    """
    with precision(_BITS):
        draws_noise = -(-mechanism.event_rate() / users).expm1()
        alone = ball(Fraction(1, noisy)) * ball(Fraction(noisy - 1, noisy)) ** (noisy - 1)
        found = 1 - draws_noise.min(alone.min(ball(0.5)))
        return max(0.0, below(found))


@dataclass(frozen=True)
class LeftFraction:
    """A fraction of the users whose noise is left, but for a small chance of less.

    Attributes:
        fraction: The noise is at least that of this fraction of all users.
        chance_of_less: An upper bound of the probability of less noise in some release.
        delta_upper: Upper bound of delta with the noise of this fraction.
    """

    fraction: Fraction
    chance_of_less: float
    delta_upper: float


@dataclass
class BlindLosses:
    """Upper bounds of delta where users with noise are lost whatever they drew.

    Args:
        mechanism: What is deployed, with the noise of all users.
        question: The releases, the adjacency, and the claimed delta, which is needed.
        users: Number of users.
        noisy: Number of users who add their noise before any of it is lost.
        lost: Number of users with noise whose uploads are lost, in every release.
        tier: Which proofs to use for the fractions; unless it is ``ball`` or ``reference``, the
            fast ones where they apply.
        progress: Called with one line of text now and then.

    Raises:
        InvalidParameter: If a number is outside its domain, or no delta is claimed.

    >>> from accounting import ExactCentral, ExactNoise, Mechanism
    >>> noise = ExactNoise(p=Fraction(96, 100), r=Fraction(20))
    >>> mechanism = Mechanism(1, {(-1, 1): (noise,)}, ExactCentral(step=Fraction(9, 10)))
    >>> question = Question(eps=1.0, claim=1e-6)
    >>> losses = BlindLosses(mechanism, question, users=1000, noisy=1000, lost=2, tier="ball")
    >>> 0 < losses.upper(3.0) < 1e-6
    True
    """

    mechanism: Mechanism
    question: Question
    users: int
    noisy: int
    lost: int
    tier: AuditTier = "auto"
    progress: Progress = silent
    obstacle: str | None = field(default=None, init=False)
    """Why the latest fraction that could not be proved could not."""

    def __post_init__(self) -> None:
        whole("users", self.users, least=1)
        whole("noisy", self.noisy, least=1, most=self.users)
        whole("lost", self.lost, least=1)
        if self.lost > self.noisy:
            raise InvalidParameter(
                f"lost = {self.lost:,} is more than the {self.noisy:,} users who add noise; "
                "give a smaller number"
            )
        if self.question.claim is None:
            raise InvalidParameter("lost noise is bounded for a claimed delta: give one")
        self._delta = self.question.claim
        self._known: dict[tuple[int, float], float] = {}
        self._chance = cache(self._chance_of_more)
        self._knots: list[int] = []

    def upper(self, eps: float) -> float:
        """Return an upper bound of delta(eps) (lost_noise.md, Theorem 2).

        Out of time, it rests on the fractions that are proved so far.
        """
        if not self._knots:
            self._knots = self._first_knots()
        while len(self._knots) < _MOST and (place := self._worth_adding(eps)) is not None:
            self._knots = sorted([*self._knots, place])
        return self._bound(eps)

    @property
    def hopeless(self) -> bool:
        """Whether the bound exceeds the claimed delta at every eps: all noise may be lost."""
        return self._chance(self.noisy - 1) > self._delta

    def satisfied_eps(self, near: float) -> tuple[float | None, bool]:
        """Return about the smallest eps for which the upper bound is the claimed delta or less.

        Args:
            near: Where to begin.

        Returns:
            An eps that holds, None if none was found; and whether the search came to its end.
        """
        self.upper(near)
        holds = math.inf

        def bounds(eps: float) -> Enclosure:
            nonlocal holds
            upper = self._bound(eps)
            if self._delta * _OF_CLAIM < upper <= self._delta / _OF_CLAIM:
                upper = self.upper(eps)
            if upper <= self._delta:
                holds = min(holds, eps)
            check_time()
            return Enclosure(upper, upper)

        searched = True
        if not self.hopeless:
            try:
                crossing(bounds, self._delta, near=near, largest=_LARGEST_EPS, gap=_GAP)
            except OutOfTime:  # what was found so far holds
                searched = False
        return (None if holds == math.inf else holds), searched

    def fractions(self, eps: float) -> list[LeftFraction]:
        """Return the fractions that the bound at this eps rests on, the largest first."""
        return [
            LeftFraction(self._left(knot), self._chance(knot), self._known[knot, eps])
            for knot in self._knots
            if (knot, eps) in self._known
        ]

    def _left(self, knot: int) -> Fraction:
        """The fraction of all users who come after this place."""
        return Fraction(self.noisy - knot, self.users)

    def _bound(self, eps: float) -> float:
        """The bound of Theorem 2, by the proofs of all knots that time allows."""
        values, worse = [], 1.0
        for knot in reversed(self._knots):  # less noise first: it bounds the others
            worse = min(worse, self._proved(knot, eps))
            values.append(worse)
        values.reverse()
        with precision(_BITS):
            total = ball(values[0])
            for (knot, _), (before, value) in zip(
                pairwise([*self._knots, self.noisy]), pairwise([*values, 1.0]), strict=True
            ):
                total += (ball(value) - ball(before)) * ball(self._chance(knot))
            return min(1.0, above(total))

    def _proved(self, knot: int, eps: float) -> float:
        """An upper bound of delta(eps) with the noise of those after this place; 1 if time is over
        or no proof applies."""
        if (knot, eps) not in self._known:
            fraction = self._left(knot)
            self.progress(f"noise of {float(fraction):.6f} of the users, eps = {eps:.6g}")
            question = replace(self.question, eps=eps, claim=self._delta * _OF_CLAIM)
            try:
                check_time()
                proof = prove(
                    self.mechanism.thinned(fraction),
                    question,
                    tier=self._tier,
                    gap=LOOSE,
                    progress=self.progress,
                )
            except OutOfTime as error:
                self.obstacle = str(error)
                return 1.0
            except (TooLarge, Undecided) as error:
                self.obstacle = str(error)
                self._known[knot, eps] = 1.0
            else:
                self._known[knot, eps] = proof.enclosure.upper
        return self._known[knot, eps]

    @property
    def _tier(self) -> AuditTier:
        if self.tier in ("ball", "reference"):
            return self.tier
        if has_heavy_noise(self.mechanism):
            return "light"
        # the same change in several releases is beyond the fast evaluators
        return "ball" if self.question.releases > 1 and self.question.same_change else "fast"

    def _first_knots(self) -> list[int]:
        """Places whose chances of more fall from one half to a share of delta in equal ratios."""
        last = max(_REST * self._delta, self._chance(self.noisy - 1))
        if last >= 0.5:  # hardly anything can be left
            return [self.noisy - 1]
        ratio = (last / 0.5) ** (1 / (_FIRST - 1))
        return sorted({self._quantile(0.5 * ratio**i) for i in range(_FIRST)})

    def _quantile(self, chance: float) -> int:
        """About the first place beyond which the last loss is with this chance."""
        low, high = self.lost - 1, self.noisy - 1
        while high - low > 1 + _GAP * low:
            middle = (low + high) // 2
            low, high = (low, middle) if self._chance(middle) <= chance else (middle, high)
        return high

    def _worth_adding(self, eps: float) -> int | None:
        """The place whose proof could lower the bound most; None if none could by much.  A rule of
        thumb."""
        bound = self._bound(eps)
        if bound <= self._delta * _OF_CLAIM:
            return None
        ends = [self.lost, *self._knots]
        values = [self._known.get((knot, eps), 1.0) for knot in self._knots]
        growing = len(values) > 1 and values[1] > 0
        values.insert(0, values[0] ** 2 / values[1] if growing else 0.0)
        chances = [1.0, *map(self._chance, self._knots)]
        saved = [
            (values[i + 1] - values[i]) * (chances[i] - chances[i + 1])
            for i in range(len(self._knots))
        ]
        worst = saved.index(max(saved))
        middle = (ends[worst] + ends[worst + 1]) // 2
        return None if saved[worst] <= _EXCESS * bound or middle in ends else middle

    def _chance_of_more(self, place: int) -> float:
        """An upper bound of the probability that, in some release, the last loss comes after this
        place, or that all noise is lost: fewer than ``lost`` of the first users have noise."""
        if place < self.lost:
            return 1.0
        with precision(_BITS):
            rate = self.mechanism.event_rate() / self.users
            found = self.question.releases * _fewer_successes(self.lost, place, rate)
            return min(1.0, above(found))


def _fewer_successes(count: int, trials: int, rate: arb) -> arb:
    """An upper bound of the probability of fewer than ``count`` successes in independent trials,
    each of which fails with probability e^-rate; count <= trials."""
    k = count - 1
    win = -(-rate).expm1()
    choices = ball(trials + 1).lgamma() - ball(k + 1).lgamma() - ball(trials - k + 1).lgamma()
    term = (choices + k * win.log() - (trials - k) * rate).exp()
    total = term
    for _ in range(_MOST_TERMS):
        if k == 0:
            return total
        factor = k * (-rate).exp() / ((trials - k + 1) * win)
        if not factor < 1:  # ``count`` is above the mode, and about half of the law below
            break
        rest = term * factor / (1 - factor)  # the factors fall with k
        if rest < total * _NEGLIGIBLE:
            return total + rest
        term, k = term * factor, k - 1
        total += term
    return ball(1.0)
