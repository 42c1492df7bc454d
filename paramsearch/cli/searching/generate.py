"""``paramsearch generate``: the cheapest certified parameter file for numbers."""

from __future__ import annotations

import math
from typing import Annotated

import typer

from paramsearch.cli import options
from paramsearch.cli.searching.generated import generate_and_deliver


def generate(
    n: options.Users,
    eps: options.Eps,
    delta: options.Delta,
    max_value: options.MaxValue,
    central_fraction: options.CentralFraction = None,
    max_rmse: Annotated[
        float | None,
        typer.Option(help="Allow this error of the sum, instead of giving the fraction."),
    ] = None,
    max_error_ratio: options.MaxErrorRatio = None,
    objective: options.Objective = "messages",
    noise: options.Noise = "negative-binomial",
    method: options.Method = "search",
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
    """Find the cheapest configuration for a problem and write it as a certified parameter file."""
    from paramsearch.request import Request

    options.check_same_change(same_change, releases)
    request = Request(
        n=n,
        eps=eps,
        delta=delta,
        max_value=max_value,
        central_fraction=central_fraction,
        max_rmse=max_rmse,
        max_error_ratio=max_error_ratio,
        objective=objective,
        noise=noise,
        method=method,
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
