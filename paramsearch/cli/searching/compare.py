"""``paramsearch compare``: all mechanisms for one problem, as a table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from accounting.base.enclosure import exactly
from accounting.model.change import SUBSTITUTION
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
_WIDTHS = (8, 8, 8)
"""Least widths of the columns after the name, for the rows of our noise, which come last."""


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
            parser=options.whole_number,
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
    adjacency: options.Adjacencies = None,
    noise: options.Noises = None,
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
    from paramsearch.certification.stated_problem import StatedProblem
    from paramsearch.comparison import IN_BURSTS, OURS, other_mechanisms
    from paramsearch.comparison import compare as compared
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
    requests = [
        replace(request, adjacency=one, noise=law)
        for one in dict.fromkeys(adjacency or (request.adjacency,))
        for law in dict.fromkeys(noise or (request.noise,))
    ]
    if plot is not None:
        check_writable(plot, "--plot", PLOT_SUFFIXES)
    with progress("compare") as say:
        say("the other mechanisms")
        others = [other_mechanisms(one) for one in requests]
    rows = _side_by_side(row for found in others for row in found.rows)
    left_out = tuple(dict.fromkeys(reason for found in others for reason in found.left_out))
    cells = partial(_cells, labeled={one.adjacency for one in requests} != {SUBSTITUTION})
    if not as_json:  # now, as the search may take minutes
        bursts = any(one.noise == "burst" for one in requests)
        name = len(OURS + IN_BURSTS * bursts)
        table = TextTable(cells(None), widths=(name, *_WIDTHS))
        write_lines(_scope(request))
        table.write([cells(row) for row in rows])
    interrupted = False
    for one, known in zip(requests, others, strict=True):
        with progress("compare") as say:
            found = compared(one, others=known, progress=say)
        rows.append(found.rows[-1])
        interrupted = interrupted or found.interrupted
        if not as_json:
            table.write([cells(rows[-1])])
    if plot is not None:
        _draw(plot, request, rows, ours=len(requests))
    if as_json:
        adjacencies = {one.adjacency for one in requests}
        only = adjacencies.pop() if len(adjacencies) == 1 else None
        print_json(
            {
                "problem": {**StatedProblem.of_problem(request).as_json(), "adjacency": only},
                "mechanisms": [asdict(row) for row in rows],
                "left_out": left_out,
                "interrupted": interrupted,
            }
        )
    else:
        write_lines(f"left out: {reason}" for reason in left_out)
    if interrupted:
        note("the search for our noise was cut short: a longer one may send fewer messages")
        raise typer.Exit(ExitCode.INTERRUPTED)


def _scope(request: Request) -> Iterator[str]:
    """Say what is compared where that is not one sum with noise from everybody."""
    if request.dimension > 1:
        yield f"vectors of dimension {request.dimension:,}: the error is that of each coordinate"
    if request.releases > 1:
        yield f"{request.releases:,} releases together: error and costs are those of each of them"
    if request.honest < 1:
        from paramsearch.parameters.words import PREMISE

        yield f"the noise of {exactly(request.honest)} of the users suffices ({PREMISE})"


def _side_by_side(rows: Iterable[ComparisonRow]) -> list[ComparisonRow]:
    """Put rows of the same mechanism after each other, and equal ones once."""
    by_name: dict[str, list[ComparisonRow]] = {}
    for row in dict.fromkeys(rows):
        by_name.setdefault(row.mechanism, []).append(row)
    return [row for same in by_name.values() for row in same]


def _cells(row: ComparisonRow | None, *, labeled: bool) -> tuple[str, ...]:
    """Return the texts of a row, or without one the heads; ``labeled`` rows say their adjacency."""
    first, *others = _HEADS if row is None else _texts(row)
    if not labeled:
        return first, *others
    return first, *others[:-1], "adjacency" if row is None else row.adjacency or "-", others[-1]


def _texts(row: ComparisonRow) -> tuple[str, ...]:
    return (
        row.mechanism,
        "-" if row.rmse is None else f"{row.rmse:,.5g}",
        f"{row.messages_per_user:,.6g}",
        f"{row.bits_per_user:,.6g}",
        f"{100 * row.overhead:+,.4g}%",
        row.guarantee,
    )


def _draw(path: Path, problem: Problem, rows: Sequence[ComparisonRow], ours: int) -> None:
    """Draw bits against error, one point for each mechanism; the last ones are ours."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.2, 4.6), layout="constrained")
    axes = figure.add_subplot()
    markers = "s^Dv<>P"
    colors = ("#e69f00", "#56b4e9", "#009e73", "#f0e442", "#0072b2", "#cc79a7", "#999999")
    shown = [row for row in rows if row.rmse]  # an error of 0 has no place on a logarithmic axis
    for i, row in enumerate(shown):
        last = i >= len(shown) - ours
        also = "" if row.adjacency in (SUBSTITUTION, None) else f", {row.adjacency}"
        axes.loglog(
            [row.rmse],
            [row.bits_per_user],
            "*" if last else markers[i % len(markers)],
            color="#d55e00" if last else colors[i % len(colors)],
            markersize=13 if last else 7,
            markeredgecolor="#333333",
            label=row.mechanism + also,
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
