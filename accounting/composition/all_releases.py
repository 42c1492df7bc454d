"""delta and eps of all releases of several mechanisms, whichever way one user's input changes.

Under zero-out all inputs of one user vanish, or all of them appear: every *direction* has its own
changes, and delta is the larger one (releases.md, section 2).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from accounting.base.enclosure import Enclosure
from accounting.base.errors import Undecided
from accounting.base.progress import Progress, silent
from accounting.composition.dominating_pair import DominatingPair
from accounting.composition.eps_search import LARGEST_TRIAL, first_eps, last_eps
from accounting.composition.regridding import on_grid
from accounting.composition.several_mechanisms import Releases, compose, rough_pair

_CLOSE = 1e-4
"""Relative change of eps at which the search for it ends."""
_ROUGHLY, _ROUNDS = 0.01, 4
"""Relative change of eps at which coarse grids are enough; most fine grids that are made then."""
_EXPORTED_FOR = ((1, 1e-14), (1, 1e-6), (32, 1e-8), (1024, 1e-8))
"""Numbers of releases and deltas for which an exported pair is close."""
_EXPORT_GAP = 8e-3
"""Share of delta that the grids of an exported pair should add at most."""


@dataclass(frozen=True)
class AllReleases:
    """The releases of every mechanism, for each direction of a change.

    ``exact``: whether the changes of the views are those of the mechanisms, so that there is a
    lower bound.  ``typical_eps`` is where a search for eps begins.
    """

    directions: Sequence[Sequence[Releases]]
    exact: bool
    typical_eps: float

    def near(
        self, eps: float, *, gap: float, progress: Progress = silent
    ) -> Callable[[float], Enclosure]:
        """Return bounds of delta at any eps, which are close near this one."""
        found = [compose(parts, eps, gap=gap, progress=progress) for parts in self.directions]

        def bounds(at: float) -> Enclosure:
            lower = max(one.law.delta(at) for one in found) if self.exact else 0.0
            return Enclosure(lower, max(one.pair.delta(at) for one in found))

        return bounds

    def epsilon(self, delta: float, *, gap: float, progress: Progress) -> Enclosure:
        """Find the smallest eps with delta(eps) <= delta."""
        low, high = 0.0, self._rough_epsilon(delta, progress)
        for _ in range(_ROUNDS):
            trial = high
            near = self.near(trial, gap=gap, progress=progress)
            low = max(low, last_eps(lambda eps: near(eps).lower > delta, trial))
            high = min(high, first_eps(lambda eps: near(eps).upper <= delta, trial))
            if trial - high <= _CLOSE * max(high, 0.01):
                break
        return Enclosure(low, high)

    def _rough_epsilon(self, delta: float, progress: Progress) -> float:
        """Find an upper bound of eps on a coarse grid."""
        trial, high = self.typical_eps, math.inf
        while trial <= LARGEST_TRIAL:
            progress(f"trying eps = {trial:.3g}")
            pairs = [rough_pair(parts, trial) for parts in self.directions]
            found = first_eps(lambda eps: all(p.delta(eps) <= delta for p in pairs), trial)
            # pairs made for this eps may be weaker there than those that found it
            if high < math.inf and found >= high * (1 - _ROUGHLY):
                return min(found, high)
            high = min(high, found)
            trial = high if high < math.inf else 2 * trial
        raise _no_eps(delta, trial)

    def on_grid(self, interval: float) -> list[DominatingPair]:
        """Return for each direction a pair that dominates one release of the only mechanism, close
        for one and for many of them."""
        found = []
        for (part,) in self.directions:
            pairs = []
            for releases, delta in _EXPORTED_FOR:
                several = replace(part, times=releases)
                alone = AllReleases([[several]], exact=False, typical_eps=self.typical_eps)
                try:
                    eps = alone._rough_epsilon(delta, silent)
                except Undecided:  # at any eps, inputs are given away with a larger probability
                    eps = self.typical_eps
                pairs.append(several.dominating(several.profiles(eps, gap=_EXPORT_GAP)))
            found.append(on_grid(pairs, interval))
        return found


def _no_eps(delta: float, tried: float) -> Undecided:
    return Undecided(
        f"no eps up to {tried:g} has delta <= {delta!r}: some outcome gives an input away with a "
        "larger probability; ask for a larger delta or for fewer releases"
    )
