"""The program on a terminal of 80 columns."""

from __future__ import annotations

import os
import pty
import re
import subprocess
from typing import Literal

from program import command

_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")


def on_terminal(*arguments: object, stream: Literal["stdout", "stderr"] = "stdout") -> str:
    """What the program writes to one stream that is a terminal, without colours."""
    ours, theirs = pty.openpty()
    other = "stderr" if stream == "stdout" else "stdout"
    running = subprocess.Popen(
        command(*arguments),
        stdin=subprocess.DEVNULL,
        env={**os.environ, "COLUMNS": "80", "TERM": "xterm"},
        **{stream: theirs, other: subprocess.DEVNULL},  # type: ignore[call-overload]  # names
    )
    os.close(theirs)
    parts = []
    while True:
        try:
            part = os.read(ours, 65536)
        except OSError:  # what Linux says at the end
            break
        if not part:
            break
        parts.append(part)
    os.close(ours)
    running.wait()
    return _ESCAPES.sub("", b"".join(parts).decode()).replace("\r\n", "\n")
