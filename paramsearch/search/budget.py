"""The limits of a search: tries, seconds, and interrupts."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field


def never() -> bool:
    """Return False: never stop."""
    return False


@dataclass
class Budget:
    """The limits of one search: ``tries`` says how thorough it is; it ends after ``seconds``, or
    when ``stop`` says so.

    ``cut`` says whether anything ended early.
    """

    tries: int = 80
    seconds: float = math.inf
    begun: float = field(default_factory=time.monotonic)
    cut: bool = False
    stop: Callable[[], bool] = never

    def at(self, share: float) -> float:
        """Return the time of the monotonic clock when this share of the seconds has passed."""
        return self.begun + share * self.seconds

    def spent(self, share: float = 1.0) -> bool:
        """Tell whether this share of the seconds has passed, or the search is to stop."""
        is_spent = time.monotonic() > self.at(share) or self.stop()
        self.cut = self.cut or is_spent
        return is_spent
