"""The answer of ``paramsearch audit``: facts for people, an object for machines."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from accounting.base.enclosure import Enclosure, at_least, at_most, counted, exactly
from accounting.base.errors import required
from accounting.model.change import covers
from accounting.model.configuration import Proposal
from accounting.model.laws.noise import BURST
from accounting.model.mechanism import Atom
from accounting.model.proof import Proof
from accounting.model.proof_types import COMPARISON, FAST, REFERENCE, AuditTier
from paramsearch.certification.audit import Audit, lacks_central_noise
from paramsearch.certification.certificate_check import CertificateCheck
from paramsearch.certification.remarks import cost_remark, warnings_about
from paramsearch.certification.stated_problem import Difference, StatedProblem, differences
from paramsearch.certification.weak_noise import WeakNoise
from paramsearch.cli.exit_codes import OF_VERDICT, ExitCode
from paramsearch.cli.output import Fact
from paramsearch.cli.proving.lost_answer import losses_as_json, losses_in_words
from paramsearch.parameters.expected_cost import ExpectedCost
from paramsearch.parameters.parameter_file import ParameterFile
from paramsearch.parameters.words import (
    atom_in_words,
    claim_in_words,
    laws_of,
    noise_in_words,
    values_of,
)

_STYLE = {
    "certified": "bold green",
    "violated": "bold red",
    "undecided": "bold yellow",
    "misstated": "bold red",
    "rejected": "bold red",
}
_WIDE = 1.01
"""Ratio of the bounds of an eps from which on both are said."""
_MORE_TIME = 50
"""Seconds of a larger budget for every ten seconds that were not enough."""
_SHOWN_ATOMS = 4
"""Number of atoms without noise that are named."""
_OF_NOISE = {
    "certified": "by itself it meets the claim; the file is {} all the same",
    "violated": "by itself it violates the claim",
    "undecided": "by itself it leaves the claim undecided",
}
"""What the noise of a file that is misstated or rejected would get."""

_NO_EVENTS = {"noise_events": None, "largest_upload": None}
"""What is said of the events of a configuration for an unknown number of users."""


@dataclass(frozen=True, kw_only=True)
class Answer:
    """An audit, and what it was about.

    Attributes:
        found: The audit.
        document: What was audited; for a rejected file, what its problem and noise make.
        file_sha256: Of the bytes of the file.
        signed: What to say about a signature, if anything.
        report: Where the report is, if there is one.
        required: The problem that the file has to be for, if one was given.
    """

    found: Audit
    document: ParameterFile | Proposal
    file_sha256: str
    signed: str | None = None
    report: Path | None = None
    required: StatedProblem | None = None

    @property
    def problem(self) -> StatedProblem:
        """What the verdict is about."""
        return StatedProblem.of(self.document, self.found.claim)

    @property
    def differing(self) -> list[Difference]:
        """The fields in which the file is not what is required."""
        return [] if self.required is None else list(differences(self.required, self.problem))

    @property
    def exit_code(self) -> ExitCode:
        """That of the verdict; or that of a violation, where a file that is not rejected is not for
        the problem that is required."""
        code = OF_VERDICT[self.found.verdict]
        return ExitCode.VIOLATED if self.differing and code != ExitCode.BAD_INPUT else code

    @property
    def _sealed(self) -> str | None:
        """The hash that a parameter file states, which was checked."""
        if isinstance(self.document, ParameterFile) and self.found.verdict != "rejected":
            return self.document.sha256
        return None

    @property
    def _certificate(self) -> str | None:
        """A sentence about the certificate of a parameter file."""
        found, document = self.found, self.document
        if not isinstance(document, ParameterFile):
            return None
        certificate = document.certificate
        if certificate is None:  # that of a rejected file was left out before the audit
            rejected = found.verdict == "rejected"
            return None if rejected else "none in the file; `paramsearch certify` adds one"
        if found.proof is None:
            return "not looked at: nothing was proved"
        if found.consistent is None:
            return "not looked at: this is about another claim than the file's own"
        if not found.consistent or found.confirmed:
            return required(found.certificate, "the check of the certificate").in_words()
        if found.confirmed is None:
            return "consistent with this proof; an audit without --delta may confirm it"
        tier = _tier_of(certificate.proof)
        again = f"--tier {tier}" if _tier_of(found.proof.covered) != tier else "a smaller --gap"
        return f"consistent with this proof, which is too wide to confirm it: ask for {again}"

    @property
    def _adjacency(self) -> str | None:
        """A sentence where the audit is about another adjacency than the file."""
        document, asked = self.document, self.found.claim.adjacency
        own = document.problem if isinstance(document, ParameterFile) else document
        if own.adjacency == asked:
            return None
        if covers(own.adjacency, asked):
            return f"{asked} was asked about; the file is for {own.adjacency}, which covers it"
        return f"{asked} was asked about; the file is for {own.adjacency}, which does not cover it"

    def for_machines(self) -> dict[str, Any]:
        """One JSON object."""
        found, proof = self.found, self.found.proof
        expected = ExpectedCost.of(self.document, found.claim)
        bounds = proof.enclosure.as_written() if proof else Enclosure(0.0, 1.0)
        out: dict[str, Any] = {
            "verdict": found.verdict,
            "reason": found.reason,
            "claim_verdict": found.claim_verdict,
            "problem": self.problem.as_json(),
            "required": self._required(),
            "warnings": warnings_about(self.document, found.claim),
            "remark": cost_remark(expected) if expected else None,
            "eps": found.claim.eps,
            "delta": found.claim.delta,
            "delta_lower": bounds.lower,
            "delta_upper": bounds.upper,
            "worst_pair": list(proof.worst_change.listed) if proof else None,
            "worst_sequence": [
                {"change": list(made.change.listed), "times": made.times}
                for made in (proof.worst_sequence if proof else ())
            ],
            "worst_sequence_delta_lower": (
                Enclosure(proof.sequence_lower, 1.0).as_written().lower
                if proof and proof.worst_sequence
                else None
            ),
            "adjacency": found.claim.adjacency,
            "noise_laws": laws_of(self.document),
            "max_value": found.mechanism.max_value,
            "dimension": found.mechanism.dimension,
            "releases": found.claim.releases,
            "same_change": found.claim.same_change,
            "rounded": found.rounded,
            "honest": found.claim.honest,
            "lost": losses_as_json(found.lost) if found.lost else None,
            "proof": dict(proof.covered) if proof else {},
            "lower_bound_by": list(proof.lower_by) if proof else [],
            "precision": proof.precision if proof else None,
            "sampler_deviation": proof.deviation if proof else None,
            "upper_bound_only": proof is not None and not proof.exact,
            "certificate_confirmed": found.confirmed,
            "certificate_consistent": found.consistent,
            **_findings(found.certificate),
            "cost": expected.cost.model_dump() if expected else None,
            "error": expected.error.model_dump() if expected else None,
            "real_error": asdict(expected.real) if expected and expected.real else None,
            **(expected.events_as_json() if expected else _NO_EVENTS),
            "signature": self.signed,
            "sha256": self._sealed,
            "file_sha256": self.file_sha256,
            "version": version("paramsearch"),
        }
        if found.noise_verdict is not None:
            out["noise_verdict"] = found.noise_verdict
        if "violated" in (found.verdict, found.noise_verdict):
            satisfied, limit, weak = found.satisfied_eps, found.limit, found.weak_noise
            out["satisfied_eps"] = _listed(satisfied)
            out["satisfied_eps_searched"] = found.searched
            out["delta_limit"] = _listed(limit)
            out["weak_noise"] = _weak_noise(weak) if weak else None
            out["atoms_without_noise"] = [list(atom) for atom in self._without_noise]
        return out

    def _required(self) -> dict[str, Any] | None:
        """Whether the file is for the problem that is required; None if none is."""
        if self.required is None:
            return None
        return {"met": not self.differing, "differs": [asdict(one) for one in self.differing]}

    @property
    def _without_noise(self) -> list[Atom]:
        """The atoms that are never sent."""
        return [atom for atom, parts in self.found.mechanism.atoms.items() if not parts]

    def _made_for_fewer(self, releases: int) -> bool:
        """Tell whether the file was made for fewer releases than are asked about."""
        document = self.document
        return isinstance(document, ParameterFile) and document.problem.releases < releases

    def for_people(self) -> Iterator[Fact]:
        """One line after the other."""
        found = self.found
        yield "verdict", found.verdict, _STYLE[found.verdict]
        dimension = found.mechanism.dimension
        yield (
            "claim",
            claim_in_words(
                found.claim,
                proved_for=found.proved_for,
                dimension=dimension,
                rounded=found.rounded,
            ),
        )
        for one in self.differing:
            yield "required", str(one).removeprefix("required "), "bold red"
        if self.required is not None and not self.differing:
            yield "required", "met in every field of the problem"
        for warning in warnings_about(self.document, found.claim):
            yield "warning", warning, "yellow"
        if found.noise_verdict is not None:
            yield "because", found.reason
            yield "its noise", _OF_NOISE[found.noise_verdict].format(found.verdict)
        if found.proof is not None:
            yield from _proof_facts(found.proof, any_sequence=found.claim.any_sequence)
        if found.verdict in ("violated", "undecided"):
            yield "because", found.reason
        yield from _instead(found)
        if found.lost is not None:
            yield from losses_in_words(found.claim, found.lost)
        if found.verdict == "violated" and lacks_central_noise(found.mechanism):
            honest = exactly(found.claim.honest)
            yield (
                "remedy",
                f"paramsearch generate with --honest {honest} makes files for which they suffice",
            )
        releases = found.claim.releases
        if found.verdict == "violated" and self._made_for_fewer(releases):
            yield "remedy", f"paramsearch generate with --releases {releases} makes files for that"
        if found.weak_noise is not None:
            yield "weak noise", _weak_noise_in_words(found.weak_noise)
        if "violated" in (found.verdict, found.noise_verdict) and self._without_noise:
            shown = [atom_in_words(atom) for atom in self._without_noise[:_SHOWN_ATOMS]]
            more = len(self._without_noise) - len(shown)
            yield (
                "no noise",
                ", ".join(shown) + (f" and {counted(more, 'more atom')}" if more else ""),
            )
        if self._certificate is not None:
            yield "certificate", self._certificate
        if self._adjacency is not None:
            yield "adjacency", self._adjacency
        if BURST in laws_of(self.document):
            yield "noise", noise_in_words(self.document)
        expected = ExpectedCost.of(self.document, found.claim)
        if expected is not None:
            if isinstance(self.document, ParameterFile) and (values := values_of(self.document)):
                yield "values", f"{values}, according to the file; the proof is for the steps"
            yield "cost", expected.cost_in_words()
            yield "events", expected.events_in_words()
            if (remark := cost_remark(expected)) is not None:
                yield "remark", remark
            yield "error", expected.error_in_words()
        if self._sealed is not None:
            yield "sha256", f"{self._sealed} of its content, which clients show"
        yield "bytes", f"sha256 {self.file_sha256} of the file as it was read"
        if self.signed is not None:
            yield "signature", self.signed
        if self.report is not None:
            yield "report", str(self.report)


def unreadable(reason: str, file_sha256: str) -> dict[str, Any]:
    """The object about a rejected file whose noise cannot be read."""
    return {
        "verdict": "rejected",
        "reason": reason,
        "noise_verdict": None,
        "claim_verdict": None,
        "problem": None,
        "required": None,
        "warnings": [],
        "remark": None,
        "delta_lower": 0.0,
        "delta_upper": 1.0,
        "file_sha256": file_sha256,
        "version": version("paramsearch"),
    }


def unreadable_in_words(reason: str, file_sha256: str) -> Iterator[Fact]:
    """Return the facts about a rejected file whose noise cannot be read."""
    yield "verdict", "rejected", _STYLE["rejected"]
    yield "because", reason
    yield "its noise", "cannot be read"
    yield "bytes", f"sha256 {file_sha256} of the file as it was read"


def _tier_of(methods: Mapping[str, int]) -> AuditTier:
    """The tier whose proofs use these methods for upper bounds."""
    used = {method for method, count in methods.items() if count}
    if REFERENCE in used:
        return "reference"
    if FAST not in used:
        return "ball"
    return "fast" if used <= {FAST, COMPARISON} else "mixed"


def _instead(found: Audit) -> Iterator[Fact]:
    """After a violation, what holds."""
    limit, delta = found.limit, found.claim.delta
    if limit is None:
        return
    late = (
        f"out of time after {found.seconds:,.0f} s; --budget "
        f"{math.ceil(found.seconds / 10) * _MORE_TIME} gives the search more"
    )
    if found.satisfied_eps is not None:
        low, high = found.satisfied_eps.lower, found.satisfied_eps.upper
        text = f"eps = {at_most(high)} holds at delta = {delta!r}"
        if high > _WIDE * low:
            text += f"; the smallest one that does is above {at_least(low)}"
            text += "" if found.searched else f": {late}"
        yield "instead", text
        return
    if limit.lower == 1:
        yield "instead", f"no eps holds at delta = {delta!r}: delta is 1 at every eps"
        return
    falls = (
        f"as eps grows without bound, delta falls to a limit between {at_least(limit.lower)} and "
        f"{at_most(limit.upper)}, the probability of messages that the other input cannot produce"
    )
    if limit.lower > delta:
        yield "instead", f"no eps holds at delta = {delta!r}: {falls}"
    elif not found.searched:
        yield "instead", f"not searched to the end: {late}"
    elif limit.upper <= delta:
        yield (
            "instead",
            f"no eps was found that holds at delta = {delta!r}, though a large one does: {falls}; "
            "what is too weak to show a smaller one are the upper bounds of delta",
        )
    else:
        yield (
            "instead",
            f"no eps was found that holds at delta = {delta!r}, and whether one does is not "
            f"decided: {falls}, and the claimed delta lies between these bounds",
        )


def _listed(bounds: Enclosure | None) -> list[float] | None:
    """Both bounds, in numbers that also hold as decimals."""
    if bounds is None:
        return None
    written = bounds.as_written()
    return [written.lower, written.upper]


def _findings(check: CertificateCheck | None) -> dict[str, Any]:
    """What the proof says about the fields of the certificate."""
    found = () if check is None else check.findings
    false = [
        {"field": one.field, "stated": one.stated, "reason": one.because}
        for one in found
        if one.because
    ]
    return {
        "certificate_fields": {one.field: one.standing for one in found} if check else None,
        "certificate_false": false,
        "certificate_unchecked": [] if check is None else check.fields("unchecked"),
    }


def _weak_noise(weak: WeakNoise) -> dict[str, Any]:
    atom = None if weak.atom is None else list(weak.atom)
    return {"atom": atom, "share": weak.share, "factor": weak.factor, "enough": weak.enough}


def _weak_noise_in_words(weak: WeakNoise) -> str:
    atom = "every atom" if weak.atom is None else atom_in_words(weak.atom)
    return f"{atom}: {weak.in_words()}"


def _proof_facts(proof: Proof, *, any_sequence: bool) -> Iterator[Fact]:
    lower, upper = proof.enclosure.lower, proof.enclosure.upper
    if not proof.exact:
        why = "proved for less noise" if proof.less_noise else "more atoms than values"
        yield "delta", f"at most {at_most(upper)} ({why}: upper bound only)"
    elif lower == upper:
        yield "delta", f"exactly {exactly(upper)}"
    else:
        yield (
            "delta",
            f"between {at_least(lower)} and {at_most(upper)} at eps = {exactly(proof.eps)}",
        )
    label = "worst sequence" if any_sequence else "worst pair"
    yield label, proof.worst_case(any_sequence=any_sequence)
    parts = [
        f"{counted(count, 'pair')} by {method}" for method, count in proof.covered.items() if count
    ]
    bits = f", {proof.precision} bits" if proof.precision else ""
    below = f"; lower bound by {' and '.join(proof.lower_by)}" if proof.lower_by else ""
    yield "proof", ", ".join(parts) + bits + below
