"""Dominating pairs as privacy loss distributions of google's dp_accounting, an optional package."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import TYPE_CHECKING

import numpy as np

from accounting.base.errors import InvalidParameter
from accounting.base.validation import positive
from accounting.composition.dominating_pair import DominatingPair

if TYPE_CHECKING:
    from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution

_WIDEST = 0.1
"""Widest grid of losses: on a wider one hardly anything is said."""


def checked_interval(value: float) -> float:
    """Return the step of a grid of losses for dp_accounting, if that is installed."""
    interval = positive("value_discretization_interval", value)
    if interval > _WIDEST:
        raise InvalidParameter(
            f"value_discretization_interval = {interval!r} is more than {_WIDEST:g}: such a grid "
            "says next to nothing; take 1e-4"
        )
    try:
        import dp_accounting.pld  # noqa: F401 - only whether it is there
    except ImportError as error:
        raise InvalidParameter(
            "dp_accounting is not installed: pip install 'paramsearch[dp-accounting]'"
        ) from error
    return interval


def exported(
    mechanisms: Sequence[Sequence[DominatingPair]], times: Sequence[int]
) -> PrivacyLossDistribution:
    """Compose all mechanisms, each as often as it says, by dp_accounting.

    Each has one pair for all changes, or one for data that is removed and one for data that is
    added.
    """
    from dp_accounting.pld import pld_pmf
    from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution

    def several(pairs: Sequence[DominatingPair], count: int) -> PrivacyLossDistribution:
        laws = [
            pld_pmf.create_pmf(_masses(p), p.step, p.infinite, pessimistic_estimate=True)
            for p in pairs
        ]
        one = PrivacyLossDistribution(*laws)
        return one.self_compose(count) if count > 1 else one

    return reduce(lambda one, other: one.compose(other), map(several, mechanisms, times))


def _masses(pair: DominatingPair) -> dict[int, float]:
    return {pair.base + i: float(pair.mass[i]) for i in np.flatnonzero(pair.mass).tolist()}
