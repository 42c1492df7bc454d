"""Typical mistakes, planted one by one in the operations on laws of losses.

A row is [check, module or class, function, what is written there, what is wrong].
"""

from __future__ import annotations

from functools import partial

import pytest
import test_exact_directions as directions
from planted import Mistake, mistake

from accounting.composition import composition_kernels, regridding
from accounting.composition.dominating_pair import DominatingPair, TiltedSums
from accounting.composition.lower_law import LowerLaw

profiles = directions.test_profiles_are_rounded_up
raised = directions.test_raised_losses_count_in_profiles
hull = directions.test_the_hull_is_above_what_its_points_bound
sums = partial(directions.test_sums_of_rows_are_within_their_error, True)
products = partial(directions.test_products_are_above, False)
wide_products = partial(directions.test_products_are_above, True)
shorter = directions.test_coarser_and_shorter_pairs_are_above
powers = directions.test_powers_are_above
down = directions.test_lower_laws_only_move_down
sums_down = partial(directions.test_sums_of_lower_laws_are_below, False)
wide_sums_down = partial(directions.test_sums_of_lower_laws_are_below, True)
powers_down = partial(directions.test_powers_of_lower_laws_are_below, 5)
another = partial(directions.test_pairs_on_another_grid_are_above, 1e-2)
odd = partial(directions.test_pairs_on_another_grid_are_above, 0.0123)
wide = partial(directions.test_pairs_on_another_grid_are_above, 1 / 16)

MISTAKES: dict[str, Mistake] = {
    "profile: a sum that begins one point early": mistake(
        profiles,
        composition_kernels,
        "upward_profile",
        "above += rise * later\n        later = mass[i] + decay * later",
        "later = mass[i] + decay * later\n        above += rise * later",
    ),
    "profile: rounding is not paid for": mistake(
        profiles,
        DominatingPair,
        "profile",
        "out *= 1 + (6 * len(mass) + 32) * UNIT_ROUNDOFF",
        "pass",
    ),
    "profile: raised losses are not raised": mistake(
        raised, composition_kernels, "upward_profile", "above + small * later", "above"
    ),
    "profile: infinite losses are dropped": mistake(
        products, composition_kernels, "upward_profile", "above = infinite", "above = 0.0"
    ),
    "profile: masses are shifted by one grid point": mistake(
        profiles,
        DominatingPair,
        "profile",
        "begin = self.base - first",
        "begin = self.base - first - 1",
    ),
    "hull: the slope of the other end": mistake(
        hull,
        composition_kernels,
        "convex_masses",
        "-math.expm1((a - c) * step)",
        "math.expm1((c - a) * step)",
    ),
    "hull: rounding is not paid for": mistake(
        hull,
        composition_kernels,
        "convex_masses",
        "max(left[i] - right, 0.0) + size",
        "max(left[i] - right, 0.0)",
    ),
    "hull: nothing is left beyond the last point": mistake(
        hull, DominatingPair, "from_profile", "float(value[-1])", "0.0"
    ),
    "hull: the upper hull": mistake(
        hull, composition_kernels, "convex_masses", "if left[top - 1] > ", "if left[top - 1] < "
    ),
    "sums: the error of the transform is dropped": mistake(
        sums, TiltedSums, "of", "error=1.01 * UNIT_ROUNDOFF * float(error)", "error=0.0"
    ),
    "sums: the error of tilting is dropped": mistake(
        sums, TiltedSums, "of", "64 * UNIT_ROUNDOFF * (rise", "0 * UNIT_ROUNDOFF * (rise"
    ),
    "sums: tilted twice, not there and back": mistake(
        sums, TiltedSums, "of", "float(logs.sum()) - rise", "float(logs.sum()) + rise"
    ),
    "product: the error of the transform is dropped": mistake(
        wide_products, DominatingPair, "composed", " + sums.error + _UNDERFLOW", ""
    ),
    "product: infinite only if both losses are": mistake(
        products,
        DominatingPair,
        "_infinite",
        "self.infinite * other.finite + other.infinite * whole",
        "self.infinite * other.infinite",
    ),
    "product: both infinite losses are forgotten": mistake(
        products,
        DominatingPair,
        "_infinite",
        "max(1.0, self.finite + self.infinite)",
        "self.finite",
    ),
    "coarser: the shares are exchanged": mistake(
        shorter,
        DominatingPair,
        "coarser",
        "odd / (1 + math.exp(-self.step))",
        "odd / (1 + math.exp(self.step))",
    ),
    "coarser: a mass is split in halves": mistake(
        shorter, DominatingPair, "coarser", "odd / (1 + math.exp(-self.step))", "odd / 2"
    ),
    "coarser: rounded down": mistake(
        shorter, DominatingPair, "coarser", "even * (1 + 1e-15)", "even * (1 - 1e-15)"
    ),
    "coarser: an odd beginning is taken for an even one": mistake(
        shorter,
        DominatingPair,
        "coarser",
        "begin, mass = begin - 1, np.concatenate([[0.0], mass])",
        "pass",
    ),
    "shorter: the lowest losses are dropped": mistake(
        shorter, DominatingPair, "shortened", "mass[0] + _sum_above(self.mass[:first])", "mass[0]"
    ),
    "shorter: the highest losses are dropped": mistake(
        shorter, DominatingPair, "shortened", "(self.infinite + above) * _UP", "self.infinite"
    ),
    "power: an odd factor is forgotten": mistake(
        powers, DominatingPair, "powered", "times // taken % 2", "times // taken % 2 and taken > 1"
    ),
    "from below, coarser: masses move up": mistake(
        down,
        LowerLaw,
        "coarser",
        "begin, mass = begin - 1, np.concatenate([[0.0], mass])",
        "begin = begin + 1",
    ),
    "from below, shorter: the lowest losses are raised": mistake(
        down,
        LowerLaw,
        "shortened",
        "return LowerLaw(",
        "mass[first] += mass[:first].sum(); return LowerLaw(",
    ),
    "from below, shorter: the highest losses become infinite, too": mistake(
        down,
        LowerLaw,
        "shortened",
        "mass[first:], law.infinite)",
        "mass[first:], law.infinite + _sum_below(law.mass[last:]))",
    ),
    "from below: rounded up": mistake(
        down, LowerLaw, "delta", "eps - self.losses + inexact", "eps - self.losses - 2 * inexact"
    ),
    "from below, sum: the error is added": mistake(
        wide_sums_down, LowerLaw, "composed", "sums.value - sums.error", "sums.value + sums.error"
    ),
    "from below, sum: the error is dropped": mistake(
        wide_sums_down, LowerLaw, "composed", "sums.value - sums.error", "sums.value"
    ),
    "from below, sum: infinite losses are counted twice": mistake(
        sums_down,
        LowerLaw,
        "composed",
        "infinite + first.finite * second.infinite",
        "infinite + (first.finite + first.infinite) * second.infinite",
    ),
    "from below, power: too many factors": mistake(
        powers_down, LowerLaw, "power", "times // taken % 2", "times // taken"
    ),
    "another grid: chords in eps, not in e^eps": mistake(
        odd, regridding, "_values", "np.expm1(offset) / math.expm1(pair.step)", "offset / pair.step"
    ),
    "another grid: constant below the first point": mistake(
        another,
        regridding,
        "_values",
        "found = np.where(below, 1 - (1 - own[0]) * rise, found)",
        "pass",
    ),
    "another grid: the larger of two bounds": mistake(
        another, regridding, "on_grid", "np.min([", "np.max(["
    ),
    "another grid: it ends half-way": mistake(
        wide, regridding, "on_grid", "math.ceil(cells) + 3", "math.ceil(cells) // 2"
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_noticed(name: str) -> None:
    MISTAKES[name].must_be_noticed()
