"""``paramsearch pareto``: the front of messages against error."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from accounting.base.enclosure import exactly
from accounting.base.errors import required
from accounting.model.change import SUBSTITUTION
from paramsearch.cli import options
from paramsearch.cli.exit_codes import ExitCode
from paramsearch.cli.interrupts import acknowledged
from paramsearch.cli.output import check_folder, check_writable, print_json, progress, write
from paramsearch.cli.plots import PLOT_SUFFIXES, label_log_axes, save_figure

if TYPE_CHECKING:
    from paramsearch.parameters.parameter_file import ParameterFile
    from paramsearch.request import Request

_FRACTIONS = (0.05, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 0.95, 0.99)
"""Central fractions that are tried by default."""


def pareto(
    n: options.Users,
    eps: options.Eps,
    delta: options.Delta,
    max_value: options.MaxValue,
    fraction: Annotated[
        list[float] | None,
        typer.Option(
            help="A point with this central fraction; may be repeated. [0.05 ... 0.99, if there is "
            "no point with an error either]",
            metavar="FRACTION",
        ),
    ] = None,
    max_error_ratio: Annotated[
        list[float] | None,
        typer.Option(
            help="A point with at most this error, in units of that of the central mechanism, such "
            "as 1.5; may be repeated, and may be combined with --fraction.",
            metavar="RATIO",
        ),
    ] = None,
    noise: options.Noise = "negative-binomial",
    adjacency: options.Adjacency = "substitution",
    tries: Annotated[int, typer.Option(help="Number of families to try for each point.")] = 20,
    seed: options.Seed = 0,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="A folder for the parameter files.")
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(help="Also draw the front: FILE.png, .svg or .pdf.")
    ] = None,
    as_json: options.AsJson = False,
) -> None:
    """Trade messages for error: a certified file for each central fraction from 0.05 to 0.99.

    Or for the given fractions and errors.
    """
    from accounting.model.costs import largest_central_of
    from paramsearch.certification.remarks import warnings_about
    from paramsearch.certification.stated_problem import StatedProblem
    from paramsearch.generation.generate import generate
    from paramsearch.generation.interruption import Interruption
    from paramsearch.parameters.parameter_file import save
    from paramsearch.parameters.words import changes_in_words
    from paramsearch.request import Request

    request = Request(
        n=n,
        eps=eps,
        delta=delta,
        max_value=max_value,
        noise=noise,
        adjacency=adjacency,
        tries=tries,
        seed=seed,
    )
    problem = StatedProblem.of_problem(request)
    shares = fraction or (() if max_error_ratio else _FRACTIONS)
    points = [replace(request, central_fraction=share) for share in sorted(set(shares))]
    ratios = sorted(set(max_error_ratio or ()), reverse=True)
    points += [replace(request, max_error_ratio=ratio) for ratio in ratios]
    # by falling error, and bad points are refused before any work is done
    points.sort(key=lambda point: point.least_central(largest_central_of(point)))
    if plot is not None:
        check_writable(plot, "--plot", PLOT_SUFFIXES)
    if output is not None:
        check_folder(output)
    if output is not None:
        output.mkdir(parents=True, exist_ok=True)
    files: list[ParameterFile] = []
    interrupted = False
    for i, point in enumerate(points):
        try:
            interruption = Interruption()
            with (
                progress(f"point {i + 1} of {len(points)} ({_in_words(point)})") as say,
                acknowledged(interruption.consequence),
            ):
                made = generate(
                    point,
                    resume=files[-1] if files else None,  # a good start
                    interruption=interruption,
                    progress=say,
                )
        except KeyboardInterrupt:
            interrupted = True
            break
        files.append(made.file)
        if output is not None:
            save(made.file, output / _name(point))
        if made.interrupted:
            interrupted = True
            break
    if not files:
        raise typer.Exit(ExitCode.INTERRUPTED)
    rows = [_row(point, file) for point, file in zip(points, files, strict=False)]
    warnings = list(dict.fromkeys(text for file in files for text in warnings_about(file)))
    if plot is not None:
        _draw(plot, files)
    if as_json:
        print_json(
            {
                "problem": problem.as_json(),
                "warnings": warnings,
                "adjacency": adjacency,
                "noise": noise,
                "points": rows,
                "interrupted": interrupted,
            }
        )
    else:
        if request.adjacency != SUBSTITUTION:
            words = changes_in_words(1, same_change=False, adjacency=request.adjacency)
            write(f"certified for {words}\n")
        if request.noise == "burst":
            write("noise in bursts\n")
        for warning in warnings:
            write(f"warning: {warning}\n")
        write("fraction      RMSE  over central  noise messages  messages per user\n")
        for row in rows:
            write(
                f"{row['central_fraction']:8.3g}  {row['rmse']:8.5g}  "
                f"{row['rmse_over_central']:12.4g}  {row['noise_messages']:14,.1f}  "
                f"{row['messages_per_user']:17.8g}\n"
            )
    if interrupted:
        raise typer.Exit(ExitCode.INTERRUPTED)


def _in_words(point: Request) -> str:
    if point.max_error_ratio is not None:
        return f"error ratio {point.max_error_ratio:g}"
    return f"fraction {point.central_fraction:g}"


def _name(point: Request) -> str:
    kind, number = "central", point.central_fraction
    if number is None:
        kind, number = "error", point.max_error_ratio
    number = required(number, "the error ratio of a point")
    also = "" if point.adjacency == SUBSTITUTION else f"-{point.adjacency}"
    also += "-burst" if point.noise == "burst" else ""
    return f"{point.max_value}-{point.eps:g}-{point.delta:g}-{kind}-{exactly(number)}{also}.json"


def _row(point: Request, file: ParameterFile) -> dict[str, float | None]:
    fraction = point.central_fraction
    return {
        "central_fraction": file.central.eps_central / point.eps if fraction is None else fraction,
        "max_error_ratio": point.max_error_ratio,
        "rmse": file.error.rmse,
        "rmse_over_central": file.error.rmse_over_central,
        "noise_messages": file.cost.noise_messages,
        "messages_per_user": file.cost.messages_per_user,
        "bits_per_user": file.cost.bits_per_user,
    }


def _draw(path: Path, files: Sequence[ParameterFile]) -> None:
    """Draw noise messages against the RMSE of the sum, both on logarithmic axes."""
    from matplotlib.figure import Figure

    problem = files[0].problem
    figure = Figure(figsize=(6.4, 4.4), layout="constrained")
    axes = figure.add_subplot()
    axes.loglog(
        [file.error.rmse for file in files],
        [file.cost.noise_messages for file in files],
        marker="o",
        color="#0072b2",
    )
    for file in files:
        share = file.central.eps_central / problem.eps
        axes.annotate(
            f"{share:.2f}",
            (file.error.rmse, file.cost.noise_messages),
            textcoords="offset points",
            xytext=(6, 4),
            fontsize=8,
        )
    axes.set_xlabel("RMSE of the sum")
    axes.set_ylabel("noise messages of all users")
    axes.set_title(
        f"max_value {problem.max_value}, eps {exactly(problem.eps)}, delta {problem.delta!r}; "
        + ("" if problem.adjacency == SUBSTITUTION else f"{problem.adjacency}; ")
        + "labels: central eps / eps",
        fontsize=9,
    )
    axes.margins(0.08)  # room for labels
    label_log_axes(axes)
    axes.grid(True, which="both", alpha=0.25)
    save_figure(figure, path)
