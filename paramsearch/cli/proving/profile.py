"""``paramsearch profile``: what a configuration or a parameter file guarantees."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from accounting.base.enclosure import Enclosure, at_least, at_most, exactly, with_point
from accounting.base.errors import InvalidConfiguration, InvalidParameter
from accounting.base.validation import gap_width, not_negative, probability, share
from accounting.model.change import SUBSTITUTION, ZERO_OUT, Adjacency, Change, in_words
from accounting.model.costs import bits_per_message
from paramsearch.cli import options
from paramsearch.cli.exit_codes import OF_VERDICT, ExitCode
from paramsearch.cli.output import Fact, check_writable, print_json, progress, show
from paramsearch.cli.plots import PROFILE_FLOOR, PROFILE_SUFFIXES, draw_profile

if TYPE_CHECKING:
    from accounting.model.configuration import Proposal
    from accounting.model.delta import Delta
    from accounting.proof.profile import Profile
    from paramsearch.certification.audit import Verdict
    from paramsearch.parameters.parameter_file import ParameterFile
    from paramsearch.parameters.problem_section import ProblemSection

_GAP = 0.01
"""Relative gap between the bounds, if no other is asked for."""
_CLOSER_GAP = 1e-4
"""Relative gap where the usual one leaves the claim undecided: that of an audit."""
_POINTS = 33
"""Number of points of the plotted profile."""
_PLOT_GAP = 0.05
"""Relative gap between the bounds at each point of the plot."""


@dataclass(frozen=True, kw_only=True)
class _Asked:
    """The document to evaluate, and the claim to compare it with, if there is one."""

    document: ParameterFile | Proposal
    profile: Profile
    eps: float
    delta: float | None
    about_delta: bool
    pair: Change | None
    honest: float
    proved_for: Fraction
    noise_messages: float
    noise_events: float
    symbols: int
    gap: float
    rounded: bool
    """Whether the file is for real values, which are rounded to the integers that are covered."""

    def verdict(self, found: Delta) -> Verdict | None:
        """On the claim; None if there is none, or if only a single pair was asked about, which may
        violate a claim but does not certify it."""
        from paramsearch.parameters.claim import decision

        if self.delta is None:
            return None
        decided = decision(self.delta, found.enclosure)
        if decided != "violated" and self.pair is not None:
            return "undecided" if self.about_delta else None
        return decided

    def problem(self) -> dict[str, Any]:
        """What was asked about, in the shape of every answer in JSON."""
        from paramsearch.certification.stated_problem import StatedProblem

        profile = self.profile
        several = profile.releases > 1 and profile.same_change
        return replace(
            StatedProblem.of(self.document),
            eps=self.eps,
            delta=self.delta,
            adjacency=profile.adjacency,
            releases=profile.releases,
            changes="same" if several else "any",
            honest=self.honest,
        ).as_json()


def profile(
    file: Annotated[Path, typer.Argument(help="A configuration or a parameter file, JSON.")],
    eps: Annotated[
        float | None, typer.Option(help="Evaluate at this eps instead of the file's.")
    ] = None,
    delta: Annotated[
        float | None,
        typer.Option(
            help="Decide whether this delta holds, by default the file's if eps is the file's."
        ),
    ] = None,
    pair: Annotated[
        tuple[int, int] | None,
        typer.Option(metavar="J J2", help="Only the change of one input from J to J2."),
    ] = None,
    releases: Annotated[
        int | None, typer.Option(help="T releases together, with any change of one user in each.")
    ] = None,
    same_change: options.SameChange = False,
    adjacency: options.OtherAdjacency = None,
    honest: options.OtherHonest = None,
    gap: Annotated[
        float | None,
        typer.Option(
            help="Relative gap between the bounds. [0.01; 0.0001 if that leaves the claim "
            "undecided]"
        ),
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(help="Also draw the profile delta(eps): FILE.png or FILE.svg.")
    ] = None,
    as_json: options.AsJson = False,
) -> None:
    """Compute the exact privacy of a configuration or a parameter file: bounds on delta at its eps,
    from both sides.

    Exit code 1 if the claim is violated, 3 if it is undecided, 0 if it holds or there is none. One
    --pair never certifies a --delta.
    """
    from paramsearch.parameters.documents import RejectedFile, read_source

    options.check_same_change(same_change, 1 if releases is None else releases)
    document = read_source(file).document
    if isinstance(document, RejectedFile):
        raise InvalidConfiguration(
            f"{file} is rejected: {document.reason}; paramsearch audit says what its noise gives"
        )
    at = eps if eps is not None else _stated(document).eps
    if at is None:
        raise InvalidParameter(f"{file} has no eps; add it to the file or give --eps")
    at = not_negative("eps", at)
    about_delta = delta is not None
    if delta is None and at == _stated(document).eps:
        delta = _stated(document).delta
    if plot is not None:
        check_writable(plot, "--plot", PROFILE_SUFFIXES)
    asked = _asked(
        document,
        source=str(file),
        eps=at,
        delta=None if delta is None else probability("delta", delta),
        about_delta=about_delta,
        pair=None if pair is None else Change(*pair),
        releases=releases,
        same_change=same_change,
        adjacency=_stated(document).adjacency if adjacency is None else adjacency,
        honest=honest,
        gap=gap_width(_GAP if gap is None else gap),
    )
    with progress("evaluating all pairs") as say:
        found = asked.profile.delta(at, change=asked.pair, gap=asked.gap, progress=say)
        if gap is None and found.met and pair is None and asked.verdict(found) == "undecided":
            asked = replace(asked, gap=_CLOSER_GAP)
            found = asked.profile.delta(at, gap=asked.gap, progress=say)
    curve = None
    if plot is not None:
        curve = _curve(
            lambda point: (
                asked.profile.delta(
                    point, change=asked.pair, gap=_PLOT_GAP, absolute=PROFILE_FLOOR
                ).enclosure
            ),
            at,
            found.enclosure,
        )
        found = replace(found, enclosure=dict(curve)[at])  # one answer for one eps
        stated = _stated(document)
        claim = None
        if stated.eps is not None and stated.delta is not None:
            claim = stated.eps, stated.delta
        draw_profile(
            plot,
            curve,
            evaluated=(found.eps, found.enclosure.upper),
            claim=claim,
        )
    verdict = asked.verdict(found)
    if as_json:
        print_json(_answer(found, asked, verdict, curve))
    else:
        show(_facts(found, asked, verdict, plot))
    code = OF_VERDICT[verdict] if verdict is not None else ExitCode.DONE
    if verdict is None and not found.met:
        code = ExitCode.UNDECIDED
    if code != ExitCode.DONE:
        raise typer.Exit(code)


def _stated(document: ParameterFile | Proposal) -> ProblemSection | Proposal:
    """Return where a document says its eps and its delta."""
    from accounting.model.configuration import Proposal

    return document if isinstance(document, Proposal) else document.problem


def _asked(
    document: ParameterFile | Proposal,
    *,
    source: str,
    eps: float,
    delta: float | None,
    about_delta: bool,
    pair: Change | None,
    releases: int | None,
    same_change: bool,
    adjacency: Adjacency,
    honest: float | None,
    gap: float,
) -> _Asked:
    """The question about a document, with its own numbers where none are given."""
    from accounting.model.configuration import Proposal, blaming
    from accounting.proof.profile import Profile
    from paramsearch.parameters.documents import mechanism_of
    from paramsearch.parameters.honest_fraction import as_written, claimed_fraction
    from paramsearch.parameters.real_range import refuse_same_change, stated_range

    if same_change:
        refuse_same_change(document)
    rounded = False
    if isinstance(document, Proposal):
        with blaming(source):
            config = document.configuration()  # refuses values that no noise hides
        noise_messages, values = config.noise_messages, len(config.family.values)
        times, fraction = 1 if releases is None else releases, 1.0 if honest is None else honest
        proved_for = as_written(share("honest", fraction))
    else:
        noise_messages, values = document.cost.noise_messages, len(document.alphabet)
        rounded = stated_range(document) is not None
        stated = document.problem
        if releases is None:
            same_change = same_change or stated.same_change
        times = stated.releases if releases is None else releases
        fraction = stated.honest if honest is None else share("honest", honest)
        proved_for = as_written(fraction)
        if fraction == stated.honest:
            proved_for = claimed_fraction(document)
    every = mechanism_of(document)
    mechanism = every.thinned(proved_for)
    asked = _Asked(
        document=document,
        profile=Profile(mechanism, times, same_change, adjacency),
        eps=eps,
        delta=delta,
        about_delta=about_delta,
        pair=pair,
        honest=fraction,
        proved_for=proved_for,
        noise_messages=noise_messages,
        noise_events=float(every.event_rate().mid()),
        symbols=document.dimension * values,
        gap=gap,
        rounded=rounded,
    )
    if pair is not None and asked.profile.any_sequence:
        raise InvalidParameter(
            f"--pair {pair.before} {pair.after} is one change, and {times} releases may have "
            "different ones: add --same-change"
        )
    return asked


def _curve(
    enclose: Callable[[float], Enclosure], eps: float, known: Enclosure
) -> list[tuple[float, Enclosure]]:
    """Return the profile on a grid around eps, where the bounds are known already; both are made
    monotone, since the truth is."""
    import numpy as np
    from rich.console import Console
    from rich.progress import track

    console = Console(stderr=True)
    grid = np.linspace(0.0, 2 * eps if eps > 0 else 1.0, _POINTS).tolist()
    found = [
        (point, enclose(point))
        for point in track(grid, "profile", console=console, disable=not console.is_terminal)
        if point != eps
    ]
    return with_point(found, eps, known)


def _answer(
    found: Delta,
    asked: _Asked,
    verdict: Verdict | None,
    curve: list[tuple[float, Enclosure]] | None,
) -> dict[str, Any]:
    profile, bounds = asked.profile, found.enclosure.as_written()
    out: dict[str, Any] = {
        "verdict": verdict,
        "problem": asked.problem(),
        "eps": found.eps,
        "delta": asked.delta,
        "delta_lower": bounds.lower,
        "delta_upper": bounds.upper,
        "worst_pair": list(found.worst_change.listed),
        "worst_sequence": [
            {"change": list(made.change.listed), "times": made.times}
            for made in found.worst_sequence
        ],
        "gap_met": found.met,
        "upper_bound_only": not found.exact,
        "adjacency": profile.adjacency,
        "max_value": profile.mechanism.max_value,
        "dimension": profile.mechanism.dimension,
        "releases": profile.releases,
        "same_change": profile.releases > 1 and profile.same_change,
        "rounded": asked.rounded,
        "honest": asked.honest,
        "noise_messages": asked.noise_messages,
        "noise_events": asked.noise_events,
    }
    if curve is not None:
        written = [(x, one.as_written()) for x, one in curve]
        out["profile"] = [[x, one.lower, one.upper] for x, one in written]
    return out


def _facts(
    found: Delta, asked: _Asked, verdict: Verdict | None, plot: Path | None
) -> Iterator[Fact]:
    from paramsearch.parameters.honest_fraction import in_words as fraction_in_words
    from paramsearch.parameters.words import PREMISE, changes_in_words

    mechanism, releases = asked.profile.mechanism, asked.profile.releases
    lower, upper = found.enclosure.lower, found.enclosure.upper
    yield "eps", exactly(found.eps)
    if found.exact:
        yield "delta", f"between {at_least(lower)} and {at_most(upper)}"
    else:
        yield "delta", f"at most {at_most(upper)} (more atoms than values: upper bound only)"
    label = "worst pair" if asked.pair is None else "pair"
    label = "worst sequence" if found.worst_sequence else label
    yield label, in_words(found.worst_change, found.worst_sequence)
    if len(found.changes) > 1:
        kind = f"changes of vectors of dimension {mechanism.dimension:,} with one value in"
        kind = kind if mechanism.dimension > 1 else "ordered pairs of"
        if asked.profile.adjacency == ZERO_OUT:
            kind = "changes between none and a value in"
        yield "pairs", f"all {len(found.changes):,} {kind} 0..{mechanism.max_value}"
    words = changes_in_words(
        releases,
        same_change=asked.profile.same_change,
        adjacency=asked.profile.adjacency,
        rounded=asked.rounded,
    )
    if releases > 1:
        yield "releases", words
    elif asked.profile.adjacency != SUBSTITUTION:
        yield "adjacency", words
    if asked.honest < 1:
        part = fraction_in_words(asked.honest, asked.proved_for)
        yield "honest", f"{part} of the users adding noise ({PREMISE})"
    yield (
        "messages",
        f"{asked.noise_messages:,.1f} noise messages over all users, in {asked.noise_events:,.1f} "
        f"events; {bits_per_message(asked.symbols)} bits each ({asked.symbols:,} symbols)",
    )
    if asked.delta is not None and verdict is not None:
        told = {"certified": "holds", "undecided": "undecided; a smaller --gap may decide it"}
        answer = told.get(verdict, verdict)
        yield "claim", f"({exactly(found.eps)}, {asked.delta!r}): {answer}"
    if not found.met:
        yield "note", f"a relative gap of {asked.gap:g} was out of reach", "yellow"
    if plot is not None:
        yield "plot", str(plot)
