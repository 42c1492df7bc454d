"""The smallest eps that a mechanism satisfies at a given delta."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

import numpy as np

from accounting.base.arrays import IntArray
from accounting.base.deadline import OutOfTime
from accounting.base.enclosure import Enclosure, readings
from accounting.base.errors import AccountingError, TooLarge, Undecided, required
from accounting.base.progress import Progress, silent
from accounting.model.change import SUBSTITUTION, Adjacency, Change
from accounting.model.mechanism import Mechanism
from accounting.model.proof import Proof
from accounting.model.proof_types import LOOSE
from accounting.model.question import Question
from accounting.notary.notary import Notary
from accounting.proof.crossing import crossing
from accounting.proof.deviation import Deviation, is_thinned
from accounting.proof.fast_proof import rounded_protocol
from accounting.proof.prove import LARGEST_BALL_OF_ANY, LARGEST_BALL_THINNED
from accounting.proof.thinned_proof import ThinnedBounds, prove_thinned_sequence

_LARGEST_EPS = 500.0
"""Largest eps that is tried, as in ``Protocol.epsilon``: a larger one hardly protects."""
_RISES = (0.0, 0.0005, 0.001, 0.002, 0.004, 0.01, 0.03, 0.1, 0.3)
"""How much more than the eps of the worst change is tried for all changes, relative to it."""
_ROUGH_RISES = (0.1, 0.3, 1.0, 3.0)
"""The same for an answer that is found quickly."""
_COARSE, _FINE = 1e-4, 1e-5
"""Gaps that the grids of the fast evaluators are made for: that of such an answer takes seconds."""
_HANDFUL = 16
"""Number of changes that the notary bounds at once, without a look at the others."""
_GAP = 1e-3
"""Relative width of the enclosure (absolute below 1)."""


def satisfied_eps(
    mechanism: Mechanism,
    delta: float,
    *,
    releases: int = 1,
    same_change: bool = False,
    adjacency: Adjacency = SUBSTITUTION,
    known: Proof | None = None,
    progress: Progress = silent,
) -> Enclosure | None:
    """The smallest eps with delta(eps) <= delta, enclosed to about a thousandth if all users add
    their noise, and as closely as the bounds allow for a fraction of them.  Where time runs out
    (accounting.base.deadline), the enclosure may be wide.

    Args:
        mechanism: What is deployed.
        delta: The delta of the guarantee; of its two readings the smaller one is meant.
        releases: Number of releases that are seen together.
        same_change: Whether a user makes the same change in every release.
        adjacency: Which data sets are neighbors.
        known: What was proved at some eps, where the search begins.
        progress: Called with one line of text now and then.

    Returns:
        The enclosure, or None if there is no such eps or it cannot be found.

    >>> from fractions import Fraction
    >>> from accounting import ExactCentral, ExactNoise, Mechanism
    >>> noise = ExactNoise(p=Fraction(96, 100), r=Fraction(12))
    >>> mechanism = Mechanism(1, {(-1, 1): (noise,)}, ExactCentral(step=Fraction(9, 10)))
    >>> found = satisfied_eps(mechanism, 1e-6)
    >>> 0.9 < found.lower <= found.upper < 1.5
    True
    """
    delta = readings(delta)[0]
    notary = Notary(mechanism, releases, same_change, adjacency)
    if notary.disclosed is not None:
        return None
    near, worst = (1.0, None) if known is None else (known.eps, known.worst_change)
    question = Question(eps=near, releases=releases, same_change=same_change, adjacency=adjacency)
    try:
        if is_thinned(mechanism, question, delta / 1000):
            question = replace(question, claim=delta)
            return _of_a_fraction(mechanism, notary, question, worst, progress)
        less, more = (rounded_protocol(mechanism, question, noise=n) for n in ("less", "more"))
        high = less.epsilon(delta, progress=progress)
        if less == more and Deviation.of(mechanism, 1.0, releases, adjacency).size == 0:
            return high
        limit = 1.01 * high.upper  # the deviation grows with eps: its value here serves below
        deviation = Deviation.of(mechanism, limit, releases, adjacency)
        if not deviation.helps:
            high = less.epsilon(math.nextafter(delta - deviation.size, 0), progress=progress)
        if high.upper > limit:
            return None
        low = 0.0 if known is None or known.enclosure.lower <= delta else known.eps
        with suppress(OutOfTime):  # delta is known to be larger at that eps
            low = more.epsilon(math.nextafter(delta + deviation.size, 1), progress=progress).lower
    except AccountingError:
        return None
    return Enclosure(low, high.upper)


def _of_a_fraction(
    mechanism: Mechanism,
    notary: Notary,
    question: Question,
    worst: Change | None,
    progress: Progress,
) -> Enclosure | None:
    """Enclose that eps for the noise of a fraction of the users."""
    if question.releases > 1:
        return _of_releases(mechanism, notary, question, progress)
    small = mechanism.max_value <= LARGEST_BALL_THINNED  # then a proof is left to the notary, too
    bounds = None if small or mechanism.central.share() >= 1 else ThinnedBounds(mechanism, question)
    search = _EveryChange(notary, question, bounds, progress)
    with suppress(TooLarge, Undecided):  # what is known by then holds
        search.run(worst)
    return None if search.high == math.inf else Enclosure(search.low, search.high)


class _EveryChange:
    """The search for an eps that every change satisfies, with the noise of a fraction of the users.

    delta falls with eps, so that a change which meets the claim at some eps meets it at every
    larger one, and needs no other bound there.  Of many changes, the fast evaluators bound all, and
    the notary those that they leave open, since its bounds of a single change are far closer.

    Attributes:
        low: The largest eps found so far that some change does not satisfy; 0 if there is none.
        high: The smallest eps found so far that every change satisfies; infinite if there is none.
    """

    def __init__(
        self,
        notary: Notary,
        question: Question,
        bounds: ThinnedBounds | None,
        progress: Progress,
    ) -> None:
        self.low, self.high = 0.0, math.inf
        self._notary, self._bounds, self._progress = notary, bounds, progress
        self._delta, self._near = required(question.claim, "the claimed delta"), question.eps
        self._changes: Sequence[Change] = (
            notary.mechanism.changes(question.adjacency) if bounds is None else bounds.less.changes
        )
        self._met_from = np.full(len(self._changes), math.inf)
        """Per change, an eps at which it was shown to meet the claim."""

    def run(self, worst: Change | None) -> None:
        """Find about the smallest eps: that of the change which looks worst, then a little more
        until the bounds of all changes agree, or show that another change is worse.

        Args:
            worst: The change that looks worst; by default, one that looks bad at the eps of the
                question.
        """
        if worst is None:
            left = self._left_open(self._near, _COARSE)
            some = left if len(left) else np.arange(len(self._changes))
            worst = self._proved(self._near, some[:_HANDFUL]).worst_change
        tried: set[Change] = set()
        while worst is not None:
            tried.add(worst)
            found = _eps_of(self._notary, self._delta, [worst], self._near, self._progress)
            if found is None:  # then no eps holds for all
                return
            self.low = max(self.low, found.lower)
            self._near = found.upper if len(tried) == 1 else max(self._near, found.upper)
            hardest = self._search_roughly() if len(tried) == 1 else None
            fresh = hardest is not None and hardest not in tried
            worst = hardest if fresh else self._worse_than(tried)

    def _search_roughly(self) -> Change | None:
        """Look for a larger eps that is easy to prove: it is the answer if time runs out.

        Returns:
            The worst of the changes that the fast evaluators leave open there, if there are any.
        """
        for more in _ROUGH_RISES if self._bounds is not None else ():
            eps = self._near * (1 + more)
            left = self._left_open(eps, _COARSE)
            if len(left) <= _HANDFUL and self._not_shown(eps, left) is None:
                return self._changes[int(left[0])] if len(left) else None
        return None

    def _worse_than(self, tried: set[Change]) -> Change | None:
        """Show that all changes meet the claim at little more than the eps of those that were
        tried; return another one for which this is not shown, if there is one."""
        for more in _RISES:
            eps = self._near * (1 + more)
            if eps >= self.high:
                return None
            violator = self._not_shown(eps, self._left_open(eps, _FINE))
            if violator not in tried:
                return violator
        return None

    def _left_open(self, eps: float, width: float) -> IntArray:
        """Return the changes that the fast evaluators, on a grid for a gap of this width, do not
        show to meet the claim at eps; those with the largest bounds first."""
        left = np.flatnonzero(self._met_from > eps)
        if self._bounds is None or len(left) <= _HANDFUL:
            return left
        bound = self._bounds.of_changes(left, eps, width=width, progress=self._progress)
        met = bound <= self._delta
        self._met_from[left[met]] = eps
        return left[~met][np.argsort(-bound[~met], kind="stable")]

    def _not_shown(self, eps: float, left: IntArray) -> Change | None:
        """Prove that these changes, the only ones left open, meet the claim at eps; return one for
        which the notary does not show it, if there is one."""
        for some in (left[:_HANDFUL], left[_HANDFUL:]):  # the largest bounds often tell
            if len(some):
                proof = self._proved(eps, some)
                if proof.enclosure.lower > self._delta:
                    self.low = max(self.low, eps)
                if proof.enclosure.upper > self._delta:
                    return proof.worst_change
                self._met_from[some] = eps
        self.high = min(self.high, eps)
        return None

    def _proved(self, eps: float, some: IntArray) -> Proof:
        changes = [self._changes[i] for i in some.tolist()]
        return self._notary.enclose(
            eps, gap=LOOSE, claim=self._delta, changes=changes, progress=self._progress
        )


def _of_releases(
    mechanism: Mechanism, notary: Notary, question: Question, progress: Progress
) -> Enclosure | None:
    """Enclose it for several releases: by the notary, or where that takes long by the fast
    evaluators, whose lower bound is weak."""
    delta = required(question.claim, "the claimed delta")
    if question.same_change or mechanism.max_value <= LARGEST_BALL_OF_ANY:
        return _eps_of(notary, delta, None, question.eps, progress)

    def bounds(eps: float) -> Enclosure:
        asked = replace(question, eps=eps)
        return prove_thinned_sequence(mechanism, asked, LOOSE, progress)[0].enclosure

    return crossing(bounds, delta, near=question.eps, largest=_LARGEST_EPS, gap=_GAP)


def _eps_of(
    notary: Notary,
    delta: float,
    changes: list[Change] | None,
    near: float,
    progress: Progress,
) -> Enclosure | None:
    """Enclose the eps that these changes satisfy, by default all."""

    def bounds(eps: float) -> Enclosure:
        proof = notary.enclose(eps, gap=LOOSE, claim=delta, changes=changes, progress=progress)
        return proof.enclosure

    return crossing(bounds, delta, near=near, largest=_LARGEST_EPS, gap=_GAP)
