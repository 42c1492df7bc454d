"""What people see: facts on stdout, a spinner on stderr where there is a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from accounting.base.progress import Progress, silent

Fact = tuple[str, str] | tuple[str, str, str]
"""A label, a text, and a style if it has one."""


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
def progress(what: str) -> Iterator[Progress]:
    """A spinner with the latest report; silence where stderr is no terminal."""
    from rich.console import Console

    console = Console(stderr=True)
    if not console.is_terminal:
        yield silent
        return
    with console.status(what) as status:
        yield lambda text: status.update(f"{what}: {text}")
