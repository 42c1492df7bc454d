"""Running what a Markdown document shows: shell commands with their output, Python, and files.

- ``console`` blocks: every line that begins with ``$ `` is a command, and the lines up to the next
  one are what it prints on both streams.  ``…`` stands for any text, and alone on a line for any
  number of lines.  ``$ echo $?`` shows the exit code of the command before.
  Lines of progress, which a slow machine prints, are left out.
- ``python`` blocks run in one scope for the whole document.
- A block of another kind with a name, such as ``toml grid.toml``, is a file of that name.
- ``sh`` blocks are for other machines and are not run here.

Everything happens in one folder for each document, in the order of the document.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from places import ROOT

PROGRESS = re.compile(r"^[a-z-]+: .*, (?:\d+ s|\d+[mh]\d\d)(?:\n|\Z)", re.MULTILINE)
BLOCK = re.compile(r"^```(\w+) ?([^\n]*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True)
class Block:
    kind: str
    name: str
    text: str


@dataclass(frozen=True)
class Command:
    """A command of a console block and the output that the document shows."""

    line: str
    shown: str


def blocks(document: Path) -> list[Block]:
    return [Block(*found) for found in BLOCK.findall(document.read_text(encoding="utf-8"))]


def commands(block: Block) -> Iterator[Command]:
    for part in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
        line, _, shown = part.partition("\n")
        while line.endswith("\\"):
            more, _, shown = shown.partition("\n")
            line = line[:-1] + more
        yield Command(line, shown.rstrip("\n"))


def matches(shown: str, printed: str) -> bool:
    """Whether the output is what the document shows."""
    pattern = ""
    for line in shown.splitlines():
        if line.strip() == "…":
            pattern += r"(?:[^\n]*\n)*?"
        else:
            pattern += re.escape(line.rstrip()).replace("…", "[^\n]*") + "[ ]*\n"
    return re.fullmatch(pattern, printed + "\n" if printed else "") is not None


def run_document(document: Path, folder: Path) -> None:
    """Run everything in a document; assertions name what is not as shown."""
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "COLUMNS": "200",
    }
    (folder / "tests").symlink_to(ROOT / "tests")
    (folder / "paramsearch").symlink_to(ROOT / "paramsearch")
    scope: dict[str, Any] = {"__name__": "document"}
    code = 0
    for block in blocks(document):
        if block.kind == "python":
            exec(compile(block.text, str(document), "exec"), scope)
        elif block.kind == "console":
            for command in commands(block):
                if command.line == "echo $?":
                    printed = str(code)
                else:
                    done = subprocess.run(
                        ["bash", "-c", command.line],
                        cwd=folder,
                        env=environment,
                        stdout=subprocess.PIPE,
                        stderr=subprocess.STDOUT,
                        text=True,
                        check=False,
                    )
                    code = done.returncode
                    printed = PROGRESS.sub("", done.stdout).rstrip("\n")
                assert matches(command.shown, printed), (
                    f"{document.name}: {command.line}\n--- printed:\n{printed}\n--- shown:\n"
                    f"{command.shown}"
                )
        elif block.name:
            (folder / block.name).write_text(block.text, encoding="utf-8")
        else:
            assert block.kind in {"sh", "text"}, f"{document.name}: a block of kind {block.kind}"
