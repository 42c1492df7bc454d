"""``paramsearch compose``: what releases of several files cost the same people together."""

from __future__ import annotations

import math
import os
import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from accounting.base.enclosure import Enclosure, at_least, at_most, exactly, with_point
from accounting.base.errors import InvalidConfiguration, InvalidParameter, required
from accounting.base.validation import gap_width, not_negative, positive, probability
from accounting.model.change import SUBSTITUTION
from accounting.model.proof_types import MOST_RELEASES
from paramsearch.cli import options
from paramsearch.cli.output import Fact, check_writable, print_json, progress, show
from paramsearch.cli.plots import PROFILE_SUFFIXES, draw_profile

if TYPE_CHECKING:
    from accounting.loss_distribution import LossDistribution
    from paramsearch.parameters.parameter_file import ParameterFile

_POINTS = 17
"""Number of points of the plotted profile."""
_PLOT_GAP = 0.02
"""Relative gap of the grid for each of them."""
_LIKE_A_NUMBER = re.compile(r"[-+]?[0-9.,_]+([eE][-+]?[0-9]*)?")
"""What is meant as a number of releases."""


@dataclass(frozen=True)
class _Part:
    """A file and the number of its releases, as typed."""

    path: Path
    times: int
    file: ParameterFile


def compose(
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE[:TIMES]...",
            help="Certified parameter files, each with its number of releases after a colon.",
        ),
    ],
    delta: Annotated[
        float | None, typer.Option(help="The delta of all together; the answer is the eps.")
    ] = None,
    eps: Annotated[
        float | None, typer.Option(help="The eps of all together; the answer is the delta.")
    ] = None,
    gap: options.Gap = 1e-4,
    plot: Annotated[
        Path | None, typer.Option(help="Also draw the profile delta(eps): FILE.png or FILE.svg.")
    ] = None,
    budget: Annotated[
        float,
        typer.Option(
            help="Seconds after which it is given up; by default, as long as it takes.",
            show_default=False,
        ),
    ] = math.inf,
    as_json: options.AsJson = False,
) -> None:
    """Compute the (eps, delta) of releases of several certified files together, for the same
    people: bounds from both sides.

    A.json:30 counts thirty releases, each one run of the protocol, whatever number the file was
    made for. One user's input may change in any way in each (under zero-out, be present or absent
    in all), chosen adaptively, and the releases may come in any order.
    """
    from accounting.base.deadline import until

    if (delta is None) == (eps is None):
        raise InvalidParameter("give either --delta, to learn the eps, or --eps, to learn delta")
    asked_delta = None if delta is None else probability("delta", delta)
    asked_eps = None if eps is None else not_negative("eps", eps)
    gap = gap_width(gap)
    deadline = time.monotonic() + positive("budget", budget) if budget != math.inf else math.inf
    if plot is not None:
        check_writable(plot, "--plot", PROFILE_SUFFIXES)
    parts = [_read(argument) for argument in files]
    _check_alike(parts)
    curve = None
    with until(deadline), progress("composing") as say:
        whole = _distribution(parts)
        if asked_eps is None:
            wanted = required(asked_delta, "the delta that is asked about")
            found = whole.epsilon(wanted, gap=gap, progress=say).as_written()
            point = found.upper, wanted
        else:
            found = whole.delta(asked_eps, gap=gap, progress=say).as_written()
            point = asked_eps, found.upper
        if plot is not None:
            end = 2 * point[0] if point[0] > 0 else 1.0
            grid = [*(end * i / (_POINTS - 1) for i in range(_POINTS)), point[0]]
            curve = whole.profile(grid, gap=max(gap, _PLOT_GAP), progress=say)
            if asked_eps is None:  # delta at this eps is at most what was asked for
                lower = dict(curve)[point[0]].lower
                curve = with_point(curve, point[0], Enclosure(lower, point[1]))
            else:
                curve = with_point(curve, asked_eps, found)
                found = dict(curve)[asked_eps]
                point = asked_eps, found.upper
            draw_profile(plot, curve, evaluated=point)
    of_eps = asked_eps is None
    if as_json:
        print_json(_answer(parts, found, point, curve, of_eps=of_eps))
    else:
        show(_facts(parts, found, point, plot, of_eps=of_eps))


def _read(argument: str) -> _Part:
    """The file and the number of releases of an argument such as A.json:30."""
    from paramsearch.parameters.documents import RejectedFile, read_source
    from paramsearch.parameters.parameter_file import ParameterFile

    path, times = _split(argument)
    document = read_source(path).document
    if isinstance(document, RejectedFile):
        raise InvalidConfiguration(
            f"{path} is rejected: {document.reason}; paramsearch audit says what its noise gives"
        )
    if not isinstance(document, ParameterFile) or document.certificate is None:
        raise InvalidConfiguration(
            f"{path} is not certified: paramsearch certify makes a certified file of it"
        )
    return _Part(Path(path), times, document)


def _split(argument: str) -> tuple[str, int]:
    """A name may have colons of its own: only what looks like a number is one."""
    path, colon, text = argument.rpartition(":")
    if not colon:
        return argument, 1
    if not _LIKE_A_NUMBER.fullmatch(text):
        if os.path.isfile(path) and not os.path.exists(argument):
            raise InvalidParameter(_no_times(argument, text))
        return argument, 1
    try:
        times = options.whole_number(text)
    except typer.BadParameter:
        raise InvalidParameter(_no_times(argument, text)) from None
    if not 1 <= times <= MOST_RELEASES:
        raise InvalidParameter(_no_times(argument, text))
    return path, times


def _no_times(argument: str, text: str) -> str:
    return (
        f"{argument:.200}: {text!r:.40} is not a number of releases; give a whole number from 1 to "
        f"{MOST_RELEASES:,} after the colon"
    )


def _check_alike(parts: Sequence[_Part]) -> None:
    """Refuse files whose changes of one user are not of the same kind, and too many releases."""
    first = parts[0]
    for other in parts[1:]:
        for name in ("dimension", "adjacency"):
            here, there = (_kind(part.file, name) for part in (first, other))
            if here != there:
                raise InvalidParameter(
                    f"{first.path} is for {name} {here} and {other.path} for {name} {there}: "
                    f"compose files of one {name}"
                )
    total = sum(part.times for part in parts)
    if total > MOST_RELEASES:
        raise InvalidParameter(
            f"these are {total:,} releases in all, more than {MOST_RELEASES:,}: compose fewer"
        )


def _kind(file: ParameterFile, name: str) -> str:
    return f"{file.dimension:,}" if name == "dimension" else file.problem.adjacency


def _distribution(parts: Sequence[_Part]) -> LossDistribution:
    from accounting.model.configuration import blaming
    from paramsearch.certification.loss_distribution import loss_distribution

    found = []
    for part in parts:
        with blaming(str(part.path)):
            found.append(loss_distribution(part.file, part.times))
    return found[0].compose(*found[1:])


def _answer(
    parts: Sequence[_Part],
    found: Enclosure,
    point: tuple[float, float],
    curve: list[tuple[float, Enclosure]] | None,
    *,
    of_eps: bool,
) -> dict[str, Any]:
    from paramsearch.certification.stated_problem import StatedProblem

    asked = "eps" if of_eps else "delta"
    out: dict[str, Any] = {
        "eps": point[0],
        "delta": point[1],
        f"{asked}_lower": found.lower,
        f"{asked}_upper": found.upper,
        "releases": sum(part.times for part in parts),
        "changes": "any",
        "adjacency": parts[0].file.problem.adjacency,
        "dimension": parts[0].file.dimension,
        "files": [
            {
                "file": str(part.path),
                "problem": StatedProblem.of(part.file).as_json(),
                "sha256": part.file.sha256,
                "times": part.times,
                "max_value": part.file.problem.max_value,
                "honest": part.file.problem.honest,
            }
            for part in parts
        ],
    }
    if curve is not None:
        written = [(x, bounds.as_written()) for x, bounds in curve]
        out["profile"] = [[x, bounds.lower, bounds.upper] for x, bounds in written]
    return out


def _facts(
    parts: Sequence[_Part],
    found: Enclosure,
    point: tuple[float, float],
    plot: Path | None,
    *,
    of_eps: bool,
) -> Iterator[Fact]:
    from paramsearch.parameters.honest_fraction import claimed_fraction, in_words
    from paramsearch.parameters.words import PREMISE

    eps, delta = point
    between = f"between {at_least(found.lower)} and {at_most(found.upper)}"
    if of_eps:
        yield "holds", f"({at_most(eps)}, {exactly(delta)}) for all of these releases together"
        yield "eps", f"{between} at delta = {exactly(delta)}"
    else:
        yield "holds", f"({exactly(eps)}, {at_most(delta)}) for all of these releases together"
        yield "delta", f"{between} at eps = {exactly(eps)}"
    total = sum(part.times for part in parts)
    listed = ", ".join(f"{part.times:,} of {part.path}" for part in parts)
    yield "releases", f"{total:,}, each one run of the protocol: {listed}"
    adjacency = parts[0].file.problem.adjacency
    if adjacency == SUBSTITUTION:
        yield "covered", "any change of one user's input in each, chosen adaptively, in any order"
    else:
        yield "covered", "all inputs of one user present or absent, chosen adaptively, in any order"
    yield "adjacency", adjacency
    for part in parts:
        honest = part.file.problem.honest
        if honest < 1:
            words = in_words(honest, claimed_fraction(part.file))
            yield "honest", f"{words} of the users of {part.path} adding noise ({PREMISE})"
    if plot is not None:
        yield "plot", str(plot)
