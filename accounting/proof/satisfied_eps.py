"""The smallest eps that a mechanism satisfies at a given delta."""

from __future__ import annotations

import math

from accounting.base.enclosure import Enclosure
from accounting.base.errors import AccountingError
from accounting.base.progress import Progress, silent
from accounting.model.change import SUBSTITUTION, Adjacency, Change
from accounting.model.mechanism import Mechanism
from accounting.model.proof_types import LOOSE
from accounting.model.question import Question
from accounting.notary.notary import Notary
from accounting.proof.deviation import Deviation, is_thinned
from accounting.proof.fast_proof import rounded_protocol

_LARGEST_EPS = 500.0
"""Largest eps that is tried, as in ``Protocol.epsilon``: a larger one hardly protects."""
_GAP = 1e-3
"""Relative width of the enclosure (absolute below 1)."""


def satisfied_eps(
    mechanism: Mechanism,
    delta: float,
    *,
    releases: int = 1,
    same_change: bool = False,
    adjacency: Adjacency = SUBSTITUTION,
    progress: Progress = silent,
) -> Enclosure | None:
    """The smallest eps with delta(eps) <= delta, enclosed to about a thousandth.

    Args:
        mechanism: What is deployed.
        delta: The delta of the guarantee.
        releases: Number of releases that are seen together.
        same_change: Whether a user makes the same change in every release.
        adjacency: Which data sets are neighbors.
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
    notary = Notary(mechanism, releases, same_change, adjacency)
    if notary.disclosed is not None:
        return None
    question = Question(eps=1.0, releases=releases, same_change=same_change, adjacency=adjacency)
    try:
        if is_thinned(mechanism, question, delta / 1000):
            return _by_notary(notary, delta, progress)
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


def _by_notary(notary: Notary, delta: float, progress: Progress) -> Enclosure | None:
    """Bisection, first with the change that looks worst at eps = 1 alone, then, if that fails, with
    all changes."""
    attempts: list[list[Change] | None] = [None]
    if not notary.any_sequence:
        looks_worst = notary.enclose(1.0, gap=LOOSE, claim=delta, progress=progress).worst_change
        attempts = [[looks_worst], None]
    for changes in attempts:
        low, high = 0.0, math.inf
        while high - low > _GAP * max(1.0, low):
            eps = (low + high) / 2 if high < math.inf else 2 * low + 1
            if eps > _LARGEST_EPS:
                return None
            found = notary.enclose(eps, gap=LOOSE, claim=delta, changes=changes, progress=progress)
            if found.enclosure.upper <= delta:
                high = eps
            elif found.enclosure.lower > delta:
                low = eps
            else:
                break
        if high == math.inf:
            continue
        found = notary.enclose(high, gap=LOOSE, claim=delta, progress=progress)
        if found.enclosure.upper <= delta:
            return Enclosure(low, high)
    return None
