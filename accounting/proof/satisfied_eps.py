"""The smallest eps that a mechanism satisfies at a given delta."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from accounting.base.enclosure import Enclosure, readings
from accounting.base.errors import AccountingError, required
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
from accounting.proof.prove import LARGEST_BALL_OF_ANY
from accounting.proof.thinned_proof import ThinnedBounds, prove_thinned_sequence

_LARGEST_EPS = 500.0
"""Largest eps that is tried, as in ``Protocol.epsilon``: a larger one hardly protects."""
_FEW = 3
"""Largest max_value at which the notary bounds all changes of a fraction of the users."""
_RISES = (0.0, 0.0005, 0.001, 0.002, 0.004, 0.01, 0.03, 0.1, 0.3)
"""How much more than the eps of the worst change is tried for all changes, relative to it."""
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
    their noise, and as closely as the bounds allow for a fraction of them.

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
        low = more.epsilon(math.nextafter(delta + deviation.size, 1), progress=progress)
    except AccountingError:
        return None
    return Enclosure(low.lower, high.upper) if high.upper <= limit else None


def _of_a_fraction(
    mechanism: Mechanism,
    notary: Notary,
    question: Question,
    worst: Change | None,
    progress: Progress,
) -> Enclosure | None:
    """For the noise of a fraction of the users: the eps of the change that looks worst, by the
    notary, then a little more until the bounds of all changes agree."""
    delta, near = required(question.claim, "the claimed delta"), question.eps
    if question.releases > 1:
        return _of_releases(mechanism, notary, question, progress)
    every = _bounds_of_all(mechanism, notary, question, progress)
    worst = every(near)[1] if worst is None else worst
    found, known = _eps_of(notary, delta, [worst], near, progress), {worst}
    if found is None:
        return None
    for more in _RISES:
        eps = found.upper * (1 + more)
        upper, worst = every(eps)
        if upper <= delta:
            return Enclosure(found.lower, eps)
        if worst not in known:  # another change may be worse
            other = _eps_of(notary, delta, [worst], found.upper, progress)
            known.add(worst)
            if other is not None and other.lower > found.lower:
                found = other
    return None


def _of_releases(
    mechanism: Mechanism, notary: Notary, question: Question, progress: Progress
) -> Enclosure | None:
    """The same for several releases: by the notary, or by the fast evaluators where it takes long;
    their lower bound is weak."""
    delta = required(question.claim, "the claimed delta")
    if question.same_change or mechanism.max_value <= LARGEST_BALL_OF_ANY:
        return _eps_of(notary, delta, None, question.eps, progress)

    def bounds(eps: float) -> Enclosure:
        asked = replace(question, eps=eps)
        return prove_thinned_sequence(mechanism, asked, LOOSE, progress)[0].enclosure

    return crossing(bounds, delta, near=question.eps, largest=_LARGEST_EPS, gap=_GAP)


def _bounds_of_all(
    mechanism: Mechanism, notary: Notary, question: Question, progress: Progress
) -> Callable[[float], tuple[float, Change]]:
    """An upper bound of delta(eps) for all changes, and the change that looks worst: by the fast
    evaluators, or by the notary where they do not apply."""
    bounds = ThinnedBounds(mechanism, question)

    def fast(eps: float) -> tuple[float, Change]:
        upper = bounds.upper(eps, gap=LOOSE, progress=progress)
        worst = int(np.argmax(upper))
        return float(upper[worst]), bounds.less.changes[worst]

    def slow(eps: float) -> tuple[float, Change]:
        found = notary.enclose(eps, gap=LOOSE, claim=question.claim, progress=progress)
        return found.enclosure.upper, found.worst_change

    small = mechanism.max_value <= _FEW  # then the notary has the exact law
    return slow if small or mechanism.central.share() >= 1 else fast


def _eps_of(
    notary: Notary,
    delta: float,
    changes: list[Change] | None,
    near: float,
    progress: Progress,
) -> Enclosure | None:
    """The eps of these changes alone, by default of all."""

    def bounds(eps: float) -> Enclosure:
        proof = notary.enclose(eps, gap=LOOSE, claim=delta, changes=changes, progress=progress)
        return proof.enclosure

    return crossing(bounds, delta, near=near, largest=_LARGEST_EPS, gap=_GAP)
