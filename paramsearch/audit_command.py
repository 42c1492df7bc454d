"""``paramsearch audit`` and ``paramsearch certify``, for people and for machines."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from accounting import AccountingError, InvalidParameter
from accounting.configuration import Proposal
from accounting.notary.notary import Report
from accounting.proof import Proof, Tier
from paramsearch import signature
from paramsearch.auditor import EXIT_CODE, Audit, audit, read
from paramsearch.certification import certify, parameters
from paramsearch.files import check_writable, write_atomically
from paramsearch.parameter_file import ParameterFile, dumps, save

if TYPE_CHECKING:
    from rich.console import Console

_COLOUR = {"certified": "bold green", "violated": "bold red", "undecided": "bold yellow"}


def run_audit(
    path: Path,
    *,
    eps: float | None,
    delta: float | None,
    releases: int | None,
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
    from rich.console import Console

    if report is not None:
        check_writable(report, "--report", (".html", ".htm"))
    document = read(path)
    signed = _signature(path, document, public_key, signature_file)
    messages = Console(stderr=True)
    with _progress(messages, "auditing") as say:
        found = audit(
            document,
            eps=eps,
            delta=delta,
            releases=releases,
            honest=honest,
            tier=tier,
            gap=gap,
            budget=math.inf if budget is None else budget,
            report=say,
        )
        if report is not None:
            from paramsearch import report as reports

            say("writing the report")
            reports.write(report, found, document, source=path.name, signature=signed, report=say)
    if as_json:
        print(json.dumps(_machine(found, signed), allow_nan=False))
    else:
        _person(Console(), found, document, signed, report)
    return EXIT_CODE[found.verdict]


def _signature(
    path: Path, document: ParameterFile | Proposal, key: Path | None, given: Path | None
) -> str | None:
    """Check the signature if a key is given; what to say of it."""
    where = given or signature.signature_path(path)
    if key is None:
        if given is not None:
            raise InvalidParameter(f"--signature {given} can only be checked with --public-key")
        return "present, not checked: no --public-key given" if where.exists() else None
    if not isinstance(document, ParameterFile):
        raise InvalidParameter(f"{path} is a bare configuration, which cannot be signed")
    signature.verify(document, where, key)
    return f"good, by the key {key.name}"


@contextmanager
def _progress(messages: Console, what: str) -> Iterator[Report]:
    """A spinner on a terminal, silence elsewhere."""
    if not messages.is_terminal:
        yield lambda _: None
        return
    with messages.status(what) as status:
        yield lambda text: status.update(f"{what}: {text}")


def _machine(found: Audit, signed: str | None) -> dict[str, Any]:
    proof = found.proof
    out: dict[str, Any] = {
        "verdict": found.verdict,
        "reason": found.reason,
        "eps": found.eps,
        "delta": found.delta,
        "delta_lower": proof.enclosure.lower if proof else 0.0,
        "delta_upper": proof.enclosure.upper if proof else 1.0,
        "worst_pair": list(proof.worst_pair) if proof else None,
        "adjacency": "substitution",
        "max_value": found.mechanism.max_value,
        "releases": found.releases,
        "honest": found.honest,
        "proof": dict(proof.covered) if proof else {},
        "precision": proof.precision if proof else None,
        "sampler_deviation": proof.deviation if proof else None,
        "upper_bound_only": proof is not None and not proof.exact,
        "signature": signed,
    }
    if found.verdict == "violated":
        satisfied = found.satisfied_eps
        out["satisfied_eps"] = [satisfied.lower, satisfied.upper] if satisfied else None
    return out


def _person(
    console: Console,
    found: Audit,
    document: ParameterFile | Proposal,
    signed: str | None,
    report: Path | None,
) -> None:
    from rich.table import Table
    from rich.text import Text

    table = Table(show_header=False, box=None, pad_edge=False)
    table.add_column(style="bold")
    table.add_column()
    table.add_row("verdict", Text(found.verdict, style=_COLOUR[found.verdict]))
    claim = f"({found.eps:.10g}, {found.delta:.6g}) for one changed input"
    if found.releases > 1:
        claim += f", {found.releases} releases"
    if found.honest < 1:
        claim += f", {found.honest:.6g} of the users adding noise"
    table.add_row("claim", claim)
    if found.proof is not None:
        _add_proof(table, found, found.proof)
    if found.verdict != "certified":
        table.add_row("because", found.reason)
    if found.satisfied_eps is not None:
        table.add_row(
            "instead", f"eps = {_up(found.satisfied_eps.upper)} holds at delta = {found.delta:.6g}"
        )
    if isinstance(document, ParameterFile):
        cost, error = document.cost, document.error
        table.add_row(
            "cost",
            f"{cost.noise_messages:,.1f} noise messages, {cost.messages_per_user:.6g} messages and "
            f"{cost.bits_per_user:.6g} bits per user (n = {document.problem.n:,})",
        )
        table.add_row(
            "error",
            f"RMSE {error.rmse:.6g}, {error.rmse_over_central:.4g} times the central one at eps",
        )
        table.add_row("sha256", document.sha256)
    if signed is not None:
        table.add_row("signature", signed)
    if report is not None:
        table.add_row("report", str(report))
    console.print(table)


def _add_proof(table: Any, found: Audit, proof: Proof) -> None:
    lower, upper = proof.enclosure.lower, proof.enclosure.upper
    if not proof.exact:
        table.add_row("delta", f"at most {upper:.6g} (more atoms than values: upper bound only)")
    elif lower == upper:
        table.add_row("delta", f"exactly {upper:.6g}")
    else:
        table.add_row("delta", f"between {lower:.6g} and {upper:.6g} at eps = {found.eps:.10g}")
    j, k = proof.worst_pair
    table.add_row("worst pair", f"input {j} becomes {k}")
    parts = [f"{count:,} pairs by {method}" for method, count in proof.covered.items()]
    table.add_row(
        "proof", ", ".join(parts) + (f", {proof.precision} bits" if proof.precision else "")
    )


def _up(value: float) -> str:
    """Six digits that are not less than the value."""
    text = f"{value:.6g}"
    return text if float(text) >= value else f"{value * (1 + 1e-6):.6g}"


def run_certify(
    path: Path,
    *,
    output: Path | None,
    n: int | None,
    eps: float | None,
    delta: float | None,
    releases: int | None,
    honest: float | None,
    tier: Tier,
    gap: float,
    as_json: bool,
) -> int:
    """Certify a configuration, or a parameter file again, and write the parameter file."""
    from rich.console import Console

    if output is not None:
        check_writable(output, "--output")
    elif not as_json:
        raise InvalidParameter("where to? give --output FILE, or --json for standard output")
    document = read(path)
    try:
        if isinstance(document, ParameterFile):
            given = {"n": n, "eps": eps, "delta": delta, "releases": releases, "honest": honest}
            for name, value in given.items():
                if value is not None:
                    raise InvalidParameter(f"--{name} cannot change what a parameter file claims")
            draft = document
        else:
            draft = parameters(
                document,
                n=n,
                eps=eps,
                delta=delta,
                releases=1 if releases is None else releases,
                honest=1.0 if honest is None else honest,
            )
        with _progress(Console(stderr=True), "certifying") as say:
            certified = certify(draft, tier=tier, gap=gap, report=say)
    except AccountingError as error:
        raise type(error)(f"{path}: {error}") from error
    if output is not None:
        save(certified, output)
    if as_json:
        print(dumps(certified), end="")
        return 0
    certificate = certified.certificate
    assert certificate is not None
    problem, cost = certified.problem, certified.cost
    Console().print(
        f"[bold green]certified[/] ({problem.eps:.10g}, {problem.delta:.6g}): delta is at most "
        f"{certificate.delta_upper:.6g}; {cost.noise_messages:,.1f} noise messages, "
        f"{cost.messages_per_user:.6g} messages per user; written to {output}",
        highlight=False,
        soft_wrap=True,
    )
    return 0


def run_sign(path: Path, *, key: Path, create: bool, output: Path | None, as_json: bool) -> int:
    """Sign a parameter file."""
    document = read(path)
    if not isinstance(document, ParameterFile):
        raise InvalidParameter(f"{path} is a bare configuration; certify it first")
    target = output or signature.signature_path(path)
    check_writable(target, "--output")
    made = {"public_key": str(signature.create_key(key))} if create else {}
    write_atomically(target, signature.sign(document, key))
    made["signature"] = str(target)
    if as_json:
        print(json.dumps(made))
    else:
        for what, where in made.items():
            print(f"{what.replace('_', ' '):12}{where}")
    return 0
