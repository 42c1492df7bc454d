"""``paramsearch compare``: all mechanisms for one problem, as a table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from accounting.base.enclosure import exactly
from paramsearch.cli import options
from paramsearch.cli.exit_codes import ExitCode
from paramsearch.cli.output import (
    TextTable,
    check_writable,
    note,
    print_json,
    progress,
    write_lines,
)
from paramsearch.cli.plots import PLOT_SUFFIXES, label_log_axes, save_figure

if TYPE_CHECKING:
    from accounting.model.problem import Problem
    from paramsearch.comparison import ComparisonRow
    from paramsearch.request import Request

_HEADS = ("mechanism", "RMSE", "messages", "bits", "overhead", "privacy")
_WIDTHS = (22, 8, 8, 8)
"""Least widths of columns, for the row of our noise, which comes last."""


def compare(
    n: options.Users,
    eps: options.Eps,
    delta: options.Delta,
    max_value: options.MaxValue,
    dimension: Annotated[
        int,
        typer.Option(
            help="Compare for vectors of this dimension with at most one non-zero coordinate, by "
            "the error of each coordinate.",
            metavar="M",
        ),
    ] = 1,
    central_fraction: options.CentralFraction = None,
    max_rmse: Annotated[
        float | None,
        typer.Option(
            help="For the correlated noise: allow this error of the sum, or of each coordinate, "
            "instead of giving the fraction."
        ),
    ] = None,
    max_error_ratio: options.MaxErrorRatio = None,
    releases: options.Releases = 1,
    honest: options.Honest = 1.0,
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
    """Compare error, messages and bits with the central mechanisms, IKOS, RAPPOR and others.

    The others are printed before the search for our noise. Messages and bits are those of a user
    with a value in one release; overhead is relative to the bits of a sum without privacy.
    """
    from paramsearch.comparison import compare as compared
    from paramsearch.comparison import other_mechanisms
    from paramsearch.request import Request

    request = Request(
        n=n,
        eps=eps,
        delta=delta,
        max_value=max_value,
        dimension=dimension,
        central_fraction=central_fraction,
        max_rmse=max_rmse,
        max_error_ratio=max_error_ratio,
        releases=releases,
        honest=honest,
        tries=tries,
    )
    if plot is not None:
        check_writable(plot, "--plot", PLOT_SUFFIXES)
    with progress("compare") as say:
        say("the other mechanisms")
        others = other_mechanisms(request)
    table = TextTable(_HEADS, widths=_WIDTHS)
    if not as_json:  # now, as the search may take minutes
        write_lines(_scope(request))
        table.write([_cells(row) for row in others.rows])
    with progress("compare") as say:
        found = compared(request, others=others, progress=say)
    if plot is not None:
        _draw(plot, request, found.rows)
    if as_json:
        print_json(
            {
                "mechanisms": [asdict(row) for row in found.rows],
                "left_out": found.left_out,
                "interrupted": found.interrupted,
            }
        )
    else:
        table.write([_cells(found.rows[-1])])
        write_lines(f"left out: {reason}" for reason in found.left_out)
    if found.interrupted:
        note("the search for our noise was cut short: a longer one may send fewer messages")
        raise typer.Exit(ExitCode.INTERRUPTED)


def _scope(request: Request) -> Iterator[str]:
    """What is compared where that is not one sum with noise from everybody."""
    if request.dimension > 1:
        yield f"vectors of dimension {request.dimension:,}: the error is that of each coordinate"
    if request.releases > 1:
        yield f"{request.releases:,} releases together: error and costs are those of each of them"
    if request.honest < 1:
        yield f"the noise of {exactly(request.honest)} of the users suffices"


def _cells(row: ComparisonRow) -> tuple[str, ...]:
    return (
        row.mechanism,
        "-" if row.rmse is None else f"{row.rmse:,.5g}",
        f"{row.messages_per_user:,.6g}",
        f"{row.bits_per_user:,.6g}",
        f"{100 * row.overhead:+,.4g}%",
        row.guarantee,
    )


def _draw(path: Path, problem: Problem, rows: Sequence[ComparisonRow]) -> None:
    """Draw bits against error, one point for each mechanism."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.2, 4.6), layout="constrained")
    axes = figure.add_subplot()
    markers = "s^Dv<>P"
    colors = ("#e69f00", "#56b4e9", "#009e73", "#f0e442", "#0072b2", "#cc79a7", "#999999")
    shown = [row for row in rows if row.rmse]  # an error of 0 has no place on a logarithmic axis
    for i, row in enumerate(shown):
        last = i == len(shown) - 1
        axes.loglog(
            [row.rmse],
            [row.bits_per_user],
            "*" if last else markers[i % len(markers)],
            color="#d55e00" if last else colors[i % len(colors)],
            markersize=13 if last else 7,
            markeredgecolor="#333333",
            label=row.mechanism,
        )
    axes.set_xlabel("RMSE of the sum" if problem.dimension == 1 else "RMSE of each coordinate")
    axes.set_ylabel("expected bits per user")
    axes.set_title(
        f"n = {problem.n:,}, ε = {exactly(problem.eps)}, δ = {problem.delta!r}, "
        f"Δ = {problem.max_value}",
        fontsize=9,
    )
    axes.margins(0.08)  # room for labels
    label_log_axes(axes)
    axes.grid(True, which="both", alpha=0.25)
    axes.legend(fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5))
    save_figure(figure, path)
