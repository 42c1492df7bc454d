"""``paramsearch generate-sparse``: the cheapest certified parameter file for sparse vectors."""

from __future__ import annotations

import math
from typing import Annotated

import typer

from accounting.base.errors import InvalidParameter
from paramsearch.cli.options import (
    CentralFraction,
    Cold,
    Delta,
    Eps,
    FileAsJson,
    Honest,
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


def generate_sparse(
    n: Users,
    eps: Eps,
    delta: Delta,
    dimension: Annotated[int, typer.Option(help="Number of coordinates of a vector.", metavar="M")],
    max_value: Annotated[
        int, typer.Option(help="The one non-zero value of a vector is at most K.", metavar="K")
    ] = 1,
    central_fraction: CentralFraction = None,
    max_rmse: Annotated[
        float | None,
        typer.Option(help="Allow this error of each coordinate, instead of giving the fraction."),
    ] = None,
    objective: Objective = "messages",
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
    """Generate one file for vectors with at most one non-zero coordinate, such as histograms.

    The certified change is the whole one: a value leaves one coordinate, and another value appears
    in the same or in another coordinate.
    """
    from paramsearch.problem import Request

    if dimension < 2:
        raise InvalidParameter(
            f"dimension = {dimension} must be at least 2; paramsearch generate is for numbers"
        )
    check_same_change(same_change, releases)
    request = Request(
        n=n,
        eps=eps,
        delta=delta,
        max_value=max_value,
        dimension=dimension,
        central_fraction=central_fraction,
        max_rmse=max_rmse,
        objective=objective,
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
