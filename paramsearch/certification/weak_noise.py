"""After a violation: which atom has too little noise, and about how much more it needs.

This is a diagnosis, not a proof: it looks at the worst change of input alone, with the central
noise of all users, and for several releases at the same change in each.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

from accounting.base.bisection import bisection, geometric_mean
from accounting.base.errors import AccountingError
from accounting.base.progress import Progress, silent
from accounting.model.change import Change
from accounting.model.configuration import Configuration
from accounting.model.laws.noise import NoiseSum
from accounting.model.mechanism import Atom, Mechanism
from accounting.notary.columns import UNIT
from accounting.notary.notary import Notary
from accounting.proof.directed_rounding import configuration
from accounting.protocol import Protocol
from paramsearch.parameters.claim import Claim

_MOST_ADDED, _FEW_MESSAGES = 4.0, 1e5
"""Most messages that are added, in units of the noise messages of all users, and as a number that
is always tried."""
_ACCURACY = 1.02
"""Ratio of the bounds between which a factor is known: it is said with one or two digits."""
_GAP = 0.1
"""Relative gap between the bounds of delta that is fine enough for that."""
_LARGEST_MAX_VALUE = 64
"""Largest max_value for which all changes are looked at, and those of two coordinates at all."""
_MOST_ATOMS = 24
"""Atoms that are looked at, of those that the worst change shifts."""
_ALL = 0.995
"""Share that is shown as 100 %."""


@dataclass(frozen=True)
class WeakNoise:
    """Noise that is too little for a claim; every number is an estimate.

    Attributes:
        atom: The atom whose noise is too little, or None if that of all of them is.
        share: Its share of the expected noise messages.
        factor: About how many times as much noise as now it needs for the worst change.
        enough: Whether that much is enough for all other changes, too; None if that is not known.
    """

    atom: Atom | None
    share: float
    factor: float
    enough: bool | None = None

    def in_words(self) -> str:
        """Say how much noise there is, and how much is missing.

        >>> WeakNoise((-3, 3), 0.0171, 5.08).in_words()
        '1.7 % of the messages; about 5.1 times as much needed for the worst change (an estimate)'
        """
        factor = float(f"{self.factor:.2g}")
        text = f"about {factor:,g} times as much needed for the worst change (an estimate)"
        if self.atom is not None:
            share = f"{100 * self.share:.2g}" if self.share < _ALL else "100"
            text = f"{share} % of the messages; {text}"
        return text + ("; other changes need more noise as well" if self.enough is False else "")


def weak_noise(
    mechanism: Mechanism, claim: Claim, worst: Change, *, progress: Progress = silent
) -> WeakNoise | None:
    """The noise to add to, so that the worst change meets the claim for the fewest messages.

    Args:
        mechanism: What is deployed.
        claim: What it violates.
        worst: The change of input that shows it.
        progress: Called with one line of text now and then.

    Returns:
        One atom if more noise on it alone is enough, else all atoms; None if neither is, or if the
        fast evaluators do not take the parameters.

    >>> from accounting import Proposal
    >>> from paramsearch.parameters.documents import mechanism_of
    >>> data = {"max_value": 1, "eps": 1.0, "delta": 1e-7, "n": 1000, "eps_central": 0.9}
    >>> proposal = Proposal.of({**data, "atoms": [{"atom": [-1, 1], "r": 12.0, "p": 0.96}]})
    >>> found = weak_noise(mechanism_of(proposal), Claim.of(proposal), Change(0, 1))
    >>> found.atom, round(found.factor, 1)
    ((-1, 1), 1.4)
    """
    if worst.moved and mechanism.max_value > _LARGEST_MAX_VALUE:
        return None
    try:
        config = configuration(mechanism, noise="less")
        atoms = list(_shifted(mechanism, worst))
        if not _delta(config, claim, worst) > claim.delta:
            return None
    except AccountingError:
        return None
    messages = {
        atom: config.dimension * len(atom) * noise.mean for atom, noise in config.noise.items()
    }
    best, added = None, max(_MOST_ADDED * config.noise_messages, _FEW_MESSAGES)
    for atom in sorted(atoms, key=messages.__getitem__)[:_MOST_ATOMS]:
        progress(f"about how much more noise the atom {list(atom)!s:.40} needs")
        most = 1 + added / messages[atom]  # a larger factor costs more than what is known
        factor = _needed_factor(config, {atom}, claim, worst, most=most)
        if factor is not None:
            best, added = (atom, factor), messages[atom] * (factor - 1)
    if best is not None:
        atom, factor = best
        enough = _enough(config, {atom}, factor, claim)
        return WeakNoise(atom, messages[atom] / config.noise_messages, factor, enough)
    every, total = set(messages), math.fsum(messages.values())
    factor = _needed_factor(config, every, claim, worst, most=1 + added / total)
    if factor is None:
        return None
    enough = _enough(config, every, factor, claim)
    return WeakNoise(None, total / config.noise_messages, factor, enough)


def _shifted(mechanism: Mechanism, change: Change) -> Iterator[Atom]:
    """The atoms whose noise has to hide the change."""
    columns = Notary(mechanism).columns.of_input
    ends = [(columns[before], columns[after]) for before, after in change.coordinates]
    for atom, parts in mechanism.atoms.items():
        shifted = any(before.get(atom, 0) != after.get(atom, 0) for before, after in ends)
        if parts and (shifted or atom == UNIT):
            yield atom


def _delta(config: Configuration, claim: Claim, change: Change) -> float:
    protocol = Protocol(config, claim.releases, claim.releases > 1, claim.adjacency)
    absolute = _GAP * claim.delta
    if change.moved:  # single evaluations are of changes within a coordinate
        return protocol.delta(claim.eps, gap=_GAP, absolute=absolute).enclosure.upper
    return protocol.delta_of(change, claim.eps, gap=_GAP, absolute=absolute).enclosure.upper


def _needed_factor(
    config: Configuration, atoms: set[Atom], claim: Claim, change: Change, *, most: float
) -> float | None:
    """Find how many times their noise these atoms need for the change to meet the claim, if that is
    at most ``most``."""

    def meets(factor: float) -> bool:
        return _delta(_scaled(config, atoms, factor), claim, change) <= claim.delta

    low, high = 1.0, min(2.0, most)
    try:
        while not meets(high):
            if high >= most:
                return None
            low, high = high, min(2 * high, most)
        _, factor = bisection(
            meets,
            low,
            high,
            mean=geometric_mean,
            narrow=lambda low, high: high <= _ACCURACY * low,
        )
    except AccountingError:
        return None
    return factor


def _enough(config: Configuration, atoms: set[Atom], factor: float, claim: Claim) -> bool | None:
    """Tell whether every change meets the claim with this multiple of the noise on these atoms."""
    if config.max_value > _LARGEST_MAX_VALUE:
        return None
    more = _scaled(config, atoms, _ACCURACY * factor)
    protocol = Protocol(more, claim.releases, claim.releases > 1, claim.adjacency)
    try:
        found = protocol.delta(claim.eps, gap=_GAP, absolute=_GAP * claim.delta).enclosure
    except AccountingError:
        return None
    return found.lower <= claim.delta


def _scaled(config: Configuration, atoms: set[Atom], factor: float) -> Configuration:
    """The noise of so many times as many users on these atoms."""
    noise = {
        atom: NoiseSum.of(part.times(factor) for part in known.parts) if atom in atoms else known
        for atom, known in config.noise.items()
    }
    return replace(config, noise=noise)
