"""``paramsearch generate``: the cheapest certified parameter file for numbers."""

from __future__ import annotations

import math
from typing import Annotated

import typer

from paramsearch.cli.options import (
    CentralFraction,
    Cold,
    Delta,
    Eps,
    FileAsJson,
    Honest,
    MaxValue,
    Method,
    Objective,
    Output,
    Releases,
    Resume,
    SameChange,
    SearchBudget,
    Seed,
    Tier,
    Tries,
    Users,
    check_same_change,
)
from paramsearch.cli.searching.generated import generate_and_deliver


def generate(
    n: Users,
    eps: Eps,
    delta: Delta,
    max_value: MaxValue,
    central_fraction: CentralFraction = None,
    max_rmse: Annotated[
        float | None,
        typer.Option(help="Allow this error of the sum, instead of giving the fraction."),
    ] = None,
    objective: Objective = "messages",
    method: Method = "search",
    releases: Releases = 1,
    same_change: SameChange = False,
    honest: Honest = 1.0,
    tries: Tries = 80,
    budget: SearchBudget = math.inf,
    seed: Seed = 0,
    output: Output = None,
    resume: Resume = False,
    cold: Cold = False,
    tier: Tier = "auto",
    as_json: FileAsJson = False,
) -> None:
    """Find the cheapest configuration for a problem and write it as a certified parameter file.

    Adjacency is substitution: one user's input changes from any value to any other.
    """
    from paramsearch.problem import Request

    check_same_change(same_change, releases)
    request = Request(
        n=n,
        eps=eps,
        delta=delta,
        max_value=max_value,
        central_fraction=central_fraction,
        max_rmse=max_rmse,
        objective=objective,
        method=method,
        releases=releases,
        same_change=same_change,
        honest=honest,
        seed=seed,
        cold=cold,
        tries=tries,
        budget=budget,
        tier=tier,
    )
    generate_and_deliver(request, output, resume=resume, as_json=as_json)
