"""What commands print: facts for people, JSON for machines, progress on stderr, and files."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from accounting.base.errors import AccountingError, InvalidParameter
from accounting.base.progress import Progress, silent

Fact = tuple[str, str] | tuple[str, str, str]
"""A label, a text, and optionally a style."""


def show(facts: Iterable[Fact]) -> None:
    """Print a table of facts, wrapped on a terminal and one line each elsewhere.

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
    # printed in one piece, so that main() meets a closed pipe and rich does not
    print(captured.get(), end="")


def print_json(answer: Any) -> None:
    """Print one JSON value on one line; it has no NaN and no infinity."""
    import json

    print(json.dumps(answer, allow_nan=False))


@contextmanager
def errors_as_json(as_json: bool) -> Iterator[None]:
    """With ``as_json`` an error is also printed, as ``{"error": {"kind": ..., "message": ...}}``.

    The exit code and the line on stderr stay those of the error.
    """
    try:
        yield
    except AccountingError as error:
        if as_json:
            print_json({"error": {"kind": type(error).__name__, "message": str(error)}})
        raise


@contextmanager
def progress(what: str) -> Iterator[Progress]:
    """Show a spinner with the latest report; nothing if stderr is not a terminal."""
    from rich.console import Console

    console = Console(stderr=True)
    if not console.is_terminal:
        yield silent
        return
    with console.status(what) as status:
        yield lambda text: status.update(f"{what}: {text}")


def note(text: str) -> None:
    """One line on stderr that stays, also where that is not a terminal."""
    print(text, file=sys.stderr, flush=True)


def check_writable(path: Path, option: str, suffixes: tuple[str, ...] = ()) -> None:
    """Refuse a destination before any work is done for it.

    With os.path, since pathlib raises for names that are too long.
    """
    if suffixes and path.suffix.lower() not in suffixes:
        raise InvalidParameter(f"{option} {path}: the name must end in " + " or ".join(suffixes))
    if not os.path.isdir(path.parent):
        raise InvalidParameter(f"{option} {path}: there is no folder {path.parent}")
    if os.path.exists(path) and not os.path.isfile(path):
        raise InvalidParameter(f"{option} {path}: this is not a regular file")
    if not os.access(path.parent, os.W_OK):
        raise InvalidParameter(f"{option} {path}: the folder {path.parent} cannot be written to")


def check_destination(output: Path | None, as_json: bool) -> None:
    """Refuse to make a parameter file that would go nowhere."""
    if output is not None:
        check_writable(output, "--output")
    elif not as_json:
        raise InvalidParameter("no destination: give --output FILE, or --json for standard output")
