"""``paramsearch profile``: what a configuration guarantees."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from accounting.base.enclosure import Enclosure, at_least, at_most, exactly
from accounting.base.errors import InvalidConfiguration, InvalidParameter
from accounting.base.validation import gap_width, not_negative
from accounting.model.change import Change, in_words
from accounting.model.costs import bits_per_message
from paramsearch.cli import options
from paramsearch.cli.exit_codes import ExitCode
from paramsearch.cli.output import Fact, check_writable, print_json, progress, show

if TYPE_CHECKING:
    from accounting.model.configuration import Proposal
    from accounting.model.delta import Delta
    from accounting.protocol import Protocol

_PLOT_SUFFIXES = (".png", ".svg")
_POINTS = 33
"""Number of points of the plotted profile."""
_PLOT_GAP = 0.05
"""Relative gap between the bounds at each point of the plot."""
_PLOT_FLOOR = 1e-30
"""The plot does not resolve delta below this."""


def profile(
    config: Annotated[Path, typer.Argument(help="A configuration file, JSON.")],
    eps: Annotated[
        float | None, typer.Option(help="Evaluate at this eps instead of the file's.")
    ] = None,
    pair: Annotated[
        tuple[int, int] | None,
        typer.Option(metavar="J J2", help="Only the change of one input from J to J2."),
    ] = None,
    releases: Annotated[
        int, typer.Option(help="T releases together, with any change of one user in each.")
    ] = 1,
    same_change: options.SameChange = False,
    gap: options.Gap = 0.01,
    plot: Annotated[
        Path | None, typer.Option(help="Also draw the profile delta(eps): FILE.png or FILE.svg.")
    ] = None,
    as_json: options.AsJson = False,
) -> None:
    """Compute the exact privacy of a configuration: bounds on delta at its eps, from both sides.

    Adjacency is substitution: one user's input changes from any value to any other.
    """
    from accounting.model.configuration import Proposal, blaming
    from accounting.protocol import Protocol
    from paramsearch.parameters.documents import read

    options.check_same_change(same_change, releases)
    document = read(config)
    if not isinstance(document, Proposal):
        raise InvalidConfiguration(
            f"{config}: this is a parameter file: paramsearch audit reads it"
        )
    with blaming(str(config)):
        configuration = document.configuration()
    at = eps if eps is not None else document.eps
    if at is None:
        raise InvalidParameter(f"{config} has no eps; add it to the file or give --eps")
    at = not_negative("eps", at)
    gap = gap_width(gap)
    if plot is not None:
        check_writable(plot, "--plot", _PLOT_SUFFIXES)
    protocol = Protocol(configuration, releases=releases, same_change=same_change)
    if pair is not None and protocol.any_sequence:
        raise InvalidParameter(
            f"--pair {pair[0]} {pair[1]} is one change, and {releases} releases may have different "
            "ones: add --same-change"
        )

    def evaluate(point: float, wanted: float, absolute: float = 0.0) -> Delta:
        if pair is not None:
            return protocol.delta_of(Change(*pair), point, gap=wanted, absolute=absolute)
        return protocol.delta(point, gap=wanted, absolute=absolute)

    with progress("evaluating all pairs"):
        found = evaluate(at, gap)
    curve = None
    if plot is not None:
        curve = _curve(lambda point: evaluate(point, _PLOT_GAP, _PLOT_FLOOR).enclosure, at)
        _draw(plot, document, found, curve)
    if as_json:
        print_json(_answer(found, protocol, curve))
    else:
        show(_facts(found, protocol, document, gap, plot))
    if not found.met:
        raise typer.Exit(ExitCode.UNDECIDED)


def _curve(enclose: Callable[[float], Enclosure], eps: float) -> list[tuple[float, Enclosure]]:
    """The profile on a grid around eps; both bounds are made monotone, since the truth is."""
    import numpy as np
    from rich.console import Console
    from rich.progress import track

    from accounting.base.enclosure import monotone

    console = Console(stderr=True)
    grid = np.linspace(0.0, 2 * eps if eps > 0 else 1.0, _POINTS).tolist()
    found = [
        enclose(point)
        for point in track(grid, "profile", console=console, disable=not console.is_terminal)
    ]
    return list(zip(grid, monotone(found), strict=True))


def _answer(
    found: Delta, protocol: Protocol, curve: list[tuple[float, Enclosure]] | None
) -> dict[str, Any]:
    config = protocol.configuration
    out: dict[str, Any] = {
        "eps": found.eps,
        "delta_lower": found.enclosure.lower,
        "delta_upper": found.enclosure.upper,
        "worst_pair": list(found.worst_change.listed),
        "worst_sequence": [
            {"change": list(made.change.listed), "times": made.times}
            for made in found.worst_sequence
        ],
        "gap_met": found.met,
        "upper_bound_only": not found.exact,
        "adjacency": "substitution",
        "max_value": config.max_value,
        "dimension": config.dimension,
        "releases": protocol.releases,
        "same_change": protocol.releases > 1 and protocol.same_change,
        "noise_messages": config.noise_messages,
    }
    if curve is not None:
        out["profile"] = [[x, e.lower, e.upper] for x, e in curve]
    return out


def _facts(
    found: Delta, protocol: Protocol, claim: Proposal, gap: float, plot: Path | None
) -> Iterator[Fact]:
    from paramsearch.parameters.words import releases_in_words

    config, whole = protocol.configuration, len(found.changes) != 1
    lower, upper = found.enclosure.lower, found.enclosure.upper
    yield "eps", exactly(found.eps)
    if found.exact:
        yield "delta", f"between {at_least(lower)} and {at_most(upper)}"
    else:
        yield "delta", f"at most {at_most(upper)} (more atoms than values: upper bound only)"
    label = "worst sequence" if found.worst_sequence else "worst pair" if whole else "pair"
    yield label, in_words(found.worst_change, found.worst_sequence)
    if len(found.changes) > 1:
        kind = f"changes of vectors of dimension {config.dimension:,} with one value in"
        kind = kind if config.dimension > 1 else "ordered pairs of"
        yield "pairs", f"all {len(found.changes):,} {kind} 0..{config.max_value}"
    if protocol.releases > 1:
        words = releases_in_words(protocol.releases, same_change=protocol.same_change)
        yield "releases", words
    symbols = config.dimension * len(config.family.values)
    yield (
        "messages",
        f"{config.noise_messages:,.1f} noise messages over all users, "
        f"{bits_per_message(symbols)} bits each ({symbols:,} symbols)",
    )
    if claim.delta is not None and claim.eps is not None and claim.eps == found.eps and whole:
        verdict = "undecided"
        if upper <= claim.delta:
            verdict = "holds"
        elif lower > claim.delta:
            verdict = "violated"
        yield "claim", f"({exactly(claim.eps)}, {claim.delta!r}): {verdict}"
    if not found.met:
        yield "note", f"a relative gap of {gap:g} was out of reach", "yellow"
    if plot is not None:
        yield "plot", str(plot)


def _draw(path: Path, claim: Proposal, found: Delta, curve: list[tuple[float, Enclosure]]) -> None:
    import numpy as np
    from matplotlib.figure import Figure

    from paramsearch.cli.plots import save_figure

    x = [point for point, _ in curve]
    lower = np.array([e.lower for _, e in curve])
    upper = np.array([e.upper for _, e in curve])
    visible = upper > _PLOT_FLOOR
    figure = Figure(figsize=(6.4, 4.0), layout="constrained")
    axes = figure.add_subplot()
    floor = max(float(upper[visible].min(initial=1.0)) / 3, _PLOT_FLOOR)
    axes.fill_between(
        x,
        np.maximum(lower, floor),
        np.maximum(upper, floor),
        color="#0072b2",
        alpha=0.35,
        label="between both bounds",
    )
    axes.plot(x, np.where(visible, upper, np.nan), color="#0072b2", label="upper bound")
    axes.plot(
        [found.eps], [max(found.enclosure.upper, floor)], "o", color="#d55e00", label="evaluated"
    )
    if claim.eps is not None and claim.delta is not None:
        axes.plot(
            [claim.eps], [claim.delta], "x", color="black", markersize=8, mew=2, label="claim"
        )
    axes.set_yscale("log")
    axes.set_ylim(bottom=floor)
    axes.set_xlabel("ε")
    axes.set_ylabel("δ(ε)")
    axes.grid(alpha=0.3)
    axes.legend()
    save_figure(figure, path)
