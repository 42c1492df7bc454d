"""Dominating pairs as privacy loss distributions of google's dp_accounting, an optional package."""

from __future__ import annotations

from collections.abc import Sequence
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
    """The step of a grid of losses for dp_accounting, if that is installed."""
    interval = positive("value_discretization_interval", value)
    if interval > _WIDEST:
        raise InvalidParameter(
            f"value_discretization_interval = {interval!r} is more than {_WIDEST:g}: such a grid "
            "says next to nothing; take 1e-4"
        )
    try:
        import dp_accounting.pld  # noqa: F401
    except ImportError as error:
        raise InvalidParameter(
            "dp_accounting is not installed: pip install 'paramsearch[dp-accounting]'"
        ) from error
    return interval


def exported(pairs: Sequence[tuple[DominatingPair, int]]) -> PrivacyLossDistribution:
    """All pairs together, each as many times as it says, composed by dp_accounting."""
    from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution

    out: PrivacyLossDistribution | None = None
    for pair, times in pairs:
        one = PrivacyLossDistribution.create_from_rounded_probability(
            {pair.base + i: float(pair.mass[i]) for i in np.flatnonzero(pair.mass).tolist()},
            infinity_mass=pair.infinite,
            value_discretization_interval=pair.step,
            pessimistic_estimate=True,
        )
        several = one.self_compose(times) if times > 1 else one
        out = several if out is None else out.compose(several)
    assert out is not None
    return out
