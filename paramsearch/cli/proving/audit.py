"""``paramsearch audit`` and ``paramsearch certify``, for people and for machines."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

from accounting.base.enclosure import at_least, at_most, exactly
from accounting.base.errors import AccountingError, InvalidParameter
from accounting.model.configuration import Proposal
from accounting.model.proof_types import Tier
from accounting.proof.prove import Proof
from accounting.proof.words import worst_case
from paramsearch.certification.audit import EXIT_CODE, Audit, audit
from paramsearch.certification.certify import certify
from paramsearch.cli.output import Fact, progress, show
from paramsearch.files import check_writable, destination, write_atomically
from paramsearch.parameters import signature
from paramsearch.parameters.assembly import consistent, rescaled, uncertified
from paramsearch.parameters.documents import read
from paramsearch.parameters.parameter_file import ParameterFile, dumps, save
from paramsearch.parameters.words import claim, claimed, error_of

_COLOUR = {"certified": "bold green", "violated": "bold red", "undecided": "bold yellow"}


def run_audit(
    path: Path,
    *,
    eps: float | None,
    delta: float | None,
    releases: int | None,
    same_change: bool,
    honest: float | None,
    tier: Tier,
    gap: float,
    budget: float | None,
    public_key: Path | None,
    signature_file: Path | None,
    report: Path | None,
    as_json: bool,
) -> int:
    """Answer on stdout; returns the exit code."""
    if report is not None:
        check_writable(report, "--report", (".html", ".htm"))
    document = read(path)
    signed = _signature(path, document, public_key, signature_file)
    with progress("auditing") as say:
        try:
            found = audit(
                document,
                eps=eps,
                delta=delta,
                releases=releases,
                same_change=same_change,
                honest=honest,
                tier=tier,
                gap=gap,
                budget=math.inf if budget is None else budget,
                progress=say,
            )
        except AccountingError as error:
            raise type(error)(f"{path}: {error}") from error
        if report is not None:
            from paramsearch.report import report as reports

            say("writing the report")
            reports.write(report, found, document, source=path.name, signature=signed, progress=say)
    if as_json:
        print(json.dumps(_machine(found, document, signed), allow_nan=False))
    else:
        show(_person(found, document, signed, report))
    return EXIT_CODE[found.verdict]


def _signature(
    path: Path, document: ParameterFile | Proposal, key: Path | None, given: Path | None
) -> str | None:
    """Check the signature if a key is given; what to say of it."""
    where = given or signature.signature_path(path)
    if key is None:
        if given is not None:
            raise InvalidParameter(f"--signature {given} can only be checked with --public-key")
        return "present, not checked: no --public-key given" if os.path.exists(where) else None
    if not isinstance(document, ParameterFile):
        raise InvalidParameter(f"{path} is a bare configuration, which cannot be signed")
    if not os.path.exists(where):
        raise InvalidParameter(f"there is no signature {where}; give it as --signature")
    signature.verify(document, where, key)
    return f"good, by the key {key.name}"


def _machine(
    found: Audit, document: ParameterFile | Proposal, signed: str | None
) -> dict[str, Any]:
    proof = found.proof
    out: dict[str, Any] = {
        "verdict": found.verdict,
        "reason": found.reason,
        "eps": found.eps,
        "delta": found.delta,
        "delta_lower": proof.enclosure.lower if proof else 0.0,
        "delta_upper": proof.enclosure.upper if proof else 1.0,
        "worst_pair": list(proof.worst_change.listed) if proof else None,
        "worst_sequence": [
            {"change": list(made.change.listed), "times": made.times}
            for made in (proof.worst_sequence if proof else ())
        ],
        "worst_sequence_delta_lower": proof.sequence_lower if proof else 0.0,
        "adjacency": "substitution",
        "max_value": found.mechanism.max_value,
        "dimension": found.mechanism.dimension,
        "releases": found.releases,
        "same_change": found.same_change,
        "honest": found.honest,
        "proof": dict(proof.covered) if proof else {},
        "precision": proof.precision if proof else None,
        "sampler_deviation": proof.deviation if proof else None,
        "upper_bound_only": proof is not None and not proof.exact,
        "certificate_confirmed": found.confirmed,
        "signature": signed,
        "sha256": document.sha256 if isinstance(document, ParameterFile) else None,
        "version": metadata.version("paramsearch"),
    }
    if found.verdict == "violated":
        satisfied = found.satisfied_eps
        out["satisfied_eps"] = [satisfied.lower, satisfied.upper] if satisfied else None
        out["satisfied_eps_searched"] = found.searched
    return out


def _person(
    found: Audit, document: ParameterFile | Proposal, signed: str | None, report: Path | None
) -> Iterator[Fact]:
    yield "verdict", found.verdict, _COLOUR[found.verdict]
    yield (
        "claim",
        claim(
            eps=found.eps,
            delta=found.delta,
            releases=found.releases,
            same_change=found.same_change,
            honest=found.honest,
            proved_for=found.proved_for,
            dimension=found.mechanism.dimension,
        ),
    )
    if found.proof is not None:
        yield from _proof(found.proof, any_sequence=found.releases > 1 and not found.same_change)
    if found.verdict != "certified":
        yield "because", found.reason
    if found.satisfied_eps is not None:
        eps = at_most(found.satisfied_eps.upper)
        yield "instead", f"eps = {eps} holds at delta = {found.delta!r}"
    elif found.searched:
        yield "instead", f"no eps was found that holds at delta = {found.delta!r}"
    elif found.proof is not None and found.proof.enclosure.lower > found.delta:
        yield (
            "instead",
            "not searched to the end: the budget is used up; a larger one may find an eps",
        )
    if found.confirmed is not None:
        what = "confirmed" if found.confirmed else "its delta_upper is not confirmed by this proof"
        yield "certificate", what
    if isinstance(document, ParameterFile):
        cost = document.cost
        yield (
            "cost",
            f"{cost.noise_messages:,.1f} noise messages, {cost.messages_per_user:.6g} messages and "
            f"{cost.bits_per_user:.6g} bits per user (n = {document.problem.n:,})"
            + (" in each release" if document.problem.releases > 1 else ""),
        )
        yield "error", error_of(document)
        yield "sha256", document.sha256
    if signed is not None:
        yield "signature", signed
    if report is not None:
        yield "report", str(report)


def _proof(proof: Proof, *, any_sequence: bool) -> Iterator[Fact]:
    lower, upper = proof.enclosure.lower, proof.enclosure.upper
    if not proof.exact:
        why = "proved for less noise" if proof.lighter else "more atoms than values"
        yield "delta", f"at most {at_most(upper)} ({why}: upper bound only)"
    elif lower == upper:
        yield "delta", f"exactly {exactly(upper)}"
    else:
        yield (
            "delta",
            f"between {at_least(lower)} and {at_most(upper)} at eps = {exactly(proof.eps)}",
        )
    label = "worst sequence" if any_sequence else "worst pair"
    yield label, worst_case(proof, any_sequence=any_sequence)
    parts = [f"{count:,} pairs by {method}" for method, count in proof.covered.items() if count]
    bits = f", {proof.precision} bits" if proof.precision else ""
    yield "proof", ", ".join(parts) + bits


def run_certify(
    path: Path,
    *,
    output: Path | None,
    n: int | None,
    eps: float | None,
    delta: float | None,
    releases: int | None,
    same_change: bool,
    honest: float | None,
    tier: Tier,
    gap: float,
    as_json: bool,
) -> int:
    """Certify a configuration, or a parameter file again, and write the parameter file."""
    destination(output, as_json)
    document = read(path)
    try:
        if isinstance(document, ParameterFile):
            given = {"n": n, "eps": eps, "delta": delta, "releases": releases, "honest": honest}
            for name, value in given.items():
                if value is not None:
                    raise InvalidParameter(f"--{name} cannot change what a parameter file claims")
            if same_change:
                raise InvalidParameter("--same-change cannot change what a parameter file claims")
            draft = document
        else:
            draft = uncertified(
                document,
                n=n,
                eps=eps,
                delta=delta,
                releases=1 if releases is None else releases,
                same_change=same_change,
                honest=1.0 if honest is None else honest,
            )
        with progress("certifying") as say:
            certified = certify(draft, tier=tier, gap=gap, progress=say)
    except AccountingError as error:
        raise type(error)(f"{path}: {error}") from error
    return _delivered(certified, output, as_json)


def _delivered(certified: ParameterFile, output: Path | None, as_json: bool) -> int:
    if output is not None:
        save(certified, output)
    if as_json:
        print(dumps(certified), end="")
        return 0
    certificate = certified.certificate
    assert certificate is not None
    cost = certified.cost
    print(
        f"certified {claimed(certified)}: delta is at most {at_most(certificate.delta_upper)}; "
        f"{cost.noise_messages:,.1f} noise messages, {cost.messages_per_user:.6g} messages per "
        f"user; written to {output}"
    )
    return 0


def run_rescale(path: Path, *, n: int, output: Path | None, tier: Tier, as_json: bool) -> int:
    """The file for another number of users, certified again."""
    destination(output, as_json)
    document = read(path)
    if not isinstance(document, ParameterFile):
        raise InvalidParameter(f"{path} is a bare configuration; certify it with --n instead")
    with progress("certifying") as say:
        certified = certify(rescaled(document, n), tier=tier, progress=say)
    return _delivered(certified, output, as_json)


def run_sign(path: Path, *, key: Path, create: bool, output: Path | None, as_json: bool) -> int:
    """Sign a parameter file."""
    document = read(path)
    if not isinstance(document, ParameterFile):
        raise InvalidParameter(f"{path} is a bare configuration; certify it first")
    consistent(document)
    target = output or signature.signature_path(path)
    check_writable(target, "--output")
    for other in (path, key, signature.public_path(key)):
        if target.resolve() == other.resolve():
            raise InvalidParameter(f"--output {target} would overwrite {other}")
    made = {"public_key": str(signature.create_key(key))} if create else {}
    write_atomically(target, signature.sign(document, key))
    made["signature"] = str(target)
    if as_json:
        print(json.dumps(made))
    else:
        for what, where in made.items():
            print(f"{what.replace('_', ' '):12}{where}")
    return 0
