"""Proofs: bounds of delta, and the methods that gave them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from accounting.base.enclosure import Enclosure, Summarized, at_least
from accounting.model.change import Change, Repeated, in_words
from accounting.model.proof_types import COMPARISON


@dataclass(frozen=True, repr=False)
class Proof(Summarized):
    """Bounds of delta(eps) over all changes of one user's input.

    Attributes:
        eps: The eps of the bounds.
        enclosure: ``lower <= delta <= upper``.
        worst_change: Attains the lower bound; if that belongs to an adaptive sequence of changes,
            the sequence begins with it.
        exact: Whether lower bounds mean anything: False for a family with more atoms than values,
            and for a proof with less noise.
        met: Whether the gap that was asked for was reached.
        covered: Number of changes that each method bounded from above; 0 for one that gave no more
            than a lower bound.
        precision: Working precision in bits.
        deviation: What the deployed sampler may add to delta; inside the bounds already.
        worst_sequence: For any sequence of changes, a fixed one that is bad.
        sequence_lower: What ``worst_sequence`` attains by itself.
        less_noise: Whether this is a proof for less noise, which gives no lower bound.
        lower_by: The methods of the lower bound, where it is from another proof than the upper one.
    """

    eps: float
    enclosure: Enclosure
    worst_change: Change
    exact: bool
    met: bool
    covered: Mapping[str, int]
    precision: int
    deviation: float
    worst_sequence: tuple[Repeated, ...] = ()
    sequence_lower: float = 0.0
    less_noise: bool = False
    lower_by: tuple[str, ...] = ()

    def with_lower_of(self, other: Proof) -> Proof:
        """This upper bound with the lower bound of another proof, where that is larger; the methods
        say so."""
        if other.enclosure.lower <= self.enclosure.lower:
            return self
        # a change that is covered by comparison with another one has no lower bound of its own
        of_changes = tuple(method for method, count in other.covered.items() if count)
        lower_by = other.lower_by or tuple(m for m in of_changes if m != COMPARISON)
        return replace(
            self,
            covered={**self.covered, **{m: self.covered.get(m, 0) for m in lower_by}},
            lower_by=lower_by,
            enclosure=Enclosure(other.enclosure.lower, self.enclosure.upper),
            worst_change=other.worst_change,
            worst_sequence=other.worst_sequence or self.worst_sequence,
            sequence_lower=max(other.sequence_lower, self.sequence_lower),
        )

    def worst_case(self, *, any_sequence: bool) -> str:
        """Describe what attains the lower bound: a change, a fixed sequence of changes, or one that
        is chosen release after release.

        For an adaptive sequence, the worst fixed sequence and the delta it attains are named, too.
        """
        fixed = in_words(self.worst_change, self.worst_sequence)
        adaptive = not self.worst_sequence or self.sequence_lower < self.enclosure.lower
        if not any_sequence or not adaptive:
            return fixed
        words = f"every change chosen by what was published before; first {self.worst_change}"
        if self.worst_sequence:
            words += f" (fixed in advance: {fixed}, delta at least {at_least(self.sequence_lower)})"
        return words

    def summary(self) -> tuple[str, str]:
        """Return the bounds, and how they were proved."""
        parts = [f"worst where {self.worst_change}", self._methods, f"{self.precision} bits"]
        if self.less_noise:
            parts.append("with less noise")
        parts += caveats(exact=self.exact, met=self.met)
        return f"delta({self.eps:g}) in {self.enclosure}", "; ".join(parts)

    @property
    def _methods(self) -> str:
        upper = " + ".join(f"{count:,} {method}" for method, count in self.covered.items() if count)
        return upper + (f", lower bound by {' + '.join(self.lower_by)}" if self.lower_by else "")

    def __str__(self) -> str:
        return (
            f"delta({self.eps:g}) in {self.enclosure}, worst where {self.worst_change} "
            f"({self._methods})"
        )


def caveats(*, exact: bool, met: bool) -> list[str]:
    """Return in words what limits the meaning of bounds of delta."""
    only_upper = [] if exact else ["only the upper bound means anything"]
    return only_upper + ([] if met else ["the gap that was asked for was not reached"])
