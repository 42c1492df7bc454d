"""What an interrupt of a search would do at the moment, for whoever receives the signal."""

from __future__ import annotations

from collections.abc import Callable


class Interruption:
    """The consequence of an interrupt of ``generate``, in words, while it runs.

    An interrupt is an exception, which the search sees when its threads have ended.  Whoever
    handles the signal can say at once what will happen.

    >>> print(Interruption().consequence())
    stopping; nothing was found yet that could be certified
    """

    def __init__(self) -> None:
        self._words: Callable[[], str] | None = None

    def consequence(self) -> str:
        """Return what an interrupt does now."""
        found = "" if self._words is None else self._words()
        return f"stopping; {found or 'nothing was found yet that could be certified'}"

    def becomes(self, words: Callable[[], str]) -> None:
        """Set what an interrupt does from now on; an empty text means that nothing was found."""
        self._words = words
