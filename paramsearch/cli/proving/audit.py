"""``paramsearch audit``: is a file what it claims to be?"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from accounting.base.enclosure import at_least, at_most, exactly
from accounting.base.errors import InvalidParameter
from paramsearch.cli import options
from paramsearch.cli.exit_codes import OF_VERDICT
from paramsearch.cli.output import Fact, check_writable, print_json, progress, show

if TYPE_CHECKING:
    from accounting.model.proof import Proof
    from paramsearch.certification.audit import Audit
    from paramsearch.parameters.parameter_file import ParameterFile

_STYLE = {"certified": "bold green", "violated": "bold red", "undecided": "bold yellow"}


def audit(
    file: Annotated[Path, typer.Argument(help="A parameter file or a bare configuration, JSON.")],
    eps: Annotated[float | None, typer.Option(help="Use this eps instead of the file's.")] = None,
    delta: Annotated[
        float | None, typer.Option(help="Use this delta instead of the file's.")
    ] = None,
    releases: Annotated[
        int | None,
        typer.Option(
            help="Number of releases covered together; one user's input may change differently "
            "in each."
        ),
    ] = None,
    same_change: options.SameChange = False,
    honest: Annotated[
        float | None, typer.Option(help="Fraction of the users assumed to add noise.")
    ] = None,
    tier: options.Tier = "auto",
    gap: Annotated[
        float,
        typer.Option(
            help="Relative gap between the bounds at which refining ends, even if undecided."
        ),
    ] = 1e-4,
    budget: Annotated[
        float,
        typer.Option(help="Seconds after which to answer with what is proved.", show_default=False),
    ] = math.inf,
    public_key: Annotated[
        Path | None, typer.Option(help="Check the signature with this Ed25519 key, PEM.")
    ] = None,
    signature: Annotated[
        Path | None, typer.Option(help="The signature, if it is not FILE.sig.")
    ] = None,
    report: Annotated[
        Path | None, typer.Option(help="Also write a self-contained report: FILE.html.")
    ] = None,
    as_json: options.AsJson = False,
) -> None:
    """Check a file's claim, trusting nothing in it: certified (0), violated (1), undecided (3).

    Adjacency is substitution: one user's input changes from any value to any other.
    """
    from accounting.model.configuration import blaming
    from paramsearch.certification.audit import audit
    from paramsearch.parameters.claim import Claim
    from paramsearch.parameters.documents import read
    from paramsearch.parameters.parameter_file import ParameterFile

    options.check_same_change(same_change, releases)
    if report is not None:
        check_writable(report, "--report", (".html", ".htm"))
    document = read(file)
    parameters = document if isinstance(document, ParameterFile) else None
    signed = _signature(file, parameters, public_key, signature)
    with progress("auditing") as say:
        with blaming(str(file)):
            claim = Claim.of(
                document,
                eps=eps,
                delta=delta,
                releases=releases,
                same_change=same_change,
                honest=honest,
            )
            found = audit(document, claim, tier=tier, gap=gap, budget=budget, progress=say)
        if report is not None:
            from paramsearch.report.page import write

            say("writing the report")
            write(report, found, document, source=file.name, signature=signed, progress=say)
    if as_json:
        print_json(_answer(found, parameters, signed))
    else:
        show(_facts(found, parameters, signed, report))
    raise typer.Exit(OF_VERDICT[found.verdict])


def _signature(
    path: Path, parameters: ParameterFile | None, key: Path | None, given: Path | None
) -> str | None:
    """Check the signature if a key is given; return what to say about it."""
    from paramsearch.parameters.signature import signature_path, verify

    where = given or signature_path(path)
    if key is None:
        if given is not None:
            raise InvalidParameter(f"--signature {given} can only be checked with --public-key")
        return "present, not checked: no --public-key given" if os.path.exists(where) else None
    if parameters is None:
        raise InvalidParameter(f"{path} is a bare configuration, which cannot be signed")
    if not os.path.exists(where):
        raise InvalidParameter(f"there is no signature {where}; give it as --signature")
    verify(parameters, where, key)
    return f"good, by the key {key.name}"


def _answer(found: Audit, parameters: ParameterFile | None, signed: str | None) -> dict[str, Any]:
    from importlib.metadata import version

    proof = found.proof
    out: dict[str, Any] = {
        "verdict": found.verdict,
        "reason": found.reason,
        "eps": found.claim.eps,
        "delta": found.claim.delta,
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
        "releases": found.claim.releases,
        "same_change": found.claim.same_change,
        "honest": found.claim.honest,
        "proof": dict(proof.covered) if proof else {},
        "precision": proof.precision if proof else None,
        "sampler_deviation": proof.deviation if proof else None,
        "upper_bound_only": proof is not None and not proof.exact,
        "certificate_confirmed": found.confirmed,
        "signature": signed,
        "sha256": None if parameters is None else parameters.sha256,
        "version": version("paramsearch"),
    }
    if found.verdict == "violated":
        satisfied = found.satisfied_eps
        out["satisfied_eps"] = [satisfied.lower, satisfied.upper] if satisfied else None
        out["satisfied_eps_searched"] = found.searched
    return out


def _facts(
    found: Audit, parameters: ParameterFile | None, signed: str | None, report: Path | None
) -> Iterator[Fact]:
    from paramsearch.parameters.words import claim_in_words, error_of

    yield "verdict", found.verdict, _STYLE[found.verdict]
    dimension = found.mechanism.dimension
    yield "claim", claim_in_words(found.claim, proved_for=found.proved_for, dimension=dimension)
    if found.proof is not None:
        yield from _proof_facts(found.proof, any_sequence=found.claim.any_sequence)
    if found.verdict != "certified":
        yield "because", found.reason
    if found.satisfied_eps is not None:
        eps = at_most(found.satisfied_eps.upper)
        yield "instead", f"eps = {eps} holds at delta = {found.claim.delta!r}"
    elif found.searched:
        yield "instead", f"no eps was found that holds at delta = {found.claim.delta!r}"
    elif found.proof is not None and found.proof.enclosure.lower > found.claim.delta:
        yield (
            "instead",
            "not searched to the end: the budget is used up; a larger one may find an eps",
        )
    if found.confirmed is not None:
        what = "confirmed" if found.confirmed else "its delta_upper is not confirmed by this proof"
        yield "certificate", what
    if parameters is not None:
        cost = parameters.cost
        yield (
            "cost",
            f"{cost.noise_messages:,.1f} noise messages, {cost.messages_per_user:.6g} messages and "
            f"{cost.bits_per_user:.6g} bits per user (n = {parameters.problem.n:,})"
            + (" in each release" if parameters.problem.releases > 1 else ""),
        )
        yield "error", error_of(parameters)
        yield "sha256", parameters.sha256
    if signed is not None:
        yield "signature", signed
    if report is not None:
        yield "report", str(report)


def _proof_facts(proof: Proof, *, any_sequence: bool) -> Iterator[Fact]:
    from accounting.proof.words import worst_case

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
    yield label, worst_case(proof, any_sequence=any_sequence)
    parts = [f"{count:,} pairs by {method}" for method, count in proof.covered.items() if count]
    bits = f", {proof.precision} bits" if proof.precision else ""
    yield "proof", ", ".join(parts) + bits
