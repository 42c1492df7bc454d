"""``paramsearch generate-real``: the cheapest certified parameter file for real values."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from paramsearch.cli import options
from paramsearch.cli.output import Fact, check_destination, progress
from paramsearch.cli.searching.generated import deliver, facts

if TYPE_CHECKING:
    from paramsearch.generation.real_values import RealTarget, Rounding


def generate_real(
    n: options.Users,
    eps: options.Eps,
    delta: options.Delta,
    zeta: Annotated[
        float | None,
        typer.Option(help="Allow the error of the Laplace mechanism with (1 - zeta) eps."),
    ] = None,
    max_rmse: Annotated[
        float | None, typer.Option(help="Allow this error of the sum of values in [0, 1].")
    ] = None,
    tries: options.Tries = 40,
    budget: options.SearchBudget = math.inf,
    seed: options.Seed = 0,
    output: options.Output = None,
    as_json: options.FileAsJson = False,
) -> None:
    """Generate for real values in [0, 1], with the rounding and noise that take the fewest bits."""
    from accounting.model.proof_types import LARGEST_VALUE
    from paramsearch.generation.generate import generate
    from paramsearch.generation.real_values import RealTarget
    from paramsearch.request import Request

    request = Request(
        n=n,
        eps=eps,
        delta=delta,
        max_value=1,
        objective="bits",
        seed=seed,
        tries=tries,
        budget=budget,
    )
    target = RealTarget.of(request, zeta=zeta, max_rmse=max_rmse)
    check_destination(output, as_json)
    begun = time.monotonic()
    with progress("generate-real") as say:
        choice = target.choose(say)
        rounded = replace(
            request,
            max_value=choice.max_value,
            central_fraction=choice.eps_central / eps,
            settings={"values": "real, rounded at random to integers", "mse": target.mse},
        )
        made = generate(rounded, progress=say)
        usual = target.paper_max_value() if 2 / eps**2 < target.mse else None
        other = None
        if usual is not None and LARGEST_VALUE >= usual >= target.coarsest():
            other = target.predicted(usual)
    about = [*_real_facts(target, choice, other), *facts(made, output, time.monotonic() - begun)]
    deliver(made, output, about, as_json=as_json)


def _real_facts(target: RealTarget, choice: Rounding, other: Rounding | None) -> Iterator[Fact]:
    rounding, noise = choice.error(target.problem.n)
    yield (
        "values",
        f"real in [0, 1], rounded at random to multiples of 1/{choice.max_value}: send the integer",
    )
    yield (
        "real error",
        f"RMSE at most {math.sqrt(rounding + noise):.6g} of the sum (rounding "
        f"{math.sqrt(rounding):.4g}, noise {math.sqrt(noise):.4g}); the Laplace mechanism has "
        f"{math.sqrt(2) / target.problem.eps:.4g} at eps",
    )
    if other is not None:
        yield (
            "the paper",
            f"rounds to 1/{other.max_value}: about {other.bits:.5g} bits per user here, against "
            f"{choice.bits:.5g}",
        )
