"""The privacy of the whole protocol, by the exact view (exact_view.md, Theorem 2).

Adjacency is substitution: one user's input changes from j to k, any two values in 0..max_value.
Every number returned is a bound with its side in its name; see ``Enclosure``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from accounting.base.arrays import FloatArray, IntArray
from accounting.base.enclosure import Enclosure
from accounting.base.errors import InvalidParameter, TooLarge, Undecided
from accounting.base.progress import Progress, silent
from accounting.base.validation import gap_width, not_negative, probability, whole
from accounting.composition.any_sequence import sequence_bounds
from accounting.evaluator.build_view_pairs import differences, protocol_pairs, with_moved_pairs
from accounting.evaluator.evaluate import evaluate
from accounting.evaluator.pair_error_terms import Bounds
from accounting.evaluator.view_pairs import ViewPairs
from accounting.model.change import Change, Repeated, every_change
from accounting.model.configuration import Configuration
from accounting.model.family import UNIT
from accounting.model.negative_binomial import NegativeBinomial
from accounting.model.noise import NoiseSum
from accounting.model.proof_types import LARGEST_VALUE, MOST_RELEASES


@dataclass(frozen=True)
class Delta:
    """The divergence at one eps: of the worst change, and of every change.

    ``worst_change`` attains ``enclosure.lower``; no change exceeds
    ``enclosure.upper``.  ``exact`` is False for a family with more atoms than values: then only the
    upper bounds mean anything.
    ``met`` says whether the gap that was asked for was reached.

    For several releases with any changes there are no bounds of single pairs; ``worst_sequence`` is
    the fixed sequence that attains ``enclosure.lower``: changes, and how often each is made.
    """

    eps: float
    enclosure: Enclosure
    worst_change: Change
    exact: bool
    met: bool
    changes: Sequence[Change]
    lower: FloatArray
    upper: FloatArray
    worst_sequence: tuple[Repeated, ...] = ()


@dataclass(frozen=True)
class Protocol:
    """Evaluators for one configuration.

    With ``releases`` = T every answer is for T releases: one user's sequence of values is replaced
    by any other, chosen adaptively (composition/releases.md).  With ``same_change`` it is only for
    a user who makes the same change in every release (exact_view.md, Theorem 3).

    """

    configuration: Configuration
    releases: int = 1
    same_change: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "releases", whole("releases", self.releases, least=1))
        if self.any_sequence:
            whole("releases", self.releases, least=1, most=MOST_RELEASES)

    @property
    def any_sequence(self) -> bool:
        return self.releases > 1 and not self.same_change

    @cached_property
    def view_pairs(self) -> ViewPairs:
        """All ordered pairs."""
        top = self.configuration.max_value
        if top > LARGEST_VALUE:
            raise TooLarge(
                f"max_value = {top} has {top * (top + 1):,} ordered pairs; all pairs are evaluated "
                f"up to max_value = {LARGEST_VALUE}, single pairs beyond"
            )
        single = self._pairs_of(np.arange(top + 1))
        return with_moved_pairs(single, top) if self.configuration.dimension > 1 else single

    @property
    def changes(self) -> list[Change]:
        """What one user can change, in the order of ``view_pairs``."""
        config = self.configuration
        return every_change(max_value=config.max_value, dimension=config.dimension)

    @cached_property
    def noises(self) -> tuple[NoiseSum, ...]:
        """Per atom of the family; that of {-1, +1} is W, with the geometric central part."""
        config = self.configuration
        noises = [config.noise[elements] for elements in config.family.atoms]
        unit = config.family.atoms.index(UNIT)
        geometric = NegativeBinomial(1.0, math.exp(-2 * config.step))
        noises[unit] = NoiseSum((*noises[unit].parts, geometric), p_ulps=8 + 4 * config.step)
        return tuple(noises)

    def _pairs_of(self, inputs: IntArray) -> ViewPairs:
        family = self.configuration.family
        found = differences([family.sparse_columns[j] for j in inputs])
        unit = family.atoms.index(UNIT)
        base = protocol_pairs(self.noises, found, unit, self.configuration.step, inputs)
        return replace(base, releases=self.releases)

    def delta(
        self, eps: float, *, gap: float = 0.01, absolute: float = 0.0, progress: Progress = silent
    ) -> Delta:
        """delta(eps) over all ordered pairs; the worst one to relative gap ``gap``.

        For several releases with any changes the gap is that of the upper bound's grid: the lower
        bound belongs to a fixed sequence, which an adaptive one may exceed by a few percent.
        """
        if self.any_sequence:
            return self._any(eps, gap, absolute, progress)
        return self._answer(self.view_pairs, self.changes, eps, gap, absolute, progress)

    def delta_of(
        self, change: Change, eps: float, *, gap: float = 0.01, absolute: float = 0.0
    ) -> Delta:
        """delta(eps) of one change within a coordinate, the same in every release."""
        if self.any_sequence:
            raise InvalidParameter(
                f"{change} is one change, and {self.releases} releases may have different ones: "
                "ask with same_change=True"
            )
        top = self.configuration.max_value
        for name in ("before", "after"):
            whole(name, getattr(change, name), least=0)
            if getattr(change, name) > top:
                raise InvalidParameter(
                    f"{name} = {getattr(change, name)} is larger than max_value = {top}"
                )
        if change.moved or change.before == change.after:
            raise InvalidParameter(
                f"({change.before}, {change.after}) is no change within a coordinate: take two "
                "different values"
            )
        part = self._pairs_of(np.array([change.before, change.after])).subset(np.array([0]))
        return self._answer(part, [change], eps, gap, absolute, silent)

    def sparse(
        self, eps: float, *, gap: float = 0.01, absolute: float = 0.0, progress: Progress = silent
    ) -> Delta:
        """delta(eps) for vectors with at most one non-zero coordinate."""
        vectors = replace(self.configuration, dimension=max(2, self.configuration.dimension))
        return replace(self, configuration=vectors).delta(
            eps, gap=gap, absolute=absolute, progress=progress
        )

    def _any(self, eps: float, gap: float, absolute: float, progress: Progress) -> Delta:
        eps, gap = not_negative("eps", eps), gap_width(gap)
        absolute = not_negative("absolute", absolute)
        one = replace(self, releases=1)
        found = sequence_bounds(
            one.view_pairs, one.view_pairs, eps, self.releases, gap=gap, progress=progress
        )
        exact = self.configuration.family.exact
        enclosure = Enclosure(found.lower if exact else 0.0, found.upper)
        width = enclosure.upper - enclosure.lower
        return Delta(
            eps=eps,
            enclosure=enclosure,
            worst_change=self.changes[found.witness[0][0]],
            exact=exact,
            met=found.settled or width <= max(gap * enclosure.upper, absolute),
            changes=(),
            lower=np.zeros(0),
            upper=np.zeros(0),
            worst_sequence=tuple(Repeated(self.changes[q], times) for q, times in found.witness),
        )

    def _answer(
        self,
        view_pairs: ViewPairs,
        changes: Sequence[Change],
        eps: float,
        gap: float,
        absolute: float,
        progress: Progress,
    ) -> Delta:
        eps = not_negative("eps", eps)
        gap = gap_width(gap)
        found = evaluate(
            view_pairs, eps, gap=gap, absolute=not_negative("absolute", absolute), progress=progress
        )
        exact = self.configuration.family.exact
        if not exact:
            found = Bounds(np.zeros_like(found.lower), found.upper)
        worst = int(np.argmax(found.lower if exact else found.upper))
        enclosure = Enclosure(float(found.lower.max()), float(found.upper.max()))
        width = enclosure.upper - enclosure.lower
        return Delta(
            eps=eps,
            enclosure=enclosure,
            worst_change=changes[worst],
            exact=exact,
            met=not exact or width <= max(gap * enclosure.upper, absolute),
            changes=changes,
            lower=found.lower,
            upper=found.upper,
        )

    def profile(
        self,
        grid: Sequence[float],
        *,
        gap: float = 0.01,
        absolute: float = 0.0,
        progress: Progress = silent,
    ) -> list[tuple[float, Enclosure]]:
        """Enclosures of delta on a grid of eps; both sides are made monotone, which is sound
        because the truth is."""
        points = sorted({not_negative("eps", eps) for eps in grid})
        found = [
            self.delta(eps, gap=gap, absolute=absolute, progress=progress).enclosure
            for eps in points
        ]
        return list(zip(points, monotone(found), strict=True))

    def epsilon(self, delta: float, *, gap: float = 1e-3, progress: Progress = silent) -> Enclosure:
        """The smallest eps >= 0 with delta(eps) <= delta, to relative (or absolute) gap ``gap``.

        ``upper`` is certified by an upper bound of delta there, ``lower`` by a lower bound.
        """
        delta = probability("delta", delta)
        gap = gap_width(gap)
        low, high = 0.0, None
        trial, inner = 1.0, 0.01
        for _ in range(200):
            found = self.delta(trial, gap=inner, absolute=0.1 * delta * inner, progress=progress)
            if found.enclosure.upper <= delta:
                high = trial
                if trial == 0.0:
                    return Enclosure(0.0, 0.0)
            elif found.enclosure.lower > delta:
                low = trial
            elif inner > 1e-6 and not self.any_sequence:
                inner /= 8
                continue
            elif self.any_sequence:
                return self._enclosed(low, high, trial, delta, gap, progress)
            else:
                raise Undecided(
                    f"delta at eps = {trial!r} is {found.enclosure}, too close to {delta!r} to "
                    "decide; ask for a wider gap"
                )
            if high is None:
                if low > 500:
                    break
                trial = 2 * trial if low else 0.0
                continue
            if high - low <= gap * max(high, 1.0) * 0.999:
                return Enclosure(low, high)
            trial = 0.0 if low == 0.0 and high < 1e-9 else (low + high) / 2
        raise Undecided(
            f"no eps up to {low!r} has delta <= {delta!r}: some outcome gives the input away with "
            "a larger probability; add noise to the atoms with negative shifts"
        )

    def _enclosed(
        self,
        low: float,
        high: float | None,
        between: float,
        delta: float,
        gap: float,
        progress: Progress,
    ) -> Enclosure:
        """The eps of any sequence, where the bounds at ``between`` contain delta: from there up to
        where the upper bound meets it, and down to where a fixed sequence exceeds it."""

        def bounds(eps: float) -> Enclosure:
            return self.delta(eps, gap=0.01, progress=progress).enclosure

        top = high if high is not None else 2 * between
        while bounds(top).upper > delta:
            if top > 1e4:
                raise Undecided(f"no eps up to {top!r} has delta <= {delta!r}")
            top *= 2
        first, last = between, top
        while last - first > gap * max(last, 1.0) / 4:
            middle = (first + last) / 2
            first, last = (first, middle) if bounds(middle).upper <= delta else (middle, last)
        begin, end = low, between
        while end - begin > gap * max(end, 1.0) / 4:
            middle = (begin + end) / 2
            begin, end = (middle, end) if bounds(middle).lower > delta else (begin, middle)
        return Enclosure(begin, last)


def monotone(found: Sequence[Enclosure]) -> list[Enclosure]:
    """Enclosures of delta at increasing eps, tightened: the truth does not increase with eps."""
    upper = np.minimum.accumulate([e.upper for e in found])
    lower = np.maximum.accumulate([e.lower for e in found][::-1])[::-1]
    return [Enclosure(float(lo), float(up)) for lo, up in zip(lower, upper, strict=True)]
