"""The output of commands: facts for people, JSON for machines, progress on stderr, and files.

A reader that is gone (``paramsearch audit FILE | head -1``) changes nothing: the exit code is that
of the command.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import textwrap
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import zip_longest
from pathlib import Path
from typing import Any

from accounting.base.errors import InvalidParameter
from accounting.base.progress import Progress

Fact = tuple[str, str] | tuple[str, str, str]
"""A label, a text, and optionally a style."""


_SECONDS_PER_LINE = 30.0
"""Time between two lines of progress where stderr is not a terminal."""
_GAP = 2
"""Spaces between two columns of a table."""
_NARROWEST = 12
"""Narrowest column of texts on a small terminal."""
_NO_BREAK = "\N{NO-BREAK SPACE}"
COMMAND = re.compile(r"paramsearch [a-z-]+( --?[a-z][a-z-]*( [^\s;,-][^\s;,]*)?)+")
"""A command with options, in a text."""
_answered = False
"""Whether an answer was printed."""


def answered() -> bool:
    """Tell whether an answer was printed, so that a failure must not print another one."""
    return _answered


def write(text: str) -> None:
    """Print a part of the answer on stdout."""
    global _answered  # noqa: PLW0603 - a property of the process, as stdout is
    _answered = True
    try:
        print(text, end="", flush=True)
    except BrokenPipeError:
        ignore_stdout()


def write_lines(lines: Iterable[str]) -> None:
    """Print lines, wrapped between words on a terminal."""
    from rich.console import Console

    console = Console()
    for line in lines:
        parts = wrapped(line, console.width) if console.is_terminal else [line]
        write("".join(f"{part}\n" for part in parts))


def wrapped(text: str, width: int) -> list[str]:
    """The text in lines of at most this width.

    Words are not broken, and neither are commands: a terminal breaks what is too long for a line
    without spoiling its copies.
    """
    whole = COMMAND.sub(lambda found: found.group().replace(" ", _NO_BREAK), text)
    lines = textwrap.wrap(whole, width, break_long_words=False, break_on_hyphens=False)
    return [line.replace(_NO_BREAK, " ") for line in lines]


def ignore_stdout() -> None:
    """Discard what is printed from now on, and what is still in a buffer."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def show(facts: Iterable[Fact]) -> None:
    """Print a table of facts, wrapped on a terminal and one line each elsewhere.

    Texts are shown as they are: brackets in a file's name are not markup.
    """
    from rich.console import Console
    from rich.text import Text

    console = Console()
    rows = [tuple(fact) for fact in facts]
    width = max(len(row[0]) for row in rows)
    if not console.is_terminal:
        write("".join(f"{row[0]:{width}}  {row[1]}\n" for row in rows))
        return
    with console.capture() as captured:
        for label, text, *style in rows:
            for i, line in enumerate(wrapped(text, console.width - width - _GAP)):
                shown = Text(line, style=style[0] if style else "")
                before = Text(f"{label if i == 0 else '':{width + _GAP}}", style="bold")
                console.print(before + shown, soft_wrap=True)
    write(captured.get())  # in one piece: rich does not expect a closed pipe


class TextTable:
    """A table with a text in its first and last columns and numbers between them.

    It may be printed in parts, whose columns have the widths of the first part.  On a terminal the
    texts are wrapped between words; elsewhere every row is one line.
    """

    def __init__(self, heads: Sequence[str], *, widths: Sequence[int] = ()) -> None:
        """``widths`` are the least of the first columns, for parts that come later."""
        from rich.console import Console

        console = Console()
        self.heads, self.least = heads, widths
        self.widths: list[int] = []
        self.room = console.width if console.is_terminal else None

    def write(self, rows: Sequence[Sequence[str]]) -> None:
        """Print rows, the first time below the heads."""
        if not self.widths:
            rows = [self.heads, *rows]
            self.widths = self._fitting(rows)
        write("".join(map(self._lines, rows)))

    def _fitting(self, rows: Sequence[Sequence[str]]) -> list[int]:
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        for i, least in enumerate(self.least):
            widths[i] = max(widths[i], least)
        if self.room is not None and (spare := self.room - sum(widths) - _GAP * len(widths)) < 0:
            texts = widths[0] + widths[-1] + spare  # what is left for both
            widths[0] = max(_NARROWEST, min(widths[0], texts // 2))
            widths[-1] = max(_NARROWEST, texts - widths[0])
        return widths

    def _lines(self, row: Sequence[str]) -> str:
        if self.room is None:
            cells = [[cell] for cell in row]
        else:
            cells = [wrapped(text, width) for text, width in zip(row, self.widths, strict=True)]
        lines = []
        last = len(row) - 1
        for parts in zip_longest(*cells, fillvalue=""):
            padded = [
                part.rjust(width) if 0 < i < last else part.ljust(width)
                for i, (part, width) in enumerate(zip(parts, self.widths, strict=True))
            ]
            lines.append((" " * _GAP).join(padded).rstrip() + "\n")
        return "".join(lines)


def print_json(answer: dict[str, Any]) -> None:
    """Print one JSON object on one line; it has no NaN and no infinity."""
    import json

    write(json.dumps(answer, allow_nan=False) + "\n")


@contextmanager
def progress(what: str) -> Iterator[Progress]:
    """Report on stderr: a spinner with the latest report, or a line now and then if stderr is not a
    terminal."""
    from rich.console import Console

    console, begun = Console(stderr=True), time.monotonic()
    if not console.is_terminal:
        yield _lines(what, begun)
        return
    spinner = "dots" if console.encoding.lower().startswith("utf") else "line"
    with console.status(what, spinner=spinner) as status:
        yield lambda text: status.update(f"{what}: {text}, {elapsed(time.monotonic() - begun)}")


def _lines(what: str, begun: float) -> Progress:
    """Prints a report as a line if the latest line is old enough."""
    latest = begun

    def report(text: str) -> None:
        nonlocal latest
        now = time.monotonic()
        if now - latest >= _SECONDS_PER_LINE:
            latest = now
            note(f"{what}: {text}, {elapsed(now - begun)}")

    return report


def elapsed(seconds: float) -> str:
    """A time as people say it.

    >>> elapsed(9.7), elapsed(100), elapsed(7300)
    ('9 s', '1m40', '2h01')
    """
    whole = int(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60}m{whole % 60:02}"
    return f"{whole // 3600}h{whole % 3600 // 60:02}"


def note(text: str) -> None:
    """One line on stderr that stays, also where that is not a terminal."""
    with suppress(OSError):  # a closed stderr is no reason to stop
        if sys.stderr.isatty():
            text = "\n".join(wrapped(text, shutil.get_terminal_size().columns))
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


def check_folder(path: Path) -> None:
    """Refuse a folder for output that cannot be made."""
    if os.path.exists(path) and not os.path.isdir(path):
        raise InvalidParameter(f"--output {path}: this is not a folder")
    parent = next(folder for folder in (path, *path.absolute().parents) if os.path.exists(folder))
    if not os.path.isdir(parent) or not os.access(parent, os.W_OK):
        raise InvalidParameter(f"--output {path}: the folder {parent} cannot be written to")


def check_destination(output: Path | None, as_json: bool) -> None:
    """Refuse to make a parameter file that would go nowhere."""
    if output is not None:
        check_writable(output, "--output")
    elif not as_json:
        raise InvalidParameter("no destination: give --output FILE, or --json for standard output")
