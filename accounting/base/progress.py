"""Reports of long computations about what they are doing."""

from __future__ import annotations

from collections.abc import Callable

Progress = Callable[[str], None]
"""Called now and then with one line of text; an exception it raises ends the computation."""


def silent(_: str) -> None:
    """Ignore the text."""


_on_compilation: Progress = silent


def when_compiling(report: Progress) -> None:
    """Call ``report`` once, if kernels have to be compiled; it must not raise an exception."""
    global _on_compilation  # noqa: PLW0603 - a property of the process, as compiled code is
    _on_compilation = report


def compiling() -> None:
    """Report that a kernel is being compiled."""
    report = _on_compilation
    when_compiling(silent)
    report("compiling: only the first run on a machine takes this half a minute more")
