"""Is a parameter file, or a configuration that is proposed, what it claims to be?

Nothing in it is trusted: the exact parameters are read, delta is proved again, and everything else
that follows from the parameters is recomputed and compared.  What a certificate says about how it
was made (change, methods, precision, software) is information; its bounds and the deviation of its
sampler are compared with the proof.  A file that contradicts itself is rejected, whatever its noise
gives: nobody should deploy it, and the verdict says what the noise alone would give.
"""

from __future__ import annotations

import math
import time
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Literal

from accounting.base.deadline import check_deadline, until
from accounting.base.enclosure import Enclosure, Summarized, at_least, at_most
from accounting.base.errors import InvalidConfiguration, InvalidParameter, TooLarge, Undecided
from accounting.base.progress import Progress, silent
from accounting.base.validation import SMALLEST_GAP, gap_width, instance, positive
from accounting.model.change import in_words
from accounting.model.configuration import Proposal, exact_law
from accounting.model.costs import LARGEST_STEP
from accounting.model.mechanism import ExactCentral, Mechanism, noises
from accounting.model.proof import Proof
from accounting.model.proof_types import BALL_COUPLED, DISJOINT, GAP, LOOSE, AuditTier
from accounting.proof.deviation import Deviation
from accounting.proof.limit_delta import limit_delta
from accounting.proof.prove import prove, unprotected
from accounting.proof.satisfied_eps import satisfied_eps
from accounting.proof.words import worst_case
from paramsearch.certification.weak_noise import WeakNoise, weak_noise
from paramsearch.parameters.claim import Claim
from paramsearch.parameters.documents import Document, RejectedFile, checked
from paramsearch.parameters.honest_fraction import as_written, claimed_fraction
from paramsearch.parameters.parameter_file import ParameterFile
from paramsearch.parameters.problem_section import ProblemSection
from paramsearch.parameters.sections import Certificate
from paramsearch.parameters.words import claim_in_words

Verdict = Literal["certified", "violated", "undecided", "rejected"]
_FINER = 0.1
"""Share of the gap to which a second proof is refined where the first does not settle the bound
that a certificate states."""
_ROUNDING = 1e-9
"""Relative difference of two bounds on the deviation of a sampler that rounding explains."""
_SEARCH_SECONDS, _SEARCH_PROOFS = 60.0, 3.0
"""After a violation and without a budget, the search for what does hold ends after this time, or
after this many times as long as the proof took if that is more."""
_DIAGNOSIS = 0.25
"""Share of that time for the noise that is missing; the rest is for the eps that holds."""
_LARGEST_LIMIT = 128
"""Largest max_value for which the limit of delta is computed for every change; beyond it, for the
worst one."""


@dataclass(frozen=True, repr=False)
class Audit(Summarized):
    """The verdict on one claim, with the proof it rests on.

    Attributes:
        verdict: "certified", "violated" or "undecided" of the claim, or "rejected" if the file is
            not what it says it is.
        reason: One sentence.
        claim: What was decided about.
        mechanism: What is deployed, with the noise of the honest users.
        proved_for: The exact fraction of the users that ``claim.honest`` stands for.
        proof: The bounds of delta; None if no proof was completed.
        confirmed: Whether this proof confirms the upper bound of the file's certificate, and
            contradicts neither its lower bound nor its sampler_deviation; None if that was not
            asked.
        consistent: Whether this proof contradicts nothing in the file's certificate.  A proof that
            is too wide to confirm a certificate may still be consistent with it.  None if there is
            no certificate, or if it is about something else than the claim, the delta aside.
        satisfied_eps: After a violation, bounds of the smallest eps that holds at the claimed
            delta: the upper one holds.
        searched: Whether that eps was looked for to the end, so that None means there is none or it
            cannot be found, and that bounds are as close as they get.
        seconds: The time that the proof and this search took.
        limit: After a violation, bounds of delta as eps grows without bound: the probability of
            messages that the other input cannot produce.  Above the claimed delta, no eps holds.
        weak_noise: After a violation, an estimate of the noise that is missing.
        noise_verdict: For a file that is rejected, the verdict on the claim that its noise alone
            would get; ``proof`` is about that noise.
    """

    verdict: Verdict
    reason: str
    claim: Claim
    mechanism: Mechanism
    proved_for: Fraction
    proof: Proof | None = None
    confirmed: bool | None = None
    consistent: bool | None = None
    satisfied_eps: Enclosure | None = None
    searched: bool = False
    seconds: float = 0.0
    limit: Enclosure | None = None
    weak_noise: WeakNoise | None = None
    noise_verdict: Verdict | None = None

    def __str__(self) -> str:
        return f"{self.verdict}: {self.reason}"

    def summary(self) -> tuple[str, str]:
        """The verdict, and what it is about."""
        claimed = claim_in_words(
            self.claim, proved_for=self.proved_for, dimension=self.mechanism.dimension
        )
        found = "no proof" if self.proof is None else f"delta in {self.proof.enclosure}"
        return str(self), f"{claimed}; {found}"


def mechanism_of(document: ParameterFile | Proposal) -> Mechanism:
    """What is deployed when every user adds noise; doubles are the exact numbers they are."""
    if isinstance(document, ParameterFile):
        return document.mechanism()
    if document.eps_central / document.max_value > LARGEST_STEP:
        raise InvalidParameter(
            f"eps_central = {document.eps_central} leaves no central noise at max_value = "
            f"{document.max_value}; take at most {LARGEST_STEP:g} per unit"
        )
    atoms = noises(
        (elements, None if noise is None else exact_law(noise))
        for elements, noise in document.atoms
    )
    step = Fraction(document.eps_central) / document.max_value
    return Mechanism(document.max_value, atoms, ExactCentral(step=step), document.dimension)


def audit(
    document: Document,
    claim: Claim | None = None,
    *,
    tier: AuditTier = "auto",
    gap: float = GAP,
    budget: float = math.inf,
    explain: bool = True,
    progress: Progress = silent,
) -> Audit:
    """Decide a claim about a document.

    Args:
        document: A parameter file, a configuration that is proposed, or a file that has to be
            rejected (``paramsearch.read_source`` reads all of them).
        claim: What to decide; by default what the document claims.
        tier: Which proofs to use (accounting.proof.prove).
        gap: Relative gap between the bounds at which "undecided" is final.
        budget: Seconds after which the answer rests on what is proved so far.
        explain: Whether to look, after a violation, for the eps that does hold and for the noise
            that is missing, until the budget ends or, without one, for a minute or three times as
            long as the proof took; and to prove more closely where the first proof does not settle
            the bound that a certificate states.
        progress: Called with one line of text now and then.

    Returns:
        The verdict, with its reason and its proof.  A file whose numbers contradict each other is
        "rejected", with the bounds that its noise gives.

    Raises:
        InvalidParameter: If a number is missing or outside its domain.
        InvalidConfiguration: If the noise of a rejected file cannot be read.

    >>> from accounting import Proposal
    >>> data = {"max_value": 1, "eps": 1.0, "delta": 1e-4, "n": 1000, "eps_central": 0.9}
    >>> proposal = Proposal.of({**data, "atoms": [{"atom": [-1, 1], "r": 12.0, "p": 0.96}]})
    >>> print(audit(proposal))  # doctest: +ELLIPSIS
    certified: delta is at most 1.57...e-06
    >>> audit(proposal, Claim.of(proposal, delta=1e-7)).verdict
    'violated'
    """
    kinds = (ParameterFile, Proposal, RejectedFile)
    instance("document", document, kinds, "read_source(path).document reads one from a file")
    trusted = checked(document)
    if isinstance(trusted, RejectedFile):
        if trusted.remade is None:
            raise InvalidConfiguration(trusted.reason)
        rejected, trusted = trusted.reason, trusted.remade
    else:
        rejected = None
    claim = Claim.of(trusted) if claim is None else claim
    gap = gap_width(gap)
    begun = time.monotonic()
    deadline = begun + positive("budget", budget) if budget != math.inf else math.inf
    proved_for = as_written(claim.honest)
    if isinstance(trusted, ParameterFile) and claim.honest == trusted.problem.honest:
        proved_for = claimed_fraction(trusted)
    mechanism = mechanism_of(trusted).thinned(proved_for)

    def proved(delta: float, gap: float) -> Proof:
        return prove(
            mechanism,
            claim.question(delta),
            tier=tier,
            gap=gap,
            deadline=deadline,
            progress=progress,
        )

    def ended(verdict: Verdict, reason: str, **more: Any) -> Audit:
        if rejected is not None:
            more["noise_verdict"], verdict, reason = verdict, "rejected", rejected
        return Audit(verdict, reason, claim, mechanism, proved_for, **more)

    try:
        proof = proved(claim.delta, gap)
    except (TooLarge, Undecided) as error:
        return ended("undecided", str(error))
    confirmed, agrees, wrong = None, None, None
    if isinstance(trusted, ParameterFile) and trusted.certificate is not None:
        own = Claim.of(trusted)
        if claim == own:
            stated = trusted.certificate.delta_upper
            unsettled = proof.enclosure.lower <= stated < proof.enclosure.upper
            if explain and proof.exact and unsettled:
                with suppress(TooLarge, Undecided):
                    closer = proved(stated, max(gap * _FINER, SMALLEST_GAP))
                    proof = min(proof, closer, key=lambda found: found.enclosure.upper)
            confirmed = proof.enclosure.upper <= stated
        if claim == replace(own, delta=claim.delta):
            wrong = _disproved(trusted.certificate, proof)
            rejected = _not_reproduced(trusted.certificate, proof) or _understated(
                trusted.certificate, mechanism, trusted.problem
            )
            agrees = wrong is None and rejected is None
            confirmed = confirmed and agrees
    verdict, reason = _verdict(claim, proof, mechanism)
    if wrong is not None:
        verdict, reason = "violated", wrong
    if verdict == "undecided":
        late, coupled = time.monotonic() > deadline, BALL_COUPLED in proof.covered
        reason += f"; {_remedy(claim, gap, coupled=coupled, late=late)}"
    found = ended(verdict, reason, proof=proof, confirmed=confirmed, consistent=agrees)
    if explain and claim.delta < proof.enclosure.lower:
        if deadline == math.inf:
            now = time.monotonic()
            deadline = now + max(_SEARCH_SECONDS, _SEARCH_PROOFS * (now - begun))
        found = _explained(found, deadline, progress)
    return replace(found, seconds=time.monotonic() - begun)


def lacks_central_noise(mechanism: Mechanism) -> bool:
    """Whether so few users add noise that less than the full central noise is left."""
    central = mechanism.central
    return not (central.whole() or central.share() >= 1)


def _explained(found: Audit, deadline: float, progress: Progress) -> Audit:
    """After a violation: what holds instead, and where noise is missing."""
    claim, mechanism, proof = found.claim, found.mechanism, found.proof
    assert proof is not None
    limit = proof.enclosure  # where every view gives the input away, it is 1 at every eps
    eps = weak = None

    def step(what: str, end: float) -> Progress:
        def report(text: str) -> None:
            check_deadline(end)
            progress(f"violated; {what}: {text}")

        return report

    diagnosed = time.monotonic()
    diagnosed += _DIAGNOSIS * (deadline - diagnosed)
    # the search for weak noise knows only the full central noise
    if DISJOINT not in proof.covered and not lacks_central_noise(mechanism):
        with until(diagnosed), suppress(Undecided):
            report = step("looking for the weak noise", diagnosed)
            weak = weak_noise(mechanism, claim, proof.worst_change, progress=report)
    with until(deadline):
        if DISJOINT not in proof.covered:
            limit = _limit(mechanism, claim, proof)
        if limit.lower <= claim.delta:
            eps = satisfied_eps(
                mechanism,
                claim.delta,
                releases=claim.releases,
                same_change=claim.same_change,
                adjacency=claim.adjacency,
                known=proof,
                progress=step("looking for the eps that does hold", deadline),
            )
    searched = limit.lower > claim.delta or time.monotonic() <= deadline
    return replace(found, satisfied_eps=eps, searched=searched, limit=limit, weak_noise=weak)


def _limit(mechanism: Mechanism, claim: Claim, proof: Proof) -> Enclosure:
    """Bounds of delta as eps grows without bound; it is at most delta at the claimed eps."""
    every = mechanism.max_value <= _LARGEST_LIMIT
    changes = None if every else [proof.worst_change]
    try:
        found = limit_delta(
            mechanism, releases=claim.releases, changes=changes, adjacency=claim.adjacency
        )
    except (TooLarge, Undecided):
        return Enclosure(0.0, proof.enclosure.upper)
    upper = min(found.upper, proof.enclosure.upper) if every else proof.enclosure.upper
    return Enclosure(found.lower, upper)


def _verdict(claim: Claim, proof: Proof, mechanism: Mechanism) -> tuple[Verdict, str]:
    """What the bounds say about the claim, and why."""
    lower, upper = proof.enclosure.lower, proof.enclosure.upper
    if upper <= claim.delta:
        return "certified", f"delta is at most {at_most(upper)}"
    if lower <= claim.delta:
        bounds = f"the bounds {proof.enclosure} contain the claimed delta {claim.delta!r}"
        return "undecided", bounds
    worst = in_words(proof.worst_change, proof.worst_sequence)
    if DISJOINT in proof.covered:
        missing = unprotected(mechanism)
        return "violated", f"delta is 1 where {worst}, no noise hides it: {missing}"
    if claim.any_sequence and not (proof.worst_sequence and proof.sequence_lower > claim.delta):
        case = worst_case(proof, any_sequence=True)
        return "violated", f"delta is at least {at_least(lower)}, with {case}"
    attained = proof.sequence_lower if claim.any_sequence else lower
    return "violated", f"delta is at least {at_least(attained)} where {worst}"


def _remedy(claim: Claim, gap: float, *, coupled: bool, late: bool) -> str:
    """What may decide the claim."""
    if late:
        return "the budget is used up"
    if claim.any_sequence:
        return (
            "the lower one is of a fixed sequence of changes, which an adaptive one may exceed a "
            "little; claim a delta above or below both"
        )
    if coupled:
        return (
            "the upper one is of a coupling of the central noises, which a smaller gap hardly "
            "improves; claim a delta above or below both"
        )
    if gap <= SMALLEST_GAP:
        return "no smaller gap can be asked for; claim a delta above or below both"
    return f"a --gap below {gap:g} may decide it"


def _disproved(certificate: Certificate, proof: Proof) -> str | None:
    """Why the certificate's upper bound is false."""
    found = proof.enclosure
    if certificate.delta_upper >= found.lower:
        return None
    return (
        f"the certificate says delta is at most {at_most(certificate.delta_upper)}, but it is "
        f"at least {at_least(found.lower)}"
    )


def _not_reproduced(certificate: Certificate, proof: Proof) -> str | None:
    """Why the certificate cannot have come from a proof, if it cannot."""
    found = proof.enclosure
    # without lower bounds of our own, an upper bound must be found again in the same way
    same_way = not (proof.exact or proof.less_noise) and set(certificate.proof) == set(
        proof.covered
    )
    if certificate.delta_upper >= found.lower and (
        certificate.delta_lower > found.upper
        or (same_way and certificate.delta_upper < found.upper * (1 - 2 * LOOSE))
    ):
        return (
            f"the certificate's bounds {certificate.delta_lower!r} and {certificate.delta_upper!r} "
            f"are not reproduced: this proof gives {found}"
        )
    return None


def _understated(
    certificate: Certificate, mechanism: Mechanism, problem: ProblemSection
) -> str | None:
    """Why the certificate's deviation of the sampler is false, if it is."""
    if not mechanism.central.whole():  # then a proof may be about the law of the sampler itself
        return None
    least = Deviation.of(mechanism, problem.eps, problem.releases, problem.adjacency).size
    if certificate.sampler_deviation >= least * (1 - _ROUNDING):
        return None
    return (
        f"the certificate says the sampler adds at most {certificate.sampler_deviation!r} to "
        f"delta, but the bound of what it may add is {least!r}"
    )
