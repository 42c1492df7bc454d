"""Typical mistakes, planted one by one in the noise of a fraction of the users.

A row is [check, module or class, function, what is written there, what is wrong].
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest
import test_coupled_noises as coupled
from planted import Mistake, mistake

from accounting.composition.dropouts import central_offsets, coupling_kernels
from accounting.composition.dropouts.central_offsets import Cases, ThinnedCentral
from accounting.composition.dropouts.thinned_profiles import ThinnedPairs, ThinnedProfiles

no_mass = partial(coupled.test_cases_lose_no_mass, 0.9, 5, 1e-2)
nearly_all = partial(coupled.test_cases_lose_no_mass, 0.9, 8, 1e-2)
farther = partial(coupled.test_cases_lose_no_mass, 0.2, 14, 1e-2)
exact = partial(coupled.test_cases_lose_no_mass, 0.9, 5, 1e-25)
all_mass = coupled.test_couplings_account_for_all_mass
definition = partial(coupled.test_cases_are_those_of_the_definition, 2)
definition_of_four = partial(coupled.test_cases_are_those_of_the_definition, 4)
added = coupled.test_shifted_profiles_add_up
grid = partial(coupled.test_offsets_on_a_grid_keep_both_masses, 1 / 16)
several = partial(coupled.test_profiles_for_several_releases_are_above, coupled.CASES[0])
IN_COUPLINGS = (coupling_kernels, "quantile_couplings")


def bounded(case: int = 0, eps: float = 0.9, tail: float = 1e-12) -> Callable[[], None]:
    by_coupled_noises = coupled.test_every_change_is_bounded_by_its_coupled_noises
    return partial(by_coupled_noises, coupled.CASES[case], eps, tail)


MISTAKES: dict[str, Mistake] = {
    "noise: k + share for k - 1 + share": mistake(
        definition,
        ThinnedCentral,
        "_masses",
        "(k - 1 + self.share) / k",
        "(k + self.share) / (k + 1)",
    ),
    "noise: |D| is shifted by one": mistake(
        no_mass, ThinnedCentral, "_totals", "f[x : x + size]", "f[x + 1 : x + 1 + size]"
    ),
    "cases: tails are dropped": mistake(
        no_mass,
        ThinnedCentral,
        "_cases",
        "found.lost = 2 * self._noise.tail_bound(size) + ",
        "found.lost = ",
    ),
    "cases: values of D without a partner are dropped": mistake(
        nearly_all, ThinnedCentral, "_cases", "float(totals[len(near) :].sum())", "0.0"
    ),
    "cases: inner values of D without a partner are dropped": mistake(
        farther, ThinnedCentral, "_cases", "float(totals[inner[~matched]].sum())", "0.0"
    ),
    "cases: masses are not rounded up": mistake(
        exact, ThinnedCentral, "_cases", "found.cases(1 + self.error)", "found.cases(1.0)"
    ),
    "cases: offsets are not rounded up": mistake(
        exact, ThinnedCentral, "_cases", "margin=4 * self.error + 1e-12", "margin=0.0"
    ),
    "cases: differences with the sign of the other side": mistake(
        definition, ThinnedCentral, "_cases", "chance[:, ::-1]", "chance"
    ),
    "cases: both sides of D are exchanged": mistake(
        definition,
        ThinnedCentral,
        "_cases",
        "np.full_like(x, distance), there, here",
        "np.full_like(x, distance), here, there",
    ),
    "cases: inner values of D do not shift": mistake(
        definition,
        ThinnedCentral,
        "_cases",
        "found.add(inner, totals[inner]",
        "found.add(0 * inner, totals[inner]",
    ),
    "cases: inner values of D are their own partners": mistake(
        definition_of_four,
        ThinnedCentral,
        "_cases",
        "totals[distance - inner], chance",
        "totals[inner], chance",
    ),
    "cases: differences with the wrong sign": mistake(
        definition,
        central_offsets._Collected,
        "add",
        "case[d] + j - chance",
        "case[d] - j + chance",
    ),
    "cases: offsets with the wrong sign": mistake(
        definition,
        central_offsets._Collected,
        "add",
        "np.log(before / after)",
        "np.log(after / before)",
    ),
    "cases: rare differences are dropped": mistake(
        all_mass, central_offsets._Collected, "add", "float(mass[~kept].sum()) + ", ""
    ),
    "cases: differences beyond reach are dropped": mistake(
        all_mass, central_offsets._Collected, "add", " + float(before @ missed)", ""
    ),
    "coupling: the cut quantiles are dropped": mistake(
        all_mass, coupling_kernels, "quantile_couplings", "missed[i] = cut", "missed[i] = 0.0"
    ),
    "coupling: one of two laws ends an interval": mistake(
        definition,
        coupling_kernels,
        "quantile_couplings",
        "down = max(first[m + 1], second[k + 1], cut)",
        "down = max(first[m + 1], cut)",
    ),
    "coupling: M given another D": mistake(
        definition,
        coupling_kernels,
        "_fill_survival",
        "masses[m] * masses[m + x]",
        "masses[m] * masses[m + x + 1]",
        IN_COUPLINGS,
    ),
    "offsets: the two parts of a mass are exchanged": mistake(
        grid,
        Cases,
        "on_grid",
        "[self.mass * (1 - right), self.mass * right]",
        "[self.mass * right, self.mass * (1 - right)]",
    ),
    "offsets: split in proportion to distances": mistake(
        grid,
        Cases,
        "on_grid",
        "np.expm1((low - position) * step) / math.expm1(-step)",
        "position - low",
    ),
    "offsets: infinite losses are dropped": mistake(
        grid, Cases, "on_grid", "total[used], self.infinite)", "total[used], 0.0)"
    ),
    "mixture: shifts are off by one": mistake(
        bounded(),
        ThinnedProfiles,
        "_mixture",
        "points.shift + b - int(self.pairs.shifts[0])",
        "points.shift + b - int(self.pairs.shifts[0]) + 1",
    ),
    "mixture: b is forgotten": mistake(
        bounded(), ThinnedProfiles, "_mixture", "points.shift + b - ", "points.shift - "
    ),
    "mixture: infinite losses are dropped": mistake(
        bounded(0, 0.9, 0.001), ThinnedProfiles, "_mixture", "(value + points.infinite)", "value"
    ),
    "mixture: offsets are off by one": mistake(
        bounded(),
        ThinnedProfiles,
        "_mixture",
        "points.cell - low, points.mass",
        "points.cell - low - 1, points.mass",
    ),
    "mixture: its grid begins one point early": mistake(
        bounded(),
        ThinnedProfiles,
        "_mixture",
        "base=self.parts.base + low",
        "base=self.parts.base + low - 1",
    ),
    "mixture: nothing below the grid of a profile": mistake(
        added,
        coupling_kernels,
        "add_shifted_profiles",
        "for i in range(min(c, out.size)):\n            out[i] += w",
        "pass",
    ),
    "mixture: nothing above the grid of a profile": mistake(
        added, coupling_kernels, "add_shifted_profiles", "out[i] += w * profile[width - 1]", "pass"
    ),
    "beside: the lower end of a chord": mistake(
        bounded(),
        ThinnedProfiles,
        "_beside",
        "rows[:, :-1] + share * (rows[:, 1:] - rows[:, :-1])",
        "rows[:, 1:]",
    ),
    "beside: infinite losses are dropped": mistake(
        bounded(), ThinnedProfiles, "_beside", " + central.infinite", ""
    ),
    "beside: nothing below the grid": mistake(
        bounded(4, 0.1),
        ThinnedProfiles,
        "_beside",
        "chord[:, 0], chord[:, -1] = 1.0, rows[:, -1]",
        "chord[:, 0], chord[:, -1] = 0.0, rows[:, -1]",
    ),
    "beside: one grid point too far": mistake(
        bounded(),
        ThinnedProfiles,
        "_beside",
        "np.clip(at + 1, 0, size)",
        "np.clip(at + 2, 0, size)",
    ),
    "vectors: one coordinate stands for both": mistake(
        bounded(3), ThinnedProfiles, "_central_of", "for other in factors[1:]:", "for other in ():"
    ),
    "releases: the central noise is perfect": mistake(
        several, ThinnedProfiles, "as_profiles", "plain.composed(central[q], parts.tilt)", "plain"
    ),
    "parts: no noise but the wrong shift": mistake(
        bounded(1),
        ThinnedPairs,
        "parts",
        "none = len(pairs.plain) - int(shifts[0])",
        "none = len(pairs.plain)",
    ),
    "parts: shifts without b": mistake(
        bounded(1), ThinnedPairs, "shifts", "b + end for m, b", "end for m, b"
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_noticed(name: str) -> None:
    MISTAKES[name].must_be_noticed()
