"""Hockey-stick divergences of shifted noises: a product, linear queries, and the paper's bound.

d_eps(P || Q) = sum over outcomes of (P - e^eps Q)_+.  Everything here is a bound
(discretisation.md, Theorem 3); the exact view of the protocol itself is in ``protocol``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from accounting.base.arrays import FloatArray, IntArray
from accounting.base.enclosure import Enclosure, counted
from accounting.base.errors import InvalidParameter, Undecided
from accounting.base.validation import gap_width, not_negative, positive, shown
from accounting.evaluator.build_view_pairs import differences, linear_query_pairs, ordered_pairs
from accounting.evaluator.evaluate import evaluate
from accounting.evaluator.view_pairs import ViewPairs
from accounting.model.family import Atom, Family
from accounting.model.laws.noise import Law, NoiseSum

Noise = Law | NoiseSum
LARGEST_SHIFT = 1 << 40
"""Largest magnitude of a shift; larger ones might overflow 64-bit integers."""


def product_divergence(
    noises: Sequence[Noise],
    shifts: Sequence[int],
    *,
    eps: float,
    gap: float = 0.01,
    absolute: float = 0.0,
) -> Enclosure:
    """d_eps(prod_i (D_i + shift_i) || prod_i D_i), the left side of the paper's refined lemma.

    Args:
        noises: The laws D_i.
        shifts: One integer per noise.
        eps: The eps of the divergence.
        gap: Relative gap of the enclosure.
        absolute: Width of the enclosure that is enough as well.

    Returns:
        An enclosure of the divergence.

    Raises:
        InvalidParameter: If the arguments do not fit together or are outside their domains.
        Undecided: If neither accuracy can be reached; its text has the enclosure that was.

    >>> from accounting import NegativeBinomial
    >>> found = product_divergence([NegativeBinomial(30.0, 0.9)], [2], eps=0.3, gap=0.001)
    >>> found.relative_gap <= 0.001
    True
    """
    shift = _integers("shifts", shifts)
    if shift.ndim != 1 or len(shift) != len(noises):
        raise InvalidParameter(
            f"shifts = {shown(list(shifts))} must have one entry for each noise, {len(noises)} "
            "in all"
        )
    used = np.flatnonzero(shift)
    view_pairs = ViewPairs(
        noises=tuple(_as_sum(noise) for noise in noises),
        plain=np.stack([used, shift[used]], axis=1),
        start=np.array([0, len(used)]),
        factor=np.arange(len(used)),
    )
    eps, gap = not_negative("eps", eps), gap_width(gap)
    found = evaluate(view_pairs, eps, gap=gap, absolute=not_negative("absolute", absolute))
    enclosure = Enclosure(float(found.lower.max()), float(found.upper.max()))
    if enclosure.upper - enclosure.lower > max(gap * enclosure.upper, absolute):
        raise Undecided(
            f"the divergence at eps = {eps} is in {enclosure}; a relative gap of {gap} is out of "
            "reach, ask for a wider one or give an absolute width"
        )
    return enclosure


@dataclass(frozen=True)
class LinearQueries:
    """Noise addition for a Q-linear query: every user holds one column of Q.

    Attributes:
        columns: ``columns[j]`` is the vector that a user of type j adds.
        noises: ``noises[i]`` protects entry i of the sum.

    >>> from accounting import NegativeBinomial
    >>> queries = LinearQueries.of([[0, 0], [1, 2]], [NegativeBinomial(30.0, 0.9)] * 2)
    >>> enclosure, worst, lower, upper = queries.delta(eps=0.3)
    >>> lower.shape == upper.shape == (2,)
    True
    """

    columns: IntArray
    noises: tuple[NoiseSum, ...]

    @staticmethod
    def of(columns: Sequence[Sequence[int]] | IntArray, noises: Sequence[Noise]) -> LinearQueries:
        array = _integers("columns", columns)
        if array.ndim != 2 or array.shape[1] != len(noises) or len(array) < 2:
            raise InvalidParameter(
                f"columns of shape {array.shape} do not fit {counted(len(noises), 'noise')}: give "
                "at least two columns with one entry per noise"
            )
        return LinearQueries(array, tuple(_as_sum(noise) for noise in noises))

    @cached_property
    def view_pairs(self) -> ViewPairs:
        sparse = [{int(i): int(row[i]) for i in np.flatnonzero(row)} for row in self.columns]
        return linear_query_pairs(self.noises, differences(sparse))

    def delta(
        self, *, eps: float, gap: float = 0.01, absolute: float = 0.0
    ) -> tuple[Enclosure, tuple[int, int], FloatArray, FloatArray]:
        """The largest divergence over all ordered pairs of columns, the pair that attains its
        lower bound, and the lower and upper bounds of all pairs (j, k), row by row."""
        found = evaluate(
            self.view_pairs,
            not_negative("eps", eps),
            gap=gap_width(gap),
            absolute=not_negative("absolute", absolute),
        )
        j, k = ordered_pairs(len(self.columns))[int(np.argmax(found.lower))]
        enclosure = Enclosure(float(found.lower.max()), float(found.upper.max()))
        return enclosure, (int(j), int(k)), found.lower, found.upper


@dataclass(frozen=True)
class CompositionBound:
    """The protocol is (eps, delta_upper)-DP.

    Attributes:
        eps: The eps of the bound, eps_central + eps_1 + eps_2.
        delta_upper: Upper bound of delta at eps.
        delta_1: Upper bound of the delta of the first condition, for D-hat at eps_1.
        delta_2: Upper bound of the delta of the second condition, for D-tilde at eps_2.
    """

    eps: float
    delta_upper: float
    delta_1: float
    delta_2: float


def composition_bound(
    family: Family,
    *,
    hat: Noise,
    tilde: Mapping[Atom, Noise],
    eps_central: float,
    eps_1: float,
    eps_2: float,
    gap: float = 0.01,
) -> CompositionBound:
    """The paper's own bound, to compare with the exact view.

    Theorem (Ghazi et al. 2021, thm:privacy-main-generic): split the noise of {-1, +1} into D-hat
    and D-tilde.  If D-hat is (eps_1, delta_1)-DP for sums of 0..max_value, and the D-tilde
    mechanism is (eps_2, delta_2)-DP for the linear query [0 c_2 ... c_max], then the protocol is
    (eps* + eps_1 + eps_2, delta_1 + delta_2)-DP.  Both deltas are those of the exact divergences;
    the second one is the paper's refined lemma.

    Args:
        family: The atoms.
        hat: The law of D-hat.
        tilde: The law of D-tilde for every atom, {-1, +1} included.
        eps_central: eps*, the eps of the central noise.
        eps_1: The eps of the first condition.
        eps_2: The eps of the second condition.
        gap: Relative gap to which both deltas are evaluated.

    Returns:
        The bound and its two parts.

    Raises:
        InvalidParameter: If a number is outside its domain, or an atom has no noise.
    """
    eps_central = positive("eps_central", eps_central)
    eps_1, eps_2 = not_negative("eps_1", eps_1), not_negative("eps_2", eps_2)
    if set(tilde) != set(family.atoms):
        odd = sorted(set(tilde) ^ set(family.atoms))[0]
        raise InvalidParameter(f"tilde noise and family differ in atom {list(odd)}")
    shifts = np.concatenate([np.arange(-family.max_value, 0), np.arange(1, family.max_value + 1)])
    n = len(shifts)
    scalar = ViewPairs(
        noises=(_as_sum(hat),),
        plain=np.stack([np.zeros(n, np.int64), shifts], axis=1),
        start=np.arange(n + 1),
        factor=np.arange(n),
    )
    delta_1 = float(evaluate(scalar, eps_1, gap=gap).upper.max())
    queries = LinearQueries.of(family.columns, [tilde[elements] for elements in family.atoms])
    delta_2 = queries.delta(eps=eps_2, gap=gap)[0].upper if family.max_value > 1 else 0.0
    up = 1 + 2.0**-50  # more than the rounding errors of two additions
    return CompositionBound(
        eps=(eps_central + eps_1 + eps_2) * up,
        delta_upper=min(1.0, (delta_1 + delta_2) * up),
        delta_1=delta_1,
        delta_2=delta_2,
    )


def _as_sum(noise: Noise) -> NoiseSum:
    if not isinstance(noise, Noise):
        raise InvalidParameter(
            f"{shown(noise)} is not a noise: give a NegativeBinomial, a Burst or a NoiseSum"
        )
    return noise if isinstance(noise, NoiseSum) else NoiseSum.of(noise)


def _integers(name: str, values: object) -> IntArray:
    array = np.asarray(values)
    if array.dtype == object or array.dtype.kind not in "iu":
        raise InvalidParameter(f"{name} = {shown(values)} must hold integers")
    if array.size and (int(array.max()) > LARGEST_SHIFT or int(array.min()) < -LARGEST_SHIFT):
        raise InvalidParameter(f"{name} = {shown(values)} go beyond {LARGEST_SHIFT:,} in magnitude")
    return array.astype(np.int64)
