"""``paramsearch compare``: all mechanisms for one problem, as a table."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

from accounting.base.enclosure import exactly
from accounting.baselines import Baseline, NonPrivate
from accounting.model.problem import Problem
from paramsearch.cli.output import progress
from paramsearch.comparison import everything, shipped
from paramsearch.files import check_writable, write_atomically
from paramsearch.generation.generate import generate
from paramsearch.parameters.parameter_file import ParameterFile
from paramsearch.problem import Request

_HEADS = ("mechanism", "RMSE", "messages", "bits", "overhead", "privacy")


def run_compare(
    problem: Problem,
    *,
    fraction: float,
    tries: int,
    plot: Path | None,
    as_json: bool,
) -> int:
    """The table on stdout."""
    if plot is not None:
        check_writable(plot, "--plot", (".png", ".svg", ".pdf"))
    with progress("compare") as say:
        file = _file(problem, fraction, tries, say)
        say("the other mechanisms")
        rows = [_row(baseline) for baseline in everything(problem, file, fraction)]
    if plot is not None:
        _draw(plot, problem, rows)
    if as_json:
        print(json.dumps(rows, allow_nan=False))
    else:
        print(_table(rows))
    return 0


def _file(problem: Problem, fraction: float, tries: int, say: Any) -> ParameterFile:
    """Shipped with the package, or made now."""
    known = shipped(problem.max_value, problem.eps, problem.delta, fraction)
    if known is not None:
        return known
    request = Request(
        n=problem.n,
        eps=problem.eps,
        delta=problem.delta,
        max_value=problem.max_value,
        central_fraction=fraction,
        tries=tries,
    )
    return generate(request, progress=say).file


def _row(baseline: Baseline) -> dict[str, Any]:
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
    """Messages and bits are per user; overhead is over the bits of the non-private sum."""
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
    return "\n".join(lines)


def _draw(path: Path, problem: Problem, rows: Sequence[dict[str, Any]]) -> None:
    """Bits against error, a point for each mechanism."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.2, 4.6), layout="constrained")
    axes = figure.add_subplot()
    markers = "s^Dv<>P"
    colours = ("#e69f00", "#56b4e9", "#009e73", "#f0e442", "#0072b2", "#cc79a7", "#999999")
    shown = [row for row in rows if row["rmse"]]  # what has no error has no place on the axis
    for i, row in enumerate(shown):
        last = i == len(shown) - 1
        axes.loglog(
            [row["rmse"]],
            [row["bits_per_user"]],
            "*" if last else markers[i % len(markers)],
            color="#d55e00" if last else colours[i % len(colours)],
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
    out = BytesIO()
    figure.savefig(out, format=path.suffix.lower().removeprefix("."), dpi=150)
    write_atomically(path, out.getvalue())
