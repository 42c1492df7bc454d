"""What a proof says about every statement of a certificate.

A certificate is a statement apart from the claim: a file may meet its claim while its certificate
is false.  Two statements are about delta (``delta_lower``, ``delta_upper``), one is about a change
that attains the lower bound (``worst_pair``), and one about the sampler.  How a proof was made
(``proof``, ``precision``, ``software``) cannot be seen from the noise and is not checked.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal

from accounting.base.enclosure import Enclosure, at_least, at_most, exactly
from accounting.base.errors import TooLarge, Undecided
from accounting.model.change import Change
from accounting.model.mechanism import Mechanism
from accounting.model.proof import Proof
from accounting.model.proof_types import DISJOINT, LOOSE
from accounting.notary.notary import Notary
from accounting.proof.both_readings import proof_for_both
from accounting.proof.deviation import Deviation
from accounting.proof.profile import Profile
from paramsearch.parameters.claim import Claim
from paramsearch.parameters.sections import Certificate, SequenceCertificate

Standing = Literal["confirmed", "consistent", "false", "not reproduced", "unchecked"]
_ROUNDING = 1e-9
"""Relative difference of two bounds on the deviation of a sampler that rounding explains."""
_SECONDS = 20.0
"""Time for the bounds of one change in ball arithmetic; without them it counts as unchecked."""


@dataclass(frozen=True)
class Finding:
    """What a proof says about one field of a certificate.

    Attributes:
        field: The name of the field.
        standing: "confirmed" if it is proved, "consistent" if this proof contradicts nothing in it
            and is too wide to prove it, "false" if it is refuted, "not reproduced" if no proof of
            this package could have stated it, and "unchecked" otherwise.
        stated: What the certificate says.
        because: What is proved instead; empty unless the field is false or not reproduced.
    """

    field: str
    standing: Standing
    stated: Any = None
    because: str = ""


@dataclass(frozen=True)
class CertificateCheck:
    """The findings on a certificate.

    Attributes:
        findings: On every field, in their order.
    """

    findings: tuple[Finding, ...]

    def fields(self, standing: Standing) -> list[str]:
        """Return the names of the fields with this standing."""
        return [found.field for found in self.findings if found.standing == standing]

    def reason(self, standing: Standing) -> str | None:
        """Return why fields have this standing, in one sentence; None if there are none."""
        because = [found.because for found in self.findings if found.standing == standing]
        return "; ".join(because) if because else None

    @property
    def consistent(self) -> bool:
        """Whether the proof contradicts nothing in the certificate."""
        return not self.fields("false") and not self.fields("not reproduced")

    def in_words(self) -> str:
        """Say which fields are confirmed, consistent with the proof, and not checked."""
        words = ["confirmed" if "delta_upper" in self.fields("confirmed") else "consistent"]
        if self.fields("false"):
            words = ["false: " + ", ".join(self.fields("false"))]
        elif self.fields("not reproduced"):
            words = ["not reproduced: " + ", ".join(self.fields("not reproduced"))]
        within = [name for name in self.fields("consistent") if name != "delta_upper"]
        if within and self.consistent:
            words.append("consistent: " + ", ".join(within))
        words.append("not checked: " + ", ".join(self.fields("unchecked")))
        return "; ".join(words)


def check_certificate(
    certificate: Certificate,
    mechanism: Mechanism,
    claim: Claim,
    proof: Proof,
    *,
    gap: float,
    deadline: float = math.inf,
) -> CertificateCheck:
    """Compare every field of a certificate with a proof of the same claim.

    Args:
        certificate: What a file states.
        mechanism: What is deployed, with the noise of the honest users.
        claim: The claim of the file, with any delta.
        proof: Its proof.
        gap: Relative gap of the bounds of ``worst_pair`` alone, where the proof has another worst
            change.
        deadline: When to leave that undone, on the clock of ``time.monotonic``.

    Returns:
        The finding on each field.
    """
    by_field = {found.field: found for found in _bounds(certificate, proof)}
    pair = _WorstPair(certificate, mechanism, claim, proof, gap, deadline)
    by_field["worst_pair"] = pair.finding()
    by_field["sampler_deviation"] = _deviation(certificate, mechanism, claim)
    if isinstance(certificate, SequenceCertificate):
        by_field["worst_sequence"] = _sequence(certificate, proof)
    ordered = [
        by_field.get(name, Finding(name, "unchecked")) for name in type(certificate).model_fields
    ]
    return CertificateCheck(tuple(ordered))


def _bounds(certificate: Certificate, proof: Proof) -> Iterator[Finding]:
    """Yield the findings on eps, which equals the problem's in every file, and on both bounds."""
    found = proof.enclosure
    yield Finding("eps", "confirmed")
    lower, upper = certificate.delta_lower, certificate.delta_upper
    said = f"the certificate says delta is at least {exactly(lower)}"
    if lower > found.upper:
        because = f"{said}, but it is at most {at_most(found.upper)}"
        yield Finding("delta_lower", "false", lower, because)
    else:
        yield Finding("delta_lower", "confirmed" if lower <= found.lower else "consistent")
    said = f"the certificate says delta is at most {exactly(upper)}"
    # without lower bounds of our own, an upper bound must be found again in the same way
    same_way = not (proof.exact or proof.less_noise) and set(certificate.proof) == set(
        proof.covered
    )
    if upper < found.lower:
        because = f"{said}, but it is at least {at_least(found.lower)}"
        yield Finding("delta_upper", "false", upper, because)
    elif same_way and upper < found.upper * (1 - 2 * LOOSE):
        because = f"{said}, which is not reproduced: this proof gives {found}"
        yield Finding("delta_upper", "not reproduced", upper, because)
    else:
        yield Finding("delta_upper", "confirmed" if found.upper <= upper else "consistent")


def _deviation(certificate: Certificate, mechanism: Mechanism, claim: Claim) -> Finding:
    """Return the finding on what the deployed sampler may add to delta."""
    name, stated = "sampler_deviation", certificate.sampler_deviation
    if not mechanism.central.whole():  # then a proof may be about the law of the sampler itself
        return Finding(name, "unchecked")
    least = Deviation.of(mechanism, claim.eps, claim.releases, claim.adjacency).size
    if stated >= least * (1 - _ROUNDING):
        return Finding(name, "confirmed")
    because = (
        f"the certificate says the sampler adds at most {stated!r} to delta, but the bound of what "
        f"it may add is {least!r}"
    )
    return Finding(name, "not reproduced", stated, because)


def _sequence(certificate: SequenceCertificate, proof: Proof) -> Finding:
    """Return the finding on the bad sequence, for which a certificate states no bound."""
    made = [(step.change, step.times) for step in certificate.worst_sequence]
    ours = [(tuple(step.change.listed), step.times) for step in proof.worst_sequence]
    return Finding("worst_sequence", "confirmed" if made and made == ours else "unchecked")


@dataclass(frozen=True)
class _WorstPair:
    """Whether the change that a certificate names attains the lower bound that it states."""

    certificate: Certificate
    mechanism: Mechanism
    claim: Claim
    proof: Proof
    gap: float
    deadline: float

    def finding(self) -> Finding:
        name, lower = "worst_pair", self.certificate.delta_lower
        change = Change.of(self.certificate.worst_pair)
        said = lower > 0 and DISJOINT not in self.proof.covered
        if not said or self.proof.less_noise:  # with all the noise it would take very long
            return Finding(name, "unchecked")
        if change == self.proof.worst_change and lower <= self.proof.enclosure.lower:
            return Finding(name, "confirmed")
        if self.claim.any_sequence:  # it begins an adaptive sequence that is not in the file
            return Finding(name, "unchecked")
        found = None
        with suppress(TooLarge, Undecided):
            found = self._alone(change)
        if found is None:
            return Finding(name, "unchecked")
        if found.upper < lower:
            because = (
                f"the certificate says delta is at least {exactly(lower)} where {change}, but it "
                f"is at most {at_most(found.upper)} there"
            )
            return Finding(name, "false", list(self.certificate.worst_pair), because)
        return Finding(name, "confirmed" if lower <= found.lower else "consistent")

    def _alone(self, change: Change) -> Enclosure:
        """Return bounds of delta for this change alone, as close as the lower bound needs them.

        By the fast evaluators, which take any size of delta; by the notary, for a limited time,
        where they know no bounds of one change.
        """
        claim, lower = self.claim, self.certificate.delta_lower
        asked = claim.releases, claim.releases > 1, claim.adjacency
        if self.mechanism.central.whole() and not change.moved:
            profile = Profile(self.mechanism, *asked)
            found = profile.delta(
                claim.eps, change=change, gap=self.gap, absolute=self.gap * lower / 2
            )
            return found.enclosure
        notary, end = Notary(self.mechanism, *asked), time.monotonic() + _SECONDS

        def at(eps: float) -> Proof:
            return notary.enclose(
                eps,
                gap=self.gap,
                claim=lower,
                changes=[change],
                deadline=min(self.deadline, end),
            )

        return proof_for_both(claim.eps, at, gap=self.gap).enclosure
