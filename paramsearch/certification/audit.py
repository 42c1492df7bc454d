"""Is a parameter file, or a configuration that is proposed, what it claims to be?

Nothing in it is trusted: the exact parameters are read, delta is proved again, and everything else
that follows from the parameters is recomputed and compared.  There are two findings: one on the
claim, and one on the certificate, whose fields are compared with the proof one by one
(``certificate_check``).  A file with a false certificate is "misstated", even if its claim is
proved.  A file that contradicts itself is rejected, whatever its noise gives: nobody should deploy
either of them, and the verdict says what the noise alone would give.
"""

from __future__ import annotations

import math
import time
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Literal

from accounting.base.deadline import check_deadline, until
from accounting.base.enclosure import Enclosure, Summarized, at_least, at_most, counted
from accounting.base.errors import InvalidConfiguration, TooLarge, Undecided, required
from accounting.base.progress import Progress, silent
from accounting.base.validation import SMALLEST_GAP, gap_width, instance, positive
from accounting.model.change import in_words
from accounting.model.configuration import Proposal
from accounting.model.mechanism import Mechanism
from accounting.model.proof import Proof
from accounting.model.proof_types import BALL_COUPLED, DISJOINT, GAP, AuditTier
from accounting.proof.limit_delta import limit_delta
from accounting.proof.prove import prove, unprotected
from accounting.proof.satisfied_eps import satisfied_eps
from paramsearch.certification.certificate_check import CertificateCheck, check_certificate
from paramsearch.certification.lost_users import LostNoise, checked_users, lost_noise
from paramsearch.certification.weak_noise import WeakNoise, weak_noise
from paramsearch.parameters.claim import Claim, decision
from paramsearch.parameters.documents import Document, RejectedFile, checked, mechanism_of
from paramsearch.parameters.honest_fraction import as_written, claimed_fraction
from paramsearch.parameters.parameter_file import ParameterFile
from paramsearch.parameters.real_range import stated_range
from paramsearch.parameters.words import claim_in_words

Verdict = Literal["certified", "violated", "undecided", "misstated", "rejected"]
_FINER = 0.1
"""Share of the gap to which a second proof is refined where the first does not settle the bound
that a certificate states."""
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
        verdict: "certified", "violated" or "undecided" of the claim; or "misstated" if the claim is
            not violated, but a statement of the certificate is false; or "rejected" if the file is
            not what it says it is.  A claim about lost users is decided without them first; it is
            certified if the upper bound for users who are lost whatever they drew meets it, too.
        reason: One sentence.
        claim: What was decided about.
        mechanism: What is deployed, with the noise of the honest users.
        proved_for: The exact fraction of the users that ``claim.honest`` stands for.
        proof: The bounds of delta, without any lost users; None if no proof was completed.
        confirmed: Whether this proof confirms the upper bound of the file's certificate, and
            contradicts nothing else in it; None if that was not asked.
        certificate: The findings on the fields of the certificate; None if there is no certificate,
            or if it is about something else than the claim, the delta aside.
        satisfied_eps: After a violation, bounds of the smallest eps that holds at the claimed
            delta: the upper one holds.
        searched: Whether that eps was looked for to the end, so that None means there is none or it
            cannot be found, and that bounds are as close as they get.
        seconds: The time that the proof and this search took.
        limit: After a violation, bounds of delta as eps grows without bound: the probability of
            messages that the other input cannot produce.  Above the claimed delta, no eps holds.
        weak_noise: After a violation, an estimate of the noise that is missing.
        noise_verdict: For a file that is misstated or rejected, the verdict on the claim that its
            noise alone would get; ``proof`` is about that noise.
        lost: What holds if users with noise are lost; None if that was not asked.
        rounded: Whether the file is for real values, which every release rounds afresh to the
            integers that the claim is about.
    """

    verdict: Verdict
    reason: str
    claim: Claim
    mechanism: Mechanism
    proved_for: Fraction
    proof: Proof | None = None
    confirmed: bool | None = None
    certificate: CertificateCheck | None = None
    satisfied_eps: Enclosure | None = None
    searched: bool = False
    seconds: float = 0.0
    limit: Enclosure | None = None
    weak_noise: WeakNoise | None = None
    noise_verdict: Verdict | None = None
    lost: LostNoise | None = None
    rounded: bool = False

    @property
    def claim_verdict(self) -> Verdict:
        """The verdict on the claim, whatever else is wrong with the file."""
        return self.noise_verdict or self.verdict

    @property
    def consistent(self) -> bool | None:
        """Whether the proof contradicts nothing in the certificate, which it may be too wide to
        confirm; None if they were not compared."""
        return None if self.certificate is None else self.certificate.consistent

    def __str__(self) -> str:
        return f"{self.verdict}: {self.reason}"

    def summary(self) -> tuple[str, str]:
        """The verdict, and what it is about."""
        claimed = claim_in_words(
            self.claim,
            proved_for=self.proved_for,
            dimension=self.mechanism.dimension,
            rounded=self.rounded,
        )
        found = "no proof" if self.proof is None else f"delta in {self.proof.enclosure}"
        return str(self), f"{claimed}; {found}"


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
    whole = mechanism_of(trusted)
    mechanism = whole.thinned(proved_for)
    users = trusted.problem.n if isinstance(trusted, ParameterFile) else trusted.n
    if claim.lost:
        users = checked_users(claim, users, proved_for)
        without = audit(
            document,
            replace(claim, lost=0),
            tier=tier,
            gap=gap,
            budget=budget,
            explain=explain,
            progress=progress,
        )
        with until(deadline):
            lost = lost_noise(
                claim,
                whole,
                users=users,
                honest=proved_for,
                tier=tier,
                explain=explain,
                progress=progress,
            )
        return _after_losses(replace(without, claim=claim, lost=lost), lost)

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
        elif wrong is not None and verdict != "violated":
            more["noise_verdict"], verdict, reason = verdict, "misstated", wrong
        more["rounded"] = isinstance(trusted, ParameterFile) and stated_range(trusted) is not None
        return Audit(verdict, reason, claim, mechanism, proved_for, **more)

    wrong: str | None = None
    try:
        proof = proved(claim.delta, gap)
    except (TooLarge, Undecided) as error:
        return ended("undecided", str(error))
    confirmed, check = None, None
    if isinstance(trusted, ParameterFile) and trusted.certificate is not None:
        own = Claim.of(trusted)
        stated = trusted.certificate.delta_upper
        if claim == own:
            unsettled = proof.enclosure.lower <= stated < proof.enclosure.upper
            if explain and proof.exact and unsettled:
                with suppress(TooLarge, Undecided):
                    closer = proved(stated, max(gap * _FINER, SMALLEST_GAP))
                    proof = min(proof, closer, key=lambda found: found.enclosure.upper)
        if claim == replace(own, delta=claim.delta):
            check = check_certificate(
                trusted.certificate, mechanism, claim, proof, gap=gap, deadline=deadline
            )
            wrong, unlike = check.reason("false"), check.reason("not reproduced")
            rejected = unlike if rejected is None else rejected
            if claim == own:
                confirmed = proof.enclosure.upper <= stated and check.consistent
    verdict, reason = _verdict(claim, proof, mechanism)
    if verdict == "undecided":
        late, coupled = time.monotonic() > deadline, BALL_COUPLED in proof.covered
        reason += f"; {_remedy(claim, gap, coupled=coupled, late=late)}"
    found = ended(verdict, reason, proof=proof, confirmed=confirmed, certificate=check)
    if explain and claim.delta < proof.enclosure.lower:
        if deadline == math.inf:
            now = time.monotonic()
            deadline = now + max(_SEARCH_SECONDS, _SEARCH_PROOFS * (now - begun))
        found = _explained(found, deadline, progress)
    return replace(found, seconds=time.monotonic() - begun)


def lacks_central_noise(mechanism: Mechanism) -> bool:
    """Tell whether so few users add noise that less than the full central noise is left."""
    central = mechanism.central
    return not (central.whole() or central.share() >= 1)


def _explained(found: Audit, deadline: float, progress: Progress) -> Audit:
    """After a violation: what holds instead, and where noise is missing."""
    claim, mechanism = found.claim, found.mechanism
    proof = required(found.proof, "the proof of a violation")
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


def _after_losses(found: Audit, lost: LostNoise) -> Audit:
    """The verdict on a claim about lost users: that without them, unless it is "certified"."""
    if found.verdict != "certified":
        return found
    claim, users = found.claim, counted(found.claim.lost, "user")
    if lost.holds:
        bound = at_most(lost.delta_upper)
        return replace(
            found,
            reason=f"{found.reason}, and at most {bound} with {users} with noise lost whatever "
            "they drew",
        )
    reason = (
        f"{found.reason} if nobody is lost, but the upper bound with {users} with noise lost "
        f"whatever they drew, {at_most(lost.delta_upper)}, exceeds the claimed delta "
        f"{claim.delta!r}; no lower bound is known for that"
    )
    if lost.obstacle is not None:
        reason += f"; {lost.obstacle}"
    return replace(found, verdict="undecided", reason=reason)


def _verdict(claim: Claim, proof: Proof, mechanism: Mechanism) -> tuple[Verdict, str]:
    """Decide the claim by the bounds, and say why."""
    lower, upper = proof.enclosure.lower, proof.enclosure.upper
    found = decision(claim.delta, proof.enclosure)
    if found == "certified":
        return "certified", f"delta is at most {at_most(upper)}"
    if found == "undecided":
        bounds = f"the bounds {proof.enclosure} contain the claimed delta {claim.delta!r}"
        return "undecided", bounds
    worst = in_words(proof.worst_change, proof.worst_sequence)
    if DISJOINT in proof.covered:
        missing = unprotected(mechanism)
        return "violated", f"delta is 1 where {worst}, no noise hides it: {missing}"
    if claim.any_sequence and not (proof.worst_sequence and proof.sequence_lower > claim.delta):
        case = proof.worst_case(any_sequence=True)
        return "violated", f"delta is at least {at_least(lower)}, with {case}"
    attained = proof.sequence_lower if claim.any_sequence else lower
    return "violated", f"delta is at least {at_least(attained)} where {worst}"


def _remedy(claim: Claim, gap: float, *, coupled: bool, late: bool) -> str:
    """Say what may decide the claim."""
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
