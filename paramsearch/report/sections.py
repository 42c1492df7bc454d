"""The sections of the report on the verdict, the claim, the proof and the file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date

from accounting.base.enclosure import Enclosure, counted
from accounting.model.change import SUBSTITUTION, ZERO_OUT, Change
from accounting.model.configuration import Proposal
from accounting.model.proof import Proof
from accounting.model.proof_types import (
    BALL,
    BALL_2D,
    BALL_COUPLED,
    COMPARISON,
    DISJOINT,
    FAST,
    REFERENCE,
)
from paramsearch.certification.audit import Audit, Verdict
from paramsearch.certification.remarks import warnings_about
from paramsearch.parameters.honest_fraction import in_words
from paramsearch.parameters.parameter_file import ParameterFile
from paramsearch.parameters.problem_section import ProblemSection
from paramsearch.parameters.words import PREMISE, changes_in_words
from paramsearch.report.html import (
    LARGEST_TABLE,
    Fact,
    Html,
    atom_text,
    element,
    facts,
    join,
    number,
    percent,
    section,
    sentence,
    table,
    untrusted,
)

Document = ParameterFile | Proposal
_SIGNS: dict[Verdict, str] = {
    "certified": "M9 17l6 6 12-13",
    "violated": "M10 10l14 14M24 10l-14 14",
    "undecided": "M12.5 13a4.5 4.5 0 1 1 6.500 4.200c-1.300.7-2 1.500-2 3.100M17 25v.6",
    "misstated": "M17 8.500v10M17 24.500v.6",
    "rejected": "M17 8.500v10M17 24.500v.6",
}
_FACTOR = 2.0
"""Least ratio that is shown as a factor instead of a percentage."""
_BALLS = "ball arithmetic: each number is an interval that holds the true one"
_ADJACENCY = {
    SUBSTITUTION: "changes from any value to any other",
    ZERO_OUT: "becomes 0, or appears in the place of 0, while everybody’s noise stays",
}
_ADJACENCY_OF_VECTORS = {
    SUBSTITUTION: "changes from any such vector to any other",
    ZERO_OUT: "becomes the empty vector, or appears in its place, while everybody’s noise stays",
}
"""What one user can change, in words."""
_METHODS = {
    BALL: ("ball", _BALLS),
    BALL_2D: ("ball, thinned", f"{_BALLS}; the central noise as doubles with error bounds"),
    BALL_COUPLED: (
        "ball, coupled",
        f"{_BALLS}; the central noise of a fraction of the users by a coupling, in doubles with "
        "error bounds",
    ),
    FAST: ("fast", "floating point with proved error bounds"),
    COMPARISON: ("comparison", "another pair is at least as easy to tell apart, at every eps"),
    REFERENCE: ("enumeration", "the definition, summed over all message counts"),
    DISJOINT: ("disjoint supports", "every view distinguishes the two inputs"),
}


@dataclass(frozen=True, kw_only=True)
class AuditedFile:
    """The file that was audited, and the time.

    Attributes:
        source: Its name; of a path, only the last part is shown.
        sha256: Of its bytes.
        audited_on: The day of the audit.
        signature: What to say about its signature; None if none was checked.
    """

    source: str
    sha256: str
    audited_on: date
    signature: str | None = None


def verdict_section(audit: Audit) -> Html:
    """The verdict and the bounds it rests on."""
    sign = element(
        "svg",
        element("circle", cx=17, cy=17, r=15.5),
        element("path", d=_SIGNS[audit.verdict]),
        viewBox="0 0 34 34",
        width=34,
        height=34,
        aria_hidden="true",
    )
    return element(
        "section",
        element("h2", sign, audit.verdict.capitalize(), id="verdict"),
        element("p", sentence(audit.reason), class_="reason"),
        *_of_noise(audit),
        facts(_answer(audit)),
        *_witness(audit),
        class_=f"verdict {audit.verdict}",
        aria_labelledby="verdict",
    )


def _of_noise(audit: Audit) -> list[Html]:
    """For a file that is misstated or rejected: what the numbers are about."""
    if audit.noise_verdict is None:
        return []
    words = {
        "certified": f"by itself, it meets the claim; the file is {audit.verdict} all the same.",
        "violated": "by itself, it violates the claim.",
    }.get(audit.noise_verdict, "by itself, it leaves the claim undecided.")
    return [element("p", "What follows is about the noise in the file: " + words)]


def _answer(audit: Audit) -> Iterator[Fact]:
    proof, at = audit.proof, join(["at ε = ", number(audit.claim.eps)])
    yield "Claimed", join(["δ ≤ ", number(audit.claim.delta), " ", at])
    if proof is None:
        yield "Proved", "nothing"
        return
    low, high = proof.enclosure.lower, proof.enclosure.upper
    upper = number(high, 5, "upper")
    if low == high:
        yield "Proved", join(["δ = ", upper, " ", at])
    elif proof.exact:
        yield "Proved", join([number(low, 5, "lower"), " ≤ δ ≤ ", upper, " ", at])
    else:
        yield (
            "Proved",
            join(["δ ≤ ", upper, " ", at, f" (no lower bound: {no_lower_bound(proof)})"]),
        )
    if 0 < high <= audit.claim.delta:
        yield "Margin", _margin(audit.claim.delta, high, "below")
    if low > audit.claim.delta:
        yield "Margin", _margin(audit.claim.delta, low, "above")
    worst = worst_change(audit)
    if worst is not None:
        any_sequence = audit.claim.any_sequence
        label = "Worst sequence" if any_sequence else "Worst change"
        yield label, proof.worst_case(any_sequence=any_sequence)


def _margin(claimed: float, bound: float, side: str) -> Html | str:
    """The distance of a bound from the claim, rounded down: a factor, or below 2 a percentage."""
    if bound == claimed:
        return "none: the bound is the claim"
    factor = max(claimed, bound) / min(claimed, bound)
    if factor >= _FACTOR:
        return join([number(factor, 3, "lower"), f" times {side} the claim"])
    part = 100 * (abs(claimed - bound) / claimed)
    return join([number(part, 2, "lower"), f" % {side} the claim"])


def no_lower_bound(proof: Proof) -> str:
    """Say why the proof has no lower bound."""
    return "proved for less noise" if proof.less_noise else "more atoms than values"


def worst_change(audit: Audit) -> Change | None:
    """The change with the largest bound, unless the bounds do not single one out."""
    proof = audit.proof
    if proof is None or (proof.exact and proof.enclosure.lower == 0):
        return None
    return proof.worst_change


def _witness(audit: Audit) -> list[Html]:
    """For a violation: the change that shows it, what holds instead, and the weak noise."""
    proof = audit.proof
    if "violated" not in (audit.verdict, audit.noise_verdict) or proof is None:
        return []
    any_sequence = audit.claim.any_sequence
    worst = proof.worst_case(any_sequence=any_sequence)
    if proof.enclosure.lower == 1:
        words = join(
            [
                f"When {worst}, every outcome reveals the change. No ε makes up for that: δ = 1 "
                "at every ε."
            ]
        )
        return [element("p", element("strong", "Witness. "), words)]
    words = join(
        [
            f"With {worst}: δ is at least " if any_sequence else f"When {worst}, δ is at least ",
            number(proof.enclosure.lower, 5, "lower"),
            ", more than the ",
            number(audit.claim.delta),
            " claimed.",
        ]
    )
    parts = [element("p", element("strong", "Witness. "), words)]
    if audit.limit is not None:
        parts += [
            element("p", element("strong", "What holds instead. "), _holds(audit, audit.limit))
        ]
    if audit.weak_noise is not None:
        weak = audit.weak_noise
        atom = "Every atom" if weak.atom is None else atom_text(weak.atom)
        told = f"{atom}: {weak.in_words()}."
        parts += [element("p", element("strong", "Weak noise. "), told)]
    return parts


def _holds(audit: Audit, limit: Enclosure) -> Html:
    """What holds at the claimed delta; ``limit`` are bounds on delta for large eps."""
    found = audit.satisfied_eps
    if found is not None:
        high, low = number(found.upper, 5, "upper"), number(found.lower, 5, "lower")
        return join(["At this δ it satisfies ε = ", high, ", and no ε below ", low, "."])
    bounds = join([number(limit.lower, 5, "lower"), " and ", number(limit.upper, 5, "upper")])
    if limit.lower > audit.claim.delta:
        what = "No ε holds at this δ: as ε grows without bound, δ falls to a limit between "
    elif not audit.searched:
        return join(["The search for the ε that does hold at this δ ran out of time."])
    elif limit.upper <= audit.claim.delta:
        what = (
            "No ε was found that holds at this δ, though a large one does: the upper bounds of δ "
            "are too weak to show a smaller one. As ε grows without bound, δ falls to between "
        )
    else:
        what = (
            "No ε was found that holds at this δ, and whether one does is not decided. As ε grows "
            "without bound, δ falls to between "
        )
    what_it_is = ", the probability of messages that the other input cannot produce."
    return join([what, bounds, what_it_is])


def problem_section(audit: Audit, document: Document) -> Html:
    """The claim that was audited, which may differ from that of the file."""
    own: ProblemSection | Proposal
    if isinstance(document, ParameterFile):
        own, releases, honest = document.problem, document.problem.releases, document.problem.honest
    else:
        own, releases, honest = document, 1, 1.0
    how = _ADJACENCY[audit.claim.adjacency]
    inputs = f"whole numbers from 0 to {audit.mechanism.max_value:,}"
    if audit.mechanism.dimension > 1:
        how = _ADJACENCY_OF_VECTORS[audit.claim.adjacency]
        inputs = (
            f"vectors of dimension {audit.mechanism.dimension:,}, at most one value not 0; {inputs}"
        )
    rows: list[Fact] = [
        ("Users", f"{own.n:,}" if own.n is not None else "not stated"),
        ("Inputs", inputs),
        ("ε", number(audit.claim.eps)),
        ("δ", number(audit.claim.delta)),
        ("Adjacency", f"{audit.claim.adjacency}: one user’s input {how}"),
        (
            "Releases",
            changes_in_words(
                audit.claim.releases,
                same_change=audit.claim.same_change,
                adjacency=audit.claim.adjacency,
                rounded=audit.rounded,
            )
            if audit.claim.releases > 1
            else "1",
        ),
        (
            "Honest users",
            "all add their noise"
            if audit.claim.honest == 1
            else percent(in_words(audit.claim.honest, audit.proved_for))
            + f" of the users add their noise; {PREMISE}",
        ),
    ]
    if audit.claim.lost:
        users = counted(audit.claim.lost, "user")
        rows += [("Lost users", f"{users} with noise in every release, whatever they drew")]
    asked = (audit.claim.eps, audit.claim.delta, audit.claim.releases, audit.claim.honest)
    given = (own.eps, own.delta, releases, honest)
    notes = []
    if asked != given or own.adjacency != audit.claim.adjacency or audit.claim.lost:
        names = ("ε", "δ", "releases", "honest fraction")
        differ = [
            join([f"{name} = ", number(value) if value is not None else "not stated"])
            for name, value, other in zip(names, given, asked, strict=True)
            if value != other
        ]
        if own.adjacency != audit.claim.adjacency:
            differ.append(join([f"adjacency = {own.adjacency}"]))
        if audit.claim.lost:
            differ.append(join(["nobody with noise is lost"]))
        text = [part for claim in differ for part in (claim, ", ")][:-1]
        words = ("The audit was asked about this claim; the file says ", *text, ".")
        notes = [element("p", *words, class_="note")]
    for warning in warnings_about(document, audit.claim):
        notes.append(element("p", "Warning: ", sentence(warning), class_="note"))
    return section("claim", "The claim", facts(rows), *notes)


def proof_section(audit: Audit) -> Html:
    """The methods of the proof, with the number of pairs that each covers."""
    proof = audit.proof
    if proof is None:
        text = "No proof was completed, so there are no bounds to rely on."
        return section("proof", "How it was proved", element("p", text))
    covered = table(
        f"Ordered pairs of inputs, {len(audit.mechanism.changes(audit.claim.adjacency)):,} in all",
        ("Method", "Pairs", "What it is"),
        [
            (name, f"{count:,}", what)
            for method, count in proof.covered.items()
            if count
            for name, what in [_METHODS.get(method, (method, ""))]
        ],
    )
    inside = ", inside both bounds"
    rows: list[Fact] = [
        ("Precision", f"{proof.precision:,} bits" if proof.precision else "exact: no arithmetic"),
        (
            "Relative gap",
            join(
                [
                    number(proof.enclosure.relative_gap, 2, "upper"),
                    "" if proof.met else ", wider than was asked for",
                ]
            ),
        ),
        ("Sampler deviation", join([number(proof.deviation, 3, "upper"), inside])),
    ]
    if not proof.exact:
        rows += [("Lower bound", f"none: {no_lower_bound(proof)}")]
    if proof.lower_by:
        names = " and ".join(_METHODS.get(method, (method, ""))[0] for method in proof.lower_by)
        rows += [("Lower bound", f"from another proof: {names}")]
    what = "δ(ε) is the largest hockey-stick divergence over the ordered pairs of inputs. "
    if audit.claim.any_sequence:
        what = (
            "δ(ε) is the largest hockey-stick divergence over all sequences of changes, one in "
            "each release, each chosen by what was published before. "
        )
    if proof.enclosure.lower == 1:
        what += "One pair that every outcome distinguishes is enough."
    elif audit.claim.any_sequence:
        what += "The best of them is bounded from above, backward over the releases"
        what += ", and from below by one of them." if proof.enclosure.lower > 0 else "."
    else:
        what += "Every pair is bounded from above"
        what += ", the worst one also from below." if proof.exact else "."
    return section("proof", "How it was proved", element("p", what), facts(rows), covered)


def file_section(
    document: Document, file: AuditedFile, audit: Audit, *, software: Mapping[str, str]
) -> Html:
    """The identity of the file, and its own statements on how it was made."""
    audited = ", ".join(f"{name} {version}" for name, version in software.items())
    signed = "not checked" if file.signature is None else untrusted(file.signature)
    of_bytes = join([element("code", file.sha256), " (of every byte, as sha256sum prints it)"])
    rows: list[Fact] = [("SHA-256, bytes", of_bytes), ("Signature", signed)]
    parts: list[Html] = []
    if audit.verdict == "rejected":
        rows += [("Statements", "what the file says about how it was made is not repeated here")]
    elif isinstance(document, ParameterFile):
        what = " (of its fields, whatever the white space; the file states it, and clients show it)"
        sealed = join([element("code", document.sha256), what])
        rows = [("SHA-256, content", sealed), *rows]
        rows += [("Format", element("code", document.format)), *_certificate(document, audit)]
        made = document.provenance
        rows += [("Made by", element("code", untrusted(f"{made.tool} {made.version}")))]
        rows += [("Seed", f"{made.seed:,}" if made.seed is not None else "none")]
        parts = [_settings(made.settings)] if made.settings else []
    else:
        rows += [("Format", "a bare configuration: no certificate, no provenance")]
    rows += [("Audited with", audited)]
    return section("file", "The file", facts(rows), *parts)


def _certificate(file: ParameterFile, audit: Audit) -> Iterator[Fact]:
    found = file.certificate
    if found is None:
        yield "Certificate", "none in the file"
        return
    lower, upper, eps = map(number, (found.delta_lower, found.delta_upper, found.eps))
    ending = "; the audit proves δ again and trusts none of it"
    yield "Certificate", join([lower, " ≤ δ ≤ ", upper, " at ε = ", eps, ending])
    if audit.certificate is not None:
        yield "Its fields", audit.certificate.in_words()
    versions = [f"{name} {version}" for name, version in found.software.items()]
    yield "Certified with", element("code", untrusted(", ".join(versions)))


def _settings(settings: Mapping[str, object]) -> Html:
    items = list(settings.items())[:LARGEST_TABLE]
    rows = [[element("code", untrusted(str(text))) for text in item] for item in items]
    return table("Settings of the search, as the file states them", ("Setting", "Value"), rows)
