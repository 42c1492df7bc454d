"""delta(eps) of releases of several mechanisms, in any order, with any change in each.

The upper bound is the product of the dominating pairs of the mechanisms, each of which bounds all
changes at once (releases.md, Theorem 3); the lower bound belongs to one fixed choice of changes
(releases.md, Lemma 8).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from accounting.base.arrays import FloatArray
from accounting.base.deadline import check_time
from accounting.base.progress import Progress, silent
from accounting.composition.any_sequence import Kinds, similar_changes
from accounting.composition.change_profiles import Profiles, change_profiles
from accounting.composition.dominating_pair import DominatingPair, common_saddle, log_chernoff
from accounting.composition.lower_law import LowerLaw
from accounting.evaluator.view_pairs import ViewPairs

_ROUGH = 0.02
"""Relative gap of the grid on which the releases share eps and the changes are chosen."""
_BALANCED, _ROUNDS = 0.05, 4
"""Share of eps that the mechanisms' shares of it may still move, and the most rounds for that."""
_SMALLEST = 1e-290
"""Smallest delta that errors are compared with."""
_CANDIDATES = 6
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
    noise.  ``deviation`` is the total variation distance that the upper bound has to allow for.
    """

    less: ViewPairs
    more: ViewPairs
    times: int
    deviation: float = 0.0

    def profiles(self, eps: float, *, gap: float, delta: float = math.inf) -> Profiles:
        return change_profiles(
            self.less, eps, self.times, gap=gap, delta=max(delta, _SMALLEST), dyadic=True
        )

    def dominating(self, profiles: Profiles) -> DominatingPair:
        """A pair that dominates every change in one release."""
        value = np.zeros(profiles.size)
        for _, rows in profiles.blocks():
            np.maximum(value, rows.max(axis=0), out=value)
        if self.deviation:
            with np.errstate(over="ignore"):
                value += (1 + np.exp(_points(profiles))) * self.deviation * (1 + 1e-9)
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
    """How the releases share eps when together they just reach it: the common tilt, the sum of the
    losses of each mechanism under it, and about the delta of all."""

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


def compose(
    parts: Sequence[Releases], eps: float, *, gap: float, progress: Progress = silent
) -> Composed:
    """Bounds that are close near ``eps``; the grid of the upper one should add about ``gap``."""
    total = sum(part.times for part in parts)
    progress(f"{total:,} releases, choosing the grid")
    profiles, balance = _balanced(parts, eps)
    progress(f"{total:,} releases, upper bound")
    if len(parts) == 1:
        fine = [parts[0].profiles(eps, gap=gap)]
    else:
        fine = [
            part.profiles(share, gap=gap, delta=balance.delta)
            for part, share in zip(parts, balance.shares, strict=True)
        ]
    pairs = [
        (part.dominating(found), part.times) for part, found in zip(parts, fine, strict=True)
    ]
    balance = _Balance.of(pairs, eps)
    pair = _product(pairs, balance, gap)
    progress(f"{total:,} releases, lower bound")
    kinds = [similar_changes(found, max(share, 0.0)) for found, share in zip(
        profiles, balance.shares, strict=True)]
    witness = _Witness(kinds, [part.times for part in parts], eps, balance).found()
    return Composed(pair, _attained(parts, witness, pairs, eps, balance))


def _balanced(parts: Sequence[Releases], eps: float) -> tuple[list[Profiles], _Balance]:
    """Rough profiles of the mechanisms, for the share of eps that each takes."""
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
    return profiles, balance


def _product(
    pairs: Sequence[tuple[DominatingPair, int]], balance: _Balance, gap: float
) -> DominatingPair:
    """All losses together, for delta at the eps of the balance."""
    spare = 1e-3 * gap * balance.delta
    out: DominatingPair | None = None
    for pair, times in pairs:
        check_time()
        power = pair.powered(times, tilt=balance.tilt, tolerance=gap, spare=spare)
        out = power if out is None else _joined(out, power, balance, gap)
    assert out is not None
    return out


def _joined(
    first: DominatingPair, second: DominatingPair, balance: _Balance, gap: float
) -> DominatingPair:
    first, second = first.matched(second), second.matched(first)
    whole = first.composed(second, balance.tilt)
    return whole.shortened(balance.tilt, gap, 1e-3 * gap * balance.delta)


Made = tuple[int, int, int]
"""A mechanism, one of its changes, and the number of releases in which it is made."""


class _Witness:
    """A fixed choice of changes with a large delta, by heuristics: any choice is sound."""

    def __init__(
        self, kinds: Sequence[Kinds], times: Sequence[int], eps: float, balance: _Balance
    ) -> None:
        self.kinds, self.times, self.eps, self.balance = kinds, times, eps, balance
        self.power: Callable[[int, int, int], DominatingPair] = cache(self._power)

    def found(self) -> list[Made]:
        candidates = [self._candidates(part) for part in range(len(self.kinds))]
        groups = [
            (part, count)
            for part, times in enumerate(self.times)
            for count in _groups(times)
        ]
        chosen = [candidates[part][0] for part, _ in groups]
        for _ in range(_PASSES if len(groups) > 1 else 0):
            before = list(chosen)
            for place, (part, count) in enumerate(groups):
                rest = self._rest(groups, chosen, place)
                found = [
                    _joined(rest, self.power(part, kind, count), self.balance, _ROUGH).delta(
                        self.eps
                    )
                    for kind in candidates[part]
                ]
                chosen[place] = candidates[part][int(np.argmax(found))]
            if chosen == before:
                break
        made: dict[tuple[int, int], int] = {}
        for (part, count), kind in zip(groups, chosen, strict=True):
            change = part, self.kinds[part].founder[kind]
            made[change] = made.get(change, 0) + count
        return [(part, change, count) for (part, change), count in made.items()]

    def _rest(
        self, groups: Sequence[tuple[int, int]], chosen: Sequence[int], place: int
    ) -> DominatingPair:
        rest: DominatingPair | None = None
        for other, (part, count) in enumerate(groups):
            if other != place:
                power = self.power(part, chosen[other], count)
                rest = power if rest is None else _joined(rest, power, self.balance, _ROUGH)
        assert rest is not None
        return rest

    def _power(self, part: int, kind: int, count: int) -> DominatingPair:
        check_time()
        kinds = self.kinds[part]
        return _product([(kinds.pair(kinds.value[kind]), count)], self.balance, _ROUGH)

    def _candidates(self, part: int) -> list[int]:
        """The changes that are worst together with any changes in all other releases."""
        times = [count - (other == part) for other, count in enumerate(self.times)]
        others = [
            (kinds.envelope, count)
            for kinds, count in zip(self.kinds, times, strict=True)
            if count
        ]
        kinds = self.kinds[part]
        points = _points(kinds.profiles)
        if others:
            rest = _product(others, self.balance, _ROUGH)
            score = [rest.mass @ np.interp(self.eps - rest.losses, points, v) for v in kinds.value]
        else:
            score = [float(np.interp(self.eps, points, row)) for row in kinds.value]
        return np.argsort(-np.array(score), kind="stable")[:_CANDIDATES].tolist()


def _groups(times: int) -> list[int]:
    """The numbers of releases that make the same change."""
    if times <= _SINGLE:
        return [1] * times
    return [times // _GROUPS + (i < times % _GROUPS) for i in range(_GROUPS)]


def _points(profiles: Profiles) -> FloatArray:
    """The values of eps of the rows."""
    return (profiles.base + np.arange(profiles.size)) * profiles.step


def _attained(
    parts: Sequence[Releases],
    witness: Sequence[Made],
    pairs: Sequence[tuple[DominatingPair, int]],
    eps: float,
    balance: _Balance,
) -> LowerLaw:
    """A lower bound of the law of the sum of the losses of these changes."""
    factors = sum(
        count * int(np.diff(parts[part].more.start)[change]) for part, change, count in witness
    )
    spare = 1e-3 * _LOWER_GAP * balance.delta / sum(count for _, _, count in witness)
    cut = [pair.shortened(balance.tilt, _LOWER_GAP, spare).losses for pair, _ in pairs]
    low, high = min(float(part[0]) for part in cut), max(float(part[-1]) for part in cut)
    low, high = min(low - (high - low), -1 / 16), max(high, 1 / 16)
    # every factor of every release is lowered by half a step on average
    sharp = max(balance.tilt, 1 / max(eps, 0.01))
    step = max(2 * _LOWER_GAP / (sharp * factors), (high - low) / _MOST_POINTS)
    step = 2.0 ** math.ceil(math.log2(min(step, 1 / 16)))
    out: LowerLaw | None = None
    for part, change, count in witness:
        one = LowerLaw.of(
            parts[part].more, change, step=step, tilt=balance.tilt, within=(low, high)
        )
        power = one.power(count, tilt=balance.tilt, tolerance=_LOWER_GAP)
        out = power if out is None else out.composed(power, balance.tilt)
    assert out is not None
    return out
