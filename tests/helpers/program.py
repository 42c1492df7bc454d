"""The program ``paramsearch`` in a process of its own."""

from __future__ import annotations

import subprocess
import sys


def command(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "paramsearch", *map(str, arguments)]


def run(
    *arguments: object, stdin: str = "", timeout: float = 600
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(*arguments),
        input=stdin,
        capture_output=True,
        text=True,
        check=False,
        timeout=timeout,
    )
