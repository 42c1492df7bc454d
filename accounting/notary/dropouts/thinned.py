"""The central term of a fraction of the users: which of its forms is used."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

import numpy as np
from flint import arb

from accounting.base.arrays import FloatArray
from accounting.base.errors import TooLarge
from accounting.notary.dropouts.central_pairs import CentralPair, doubles
from accounting.notary.dropouts.coupling import CoupledCentral
from accounting.notary.dropouts.joint_table import JointTable
from accounting.notary.dropouts.merged_outcomes import MergedOutcomes
from accounting.notary.factors import Groups
from accounting.notary.tables import NoiseTable

_LARGEST_TABLE = 1 << 20
"""Most entries of a table in two dimensions where the noise of {-1, +1} allows to do without."""
_LARGEST_ALONE = 1 << 26
"""Most entries of it where {-1, +1} has no noise (512 MiB)."""


class ThinnedCentral:
    """Small problems have the exact law as a table in two dimensions; for others, upper bounds come
    from a coupling, or from the full central noise if there is more than that, and lower bounds
    from merged outcomes.

    Args:
        share: The parameter r of the noises on +1 and on -1.
        loss: The loss of one unit of the sum.
        unit: The noise of {-1, +1}, if there is any.
        clip: Roughly the mass that may be lost.
        largest_shift: Bounds the shifts of Y_0 and of the sum.
    """

    def __init__(
        self, share: arb, loss: arb, unit: NoiseTable | None, clip: float, largest_shift: int
    ) -> None:
        self.pair = CentralPair(share, loss, clip / 8, largest_shift)
        masses, lost = np.ones(1), arb(0)
        if unit is not None:
            masses, totals = doubles(unit, len(unit.log_masses(clip / 8, 2 * largest_shift)))
            lost = 1 - totals[len(masses) - 1]
        self._unit = masses, lost
        entries = self.pair.size * (self.pair.size + len(masses))
        self.coupled: CoupledCentral | None = None
        """The form for upper bounds, unless the exact law fits into a table."""
        if unit is None and entries > _LARGEST_ALONE:
            raise TooLarge(
                f"with {float(share.mid()):.4g} of the central noise, and no noise on {{-1, +1}}, "
                f"the view has a table of {entries:,} outcomes, more than {_LARGEST_ALONE:,}; give "
                "{-1, +1} some noise, or take a smaller max_value"
            )
        in_table = unit is None or entries <= _LARGEST_TABLE
        self.exceeds = not in_table and bool(share >= 1)
        """Whether upper bounds are those of the full central noise, which is less noise."""
        if not in_table and not self.exceeds:
            self.coupled = CoupledCentral(self.pair, clip)

    @cached_property
    def _table(self) -> JointTable:
        return JointTable(self.pair, *self._unit)

    @cached_property
    def _merged(self) -> MergedOutcomes:
        return MergedOutcomes(self.pair, *self._unit)

    def prepare(self, distances: Iterable[int]) -> None:
        """Couple the central noises for these changes of the sum, on all cores."""
        if self.coupled is not None:
            self.coupled.prepare(distances)

    def shifts(self, distance: int) -> Iterable[int]:
        """Relative to its first shift, the shifts of the noise of {-1, +1} that are mixed."""
        return () if self.coupled is None else self.coupled.shifts(distance).tolist()

    def groups(
        self, kappa: int, a: int, h: arb, *, clip: float, lowest: int, log_mass: FloatArray
    ) -> Groups:
        """The outcomes by their losses, without finite ones below ``lowest``.

        The change shifts the sum by kappa and Y_0 by a; ``log_mass`` are estimates for the noise of
        {-1, +1}.
        """
        if self.coupled is None and not self.exceeds:
            return self._table.groups(kappa, a, h, clip, lowest)
        return self._merged.groups(
            abs(kappa), a + min(0, kappa), h, clip=clip, lowest=lowest, log_mass=log_mass
        )
