"""delta(eps) of T releases in which one user's value may change differently every time.

The upper bound comes from the backward induction of releases.md, Theorem 1, for many releases
with a power of the dominating pair of a block (Theorem 2); the lower bound from one fixed sequence
of changes, the witness.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations

import numpy as np

from accounting.base.arrays import FloatArray, multiples
from accounting.base.errors import AccountingError, InternalError, TooLarge, Undecided
from accounting.base.progress import Progress, silent
from accounting.composition.change_profiles import Profiles, change_profiles
from accounting.composition.dominating_pair import DominatingPair
from accounting.composition.dropouts.thinned_profiles import ThinnedPairs
from accounting.evaluator.evaluate import evaluate
from accounting.evaluator.view_pairs import ViewPairs

# Some of these are also in notary/sequences.py, kept separate so that the proofs stay independent.
MOST_STEPS = 32
"""Largest number of releases that are steps of the induction one by one."""
_BLOCK = 8
"""Number of releases in a block, where there are more."""
_FEW = 8
"""Largest number of releases whose worst fixed sequence is searched change by change."""
_COARSEST, _FINEST = 0.02, 1e-5
"""Relative gaps that the first and the last grid are made for."""
_THINNED_GAP = 0.01
"""Gap of the parts of a change whose central noise is thinned, relative to that of the whole: their
own tilt is gentler, and a grid for it coarser."""
_MOST_KINDS = 64
"""Largest number of kinds: all other changes join one of them."""
_MIXED_KINDS = 6
"""Number of kinds of changes of which two in turn are tried as witnesses of many releases."""
_ALIKE, _TINY = 1e-3, 1e-7
"""A profile joins a kind that it exceeds by at most this share, or by this share of the kind's
tilted peak: joining costs about as much in delta."""


Times = tuple[int, int]
"""The index of a change, and the number of releases in which it is made."""


@dataclass(frozen=True)
class SequenceBounds:
    """Bounds for sequences of changes: ``lower`` is attained by the ``witness``; no sequence,
    however adaptive, exceeds ``upper``.

    ``settled``: a finer grid would not lower ``upper`` by much.  ``kinds``: changes that stand for
    all others with similar profiles.
    """

    lower: float
    upper: float
    witness: tuple[Times, ...]
    settled: bool
    kinds: tuple[int, ...] = ()

    def renumbered(self, direction: Sequence[int]) -> SequenceBounds:
        """Return the same bounds with the change i called ``direction[i]``."""
        witness = tuple((direction[q], times) for q, times in self.witness)
        return replace(self, witness=witness, kinds=tuple(direction[q] for q in self.kinds))


@dataclass(frozen=True)
class _Kinds:
    """Kinds of similar changes: the profile of every change lies below one of the rows of
    ``value``, and each kind has the change that founded it."""

    profiles: Profiles
    value: FloatArray
    founder: tuple[int, ...]

    @cached_property
    def envelope(self) -> DominatingPair:
        """A pair that dominates all changes."""
        return self.pair(self.value.max(axis=0))

    def pairs(self) -> list[DominatingPair]:
        return [self.pair(row) for row in self.value]

    def pair(self, row: FloatArray) -> DominatingPair:
        return DominatingPair.from_profile(row, base=self.profiles.base, step=self.profiles.step)


@dataclass(frozen=True)
class OneRelease:
    """The changes of one user in one release.

    ``less`` and ``more`` are all changes with at most and with at least the true noise: upper
    bounds come from ``less``, lower ones from ``more``.  Each of the ``directions`` lists the
    changes that may follow each other (``accounting.model.change.directions``).
    """

    less: ViewPairs | ThinnedPairs
    more: ViewPairs
    directions: Sequence[Sequence[int]]

    def of(self, direction: Sequence[int]) -> tuple[ViewPairs | ThinnedPairs, ViewPairs]:
        """Return ``less`` and ``more`` for the changes of one direction."""
        if len(direction) == self.more.pair_count:
            return self.less, self.more
        less = self.less.subset(np.array(direction))
        if isinstance(less, ViewPairs) and self.less is self.more:
            return less, less
        return less, self.more.subset(np.array(direction))


def sequence_bounds(
    changes: OneRelease,
    eps: float,
    releases: int,
    *,
    gap: float,
    claim: float | None = None,
    progress: Progress = silent,
) -> SequenceBounds:
    """Bound delta(eps) of any ``releases`` changes of one user, all of one direction.

    Once the bounds decide ``claim``, the grid is not refined further.
    """
    found = []
    for direction in changes.directions:
        less, more = changes.of(direction)
        of_one = _bounds(less, more, eps, releases, gap=gap, claim=claim, progress=progress)
        found.append(of_one.renumbered(direction))
    worst = max(found, key=lambda one: one.lower)
    return SequenceBounds(
        lower=worst.lower,
        upper=max(one.upper for one in found),
        witness=worst.witness,
        settled=all(one.settled for one in found),
        kinds=tuple(kind for one in found for kind in one.kinds),
    )


def _bounds(
    less: ViewPairs | ThinnedPairs,
    more: ViewPairs,
    eps: float,
    releases: int,
    *,
    gap: float,
    claim: float | None,
    progress: Progress,
) -> SequenceBounds:
    """Bound delta(eps) where every change may follow every other."""
    if isinstance(less, ViewPairs) and _never_exceeds(less, eps, releases):
        return SequenceBounds(0.0, 0.0, witness=((0, releases),), settled=True, kinds=(0,))
    upper, width, lower, before = 1.0, _COARSEST, 0.0, math.inf
    witness: tuple[Times, ...] = ()
    founders: tuple[int, ...] = ()
    settled = False
    while True:
        try:
            changes = f"{releases:,} releases of {more.pair_count:,} changes"
            progress(f"{changes}, grid for a gap of {width:.0e}")
            kinds = _kinds(_profiles(less, eps, releases, gap=width), eps)
            found = _upper(kinds, eps, releases, width)
        except (TooLarge, Undecided):
            if not founders:
                raise
            break  # the bounds of the coarser grid stand
        upper = min(upper, found)
        if not founders:
            founders, witness = kinds.founder, _witness(kinds, eps, releases)
            lower = _lower(more, witness, eps, gap=max(gap, 1e-3), progress=progress)
        if not lower <= upper:
            raise InternalError("the bounds crossed: please report the configuration")
        # the error of the grid is proportional to the gap it is made for
        settled = before - found <= 3 * gap * found
        decided = claim is not None and (upper <= claim or lower > claim)
        if settled or decided or width <= _FINEST:
            break
        before, width = found, width / 8
    return SequenceBounds(lower, upper, witness, settled, founders)


def rough_uppers(changes: OneRelease, eps: float, releases: int) -> FloatArray:
    """Return an upper bound for every direction, from the coarsest grid alone, for a search."""
    return np.array(
        [
            _upper(_rough_kinds(changes, direction, eps, releases), eps, releases, _COARSEST)
            for direction in changes.directions
        ]
    )


def kinds_of_changes(changes: OneRelease, eps: float, releases: int) -> tuple[int, ...]:
    """List changes that stand for all others with similar profiles; an estimate, for a search."""
    return tuple(
        direction[kind]
        for direction in changes.directions
        for kind in _rough_kinds(changes, direction, eps, releases).founder
    )


def _rough_kinds(
    changes: OneRelease, direction: Sequence[int], eps: float, releases: int
) -> _Kinds:
    less, _ = changes.of(direction)
    return _kinds(_profiles(less, eps, releases, gap=_COARSEST), eps)


def _never_exceeds(less: ViewPairs, eps: float, releases: int) -> bool:
    """Whether no loss of all releases together exceeds eps (exact_view.md, Lemma 3)."""
    return releases * float(less.largest_loss.max()) * (1 + 1e-12) <= eps


def _profiles(less: ViewPairs | ThinnedPairs, eps: float, releases: int, *, gap: float) -> Profiles:
    if isinstance(less, ThinnedPairs):
        return less.profiles(eps, releases, gap=gap * _THINNED_GAP).as_profiles()
    return change_profiles(less, eps, releases, gap=gap)


def _kinds(profiles: Profiles, eps: float) -> _Kinds:
    """Group changes with similar profiles; the largest ones found the kinds."""
    # losses above eps weigh the same, however large
    below = multiples(profiles.base, profiles.size, profiles.step) - eps
    weight = np.exp(profiles.tilt * np.minimum(below, 0.0))
    value = np.empty((_MOST_KINDS, profiles.size))
    peak = np.empty(_MOST_KINDS)
    founder: list[int] = []
    for chosen, rows in profiles.blocks():
        for q, row in zip(chosen.tolist(), rows, strict=True):
            n = len(founder)
            if n:
                excess = row - value[:n] * (1 + _ALIKE)
                over = (np.maximum(excess, 0.0) * weight).max(axis=1) - _TINY * peak[:n]
                best = int(np.argmin(over))
                if over[best] <= 0 or n == _MOST_KINDS:
                    value[best] = np.maximum(value[best], row)
                    continue
            value[n], peak[n] = row, float((row * weight).max())
            founder.append(q)
    return _Kinds(profiles, value[: len(founder)], tuple(founder))


def _upper(kinds: _Kinds, eps: float, releases: int, gap: float) -> float:
    """Theorem 1 release by release; for many releases, the power of the pair of a block."""
    induction = _Induction(kinds, eps, releases, gap)
    if releases <= MOST_STEPS:
        later = induction.up_to(releases - 1)[-1]
        return max(p.composed(later, induction.tilt).delta(eps) for p in induction.pairs)
    blocks, rest = divmod(releases, _BLOCK)
    found = induction.up_to(_BLOCK)
    whole = found[-1].power(blocks, eps=eps * blocks * _BLOCK / releases, tolerance=gap / 8)
    if rest:
        whole = whole.composed(found[rest - 1].matched(whole), induction.tilt)
    return whole.delta(eps)


class _Induction:
    """Theorem 1 backward over the releases, for delta at eps after all of them.

    ``tolerance`` and ``spare`` are what may be cut from a law, see ``DominatingPair.shortened``.
    """

    def __init__(self, kinds: _Kinds, eps: float, releases: int, gap: float) -> None:
        self.pairs, self.envelope = kinds.pairs(), kinds.envelope
        self.tilt = self.envelope.saddle(eps, releases)
        self.tolerance = gap / releases
        exponent = releases * self.envelope.log_moment(self.tilt) - self.tilt * eps
        self.spare = 1e-4 * self.tolerance * math.exp(max(min(exponent, 0.0), -690.0))

    def product(self, first: DominatingPair, second: DominatingPair) -> DominatingPair:
        whole = first.composed(second, self.tilt)
        return whole.shortened(self.tilt, self.tolerance, self.spare)

    def up_to(self, releases: int) -> list[DominatingPair]:
        """Pairs that dominate 1, 2, ... releases: H of Theorem 1."""
        found = [self.envelope]
        for _ in range(releases - 1):
            before = _step(self.pairs, found[-1], self.tilt)
            found.append(before.shortened(self.tilt, self.tolerance, self.spare))
        return found


def _step(pairs: list[DominatingPair], later: DominatingPair, tilt: float) -> DominatingPair:
    """One release before those of ``later``: the worst change for every eps (Theorem 1)."""
    products = [pair.composed(later, tilt) for pair in pairs]
    first = min(product.base for product in products)
    count = max(product.base + len(product.mass) for product in products) - first
    value = products[0].profile(first, count)
    for product in products[1:]:
        np.maximum(value, product.profile(first, count), out=value)
    return DominatingPair.from_profile(value, base=first, step=later.step)


def _witness(kinds: _Kinds, eps: float, releases: int) -> tuple[Times, ...]:
    """Find a fixed sequence with a large delta, by heuristics: any sequence is sound."""
    search = _few if releases <= _FEW else _many
    times = search(kinds, eps, releases)
    return tuple((kinds.founder[kind], count) for kind, count in times.items())


def _few(kinds: _Kinds, eps: float, releases: int) -> dict[int, int]:
    """Choose how often each kind occurs: every release takes the change that is worst together with
    the earlier ones and the bound of the later ones; then single changes are exchanged."""
    induction = _Induction(kinds, eps, releases, _COARSEST)
    pairs, tilt = induction.pairs, induction.tilt
    mixed: list[int] = []
    so_far: DominatingPair | None = None
    for later in [*induction.up_to(releases - 1)[::-1], None]:
        rest = [part for part in (so_far, later) if part is not None]
        others = rest[0] if len(rest) == 1 else induction.product(*rest)
        found = [pair.composed(others, tilt).delta(eps) for pair in pairs]
        mixed.append(int(np.argmax(found)))
        last = pairs[mixed[-1]]
        so_far = last if so_far is None else induction.product(so_far, last)
    best = _ascent(induction, mixed, eps)
    return {kind: best.count(kind) for kind in sorted(set(best))}


def _many(kinds: _Kinds, eps: float, releases: int) -> dict[int, int]:
    """Choose how often each kind occurs: one in all releases, or two in half of them each."""
    pairs, tilt = kinds.pairs(), kinds.envelope.saddle(eps, releases)

    def powered(kind: int, times: int) -> DominatingPair:
        return pairs[kind].power(times, eps=eps * times / releases, tolerance=0.01)

    same = np.array([powered(kind, releases).delta(eps) for kind in range(len(pairs))])
    order = np.argsort(-same)[:_MIXED_KINDS].tolist()
    best, times = float(same[order[0]]), {order[0]: releases}
    half = releases // 2
    for first, second in combinations(order, 2):
        one, two = powered(first, half), powered(second, releases - half)
        found = one.matched(two).composed(two.matched(one), tilt).delta(eps)
        if found > best:
            best, times = found, {first: half, second: releases - half}
    return times


def _ascent(induction: _Induction, mixed: list[int], eps: float) -> list[int]:
    """Exchange one change after another for the change that is worst together with the others."""
    pairs, best, position, unchanged = induction.pairs, 0.0, 0, 0
    while unchanged < len(mixed):
        others = [pairs[kind] for i, kind in enumerate(mixed) if i != position]
        rest = others[0]
        for pair in others[1:]:
            rest = induction.product(rest, pair)
        found = [pair.composed(rest, induction.tilt).delta(eps) for pair in pairs]
        kind = int(np.argmax(found))
        unchanged = 0 if found[kind] > best * (1 + 1e-9) else unchanged + 1
        if found[kind] > best:
            best, mixed[position] = found[kind], kind
        position = (position + 1) % len(mixed)
    return mixed


def _lower(
    more: ViewPairs,
    witness: tuple[Times, ...],
    eps: float,
    *,
    gap: float,
    progress: Progress,
) -> float:
    try:
        return float(evaluate(sequence(more, witness), eps, gap=gap, progress=progress).lower.max())
    except AccountingError:
        return 0.0  # which is always a lower bound


def sequence(view_pairs: ViewPairs, witness: tuple[Times, ...]) -> ViewPairs:
    """Return the one pair of views of a fixed sequence of changes."""
    common = math.gcd(*(times for _, times in witness))
    changes = [q for q, times in witness for _ in range(times // common)]
    _, factor = view_pairs.factors_of(np.array(changes))
    whole = replace(view_pairs, start=np.array([0, len(factor)]), factor=factor, releases=common)
    return whole.subset(np.array([0]))
