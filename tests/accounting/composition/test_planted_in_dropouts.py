from functools import partial

import pytest
import test_coupled_noises as coupled
from planted import mistake

from accounting.composition.dropouts import central_offsets, coupling_kernels
from accounting.composition.dropouts.central_offsets import Cases, ThinnedCentral
from accounting.composition.dropouts.thinned_profiles import ThinnedPairs, ThinnedProfiles

no_mass = partial(coupled.test_cases_lose_no_mass, 0.9, 5, 1e-2)
no_mass8 = partial(coupled.test_cases_lose_no_mass, 0.9, 8, 1e-2)
no_mass14 = partial(coupled.test_cases_lose_no_mass, 0.2, 14, 1e-2)
all_mass = coupled.test_couplings_account_for_all_mass
no_mass_at_all = partial(coupled.test_cases_lose_no_mass, 0.9, 5, 1e-25)
definition = partial(coupled.test_cases_are_those_of_the_definition, 2)
definition4 = partial(coupled.test_cases_are_those_of_the_definition, 4)


def bounded(case=0, eps=0.9, tail=1e-12):
    return partial(
        coupled.test_every_change_is_bounded_by_its_coupled_noises, coupled.CASES[case], eps, tail
    )


grid = partial(coupled.test_offsets_on_a_grid_keep_both_masses, 1 / 16)
several = partial(coupled.test_profiles_for_several_releases_are_above, coupled.CASES[0])
MISTAKES = {
    "masses": mistake(
        definition,
        ThinnedCentral,
        "_masses",
        "(k - 1 + self.share) / k",
        "(k + self.share) / (k + 1)",
    ),
    "totals": mistake(
        no_mass, ThinnedCentral, "_totals", "f[x : x + size]", "f[x + 1 : x + 1 + size]"
    ),
    "lost": mistake(
        no_mass,
        ThinnedCentral,
        "_cases",
        "found.lost = 2 * self._noise.tail_bound(size) + ",
        "found.lost = ",
    ),
    "lost far": mistake(
        no_mass8, ThinnedCentral, "_cases", "float(totals[len(near) :].sum())", "0.0"
    ),
    "unmatched": mistake(
        no_mass14, ThinnedCentral, "_cases", "float(totals[inner[~matched]].sum())", "0.0"
    ),
    "error": mistake(
        no_mass_at_all, ThinnedCentral, "_cases", "found.cases(1 + self.error)", "found.cases(1.0)"
    ),
    "margin": mistake(
        no_mass_at_all, ThinnedCentral, "_cases", "margin=4 * self.error + 1e-12", "margin=0.0"
    ),
    "reversed": mistake(definition, ThinnedCentral, "_cases", "chance[:, ::-1]", "chance"),
    "swapped": mistake(
        definition,
        ThinnedCentral,
        "_cases",
        "np.full_like(x, distance), there, here",
        "np.full_like(x, distance), here, there",
    ),
    "inner": mistake(
        definition,
        ThinnedCentral,
        "_cases",
        "found.add(inner, totals[inner]",
        "found.add(0 * inner, totals[inner]",
    ),
    "inner other": mistake(
        definition4,
        ThinnedCentral,
        "_cases",
        "totals[distance - inner], chance",
        "totals[inner], chance",
    ),
    "sign": mistake(
        definition,
        central_offsets._Collected,
        "add",
        "case[d] + j - chance",
        "case[d] - j + chance",
    ),
    "ratio": mistake(
        definition,
        central_offsets._Collected,
        "add",
        "np.log(before / after)",
        "np.log(after / before)",
    ),
    "rare": mistake(all_mass, central_offsets._Collected, "add", "float(mass[~kept].sum()) + ", ""),
    "missed": mistake(all_mass, central_offsets._Collected, "add", " + float(before @ missed)", ""),
    "cut": mistake(
        all_mass, coupling_kernels, "quantile_couplings", "missed[i] = cut", "missed[i] = 0.0"
    ),
    "quantile": mistake(
        definition,
        coupling_kernels,
        "quantile_couplings",
        "down = max(first[m + 1], second[k + 1], cut)",
        "down = max(first[m + 1], cut)",
    ),
    "survival": mistake(
        definition,
        coupling_kernels,
        "_fill_survival",
        "masses[m] * masses[m + x]",
        "masses[m] * masses[m + x + 1]",
        (coupling_kernels, "quantile_couplings"),
    ),
    "survival0": mistake(
        definition,
        coupling_kernels,
        "_fill_survival",
        "masses[m] * masses[m + x]",
        "masses[m]",
        (coupling_kernels, "quantile_couplings"),
    ),
    "grid swapped": mistake(
        grid,
        Cases,
        "on_grid",
        "[self.mass * (1 - right), self.mass * right]",
        "[self.mass * right, self.mass * (1 - right)]",
    ),
    "grid linear": mistake(
        grid,
        Cases,
        "on_grid",
        "np.expm1((low - position) * step) / math.expm1(-step)",
        "position - low",
    ),
    "grid infinite": mistake(
        grid, Cases, "on_grid", "total[used], self.infinite)", "total[used], 0.0)"
    ),
    # profiles
    "row": mistake(
        bounded(),
        ThinnedProfiles,
        "_mixture",
        "points.shift + b - int(self.pairs.shifts[0])",
        "points.shift + b - int(self.pairs.shifts[0]) + 1",
    ),
    "row b": mistake(
        bounded(), ThinnedProfiles, "_mixture", "points.shift + b - ", "points.shift - "
    ),
    "infinite": mistake(
        bounded(0, 0.9, 1e-3), ThinnedProfiles, "_mixture", "(value + points.infinite)", "value"
    ),
    "infinite3": mistake(
        bounded(0, 2.0, 1e-3), ThinnedProfiles, "_mixture", "(value + points.infinite)", "value"
    ),
    "cell": mistake(
        bounded(),
        ThinnedProfiles,
        "_mixture",
        "points.cell - low, points.mass",
        "points.cell - low - 1, points.mass",
    ),
    "base": mistake(
        bounded(),
        ThinnedProfiles,
        "_mixture",
        "base=self.parts.base + low",
        "base=self.parts.base + low - 1",
    ),
    "before": mistake(
        bounded(),
        coupling_kernels,
        "add_shifted_profiles",
        "for i in range(min(c, out.size)):\n            out[i] += w",
        "pass",
    ),
    "after": mistake(
        bounded(0, 2.0),
        coupling_kernels,
        "add_shifted_profiles",
        "out[i] += w * profile[width - 1]",
        "pass",
    ),
    "beside chord": mistake(
        bounded(),
        ThinnedProfiles,
        "_beside",
        "rows[:, :-1] + share * (rows[:, 1:] - rows[:, :-1])",
        "rows[:, 1:]",
    ),
    "beside infinite": mistake(bounded(), ThinnedProfiles, "_beside", " + central.infinite", ""),
    "beside low": mistake(
        bounded(4, 0.1),
        ThinnedProfiles,
        "_beside",
        "chord[:, 0], chord[:, -1] = 1.0, rows[:, -1]",
        "chord[:, 0], chord[:, -1] = 0.0, rows[:, -1]",
    ),
    "beside index": mistake(
        bounded(),
        ThinnedProfiles,
        "_beside",
        "np.clip(at + 1, 0, size)",
        "np.clip(at + 2, 0, size)",
    ),
    "coordinates": mistake(
        bounded(3), ThinnedProfiles, "_central_of", "for other in factors[1:]:", "for other in ():"
    ),
    "several": mistake(
        several, ThinnedProfiles, "as_profiles", "plain.composed(central[q], parts.tilt)", "plain"
    ),
    "parts": mistake(
        bounded(1),
        ThinnedPairs,
        "parts",
        "none = len(pairs.plain) - int(shifts[0])",
        "none = len(pairs.plain)",
    ),
    "shifts": mistake(bounded(1), ThinnedPairs, "shifts", "b + end for m, b", "end for m, b"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_noticed(name: str) -> None:
    MISTAKES[name].must_be_noticed()
