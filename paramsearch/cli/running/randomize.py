"""``paramsearch randomize``: the messages of users."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from accounting.base.enclosure import counted
from accounting.base.errors import InvalidParameter
from paramsearch.cli import options
from paramsearch.cli.output import note, print_json, write
from paramsearch.cli.running.real_range import real_range

if TYPE_CHECKING:
    from paramsearch.deploy import Randomizer

_MOST_DIGITS = 640
"""Number of digits from which on Python may refuse to read an integer."""


def randomize(
    file: options.CertifiedFile,
    value: Annotated[
        list[str],
        typer.Option(
            help="One user's value; may be repeated for several users.  Better -, which reads "
            "standard input, one user on each line and no blank ones: other users of the machine "
            "see the command line."
        ),
    ],
    coordinate: Annotated[
        list[int] | None,
        typer.Option(
            help="Vectors: the coordinate of each --value; with --value -, each line has it before "
            "the value."
        ),
    ] = None,
    low: options.Low = None,
    high: options.High = None,
    clip: Annotated[
        bool, typer.Option("--clip", help="Real values: move values outside to the nearest end.")
    ] = False,
    as_json: options.AsJson = False,
) -> None:
    """Turn a user's value into its messages: one symbol on each line.

    The noise comes from the operating system.  Send the symbols to a shuffler, which must hide
    whose they are, how many one user sends, and when.
    """
    from paramsearch.certification.stated_problem import StatedProblem
    from paramsearch.deploy import RandomizedReals, Randomizer
    from paramsearch.parameters.parameter_file import load

    parameters = load(file)
    randomizer = Randomizer(parameters)
    low, high = real_range(parameters, low, high)
    if clip and low is None and high is None:
        raise InvalidParameter("--clip is for real values, which need --low and --high")
    values, coordinates = value, coordinate or []
    from_stdin = "-" in values
    if from_stdin:
        values, coordinates = _from_stdin(values, coordinates, randomizer.codec.dimension > 1)
    if low is not None or high is not None:
        if low is None or high is None:
            raise InvalidParameter("real values need both --low and --high")
        if coordinates:
            raise InvalidParameter("--coordinate is for vectors, --low and --high for real values")
        reals = RandomizedReals(randomizer, low, high, clip)
        if parameters.problem.same_change:
            note(
                "warning: the file covers several releases only if the same integer changes in the "
                "same way in every one; real values are rounded afresh in each and not covered"
            )
        messages: Iterator[list[int]] = (reals(_number(text)) for text in values)
    else:
        messages = _randomized(randomizer, values, coordinates)
    sent: list[list[int]] = []
    try:
        for symbols in messages:
            sent.append(symbols)  # not extend: their number is that of the good lines
    except InvalidParameter as error:
        if not from_stdin:
            raise
        raise InvalidParameter(f"{_line(len(sent) + 1)}: {error}") from None
    if as_json:
        codec = randomizer.codec
        decoded = [[list(codec.message(symbol)) for symbol in symbols] for symbols in sent]
        packed = [codec.pack(symbols).hex() for symbols in sent]
        answer = {"symbols": sent, "coordinate_and_value": decoded, "packed": packed}
        print_json({"problem": StatedProblem.of(parameters).as_json(), **answer})
    else:
        write("".join(f"{symbol}\n" for symbols in sent for symbol in symbols))


def _randomized(
    randomizer: Randomizer, values: Sequence[str], coordinates: Sequence[int]
) -> Iterator[list[int]]:
    """Return the symbols of each user, for integers or for vectors."""
    if randomizer.codec.dimension == 1:
        if coordinates:
            raise InvalidParameter("--coordinate is for vectors, this file is for integers")
        return (randomizer(_integer(text)) for text in values)
    if len(coordinates) != len(values):
        raise InvalidParameter(
            f"this file is for vectors: {len(values)} values need as many --coordinate, "
            f"not {len(coordinates)}"
        )
    pairs = zip(coordinates, values, strict=True)
    return (randomizer((place, _integer(text))) for place, text in pairs)


def _from_stdin(
    values: Sequence[str], coordinates: Sequence[int], vectors: bool
) -> tuple[list[str], list[int]]:
    """Values and coordinates, one user on each line: a value, for vectors after its coordinate."""
    from paramsearch.deploy.message_files import bounded_lines, standard_input

    if len(values) > 1 or coordinates:
        raise InvalidParameter(
            "--value - takes everything from standard input: give no other --value or --coordinate"
        )
    lines = bounded_lines(standard_input(), Path("-"))
    wanted = "a coordinate and a value" if vectors else "one value"
    found: list[str] = []
    places: list[int] = []
    for number, line in enumerate(lines, 1):
        row = line.split()
        if not row:
            raise InvalidParameter(
                f"{_line(number)} is blank, so a user's value is missing: each line has {wanted}; "
                "leave out the lines of users who take no part"
            )
        if len(row) != (2 if vectors else 1):
            raise InvalidParameter(
                f"{_line(number)} has {counted(len(row), 'entry', 'entries')}, not {wanted}: "
                f"{line.strip()!r:.60}"
            )
        found.append(row[-1])
        if vectors:
            try:
                places.append(_integer(row[0], "coordinate"))
            except InvalidParameter as error:
                raise InvalidParameter(f"{_line(number)}: {error}") from None
    if not found:
        raise InvalidParameter("standard input has no value: give one on each line")
    return found, places


def _line(number: int) -> str:
    return f"line {number:,} of standard input"


def _integer(text: str, name: str = "value") -> int:
    try:
        return int(text)
    except ValueError:
        if len(text) > _MOST_DIGITS and text.strip("+-").isdecimal():
            why = "is larger than every value of a file"
        else:
            why = "is not an integer"
            why += "; real values need --low and --high" if name == "value" else ""
        raise InvalidParameter(f"{name} {text!r:.40} {why}") from None


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InvalidParameter(f"value {text!r:.40} is not a number") from None
