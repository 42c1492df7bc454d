"""Is a parameter file, or a configuration that somebody proposes, what it claims to be?

Nothing in it is trusted: the exact parameters are read, delta is proved anew, and everything else
that follows from the parameters is recomputed and compared.  What a certificate says of its own
making (pair, methods, precision, software) is information; its bounds are held against the proof.
"""

from __future__ import annotations

import math
import time
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Literal

from accounting.base.deadline import check_deadline, until
from accounting.base.enclosure import Enclosure, at_least, at_most
from accounting.base.errors import (
    InvalidConfiguration,
    InvalidParameter,
    TooLarge,
    Undecided,
)
from accounting.base.progress import Progress, silent
from accounting.base.validation import (
    SMALLEST_GAP,
    gap_width,
    not_negative,
    positive,
    probability,
    share,
    whole,
)
from accounting.model.change import in_words
from accounting.model.configuration import LARGEST_STEP, Proposal
from accounting.model.mechanism import ExactCentral, ExactNoise, Mechanism, noises
from accounting.model.proof_types import DISJOINT, GAP, LOOSE, Tier
from accounting.proof.prove import Proof, prove, satisfied_eps, unprotected
from accounting.proof.words import worst_case
from paramsearch.parameters.assembly import consistent
from paramsearch.parameters.honest_fraction import as_written, claimed_fraction
from paramsearch.parameters.parameter_file import Certificate, ParameterFile

Verdict = Literal["certified", "violated", "undecided"]
_FINER = 0.1
"""Of the gap, where a certificate says a little less than the first proof."""


@dataclass(frozen=True)
class Audit:
    """The verdict on one claim, with the proof it rests on.

    ``satisfied_eps`` encloses the smallest eps that holds at the claimed delta, where a violated
    claim made it worth finding, and ``searched`` says whether it was looked for to the end, so that
    None means there is none or it cannot be found.  ``reason`` is one sentence.  ``confirmed`` says
    whether this proof confirms the file's certificate, None if that was not asked about.
    ``proved_for`` is the exact fraction of the users that ``honest`` stands for (honest.py).
    """

    verdict: Verdict
    reason: str
    eps: float
    delta: float
    releases: int
    same_change: bool
    honest: float
    mechanism: Mechanism
    proof: Proof | None
    satisfied_eps: Enclosure | None
    confirmed: bool | None = None
    proved_for: Fraction = Fraction(1)
    searched: bool = False


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
        (elements, ExactNoise(p=Fraction(p), r=Fraction(r)) if r > 0 and p > 0 else None)
        for elements, r, p in document.atoms
    )
    step = Fraction(document.eps_central) / document.max_value
    return Mechanism(document.max_value, atoms, ExactCentral(step=step), document.dimension)


def audit(
    document: ParameterFile | Proposal,
    *,
    eps: float | None = None,
    delta: float | None = None,
    releases: int | None = None,
    same_change: bool = False,
    honest: float | None = None,
    tier: Tier = "auto",
    gap: float = GAP,
    budget: float = math.inf,
    witness: bool = True,
    finer: bool = True,
    progress: Progress = silent,
) -> Audit:
    """Decide the document's claim, or another one where eps, delta, releases or honest are given.

    Several ``releases`` are for any sequence of changes of one user, and for one change made in all
    of them with ``same_change``; a file that claims no more than that is taken at its word.
    ``budget`` is in seconds.  ``witness`` asks, after a violation, for the eps that does hold, and
    ``finer`` for a second, closer proof where the first does not settle the file's certificate.
    """
    own = document.problem if isinstance(document, ParameterFile) else None
    claim_eps = not_negative("eps", _claim("eps", eps, own or document))
    claim_delta = probability("delta", _claim("delta", delta, own or document))
    times = whole(
        "releases",
        releases if releases is not None else own.releases if own else 1,
        least=1,
        most=(1 << 31) - 1,
    )
    if own is not None and releases is None and own.same_change:
        same_change = True
    if same_change and times == 1:
        raise InvalidParameter(
            "--same-change says which changes several releases cover, and this is one release: "
            "give --releases, or leave it out"
        )
    fraction = share("honest", honest if honest is not None else own.honest if own else 1.0)
    gap = gap_width(gap)
    deadline = time.monotonic() + positive("budget", budget) if budget != math.inf else math.inf
    if isinstance(document, ParameterFile):
        consistent(document)
    proved_for = as_written(fraction)
    if isinstance(document, ParameterFile) and fraction == document.problem.honest:
        proved_for = claimed_fraction(document)
    mechanism = mechanism_of(document).thinned(proved_for)
    confirmed: bool | None = None

    def watch(text: str) -> None:
        check_deadline(deadline)
        progress(text)

    def answer(verdict: Verdict, reason: str, proof: Proof | None = None) -> Audit:
        found, searched = None, False
        if proof is not None and witness and claim_delta < proof.enclosure.lower:
            with until(deadline):
                found = satisfied_eps(mechanism, claim_delta, times, watch, same_change=same_change)
            searched = found is not None or time.monotonic() <= deadline
        point = (claim_eps, claim_delta, times, same_change, fraction)
        answered = Audit(verdict, reason, *point, mechanism, proof, found, confirmed)
        return replace(answered, proved_for=proved_for, searched=searched)

    def proved(claim: float, gap: float) -> Proof:
        return prove(
            mechanism,
            claim_eps,
            releases=times,
            same_change=same_change,
            tier=tier,
            gap=gap,
            claim=claim,
            deadline=deadline,
            progress=progress,
        )

    try:
        proof = proved(claim_delta, gap)
    except (TooLarge, Undecided) as error:
        return answer("undecided", str(error))
    at_own_point = own is not None and (
        (own.eps, own.releases, own.same_change, own.honest)
        == (claim_eps, times, same_change, fraction)
    )
    if at_own_point and isinstance(document, ParameterFile) and document.certificate is not None:
        if claim_delta == document.problem.delta:
            stated = document.certificate.delta_upper
            unsettled = proof.enclosure.lower <= stated < proof.enclosure.upper
            if finer and proof.exact and unsettled:
                with suppress(TooLarge, Undecided):  # a proof that is to decide what is stated
                    closer = proved(stated, max(gap * _FINER, SMALLEST_GAP))
                    proof = min(proof, closer, key=lambda found: found.enclosure.upper)
            confirmed = proof.enclosure.upper <= stated
        wrong = _disproved(document.certificate, proof)
        if wrong is not None:
            return answer("violated", wrong, proof)
    worst = in_words(proof.worst_change, proof.worst_sequence)
    if proof.enclosure.upper <= claim_delta:
        return answer("certified", f"delta is at most {at_most(proof.enclosure.upper)}", proof)
    if proof.enclosure.lower > claim_delta:
        any_sequence = times > 1 and not same_change
        seen = f"delta is at least {at_least(proof.enclosure.lower)} where {worst}"
        if any_sequence and proof.worst_sequence and proof.sequence_lower > claim_delta:
            seen = f"delta is at least {at_least(proof.sequence_lower)} where {worst}"
        elif any_sequence:
            case = worst_case(proof, any_sequence=True)
            seen = f"delta is at least {at_least(proof.enclosure.lower)}, with {case}"
        if DISJOINT in proof.covered:
            seen = f"delta is 1 where {worst}, no noise hides it: {unprotected(mechanism)}"
        return answer("violated", seen, proof)
    remedy = f"a --gap below {gap:g} may decide it"
    if times > 1 and not same_change:
        remedy = (
            "the lower one is of a fixed sequence of changes, which an adaptive one may exceed a "
            "little; claim a delta above or below both"
        )
    if time.monotonic() > deadline:
        remedy = "the budget is used up"
    bounds = f"the bounds {proof.enclosure} contain the claimed delta {claim_delta!r}"
    return answer("undecided", f"{bounds}; {remedy}", proof)


def _claim(name: str, option: float | None, document: Any) -> float:
    value = option if option is not None else getattr(document, name)
    if value is None:
        raise InvalidParameter(f"{name} is not claimed: add it to the file or give --{name}")
    return float(value)


def _disproved(certificate: Certificate, proof: Proof) -> str | None:
    """Why the certificate's upper bound is false; InvalidConfiguration if it is not reproduced."""
    found = proof.enclosure
    if certificate.delta_upper < found.lower:
        return (
            f"the certificate says delta is at most {at_most(certificate.delta_upper)}, but it is "
            f"at least {at_least(found.lower)}"
        )
    # without lower bounds of our own, an upper bound must be found again in the same way
    same_way = not (proof.exact or proof.lighter) and set(certificate.proof) == set(proof.covered)
    if certificate.delta_lower > found.upper or (
        same_way and certificate.delta_upper < found.upper * (1 - 2 * LOOSE)
    ):
        raise InvalidConfiguration(
            f"the certificate's bounds {certificate.delta_lower!r} and {certificate.delta_upper!r} "
            f"are not reproduced: this proof gives {found}"
        )
    return None
