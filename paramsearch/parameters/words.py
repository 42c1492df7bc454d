"""Words about a parameter file: its guarantee and its noise."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from fractions import Fraction
from typing import TYPE_CHECKING

from accounting.base.enclosure import counted, exactly
from accounting.model.change import SUBSTITUTION, Adjacency
from accounting.model.laws.noise import BURST, NEGATIVE_BINOMIAL
from paramsearch.parameters.claim import Claim
from paramsearch.parameters.honest_fraction import claimed_fraction, in_words
from paramsearch.parameters.parameter_file import ParameterFile
from paramsearch.parameters.real_range import stated_range
from paramsearch.parameters.sections import BurstNoise

if TYPE_CHECKING:
    from accounting.model.configuration import Proposal

PREMISE = "who is missing must not depend on the noise"
"""What every statement about a fraction of the users rests on (deploy/GUIDE.md says why)."""
_MOST_VALUES = 8
"""Largest number of distinct values shown of an atom."""
_NOT_OF_VALUES = "; the value itself is not covered, since every release rounds it afresh"
"""What is said of several releases of real values that are covered for equal integers only."""


def changes_in_words(
    releases: int, *, same_change: bool, adjacency: Adjacency, rounded: bool = False
) -> str:
    """For which changes of one user's input, in one release or several, a guarantee holds.

    Args:
        releases: Number of releases.
        same_change: Whether only the same change in every one is covered.
        adjacency: Which data sets are neighbors.
        rounded: Whether the inputs are real values, which every release rounds afresh.

    Returns:
        The words.

    >>> changes_in_words(1, same_change=False, adjacency="substitution")
    'one changed input'
    >>> changes_in_words(1, same_change=False, adjacency="zero-out")
    "one user's input present or absent (zero-out)"
    """
    if adjacency == SUBSTITUTION:
        if releases == 1:
            return "one changed input"
        return _releases_in_words(releases, same_change=same_change, rounded=rounded)
    if releases == 1:
        return "one user's input present or absent (zero-out)"
    if same_change:
        words = (
            f"{releases:,} releases together, one user's input present or absent (zero-out), only "
        )
        if rounded:
            return f"{words}if it is rounded to the same integer in every one{_NOT_OF_VALUES}"
        return f"{words}if it is the same in every one"
    return (
        f"{releases:,} releases together, all inputs of one user present or absent (zero-out), "
        "however they change from release to release"
    )


def _releases_in_words(releases: int, *, same_change: bool, rounded: bool) -> str:
    if same_change and rounded:
        return (
            f"{releases:,} releases together, only if the same change is made in every one to the "
            f"integer that the user's value is rounded to{_NOT_OF_VALUES}"
        )
    if same_change:
        return (
            f"{releases:,} releases together, only if the user makes the same change in every one"
        )
    return f"{releases:,} releases together, however the user's inputs change in each"


def claim_in_words(
    claim: Claim, *, proved_for: Fraction, dimension: int, rounded: bool = False
) -> str:
    """What is claimed, where ``proved_for`` is the exact fraction that ``honest`` stands for, and
    ``rounded`` says whether it is about real values."""
    covered = changes_in_words(
        claim.releases,
        same_change=claim.same_change,
        adjacency=claim.adjacency,
        rounded=rounded,
    )
    text = f"({exactly(claim.eps)}, {claim.delta!r}) for {covered}"
    if dimension > 1:
        text += f", a vector of dimension {dimension:,} with at most one value"
    if claim.honest < 1:
        text += f", {in_words(claim.honest, proved_for)} of the users adding noise ({PREMISE})"
    if claim.lost:
        text += f", {counted(claim.lost, 'user')} with noise lost whatever they drew"
    return text


def file_claim_in_words(file: ParameterFile) -> str:
    """Say what a file claims."""
    return claim_in_words(
        Claim.of(file),
        proved_for=claimed_fraction(file),
        dimension=file.dimension,
        rounded=stated_range(file) is not None,
    )


def values_of(file: ParameterFile) -> str | None:
    """Say what a file for real values does with them; None for integers and vectors."""
    ends = stated_range(file)
    if ends is None:
        return None
    low, high = ends
    steps = file.problem.max_value
    return (
        f"real in [{exactly(low)}, {exactly(high)}], rounded at random to {steps:,} steps of "
        f"{(high - low) / steps:.4g}"
    )


def noise_in_words(document: ParameterFile | Proposal) -> str:
    """The atoms of a file or of a configuration, their law where it is not the paper's, and the
    central noise."""
    if isinstance(document, ParameterFile):
        sizes = sorted(len(entry.atom) for entry in document.atoms)
        eps_central = document.central.eps_central
    else:
        sizes = sorted(len(elements) for elements, _ in document.atoms)
        eps_central = document.eps_central
    some = f"{sizes[0]} to {sizes[-1]}" if sizes[0] < sizes[-1] else f"{sizes[0]}"
    atoms = f"{counted(len(sizes), 'atom')} of {some} messages"
    law = _law_in_words(_burst_sizes(document))
    return ", ".join([atoms, *([law] if law else []), f"central eps {eps_central:.6g}"])


def laws_of(document: ParameterFile | Proposal) -> list[str]:
    """The laws of the noise on the atoms, by the names that files and options have for them."""
    sizes = set(_burst_sizes(document))
    return ([BURST] if sizes - {0} else []) + ([NEGATIVE_BINOMIAL] if 0 in sizes else [])


def _burst_sizes(document: ParameterFile | Proposal) -> list[int]:
    """The m of every noise, in which 0 stands for a negative binomial."""
    if isinstance(document, ParameterFile):
        return [entry.m if isinstance(entry, BurstNoise) else 0 for entry in document.atoms]
    return [getattr(noise, "m", 0) for _, noise in document.atoms if noise is not None]


def _law_in_words(sizes: Iterable[int]) -> str:
    """Describe noises with these m; return nothing for negative binomials alone.

    >>> _law_in_words([8, 8]), _law_in_words([0, 4, 8]), _law_in_words([0, 0])
    ('in bursts (m = 8)', 'some in bursts (m = 4 to 8)', '')
    """
    different = sorted(set(sizes))
    bursts = [m for m in different if m]
    if not bursts:
        return ""
    of = f"{bursts[0]} to {bursts[-1]}" if len(bursts) > 1 else f"{bursts[0]}"
    return f"{'some ' if bursts != different else ''}in bursts (m = {of})"


def atom_in_words(atom: tuple[int, ...]) -> str:
    """An atom with the largest values first, equal ones counted.

    >>> atom_in_words((-1, -1, -1, -1, -1, 5))
    '{5, -1 x 5}'
    """
    counts = Counter(atom)
    values = sorted(counts, key=lambda value: (-abs(value), value < 0))
    shown, others = values[:_MOST_VALUES], len(values) - _MOST_VALUES
    runs = [f"{v:,}" + (f" x {counts[v]:,}" if counts[v] > 1 else "") for v in shown]
    return "{" + ", ".join(runs + ([f"{others:,} other values"] if others > 0 else [])) + "}"
