"""Commands in a child process that may take little memory and little time."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

MEMORY = 6 << 30
"""Bytes of address space: libraries alone reserve more than one GiB."""
PATIENCE = 100.0
"""Seconds after which a command counts as hanging."""


def limited(
    *arguments: str | Path, memory: int = MEMORY, **options: Any
) -> subprocess.CompletedProcess[str]:
    """``paramsearch`` with these arguments; a hang is an error."""
    options.setdefault("stdin", subprocess.DEVNULL)
    return subprocess.run(
        [sys.executable, "-m", "paramsearch", *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (memory, memory)),
        env={**os.environ, **options.pop("env", {})},
        **options,
    )


def refused(done: subprocess.CompletedProcess[str]) -> str:
    """The message of a command that refused its input in one line."""
    assert (done.returncode, done.stdout) == (2, ""), (done.returncode, done.stdout, done.stderr)
    assert done.stderr.startswith("error: "), done.stderr
    assert done.stderr.count("\n") == 1
    assert "out of memory" not in done.stderr
    return done.stderr
