"""delta(eps) of releases of several mechanisms, in any order, with any change in each.

The upper bound is the product of the dominating pairs of the mechanisms, each of which bounds all
changes at once (releases.md, Theorem 3); the lower bound belongs to one fixed choice of changes
(releases.md, Lemma 6).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, reduce
from itertools import starmap

import numpy as np

from accounting.base.arrays import FloatArray, multiples
from accounting.base.deadline import OutOfTime, check_time
from accounting.base.errors import TooLarge, Undecided
from accounting.base.progress import Progress, silent
from accounting.composition.change_profiles import Profiles, change_profiles
from accounting.composition.dominating_pair import DominatingPair, common_saddle, log_chernoff
from accounting.composition.lower_law import Focus, LowerLaw
from accounting.evaluator.view_pairs import ViewPairs

_ROUGH = 0.02
"""Relative gap of the grid on which the releases share eps and the changes are chosen."""
_WIDER = 4
"""Factor between the gaps that are tried where a grid is too large."""
_BALANCED, _ROUNDS = 0.05, 4
"""Share of eps that the mechanisms' shares of it may still move, and the most rounds for that."""
_SMALLEST = 1e-290
"""Smallest delta that errors are compared with."""
_CANDIDATES = 12
"""Number of changes of a mechanism that are tried together with those of the others."""
_PASSES = 2
"""How often every group of releases is given the change that is worst together with the others."""
_SINGLE, _GROUPS = 4, 2
"""Up to so many releases of a mechanism have changes of their own; more are in so many groups."""
_LOWER_GAP = 2.5e-4
"""Share of delta that the grid of the lower bound may cost."""
_MOST_POINTS = 1 << 19
"""Largest number of grid points of the loss of one factor in the lower bound."""


@dataclass(frozen=True)
class Releases:
    """``times`` releases of one mechanism.

    ``less`` and ``more`` are all changes in one release, with at most and with at least the true
    noise.
    """

    less: ViewPairs
    more: ViewPairs
    times: int

    def profiles(self, eps: float, *, gap: float, delta: float = math.inf) -> Profiles:
        """Of every change, on the finest grid for this gap or a wider one that fits into memory and
        is coarser than rounding errors."""
        while True:
            try:
                return change_profiles(
                    self.less, eps, self.times, gap=gap, delta=max(delta, _SMALLEST), dyadic=True
                )
            except OutOfTime:
                raise
            except (TooLarge, Undecided):
                if gap >= _ROUGH:
                    raise
                gap = min(_WIDER * gap, _ROUGH)

    def dominating(self, profiles: Profiles) -> DominatingPair:
        """Return a pair that dominates every change in one release."""
        value = np.zeros(profiles.size)
        for _, rows in profiles.blocks():
            np.maximum(value, rows.max(axis=0), out=value)
        return DominatingPair.from_profile(value, base=profiles.base, step=profiles.step)


@dataclass(frozen=True)
class Composed:
    """A pair that dominates all releases together, and a law that they attain from below.

    Both bound delta at every eps, and closely near the one that they were made for.
    """

    pair: DominatingPair
    law: LowerLaw


@dataclass(frozen=True)
class _Balance:
    """The share of eps that each mechanism takes when all releases together just reach it: the
    common tilt, the sum of the losses of each mechanism under it, and roughly the delta of all."""

    tilt: float
    shares: tuple[float, ...]
    delta: float

    @staticmethod
    def of(pairs: Sequence[tuple[DominatingPair, int]], eps: float) -> _Balance:
        tilt = common_saddle(pairs, eps)
        shares = tuple(max(0.0, times * pair.mean_loss(tilt)) for pair, times in pairs)
        log_delta = log_chernoff(pairs, tilt, eps)
        found = _Balance(tilt, shares, math.exp(max(min(log_delta, 0.0), -660.0)))
        # the Chernoff bound may be far above delta, and so may what was compared with it
        for _ in range(_ROUNDS):
            delta = max(_product(pairs, found, _ROUGH).delta(eps), _SMALLEST)
            settled, found = delta > found.delta / 2, replace(found, delta=min(delta, found.delta))
            if settled:
                break
        return found


def rough_pair(parts: Sequence[Releases], eps: float) -> DominatingPair:
    """Return a pair that dominates all releases together, less closely and in less time."""
    _, pairs, balance = _balanced(parts, eps)
    return _product(pairs, balance, _ROUGH)


def compose(
    parts: Sequence[Releases], eps: float, *, gap: float, progress: Progress = silent
) -> Composed:
    """Return bounds that are close near ``eps``; the grid of the upper bound should add about
    ``gap``."""
    total = sum(part.times for part in parts)
    progress(f"{total:,} releases, choosing the grid")
    profiles, rough, balance = _balanced(parts, eps)
    progress(f"{total:,} releases, upper bound")
    if len(parts) == 1:
        fine = [parts[0].profiles(eps, gap=gap)]
    else:
        fine = [
            part.profiles(share, gap=gap, delta=balance.delta)
            for part, share in zip(parts, balance.shares, strict=True)
        ]
    pairs = [(part.dominating(found), part.times) for part, found in zip(parts, fine, strict=True)]
    balance = _Balance.of(pairs, eps)
    pair = _product(pairs, balance, gap / 8)
    progress(f"{total:,} releases, lower bound")
    witness = _Witness(profiles, rough, eps, balance).found()
    return Composed(pair, _attained(parts, witness, pairs, eps, balance))


def _balanced(
    parts: Sequence[Releases], eps: float
) -> tuple[list[Profiles], list[tuple[DominatingPair, int]], _Balance]:
    """Return rough profiles and pairs of the mechanisms, for the share of eps that each takes."""
    total = sum(part.times for part in parts)
    shares = tuple(eps * part.times / total for part in parts)
    delta = math.inf
    for _ in range(_ROUNDS):
        check_time()
        profiles = [
            part.profiles(share, gap=_ROUGH, delta=delta)
            for part, share in zip(parts, shares, strict=True)
        ]
        pairs = [
            (part.dominating(found), part.times)
            for part, found in zip(parts, profiles, strict=True)
        ]
        balance = _Balance.of(pairs, eps)
        moved = max(abs(a - b) for a, b in zip(balance.shares, shares, strict=True))
        shares, delta = balance.shares, balance.delta
        if len(parts) == 1 or moved <= _BALANCED * max(eps, 0.1):
            break
    return profiles, pairs, balance


def _product(
    pairs: Sequence[tuple[DominatingPair, int]], balance: _Balance, gap: float
) -> DominatingPair:
    """Compose all losses, for delta at the eps of the balance."""
    spare = 1e-3 * gap * balance.delta

    def power(pair: DominatingPair, times: int) -> DominatingPair:
        check_time()
        return pair.powered(times, tilt=balance.tilt, tolerance=gap, spare=spare)

    return reduce(lambda one, other: _joined(one, other, balance, gap), starmap(power, pairs))


def _joined(
    first: DominatingPair, second: DominatingPair, balance: _Balance, gap: float
) -> DominatingPair:
    first, second = first.matched(second), second.matched(first)
    whole = first.composed(second, balance.tilt)
    return whole.shortened(balance.tilt, gap, 1e-3 * gap * balance.delta)


Made = tuple[int, int, int]
"""A mechanism, one of its changes, and the number of releases in which it is made."""


class _Witness:
    """A fixed choice of changes with a large delta, by heuristics: any choice is sound.

    ``profiles`` and ``pairs`` are the rough ones of the mechanisms.
    """

    def __init__(
        self,
        profiles: Sequence[Profiles],
        pairs: Sequence[tuple[DominatingPair, int]],
        eps: float,
        balance: _Balance,
    ) -> None:
        self.profiles, self.eps, self.balance = profiles, eps, balance
        self.rows = [self._candidates(part, pairs) for part in range(len(profiles))]
        self.groups = [
            (part, count) for part, (_, times) in enumerate(pairs) for count in _groups(times)
        ]
        self.power: Callable[[int, int, int], DominatingPair] = cache(self._power)

    def found(self) -> list[Made]:
        chosen = [next(iter(self.rows[part])) for part, _ in self.groups]
        for _ in range(_PASSES if len(self.groups) > 1 else 0):
            before = list(chosen)
            for place, (part, count) in enumerate(self.groups):
                rest = self._rest(chosen, place)
                chosen[place] = max(
                    self.rows[part], key=lambda change: self._with(rest, part, change, count)
                )
            if chosen == before:
                break
        made: dict[tuple[int, int], int] = {}
        for (part, count), change in zip(self.groups, chosen, strict=True):
            made[part, change] = made.get((part, change), 0) + count
        return [(part, change, count) for (part, change), count in made.items()]

    def _with(self, rest: DominatingPair, part: int, change: int, count: int) -> float:
        power = self.power(part, change, count)
        return _joined(rest, power, self.balance, _ROUGH).delta(self.eps)

    def _rest(self, chosen: Sequence[int], place: int) -> DominatingPair:
        """The changes of all groups but one."""
        return reduce(
            lambda one, other: _joined(one, other, self.balance, _ROUGH),
            (
                self.power(part, chosen[other], count)
                for other, (part, count) in enumerate(self.groups)
                if other != place
            ),
        )

    def _power(self, part: int, change: int, count: int) -> DominatingPair:
        check_time()
        found = self.profiles[part]
        pair = DominatingPair.from_profile(
            self.rows[part][change], base=found.base, step=found.step
        )
        return _product([(pair, count)], self.balance, _ROUGH)

    def _candidates(
        self, part: int, pairs: Sequence[tuple[DominatingPair, int]]
    ) -> dict[int, FloatArray]:
        """The changes that are worst together with any changes in all other releases, with their
        profiles."""
        others = [(pair, times - (i == part)) for i, (pair, times) in enumerate(pairs)]
        others = [(pair, times) for pair, times in others if times]
        loss, mass = np.zeros(1), np.ones(1)
        if others:
            rest = _product(others, self.balance, _ROUGH)
            loss, mass = rest.losses, rest.mass
        found, points = self.profiles[part], _points(self.profiles[part])
        best: list[tuple[float, int, FloatArray]] = []
        for changes, rows in found.blocks():
            score = [float(mass @ np.interp(self.eps - loss, points, row)) for row in rows]
            best += zip(score, changes.tolist(), rows.copy(), strict=True)
            best = sorted(best, key=lambda entry: -entry[0])[:_CANDIDATES]
        return {change: row for _, change, row in best}


def _groups(times: int) -> list[int]:
    """Return the numbers of releases that make the same change."""
    if times <= _SINGLE:
        return [1] * times
    return [times // _GROUPS + (i < times % _GROUPS) for i in range(_GROUPS)]


def _points(profiles: Profiles) -> FloatArray:
    """Return the values of eps of the rows."""
    return multiples(profiles.base, profiles.size, profiles.step)


def _attained(
    parts: Sequence[Releases],
    witness: Sequence[Made],
    pairs: Sequence[tuple[DominatingPair, int]],
    eps: float,
    balance: _Balance,
) -> LowerLaw:
    """Return a lower bound of the law of the sum of the losses of these changes."""
    factors = sum(
        count * int(np.diff(parts[part].more.start)[change]) for part, change, count in witness
    )
    spare = 1e-3 * _LOWER_GAP * balance.delta / sum(count for _, _, count in witness)
    focus = Focus(balance.tilt, spare)
    cut = [pair.shortened(balance.tilt, _LOWER_GAP, spare).losses for pair, _ in pairs]
    low, high = min(float(part[0]) for part in cut), max(float(part[-1]) for part in cut)
    low, high = min(low - (high - low), -1 / 16), max(high, 1 / 16)
    # every factor of every release is lowered by half a step on average
    sharp = max(balance.tilt, 1 / max(eps, 0.01))
    step = max(2 * _LOWER_GAP / (sharp * factors), (high - low) / _MOST_POINTS)
    step = 2.0 ** math.ceil(math.log2(min(step, 1 / 16)))

    def power(part: int, change: int, count: int) -> LowerLaw:
        one = LowerLaw.of(parts[part].more, change, step=step, focus=focus, within=(low, high))
        return one.power(count, focus=focus, tolerance=_LOWER_GAP)

    return reduce(lambda one, other: one.composed(other, focus), starmap(power, witness))
