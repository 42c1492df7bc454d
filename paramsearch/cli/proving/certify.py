"""``paramsearch certify``: from a configuration to a certified parameter file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from accounting.base.enclosure import at_most
from accounting.base.errors import InvalidParameter, required
from paramsearch.cli import options
from paramsearch.cli.output import check_destination, note, progress, write

if TYPE_CHECKING:
    from paramsearch.parameters.parameter_file import ParameterFile


def certify(
    config: Annotated[Path, typer.Argument(help="A configuration or parameter file, JSON.")],
    output: options.Output = None,
    n: Annotated[
        int | None,
        typer.Option(
            help="Number of users, if not as in the configuration.",
            parser=options.whole_number,
            metavar="N",
        ),
    ] = None,
    eps: Annotated[float | None, typer.Option(help="eps, if not as in the configuration.")] = None,
    delta: Annotated[
        float | None, typer.Option(help="delta, if not as in the configuration.")
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
    honest: Annotated[
        float | None,
        typer.Option(
            help="Fraction of the users assumed to add noise; each adds more. Who is missing must "
            "not depend on the noise that was drawn."
        ),
    ] = None,
    tier: options.Tier = "auto",
    gap: options.Gap = 1e-4,
    as_json: options.FileAsJson = False,
) -> None:
    """Turn a configuration into a certified parameter file: exact rationals and a proof.

    Noise is rounded up, never down.  A claim that does not hold is refused and nothing is written.
    """
    from accounting.model.configuration import blaming
    from paramsearch.certification.certify import certify
    from paramsearch.parameters.assembly import uncertified
    from paramsearch.parameters.documents import read
    from paramsearch.parameters.parameter_file import ParameterFile

    options.check_same_change(same_change, 1 if releases is None else releases)
    check_destination(output, as_json)
    document = read(config)
    with blaming(str(config)):
        if isinstance(document, ParameterFile):
            given: dict[str, object] = {
                "n": n,
                "eps": eps,
                "delta": delta,
                "releases": releases,
                "honest": honest,
            }
            given |= {"adjacency": adjacency, "same-change": same_change or None}
            for name, value in given.items():
                if value is not None:
                    raise InvalidParameter(f"--{name} cannot change what a parameter file claims")
            draft = document
        else:
            draft = uncertified(
                replace(
                    document,
                    n=document.n if n is None else n,
                    eps=document.eps if eps is None else eps,
                    delta=document.delta if delta is None else delta,
                    adjacency=document.adjacency if adjacency is None else adjacency,
                ),
                releases=1 if releases is None else releases,
                same_change=same_change,
                honest=1.0 if honest is None else honest,
            )
        with progress("certifying") as say:
            certified = certify(draft, tier=tier, gap=gap, progress=say)
    deliver(certified, output, as_json)


def deliver(certified: ParameterFile, output: Path | None, as_json: bool) -> None:
    """Write the file, and print it or a line about it."""
    from paramsearch.parameters.expected_cost import ExpectedCost
    from paramsearch.parameters.parameter_file import dumps, save
    from paramsearch.parameters.words import file_claim_in_words

    if output is not None:
        save(certified, output)
    if as_json:
        write(dumps(certified))
        warn_of(certified)
        return
    certificate = required(certified.certificate, "the certificate of a certified file")
    cost = certified.cost
    write(
        f"certified {file_claim_in_words(certified)}: "
        f"delta is at most {at_most(certificate.delta_upper)}; "
        f"{cost.noise_messages:,.1f} noise messages, {cost.messages_per_user:.6g} messages per "
        f"user; {ExpectedCost.of_file(certified).events_in_words()}; written to {output}\n"
    )
    write("".join(f"{text}\n" for text in _remarks(certified)))


def warn_of(file: ParameterFile) -> None:
    """Print what is to be said about a file on stderr, where stdout has the file alone."""
    for text in _remarks(file):
        note(text)


def _remarks(file: ParameterFile) -> Iterator[str]:
    from paramsearch.certification.remarks import cost_remark, warnings_about
    from paramsearch.parameters.expected_cost import ExpectedCost

    yield from (f"warning: {text}" for text in warnings_about(file))
    if (remark := cost_remark(ExpectedCost.of_file(file))) is not None:
        yield f"remark: {remark}"
