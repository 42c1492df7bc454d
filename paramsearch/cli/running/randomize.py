"""The commands that run the protocol: randomize, analyze, simulate."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from paramsearch.cli.options import Machine

if TYPE_CHECKING:
    from paramsearch.deploy import simulate as simulation

TheParameters = Annotated[Path, typer.Argument(help="A certified parameter file.")]
Low = Annotated[float | None, typer.Option(help="Real values: the smallest.")]
High = Annotated[float | None, typer.Option(help="Real values: the largest.")]
AllowFew = Annotated[
    bool,
    typer.Option(
        "--allow-few",
        help="Go on with fewer users or messages than the certificate needs: their values are "
        "not protected as the file says.",
    ),
]


def randomize(
    file: TheParameters,
    value: Annotated[
        list[str],
        typer.Option(
            help="One user's value; for several users, several times.  Better -, which reads "
            "standard input, one user on each line: other users of the machine see the command "
            "line."
        ),
    ],
    coordinate: Annotated[
        list[int] | None,
        typer.Option(
            help="Vectors: where the value is, for each --value; with --value -, the line has it "
            "before the value."
        ),
    ] = None,
    low: Low = None,
    high: High = None,
    clip: Annotated[
        bool, typer.Option("--clip", help="Real values: move those outside to the end.")
    ] = False,
    json: Machine = False,
) -> None:
    """Turn a user's value into its messages: one symbol on each line.

    The noise comes from the operating system.  Send the symbols to a shuffler, which has to hide
    whose they are, how many one user sends, and when.
    """
    from paramsearch.cli.running.analyze import run_randomize

    raise typer.Exit(
        run_randomize(
            file,
            values=value,
            coordinates=coordinate or [],
            low=low,
            high=high,
            clip=clip,
            as_json=json,
        )
    )


def analyze(
    file: TheParameters,
    messages: Annotated[
        list[Path] | None,
        typer.Argument(help="Text, CSV, Parquet or Arrow files of symbols; or standard input."),
    ] = None,
    users: Annotated[
        int | None, typer.Option(help="How many took part, if not all n of the file.")
    ] = None,
    low: Low = None,
    high: High = None,
    confidence: Annotated[float, typer.Option(help="Of the interval.")] = 0.95,
    strict: Annotated[
        bool, typer.Option("--strict", help="A message that cannot be one is an error.")
    ] = False,
    allow_few: AllowFew = False,
    json: Machine = False,
) -> None:
    """Estimate the sum from the messages of all users, in one pass and constant memory.

    Fewer messages than the users of the file send is an error, since their noise protects the
    values; so is a file that is mostly something else than messages.
    """
    from paramsearch.cli.running.analyze import run_analyze

    raise typer.Exit(
        run_analyze(
            file,
            messages or [Path("-")],
            users=users,
            low=low,
            high=high,
            confidence=confidence,
            strict=strict,
            allow_few=allow_few,
            as_json=json,
        )
    )


def simulate(
    file: TheParameters,
    users: Annotated[int | None, typer.Option(help="By default all n of the file.")] = None,
    values: Annotated[str, typer.Option(help="uniform, zero or largest.")] = "uniform",
    runs: Annotated[int, typer.Option(help="How often.")] = 1,
    path: Annotated[
        str,
        typer.Option(
            help="users: every user's randomizer, up to 1e7; aggregate: the noise of all of them "
            "at once, the same law, up to 1e10."
        ),
    ] = "aggregate",
    honest: Annotated[float, typer.Option(help="The fraction of the users who add noise.")] = 1.0,
    seed: Annotated[int, typer.Option(help="Of the noise, which so protects nobody.")] = 0,
    allow_few: AllowFew = False,
    json: Machine = False,
) -> None:
    """Run the protocol and compare its messages and its error with what the file says."""
    from paramsearch.cli.running.analyze import run_simulate

    raise typer.Exit(
        run_simulate(
            file,
            users=users,
            values=cast("simulation.Values", values),
            runs=runs,
            way=cast("simulation.Way", path),
            honest=honest,
            seed=seed,
            allow_few=allow_few,
            as_json=json,
        )
    )
