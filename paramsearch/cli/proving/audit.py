"""``paramsearch audit``: is a file what it claims to be?"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from accounting.base.errors import InvalidParameter
from accounting.base.validation import whole
from paramsearch.cli import options
from paramsearch.cli.exit_codes import OF_VERDICT
from paramsearch.cli.output import check_writable, note, print_json, progress, show

if TYPE_CHECKING:
    from paramsearch.parameters.documents import Document


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
    adjacency: options.OtherAdjacency = None,
    honest: options.OtherHonest = None,
    lost: Annotated[
        int | None,
        typer.Option(
            help="Number of users with noise whose uploads are lost in every release, whatever "
            "they drew: the claim has to hold without their noise as well. That nothing holds if "
            "who is lost depends on what was drawn is a line of its own, not the verdict.",
            parser=options.whole_number,
            metavar="K",
        ),
    ] = None,
    tier: options.AuditTier = "auto",
    gap: Annotated[
        float,
        typer.Option(
            help="Relative gap between the bounds at which refining ends, even if undecided."
        ),
    ] = 1e-4,
    budget: Annotated[
        float,
        typer.Option(
            help="Seconds after which to answer with what is proved; after a violation, the search "
            "for the eps that does hold may use all of them.",
            show_default=False,
        ),
    ] = math.inf,
    require: Annotated[
        Path | None,
        typer.Option(
            help="Also require that the file is for this problem, in every field; exit code 1 if "
            "it is not. TOML or JSON with n, max_value, eps and delta, and every other field that "
            "does not have its usual value."
        ),
    ] = None,
    public_key: Annotated[
        Path | None, typer.Option(help="Check the signature with this Ed25519 key, PEM.")
    ] = None,
    signature: Annotated[
        Path | None, typer.Option(help="The signature, if it is not FILE.sig.")
    ] = None,
    report: Annotated[
        Path | None, typer.Option(help="Also write a self-contained report: FILE.html.")
    ] = None,
    verdict_only: Annotated[
        bool,
        typer.Option(
            "--verdict-only",
            help="After a violation, or if lost users leave the claim open, look neither for the "
            "eps that does hold nor for the noise that is missing; otherwise that takes what the "
            "proof leaves of --budget, or without one at most a minute, or three times as long as "
            "the proof.",
        ),
    ] = False,
    as_json: options.AsJson = False,
) -> None:
    """Check a file's claim, trusting nothing in it: certified (0), violated (1), undecided (3).

    A parameter file whose certificate is proved to be false is misstated (1), whatever the verdict
    on its claim. One that was changed or contradicts itself is rejected (2). Both with what its
    noise gives where that can be read.
    """
    from accounting.model.configuration import blaming
    from paramsearch.certification.audit import audit
    from paramsearch.cli.proving.audit_answer import Answer, unreadable, unreadable_in_words
    from paramsearch.cli.proving.requirement import read_requirement
    from paramsearch.parameters.claim import Claim
    from paramsearch.parameters.documents import RejectedFile, read_source

    options.check_same_change(same_change, releases)
    if report is not None:
        check_writable(report, "--report", (".html", ".htm"))
    if require is not None:
        asked: dict[str, object] = {"eps": eps, "delta": delta, "releases": releases}
        asked |= {"same-change": same_change or None, "adjacency": adjacency}
        _check_own_claim({**asked, "honest": honest, "lost": lost})
    required = None if require is None else read_requirement(require)
    source = read_source(file)
    document = source.document
    signed = _signature(file, document, public_key, signature)
    if not isinstance(document, RejectedFile):
        readable = document
    elif document.remade is not None:
        readable = document.remade
    else:
        if report is not None:
            note(f"no report: the noise of {file} cannot be read")
        if as_json:
            print_json(unreadable(document.reason, source.sha256))
        else:
            show(unreadable_in_words(document.reason, source.sha256))
        raise typer.Exit(OF_VERDICT["rejected"])
    with progress("auditing") as say:
        with blaming(str(file)):
            claim = Claim.of(
                readable,
                eps=eps,
                delta=delta,
                releases=releases,
                same_change=same_change,
                honest=honest,
                adjacency=adjacency,
            )
            if lost is not None:
                claim = replace(claim, lost=whole("lost", lost, least=1))
            found = audit(
                document,
                claim,
                tier=tier,
                gap=gap,
                budget=budget,
                explain=not verdict_only,
                progress=say,
            )
        if report is not None:
            from datetime import UTC, datetime

            from paramsearch.report.page import write
            from paramsearch.report.sections import AuditedFile

            say("writing the report")
            audited = AuditedFile(
                source=file.name,
                sha256=source.sha256,
                audited_on=datetime.now(UTC).date(),
                signature=signed,
            )
            write(report, found, readable, audited, progress=say)
    answer = Answer(
        found=found,
        document=readable,
        file_sha256=source.sha256,
        signed=signed,
        report=report,
        required=required,
    )
    if as_json:
        print_json(answer.for_machines())
    else:
        show(answer.for_people())
    raise typer.Exit(answer.exit_code)


def _check_own_claim(asked: Mapping[str, object]) -> None:
    """Refuse --require together with an option that replaces a number of the file's claim."""
    for name, value in asked.items():
        if value is not None:
            raise InvalidParameter(
                f"--{name} asks about another claim than the file's own, which --require is about: "
                "leave one of them out"
            )


def _signature(path: Path, document: Document, key: Path | None, given: Path | None) -> str | None:
    """Check the signature if a key is given; return what to say about it."""
    from paramsearch.parameters.documents import RejectedFile
    from paramsearch.parameters.parameter_file import ParameterFile
    from paramsearch.parameters.signature import signature_path, verify

    where = given or signature_path(path)
    if key is None:
        if given is not None:
            raise InvalidParameter(f"--signature {given} can only be checked with --public-key")
        return "present, not checked: no --public-key given" if os.path.exists(where) else None
    if isinstance(document, RejectedFile):
        return "not checked: the file is rejected"
    if not isinstance(document, ParameterFile):
        raise InvalidParameter(f"{path} is a bare configuration, which cannot be signed")
    if not os.path.exists(where):
        raise InvalidParameter(f"there is no signature {where}; give it as --signature")
    verify(document, where, key)
    return f"good, by the key {key.name}"
