"""Signals that end a command in order: what is found so far is kept."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager

from paramsearch.cli.exit_codes import ExitCode

_ENDING = tuple(
    kind
    for name in ("SIGTERM", "SIGHUP")  # Windows has no SIGHUP
    if (kind := getattr(signal, name, None)) is not None
)
"""The signals of batch systems and closed terminals."""


class Interrupts:
    """Which signal ended the command."""

    def __init__(self) -> None:
        self.terminated = False

    @property
    def code(self) -> ExitCode:
        """The exit code of an interrupted command."""
        return ExitCode.TERMINATED if self.terminated else ExitCode.INTERRUPTED

    def _interrupt(self, *_: object) -> None:
        self.terminated = True
        raise KeyboardInterrupt

    @contextmanager
    def handled(self) -> Iterator[None]:
        """While this runs, SIGTERM and SIGHUP end a command as Ctrl-C does."""
        usual = {kind: signal.signal(kind, self._interrupt) for kind in _ENDING}
        try:
            yield
        finally:
            for kind, handler in usual.items():
                signal.signal(kind, handler)
