"""Proofs by the fast evaluators for a fraction of the users, whose central noise is NB(share, q)
with a share below 1.

Upper bounds come from the coupling of composition/dropouts/dropouts.md, with all parameters rounded
towards less noise.  Lower bounds come from more noise, the full central one, and are weak: the
notary's are close.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial

import numpy as np

from accounting.base.arrays import FloatArray, IntArray
from accounting.base.balls import below, precision
from accounting.base.enclosure import Enclosure
from accounting.base.errors import Undecided
from accounting.base.progress import Progress
from accounting.composition.any_sequence import OneRelease, sequence_bounds
from accounting.composition.dropouts.central_offsets import ThinnedCentral
from accounting.composition.dropouts.thinned_profiles import ThinnedPairs
from accounting.evaluator.evaluate import evaluate
from accounting.model.change import Change, Repeated
from accounting.model.family import UNIT
from accounting.model.mechanism import Mechanism
from accounting.model.proof import Proof
from accounting.model.proof_types import FAST, LOOSE, TYPICAL_DELTA
from accounting.model.question import Question
from accounting.proof.fast_proof import FastProof, rounded_protocol
from accounting.protocol import Protocol

_WIDTHS = (1e-4, 1e-5, 1e-6)
"""Gaps that the grids are made for, one after the other; the error of a bound is a few hundred
times as large, because of the steep tilt that the whole loss needs."""
_CLOSER = _WIDTHS[1]
"""The gap for bounds of all changes that leave a claim open."""
_NEAR = (0.5, 0.9)
"""Share of the largest bound above which a change goes on to the next grid."""
_TAIL = 1e-4
"""Share of delta that may be taken from the tails of the central noise."""
_CANDIDATES = 4
"""Changes with the largest upper bounds whose lower bounds are computed."""


@dataclass(frozen=True)
class ThinnedBounds:
    """Upper bounds of delta of every change, for questions at several eps.

    Args:
        mechanism: What is deployed, in exact numbers.
        question: The releases and the adjacency; its claim, if any, sets the scale.
    """

    mechanism: Mechanism
    question: Question

    @cached_property
    def less(self) -> Protocol:
        """With at most the noise of the mechanism, but the full central noise."""
        single = Question(eps=self.question.eps, adjacency=self.question.adjacency)
        return rounded_protocol(self.mechanism, single, noise="less")

    @cached_property
    def more(self) -> Protocol:
        """With at least the noise of the mechanism, and the full central noise."""
        single = Question(eps=self.question.eps, adjacency=self.question.adjacency)
        return rounded_protocol(self.mechanism, single, noise="more")

    @cached_property
    def pairs(self) -> ThinnedPairs:
        """All changes, with at most the noise of the mechanism."""
        with precision(128):
            share = below(self.mechanism.central.share())
        if not 0 < share < 1:
            raise Undecided(
                f"{share:.4g} of the central noise is not less than all of it: ask for --tier ball"
            )
        config, claim = self.less.configuration, self.question.claim
        tail = _TAIL * (TYPICAL_DELTA if claim is None else max(claim, 1e-250))
        central = _central(share, config.step, tail / self.question.releases)
        return ThinnedPairs(self.less.view_pairs, config.noise[UNIT], central)

    def upper(self, eps: float, *, gap: float, progress: Progress) -> FloatArray:
        """Return upper bounds of delta(eps) of every change in one release; those of the worst are
        refined until a finer grid gains less than ``gap``, or the claim is met."""
        claim = self.question.claim
        out = np.ones(self.pairs.view_pairs.pair_count)
        left: IntArray = np.arange(len(out))
        before = float("inf")
        for width, near in zip(_WIDTHS, (*_NEAR, 1.0), strict=True):
            bound = self.of_changes(left, eps, width=width, progress=progress)
            out[left] = np.minimum(out[left], bound)
            largest = float(out.max())
            if before - largest <= gap * largest or (claim is not None and largest <= claim):
                break
            left, before = np.flatnonzero(out > near * largest), largest
        return out

    def of_changes(
        self, changes: IntArray, eps: float, *, width: float, progress: Progress
    ) -> FloatArray:
        """Upper bounds of delta(eps) of these changes in one release, on a grid that is made for a
        gap of ``width``."""
        self.pairs.cases(progress)
        progress(f"bounding {len(changes):,} pairs, grid for a gap of {width:.0e}")
        every = len(changes) == self.pairs.view_pairs.pair_count
        part = self.pairs if every else self.pairs.subset(changes)
        return part.profiles(eps, 1, gap=width).at(eps)

    def lower(self, changes: IntArray, eps: float, *, progress: Progress) -> tuple[float, int]:
        """Return the largest lower bound of these changes, and the change that attains it."""
        part = self.more.view_pairs.subset(changes)
        found = evaluate(part, eps, gap=LOOSE, progress=progress).lower
        worst = int(np.argmax(found))
        return float(found[worst]), int(changes[worst])


@lru_cache(maxsize=1)
def _central(share: float, step: float, tail: float) -> ThinnedCentral:
    """Return the central noise of a fraction of the users. The last one is kept: its couplings do
    not depend on eps, and a proof is often followed by the search for another eps."""
    return ThinnedCentral(share, step, tail)


def prove_thinned(
    mechanism: Mechanism, question: Question, gap: float, progress: Progress
) -> FastProof:
    """Bound delta of all changes in one release."""
    if question.releases > 1:
        raise Undecided(
            f"the same change in {question.releases:,} releases, with the noise of a fraction of "
            "the users, is left to the notary: ask for --tier ball"
        )
    bounds, eps = ThinnedBounds(mechanism, question), question.eps
    upper = bounds.upper(eps, gap=gap, progress=progress)
    worst = np.argsort(-upper, kind="stable")[:_CANDIDATES]
    lower, change = 0.0, int(worst[0])
    exact = bounds.less.configuration.family.exact
    if exact:
        lower, change = bounds.lower(worst, eps, progress=progress)
    changes = bounds.less.changes
    proof = _proof(question, lower, float(upper.max()), changes[change], len(changes), gap, exact)
    return FastProof(
        proof,
        changes,
        upper,
        np.zeros(0, np.int64),
        weak_lower=True,
        closer=partial(bounds.of_changes, eps=eps, width=_CLOSER, progress=progress),
    )


def prove_thinned_sequence(
    mechanism: Mechanism, question: Question, gap: float, progress: Progress
) -> tuple[Proof, list[Change]]:
    """Bound delta of several releases with any changes; also return changes that stand for all
    others."""
    bounds = ThinnedBounds(mechanism, question)
    bounds.pairs.cases(progress)
    less, changes = bounds.less, bounds.less.changes
    one = OneRelease(bounds.pairs, bounds.more.view_pairs, less.one_release.directions)
    found = sequence_bounds(
        one, question.eps, question.releases, gap=gap, claim=question.claim, progress=progress
    )
    exact = less.configuration.family.exact
    lower = found.lower if exact else 0.0
    worst = changes[found.witness[0][0]]
    proof = _proof(question, lower, found.upper, worst, len(changes), gap, exact)
    sequence = tuple(Repeated(changes[q], times) for q, times in found.witness)
    return (
        replace(proof, worst_sequence=sequence, sequence_lower=lower),
        [changes[q] for q in found.kinds],
    )


def _proof(
    question: Question,
    lower: float,
    upper: float,
    worst: Change,
    count: int,
    gap: float,
    exact: bool,
) -> Proof:
    return Proof(
        eps=question.eps,
        enclosure=Enclosure(lower, upper),
        worst_change=worst,
        exact=exact,
        met=upper - lower <= gap * upper,
        covered={FAST: count},
        precision=53,
        deviation=0.0,  # the share is part of what is evaluated
    )
