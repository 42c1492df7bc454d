"""``paramsearch generate-sparse``: the cheapest certified parameter file for sparse vectors."""

from __future__ import annotations

import math
from typing import Annotated

import typer

from accounting.base.errors import InvalidParameter
from paramsearch.cli import options
from paramsearch.cli.searching.generated import generate_and_deliver


def generate_sparse(
    n: options.Users,
    eps: options.Eps,
    delta: options.Delta,
    dimension: Annotated[
        int,
        typer.Option(
            help="Number of coordinates of a vector.", parser=options.whole_number, metavar="M"
        ),
    ],
    max_value: Annotated[
        int,
        typer.Option(
            help="The one non-zero value of a vector is at most K.",
            parser=options.whole_number,
            metavar="K",
        ),
    ] = 1,
    central_fraction: options.CentralFraction = None,
    max_rmse: Annotated[
        float | None,
        typer.Option(help="Allow this error of each coordinate, instead of giving the fraction."),
    ] = None,
    max_error_ratio: options.MaxErrorRatio = None,
    objective: options.Objective = "messages",
    noise: options.Noise = "negative-binomial",
    releases: options.Releases = 1,
    same_change: options.SameChange = False,
    honest: options.Honest = 1.0,
    adjacency: options.Adjacency = "substitution",
    tries: options.Tries = 80,
    budget: options.SearchBudget = math.inf,
    seed: options.Seed = 0,
    output: options.Output = None,
    resume: options.Resume = False,
    cold: options.Cold = False,
    tier: options.Tier = "auto",
    as_json: options.FileAsJson = False,
) -> None:
    """Generate one file for vectors with at most one non-zero coordinate, such as histograms.

    The certified change is the whole one: a value leaves one coordinate, and another value appears
    in the same or in another coordinate.  Under zero-out it is one of the two, which takes half the
    error.
    """
    from paramsearch.request import Request

    if dimension < 2:
        raise InvalidParameter(
            f"dimension = {dimension} must be at least 2; paramsearch generate is for numbers"
        )
    options.check_same_change(same_change, releases)
    request = Request(
        n=n,
        eps=eps,
        delta=delta,
        max_value=max_value,
        dimension=dimension,
        central_fraction=central_fraction,
        max_rmse=max_rmse,
        max_error_ratio=max_error_ratio,
        objective=objective,
        noise=noise,
        releases=releases,
        same_change=same_change,
        honest=honest,
        adjacency=adjacency,
        seed=seed,
        cold=cold,
        tries=tries,
        budget=budget,
        tier=tier,
    )
    generate_and_deliver(request, output, resume=resume, as_json=as_json)
