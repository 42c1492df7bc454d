"""Proofs by the fast evaluators, for parameters that are exact numbers.

The evaluators take doubles.  More noise never hurts (exact_view.md, section 3; NB(r, p) grows with
r and with p, notary.md, section 6), so upper bounds come from parameters rounded towards less noise
and lower bounds from parameters rounded towards more.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from accounting.base.arrays import FloatArray, IntArray
from accounting.base.enclosure import Enclosure
from accounting.base.progress import Progress
from accounting.composition.any_sequence import sequence_bounds
from accounting.model.change import Change, Repeated
from accounting.model.mechanism import Mechanism
from accounting.model.proof import Proof
from accounting.model.proof_types import COMPARISON, FAST, LOOSE
from accounting.model.question import Question
from accounting.proof.deviation import Deviation
from accounting.proof.directed_rounding import configuration
from accounting.protocol import Protocol

_SECOND_OPINIONS, _FEWEST = 64, 4
"""Changes that the notary proves as well once the fast bounds have decided the claim: so many up to
max_value 128, and fewer beyond, where each takes longer."""
_FEW_OPINIONS = 8
"""Most of them for a fraction of the users, where each takes longer still."""
_NEAR = 0.9
"""Share of the worst lower bound above which the upper bound of a change leaves it in doubt."""
_MOST_DOUBTS = 1000
"""Most changes that are left in doubt: of more, the notary would take hours."""
_MOST_ABOVE = 5000
"""Most changes of a fraction of the users that the notary decides about: that takes less long than
close bounds of them."""
_FEWER = 8
"""Factor between the numbers of releases that are tried for a lower bound."""


@dataclass(frozen=True)
class FastProof:
    """A proof, and the upper bound of each change; those ``compared`` are covered by others.

    With ``weak_lower`` the lower bound of the proof may be far below the upper one.  ``closer``
    computes closer upper bounds of some changes, in much more time, if there are any.
    """

    proof: Proof
    changes: Sequence[Change]
    upper: FloatArray
    compared: IntArray
    weak_lower: bool = False
    closer: Callable[[IntArray], FloatArray] | None = None

    def in_doubt(self, claim: float | None) -> IntArray:
        """Return the indices of the changes for the notary.

        All that could be the worst and that no other covers, or the worst thousand of them; once
        the claim is decided, either way, some of the worst for a second opinion.
        """
        if self.weak_lower:
            return self._worst(claim)
        near = np.flatnonzero(self.upper > _NEAR * self.proof.enclosure.lower)
        near = np.setdiff1d(near, self.compared, assume_unique=True)
        if len(near) > _MOST_DOUBTS:
            order = np.argpartition(-self.upper[near], _MOST_DOUBTS)
            near = np.sort(near[order[:_MOST_DOUBTS]])
        if claim is None:
            return near
        near = near[np.argsort(-self.upper[near], kind="stable")]
        if self.proof.enclosure.lower > claim:
            worst = self.changes.index(self.proof.worst_change)
            return np.union1d(near[: self._second_opinions], [worst])
        above_claim = int(np.count_nonzero(self.upper[near] > claim))
        return near[: max(self._second_opinions, above_claim)]

    def above(self, claim: float | None) -> IntArray:
        """The changes whose upper bounds exceed the claim, or the worst of them."""
        order = np.argsort(-self.upper, kind="stable")
        if claim is None:
            return order[:_MOST_DOUBTS]
        return order[self.upper[order] > claim][:_MOST_ABOVE]

    def refined(self, claim: float | None) -> FastProof:
        """Return the same with closer bounds of the changes above the claim, if it has any."""
        above = self.above(claim)
        if self.closer is None or claim is None or not len(above):
            return self
        upper = self.upper.copy()
        upper[above] = np.minimum(upper[above], self.closer(above))
        return replace(self, upper=upper)

    def _worst(self, claim: float | None) -> IntArray:
        """Return some of the worst changes; few if they look as if they violated the claim."""
        violated = claim is not None and float(self.upper.max()) > claim
        count = _FEWEST if violated else min(self._second_opinions, _FEW_OPINIONS)
        return np.sort(np.argsort(-self.upper, kind="stable")[:count])

    @property
    def _second_opinions(self) -> int:
        share = float((128 * 129 / max(len(self.changes), 1)) ** 1.5)
        return max(_FEWEST, min(_SECOND_OPINIONS, round(_SECOND_OPINIONS * share)))


def rounded_protocol(
    mechanism: Mechanism, question: Question, *, noise: Literal["less", "more"]
) -> Protocol:
    """Return the evaluators for the mechanism with at most, or at least, its noise."""
    config = configuration(mechanism, noise=noise)
    return Protocol(config, question.releases, question.same_change, question.adjacency)


def prove_same_change(
    mechanism: Mechanism, question: Question, gap: float, progress: Progress
) -> FastProof:
    """Prove bounds for one release, or several in which a user makes the same change."""
    eps, claim = question.eps, question.claim
    question = replace(question, same_change=True)
    less, more = (rounded_protocol(mechanism, question, noise=n) for n in ("less", "more"))
    deviation = Deviation.of(mechanism, eps, question.releases, question.adjacency)
    wanted = LOOSE
    upper = less.delta(eps, gap=wanted, progress=progress)
    while True:
        # a lower bound for the worst changes is one for all
        lower = upper if less == more else more.delta_near(upper, gap=wanted, progress=progress)
        largest = upper.enclosure.upper
        enclosure = deviation.widened(lower.enclosure.lower, largest)
        if _decided(question, enclosure) or wanted <= gap:
            break
        wanted = max(gap, wanted / 10)
        upper = less.refined(upper, gap=wanted, progress=progress)
    fewer = question.releases
    while claim is not None and enclosure.lower <= claim < enclosure.upper and fewer > _FEWER:
        # some of the releases reveal no more than all of them, so their lower bound holds
        fewer //= _FEWER
        part = replace(more, releases=fewer).delta_near(upper, gap=LOOSE, progress=progress)
        if part.enclosure.lower > lower.enclosure.lower:
            lower = part
            enclosure = deviation.widened(lower.enclosure.lower, largest)
    proof = Proof(
        eps=eps,
        enclosure=enclosure,
        worst_change=lower.worst_change if lower.exact else upper.worst_change,
        exact=upper.exact,
        # the deviation of a central noise that is not geometric may have widened the enclosure
        met=upper.met
        and lower.met
        and (_decided(question, enclosure) or enclosure.relative_gap <= gap),
        covered=_counts(len(upper.changes), len(upper.compared)),
        precision=53,
        deviation=deviation.size,
    )
    added = deviation.added
    uppers = np.nextafter(upper.upper + added, math.inf) if added else upper.upper
    return FastProof(proof, upper.changes, uppers, upper.compared)


def _decided(question: Question, enclosure: Enclosure) -> bool:
    """Return whether there is a claim and these bounds settle it."""
    return question.claim is not None and question.decided_by(enclosure.lower, enclosure.upper)


def _counts(changes: int, compared: int) -> dict[str, int]:
    """Count the changes that each method proved."""
    return {FAST: changes - compared, **({COMPARISON: compared} if compared else {})}


def prove_any_sequence(
    mechanism: Mechanism, question: Question, gap: float, progress: Progress
) -> tuple[Proof, list[Change]]:
    """Prove bounds for several releases with any changes; also return changes that stand for all
    others."""
    eps, releases = question.eps, question.releases
    single = Question(eps=eps, adjacency=question.adjacency)
    less, more = (rounded_protocol(mechanism, single, noise=n) for n in ("less", "more"))
    found = sequence_bounds(
        replace(less.one_release, more=more.view_pairs),
        eps,
        releases,
        gap=gap,
        claim=question.claim,
        progress=progress,
    )
    deviation = Deviation.of(mechanism, eps, releases, question.adjacency)
    exact = less.configuration.family.exact
    enclosure = deviation.widened(found.lower if exact else 0.0, found.upper)
    changes = less.changes
    proof = Proof(
        eps=eps,
        enclosure=enclosure,
        worst_change=changes[found.witness[0][0]],
        exact=exact,
        met=enclosure.upper - enclosure.lower <= gap * enclosure.upper,
        covered={FAST: len(changes)},
        precision=53,
        deviation=deviation.size,
        worst_sequence=tuple(Repeated(changes[q], times) for q, times in found.witness),
        sequence_lower=enclosure.lower,
    )
    return proof, [changes[q] for q in found.kinds]
