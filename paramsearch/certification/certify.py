"""From a parameter file to a certified one."""

from __future__ import annotations

import math
import platform
from importlib import metadata
from typing import Any, get_args

from accounting.base.balls import ball, precision
from accounting.base.enclosure import exactly
from accounting.base.errors import InvalidParameter, TooLarge, Undecided, Violated
from accounting.base.progress import Progress, silent
from accounting.base.validation import gap_width, one_of
from accounting.model.mechanism import Mechanism
from accounting.model.proof import Proof
from accounting.model.proof_types import GAP, Tier
from accounting.proof.prove import prove, unprotected
from paramsearch.deploy.noise_events import check_event_sizes
from paramsearch.parameters.assembly import reassembled
from paramsearch.parameters.claim import Claim, decision
from paramsearch.parameters.honest_fraction import claimed_fraction
from paramsearch.parameters.parameter_file import ParameterFile
from paramsearch.parameters.real_range import ROUNDED_AFRESH, stated_range
from paramsearch.parameters.sections import Certificate, RepeatedChange, SequenceCertificate

_BITS = 192
"""Working precision."""


def claimed_mechanism(file: ParameterFile) -> Mechanism:
    """The mechanism of the claim: what the honest fraction of the users does."""
    return file.mechanism().thinned(claimed_fraction(file))


def certify(
    file: ParameterFile,
    *,
    tier: Tier = "auto",
    gap: float = GAP,
    deadline: float = math.inf,
    progress: Progress = silent,
) -> ParameterFile:
    """Prove the claim of a file.

    Args:
        file: The parameters and their claim; an existing certificate is ignored.
        tier: Which proofs to use (accounting.proof.prove).
        gap: Relative gap between the bounds at which refining ends.
        deadline: On the clock of ``time.monotonic``.
        progress: Called with one line of text now and then.

    Returns:
        The file with a certificate.

    Raises:
        InvalidParameter: If the file is for real values and claims no more than the same change in
            every release.
        TooLarge: If clients would refuse the file, because an event may have too many messages.
        Violated: If the claim is disproved.
        Undecided: If the bounds contain the claimed delta, or time ran out before there were any.
    """
    one_of("tier", tier, get_args(Tier))  # certificates have no name for what others prove
    claim, gap, mechanism = Claim.of(file), gap_width(gap), claimed_mechanism(file)
    if claim.same_change and stated_range(file) is not None:
        raise InvalidParameter(
            f"{ROUNDED_AFRESH}: paramsearch generate-real --releases {claim.releases} makes a file "
            "that covers it"
        )
    check_event_sizes(file)
    try:
        proof = prove(
            mechanism,
            claim.question(),
            tier=tier,
            gap=gap,
            deadline=deadline,
            progress=progress,
        )
    except TooLarge as error:
        raise Undecided(str(error)) from error
    bounds = f"delta at eps = {exactly(claim.eps)} lies in {proof.enclosure}"
    worst = proof.worst_case(any_sequence=claim.any_sequence)
    if proof.enclosure.lower == 1:
        raise Violated(f"delta is 1 where {worst}: no noise hides it; {unprotected(mechanism)}")
    found = decision(claim.delta, proof.enclosure)
    if found == "violated":
        where = "with" if claim.any_sequence else "where"
        raise Violated(
            f"{bounds}, above the claimed {claim.delta!r}: too much is given away {where} {worst}; "
            + _remedy(mechanism, claim)
        )
    if found == "undecided":
        raise Undecided(
            f"{bounds}, which does not decide the claimed {claim.delta!r}; add a little noise, or "
            "ask for a smaller gap or another tier"
        )
    return reassembled(file, certificate_of(proof, any_sequence=claim.any_sequence))


def _remedy(mechanism: Mechanism, claim: Claim) -> str:
    """Say what may help against a violation."""
    touched = mechanism.coordinates(claim.adjacency)
    with precision(_BITS):
        central = mechanism.central.loss() * mechanism.max_value * touched
        if central > ball(claim.eps):
            half = " / 2, since a change touches two coordinates" if touched > 1 else ""
            return f"take eps_central below eps{half}, or claim a larger delta"
    return "add noise, or claim a larger eps or delta, or fewer releases if there are several"


def certificate_of(proof: Proof, *, any_sequence: bool) -> Certificate:
    """Return what a file says of its proof, in numbers that also hold as decimals."""
    bounds = proof.enclosure.as_written()
    fields: dict[str, Any] = {
        "eps": proof.eps,
        "delta_lower": bounds.lower,
        "delta_upper": bounds.upper,
        "worst_pair": proof.worst_change.listed,
        "proof": dict(proof.covered),
        "precision": proof.precision,
        "sampler_deviation": proof.deviation,
        "software": {
            "paramsearch": metadata.version("paramsearch"),
            "python-flint": metadata.version("python-flint"),
            "python": platform.python_version(),
        },
    }
    if not any_sequence:
        return Certificate(**fields)
    made = tuple(
        RepeatedChange(change=made.change.listed, times=made.times) for made in proof.worst_sequence
    )
    return SequenceCertificate(**fields, worst_sequence=made)
