"""Typical mistakes, planted one by one where the evaluator chooses a grid and compares pairs.

A row is [check, module or class, function, what is written there, what is wrong].  A poor grid is
no wrong bound: the checks of plans ask for bounds that are close.
"""

from __future__ import annotations

from functools import partial

import pytest
import test_blocks
import test_covered_pairs as covers
import test_single_passes as passes
from planted import Mistake, mistake

from accounting.evaluator import evaluate, grid_plan
from accounting.evaluator.compiled import planning_kernels
from accounting.evaluator.pairs import all_pairs, block_kernels, blocks, covered_kernels
from accounting.evaluator.pairs import covered_pairs as covered

sound = passes.test_the_first_grid_is_about_as_good_as_it_should_be
plain, bursts, mixed, mixed_bursts = (
    partial(covers.test_every_cover_reveals_at_least_as_much, *crowd) for crowd in covers.CROWDS
)


def in_blocks(seed: int) -> None:
    with pytest.MonkeyPatch.context() as smaller:
        test_blocks.test_blocks_agree_with_all_pairs_at_once(seed, smaller)


first, second, last = (partial(in_blocks, seed) for seed in (0, 1, 5))
IN_COVERS = (covered_kernels, "find_covers")

MISTAKES: dict[str, Mistake] = {
    "plan: the window ends at eps": mistake(
        sound, grid_plan, "choose_plan", "window.high + 3 * saddle.splits * step", "eps"
    ),
    "plan: tails do not depend on delta": mistake(
        sound,
        evaluate,
        "coarse_estimate",
        "if tail <= max(_LARGEST_TAIL * share * delta, _SMALLEST_TAIL):",
        "if True:",
    ),
    "plan: caps ignore the second mass": mistake(
        sound,
        planning_kernels,
        "capped_moments",
        "q_mass += cells[row, i] * math.exp(-loss[i])",
        "q_mass += 0.0",
    ),
    "plan: the grid begins too high": mistake(
        sound,
        grid_plan,
        "_first_index",
        "math.floor((lowest - moments.largest_offset) / step) - 1",
        "math.floor((lowest - moments.largest_offset) / 8 / step) - 1",
    ),
    "plan: the coarsest step, whatever the gap": mistake(
        sound, grid_plan, "choose_plan", "max((high - low) / (size - 4), step / 2)", "COARSEST_STEP"
    ),
    "plan: tilts are added where they are subtracted": mistake(
        sound,
        planning_kernels,
        "windows",
        "gain / (tilts[j] - tilts[index])",
        "gain / (tilts[j] + tilts[index])",
    ),
    "plan: a factor of e^(tilt eps) too much": mistake(
        sound,
        grid_plan,
        "_windows",
        "log_error + tilts[indices] * eps - log_peaks",
        "log_error + 2 * tilts[indices] * eps - log_peaks",
    ),
    "plan: a saddle point that ignores eps": mistake(
        sound,
        planning_kernels,
        "saddle_points",
        "exponent = log_moment[q, j] - tilts[j] * eps",
        "exponent = log_moment[q, j]",
    ),
    "plan: the number of splits is forgotten": mistake(
        sound,
        grid_plan,
        "choose_plan",
        "(_STEP_ERROR * saddle.splits * density)",
        "(_STEP_ERROR * density)",
    ),
    "covers: larger shifts reveal more, whatever the law": mistake(
        bursts,
        covered,
        "_kinds",
        "np.array([law.log_concave for law in view_pairs.noises], bool)[noise]",
        "np.ones(len(noise), bool)",
    ),
    "covers: shifts of opposite signs are compared": mistake(
        plain, covered, "_kinds", "2 * noise + (shift < 0)", "2 * noise"
    ),
    "covers: a smaller shift covers a larger one": mistake(
        plain, covered_kernels, "covers", " or size[code[at]] < size[wanted]", "", IN_COVERS
    ),
    "covers: one factor stands for two": mistake(
        plain,
        covered_kernels,
        "covers",
        "at += 1\n    return True",
        "at += 0\n    return True",
        IN_COVERS,
    ),
    "covers: mixtures of all lengths are compared": mistake(
        mixed,
        covered,
        "_groups",
        "group[pair] = m * (int(key.max(initial=0)) + 1) + key",
        "group[pair] = key",
    ),
    "covers: mixtures of shifts of both signs are compared": mistake(
        mixed, covered, "_groups", "2 + b - int(b.min(initial=0))", "2"
    ),
    "covers: negative shifts are compared backwards": mistake(
        mixed, covered, "_groups", "np.where(below, -b, 0)", "np.where(below, b, 0)"
    ),
    "covers: mixtures are compared whatever their law": mistake(
        mixed_bursts, covered, "_groups", "view_pairs.noises[central.noise].log_concave", "True"
    ),
    "blocks: shifts of W without the change of the sum": mistake(
        second,
        blocks.Group,
        "b_and_m",
        "unit[j] - unit[k] + np.minimum(kappa, 0)",
        "unit[j] - unit[k]",
    ),
    "blocks: the bound of another cover": mistake(
        first, blocks._Pass, "upper", "upper[cover[keep]])", "upper[cover[keep]].min())"
    ),
    "blocks: shifts without their signs": mistake(
        first, block_kernels, "list_factors", "shift[i] - low]", "abs(shift[i]) - low]"
    ),
    "blocks: places of pairs are off by one": mistake(
        first, blocks.InputPairs, "position", "j * self.top + k - (k > j)", "j * self.top + k"
    ),
    "blocks: what was compared gets the smallest bound": mistake(
        first,
        all_pairs,
        "refined",
        "np.delete(upper, known.compared).max(initial=0.0)",
        "upper.min(initial=0.0)",
    ),
    "blocks: covered pairs get the smallest bound": mistake(
        second, all_pairs, "refined", "upper[left[covers.cover]])", "upper[left].min())"
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_noticed(name: str) -> None:
    MISTAKES[name].must_be_noticed()
