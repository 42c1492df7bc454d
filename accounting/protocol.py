"""The privacy of the whole protocol, by the exact view (exact_view.md, Theorem 2).

Under substitution one user's input becomes another one, any two values in 0..max_value; under
zero-out it becomes 0, or appears in the place of 0.
Every number returned is an upper or a lower bound, and its name says which.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from accounting.base.arrays import IntArray
from accounting.base.enclosure import Enclosure, monotone
from accounting.base.errors import TooLarge, Undecided
from accounting.base.progress import Progress, silent
from accounting.base.validation import gap_width, instance, not_negative, probability
from accounting.composition.any_sequence import OneRelease, sequence_bounds
from accounting.composition.eps_search import eps_around
from accounting.evaluator.build_view_pairs import (
    SparseColumns,
    by_law,
    changed_pairs,
    with_moved_pairs,
)
from accounting.evaluator.evaluate import evaluate
from accounting.evaluator.pairs.all_pairs import AllBounds, bound_all, refined
from accounting.evaluator.pairs.blocks import InputPairs
from accounting.evaluator.view_pairs import ViewPairs
from accounting.model.change import (
    SUBSTITUTION,
    Adjacency,
    Change,
    EveryChange,
    Repeated,
    directions,
    every_change,
    touched_coordinates,
)
from accounting.model.configuration import Configuration
from accounting.model.delta import Accuracy, Delta
from accounting.model.family import UNIT
from accounting.model.laws.negative_binomial import NegativeBinomial
from accounting.model.laws.noise import NoiseSum
from accounting.model.proof_types import LARGEST_VALUE
from accounting.model.question import Question

_AT_ONCE = 1 << 17
"""Largest number of changes that are evaluated at once; more, in blocks."""
_NEAR_WORST = 64
"""Number of changes of which ``delta_near`` takes the worst."""
_LARGEST_EPS = 500.0
"""Largest eps that ``epsilon`` tries for one repeated change."""


@dataclass(frozen=True)
class Protocol:
    """Bounds on the privacy of one configuration.

    Args:
        configuration: The noise that is deployed.
        releases: Number of releases that are seen together.
        same_change: Whether a user makes the same change in every release (exact_view.md,
            Theorem 3); otherwise one user's sequence of inputs is replaced by any other, chosen
            adaptively (composition/releases.md).
        adjacency: Which data sets are neighbors: "substitution" or "zero-out".

    Raises:
        InvalidParameter: If ``configuration`` is something else, or ``releases`` or ``adjacency``
            is outside its domain.

    >>> from accounting import Configuration, NegativeBinomial
    >>> noise = NegativeBinomial(r=12.0, p=0.96)
    >>> protocol = Protocol(Configuration.of(1, [((-1, 1), noise)], eps_central=0.9))
    >>> print(protocol.delta(1.0))  # doctest: +ELLIPSIS
    delta(1) in [1.56...e-06, 1.57...e-06], worst where input 0 becomes 1
    >>> print(protocol.delta_of(Change(1, 0), 1.0).enclosure.upper < 1.6e-6)
    True
    >>> print(protocol.epsilon(1e-6))  # doctest: +ELLIPSIS
    [1.0..., 1.0...]
    >>> [eps for eps, enclosure in protocol.profile([0.5, 1.0]) if enclosure.upper < 1e-5]
    [1.0]
    """

    configuration: Configuration
    releases: int = 1
    same_change: bool = False
    adjacency: Adjacency = SUBSTITUTION

    def __post_init__(self) -> None:
        remedy = "Configuration.of(...) makes one; a parameter file has loss_distribution and audit"
        instance("configuration", self.configuration, Configuration, remedy)
        object.__setattr__(self, "releases", self._question.releases)

    @property
    def _question(self) -> Question:
        """The question without its eps; refuses what is outside its domain."""
        return Question(
            eps=0.0,
            releases=self.releases,
            same_change=self.same_change,
            adjacency=self.adjacency,
        )

    @property
    def any_sequence(self) -> bool:
        """Whether one user's inputs may change differently from release to release."""
        return self._question.any_sequence

    @cached_property
    def view_pairs(self) -> ViewPairs:
        """The pairs of views of all changes."""
        self._check_size()
        top = self.configuration.max_value
        single = self.pairs_of(changed_pairs(top, self.adjacency))
        moves = touched_coordinates(self.configuration.dimension, self.adjacency) > 1
        return with_moved_pairs(single, top) if moves else single

    def _check_size(self) -> None:
        top = self.configuration.max_value
        if top > LARGEST_VALUE:
            raise TooLarge(
                f"max_value = {top} has {top * (top + 1):,} ordered pairs; all pairs are evaluated "
                f"up to max_value = {LARGEST_VALUE}, single pairs beyond"
            )

    @property
    def changes(self) -> EveryChange:
        """All changes of one user, in the order of ``view_pairs``."""
        config = self.configuration
        return every_change(
            max_value=config.max_value, dimension=config.dimension, adjacency=self.adjacency
        )

    @property
    def one_release(self) -> OneRelease:
        """The changes of one user in each of several releases."""
        views = self.view_pairs if self.releases == 1 else replace(self, releases=1).view_pairs
        return OneRelease(views, views, directions(self.changes, self.adjacency))

    @cached_property
    def noises(self) -> tuple[NoiseSum, ...]:
        """Per atom of the family; that of {-1, +1} is W, with the geometric central part."""
        config = self.configuration
        noises = [config.noise[elements] for elements in config.family.atoms]
        unit = config.family.atoms.index(UNIT)
        geometric = NegativeBinomial(1.0, math.exp(-2 * config.step))
        noises[unit] = NoiseSum((*noises[unit].parts, geometric), p_ulps=8 + 4 * config.step)
        return tuple(noises)

    @cached_property
    def laws(self) -> tuple[tuple[NoiseSum, ...], IntArray]:
        """The distinct laws of ``noises``, and for every atom the index of its law; W, with the
        geometric central part, is alone."""
        return by_law(self.noises, self.configuration.family.atoms.index(UNIT))

    @cached_property
    def input_pairs(self) -> InputPairs:
        """All pairs of inputs in one coordinate, for evaluations block by block."""
        family, (laws, law) = self.configuration.family, self.laws
        columns = SparseColumns.of(family.sparse_columns)
        unit = family.atoms.index(UNIT)
        return InputPairs(laws, columns, law, unit, self.configuration.step, self.releases)

    def pairs_of(self, pairs: IntArray) -> ViewPairs:
        """Return the pairs of views of the changes (j, k) within a coordinate that ``pairs`` lists,
        an array of shape (n, 2)."""
        return self.input_pairs.chosen(pairs)

    @property
    def _in_blocks(self) -> bool:
        """Whether there are too many changes to evaluate all at once."""
        single = self.configuration.dimension == 1 and self.adjacency == SUBSTITUTION
        return single and self.input_pairs.pair_count > _AT_ONCE

    def delta(
        self,
        eps: float,
        *,
        gap: float = 0.01,
        absolute: float = 0.0,
        progress: Progress = silent,
    ) -> Delta:
        """Bound delta(eps) over all changes; the worst one to a relative gap.

        Args:
            eps: The eps of the guarantee.
            gap: Relative gap between the bounds at which refining ends.  Where the changes in
                several releases may differ, it is that of the upper bound's grid: the lower bound
                belongs to a fixed sequence, which an adaptive one may exceed by a few percent.
            absolute: Width of the enclosure at which refining ends as well.
            progress: Called with one line of text now and then.

        Returns:
            The bounds, and the change that attains the lower one.

        Raises:
            InvalidParameter: If a number is outside its domain.
            TooLarge: If the computation would not fit into memory.
        """
        eps, accuracy = not_negative("eps", eps), Accuracy(gap, absolute)
        if self.any_sequence:
            return self._of_any_sequence(eps, accuracy, progress)
        if self._in_blocks:
            self._check_size()
            found = bound_all(self.input_pairs, eps, gap=gap, absolute=absolute, progress=progress)
            return self._delta_of(found, self.changes, eps, accuracy)
        return self._of_pairs(self.view_pairs, self.changes, eps, accuracy, progress)

    def refined(
        self, known: Delta, *, gap: float, absolute: float = 0.0, progress: Progress = silent
    ) -> Delta:
        """Bound delta at the same eps with a smaller gap; of many changes, only those that may be
        the worst are evaluated again."""
        if self.any_sequence or not self._in_blocks:
            return self.delta(known.eps, gap=gap, absolute=absolute, progress=progress)
        bounds = AllBounds(known.lower, known.upper, known.compared)
        found = refined(
            self.input_pairs, bounds, known.eps, gap=gap, absolute=absolute, progress=progress
        )
        return self._delta_of(found, self.changes, known.eps, Accuracy(gap, absolute))

    def delta_near(
        self, worst: Delta, *, gap: float, absolute: float = 0.0, progress: Progress = silent
    ) -> Delta:
        """Bound delta at the same eps for the changes that are worst in ``worst``, found for
        other noise; for few changes, all. The lower bound is one for all changes, the upper
        bound is not."""
        if self.any_sequence or not self._in_blocks:
            return self.delta(worst.eps, gap=gap, absolute=absolute, progress=progress)
        order = np.lexsort((-worst.upper, -worst.lower))[:_NEAR_WORST]
        changes = [worst.changes[int(q)] for q in order]
        part, accuracy = self.pairs_of(self.input_pairs.at(order)), Accuracy(gap, absolute)
        return self._of_pairs(part, changes, worst.eps, accuracy, progress)

    def delta_of(
        self, change: Change, eps: float, *, gap: float = 0.01, absolute: float = 0.0
    ) -> Delta:
        """Bound delta(eps) of one change within a coordinate, the same in every release.

        Args:
            change: What the user changes.
            eps: The eps of the guarantee.
            gap: Relative gap between the bounds at which refining ends.
            absolute: Width of the enclosure at which refining ends as well.

        Returns:
            The bounds for this change alone.

        Raises:
            InvalidParameter: If no user can make this change, or the changes in several releases
                may differ.
        """
        self._question.check_about(change, self.configuration.max_value)
        part = self.pairs_of(np.array([[change.before, change.after]]))
        eps, accuracy = not_negative("eps", eps), Accuracy(gap, absolute)
        return self._of_pairs(part, [change], eps, accuracy, silent)

    def _of_any_sequence(self, eps: float, accuracy: Accuracy, progress: Progress) -> Delta:
        found = sequence_bounds(
            self.one_release, eps, self.releases, gap=accuracy.gap, progress=progress
        )
        exact = self.configuration.family.exact
        enclosure = Enclosure(found.lower if exact else 0.0, found.upper)
        changes = self.changes
        return Delta(
            eps=eps,
            enclosure=enclosure,
            worst_change=changes[found.witness[0][0]],
            exact=exact,
            met=found.settled or accuracy.reached_by(enclosure),
            changes=(),
            lower=np.zeros(0),
            upper=np.zeros(0),
            worst_sequence=tuple(Repeated(changes[q], times) for q, times in found.witness),
        )

    def _of_pairs(
        self,
        view_pairs: ViewPairs,
        changes: Sequence[Change],
        eps: float,
        accuracy: Accuracy,
        progress: Progress,
    ) -> Delta:
        found = evaluate(
            view_pairs, eps, gap=accuracy.gap, absolute=accuracy.absolute, progress=progress
        )
        return self._delta_of(AllBounds(found.lower, found.upper), changes, eps, accuracy)

    def _delta_of(
        self, found: AllBounds, changes: Sequence[Change], eps: float, accuracy: Accuracy
    ) -> Delta:
        exact = self.configuration.family.exact
        lower = found.lower if exact else np.zeros_like(found.lower)
        worst = int(np.argmax(lower if exact else found.upper))
        enclosure = Enclosure(float(lower.max()), float(found.upper.max()))
        return Delta(
            eps=eps,
            enclosure=enclosure,
            worst_change=changes[worst],
            exact=exact,
            met=not exact or accuracy.reached_by(enclosure),
            changes=changes,
            lower=lower,
            upper=found.upper,
            compared=found.compared,
        )

    def profile(
        self,
        grid: Sequence[float],
        *,
        gap: float = 0.01,
        absolute: float = 0.0,
        progress: Progress = silent,
    ) -> list[tuple[float, Enclosure]]:
        """Bound delta on a grid of eps.

        Args:
            grid: Values of eps, in any order.
            gap: As for ``delta``.
            absolute: As for ``delta``.
            progress: Called with one line of text now and then.

        Returns:
            Pairs (eps, enclosure) by increasing eps.  Both bounds are monotone, which is sound
            because the truth is.

        Raises:
            InvalidParameter: If a number is outside its domain.
        """
        points = sorted({not_negative("eps", eps) for eps in grid})
        found = [
            self.delta(eps, gap=gap, absolute=absolute, progress=progress).enclosure
            for eps in points
        ]
        return list(zip(points, monotone(found), strict=True))

    def epsilon(self, delta: float, *, gap: float = 1e-3, progress: Progress = silent) -> Enclosure:
        """Find the smallest eps >= 0 with delta(eps) <= delta.

        Args:
            delta: The delta of the guarantee.
            gap: Relative width of the enclosure (absolute below 1).
            progress: Called with one line of text now and then.

        Returns:
            An enclosure: an upper bound of delta certifies ``upper``, a lower bound certifies
            ``lower``.

        Raises:
            InvalidParameter: If a number is outside its domain.
            Undecided: If there is no such eps, or delta there is too close to decide.
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
            elif self.any_sequence:
                return eps_around(
                    trial,
                    lambda eps: self.delta(eps, gap=0.01, progress=progress).enclosure,
                    delta,
                    gap=gap,
                    low=low,
                    high=high,
                )
            elif inner > 1e-6:
                inner /= 8
                continue
            else:
                raise Undecided(
                    f"delta at eps = {trial!r} is {found.enclosure}, too close to {delta!r} to "
                    "decide; ask for a wider gap"
                )
            if high is None:
                if low > _LARGEST_EPS:
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
