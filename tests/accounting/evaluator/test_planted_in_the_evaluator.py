"""Typical mistakes, planted one by one in the evaluator: for each there is a check that fails.

Every row names the check, the function, what is written there and what a careless hand might have
written.
"""

from __future__ import annotations

from functools import partial

import pytest
import test_error_budget as budget
import test_floating_point as floats
import test_product as products
import test_single_passes as passes
from planted import Fragment, Mistake, mistake

from accounting.evaluator import (
    bounding_functions,
    evaluate,
    grid_plan,
    kernels,
    spectra,
    tilted_losses,
)
from accounting.evaluator.compiled import pair_term_kernels, planning_kernels, table_kernels
from accounting.evaluator.noise_tables import NoiseTables
from accounting.evaluator.pair_error_terms import PairTerms
from accounting.evaluator.pairs import mixture_kernels, run_kernels
from accounting.evaluator.view_pairs import CentralMixture, ViewPairs

IN_ROWS = (kernels, "tilted_rows")


def tables(law=(30.0, 0.9), tail=1e-2, ulps=0.0):
    return partial(passes.test_tables_cover_every_law_that_they_stand_for, law, tail, ulps)


def short(case, tail=1e-5):
    return partial(passes.test_passes_enclose_the_truth_however_short_the_tables, case, tail)


def uncertain(case, sign):
    return partial(
        passes.test_bounds_cover_every_law_that_the_doubles_stand_for, passes.UNCERTAIN[case], sign
    )


C, F = passes.CASES, passes.FAR_OUT
dots = partial(floats.test_connect_the_dots_keeps_both_masses, 2)
dots_back = partial(floats.test_connect_the_dots_keeps_both_masses, -3)
lower_function = partial(floats.test_the_lower_bounding_function_is_below_on_average, 4, 0.01)
lower_function10 = partial(floats.test_the_lower_bounding_function_is_below_on_average, 10, 1 / 16)
inner = partial(passes.test_inner_products_are_within_their_budget, 1, 100_000)
below = partial(passes.test_what_lies_below_the_grid_is_bounded_from_above, False)
below_mixed = partial(passes.test_what_lies_below_the_grid_is_bounded_from_above, True)
sound = passes.test_the_first_grid_is_about_as_good_as_it_should_be
small = partial(
    products.test_divergences_far_below_double_precision,
    [(30.0, 0.9), (40.0, 0.8)],
    [1, 2],
    0.4,
    1e-60,
)
copies = partial(passes.test_releases_are_copies_of_the_factors, (30.0, 0.5), 1, 0.03, 3)
copies_low = partial(passes.test_releases_are_copies_of_the_factors, (3.0, 0.1), -1, 1.5, 3)
copies_five = partial(passes.test_releases_are_copies_of_the_factors, (3.0, 0.1), 1, 0.9, 5)

MISTAKES: dict[str, Mistake] = {
    # tables
    "tables: what is cut off is not in the relative error": mistake(
        tables(), NoiseTables, "of", " + 2 * tail,", ","
    ),
    "tables: the rounding of p is not counted in masses": mistake(
        tables(tail=1e-20, ulps=2.0**20),
        NoiseTables,
        "of",
        "relative_error=2.1 * growth + ",
        "relative_error=",
    ),
    "tables: the rounding of p is not counted in losses": mistake(
        tables(ulps=2.0**20), NoiseTables, "of", "loss_error=2.1 * growth + ", "loss_error="
    ),
    "tables: the growth of errors with the outcome": mistake(
        tables(ulps=2.0**20),
        NoiseTables,
        "of",
        "noises.values()]) * n * UNIT",
        "noises.values()]) * UNIT",
    ),
    "tables: underflow": mistake(
        tables((2060.0, 0.5), 1e-6),
        table_kernels,
        "normalize_masses",
        "total * small * small",
        "total * small",
    ),
    "tables: recurrence": mistake(
        tables((0.4, 0.7), 1e-6), table_kernels, "noise_masses", "p[0] * (k - 1)", "p[0] * k"
    ),
    # dots
    "dots: linear": mistake(
        dots, kernels, "connect_the_dots", "one_minus_exp(d) * scale", "d * inverse"
    ),
    "dots: inf": mistake(
        dots_back,
        kernels,
        "connect_the_dots",
        "range(min(n, max(0, -shift)))",
        "range(min(n, max(0, -shift - 1)))",
    ),
    "dots: swapped": mistake(
        dots,
        kernels,
        "connect_the_dots",
        "left += m - part\n                right += part",
        "left += part\n                right += m - part",
    ),
    "dots: beyond": mistake(
        short(F[4], 1e-2),
        kernels,
        "connect_the_dots",
        "range(max(0, n - shift), n)",
        "range(max(0, n - shift + 1), n)",
        IN_ROWS,
    ),
    "dots: capped q": mistake(
        short(C[0]),
        kernels,
        "connect_the_dots",
        "out[2] += m * math.exp(there_log[k] - here_log[k])",
        "pass",
        IN_ROWS,
    ),
    "tilt: tail": mistake(
        short(F[0], 1e-2),
        tilted_losses,
        "_tilt_shifts",
        "unknown=unknown + tables.tail[table]",
        "unknown=unknown",
    ),
    "tilt: unknown": mistake(
        short(F[2], 1e-2), kernels, "connect_the_dots", "out[3] += mass[z]", "pass", IN_ROWS
    ),
    "tilt: unknown central": mistake(
        short(F[1], 1e-2),
        tilted_losses,
        "_central_factors",
        "unknown=unknown,",
        "unknown=0 * unknown,",
    ),
    "tilt: below": mistake(
        below, tilted_losses, "_tilt_shifts", "below=below_grid * floor + ", "below="
    ),
    "tilt: floor": mistake(
        below,
        tilted_losses,
        "_tilt_shifts",
        "(reference - first) * step)",
        "(reference - first + 1) * step)",
    ),
    "tilt: central below": mistake(
        below_mixed,
        tilted_losses,
        "_central_factors",
        "lost = below * offsets.top_mass[m, 0] + ",
        "lost = ",
    ),
    "tilt: last": mistake(
        passes.test_no_factor_has_mass_above_its_last_grid_point,
        tilted_losses,
        "_central_factors",
        "offsets.top_index[m] + 2,",
        "offsets.top_index[m] + 1,",
    ),
    "tilt: eta table": mistake(
        uncertain(0, -1),
        tilted_losses._Cells,
        "errors",
        "tables.relative_error + tables.loss_error + 2e-12",
        "2e-12",
    ),
    "tilt: eta table+": mistake(
        uncertain(0, 1),
        tilted_losses._Cells,
        "errors",
        "tables.relative_error + tables.loss_error + 2e-12",
        "2e-12",
    ),
    "tilt: central eta": mistake(
        uncertain(1, -1), tilted_losses, "_central_factors", "shifted.error[0] + 4e-12", "4e-12"
    ),
    "tilt: central q": mistake(
        short(C[3]),
        tilted_losses,
        "_central_factors",
        "capped_q=capped_q * np.exp(-central.step * m)",
        "capped_q=capped_q * np.exp(-2 * central.step * m)",
    ),
    "tilt: central share": mistake(
        short(C[3]), tilted_losses, "_central_factors", "[0.0, 1.0, 0.0]", "[0.0, 0.0, 0.0]"
    ),
    "tilt: central share5": mistake(
        short(C[5]), tilted_losses, "_central_factors", "[0.0, 1.0, 0.0]", "[0.0, 0.0, 0.0]"
    ),
    "tilt: tiny": mistake(
        partial(budget.test_moments_of_every_tilt_are_within_their_budget, False),
        tilted_losses,
        "_tilt_shifts",
        "moment[:, 1:] += TINY",
        "pass",
    ),
    # runs
    "runs: smooth": mistake(
        partial(budget.test_no_run_has_an_outcome_on_either_side_of_a_bump, -40),
        run_kernels,
        "connect_runs",
        "max(smooth_from, smooth_from - shift)",
        "smooth_from",
    ),
    "runs: smooth+": mistake(
        partial(budget.test_no_run_has_an_outcome_on_either_side_of_a_bump, 40),
        run_kernels,
        "connect_runs",
        "max(smooth_from, smooth_from - shift)",
        "smooth_from - shift",
    ),
    "runs: q": mistake(
        partial(budget.test_no_run_has_an_outcome_on_either_side_of_a_bump, 40),
        run_kernels,
        "connect_runs",
        "z + shift, beyond + shift)",
        "z + shift, beyond + shift - 1)",
    ),
    # spectra
    "spectra: fourier": mistake(
        inner,
        pair_term_kernels,
        "inner_product_errors",
        "1.01 * UNIT_ROUNDOFF * fourier * norm[row]",
        "0.0",
    ),
    "spectra: per release": Mistake(
        inner,
        (
            Fragment(
                spectra.Spectra,
                "norm_totals",
                "return view_pairs.totals(norm), ",
                "return view_pairs.totals(norm) / view_pairs.releases, ",
            ),
            Fragment(spectra, "_errors", " * terms.view_pairs.releases", ""),
        ),
    ),
    "spectra: outside": mistake(
        short(C[0]),
        pair_term_kernels,
        "inner_product_errors",
        "peak[row] * (outside[q] * (1 + 1e-9) + rounding)",
        "peak[row] * rounding",
    ),
    "spectra: turn": mistake(
        short(C[0]),
        spectra._BoundingSpectra,
        "of",
        "turn = plan.origin % n",
        "turn = (plan.origin + 1) % n",
    ),
    "psi: splits": mistake(
        lower_function,
        bounding_functions,
        "split_variance",
        "splits * math.log1p",
        "(splits - 1) * math.log1p",
    ),
    "psi: half": mistake(
        lower_function,
        bounding_functions,
        "split_variance",
        "math.sinh(step / 2) ** 2",
        "math.sinh(step / 2) ** 2 / 2",
    ),
    "psi: exp": mistake(
        lower_function10, bounding_functions, "split_variance", " * math.exp(2 * splits * step)", ""
    ),
    # terms
    "terms: eps": mistake(
        uncertain(0, 1),
        PairTerms,
        "of",
        "plan.eps - shift, plan.eps + shift",
        "plan.eps + shift, plan.eps - shift",
    ),
    "terms: eps+": mistake(
        uncertain(0, -1),
        PairTerms,
        "of",
        "plan.eps - shift, plan.eps + shift",
        "plan.eps + shift, plan.eps - shift",
    ),
    "terms: aside": mistake(
        uncertain(2, -1),
        pair_term_kernels,
        "pair_terms",
        "aside[f, 0] * math.exp(eta[f])",
        "aside[f, 0]",
    ),
    "terms: aside low": mistake(
        uncertain(2, 1),
        pair_term_kernels,
        "pair_terms",
        "aside[f, 1] * math.exp(-eta[f])",
        "aside[f, 1]",
    ),
    "terms: q": mistake(
        short(C[0]), pair_term_kernels, "pair_terms", "math.exp(errors + eps)", "math.exp(errors)"
    ),
    "terms: below": mistake(short(C[0]), pair_term_kernels, "assemble", " + terms[q, BELOW]", ""),
    "terms: aside upper": mistake(
        short(C[0]), pair_term_kernels, "assemble", "(upper + terms[q, ASIDE_UPPER])", "upper"
    ),
    "terms: outside high": mistake(
        short(C[0]),
        pair_term_kernels,
        "pair_terms",
        "edge = origin if side < 0 else origin + size",
        "edge = origin if side < 0 else origin + 2 * size",
    ),
    "terms: outside low": mistake(
        partial(passes.test_what_lies_outside_the_window_is_on_the_safe_side, C[0], -0.05),
        pair_term_kernels,
        "pair_terms",
        "edge = origin if side < 0 else origin + size",
        "edge = origin - size if side < 0 else origin + size",
    ),
    "terms: highest releases": mistake(
        copies_five,
        pair_term_kernels,
        "pair_terms",
        "highest += releases * last[f]",
        "highest += last[f]",
    ),
    "terms: lost releases": mistake(
        copies_low,
        pair_term_kernels,
        "pair_terms",
        "lost_up += releases * log_up[f]",
        "lost_up += log_up[f]",
    ),
    "terms: q releases": mistake(
        copies,
        pair_term_kernels,
        "pair_terms",
        "capped_q += releases * aside[f, 2]",
        "capped_q += aside[f, 2]",
    ),
    "terms: error upper": mistake(
        short(C[0]), pair_term_kernels, "assemble", "(above + error[q, 0])", "above"
    ),
    "terms: error lower": mistake(
        short(C[0]),
        pair_term_kernels,
        "assemble",
        "below = sums[q, 1] - error[q, 1]",
        "below = sums[q, 1]",
    ),
    "power": mistake(copies_five, kernels, "pair_sums", "while power:", "while power > 1:"),
    "largest: releases": mistake(
        partial(passes.test_no_loss_is_larger_than_the_largest, 4),
        ViewPairs,
        "totals",
        "if self.releases > 1:",
        "if False:",
    ),
    "largest: central": mistake(
        partial(passes.test_no_loss_is_larger_than_the_largest, 1),
        ViewPairs,
        "largest_loss",
        "central + self.central.mix[:, 0] * self.central.step",
        "central",
    ),
    "central: weights": mistake(
        short(C[3]), CentralMixture, "weights", "inner[0] = last[0]", "pass"
    ),
    "central: offsets": mistake(
        short(C[3]), CentralMixture, "offsets", "2 * np.arange", "np.arange"
    ),
    "central: last": mistake(
        short(C[4]), mixture_kernels, "mixture_spectra", "w = weights[m, 1]", "w = weights[m, 0]"
    ),
    # planning
    "plan: high": mistake(
        sound, grid_plan, "choose_plan", "window.high + 3 * saddle.splits * step", "eps"
    ),
    "plan: tail": mistake(
        sound,
        evaluate,
        "coarse_estimate",
        "if tail <= max(_LARGEST_TAIL * share * delta, _SMALLEST_TAIL):",
        "if True:",
    ),
    "plan: cap": mistake(
        sound,
        planning_kernels,
        "capped_moments",
        "q_mass += cells[row, i] * math.exp(-loss[i])",
        "q_mass += cells[row, i]",
    ),
    "plan: cap2": mistake(
        small,
        planning_kernels,
        "capped_moments",
        "q_mass += cells[row, i] * math.exp(-loss[i])",
        "q_mass += 0.0",
    ),
    "plan: cap3": mistake(
        sound,
        planning_kernels,
        "capped_moments",
        "q_mass += cells[row, i] * math.exp(-loss[i])",
        "q_mass += 0.0",
    ),
    "plan: first": mistake(
        sound,
        grid_plan,
        "_first_index",
        "math.floor((lowest - moments.largest_offset) / step) - 1",
        "math.floor((lowest - moments.largest_offset) / 8 / step) - 1",
    ),
    "plan: step": mistake(
        sound, grid_plan, "choose_plan", "max((high - low) / (size - 4), step / 2)", "COARSEST_STEP"
    ),
    "plan: window": mistake(
        sound,
        planning_kernels,
        "windows",
        "gain / (tilts[j] - tilts[index])",
        "gain / (tilts[j] + tilts[index])",
    ),
    "plan: window2": mistake(
        sound,
        grid_plan,
        "_windows",
        "log_error + tilts[indices] * eps - log_peaks",
        "log_error + 2 * tilts[indices] * eps - log_peaks",
    ),
    "plan: saddle": mistake(
        sound,
        planning_kernels,
        "saddle_points",
        "exponent = log_moment[q, j] - tilts[j] * eps",
        "exponent = log_moment[q, j]",
    ),
    "plan: splits": mistake(
        sound,
        grid_plan,
        "choose_plan",
        "(_STEP_ERROR * saddle.splits * density)",
        "(_STEP_ERROR * density)",
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_noticed(name: str) -> None:
    MISTAKES[name].must_be_noticed()
