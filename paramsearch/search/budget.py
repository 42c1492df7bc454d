"""How long a search may take."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field


@dataclass
class Budget:
    """``tries`` says how thorough a search is, and it ends after ``seconds``.

    ``cut`` says whether anything ended early for lack of time.
    """

    tries: int = 80
    seconds: float = math.inf
    begun: float = field(default_factory=time.monotonic)
    cut: bool = False

    def at(self, share: float) -> float:
        """Time of the monotonic clock when this share of the seconds has passed."""
        return self.begun + share * self.seconds

    def spent(self, share: float = 1.0) -> bool:
        is_spent = time.monotonic() > self.at(share)
        self.cut = self.cut or is_spent
        return is_spent
