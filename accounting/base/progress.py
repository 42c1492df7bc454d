"""How long computations report what they are doing."""

from __future__ import annotations

from collections.abc import Callable

Progress = Callable[[str], None]
"""Called now and then with one line of text; an exception it raises ends the computation."""


def silent(_: str) -> None:
    """Ignore the text."""
