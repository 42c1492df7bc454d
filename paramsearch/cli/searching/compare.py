"""``paramsearch compare``: all mechanisms for one problem, as a table."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from accounting.base.enclosure import exactly
from accounting.base.validation import whole
from paramsearch.cli import options
from paramsearch.cli.exit_codes import ExitCode
from paramsearch.cli.output import check_writable, note, print_json, progress, write
from paramsearch.cli.plots import PLOT_SUFFIXES, save_figure

if TYPE_CHECKING:
    from accounting.baselines import Baseline
    from accounting.model.problem import Problem

_HEADS = ("mechanism", "RMSE", "messages", "bits", "overhead", "privacy")


def compare(
    n: options.Users,
    eps: options.Eps,
    delta: options.Delta,
    max_value: options.MaxValue,
    central_fraction: Annotated[
        float, typer.Option(help="For the correlated noise: its central eps over eps.")
    ] = 0.9,
    tries: Annotated[
        int,
        typer.Option(
            help="Number of families to try where the package has no file for the problem."
        ),
    ] = 20,
    plot: Annotated[
        Path | None, typer.Option(help="Also draw bits against error: FILE.png, .svg or .pdf.")
    ] = None,
    as_json: options.AsJson = False,
) -> None:
    """Compare error, messages and bits with the central mechanisms, IKOS, RAPPOR and others."""
    from accounting.model.problem import Problem
    from paramsearch.comparison import all_mechanisms, shipped_file
    from paramsearch.generation.generate import generate
    from paramsearch.request import Request

    whole("n", n, least=2)  # alone there is nobody to hide among; said before any search
    problem = Problem(n=n, eps=eps, delta=delta, max_value=max_value)
    if plot is not None:
        check_writable(plot, "--plot", PLOT_SUFFIXES)
    interrupted = False
    with progress("compare") as say:
        file = shipped_file(
            max_value=max_value,
            eps=problem.eps,
            delta=problem.delta,
            central_fraction=central_fraction,
        )
        if file is None:
            request = Request(
                n=n,
                eps=eps,
                delta=delta,
                max_value=max_value,
                central_fraction=central_fraction,
                tries=tries,
            )
            made = generate(request, progress=say)
            file, interrupted = made.file, made.interrupted
        say("the other mechanisms")
        mechanisms = all_mechanisms(problem, file=file, central_fraction=central_fraction)
        rows = [_row(baseline) for baseline in mechanisms]
    if plot is not None:
        _draw(plot, problem, rows)
    if as_json:
        print_json({"mechanisms": rows, "interrupted": interrupted})
    else:
        write(_table(rows))
    if interrupted:
        note("the search for our noise was cut short: a longer one may send fewer messages")
        raise typer.Exit(ExitCode.INTERRUPTED)


def _row(baseline: Baseline) -> dict[str, Any]:
    from accounting.baselines import NonPrivate

    plain = NonPrivate(baseline.problem).bits
    return {
        "mechanism": baseline.name,
        "rmse": math.sqrt(baseline.mse) if math.isfinite(baseline.mse) else None,
        "messages_per_user": baseline.messages,
        "bits_per_user": baseline.bits,
        "overhead": baseline.bits / plain - 1,
        "guarantee": baseline.guarantee,
    }


def _table(rows: Sequence[dict[str, Any]]) -> str:
    """Messages and bits are per user; overhead is relative to the bits of the non-private sum."""
    cells = [_HEADS]
    for row in rows:
        error = "-" if row["rmse"] is None else f"{row['rmse']:,.5g}"
        cells.append(
            (
                row["mechanism"],
                error,
                f"{row['messages_per_user']:,.6g}",
                f"{row['bits_per_user']:,.6g}",
                f"{100 * row['overhead']:+,.4g}%",
                row["guarantee"],
            )
        )
    widths = [max(len(line[i]) for line in cells) for i in range(len(_HEADS))]
    lines = []
    for line in cells:
        first, *numbers, last = line
        middle = [text.rjust(width) for text, width in zip(numbers, widths[1:-1], strict=True)]
        lines.append("  ".join([first.ljust(widths[0]), *middle, last]))
    return "\n".join(lines) + "\n"


def _draw(path: Path, problem: Problem, rows: Sequence[dict[str, Any]]) -> None:
    """Draw bits against error, one point for each mechanism."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.2, 4.6), layout="constrained")
    axes = figure.add_subplot()
    markers = "s^Dv<>P"
    colors = ("#e69f00", "#56b4e9", "#009e73", "#f0e442", "#0072b2", "#cc79a7", "#999999")
    shown = [row for row in rows if row["rmse"]]  # an error of 0 has no place on a logarithmic axis
    for i, row in enumerate(shown):
        last = i == len(shown) - 1
        axes.loglog(
            [row["rmse"]],
            [row["bits_per_user"]],
            "*" if last else markers[i % len(markers)],
            color="#d55e00" if last else colors[i % len(colors)],
            markersize=13 if last else 7,
            markeredgecolor="#333333",
            label=row["mechanism"],
        )
    axes.set_xlabel("RMSE of the sum")
    axes.set_ylabel("expected bits per user")
    axes.set_title(
        f"n = {problem.n:,}, ε = {exactly(problem.eps)}, δ = {problem.delta!r}, "
        f"Δ = {problem.max_value}",
        fontsize=9,
    )
    axes.grid(True, which="both", alpha=0.25)
    axes.legend(fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5))
    save_figure(figure, path)
