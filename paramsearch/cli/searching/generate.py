"""The commands that search: generate, generate-real, generate-sparse, pareto; and rescale."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from paramsearch.cli.options import Machine, SameChange, Tier, check_same_change

if TYPE_CHECKING:
    from accounting.model import proof_types as proof

Users = Annotated[int, typer.Option(help="Users.")]
Eps = Annotated[float, typer.Option(help="The guarantee's eps.")]
Delta = Annotated[float, typer.Option(help="The guarantee's delta.")]
MaxValue = Annotated[int, typer.Option(help="Inputs are the integers 0..K.", metavar="K")]
Seed = Annotated[int, typer.Option(help="Of the search.")]
Tries = Annotated[int, typer.Option(help="Families to try; fixes the result with --seed.")]
Budget = Annotated[
    float | None,
    typer.Option(help="Seconds after which no further family is tried; proofs come on top."),
]
Output = Annotated[
    Path | None, typer.Option("--output", "-o", help="Where to write the parameter file.")
]
CentralFraction = Annotated[
    float | None,
    typer.Option(
        help="eps of the central noise, as a fraction of the largest possible: of eps, for vectors "
        "of eps / 2, and less for several releases. [0.9]"
    ),
]
MaxRmse = Annotated[
    float | None, typer.Option(help="Allow this error of the sum, instead of the fraction.")
]
Objective = Annotated[str, typer.Option(help="messages or bits.")]
Releases = Annotated[
    int, typer.Option(help="Certify T releases together, with any change of one user in each.")
]
Honest = Annotated[
    float, typer.Option(help="Certify when only this fraction of the users adds noise.")
]
Cold = Annotated[bool, typer.Option("--cold", help="Do not start from this package's own table.")]
Resume = Annotated[bool, typer.Option("--resume", help="Go on from the file that --output names.")]
TheFile = Annotated[bool, typer.Option("--json", help="The file itself on stdout.")]


def generate(
    n: Users,
    eps: Eps,
    delta: Delta,
    max_value: MaxValue,
    central_fraction: CentralFraction = None,
    max_rmse: MaxRmse = None,
    objective: Objective = "messages",
    method: Annotated[
        str,
        typer.Option(help="search; or what the paper has: dominance (its program), theorem."),
    ] = "search",
    releases: Releases = 1,
    same_change: SameChange = False,
    honest: Honest = 1.0,
    tries: Tries = 80,
    budget: Budget = None,
    seed: Seed = 0,
    output: Output = None,
    resume: Resume = False,
    cold: Cold = False,
    tier: Tier = "auto",
    json: TheFile = False,
) -> None:
    """Find the cheapest configuration for a problem and write it as a certified parameter file.

    Adjacency is substitution: one user's input changes from any value to any other.
    """
    from paramsearch.cli.searching.generated import run_generate
    from paramsearch.problem import Method, Request
    from paramsearch.problem import Objective as Objective_

    check_same_change(same_change, releases)
    request = Request(
        n=n,
        eps=eps,
        delta=delta,
        max_value=max_value,
        central_fraction=central_fraction,
        max_rmse=max_rmse,
        objective=cast("Objective_", objective),
        method=cast("Method", method),
        releases=releases,
        same_change=same_change,
        honest=honest,
        seed=seed,
        cold=cold,
        tries=tries,
        budget=math.inf if budget is None else budget,
        tier=cast("proof.Tier", tier),
    )
    raise typer.Exit(run_generate(request, output=output, resume=resume, as_json=json))


def pareto(
    n: Users,
    eps: Eps,
    delta: Delta,
    max_value: MaxValue,
    fraction: Annotated[
        list[float] | None,
        typer.Option(help="A central fraction; may be repeated. [0.05 ... 0.99]"),
    ] = None,
    tries: Annotated[int, typer.Option(help="Families to try for each point.")] = 20,
    seed: Seed = 0,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="A folder for the parameter files.")
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(help="Also draw the front: FILE.png, .svg or .pdf.")
    ] = None,
    json: Machine = False,
) -> None:
    """Messages against error: a certified file for each central fraction from 0.05 to 0.99."""
    from paramsearch.cli.searching.generated import FRACTIONS, run_pareto
    from paramsearch.problem import Request

    request = Request(n=n, eps=eps, delta=delta, max_value=max_value, tries=tries, seed=seed)
    fractions = sorted(set(fraction or FRACTIONS))
    raise typer.Exit(
        run_pareto(request, fractions=fractions, folder=output, plot=plot, as_json=json)
    )


def generate_real(
    n: Users,
    eps: Eps,
    delta: Delta,
    zeta: Annotated[
        float | None,
        typer.Option(help="Allow the error of the Laplace mechanism with (1 - zeta) eps."),
    ] = None,
    max_rmse: Annotated[
        float | None, typer.Option(help="Allow this error of the sum of values in [0, 1].")
    ] = None,
    tries: Tries = 40,
    budget: Budget = None,
    seed: Seed = 0,
    output: Output = None,
    json: TheFile = False,
) -> None:
    """For real values in [0, 1]: choose the rounding and the central noise for the fewest bits."""
    from paramsearch.cli.searching.generated import run_real
    from paramsearch.generation.real_values import RealTarget
    from paramsearch.problem import Request

    request = Request(
        n=n,
        eps=eps,
        delta=delta,
        max_value=1,
        objective="bits",
        seed=seed,
        tries=tries,
        budget=math.inf if budget is None else budget,
    )
    problem = RealTarget.of(request, zeta=zeta, max_rmse=max_rmse)
    raise typer.Exit(run_real(problem, request, output=output, as_json=json))


def compare(
    n: Users,
    eps: Eps,
    delta: Delta,
    max_value: MaxValue,
    central_fraction: Annotated[
        float, typer.Option(help="Of the correlated noise: its central eps over eps.")
    ] = 0.9,
    tries: Annotated[
        int, typer.Option(help="Families to try where the package has no file for the problem.")
    ] = 20,
    plot: Annotated[
        Path | None, typer.Option(help="Also draw bits against error: FILE.png, .svg or .pdf.")
    ] = None,
    json: Machine = False,
) -> None:
    """Error, messages and bits per user beside the central mechanisms, IKOS, RAPPOR and others."""
    from accounting.model.problem import Problem
    from paramsearch.cli.searching.compare import run_compare

    raise typer.Exit(
        run_compare(
            Problem(n=n, eps=eps, delta=delta, max_value=max_value),
            fraction=central_fraction,
            tries=tries,
            plot=plot,
            as_json=json,
        )
    )


def generate_sparse(
    n: Users,
    eps: Eps,
    delta: Delta,
    dimension: Annotated[int, typer.Option(help="Coordinates of a vector.", metavar="M")],
    max_value: Annotated[
        int, typer.Option(help="The one value of a vector is in 0..K.", metavar="K")
    ] = 1,
    central_fraction: CentralFraction = None,
    max_rmse: Annotated[
        float | None,
        typer.Option(help="Allow this error of each coordinate, instead of the fraction."),
    ] = None,
    objective: Objective = "messages",
    releases: Releases = 1,
    same_change: SameChange = False,
    honest: Honest = 1.0,
    tries: Tries = 80,
    budget: Budget = None,
    seed: Seed = 0,
    output: Output = None,
    resume: Resume = False,
    cold: Cold = False,
    tier: Tier = "auto",
    json: TheFile = False,
) -> None:
    """For vectors with at most one non-zero coordinate, such as histograms: one file for all.

    What is certified is the change itself: a value leaves one coordinate and another comes, in the
    same or in another one.
    """
    from accounting.base.errors import InvalidParameter
    from paramsearch.cli.searching.generated import run_generate
    from paramsearch.problem import Objective as Objective_
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
        central_fraction=central_fraction,
        max_rmse=max_rmse,
        objective=cast("Objective_", objective),
        releases=releases,
        same_change=same_change,
        honest=honest,
        seed=seed,
        cold=cold,
        tries=tries,
        budget=math.inf if budget is None else budget,
        tier=cast("proof.Tier", tier),
        dimension=dimension,
    )
    raise typer.Exit(run_generate(request, output=output, resume=resume, as_json=json))


def rescale(
    file: Annotated[Path, typer.Argument(help="A parameter file.")],
    n: Annotated[int, typer.Option(help="The new number of users.")],
    output: Output = None,
    tier: Tier = "auto",
    json: TheFile = False,
) -> None:
    """The same noise for another number of users: no search, certified again."""
    from paramsearch.cli.proving.audit import run_rescale

    raise typer.Exit(
        run_rescale(file, n=n, output=output, tier=cast("proof.Tier", tier), as_json=json)
    )
