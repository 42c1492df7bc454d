"""``paramsearch analyze``: the estimate from the messages of all users."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from accounting.base.enclosure import counted
from accounting.base.errors import InvalidParameter
from accounting.base.progress import Progress
from accounting.base.validation import whole
from paramsearch.cli import options
from paramsearch.cli.output import Fact, print_json, progress, show
from paramsearch.cli.running.certificate import warn_uncertified
from paramsearch.cli.running.real_range import real_range

if TYPE_CHECKING:
    from paramsearch.deploy import Analyzer, Estimate
    from paramsearch.parameters.parameter_file import ParameterFile

_SHOWN = 10
"""Number of coordinates that are shown to people, the largest ones."""


def analyze(
    file: options.CertifiedFile,
    messages: Annotated[
        list[Path] | None,
        typer.Argument(
            help="Text, CSV, Parquet or Arrow files of symbols, or packed ones with --packed; by "
            "default standard input."
        ),
    ] = None,
    packed: Annotated[
        list[int] | None,
        typer.Option(
            help="The messages are packed into bits, as `Codec.pack` does it, and this is their "
            "number, which the bytes do not say; once for each file.",
            metavar="N",
        ),
    ] = None,
    users: options.Participants = None,
    low: options.Low = None,
    high: options.High = None,
    confidence: Annotated[float, typer.Option(help="Confidence level of the interval.")] = 0.95,
    strict: Annotated[
        bool,
        typer.Option(
            "--strict",
            help="Fail on an entry that is not a message, and on every implausible count.",
        ),
    ] = False,
    allow_odd: Annotated[
        bool,
        typer.Option(
            "--allow-odd",
            help="Estimate even if the counts of the messages, or their sum, say that they were "
            "made with another file, or by more users.",
        ),
    ] = False,
    allow_few: options.AllowFew = False,
    as_json: options.AsJson = False,
) -> None:
    """Estimate the sum from the messages of all users, in one pass and constant memory.

    Fewer messages than the users of the file send are an error, since their noise protects the
    values; so are messages that were hardly made with this file, and a file that is mostly
    something other than messages.
    """
    from paramsearch.certification.stated_problem import StatedProblem
    from paramsearch.deploy import Analyzer
    from paramsearch.parameters.parameter_file import load

    sources = messages or [Path("-")]
    if packed and len(packed) != len(sources):
        raise InvalidParameter(
            f"{counted(len(sources), 'file')} of packed messages need as many --packed N, not "
            f"{len(packed)}: give the number of messages of each"
        )
    counts = [whole("packed", count, least=0) for count in packed or ()]
    parameters = load(file)
    low, high = real_range(parameters, low, high)
    analyzer = Analyzer(
        parameters, users=users, low=low, high=high, strict=strict, allow_few=allow_few
    )
    for source in sources:
        if str(source) != "-" and (not source.exists() or source.is_dir()):
            raise InvalidParameter(f"there is no file {source}")
    certified = warn_uncertified(parameters)
    with progress("analyzing") as say:
        for source, count in zip_longest(sources, counts):
            _read(analyzer, source, count, say)
    found = analyzer.result(confidence)
    unlike = analyzer.unlike_file()
    if unlike is not None and not allow_odd:
        raise InvalidParameter(
            f"{unlike}  The estimate would mean nothing: analyze them with the file that they were "
            "made with, and say with --users if more than n took part; --allow-odd goes on anyway"
        )
    odd = analyzer.implausible()
    if strict and odd is not None:
        raise InvalidParameter(odd)
    if as_json:
        problem = StatedProblem.of(parameters).as_json()
        print_json({"problem": problem, **_answer(found), "certified": certified})
    else:
        show(_facts(found, _assumption(parameters) if users is None else None))


def _read(analyzer: Analyzer, path: Path, packed: int | None, say: Progress) -> None:
    """Add all messages of one file, which may be packed; most of its entries must be messages."""
    from paramsearch.deploy.analyzer import NotMessages
    from paramsearch.deploy.message_files import packed_portions, portions

    read, rejected = analyzer.messages, analyzer.rejected
    found = (
        portions(path)
        if packed is None
        else packed_portions(path, bits=analyzer.codec.bits, count=packed)
    )
    for symbols, ids in found:
        analyzer.add(symbols, ids)
        say(counted(analyzer.messages, "message"))
    source = "standard input" if str(path) == "-" else str(path)
    try:
        analyzer.require_messages(source, read=read, rejected=rejected)
    except NotMessages as error:
        if packed is not None or analyzer.messages > read:
            raise
        raise NotMessages(f"{error}  If they are packed, --packed says how many they are") from None


def _answer(found: Estimate) -> dict[str, Any]:
    one = len(found.value) == 1
    bounds = {"estimate": found.value, "lower": found.lower, "upper": found.upper}
    return {
        **{name: x.tolist()[0] if one else x.tolist() for name, x in bounds.items()},
        "standard_deviation": found.standard_deviation,
        "confidence": found.confidence,
        "messages": found.messages,
        "rejected": found.rejected,
        "duplicates": found.duplicates,
        "implausible": found.implausible,
    }


def _assumption(file: ParameterFile) -> str:
    """That everybody took part, how few would show in the messages, and what no count shows: that
    who is missing has nothing to do with the noise."""
    from accounting.model.laws.noise import BURST
    from paramsearch.deploy.participation import noticed_below
    from paramsearch.parameters.words import PREMISE

    n = file.problem.n
    few = noticed_below(file, n)
    shown = f"show it only below about {few:,}" if few else "do not show it"
    later = (
        ", and with bursts missing users are usually noticed later" if file.noise == BURST else ""
    )
    return (
        f"all {n:,} are assumed to have taken part; --users says how many did: the messages "
        f"{shown}{later}; {PREMISE}"
    )


def _facts(found: Estimate, assumption: str | None) -> Iterator[Fact]:
    import numpy as np

    if found.implausible is not None:
        yield "warning", found.implausible, "yellow"
    order = np.argsort(-found.value, kind="stable")[:_SHOWN]
    for i in order.tolist():
        name = "estimate" if len(found.value) == 1 else f"[{i}]"
        yield (
            name,
            f"{found.value[i]:,.10g}, between {found.lower[i]:,.10g} and {found.upper[i]:,.10g} "
            f"with probability {found.confidence:g}",
        )
    if len(found.value) > _SHOWN:
        yield "", f"{len(found.value) - _SHOWN:,} smaller coordinates are in --json"
    yield "noise", f"standard deviation {found.standard_deviation:.6g}"
    yield "messages", f"{found.messages:,}"
    if assumption is not None:
        yield "users", assumption
    if found.rejected:
        yield "rejected", f"{found.rejected:,} that are not symbols of this file", "yellow"
    if found.duplicates:
        yield (
            "duplicates",
            f"{found.duplicates:,} left out: their id came before",
            "yellow",
        )
