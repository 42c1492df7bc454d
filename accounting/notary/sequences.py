"""Several releases with any sequence of changes, in ball arithmetic (notary.md, section 7).

Every change gets a law of its loss on one grid that dominates it.  Changes with similar profiles
form one kind.  The induction goes backward over the releases: the pointwise largest profile of all
kinds becomes a law again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from flint import arb

from accounting.base.arrays import FloatArray, multiples
from accounting.base.balls import above, below
from accounting.base.deadline import check_deadline
from accounting.notary.adaptive import LabelLaws, adaptive_lower
from accounting.notary.factors import Factor
from accounting.notary.grid import Grid, ShiftedChange
from accounting.notary.loss_laws import (
    Cut,
    Profile,
    coarser,
    composed,
    convex_law,
    cut_for,
    delta,
    largest,
    power,
    profile,
)
from accounting.notary.processes import in_processes

# Rules of thumb: they decide the running time and the gap, not whether the bounds hold.  Some are
# also in composition/any_sequence.py, kept separate so that the proofs stay independent.
_MOST_ONE_BY_ONE = 32
"""Releases up to which the induction goes back one release at a time."""
_BLOCK = 8
"""Releases per block where there are more than that."""
_MOST_FIXED = 8
"""Releases up to which a bad fixed sequence is searched for."""
_TAIL_SHARE = 1e-10
"""Share of the tilted mass that may be cut from the tails in all releases together."""
_MOST_KINDS = 64
"""Kinds of changes that the induction tells apart."""
_MOST_ADAPTIVE = 24
"""Changes among which the adaptive strategy chooses."""
_ALIKE, _TINY = 1e-3, 1e-8
"""A profile joins a kind that it exceeds by at most this share, or by this share of the kind's
largest tilted value; delta grows by about the same share."""


@dataclass(frozen=True)
class SequenceFinding:
    """No sequence of changes exceeds ``upper``; an adaptive one attains ``lower``."""

    upper: float
    lower: float = 0.0
    begin: int = 0
    """Index of the change with which the adaptive sequence begins."""
    fixed: float = 0.0
    """Lower bound on delta for the fixed sequence ``witness``."""
    witness: tuple[tuple[int, int], ...] = ()
    """The fixed sequence: indices of its changes, and how often each is made."""

    def renumbered(self, direction: Sequence[int]) -> SequenceFinding:
        """Return the same finding with the change i called ``direction[i]``."""
        witness = tuple((direction[i], times) for i, times in self.witness)
        return replace(self, begin=direction[self.begin], witness=witness)


def worst_of(found: Iterable[SequenceFinding]) -> SequenceFinding:
    """Combine findings where a sequence belongs to any one of these directions."""
    each = list(found)
    lower, fixed = max(each, key=lambda one: one.lower), max(each, key=lambda one: one.fixed)
    return SequenceFinding(
        upper=max(one.upper for one in each),
        lower=lower.lower,
        begin=lower.begin,
        fixed=fixed.fixed,
        witness=fixed.witness,
    )


def sequence_bounds(
    grid: Grid, changes: Sequence[ShiftedChange], eps: arb, releases: int, *, deadline: float
) -> SequenceFinding:
    """Bounds on delta(eps) on one grid, which is made for one release."""
    grid.prepare(changes, deadline)
    profiles = in_processes(lambda one: profile(grid.law(one.shifts, "above"), grid.h), changes)
    check_deadline(deadline)
    whole = convex_law(largest(profiles), grid.h)
    cut = cut_for(whole, grid.h, eps=float(eps.mid()), times=releases, share=_TAIL_SHARE)
    kinds, founders = _kinds(profiles, float(eps.mid()), cut.tilt)
    laws = [convex_law(kind, grid.h) for kind in kinds]
    proof = _Induction(grid, laws, whole, eps=eps, cut=cut.of(1 / releases), deadline=deadline)
    if releases > _MOST_ONE_BY_ONE:
        return SequenceFinding(proof.many(releases, cut), begin=founders[0])
    later = proof.up_to(releases - 1)
    found = proof.beside(later[-1])
    worst = [founders[kind] for kind in np.argsort(found)[::-1][:_MOST_ADAPTIVE]]
    labels = [
        LabelLaws.of(*(grid.law(changes[i].shifts, side) for side in ("p", "q"))) for i in worst
    ]
    lower, first = adaptive_lower(labels, eps, grid.h, releases)
    adaptive = SequenceFinding(max(found), lower=lower, begin=worst[first])
    if releases > _MOST_FIXED:
        return adaptive
    chosen = tuple((founders[kind], times) for kind, times in proof.witness(later))
    made = tuple(c for i, times in chosen for _ in range(times) for c in changes[i].shifts)
    fixed = max(0.0, below(grid.lower(made, eps)))
    if fixed > lower:
        adaptive = replace(adaptive, lower=fixed, begin=chosen[0][0])
    return replace(adaptive, fixed=fixed, witness=chosen)


@dataclass(frozen=True)
class _Induction:
    """The backward induction over the releases (composition/releases.md, Theorem 1).

    ``laws`` dominate the kinds of changes, and ``whole`` dominates them all.
    """

    grid: Grid
    laws: Sequence[Factor]
    whole: Factor
    eps: arb
    cut: Cut
    deadline: float

    def up_to(self, releases: int) -> list[Factor]:
        """Laws that dominate every sequence of 1, 2, ..., ``releases`` changes."""
        h, found = self.grid.h, [self.whole]
        for _ in range(releases - 1):
            check_deadline(self.deadline)
            later = found[-1]
            products = in_processes(lambda law: profile(composed(law, later), h), self.laws)
            found.append(self.cut(convex_law(largest(products), h), h))
        return found

    def beside(self, rest: Factor) -> list[float]:
        """delta(eps) of every kind of change composed with ``rest``, rounded up."""
        check_deadline(self.deadline)
        h = self.grid.h
        return in_processes(lambda law: above(delta(composed(law, rest), self.eps, h)), self.laws)

    def many(self, releases: int, cut: Cut) -> float:
        """delta(eps) of many releases, taken in blocks, rounded up."""
        blocks, rest = divmod(releases, _BLOCK)
        found = self.up_to(_BLOCK)
        law, h = power(found[-1], self.grid.h, blocks, cut.of(0.5))
        check_deadline(self.deadline)
        if rest:
            last, step = found[rest - 1], self.grid.h
            while step < h:
                last, step = coarser(last, step), 2 * step
            law = composed(law, last)
        return above(delta(law, self.eps, h))

    def witness(self, later: Sequence[Factor]) -> list[tuple[int, int]]:
        """A fixed sequence of kinds that looks bad, with how often each kind occurs.

        Release by release, it takes the kind that is worst together with those already chosen and
        the worst that may follow; then each choice is reconsidered with all others fixed.
        """
        chosen: list[int] = []
        for follows in [*reversed(later), None]:
            parts = [self.laws[kind] for kind in chosen] + ([] if follows is None else [follows])
            chosen.append(self._worst(parts))
        for i in range(len(chosen)):
            others = [self.laws[kind] for k, kind in enumerate(chosen) if k != i]
            chosen[i] = self._worst(others)
        return [(kind, chosen.count(kind)) for kind in sorted(set(chosen))]

    def _worst(self, parts: Sequence[Factor]) -> int:
        product = parts[0]
        for part in parts[1:]:
            product = self.cut(composed(product, part), self.grid.h)
        return int(np.argmax(self.beside(product)))


def _kinds(profiles: Sequence[Profile], eps: float, tilt: float) -> tuple[list[Profile], list[int]]:
    """Profiles such that each given one lies below one of them, and the index of the change that
    each of them started with."""
    whole = largest(profiles)
    first, count = whole.base, len(whole.value)
    # a loss above eps decides the test, so larger losses weigh no more
    weight = np.exp(tilt * np.minimum(multiples(first, count, whole.step) - eps, 0.0))
    size = [float((found.over(first, count) * weight).max()) for found in profiles]
    kinds: list[FloatArray] = []
    founders: list[int] = []
    for i in np.argsort(size)[::-1].tolist():
        row = profiles[i].over(first, count)
        if kinds:
            over = [
                float((np.maximum(row - kind * (1 + _ALIKE), 0) * weight).max()) - _TINY * size[f]
                for kind, f in zip(kinds, founders, strict=True)
            ]
            best = int(np.argmin(over))
            if over[best] <= 0 or len(kinds) == _MOST_KINDS:
                np.maximum(kinds[best], row, out=kinds[best])
                continue
        kinds.append(row)
        founders.append(i)
    return [Profile(first, kind, whole.step) for kind in kinds], founders
