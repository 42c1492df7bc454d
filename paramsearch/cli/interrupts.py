"""Signals that end a command in order: what is found so far is kept."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType

from paramsearch.cli.exit_codes import ExitCode
from paramsearch.cli.output import note

_ENDING = tuple(
    kind
    for name in ("SIGTERM", "SIGHUP")  # Windows has no SIGHUP
    if (kind := getattr(signal, name, None)) is not None
)
"""The signals of batch systems and closed terminals."""


class Interrupts:
    """The signals that may end a command, and the one that did."""

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


@contextmanager
def acknowledged(consequence: Callable[[], str]) -> Iterator[None]:
    """While this runs, say on standard error what a signal does, before it does that: the threads
    of a search may take seconds to end.

    Args:
        consequence: Returns the text; called when a signal arrives.
    """
    usual = {kind: signal.getsignal(kind) for kind in (signal.SIGINT, *_ENDING)}

    def handle(kind: int, frame: FrameType | None) -> None:
        with suppress(RuntimeError):  # the signal came in the middle of another line
            note(consequence())
        handler = usual[signal.Signals(kind)]
        if callable(handler):
            handler(kind, frame)

    handled = [kind for kind, handler in usual.items() if callable(handler)]  # others are ignored
    for kind in handled:
        signal.signal(kind, handle)
    try:
        yield
    finally:
        for kind in handled:
            signal.signal(kind, usual[kind])
