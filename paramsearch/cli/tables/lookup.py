"""``paramsearch lookup``: the cheapest file of a table that serves a request."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from accounting.base.enclosure import at_most, exactly
from accounting.model.change import SUBSTITUTION
from paramsearch.cli import options
from paramsearch.cli.output import Fact, check_writable, print_json, show

if TYPE_CHECKING:
    from paramsearch.tables.lookup import Found

_ASKED = (
    "n",
    "eps",
    "delta",
    "max_value",
    "adjacency",
    "max_rmse",
    "max_error_ratio",
    "objective",
    "noise",
)
"""What a request can say; files of tables are for one release of numbers."""
_SHOWN = 4
"""Number of files with less error, and of cheaper ones, that are mentioned."""
_SEARCHES = ("generate", "generate-sparse", "generate-real")
"""Commands that make what no table has."""


def lookup(
    n: options.Users,
    eps: options.Eps,
    delta: options.Delta,
    max_value: options.MaxValue,
    table: options.TableFolder = None,
    max_rmse: Annotated[
        float | None, typer.Option(help="Allow at most this error of the sum.")
    ] = None,
    max_error_ratio: options.MaxErrorRatio = None,
    objective: options.Objective = "messages",
    adjacency: options.Adjacency = "substitution",
    noise: options.AnyNoise = None,
    output: options.Output = None,
    as_json: options.AsJson = False,
) -> None:
    """Find the cheapest certified file of a table that serves a request, for any number of users.

    A file for a smaller eps or delta or for larger inputs also serves, and one for substitution
    serves zero-out. Files are for one release. Noise in bursts takes a client that knows format 5.
    """
    from paramsearch.parameters.parameter_file import save
    from paramsearch.tables.lookup import Table
    from paramsearch.tables.query import Query

    query = Query(
        n=n,
        eps=eps,
        delta=delta,
        max_value=max_value,
        max_rmse=max_rmse,
        max_error_ratio=max_error_ratio,
        objective=objective,
        adjacency=adjacency,
        noise=noise,
    )
    if output is not None:
        check_writable(output, "--output")
    found = Table.open(table).lookup(query)
    file = found.file  # read and checked now, so that a damaged table is not an answer
    if output is not None:
        save(file, output)
    if as_json:
        print_json(_answer(found, output))
    else:
        show(_facts(found, output))


def _answer(found: Found, output: Path | None) -> dict[str, Any]:
    from paramsearch.certification.remarks import cost_remark, warnings_about
    from paramsearch.certification.stated_problem import StatedProblem
    from paramsearch.parameters.expected_cost import ExpectedCost

    expected = ExpectedCost.of_file(found.file)
    return {
        "problem": StatedProblem.of(found.file).as_json(),
        "warnings": warnings_about(found.file),
        "remark": cost_remark(expected),
        "request": {name: getattr(found.query, name) for name in _ASKED},
        "exact": found.exact,
        "table_file": str(found.table.path / found.row.file),
        "table_version": found.row.version,
        "output": None if output is None else str(output),
        "sha256": found.file.sha256,
        "found": {key: value for key, value in asdict(found.row).items() if key != "sha256"},
        "error_ratio": found.error_ratio,
        **expected.events_as_json(),
        "less_error": [asdict(row) for row in found.others],
        "cheaper": [asdict(row) for row in found.cheaper],
        "fewer_bits": None if found.fewer_bits is None else asdict(found.fewer_bits),
        "generate": found.command(),
    }


def _facts(found: Found, output: Path | None) -> Iterator[Fact]:
    from paramsearch.certification.remarks import cost_remark, warnings_about
    from paramsearch.parameters.expected_cost import ExpectedCost
    from paramsearch.parameters.words import changes_in_words, noise_in_words

    row = found.row
    made = f"({exactly(row.eps)}, {row.delta!r}) for one release of inputs up to {row.max_value:,}"
    if row.adjacency != SUBSTITUTION:
        words = changes_in_words(1, same_change=False, adjacency=row.adjacency)
        made += f", {words}"
    yield "certified", made, "bold green"
    yield "request", _distance(found)
    for warning in warnings_about(found.file):
        yield "warning", warning, "yellow"
    yield "delta", f"at most {at_most(row.delta_upper)} at eps = {exactly(row.eps)}"
    yield (
        "cost",
        f"{row.noise_messages:,.1f} noise messages in all; {row.messages_per_user:.6g} messages "
        f"and {row.bits_per_user:.6g} bits per user (n = {row.n:,})",
    )
    expected = ExpectedCost.of_file(found.file)
    yield "events", expected.events_in_words()
    if (remark := cost_remark(expected)) is not None:
        yield "remark", remark
    if (shorter := found.fewer_bits) is not None:
        yield (
            "bits",
            f"--objective bits costs {shorter.bits_per_user:.6g} bits per user: "
            f"{shorter.noise_messages:,.1f} noise messages, more but shorter",
        )
    yield (
        "error",
        f"RMSE {row.rmse:.6g} of the sum, {found.error_ratio:.4g} times the central one at eps = "
        f"{exactly(found.query.eps)}",
    )
    if row.noise == "burst":
        yield "noise", f"{noise_in_words(found.file)}: format 5, which not every client knows"
    for label, others in (("less error", found.others), ("cheaper", found.cheaper[::-1])):
        for other in others[:_SHOWN]:
            ratio = other.rmse / found.query.central_rmse
            yield (
                label,
                f"--max-rmse {at_most(other.rmse)}: {other.noise_messages:,.1f} noise messages, "
                f"{ratio:.5g} times the central error",
            )
    if not found.exact and (command := found.command()) is not None:
        yield "exact file", f"{command} -o FILE"
    version = "" if row.version is None else f", version {row.version} of the table"
    yield "from", f"{found.table.path / row.file}{version}"
    if output is None:
        yield "note", "add -o FILE for the parameter file; paramsearch audit FILE proves it again"
    else:
        yield "file", str(output)


def _distance(found: Found) -> str:
    """Say in which ways the file is stricter than the request."""
    row, query = found.row, found.query
    parts = []
    if row.eps < query.eps:
        parts.append(f"eps {exactly(row.eps)} for {exactly(query.eps)}")
    if row.delta < query.delta:
        parts.append(f"delta {exactly(row.delta)} for {exactly(query.delta)}")
    if row.max_value > query.max_value:
        parts.append(f"max_value {row.max_value:,} for {query.max_value:,}")
    if row.adjacency != query.adjacency:
        parts.append(f"{row.adjacency} for {query.adjacency}, which it covers")
    return "stricter than asked: " + ", ".join(parts) if parts else "exactly what was asked for"


def search_instead(option: str, words: Sequence[str], commands: Mapping[str, Any]) -> str | None:
    """Return the command that has an option that ``lookup`` lacks, with what else was asked for.

    Args:
        option: The option, such as --releases.
        words: The arguments of ``lookup`` as they were typed.
        commands: The commands of the program by their names.
    """
    takes_value = {
        name: {
            opt: not getattr(param, "is_flag", False)
            for param in commands[name].params
            for opt in param.opts
        }
        for name in ("lookup", *_SEARCHES)
    }
    search = next((name for name in _SEARCHES if option in takes_value[name]), None)
    if search is None:
        return None
    kept: list[str] = []
    rest = iter(words)
    for word in rest:
        name, _, given = word.partition("=")
        known = takes_value[search].get(name, takes_value["lookup"].get(name))
        both = [word, *([next(rest, "...")] if known and not given else [])]
        kept += both if name in takes_value[search] else []
    destination = [] if {"-o", "--output"} & set(kept) else ["-o", "FILE"]
    return f"paramsearch {search} {shlex.join([*kept, *destination])}"
