"""What attains the lower bound of a proof, in words."""

from __future__ import annotations

from accounting.base.enclosure import at_least
from accounting.model.change import in_words
from accounting.model.proof import Proof


def worst_case(proof: Proof, *, any_sequence: bool) -> str:
    """A change, a fixed sequence of changes, or one that is chosen release after release.

    For an adaptive sequence, the worst fixed sequence and the delta it attains are named as well.
    """
    fixed = in_words(proof.worst_change, proof.worst_sequence)
    if not any_sequence or (proof.worst_sequence and proof.sequence_lower >= proof.enclosure.lower):
        return fixed
    words = f"every change chosen by what was published before; first {proof.worst_change}"
    if proof.worst_sequence:
        words += f" (fixed in advance: {fixed}, delta at least {at_least(proof.sequence_lower)})"
    return words
