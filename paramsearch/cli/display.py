"""What people see: facts on stdout, a spinner on stderr where there is a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from fractions import Fraction
from typing import TYPE_CHECKING

from accounting.base.enclosure import at_least, exactly
from paramsearch.parameters.honest_fraction import claimed_fraction, in_words

if TYPE_CHECKING:
    from accounting.proof.prove import Proof
    from paramsearch.parameters.parameter_file import ParameterFile

Fact = tuple[str, str] | tuple[str, str, str]
"""A label, a text, and a style if it has one."""


def change_in_words(pair: Sequence[int]) -> str:
    """What one user changes."""
    if len(pair) == 2:
        return f"input {pair[0]:,} becomes {pair[1]:,}"
    return f"the value {pair[0]:,} of one coordinate becomes {pair[3]:,} of another"


def worst_in_words(pair: Sequence[int], sequence: Iterable[tuple[Sequence[int], int]]) -> str:
    """The change that attains a lower bound, or the changes in several releases."""
    made = [
        change_in_words(change) + (f" in {times:,} releases" if times > 1 else "")
        for change, times in sequence
    ]
    return ", then ".join(made) or change_in_words(pair)


def worst_case(proof: Proof, *, any_sequence: bool) -> str:
    """What attains the lower bound of a proof: a change, a fixed sequence of them, or one that is
    chosen release after release; then also the fixed one that is worst, with what that attains."""
    fixed = worst_in_words(proof.worst_pair, proof.worst_sequence)
    if not any_sequence or (proof.worst_sequence and proof.sequence_lower >= proof.enclosure.lower):
        return fixed
    words = (
        "every change chosen by what was published before; first "
        f"{change_in_words(proof.worst_pair)}"
    )
    if proof.worst_sequence:
        words += f" (fixed in advance: {fixed}, delta at least {at_least(proof.sequence_lower)})"
    return words


def releases_in_words(releases: int, *, same_change: bool) -> str:
    """For which changes several releases are covered."""
    if same_change:
        return (
            f"{releases:,} releases together, only if the user makes the same change in every one"
        )
    return f"{releases:,} releases together, however the user's inputs change in each"


def claim(
    *,
    eps: float,
    delta: float,
    releases: int,
    same_change: bool = False,
    honest: float,
    proved_for: Fraction,
    dimension: int,
) -> str:
    """What is guaranteed, in words."""
    text = f"({exactly(eps)}, {delta!r}) for one changed input"
    if releases > 1:
        text = f"({exactly(eps)}, {delta!r}) for "
        text += releases_in_words(releases, same_change=same_change)
    if dimension > 1:
        text += f", a vector of dimension {dimension:,} with at most one value"
    if honest < 1:
        text += f", {in_words(honest, proved_for)} of the users adding noise"
    return text


def claimed(file: ParameterFile) -> str:
    """What a file guarantees, in words."""
    problem = file.problem
    return claim(
        eps=problem.eps,
        delta=problem.delta,
        releases=problem.releases,
        same_change=problem.same_change,
        honest=problem.honest,
        proved_for=claimed_fraction(file),
        dimension=file.dimension,
    )


def error_of(file: ParameterFile) -> str:
    """The error of a file, in words."""
    what = "the sum" if file.dimension == 1 else "each coordinate"
    return (
        f"RMSE {file.error.rmse:.6g} of {what}, {file.error.rmse_over_central:.4g} times the "
        "central one at eps"
    )


def show(facts: Iterable[Fact]) -> None:
    """A table of facts, wrapped on a terminal and one line each elsewhere.

    Texts are shown as they are: brackets in a file's name are not markup.
    """
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console()
    rows = [tuple(fact) for fact in facts]
    if not console.is_terminal:
        width = max(len(row[0]) for row in rows)
        print("\n".join(f"{row[0]:{width}}  {row[1]}" for row in rows))
        return
    table = Table(show_header=False, box=None, pad_edge=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for label, text, *style in rows:
        table.add_row(label, Text(text, style=style[0] if style else ""))
    with console.capture() as captured:
        console.print(table)
    # printed at once, so that a closed pipe is met where the command line handles it
    print(captured.get(), end="")


@contextmanager
def progress(what: str) -> Iterator[Callable[[str], None]]:
    """A spinner with the latest report; silence where stderr is no terminal."""
    from rich.console import Console

    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda _: None
        return
    with console.status(what) as status:
        yield lambda text: status.update(f"{what}: {text}")
