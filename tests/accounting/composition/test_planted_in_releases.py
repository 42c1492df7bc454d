"""Typical mistakes, planted one by one in compositions of releases.

A row is [check, module or class, function, what is written there, what is wrong].
"""

from __future__ import annotations

from functools import partial

import pytest
import test_small_compositions as small
from planted import Mistake, mistake

from accounting.composition import (
    all_releases,
    any_sequence,
    change_profiles,
    composition_kernels,
    eps_search,
    lower_law,
    several_mechanisms,
)
from accounting.composition.change_profiles import _InverseTransform

plans = small.test_profiles_hold_for_plans_that_nobody_would_choose
knows = small.test_profiles_hold_where_the_transform_knows_nothing
grid = partial(small.test_profiles_are_above_the_truth_at_every_grid_point, 1, 0)
doubles = partial(small.test_profiles_cover_every_law_that_the_doubles_stand_for, -1)
induction = partial(small.test_the_induction_is_an_equality, small.CHANGES[:2], 2, 0.2)
three = partial(small.test_the_induction_is_an_equality, small.CHANGES[1:3], 3, 0.7)
blocks = partial(small.test_blocks_of_releases_cover_all_of_them, 37)
whole_blocks = partial(small.test_blocks_of_releases_cover_all_of_them, 40)
directions = partial(small.test_directions_are_not_mixed, 2)
mechanisms = partial(small.test_releases_of_two_mechanisms_come_in_any_order, (2, 1), 0.3)
one, two, nine = (
    partial(small.test_the_law_from_below_is_that_of_all_releases, times) for times in (1, 2, 9)
)
search = partial(small.test_searches_end_on_the_side_that_holds, 0.3)
smallest_eps = small.test_the_eps_that_holds_is_on_its_side


def kinds() -> None:
    with pytest.MonkeyPatch.context() as fewer:
        small.test_every_change_lies_below_its_kind(fewer)


MISTAKES: dict[str, Mistake] = {
    "from below: losses are rounded up to the grid": mistake(
        one, lower_law, "_on_grid", "np.floor(case.loss / step)", "np.ceil(case.loss / step)"
    ),
    "from below: losses are too large by their error": mistake(
        one, lower_law, "_shifted", "- table.loss_error", "+ 1e9 * table.loss_error"
    ),
    "from below: infinite losses of the opposite shift": mistake(
        one, lower_law, "_shifted", "first = max(-shift, 0)", "first = max(shift, 0)"
    ),
    "profiles: the error of the transform is dropped": mistake(
        knows, _InverseTransform, "_fill", " + self.error[q]", ""
    ),
    "profiles: errors of masses raise no loss": mistake(
        doubles, change_profiles, "_lift", "2.001 * float(terms.eta.max(initial=0.0))", "0.0"
    ),
    "profiles: what was set aside is dropped": mistake(
        grid,
        _InverseTransform,
        "_fill",
        "carried(outside[q]) + terms.aside_upper[q]",
        "carried(outside[q])",
    ),
    "profiles: what lies outside the window is dropped": mistake(
        plans,
        _InverseTransform,
        "_fill",
        "scale_up * self.peak * terms.outside + np.maximum",
        "np.maximum",
    ),
    "profiles: what lies below the grid is dropped": mistake(
        plans,
        _InverseTransform,
        "_fill",
        "terms.below, _SMALLEST_NORMAL",
        "0 * terms.below, _SMALLEST_NORMAL",
    ),
    "profiles: the window is turned too far": mistake(
        plans, _InverseTransform, "_fill", "-(plan.origin % n)", "-(plan.origin % n) - 1"
    ),
    "profiles: the window is not turned far enough": mistake(
        plans, _InverseTransform, "_fill", "-(plan.origin % n)", "-(plan.origin % n) + 1"
    ),
    "profiles: tilted twice, not there and back": mistake(
        plans,
        _InverseTransform,
        "_fill",
        "plan.tilt * (plan.eps - self.loss)",
        "plan.tilt * (plan.eps + self.loss)",
    ),
    "profiles: the conjugate transform": mistake(
        plans,
        composition_kernels,
        "hartley_values",
        "(re[row, k] - im[row, k]) / n",
        "(re[row, k] + im[row, k]) / n",
    ),
    "kinds: a change that joins a kind does not raise it": mistake(
        kinds, any_sequence, "_kinds", "np.maximum(value[best], row)", "value[best]"
    ),
    "induction: one release too few": mistake(
        three,
        any_sequence,
        "_upper",
        "induction.up_to(releases - 1)[-1]",
        "induction.up_to(releases - 2)[-1]",
    ),
    "induction: the first change for the worst one": mistake(
        three,
        any_sequence,
        "_step",
        "np.maximum(value, product.profile(first, count), out=value)",
        "pass",
    ),
    "induction: the mildest change first": mistake(
        three,
        any_sequence,
        "_upper",
        "max(p.composed(later, induction.tilt).delta(eps) for p in induction.pairs)",
        "min(p.composed(later, induction.tilt).delta(eps) for p in induction.pairs)",
    ),
    "blocks: one release of the rest too few": mistake(
        blocks, any_sequence, "_upper", "found[rest - 1]", "found[rest - 2]"
    ),
    "blocks: the rest is forgotten": mistake(
        blocks, any_sequence, "_upper", "if rest:", "if False:"
    ),
    "blocks: one block too few": mistake(
        whole_blocks,
        any_sequence,
        "_upper",
        "found[-1].power(blocks,",
        "found[-1].power(blocks - 1,",
    ),
    "sequence: one release too many": mistake(
        induction, any_sequence, "sequence", "releases=common", "releases=common + 1"
    ),
    "directions: they are mixed": mistake(
        directions,
        any_sequence,
        "sequence_bounds",
        "changes.directions:",
        "[sum(map(list, changes.directions), [])]:",
    ),
    "directions: the smaller one counts": mistake(
        directions, any_sequence, "sequence_bounds", "upper=max(", "upper=min("
    ),
    "several: the mildest change bounds all": mistake(
        mechanisms,
        several_mechanisms.Releases,
        "dominating",
        "rows.max(axis=0)",
        "rows.min(axis=0)",
    ),
    "several: only the last block of changes, halved": mistake(
        mechanisms,
        several_mechanisms.Releases,
        "dominating",
        "np.maximum(value, rows.max(axis=0), out=value)",
        "value = rows.max(axis=0) / 2",
    ),
    "several: the last mechanism alone": mistake(
        mechanisms, several_mechanisms, "_product", "_joined(one, other, balance, gap)", "other"
    ),
    "several: one release of each": mistake(
        mechanisms, several_mechanisms, "_product", "pair.powered(times,", "pair.powered(1,"
    ),
    "several: groups of more releases than there are": mistake(
        nine,
        several_mechanisms,
        "_groups",
        "times // _GROUPS + (i < times % _GROUPS)",
        "times // _GROUPS + 1",
    ),
    "several: one release too many from below": mistake(
        nine, several_mechanisms, "_attained", "one.power(count,", "one.power(count + 1,"
    ),
    "several: a repeated change is counted once": mistake(
        two, several_mechanisms._Witness, "found", "made.get((part, change), 0) + count", "count"
    ),
    "eps: the end of a search where delta is exceeded": mistake(
        search, eps_search, "first_eps", "narrow=_narrow)[1]", "narrow=_narrow)[0]"
    ),
    "eps: the end of a search where delta is not exceeded": mistake(
        search, eps_search, "last_eps", "narrow=_narrow)[0]", "narrow=_narrow)[1]"
    ),
    "eps: a lower bound for an upper one": mistake(
        smallest_eps,
        all_releases.AllReleases,
        "epsilon",
        "near(eps).upper <= delta",
        "near(eps).lower <= delta",
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_noticed(name: str) -> None:
    MISTAKES[name].must_be_noticed()
