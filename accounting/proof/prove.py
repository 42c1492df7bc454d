"""One question, three tiers: bounds on delta(eps) of a mechanism, and what they rest on.

``ball``   every pair by the notary (ball arithmetic).
``mixed``  the fast evaluators bound every pair; the notary proves those they leave in doubt, and in
           any case 64 of the worst.  With any changes in several releases it proves the lower bound
           alone, for adaptive sequences of the changes that matter.
``fast``   the fast evaluators alone (floating point with proven error bounds).
``light``  where there is far more noise than the claim needs, an upper bound for less of it.

The fast evaluators take doubles.  More noise never hurts (exact_view.md, section 3; NB(r, p) grows
with r and with p, notary.md, section 6), so their upper bounds come from parameters rounded towards
less noise and their lower bounds from parameters rounded towards more.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np

from accounting.base.arrays import IntArray
from accounting.base.balls import above, ball, below, precision
from accounting.base.deadline import check_deadline, keeps_time
from accounting.base.enclosure import Enclosure
from accounting.base.errors import (
    AccountingError,
    InvalidFamily,
    InvalidParameter,
    TooLarge,
    Undecided,
)
from accounting.base.progress import Progress, silent
from accounting.base.validation import not_negative, one_of
from accounting.composition.any_sequence import sequence_bounds
from accounting.model.change import Change, Repeated
from accounting.model.family import Family
from accounting.model.mechanism import Mechanism
from accounting.model.proof_types import FAST, GAP, LOOSE, MOST_RELEASES, Tier
from accounting.notary.notary import Finding, Notary
from accounting.proof.directed_rounding import configuration
from accounting.proof.less_noise import heavy, light_enough, lightened
from accounting.protocol import Protocol

LARGEST_BALL = 128
"""Of max_value: beyond it ``auto`` means ``mixed``."""
MOST_BALL_RELEASES = 4
"""Beyond them ``auto`` means ``fast``: high powers of polynomials over balls take minutes."""
LARGEST_BALL_OF_ANY = 24
"""Of max_value: beyond it ``auto`` means ``fast`` for several releases with any changes."""
_LARGEST_EPS = 500.0
_OPINIONS = 64
_NEAR = 0.9
"""Pairs whose fast upper bound exceeds this share of the worst lower bound go to the notary."""


@dataclass(frozen=True)
class Proof:
    """delta(eps) over all ordered pairs; ``covered`` counts them by the method that proved them."""

    eps: float
    enclosure: Enclosure
    worst_change: Change
    exact: bool
    met: bool
    covered: Mapping[str, int]
    precision: int
    deviation: float
    worst_sequence: tuple[Repeated, ...] = ()
    """For any sequence of changes: a fixed one that is bad, as changes and how often each is made.
    The lower bound may be that of an adaptive one, which begins with ``worst_change``."""
    sequence_lower: float = 0.0
    """What ``worst_sequence`` attains by itself."""
    lighter: bool = False
    """Whether this is a proof for less noise, which gives no lower bound (lighter.py)."""


@keeps_time
def prove(
    mechanism: Mechanism,
    eps: float,
    *,
    releases: int = 1,
    same_change: bool = False,
    tier: Tier = "auto",
    gap: float = GAP,
    claim: float | None = None,
    deadline: float = math.inf,
    progress: Progress = silent,
) -> Proof:
    """Bounds on delta(eps); refined to ``gap``, or to a percent once ``claim`` is decided.

    Several ``releases`` cover any sequence of changes of one user, chosen adaptively
    (composition/releases.md), or with ``same_change`` only the same change in each of them.
    ``auto`` is ``light`` where all the noise would take very long.
    """
    eps = not_negative("eps", eps)
    one_of("tier", tier, get_args(Tier))
    notary = Notary(mechanism, releases, same_change)
    light = tier == "light" or (tier == "auto" and heavy(mechanism))
    tier = "auto" if tier == "light" else tier
    if light and claim is not None and notary.disclosed is None:
        factor = light_enough(mechanism, eps, releases, claim, same_change=same_change)
        if factor > 1:
            less = prove(
                lightened(mechanism, factor),
                eps,
                releases=releases,
                same_change=same_change,
                tier=tier,
                gap=1.0,
                claim=claim,
                deadline=deadline,
                progress=progress,
            )
            if less.enclosure.upper <= claim:
                enclosure = Enclosure(0.0, less.enclosure.upper)
                return replace(less, enclosure=enclosure, exact=False, lighter=True)

    def guess() -> float:
        try:
            less = _protocol(mechanism, "less", releases, same_change)
            return less.delta(eps, gap=0.5).enclosure.upper
        except AccountingError:
            return 1.0

    thinned = _thinned(mechanism, eps, releases, gap * (1e-6 if claim is None else claim))
    if notary.any_sequence and releases > MOST_RELEASES:
        raise InvalidParameter(
            f"releases = {releases:,} is more than {MOST_RELEASES:,}, the most for any sequence of "
            "changes; ask for fewer, or for --same-change if that is what is meant"
        )
    if tier == "auto" and notary.any_sequence:
        tier = "ball" if thinned or mechanism.max_value <= LARGEST_BALL_OF_ANY else "fast"
    elif tier == "auto":
        tier = "ball" if mechanism.max_value <= LARGEST_BALL else "mixed"
        if releases > MOST_BALL_RELEASES:
            tier = "fast"
    if tier == "ball" or notary.disclosed is not None:
        found = notary.enclose(
            eps, gap=gap, claim=claim, guess=guess, deadline=deadline, progress=progress
        )
        proof = _by_notary(found)
        if notary.any_sequence and not thinned and not found.worst_sequence and found.exact:
            with suppress(AccountingError):  # a lower bound is welcome, and not needed
                other, _ = _fast_any(mechanism, eps, releases, claim, LOOSE, progress)
                return _with_lower(proof, other)
        return proof
    if thinned:
        raise Undecided(
            "the fast evaluators know the whole central noise only, not that of a fraction of the "
            "users: ask for --tier ball"
        )

    def watch(text: str) -> None:
        check_deadline(deadline)
        progress(text)

    if notary.any_sequence:
        proof, kinds = _fast_any(mechanism, eps, releases, claim, gap, watch)
        if tier == "fast":
            return proof
        with suppress(TooLarge, Undecided):  # what is proved from above stands
            adaptive = notary.enclose(
                eps, gap=gap, claim=claim, changes=kinds, deadline=deadline, progress=progress
            )
            return _with_lower(proof, _by_notary(adaptive))
        return proof
    loose = tier == "mixed" and claim is None
    fast = _fast(mechanism, eps, releases, claim, LOOSE if loose else gap, watch)
    if tier == "fast":
        return fast.proof
    near = _doubtful(fast, claim)
    if len(near) == 0:  # every bound is 0
        return fast.proof
    doubtful = [fast.changes[int(i)] for i in near]
    found = notary.enclose(
        eps, gap=gap, claim=claim, changes=doubtful, deadline=deadline, progress=progress
    )
    others = np.delete(fast.upper, near)
    upper = max(found.enclosure.upper, float(others.max(initial=0.0)))
    covered = {found.method: len(doubtful), FAST: len(others)}
    enclosure = Enclosure(found.enclosure.lower, upper)
    met = found.met and upper - enclosure.lower <= gap * upper
    return replace(_by_notary(found), enclosure=enclosure, covered=covered, met=met)


def unprotected(mechanism: Mechanism) -> str:
    """What is wrong with the set of atoms, and what to add."""
    noisy = tuple(atom for atom, parts in mechanism.atoms.items() if parts)
    try:
        Family(mechanism.max_value, noisy)
    except InvalidFamily as error:
        return str(error)
    return "no atom with noise defines it"


def satisfied_eps(
    mechanism: Mechanism,
    delta: float,
    releases: int = 1,
    progress: Progress = silent,
    *,
    same_change: bool = False,
) -> Enclosure | None:
    """The smallest eps with delta(eps) <= delta, enclosed to about a thousandth; None if there is
    none or it cannot be found."""
    notary = Notary(mechanism, releases, same_change)
    if notary.disclosed is not None:
        return None
    try:
        if _thinned(mechanism, 1.0, releases, delta / 1000):
            return _by_halving(notary, delta, progress)
        less = _protocol(mechanism, "less", releases, same_change)
        more = _protocol(mechanism, "more", releases, same_change)
        high = less.epsilon(delta, progress=progress)
        if less == more and _deviation(mechanism, 1.0, releases) == 0:
            return high
        limit = 1.01 * high.upper  # the deviation grows with eps: its value here serves below
        extra = _deviation(mechanism, limit, releases)
        if not _enough_central(mechanism):
            stricter = math.nextafter(delta - extra, 0)
            high = less.epsilon(stricter, progress=progress)
        low = more.epsilon(math.nextafter(delta + extra, 1), progress=progress)
    except AccountingError:
        return None
    return Enclosure(low.lower, high.upper) if high.upper <= limit else None


def _by_halving(notary: Notary, delta: float, progress: Progress) -> Enclosure | None:
    """The pair that looks worst at eps = 1 is followed alone; in the end all have to agree."""
    attempts: list[list[Change] | None] = [None]
    if not notary.any_sequence:
        attempts = [
            [notary.enclose(1.0, gap=LOOSE, claim=delta, progress=progress).worst_change],
            None,
        ]
    for changes in attempts:
        low, high = 0.0, math.inf
        while high - low > 1e-3 * max(1.0, low):
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


def _deviation(mechanism: Mechanism, eps: float, releases: int) -> float:
    with precision(128):
        return min(1.0, above(mechanism.deviation(eps, releases)))  # no two deltas differ by more


def _protocol(
    mechanism: Mechanism,
    noise: Literal["less", "more"],
    releases: int,
    same_change: bool = False,
) -> Protocol:
    return Protocol(configuration(mechanism, noise=noise), releases, same_change)


def _enough_central(mechanism: Mechanism) -> bool:
    """A share of at least 1 is NB(1, q) and more noise: its deviation only helps."""
    with precision(128):
        return bool(mechanism.central.share() >= 1)


def _thinned(mechanism: Mechanism, eps: float, releases: int, tolerated: float) -> bool:
    """Whether the central noise is too far from NB(1, q) to count its deviation."""
    with precision(128):
        whole = mechanism.central.whole()
    return not whole and _deviation(mechanism, eps, releases) > tolerated


def _by_notary(found: Finding) -> Proof:
    return Proof(
        eps=found.eps,
        enclosure=found.enclosure,
        worst_change=found.worst_change,
        exact=found.exact,
        met=found.met,
        covered={found.method: found.pairs},
        precision=found.precision,
        deviation=found.deviation,
        worst_sequence=found.worst_sequence,
        sequence_lower=found.sequence_lower,
    )


def _with_lower(proof: Proof, other: Proof) -> Proof:
    """The upper bound of one proof with the lower bound and the witness of another."""
    if other.enclosure.lower <= proof.enclosure.lower:
        return proof
    enclosure = Enclosure(other.enclosure.lower, proof.enclosure.upper)
    return replace(
        proof,
        enclosure=enclosure,
        worst_change=other.worst_change,
        worst_sequence=other.worst_sequence or proof.worst_sequence,
        sequence_lower=max(other.sequence_lower, proof.sequence_lower),
    )


def _fast_any(
    mechanism: Mechanism,
    eps: float,
    releases: int,
    claim: float | None,
    gap: float,
    progress: Progress,
) -> tuple[Proof, list[Change]]:
    """Any sequence of changes by the fast evaluators, and changes that stand for all others."""
    less, more = (_protocol(mechanism, noise, 1) for noise in ("less", "more"))
    found = sequence_bounds(
        less.view_pairs, more.view_pairs, eps, releases, gap=gap, claim=claim, progress=progress
    )
    deviation = _deviation(mechanism, eps, releases)
    added = 0.0 if _enough_central(mechanism) else deviation
    exact = less.configuration.family.exact
    lower = found.lower if exact else 0.0
    enclosure = _with_deviation(lower, found.upper, deviation, added)
    changes = less.changes
    proof = Proof(
        eps=eps,
        enclosure=enclosure,
        worst_change=changes[found.witness[0][0]],
        exact=exact,
        met=enclosure.upper - enclosure.lower <= gap * enclosure.upper,
        covered={FAST: len(changes)},
        precision=53,
        deviation=deviation,
        worst_sequence=tuple(Repeated(changes[q], times) for q, times in found.witness),
        sequence_lower=enclosure.lower,
    )
    return proof, [changes[q] for q in found.kinds]


def _doubtful(fast: _Fast, claim: float | None) -> IntArray:
    """The pairs for the notary: all that could be the worst, or, once the claim is decided, some of
    the worst for a second opinion."""
    near = np.flatnonzero(fast.upper > _NEAR * fast.proof.enclosure.lower)
    if claim is None or fast.proof.enclosure.lower > claim:
        return near
    near = near[np.argsort(-fast.upper[near], kind="stable")]
    above_it = int(np.count_nonzero(fast.upper[near] > claim))
    return near[: max(_OPINIONS, above_it)]


@dataclass(frozen=True)
class _Fast:
    proof: Proof
    changes: Sequence[Change]
    upper: np.ndarray[tuple[int], np.dtype[np.float64]]


def _fast(
    mechanism: Mechanism,
    eps: float,
    releases: int,
    claim: float | None,
    gap: float,
    progress: Progress,
) -> _Fast:
    less = _protocol(mechanism, "less", releases, same_change=True)
    more = _protocol(mechanism, "more", releases, same_change=True)
    deviation = _deviation(mechanism, eps, releases)
    added = 0.0 if _enough_central(mechanism) else deviation
    wanted = LOOSE
    while True:
        upper = less.delta(eps, gap=wanted, progress=progress)
        lower = upper
        if less != more:
            lower = more.delta(eps, gap=wanted, progress=progress)
        below_it, above_it = lower.enclosure.lower, upper.enclosure.upper
        enclosure = _with_deviation(below_it, above_it, deviation, added)
        decided = claim is None or enclosure.upper <= claim or enclosure.lower > claim
        if decided or wanted <= gap:
            break
        wanted = max(gap, wanted / 10)
    fewer = releases
    while claim is not None and enclosure.lower <= claim < enclosure.upper and fewer > 8:
        fewer //= 8  # who sees all releases sees these: delta does not decrease with their number
        part = replace(more, releases=fewer).delta(eps, gap=LOOSE, progress=progress)
        if part.enclosure.lower > below_it:
            below_it, lower = part.enclosure.lower, part
            enclosure = _with_deviation(below_it, above_it, deviation, added)
    proof = Proof(
        eps=eps,
        enclosure=enclosure,
        worst_change=lower.worst_change if lower.exact else upper.worst_change,
        exact=upper.exact,
        met=upper.met and lower.met,
        covered={FAST: len(upper.changes)},
        precision=53,
        deviation=deviation,
    )
    uppers = np.nextafter(upper.upper + added, math.inf) if added else upper.upper
    return _Fast(proof, upper.changes, uppers)


def _with_deviation(lower: float, upper: float, deviation: float, added: float) -> Enclosure:
    with precision(128):
        low = below(ball(lower) - ball(deviation))
        high = above(ball(upper) + ball(added))
    return Enclosure(max(0.0, low), min(1.0, high))
