"""``paramsearch simulate``: the protocol, measured beside what the file says."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from accounting.base.enclosure import counted
from paramsearch.cli import options
from paramsearch.cli.output import Fact, print_json, progress, show
from paramsearch.cli.running.certificate import warn_uncertified

if TYPE_CHECKING:
    from paramsearch.deploy.simulate import MeasuredMean, SimulationResult


def simulate(
    file: options.CertifiedFile,
    users: Annotated[
        int | None,
        typer.Option(
            help="Number of users, by default all n of the file.",
            parser=options.whole_number,
            metavar="N",
        ),
    ] = None,
    values: options.SimulatedValues = "uniform",
    runs: Annotated[int, typer.Option(help="Number of runs.")] = 1,
    path: options.SimulationPath = "aggregate",
    honest: options.Honest = 1.0,
    seed: Annotated[
        int, typer.Option(help="Seed of the noise, which therefore protects nobody.")
    ] = 0,
    allow_few: options.AllowFew = False,
    as_json: options.AsJson = False,
) -> None:
    """Run the protocol and compare its messages and its error with what the file says."""
    from paramsearch.certification.stated_problem import StatedProblem
    from paramsearch.deploy.simulate import Simulation, simulate
    from paramsearch.parameters.parameter_file import load

    parameters = load(file)
    plan = Simulation(
        file=parameters,
        users=parameters.problem.n if users is None else users,
        values=values,
        runs=runs,
        seed=seed,
        path=path,
        honest=honest,
        allow_few=allow_few,
    )
    certified = warn_uncertified(parameters)
    with progress("simulating") as say:
        outcome = simulate(plan, say)
    if as_json:
        problem = StatedProblem.of(parameters).as_json()
        print_json({"problem": problem, **_answer(outcome), "certified": certified})
    else:
        show(_facts(outcome))


def _answer(outcome: SimulationResult) -> dict[str, Any]:
    from paramsearch.deploy.participation import too_few_users

    def numbers(found: MeasuredMean) -> dict[str, float]:
        return {
            "measured": found.measured,
            "expected": found.expected,
            "standard_error": found.standard_error,
        }

    plan = outcome.simulation
    return {
        "users": plan.users,
        "runs": plan.runs,
        "seed": plan.seed,
        "path": plan.path,
        "values": plan.values,
        "honest": plan.honest,
        "implausible": too_few_users(plan.file, plan.noisy_users),
        "messages": numbers(outcome.messages),
        "bits_per_user": outcome.bits_per_user,
        "mse": numbers(outcome.mse),
        "errors": [run.errors.tolist() for run in outcome.runs],
    }


def _facts(outcome: SimulationResult) -> Iterator[Fact]:
    from paramsearch.deploy.participation import too_few_users
    from paramsearch.parameters.real_range import real_error

    plan = outcome.simulation

    def compared(found: MeasuredMean, scale: float) -> str:
        away = f"{found.deviation:+.2g}"
        errors = "standard error" if away in ("+1", "-1") else "standard errors"
        return (
            f"{found.measured / scale:.8g}, expected {found.expected / scale:.8g} ({away} {errors})"
        )

    few = too_few_users(plan.file, plan.noisy_users)
    if few is not None:
        yield "warning", few, "yellow"
    what = f"{counted(plan.users, 'user')}, {counted(plan.runs, 'run')}, path {plan.path}"
    yield "simulated", what
    yield "messages", f"per user {compared(outcome.messages, plan.users)}"
    if plan.values != "largest":
        promised = plan.file.cost.messages_per_user
        yield (
            "zeros",
            f"the file's {promised:.8g} messages per user count one for every value, and a value "
            "of 0 sends none",
        )
    yield "bits", f"per user {outcome.bits_per_user:.8g}"
    mse = outcome.mse
    yield "error", f"RMSE {math.sqrt(mse.measured):.6g}, expected {math.sqrt(mse.expected):.6g}"
    yield "MSE", compared(mse, 1.0)
    if (error := real_error(plan.file)) is not None:
        step = error.width / plan.file.problem.max_value
        yield "units", f"steps of {step:.4g} of the real values, whose rounding is not in the error"
    yield "note", "the noise has a known seed: these messages protect nobody"
