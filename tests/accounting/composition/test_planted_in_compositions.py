"""Typical mistakes, planted one by one in compositions."""

from __future__ import annotations

from functools import partial

import pytest
import test_exact_directions as directions
import test_small_compositions as small
from planted import Mistake, mistake

from accounting.composition import (
    all_releases,
    any_sequence,
    change_profiles,
    composition_kernels,
    eps_search,
    lower_law,
    regridding,
    several_mechanisms,
)
from accounting.composition.change_profiles import _InverseTransform
from accounting.composition.dominating_pair import DominatingPair, TiltedSums
from accounting.composition.lower_law import LowerLaw

plans = small.test_profiles_hold_for_plans_that_nobody_would_choose
grid = partial(small.test_profiles_are_above_the_truth_at_every_grid_point, 1, 0)
grid_up = partial(small.test_profiles_are_above_the_truth_at_every_grid_point, 1, 1)
grid_down = partial(small.test_profiles_are_above_the_truth_at_every_grid_point, 1, -1)
hull = directions.test_the_hull_is_above_what_its_points_bound
rows = partial(directions.test_sums_of_rows_are_within_their_error, True)
products = partial(directions.test_products_are_above, False)
shorter = directions.test_coarser_and_shorter_pairs_are_above
down = directions.test_lower_laws_only_move_down
sums_down = partial(directions.test_sums_of_lower_laws_are_below, False)
sums_down_wide = partial(directions.test_sums_of_lower_laws_are_below, True)
another = partial(directions.test_pairs_on_another_grid_are_above, 1e-2)
another_wide = partial(directions.test_pairs_on_another_grid_are_above, 1 / 16)
induction = partial(small.test_the_induction_is_an_equality, small.CHANGES[:2], 2, 0.2)
induction3 = partial(small.test_the_induction_is_an_equality, small.CHANGES[1:3], 3, 0.7)
blocks = partial(small.test_blocks_of_releases_cover_all_of_them, 37)
blocks40 = partial(small.test_blocks_of_releases_cover_all_of_them, 40)
two = partial(small.test_releases_of_two_mechanisms_come_in_any_order, (2, 1), 0.3)
attained = partial(small.test_the_law_from_below_is_that_of_all_releases, 9)
attained1 = partial(small.test_the_law_from_below_is_that_of_all_releases, 1)
one_way = partial(small.test_directions_are_not_mixed, 2)
power_down = partial(directions.test_powers_of_lower_laws_are_below, 5)
knows = small.test_profiles_hold_where_the_transform_knows_nothing
stands_up = partial(small.test_profiles_cover_every_law_that_the_doubles_stand_for, 1)
stands_down = partial(small.test_profiles_cover_every_law_that_the_doubles_stand_for, -1)
another_odd = partial(directions.test_pairs_on_another_grid_are_above, 0.0123)
search = partial(small.test_searches_end_on_the_side_that_holds, 0.3)
kinds = small.test_every_change_lies_below_its_kind

MISTAKES: dict[str, Mistake] = {
    "profiles: decay": mistake(
        directions.test_profiles_are_rounded_up,
        composition_kernels,
        "upward_profile",
        "above += rise * later\n        later = mass[i] + decay * later",
        "later = mass[i] + decay * later\n        above += rise * later",
    ),
    "profiles: rounding": mistake(
        directions.test_profiles_are_rounded_up,
        DominatingPair,
        "profile",
        "out *= 1 + (6 * len(mass) + 32) * UNIT_ROUNDOFF",
        "pass",
    ),
    "profiles: lift": mistake(
        directions.test_raised_losses_count_in_profiles,
        composition_kernels,
        "upward_profile",
        "above + small * later",
        "above",
    ),
    "profiles: infinite": mistake(
        products, composition_kernels, "upward_profile", "above = infinite", "above = 0.0"
    ),
    "hull: wrong slope": mistake(
        hull,
        composition_kernels,
        "convex_masses",
        "-math.expm1((a - c) * step)",
        "math.expm1((c - a) * step)",
    ),
    "hull: rounding": mistake(
        hull,
        composition_kernels,
        "convex_masses",
        "max(left[i] - right, 0.0) + size",
        "max(left[i] - right, 0.0)",
    ),
    "hull: rounding right": mistake(
        hull,
        composition_kernels,
        "convex_masses",
        "32.0 * abs(left[i]) + (32.0 + 4.0 * far) * abs(right)",
        "0.0 * abs(left[i])",
    ),
    "hull: constant": mistake(hull, DominatingPair, "from_profile", "float(value[-1])", "0.0"),
    "hull: concave": mistake(
        hull, composition_kernels, "convex_masses", "if left[top - 1] > ", "if left[top - 1] < "
    ),
    "sums: error": mistake(
        rows, TiltedSums, "of", "error=1.01 * UNIT_ROUNDOFF * float(error)", "error=0.0"
    ),
    "sums: inexact": mistake(
        rows, TiltedSums, "of", "64 * UNIT_ROUNDOFF * (rise", "0 * UNIT_ROUNDOFF * (rise"
    ),
    "sums: tilt": mistake(
        rows, TiltedSums, "of", "float(logs.sum()) - rise", "float(logs.sum()) + rise"
    ),
    "pairs: error dropped": mistake(
        partial(directions.test_products_are_above, True),
        DominatingPair,
        "composed",
        " + sums.error + _UNDERFLOW",
        "",
    ),
    "pairs: infinite cross": mistake(
        products,
        DominatingPair,
        "_infinite",
        "self.infinite * other.finite + other.infinite * whole",
        "self.infinite * other.infinite",
    ),
    "pairs: infinite both": mistake(
        products,
        DominatingPair,
        "_infinite",
        "max(1.0, self.finite + self.infinite)",
        "self.finite",
    ),
    "pairs: coarser share": mistake(
        shorter,
        DominatingPair,
        "coarser",
        "odd / (1 + math.exp(-self.step))",
        "odd / (1 + math.exp(self.step))",
    ),
    "pairs: coarser half": mistake(
        shorter, DominatingPair, "coarser", "odd / (1 + math.exp(-self.step))", "odd / 2"
    ),
    "pairs: coarser rounding": mistake(
        shorter, DominatingPair, "coarser", "even * (1 + 1e-15)", "even * (1 - 1e-15)"
    ),
    "pairs: coarser base": mistake(
        shorter,
        DominatingPair,
        "coarser",
        "begin, mass = begin - 1, np.concatenate([[0.0], mass])",
        "pass",
    ),
    "pairs: lowest": mistake(
        shorter, DominatingPair, "shortened", "mass[0] + _sum_above(self.mass[:first])", "mass[0]"
    ),
    "pairs: highest": mistake(
        shorter, DominatingPair, "shortened", "(self.infinite + above) * _UP", "self.infinite"
    ),
    "pairs: power": mistake(
        directions.test_powers_are_above,
        DominatingPair,
        "powered",
        "times // taken % 2",
        "times // taken % 2 and taken > 1",
    ),
    "pairs: delta": mistake(
        directions.test_profiles_are_rounded_up,
        DominatingPair,
        "profile",
        "begin = self.base - first",
        "begin = self.base - first - 1",
    ),
    # lower
    "lower: coarser up": mistake(
        down,
        LowerLaw,
        "coarser",
        "begin, mass = begin - 1, np.concatenate([[0.0], mass])",
        "begin = begin + 1",
    ),
    "lower: lowest raised": mistake(
        down,
        LowerLaw,
        "shortened",
        "return LowerLaw(law.step, law.base + first, mass[first:], law.infinite)",
        "mass[first] += mass[:first].sum(); "
        "return LowerLaw(law.step, law.base + first, mass[first:], law.infinite)",
    ),
    "lower: highest infinite": mistake(
        down,
        LowerLaw,
        "shortened",
        "mass[first:], law.infinite)",
        "mass[first:], law.infinite + _sum_below(law.mass[last:]))",
    ),
    "lower: delta": mistake(
        down, LowerLaw, "delta", "eps - self.losses + inexact", "eps - self.losses - 2 * inexact"
    ),
    "lower: error": mistake(
        sums_down_wide, LowerLaw, "composed", "sums.value - sums.error", "sums.value + sums.error"
    ),
    "lower: error0": mistake(
        sums_down_wide, LowerLaw, "composed", "sums.value - sums.error", "sums.value"
    ),
    "lower: infinite twice": mistake(
        sums_down,
        LowerLaw,
        "composed",
        "infinite + first.finite * second.infinite",
        "infinite + (first.finite + first.infinite) * second.infinite",
    ),
    "lower: power": mistake(power_down, LowerLaw, "power", "times // taken % 2", "times // taken"),
    "lower: round": mistake(
        attained1, lower_law, "_on_grid", "np.floor(case.loss / step)", "np.ceil(case.loss / step)"
    ),
    "lower: loss error": mistake(
        attained1, lower_law, "_shifted", "- table.loss_error", "+ 1e9 * table.loss_error"
    ),
    "lower: infinite": mistake(
        attained1, lower_law, "_shifted", "first = max(-shift, 0)", "first = max(shift, 0)"
    ),
    # profiles of changes
    "changes: error": mistake(knows, _InverseTransform, "_fill", " + self.error[q]", ""),
    "changes: lift-": mistake(
        stands_down, change_profiles, "_lift", "2.001 * float(terms.eta.max(initial=0.0))", "0.0"
    ),
    "changes: aside": mistake(
        grid,
        _InverseTransform,
        "_fill",
        "carried(outside[q]) + terms.aside_upper[q]",
        "carried(outside[q])",
    ),
    "changes: outside": mistake(
        plans,
        _InverseTransform,
        "_fill",
        "scale_up * self.peak * terms.outside + np.maximum",
        "np.maximum",
    ),
    "changes: below": mistake(
        plans,
        _InverseTransform,
        "_fill",
        "terms.below, _SMALLEST_NORMAL",
        "0 * terms.below, _SMALLEST_NORMAL",
    ),
    "changes: roll": mistake(
        plans, _InverseTransform, "_fill", "-(plan.origin % n)", "-(plan.origin % n) - 1"
    ),
    "changes: roll+": mistake(
        plans, _InverseTransform, "_fill", "-(plan.origin % n)", "-(plan.origin % n) + 1"
    ),
    "changes: tilt": mistake(
        plans,
        _InverseTransform,
        "_fill",
        "plan.tilt * (plan.eps - self.loss)",
        "plan.tilt * (plan.eps + self.loss)",
    ),
    "changes: hartley": mistake(
        plans,
        composition_kernels,
        "hartley_values",
        "(re[row, k] - im[row, k]) / n",
        "(re[row, k] + im[row, k]) / n",
    ),
    # kinds, induction
    "induction: steps3": mistake(
        induction3,
        any_sequence,
        "_upper",
        "induction.up_to(releases - 1)[-1]",
        "induction.up_to(releases - 2)[-1]",
    ),
    "induction: worst": mistake(
        induction3,
        any_sequence,
        "_step",
        "np.maximum(value, product.profile(first, count), out=value)",
        "pass",
    ),
    "induction: same": mistake(
        induction3,
        any_sequence,
        "_upper",
        "max(p.composed(later, induction.tilt).delta(eps) for p in induction.pairs)",
        "min(p.composed(later, induction.tilt).delta(eps) for p in induction.pairs)",
    ),
    "induction: rest": mistake(
        blocks, any_sequence, "_upper", "found[rest - 1]", "found[rest - 2]"
    ),
    "induction: no rest": mistake(blocks, any_sequence, "_upper", "if rest:", "if False:"),
    "induction: blocks": mistake(
        blocks40, any_sequence, "_upper", "found[-1].power(blocks,", "found[-1].power(blocks - 1,"
    ),
    "sequence: common": mistake(
        induction, any_sequence, "sequence", "releases=common", "releases=common + 1"
    ),
    "directions: mixed": mistake(
        one_way,
        any_sequence,
        "sequence_bounds",
        "changes.directions:",
        "[sum(map(list, changes.directions), [])]:",
    ),
    "directions: min": mistake(
        one_way, any_sequence, "sequence_bounds", "upper=max(", "upper=min("
    ),
    # several
    "several: max": mistake(
        two, several_mechanisms.Releases, "dominating", "rows.max(axis=0)", "rows.min(axis=0)"
    ),
    "several: blocks": mistake(
        two,
        several_mechanisms.Releases,
        "dominating",
        "np.maximum(value, rows.max(axis=0), out=value)",
        "value = rows.max(axis=0) / 2",
    ),
    "several: product": mistake(
        two, several_mechanisms, "_product", "_joined(one, other, balance, gap)", "other"
    ),
    "several: times": mistake(
        two, several_mechanisms, "_product", "pair.powered(times,", "pair.powered(1,"
    ),
    "several: groups": mistake(
        attained,
        several_mechanisms,
        "_groups",
        "times // _GROUPS + (i < times % _GROUPS)",
        "times // _GROUPS + 1",
    ),
    "several: counted": mistake(
        attained, several_mechanisms, "_attained", "one.power(count,", "one.power(count + 1,"
    ),
    "several: witness": mistake(
        partial(small.test_the_law_from_below_is_that_of_all_releases, 2),
        several_mechanisms._Witness,
        "found",
        "made.get((part, change), 0) + count",
        "count",
    ),
    # regrid
    "regrid: chord": mistake(
        another_odd,
        regridding,
        "_values",
        "np.expm1(offset) / math.expm1(pair.step)",
        "offset / pair.step",
    ),
    "regrid: below": mistake(
        another,
        regridding,
        "_values",
        "found = np.where(below, 1 - (1 - own[0]) * rise, found)",
        "pass",
    ),
    "regrid: max": mistake(another, regridding, "on_grid", "np.min([", "np.max(["),
    "regrid: high": mistake(
        another_wide, regridding, "on_grid", "math.ceil(cells) + 3", "math.ceil(cells) // 2"
    ),
    # eps
    "eps: low end": mistake(
        search, eps_search, "first_eps", "narrow=_narrow)[1]", "narrow=_narrow)[0]"
    ),
    "eps: high end": mistake(
        search, eps_search, "last_eps", "narrow=_narrow)[0]", "narrow=_narrow)[1]"
    ),
    "eps: upper for lower": mistake(
        small.test_the_eps_that_holds_is_on_its_side,
        all_releases.AllReleases,
        "epsilon",
        "near(eps).upper <= delta",
        "near(eps).lower <= delta",
    ),
}
MISTAKES = {k: v for k, v in MISTAKES.items() if v}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_noticed(name: str) -> None:
    MISTAKES[name].must_be_noticed()
