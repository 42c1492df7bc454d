"""Typical mistakes, planted one by one in the evaluator, and for each of them a check that fails.

A row is [check, module or class, function, what is written there, what is wrong].
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest
import test_error_budget as budget
import test_floating_point as floats
import test_single_passes as passes
from planted import Fragment, Mistake, mistake

from accounting.evaluator import bounding_functions, kernels, spectra, tilted_losses
from accounting.evaluator.compiled import pair_term_kernels, table_kernels
from accounting.evaluator.noise_tables import NoiseTables
from accounting.evaluator.pair_error_terms import PairTerms
from accounting.evaluator.pairs import mixture_kernels, run_kernels
from accounting.evaluator.view_pairs import CentralMixture, ViewPairs

Check = Callable[[], None]
IN_ROWS = (kernels, "tilted_rows")
ULPS = 2.0**20


def tables(law: tuple[float, float] = (30.0, 0.9), tail: float = 1e-2, ulps: float = 0.0) -> Check:
    return partial(passes.test_tables_cover_every_law_that_they_stand_for, law, tail, ulps)


def short(case: passes.Case, tail: float = 1e-5) -> Check:
    return partial(passes.test_passes_enclose_the_truth_however_short_the_tables, case, tail)


def uncertain(case: int, sign: int) -> Check:
    """``sign``: whether the true p is above its double or below."""
    doubles_stand_for = passes.test_bounds_cover_every_law_that_the_doubles_stand_for
    return partial(doubles_stand_for, passes.UNCERTAIN[case], sign)


C, F = passes.CASES, passes.FAR_OUT
forth = partial(floats.test_connect_the_dots_keeps_both_masses, 2)
back = partial(floats.test_connect_the_dots_keeps_both_masses, -3)
bump_before = partial(budget.test_no_run_has_an_outcome_on_either_side_of_a_bump, -40)
bump_behind = partial(budget.test_no_run_has_an_outcome_on_either_side_of_a_bump, 40)
moments = partial(budget.test_moments_of_every_tilt_are_within_their_budget, False)
lower_function = partial(floats.test_the_lower_bounding_function_is_below_on_average, 4, 0.01)
inner = partial(passes.test_inner_products_are_within_their_budget, 1, 100_000)
below = partial(passes.test_what_lies_below_the_grid_is_bounded_from_above, False)
below_mixed = partial(passes.test_what_lies_below_the_grid_is_bounded_from_above, True)
last = passes.test_no_factor_has_mass_above_its_last_grid_point
window = partial(passes.test_what_lies_outside_the_window_is_on_the_safe_side, C[0], -0.05)
largest = partial(passes.test_no_loss_is_larger_than_the_largest, 1)
largest_of_four = partial(passes.test_no_loss_is_larger_than_the_largest, 4)
copies = partial(passes.test_releases_are_copies_of_the_factors, (30.0, 0.5), 1, 0.03, 3)
copies_down = partial(passes.test_releases_are_copies_of_the_factors, (3.0, 0.1), -1, 1.5, 3)
five_copies = partial(passes.test_releases_are_copies_of_the_factors, (3.0, 0.1), 1, 0.9, 5)

MISTAKES: dict[str, Mistake] = {
    "tables: what is cut off is not counted in masses": mistake(
        tables(), NoiseTables, "of", " + 2 * tail,", ","
    ),
    "tables: the rounding of p is not counted in masses": mistake(
        tables(tail=1e-20, ulps=ULPS),
        NoiseTables,
        "of",
        "relative_error=2.1 * growth + ",
        "relative_error=",
    ),
    "tables: the rounding of p is not counted in losses": mistake(
        tables(ulps=ULPS), NoiseTables, "of", "loss_error=2.1 * growth + ", "loss_error="
    ),
    "tables: errors do not grow with the outcome": mistake(
        tables(ulps=ULPS),
        NoiseTables,
        "of",
        "noises.values()]) * n * UNIT",
        "noises.values()]) * UNIT",
    ),
    "tables: a mass is rescaled once too little": mistake(
        tables((2060.0, 0.5), 1e-06),
        table_kernels,
        "normalize_masses",
        "total * small * small",
        "total * small",
    ),
    "tables: k for k - 1 in the recurrence": mistake(
        tables((0.4, 0.7), 1e-06), table_kernels, "noise_masses", "p[0] * (k - 1)", "p[0] * k"
    ),
    "grid: masses are split in proportion to distances": mistake(
        forth, kernels, "connect_the_dots", "one_minus_exp(d) * scale", "d * inverse"
    ),
    "grid: the two parts of a mass are exchanged": mistake(
        forth,
        kernels,
        "connect_the_dots",
        "left += m - part\n                right += part",
        "left += part\n                right += m - part",
    ),
    "grid: one infinite loss too few": mistake(
        back,
        kernels,
        "connect_the_dots",
        "range(min(n, max(0, -shift)))",
        "range(min(n, max(0, -shift - 1)))",
    ),
    "grid: one outcome beyond the table is forgotten": mistake(
        short(F[4], 0.01),
        kernels,
        "connect_the_dots",
        "range(max(0, n - shift), n)",
        "range(max(0, n - shift + 1), n)",
        IN_ROWS,
    ),
    "grid: outcomes beyond the table are forgotten": mistake(
        short(F[2], 0.01), kernels, "connect_the_dots", "out[3] += mass[z]", "pass", IN_ROWS
    ),
    "grid: capped losses have no second mass": mistake(
        short(C[0]),
        kernels,
        "connect_the_dots",
        "out[2] += m * math.exp(there_log[k] - here_log[k])",
        "pass",
        IN_ROWS,
    ),
    "runs: only one of two masses has to be smooth": mistake(
        bump_before,
        run_kernels,
        "connect_runs",
        "max(smooth_from, smooth_from - shift)",
        "smooth_from",
    ),
    "runs: only the other mass has to be smooth": mistake(
        bump_behind,
        run_kernels,
        "connect_runs",
        "max(smooth_from, smooth_from - shift)",
        "smooth_from - shift",
    ),
    "runs: the second mass ends one outcome early": mistake(
        bump_behind,
        run_kernels,
        "connect_runs",
        "z + shift, beyond + shift)",
        "z + shift, beyond + shift - 1)",
    ),
    "tilted: mixtures know all of their outcomes": mistake(
        short(F[1], 0.01),
        tilted_losses,
        "_central_factors",
        "unknown=unknown,",
        "unknown=0 * unknown,",
    ),
    "tilted: what lies below the grid is forgotten": mistake(
        below, tilted_losses, "_tilt_shifts", "below=below_grid * floor + ", "below="
    ),
    "tilted: the bottom of the grid is one step lower": mistake(
        below,
        tilted_losses,
        "_tilt_shifts",
        "(reference - first) * step)",
        "(reference - first + 1) * step)",
    ),
    "tilted: mixtures forget what lies below the grid": mistake(
        below_mixed,
        tilted_losses,
        "_central_factors",
        "lost = below * offsets.top_mass[m, 0] + ",
        "lost = ",
    ),
    "tilted: mixtures end one grid point early": mistake(
        last,
        tilted_losses,
        "_central_factors",
        "offsets.top_index[m] + 2,",
        "offsets.top_index[m] + 1,",
    ),
    "tilted: the errors of the tables are dropped": mistake(
        uncertain(0, -1),
        tilted_losses._Cells,
        "errors",
        "tables.relative_error + tables.loss_error + 2e-12",
        "2e-12",
    ),
    "tilted: mixtures drop the errors of their parts": mistake(
        uncertain(1, -1), tilted_losses, "_central_factors", "shifted.error[0] + 4e-12", "4e-12"
    ),
    "tilted: the offset of a mixture counts twice in its second mass": mistake(
        short(C[3]),
        tilted_losses,
        "_central_factors",
        "capped_q=capped_q * np.exp(-central.step * m)",
        "capped_q=capped_q * np.exp(-2 * central.step * m)",
    ),
    "tilted: the offsets of the cases are dropped from their second mass": mistake(
        short(C[5]), tilted_losses, "_central_factors", "[0.0, 1.0, 0.0]", "[0.0, 0.0, 0.0]"
    ),
    "tilted: moments that underflow are zero": mistake(
        moments, tilted_losses, "_tilt_shifts", "moment[:, 1:] += TINY", "pass"
    ),
    "transform: its rounding errors are dropped": mistake(
        inner,
        pair_term_kernels,
        "inner_product_errors",
        "1.01 * UNIT_ROUNDOFF * fourier * norm[row]",
        "0.0",
    ),
    "transform: errors of one release stand for those of all": Mistake(
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
    "transform: what lies outside the window is dropped": mistake(
        short(C[0]),
        pair_term_kernels,
        "inner_product_errors",
        "peak[row] * (outside[q] * (1 + 1e-9) + rounding)",
        "peak[row] * rounding",
    ),
    "transform: the window is turned by one grid point": mistake(
        short(C[0]),
        spectra._BoundingSpectra,
        "of",
        "turn = plan.origin % n",
        "turn = (plan.origin + 1) % n",
    ),
    "transform: the highest power of two is left out": mistake(
        five_copies, kernels, "pair_sums", "while power:", "while power > 1:"
    ),
    "lower function: one split too few": mistake(
        lower_function,
        bounding_functions,
        "split_variance",
        "splits * math.log1p",
        "(splits - 1) * math.log1p",
    ),
    "lower function: half the variance": mistake(
        lower_function,
        bounding_functions,
        "split_variance",
        "math.sinh(step / 2) ** 2",
        "math.sinh(step / 2) ** 2 / 2",
    ),
    "terms: eps is shifted the wrong way, seen from below": mistake(
        uncertain(0, 1),
        PairTerms,
        "of",
        "plan.eps - shift, plan.eps + shift",
        "plan.eps + shift, plan.eps - shift",
    ),
    "terms: eps is shifted the wrong way, seen from above": mistake(
        uncertain(0, -1),
        PairTerms,
        "of",
        "plan.eps - shift, plan.eps + shift",
        "plan.eps + shift, plan.eps - shift",
    ),
    "terms: masses set aside are exact, seen from above": mistake(
        uncertain(2, -1),
        pair_term_kernels,
        "pair_terms",
        "aside[f, 0] * math.exp(eta[f])",
        "aside[f, 0]",
    ),
    "terms: masses set aside are exact, seen from below": mistake(
        uncertain(2, 1),
        pair_term_kernels,
        "pair_terms",
        "aside[f, 1] * math.exp(-eta[f])",
        "aside[f, 1]",
    ),
    "terms: a factor of e^eps is forgotten": mistake(
        short(C[0]), pair_term_kernels, "pair_terms", "math.exp(errors + eps)", "math.exp(errors)"
    ),
    "terms: losses below the grid are dropped": mistake(
        short(C[0]), pair_term_kernels, "assemble", " + terms[q, BELOW]", ""
    ),
    "terms: what was set aside is not added": mistake(
        short(C[0]), pair_term_kernels, "assemble", "(upper + terms[q, ASIDE_UPPER])", "upper"
    ),
    "terms: the window ends one window later": mistake(
        short(C[0]),
        pair_term_kernels,
        "pair_terms",
        "edge = origin if side < 0 else origin + size",
        "edge = origin if side < 0 else origin + 2 * size",
    ),
    "terms: the window begins one window earlier": mistake(
        window,
        pair_term_kernels,
        "pair_terms",
        "edge = origin if side < 0 else origin + size",
        "edge = origin - size if side < 0 else origin + size",
    ),
    "terms: the largest loss is that of one release": mistake(
        five_copies,
        pair_term_kernels,
        "pair_terms",
        "highest += releases * last[f]",
        "highest += last[f]",
    ),
    "terms: infinite losses of one release only": mistake(
        copies_down,
        pair_term_kernels,
        "pair_terms",
        "lost_up += releases * log_up[f]",
        "lost_up += log_up[f]",
    ),
    "terms: second masses of one release only": mistake(
        copies,
        pair_term_kernels,
        "pair_terms",
        "capped_q += releases * aside[f, 2]",
        "capped_q += aside[f, 2]",
    ),
    "terms: the upper bound has no error term": mistake(
        short(C[0]), pair_term_kernels, "assemble", "(above + error[q, 0])", "above"
    ),
    "terms: the lower bound has no error term": mistake(
        short(C[0]),
        pair_term_kernels,
        "assemble",
        "below = sums[q, 1] - error[q, 1]",
        "below = sums[q, 1]",
    ),
    "largest loss: releases are forgotten": mistake(
        largest_of_four, ViewPairs, "totals", "if self.releases > 1:", "if False:"
    ),
    "largest loss: the offset of a mixture is forgotten": mistake(
        largest,
        ViewPairs,
        "largest_loss",
        "central + self.central.mix[:, 0] * self.central.step",
        "central",
    ),
    "mixtures: the first weight is that of an inner case": mistake(
        short(C[3]), CentralMixture, "weights", "inner[0] = last[0]", "pass"
    ),
    "mixtures: half the offset": mistake(
        short(C[3]), CentralMixture, "offsets", "2 * np.arange", "np.arange"
    ),
    "mixtures: the last weight is that of an inner case": mistake(
        short(C[4]), mixture_kernels, "mixture_spectra", "w = weights[m, 1]", "w = weights[m, 0]"
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_noticed(name: str) -> None:
    MISTAKES[name].must_be_noticed()
