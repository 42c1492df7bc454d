"""The paper's own bound: (eps* + eps_1 + eps_2, delta_1 + delta_2), to compare with the exact view.

Theorem (Ghazi et al. 2021, thm:privacy-main-generic): split the noise of {-1, +1} into D-hat and
D-tilde.  If D-hat is (eps_1, delta_1)-DP for sums of 0..max_value, and the D-tilde mechanism is
(eps_2, delta_2)-DP for the linear query [0 c_2 ... c_max], then the protocol is
(eps* + eps_1 + eps_2, delta_1 + delta_2)-DP.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from accounting.base.errors import InvalidParameter
from accounting.base.validation import not_negative, positive
from accounting.evaluator.evaluate import evaluate
from accounting.evaluator.hockey_stick import LinearQueries, Noise, as_sum
from accounting.evaluator.view_pairs import ViewPairs
from accounting.model.family import Atom, Family


@dataclass(frozen=True)
class CompositionBound:
    """The protocol is (eps, delta_upper)-DP; ``delta_1`` and ``delta_2`` are upper bounds too."""

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
    """Evaluate both conditions exactly (the refined lemma for the second)."""
    eps_central = positive("eps_central", eps_central)
    eps_1, eps_2 = not_negative("eps_1", eps_1), not_negative("eps_2", eps_2)
    if set(tilde) != set(family.atoms):
        odd = sorted(set(tilde) ^ set(family.atoms))[0]
        raise InvalidParameter(f"tilde noise and family differ in atom {list(odd)}")
    shifts = np.concatenate([np.arange(-family.max_value, 0), np.arange(1, family.max_value + 1)])
    n = len(shifts)
    scalar = ViewPairs(
        noises=(as_sum(hat),),
        plain=np.stack([np.zeros(n, np.int64), shifts], axis=1),
        start=np.arange(n + 1),
        factor=np.arange(n),
    )
    delta_1 = float(evaluate(scalar, eps_1, gap=gap).upper.max())
    queries = LinearQueries.of(family.columns, [tilde[elements] for elements in family.atoms])
    delta_2 = queries.delta(eps=eps_2, gap=gap)[0].upper if family.max_value > 1 else 0.0
    up = 1 + 2.0**-50
    return CompositionBound(
        (eps_central + eps_1 + eps_2) * up, min(1.0, (delta_1 + delta_2) * up), delta_1, delta_2
    )
