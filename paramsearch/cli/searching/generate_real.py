"""``paramsearch generate-real``: the cheapest certified parameter file for real values."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from accounting.base.enclosure import counted
from paramsearch.cli import options
from paramsearch.cli.output import Fact, check_destination, note, progress
from paramsearch.cli.searching.generated import (
    better,
    deliver,
    facts,
    file_to_resume,
    keeping,
)

if TYPE_CHECKING:
    from paramsearch.generation.generate_real import GeneratedReal


def generate_real(
    n: options.Users,
    eps: options.Eps,
    delta: options.Delta,
    zeta: Annotated[
        float | None,
        typer.Option(help="Allow the error of the Laplace mechanism with (1 - zeta) eps."),
    ] = None,
    max_rmse: Annotated[
        float | None, typer.Option(help="Allow this error of the sum, in units of the values.")
    ] = None,
    max_error_ratio: options.MaxErrorRatio = None,
    low: Annotated[float, typer.Option(help="Lower end of the range of the values.")] = 0.0,
    high: Annotated[float, typer.Option(help="Upper end of the range of the values.")] = 1.0,
    noise: options.Noise = "negative-binomial",
    releases: options.Releases = 1,
    same_change: Annotated[bool, typer.Option("--same-change", hidden=True)] = False,  # refused
    honest: options.Honest = 1.0,
    adjacency: options.Adjacency = "substitution",
    tries: options.Tries = 40,
    budget: options.SearchBudget = math.inf,
    seed: options.Seed = 0,
    output: options.Output = None,
    resume: options.Resume = False,
    cold: options.Cold = False,
    tier: options.Tier = "auto",
    as_json: options.FileAsJson = False,
) -> None:
    """Generate for real values, with the rounding and noise that take the fewest bits.

    Under zero-out, a value that is absent counts as --low.
    """
    from paramsearch.generation.generate_real import RealRequest, generate_real

    options.check_same_change(same_change, releases)
    request = RealRequest(
        n=n,
        eps=eps,
        delta=delta,
        zeta=zeta,
        max_rmse=max_rmse,
        max_error_ratio=max_error_ratio,
        low=low,
        high=high,
        noise=noise,
        releases=releases,
        same_change=same_change,
        honest=honest,
        adjacency=adjacency,
        seed=seed,
        tries=tries,
        budget=budget,
        tier=tier,
        cold=cold,
    )
    check_destination(output, as_json)
    start = file_to_resume(output, request) if resume else None
    begun = time.monotonic()
    with progress("generate-real") as say, keeping(output) as interruption:
        made = generate_real(
            request, resume=start, interruption=interruption, progress=say, announce=note
        )
        made = better(made, start, request.tier, say)
    about = facts(made, output, time.monotonic() - begun, _beside(made))
    deliver(made, output, about, as_json=as_json, resumed=resume)


def _beside(made: GeneratedReal) -> Iterator[Fact]:
    """Return facts about what was predicted, and what the paper would send."""
    change = made.file.cost.bits_per_user / made.predicted_bits - 1
    compared = "more" if change > 0 else "fewer"
    yield "prediction", f"{100 * abs(change):.1f}% {compared} bits than predicted before the search"
    if made.paper is not None:
        paper = made.paper
        yield (
            "the paper",
            f"{paper.messages:,.5g} messages and {paper.bits:,.5g} bits per user with the noise of "
            f"its theorem, for values rounded to {counted(paper.max_value, 'step')}",
        )
