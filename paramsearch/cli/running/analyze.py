"""``paramsearch randomize``, ``analyze`` and ``simulate``, for people and for machines.

With ``--json`` an error is an object, too: ``{"error": {"kind": ..., "message": ...}}``.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from accounting.base.errors import AccountingError, InvalidParameter
from paramsearch.cli.output import Fact, progress, show
from paramsearch.deploy import Analyzer, Estimate, RandomizedReals, Randomizer
from paramsearch.deploy.message_files import bounded_lines, portions, standard_input
from paramsearch.deploy.participation import too_few_users
from paramsearch.deploy.simulate import Comparison, Outcome, Plan, Values, Way, simulate
from paramsearch.parameters.parameter_file import load

_SHOWN = 10
"""Coordinates that a person sees."""


@contextmanager
def _answering(as_json: bool) -> Iterator[None]:
    """Whoever reads JSON gets an object, whatever the outcome; the exit code is the error's."""
    try:
        yield
    except AccountingError as error:
        if as_json:
            print(json.dumps({"error": {"kind": type(error).__name__, "message": str(error)}}))
        raise


def run_randomize(
    path: Path,
    *,
    values: Sequence[str],
    coordinates: Sequence[int],
    low: float | None,
    high: float | None,
    clip: bool,
    as_json: bool,
) -> int:
    """The symbols of each value on stdout."""
    with _answering(as_json):
        randomizer = Randomizer(load(path))
        if clip and low is None and high is None:
            raise InvalidParameter("--clip is for real values, which need --low and --high")
        if "-" in values:
            values, coordinates = _from_stdin(values, coordinates, randomizer.codec.dimension > 1)
        if low is not None or high is not None:
            if low is None or high is None:
                raise InvalidParameter("real values need both --low and --high")
            if coordinates:
                raise InvalidParameter(
                    "--coordinate is for vectors, --low and --high for real values"
                )
            reals = RandomizedReals(randomizer, low, high, clip)
            sent = [reals(_number(value)) for value in values]
        elif randomizer.codec.dimension > 1:
            if len(coordinates) != len(values):
                raise InvalidParameter(
                    f"this file is for vectors: {len(values)} values need as many --coordinate, "
                    f"not {len(coordinates)}"
                )
            pairs = zip(coordinates, values, strict=True)
            sent = [randomizer((place, _integer(value))) for place, value in pairs]
        else:
            if coordinates:
                raise InvalidParameter("--coordinate is for vectors, this file is for integers")
            sent = [randomizer(_integer(value)) for value in values]
    if as_json:
        codec = randomizer.codec
        decoded = [[list(codec.message(symbol)) for symbol in symbols] for symbols in sent]
        packed = [codec.pack(symbols).hex() for symbols in sent]
        print(json.dumps({"symbols": sent, "coordinate_and_value": decoded, "packed": packed}))
    else:
        print("".join(f"{symbol}\n" for symbols in sent for symbol in symbols), end="")
    return 0


def _from_stdin(
    values: Sequence[str], coordinates: Sequence[int], vectors: bool
) -> tuple[list[str], list[int]]:
    """One user on each line: the value, for vectors after its coordinate."""
    if len(values) > 1 or coordinates:
        raise InvalidParameter(
            "--value - takes everything from standard input: give no other --value or --coordinate"
        )
    lines = bounded_lines(standard_input(), Path("-"))
    rows = [line.split() for line in lines if line.strip()]
    width = 2 if vectors else 1
    for number, row in enumerate(rows, 1):
        if len(row) != width:
            wanted = "a coordinate and a value" if vectors else "one value"
            raise InvalidParameter(
                f"user {number} of standard input has {len(row)} entries, not {wanted}"
            )
    if not rows:
        raise InvalidParameter("standard input has no value: give one on each line")
    return [row[-1] for row in rows], [_integer(row[0]) for row in rows] if vectors else []


def _integer(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise InvalidParameter(
            f"value {text!r:.40} is not an integer; real values need --low and --high"
        ) from None


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InvalidParameter(f"value {text!r:.40} is not a number") from None


def run_analyze(
    path: Path,
    messages: Sequence[Path],
    *,
    users: int | None,
    low: float | None,
    high: float | None,
    confidence: float,
    strict: bool,
    allow_few: bool,
    as_json: bool,
) -> int:
    """The estimate on stdout."""
    with _answering(as_json):
        analyzer = Analyzer(
            load(path), users=users, low=low, high=high, strict=strict, allow_few=allow_few
        )
        for name in messages:
            if str(name) != "-" and (not name.exists() or name.is_dir()):
                raise InvalidParameter(f"there is no file {name}")
        with progress("analyzing") as say:
            for name in messages:
                _read(analyzer, name, say)
        found = analyzer.result(confidence)
        many = analyzer.too_many()
        if strict and many is not None:
            raise InvalidParameter(many)
    if as_json:
        print(json.dumps(_machine(found), allow_nan=False))
    else:
        show(_person(found))
    return 0


def _read(analyzer: Analyzer, path: Path, say: Callable[[str], None]) -> None:
    """All messages of one file, most of which have to be some."""
    read, rejected = analyzer.messages, analyzer.rejected
    for symbols, ids in portions(path):
        analyzer.add(symbols, ids)
        say(f"{analyzer.messages:,} messages")
    source = "standard input" if str(path) == "-" else str(path)
    analyzer.require_messages(source, read=read, rejected=rejected)


def _machine(found: Estimate) -> dict[str, Any]:
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


def _person(found: Estimate) -> Iterator[Fact]:
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
    if found.rejected:
        yield "rejected", f"{found.rejected:,} that are no symbols of this file", "yellow"
    if found.duplicates:
        yield "duplicates", f"{found.duplicates:,} whose id had come before, left out", "yellow"
    if found.implausible is not None:
        yield "warning", found.implausible, "yellow"


def run_simulate(
    path: Path,
    *,
    users: int | None,
    values: Values,
    runs: int,
    way: Way,
    honest: float,
    seed: int,
    allow_few: bool,
    as_json: bool,
) -> int:
    """Measured beside expected on stdout."""
    with _answering(as_json):
        file = load(path)
        count = file.problem.n if users is None else users
        plan = Plan(file, count, values, runs, seed, way, honest, allow_few)
        with progress("simulating") as say:
            outcome = simulate(plan, say)
    if as_json:
        print(json.dumps(_measured(outcome), allow_nan=False))
    else:
        show(_simulated(outcome))
    return 0


def _measured(outcome: Outcome) -> dict[str, Any]:
    def numbers(found: Comparison) -> dict[str, float]:
        return {
            "measured": found.measured,
            "expected": found.expected,
            "standard_error": found.standard_error,
        }

    plan = outcome.plan
    return {
        "users": plan.users,
        "runs": plan.runs,
        "seed": plan.seed,
        "path": plan.path,
        "values": plan.values,
        "honest": plan.honest,
        "implausible": too_few_users(plan.file, plan.noisy_users),
        "messages": numbers(outcome.messages),
        "bits_per_user": outcome.bits_per_user,
        "mse": numbers(outcome.mse),
        "errors": [run.errors.tolist() for run in outcome.runs],
    }


def _simulated(outcome: Outcome) -> Iterator[Fact]:
    plan = outcome.plan

    def compared(found: Comparison, scale: float) -> str:
        return (
            f"{found.measured / scale:.8g}, expected {found.expected / scale:.8g} "
            f"({found.deviation:+.2g} standard errors)"
        )

    yield "simulated", f"{plan.users:,} users, {plan.runs:,} runs, path {plan.path}"
    yield "messages", f"per user {compared(outcome.messages, plan.users)}"
    yield "bits", f"per user {outcome.bits_per_user:.8g}"
    mse = outcome.mse
    yield "error", f"RMSE {math.sqrt(mse.measured):.6g}, expected {math.sqrt(mse.expected):.6g}"
    yield "MSE", compared(mse, 1.0)
    few = too_few_users(plan.file, plan.noisy_users)
    if few is not None:
        yield "warning", few, "yellow"
    yield "note", "seeded: these messages protect nobody"
