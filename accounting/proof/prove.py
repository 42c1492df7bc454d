"""One question, several tiers: bounds of delta(eps) of a mechanism, and what they rest on.

``ball``   The notary proves every change (ball arithmetic).
``mixed``  The fast evaluators bound every change; the notary proves those they leave in doubt, and
           some of the worst.  Where the changes in several releases may differ, it proves
           the lower bound only, for adaptive sequences of the changes that matter.
``fast``   The fast evaluators alone (floating point with a proven error budget).
``light``  An upper bound for less noise, where there is far more noise than the claim needs; if
           that proof fails, the same as ``auto``.
``reference``  The definition, enumerated outcome by outcome, for small mechanisms.
``auto``   One of these, by the size of the problem.
"""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import get_args

import numpy as np

from accounting.base.deadline import check_deadline, sets_deadline
from accounting.base.enclosure import Enclosure, readings
from accounting.base.errors import AccountingError, InvalidFamily, TooLarge, Undecided
from accounting.base.progress import Progress, silent
from accounting.base.validation import one_of
from accounting.model.family import Family
from accounting.model.mechanism import Mechanism
from accounting.model.proof import Proof
from accounting.model.proof_types import (
    BALL_COUPLED,
    COMPARISON,
    FAST,
    GAP,
    LOOSE,
    TYPICAL_DELTA,
    AuditTier,
    Tier,
)
from accounting.model.question import Question
from accounting.notary.notary import Notary
from accounting.proof.both_readings import proof_for_both
from accounting.proof.deviation import is_thinned
from accounting.proof.fast_proof import prove_any_sequence, prove_same_change, rounded_protocol
from accounting.proof.less_noise import has_heavy_noise, noise_reduction, with_less_noise
from accounting.proof.thinned_proof import prove_thinned, prove_thinned_sequence
from accounting.reference.reference import Reference

LARGEST_BALL = 128
"""The largest max_value for which ``auto`` means ``ball``; beyond it, ``mixed``."""
LARGEST_MIXED = 500
"""The largest max_value for which ``auto`` means ``mixed``; beyond it, ``fast``: the central noise
of a single change has too many outcomes for balls."""
MOST_BALL_RELEASES = 4
"""The most releases for which ``auto`` uses balls: high powers of polynomials take minutes."""
LARGEST_BALL_THINNED = 32
"""The largest max_value for which ``auto`` means ``ball`` where a fraction of the users adds noise,
and one release is asked for; beyond it, ``mixed``."""
LARGEST_BALL_OF_ANY = 24
"""The largest max_value for which ``auto`` means ``ball`` where changes may differ."""


@sets_deadline
def prove(
    mechanism: Mechanism,
    question: Question,
    *,
    tier: AuditTier = "auto",
    gap: float = GAP,
    deadline: float = math.inf,
    progress: Progress = silent,
) -> Proof:
    """Bound delta(eps), refined to ``gap``, or to a percent once the claim is decided.

    They hold for both readings of eps, as a double and as a decimal (``both_readings``).  The claim
    to decide is the smaller reading of the delta that is claimed.

    Args:
        mechanism: What is deployed, in exact numbers.
        question: The eps, the releases, and the delta that is claimed.
        tier: Which proofs to use; see the text of this module.
        gap: Relative gap between the bounds at which refining ends.
        deadline: On the clock of ``time.monotonic``; afterwards what is proved so far counts.
        progress: Called with one line of text now and then.

    Returns:
        The bounds, the worst change, and the methods that proved them.

    Raises:
        InvalidParameter: If a number is outside its domain.
        TooLarge: If the computation would not fit into memory.
        Undecided: If nothing was proved before the deadline, or a tier does not apply.

    >>> from fractions import Fraction
    >>> from accounting import ExactCentral, ExactNoise, Mechanism, Question
    >>> noise = ExactNoise(p=Fraction(96, 100), r=Fraction(12))
    >>> mechanism = Mechanism(1, {(-1, 1): (noise,)}, ExactCentral(step=Fraction(9, 10)))
    >>> proof = prove(mechanism, Question(eps=1.0, claim=1e-4))
    >>> proof.enclosure.upper <= 1e-4, dict(proof.covered)
    (True, {'ball': 2})
    """
    one_of("tier", tier, get_args(AuditTier))
    if question.claim is not None:
        question = replace(question, claim=readings(question.claim)[0])

    def at(eps: float) -> Proof:
        asked = replace(question, eps=eps)
        return _prove_at(mechanism, asked, tier=tier, gap=gap, deadline=deadline, progress=progress)

    return proof_for_both(question.eps, at, gap=gap)


def _prove_at(
    mechanism: Mechanism,
    question: Question,
    *,
    tier: AuditTier,
    gap: float,
    deadline: float,
    progress: Progress,
) -> Proof:
    """The same for the doubles of the question alone."""
    if tier == "reference":
        reference = Reference(
            mechanism, question.releases, question.same_change, question.adjacency
        )
        return reference.enclose(
            question.eps, gap=gap, claim=question.claim, deadline=deadline, progress=progress
        )
    notary = Notary(mechanism, question.releases, question.same_change, question.adjacency)
    if tier == "light" or (tier == "auto" and has_heavy_noise(mechanism)):
        tier = "auto"
        if question.claim is not None and notary.disclosed is None:
            light = _with_less_noise(mechanism, question, deadline, progress)
            if light is not None:
                return light
    tolerated = gap * (TYPICAL_DELTA if question.claim is None else question.claim)
    thinned = is_thinned(mechanism, question, tolerated)
    if tier == "auto":
        tier = usual_tier(mechanism.max_value, question, thinned=thinned)
    enclose = partial(
        notary.enclose,
        question.eps,
        gap=gap,
        claim=question.claim,
        deadline=deadline,
        progress=progress,
    )
    if tier == "ball" or notary.disclosed is not None:
        proof = enclose(guess=lambda: _guess(mechanism, question))
        lower, upper = proof.enclosure.lower, proof.enclosure.upper
        if BALL_COUPLED in proof.covered and not question.decided_by(lower, upper) and gap < LOOSE:
            with suppress(TooLarge, Undecided):  # more is clipped: the exact law may fit a table
                again = enclose(gap=LOOSE)
                if again.enclosure.upper < upper:
                    proof = again.with_lower_of(proof)
        if question.any_sequence and not thinned and not proof.worst_sequence and proof.exact:
            with suppress(AccountingError):  # a lower bound is useful but optional
                fixed, _ = prove_any_sequence(mechanism, question, LOOSE, progress)
                return proof.with_lower_of(fixed)
        return proof

    # with more than the full central noise, the bounds for that hold
    fewer = thinned and not mechanism.central.share() >= 1

    def watch(text: str) -> None:
        check_deadline(deadline)
        progress(text)

    if question.any_sequence:
        prove_sequence = prove_thinned_sequence if fewer else prove_any_sequence
        proof, kinds = prove_sequence(mechanism, question, gap, watch)
        if tier == "mixed":
            with suppress(TooLarge, Undecided):  # what is proved from above stands
                return proof.with_lower_of(enclose(changes=kinds))
        return proof
    loose = tier == "mixed" and question.claim is None
    prove_one = prove_thinned if fewer else prove_same_change
    fast = prove_one(mechanism, question, LOOSE if loose else gap, watch)
    if tier == "fast":
        return fast.proof
    doubtful = fast.in_doubt(question.claim)
    if len(doubtful) == 0:  # every bound is 0
        return fast.proof
    found = enclose(changes=[fast.changes[int(i)] for i in doubtful])
    others = np.delete(fast.upper, doubtful)
    if fewer and not question.decided_by(found.enclosure.lower, float(others.max(initial=0.0))):
        # the fast bounds of others leave the claim open
        fast = fast.refined(question.claim)
        doubtful = np.union1d(doubtful, fast.above(question.claim))
        found = enclose(changes=[fast.changes[int(i)] for i in doubtful])
        others = np.delete(fast.upper, doubtful)
    upper = max(found.enclosure.upper, float(others.max(initial=0.0)))
    both = replace(found, enclosure=Enclosure(found.enclosure.lower, upper))
    both = both.with_lower_of(fast.proof)
    compared = len(np.setdiff1d(fast.compared, doubtful))
    by_comparison = {COMPARISON: compared} if compared else {}
    return replace(
        both,
        covered={**found.covered, FAST: len(others) - compared, **by_comparison},
        met=found.met and upper - both.enclosure.lower <= gap * upper,
    )


def _with_less_noise(
    mechanism: Mechanism, question: Question, deadline: float, progress: Progress
) -> Proof | None:
    """Try to prove the claim with reduced noise; None if that fails."""
    factor = noise_reduction(mechanism, question)
    if factor == 1 or question.claim is None:
        return None
    less = _prove_at(
        with_less_noise(mechanism, factor),
        question,
        tier="auto",
        gap=1.0,
        deadline=deadline,
        progress=progress,
    )
    if less.enclosure.upper > question.claim:
        return None
    enclosure = Enclosure(0.0, less.enclosure.upper)
    return replace(less, enclosure=enclosure, exact=False, less_noise=True)


def usual_tier(max_value: int, question: Question, *, thinned: bool = False) -> Tier:
    """Return what ``auto`` means.

    Args:
        max_value: The largest input.
        question: The eps, and the releases.
        thinned: Whether only a fraction of the users adds the central noise.

    Returns:
        One of "ball", "mixed" and "fast".

    >>> usual_tier(60, Question(eps=1.0)), usual_tier(60, Question(eps=1.0, releases=30))
    ('ball', 'fast')
    """
    if question.any_sequence:
        return "ball" if max_value <= LARGEST_BALL_OF_ANY else "fast"
    if thinned and question.releases == 1:
        return "ball" if max_value <= LARGEST_BALL_THINNED else "mixed"
    if question.releases > MOST_BALL_RELEASES:
        return "ball" if thinned else "fast"
    if max_value > LARGEST_MIXED:
        return "fast"
    return "ball" if max_value <= LARGEST_BALL else "mixed"


def _guess(mechanism: Mechanism, question: Question) -> float:
    """Estimate the size of delta, for the notary's first grid."""
    try:
        less = rounded_protocol(mechanism, question, noise="less")
        return less.delta(question.eps, gap=0.5).enclosure.upper
    except AccountingError:
        return 1.0


def unprotected(mechanism: Mechanism) -> str:
    """Say what is wrong with the set of atoms, and what to add."""
    noisy = tuple(atom for atom, parts in mechanism.atoms.items() if parts)
    try:
        Family(mechanism.max_value, noisy)
    except InvalidFamily as error:
        return str(error)
    return "no atom with noise defines it"
