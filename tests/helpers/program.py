"""The program ``paramsearch`` in a process of its own.

``run`` forks the process of the tests, in which the modules are loaded already: a new interpreter
would spend most of a short command's time on imports.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from typing import IO, NoReturn

from paramsearch.cli import app, output

CRASHED = 70
"""Exit code of a command that ended with an exception, which none does."""


def command(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "paramsearch", *map(str, arguments)]


def run(
    *arguments: object, stdin: str = "", timeout: float = 600
) -> subprocess.CompletedProcess[str]:
    """What ``subprocess.run`` would return for the command."""
    words = command(*arguments)
    if not hasattr(os, "fork"):
        return subprocess.run(
            words, input=stdin, capture_output=True, text=True, check=False, timeout=timeout
        )
    with (
        tempfile.TemporaryFile("w+") as given,
        tempfile.TemporaryFile("w+") as out,
        tempfile.TemporaryFile("w+") as err,
    ):
        given.write(stdin)
        given.seek(0)
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        child = os.fork()
        if not child:
            _run_here(words[2:], given, out, err)
        code = _exit_code(child, words, timeout)
        for stream in (out, err):
            stream.seek(0)
        return subprocess.CompletedProcess(words, code, out.read(), err.read())


def _run_here(words: list[str], given: IO[str], out: IO[str], err: IO[str]) -> NoReturn:
    """The command, in a process that ends with it."""
    code = CRASHED
    try:
        for number, stream in enumerate((given, out, err)):
            os.dup2(stream.fileno(), number)
        sys.stdin = os.fdopen(0, closefd=False)
        sys.stdout = os.fdopen(1, "w", closefd=False)
        sys.stderr = os.fdopen(2, "w", buffering=1, closefd=False)
        output._answered = False  # a test may have used commands without ``run``
        warnings.resetwarnings()
        warnings.simplefilter("ignore", DeprecationWarning)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        sys.argv = words
        app.main()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 0
    except BaseException:
        traceback.print_exc()
    finally:
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        os._exit(code)


def _exit_code(child: int, words: list[str], timeout: float) -> int:
    end, pause = time.monotonic() + timeout, 0.001
    while True:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() > end:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            raise subprocess.TimeoutExpired(words, timeout)
        time.sleep(pause)
        pause = min(2 * pause, 0.05)
