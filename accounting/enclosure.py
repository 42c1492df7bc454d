"""Two-sided bounds."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Enclosure:
    """``lower <= truth <= upper``; a theorem, not an estimate."""

    lower: float
    upper: float

    def __post_init__(self) -> None:
        if not self.lower <= self.upper:
            raise AssertionError(f"not an enclosure: [{self.lower!r}, {self.upper!r}]")

    @property
    def relative_gap(self) -> float:
        """(upper - lower) / upper; 0 when both are 0."""
        return (self.upper - self.lower) / self.upper if self.upper > 0 else 0.0

    def __contains__(self, value: float) -> bool:
        return self.lower <= value <= self.upper

    def __str__(self) -> str:
        return f"[{self.lower:.6g}, {self.upper:.6g}]"
