"""``paramsearch generate-real``: the cheapest certified parameter file for real values."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from accounting.base.errors import InvalidParameter, TooLarge
from paramsearch.cli import options
from paramsearch.cli.output import Fact, check_destination, progress
from paramsearch.cli.searching.generated import announce, deliver, facts, nothing_written

if TYPE_CHECKING:
    from paramsearch.generation.real_values import PaperRounding, RealTarget, Rounding

_CHOICE_SHARE, _LEAST_SHARE = 0.25, 0.25
"""Share of a budget for choosing the rounding, and the least that is left for everything else."""


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
    low: Annotated[float, typer.Option(help="Lower end of the range of the values.")] = 0.0,
    high: Annotated[float, typer.Option(help="Upper end of the range of the values.")] = 1.0,
    tries: options.Tries = 40,
    budget: options.SearchBudget = math.inf,
    seed: options.Seed = 0,
    output: options.Output = None,
    as_json: options.FileAsJson = False,
) -> None:
    """Generate for real values, with the rounding and noise that take the fewest bits."""
    from accounting.model.proof_types import LARGEST_VALUE
    from paramsearch.generation.generate import generate
    from paramsearch.generation.real_values import RealTarget
    from paramsearch.request import Request
    from paramsearch.search.budget import Budget

    request = Request(
        n=n,
        eps=eps,
        delta=delta,
        max_value=LARGEST_VALUE,  # until the rounding is chosen
        objective="bits",
        seed=seed,
        tries=tries,
        budget=budget,
    )
    target = RealTarget.of(request, zeta=zeta, max_rmse=max_rmse, low=low, high=high)
    check_destination(output, as_json)
    begun = time.monotonic()
    with progress("generate-real") as say, nothing_written():
        choice = target.choose(say, Budget(seconds=_CHOICE_SHARE * budget))
        rounded = replace(
            request,
            max_value=choice.max_value,
            central_fraction=choice.eps_central / eps,
            budget=max(_LEAST_SHARE * budget, budget - (time.monotonic() - begun)),
            settings={**target.settings, "predicted_bits": round(choice.bits, 4)},
        )
        announce(rounded)
        made = generate(rounded, draft=choice.draft, progress=say)
    paper = None
    with suppress(InvalidParameter, TooLarge):  # it has no answer for every error
        paper = target.of_the_paper()
    bits = made.file.cost.bits_per_user
    about = [
        *_real_facts(target, choice, paper, bits),
        *facts(made, output, time.monotonic() - begun),
    ]
    deliver(made, output, about, as_json=as_json)


def _real_facts(
    target: RealTarget, choice: Rounding, paper: PaperRounding | None, bits: float
) -> Iterator[Fact]:
    width = target.high - target.low
    rounding, noise = (width * math.sqrt(part) for part in choice.error(target.problem.n))
    yield (
        "values",
        f"real in [{target.low:g}, {target.high:g}], rounded at random to {choice.max_value} steps "
        f"of {width / choice.max_value:.4g}; the file has the range for randomize and analyze",
    )
    yield (
        "real error",
        f"RMSE at most {math.hypot(rounding, noise):.6g} of the sum (rounding {rounding:.4g}, "
        f"noise {noise:.4g}); the Laplace mechanism has "
        f"{width * math.sqrt(2) / target.problem.eps:.4g} at eps",
    )
    change = f"{100 * (bits / choice.bits - 1):+.1f}%"
    yield "prediction", f"{choice.bits:.5g} bits per user before the search; the file has {change}"
    if paper is not None:
        yield (
            "the paper",
            f"rounds to {paper.max_value:,} steps; with the noise of its theorem "
            f"{paper.messages:,.5g} messages and {paper.bits:,.5g} bits per user, against "
            f"{bits:.5g}",
        )
