"""The parts of the error budget that belong to no single kernel: moments of other tilts (Lemma F7),
sizes of spectra (F5), and the decision which factors have a row (F3)."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest
from small_claims import small_mechanism

from accounting import (
    Burst,
    Configuration,
    NegativeBinomial,
    Protocol,
    Reference,
    Undecided,
    ones,
    product_divergence,
)
from accounting.base.arrays import UNIT_ROUNDOFF
from accounting.evaluator import kernels, noise_tables, spectra, tilted_losses
from accounting.evaluator.evaluate import coarse_estimate, evaluate_on_grid
from accounting.evaluator.grid_plan import GridPlan, Refinement, choose_plan
from accounting.evaluator.noise_tables import NoiseTable, noise_table, tabulate
from accounting.evaluator.pair_error_terms import PairTerms
from accounting.evaluator.pairs import run_kernels
from accounting.evaluator.tilted_losses import Factors, TiltedLosses, tilt_factors
from accounting.evaluator.view_pairs import CentralMixture, ViewPairs
from accounting.model.change import Change
from accounting.model.laws.noise import Law, NoiseSum

NB = NegativeBinomial
STEP, FIRST, TOP = 2.0**-12, -4000, 1.0


def one_factor(releases: int, *, central: bool = False) -> ViewPairs:
    """One pair, with one factor: a plain one, or a central one that mixes three shifts."""
    mix = CentralMixture(0, 0.01, np.array([[2, -1]])) if central else None
    plain = np.zeros((0, 2), np.int64) if central else np.array([[0, 1]])
    noise = NoiseSum.of(NB(400.0, 0.9))
    return ViewPairs((noise,), plain, np.array([0, 1]), np.array([0]), mix, releases)


def plan_of(view_pairs: ViewPairs, tilt: float, others: list[float], **given: int) -> GridPlan:
    central = view_pairs.central
    return GridPlan(
        eps=0.1,
        step=STEP,
        size=given.get("size", 4096),
        origin=given.get("origin", -2048),
        tilt=tilt,
        other_tilts=np.array(others),
        first=FIRST,
        cap=np.full(view_pairs.factor_count, TOP),
        central_cap=np.full(len(central.shifts) if central else 0, TOP),
    )


def exact_moments(view_pairs: ViewPairs, tilts: list[float], table: NoiseTable) -> list[mp.mpf]:
    """log-moments of the gridded masses, in 50 digits."""
    central = view_pairs.central
    shifts = [1] if central is None else central.shifts.tolist()
    last = math.ceil(TOP / STEP)
    at = [(FIRST + i) * mp.mpf(STEP) for i in range(last - FIRST + 1)]
    gridded = []
    for shift in shifts:
        cells, out = np.empty(last - FIRST + 1), np.empty(5)
        kernels.connect_the_dots(table.mass, table.log_mass, shift, STEP, FIRST, last, cells, out)
        gridded.append([(mp.mpf(float(c)), x) for c, x in zip(cells, at, strict=True) if c > 0])
    found = []
    for tilt in tilts:
        plain = [mp.fsum(c * mp.exp(mp.mpf(tilt) * x) for c, x in row) for row in gridded]
        if central is None:
            found.append(mp.log(plain[0]))
            continue
        q, total = mp.exp(-mp.mpf(central.step)), mp.mpf(0)
        for i, weight in enumerate((1 / (1 + q), q * (1 - q) / (1 + q), q**2 / (1 + q))):
            term = weight * plain[i]
            for offset in (2 * mp.mpf(central.step), -2 * i * mp.mpf(central.step)):
                index = mp.floor(offset / STEP)
                share = mp.expm1(index * STEP - offset) / mp.expm1(-mp.mpf(STEP))
                left, right = (mp.exp(mp.mpf(tilt) * (index + k) * STEP) for k in (0, 1))
                term *= (1 - share) * left + share * right
            total += term
        found.append(mp.log(total))
    return found


@pytest.mark.parametrize("central", [False, True])
def test_moments_of_every_tilt_are_within_their_budget(central: bool) -> None:
    view_pairs = one_factor(1, central=central)
    table = tabulate(view_pairs, 1e-20)
    tilts = [3.0, 0.0, 1.7, 11.0, 123.4, 900.0]
    found = tilt_factors(view_pairs, table, plan_of(view_pairs, tilts[0], tilts[1:])).factors
    assert np.isfinite(found.log_moment).all()
    with mp.workdps(50):
        for j, truth in enumerate(exact_moments(view_pairs, tilts, table[0])):
            budget = (found.eta if j == 0 else found.eta_others)[0]
            budget += 17 * UNIT_ROUNDOFF * (abs(found.log_moment[0, j]) + 64)
            assert truth <= found.log_moment[0, j] + budget
            if tilts[j] < 300:  # beyond, what may have underflowed is added: an upper bound only
                assert found.log_moment[0, j] - budget <= truth


def test_what_is_outside_the_window_is_at_least_what_markov_says() -> None:
    """With this many releases, a relative error of 2^-53 in one moment shows in the product."""
    releases = 1 << 34
    view_pairs = one_factor(releases)
    table = tabulate(view_pairs, 1e-20)
    for k in range(12):
        tilt, other = 0.5 + 0.01 * k, 0.9 + 0.013 * k
        with mp.workdps(50):
            at_tilt, at_other = exact_moments(view_pairs, [tilt, other], table[0])
            growth, gap = (at_other - at_tilt) * releases, mp.mpf(other) - mp.mpf(tilt)
            edge = int((growth + 3) / gap / STEP)  # where Markov's inequality gives about e^-3
            truth = mp.exp(growth - gap * edge * STEP)
        plan = plan_of(view_pairs, tilt, [0.0, other])
        factors = tilt_factors(view_pairs, table, plan).factors
        size = 1 << 62  # no loss lies below such a window
        window = plan_of(view_pairs, tilt, [0.0, other], size=size, origin=edge - size)
        assert truth <= PairTerms.of(view_pairs, factors, window).outside[0] < 1


@pytest.mark.parametrize("n", [256, 4096])
def test_no_modulus_exceeds_the_size_of_its_spectrum(n: int) -> None:
    """Of the computed spectrum and the exact one, whose largest modulus is the sum of the row."""
    view_pairs = one_factor(1)
    plan = replace(plan_of(view_pairs, 3.0, [1.0]), size=n)
    rng = np.random.default_rng(n)
    for _ in range(20):
        rows = rng.random((1, n)) ** rng.integers(1, 40)
        found = _spectra(view_pairs, rows, plan)
        size = found.log_size[0]
        with mp.workdps(50):
            bound = mp.exp(mp.mpf(float(size)))
            scale = 1 / rows.sum(axis=1)
            assert mp.fsum(mp.mpf(float(x)) for x in rows[0] * scale[0]) <= bound
            squares = zip(found.re[0].tolist(), found.im[0].tolist(), strict=True)
            assert all(mp.mpf(a) ** 2 + mp.mpf(b) ** 2 <= bound**2 for a, b in squares)
        assert 0 < size < 1e-13


def _spectra(view_pairs: ViewPairs, rows: np.ndarray, plan: GridPlan) -> spectra.Spectra:
    nothing = np.zeros(1)
    columns = [nothing] * 6
    factors = Factors(nothing[:, None], *columns, np.zeros(1, np.int64))
    tilted = TiltedLosses(plan, rows, None, np.empty((0, plan.size)), factors)
    return spectra.transform(view_pairs, tilted, np.zeros(1, np.int64))


def test_errors_of_large_spectra_grow_with_the_number_of_releases() -> None:
    """A fault in the transform that makes every modulus 1% too large raises the error bound with
    every release: Lemma F5 does not assume that moduli are at most one."""
    view_pairs = one_factor(500)
    plan = plan_of(view_pairs, 3.0, [1.0, 5.0], size=1024, origin=-512)
    table = tabulate(view_pairs, 1e-20)
    tilted = tilt_factors(view_pairs, table, plan)
    terms = PairTerms.of(view_pairs, tilted.factors, plan)
    terms = replace(terms, outside=np.zeros(1))  # leave only the errors of the transforms
    pair = np.zeros(1, np.int64)
    good = spectra.transform(view_pairs, tilted, pair)
    larger = np.empty(1)
    kernels.largest_moduli(1.01 * good.re, 1.01 * good.im, larger)
    assert larger[0] >= 1.01 * (1 - 4 * UNIT_ROUNDOFF)
    bad = replace(good, re=1.01 * good.re, im=1.01 * good.im, log_size=np.log(larger))
    _, error = spectra.correlate(good, terms, pair)
    _, more = spectra.correlate(bad, terms, pair)
    assert more[0, 0] > 100 * error[0, 0]  # 1.01^500 = 144.8, less the errors of the test function


@pytest.fixture
def small() -> tuple[ViewPairs, float, float]:
    """A pair of the protocol with a central factor, and both sides of its divergence at 0.9."""
    unit, double = (2.0, 0.45), (2.5, 0.4)
    exact = small_mechanism([unit], double, eps_central=2.0)
    truth = Reference(exact).of_sequence([Change(0, 2)], 0.9, accuracy=1e-12)
    atoms = [((-1, 1), NB(*unit)), ((2, -1, -1), NB(*double))]
    view_pairs = Protocol(Configuration.of(2, atoms, eps_central=2.0)).view_pairs
    return view_pairs.subset(np.array([1])), truth.lower, truth.upper


def some_plan(view_pairs: ViewPairs, rng: random.Random) -> GridPlan:
    assert view_pairs.central is not None
    return GridPlan(
        eps=0.9,
        step=10 ** rng.uniform(-3, -1.3),
        size=rng.choice([512, 2048]),
        origin=rng.randint(-1500, 0),
        tilt=10 ** rng.uniform(-1, 1.5),
        other_tilts=np.sort(10 ** np.array([rng.uniform(-2, 2) for _ in range(4)])),
        first=-rng.randint(100, 3000),
        cap=np.array([rng.uniform(-0.5, 4) for _ in range(view_pairs.factor_count)]),
        central_cap=np.array([rng.uniform(-0.5, 4) for _ in view_pairs.central.shifts]),
    )


@pytest.mark.parametrize("smallest", [1e-280, 1e-9, 1e-3, 0.3])
def test_a_factor_has_a_row_where_it_has_a_moment(
    small: tuple[ViewPairs, float, float], smallest: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever counts as too small: rows, moments and spectra agree, and the bounds hold."""
    monkeypatch.setattr(tilted_losses, "_SMALLEST_MOMENT", smallest)
    view_pairs, low, high = small
    tables = tabulate(view_pairs, 1e-20)
    rng = random.Random(5)
    dropped = 0
    for _ in range(100):
        plan = some_plan(view_pairs, rng)
        tilted = tilt_factors(view_pairs, tables, plan)
        rows, has_row = tilted.rows, tilted.factors.log_moment[:, 0] > -math.inf
        assert ((rows > 0).any(axis=1) <= has_row[: len(rows)]).all()
        found = spectra.transform(view_pairs, tilted, np.zeros(1, np.int64))
        assert ((found.re[found.row_of, 0] > 0) == has_row).all()
        dropped += int((~has_row).sum())
        bounds = evaluate_on_grid(view_pairs, tables, plan)
        assert bounds.lower[0] <= high, plan
        assert low <= bounds.upper[0], plan
    assert dropped or smallest < 1e-3


def test_a_moment_at_the_cut_is_not_lost(
    small: tuple[ViewPairs, float, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sum of a row, in another order of summation, may fall below a cut that its moment
    reaches."""
    view_pairs, low, _ = small
    tables = tabulate(view_pairs, 1e-20)
    rng = random.Random(8)
    disagreed = 0
    for _ in range(60):
        plan = some_plan(view_pairs, rng)
        tilted = tilt_factors(view_pairs, tables, plan)
        rows = tilted.rows
        last = np.clip(np.ceil(plan.cap[: len(rows)] / plan.step), plan.first + 2, None)
        unit = np.exp(-plan.tilt * last * plan.step)
        moment = np.exp(tilted.factors.log_moment[: len(rows), 0]) * unit
        cut = float(np.nextafter(rows.sum(axis=1), math.inf).max())
        if not (0 < cut <= moment.max() * (1 + 1e-12)):
            continue
        monkeypatch.setattr(tilted_losses, "_SMALLEST_MOMENT", cut)
        again = tilt_factors(view_pairs, tables, plan)
        found = spectra.transform(view_pairs, again, np.zeros(1, np.int64))
        has_row = again.factors.log_moment[:, 0] > -math.inf
        assert ((found.re[found.row_of, 0] > 0) == has_row).all()
        disagreed += int(has_row[: len(rows)].any())
        assert low <= evaluate_on_grid(view_pairs, tables, plan).upper[0], plan
        monkeypatch.undo()
    assert disagreed


def test_mixed_spectra_are_within_their_budget() -> None:
    """Against the mixture of the rows in 50 digits, transformed term by term."""
    rng = random.Random(5)
    mix = np.array([[m, b] for b in (-6, -5, 2) for m in (7, 0, 1, 4)])
    central = CentralMixture(0, 0.013, mix)
    noise = NoiseSum.of(NB(400.0, 0.9))
    none = np.zeros((0, 2), np.int64)
    view_pairs = ViewPairs((noise,), none, np.arange(len(mix) + 1), np.arange(len(mix)), central)
    plan = replace(plan_of(view_pairs, 30.0, [1.0], size=256), step=2.0**-8, first=-250)
    tilted = tilt_factors(view_pairs, tabulate(view_pairs, 1e-20), plan)
    found = spectra.transform(view_pairs, tilted, np.arange(len(mix)))
    offsets = tilted_losses.Offsets.of(central, plan.step, np.array([plan.tilt]))
    low = int(central.shifts[0])
    with mp.workdps(40):

        def at(index: int, j: int) -> mp.mpc:
            return mp.expjpi(-mp.mpf(2 * j * int(index)) / plan.size)

        for f, (m, b) in enumerate(mix.tolist()):
            error = mp.mpf(0)
            for j in rng.sample(range(129), 6):
                total = mp.mpc(0)
                for i in range(m + 1):
                    row = tilted.central_rows[b + i - low]
                    one = mp.fsum(mp.mpf(float(x)) * at(k, j) for k, x in enumerate(row))
                    left, right = (mp.mpf(float(x)) for x in offsets.case[i])
                    k = offsets.case_index[i]
                    weight = mp.mpf(float(central.weights[i, int(i == m)]))
                    total += weight * (left * at(k, j) + right * at(k + 1, j)) * one
                left, right = (mp.mpf(float(x)) for x in offsets.top[m])
                k = offsets.top_index[m]
                total *= (left * at(k, j) + right * at(k + 1, j)) * mp.mpf(float(tilted.scale[f]))
                assert abs(total) <= mp.exp(found.log_size[f])
                error += abs(mp.mpc(found.re[f, j], found.im[f, j]) - total) ** 2
            budget = 28 * 8 * UNIT_ROUNDOFF * math.sqrt(plan.size) * found.norm[f]
            assert mp.sqrt(error) <= budget


@pytest.mark.parametrize(("mean", "r", "eps"), [(8000, 400, 1.0), (20_000, 400, 0.6)])
def test_norms_of_mixtures_at_small_delta(mean: float, r: float, eps: float) -> None:
    """The 2-norms of Lemma F8 and the sizes of spectra, where delta is 6e-65 or 2e-91: the rows of
    the shifts of W are in one unit, in which the squares of many underflow."""
    atoms = [(atom, NB.from_mean(mean=mean, r=r)) for atom in ones(12).atoms]
    view_pairs = Protocol(Configuration.of(12, atoms, eps_central=0.05)).view_pairs
    wanted = Refinement(eps=eps, gap=0.01)
    coarse = coarse_estimate(view_pairs, wanted)
    plan = choose_plan(coarse.moments, coarse.saddle, wanted, 1 << 15)
    tilted = tilt_factors(view_pairs, coarse.tables, plan)
    shifts = spectra.shift_spectra(tilted)
    found = spectra.transform(view_pairs, tilted, np.arange(view_pairs.pair_count))
    central = view_pairs.central
    assert central is not None
    assert coarse.saddle.total < 1e-60
    assert tilted.central_moment.max() < 1e-67
    offsets = tilted_losses.Offsets.of(central, plan.step, np.array([plan.tilt]))
    low = int(central.shifts[0])
    with mp.workdps(40):
        norms = [mp.sqrt(mp.fsum(mp.mpf(x) ** 2 for x in row)) for row in tilted.central_rows]
        for norm, row in zip(norms, shifts.norm, strict=True):
            assert norm <= row <= norm * (1 + mp.mpf(2e-9))
        for t in (0, len(norms) // 2, len(norms) - 1):
            squares = zip(shifts.re[t].tolist(), shifts.im[t].tolist(), strict=True)
            size = mp.sqrt(max(mp.mpf(a) ** 2 + mp.mpf(b) ** 2 for a, b in squares))
            assert size * (1 - 1e-15) <= shifts.modulus[t] <= size * (1 + 1e-12)
        for f, (m, b) in enumerate(central.mix.tolist()):
            nu = mp.fsum(
                mp.mpf(float(central.weights[i, int(i == m)]))
                * mp.fsum(map(mp.mpf, offsets.case[i].tolist()))
                * norms[b + i - low]
                for i in range(m + 1)
            )
            nu *= mp.fsum(map(mp.mpf, offsets.top[m].tolist())) * mp.mpf(float(tilted.scale[f]))
            assert nu > 0.01
            whole = nu + mp.mpf(m + 80) / (28 * mp.log(plan.size, 2))  # what mixing adds
            assert whole <= found.norm[found.row_of[len(view_pairs.plain) + f]] <= 1.01 * whole


@pytest.mark.parametrize("margin", [1e-8, 0.1, 0.6])
@pytest.mark.parametrize("shift", [-700, -3, 0, 1, 40, 2500])
@pytest.mark.parametrize(
    "parts",
    [
        [NB(15.0, 0.996)],
        [NB(1.0, 0.9), NB(8.0, 0.99)],
        [Burst(16.0, 0.98, 8)],  # not log-concave up to 564
        [Burst(15.0, 0.97, 24), NB(1.0, 0.9995)],  # a tail that is geometric, but for rounding
    ],
    ids=str,
)
def test_runs_of_outcomes_are_split_as_the_outcomes_are(
    margin: float, shift: int, parts: list[Law]
) -> None:
    table = noise_table(NoiseSum.of(parts), 20_000)
    assert len(table.sums) == 20_000 // run_kernels.RUN
    step, first, last = 1 / 300, -900, 500
    found, out = np.empty(last - first + 1), np.empty(5)
    twin, aside = np.empty(last - first + 1), np.empty(5)
    grid = shift, step, first, last
    run_kernels.connect_runs(
        table.mass, table.log_mass, table.sums, table.smooth_from, *grid, margin, found, out
    )
    kernels.connect_the_dots(table.mass, table.log_mass, *grid, twin, aside)
    assert found.sum() + out[[0, 1, 3, 4]].sum() == pytest.approx(table.mass.sum(), rel=1e-11)
    assert out == pytest.approx(aside, rel=1e-8, abs=2.0**-880)
    loss = (first + np.arange(len(twin))) * step
    for tilt in (0.0, -1.0, 20.0):
        weight = np.exp(tilt * loss)
        assert (found * weight).sum() == pytest.approx((twin * weight).sum(), rel=1e-8)
    # a rounding error may move what lies on a grid point to its neighbor's cell
    assert np.cumsum(found) == pytest.approx(np.cumsum(twin), rel=1e-6, abs=1e-12)


@pytest.mark.parametrize("shift", [-40, 40])
def test_no_run_has_an_outcome_on_either_side_of_a_bump(shift: int) -> None:
    """The loss of an outcome is that of two masses, and neither may lie where masses are rough."""
    log_mass = -(np.linspace(0.0, 6.0, 20_000) ** 2) / 2
    log_mass[7_000] += 0.5
    mass = np.exp(log_mass) / np.exp(log_mass).sum()
    smooth_from = noise_tables._smooth_from(log_mass)
    assert 7_000 <= smooth_from <= 7_001
    step, first, last = 1 / 300, -900, 500
    found, twin = np.empty((2, last - first + 1))
    out, grid = np.empty(5), (shift, step, first, last)
    sums = noise_tables._run_sums(mass)
    run_kernels.connect_runs(mass, log_mass, sums, smooth_from, *grid, 1e-6, found, out)
    kernels.connect_the_dots(mass, log_mass, *grid, twin, out)
    loss = (first + np.arange(len(twin))) * step
    for tilt in (20.0, -20.0):
        weight = np.exp(tilt * loss)
        assert (found * weight).sum() == pytest.approx((twin * weight).sum(), rel=1e-8)


@pytest.mark.parametrize("shift", [-40, -1, 1, 7, 900])
def test_losses_of_runs_lie_between_those_of_their_ends(shift: int) -> None:
    """Exactly, for the doubles of the tables: what the margin of a run rests on (Lemma F9)."""
    longest, margin = run_kernels.LONGEST_RUN, Fraction(run_kernels.RUN_MARGIN) / 2
    for parts in ([Burst(16.0, 0.98, 8)], [Burst(15.0, 0.97, 24), NB(1.0, 0.9995)]):
        table = noise_table(NoiseSum.of(parts), 20_000)
        assert 0 < table.smooth_from < 5000
        rng = random.Random(f"{shift} {parts}")
        for _ in range(60):
            begin = rng.randrange(max(table.smooth_from, table.smooth_from - shift), 18_000)
            run = range(begin, begin + longest)
            exact = [
                Fraction(float(table.log_mass[z])) - Fraction(float(table.log_mass[z + shift]))
                for z in run
            ]
            low, high = sorted([exact[0], exact[-1]])
            assert low - margin <= min(exact)
            assert max(exact) <= high + margin


def test_a_table_is_smooth_only_behind_its_last_bump() -> None:
    smooth = -(np.linspace(0.0, 30.0, 20_000) ** 2) / 2
    assert noise_tables._smooth_from(smooth) == 0
    # twice the height of a single bump against the curvature of 2.25e-6
    for height, is_smooth in ((1e-3, False), (-1e-3, False), (1e-6, True), (-1e-6, True)):
        bumpy = smooth.copy()
        bumpy[7_000] += height
        assert (noise_tables._smooth_from(bumpy) == 0) == is_smooth
    bumpy = smooth.copy()
    bumpy[12_000:] += 0.5  # one step up, far from everything else
    assert noise_tables._smooth_from(bumpy) == 11_999
    assert noise_tables._smooth_from(np.tile(bumpy, 20)[: 1 << 18]) > (1 << 18) - 20_000
    bumpy[15_000] = -math.inf
    assert noise_tables._smooth_from(bumpy) > 14_999


@pytest.mark.parametrize("eps", [0.01, 1.0, 50.0, 600.0])
def test_runs_whose_other_mass_underflows_are_split_outcome_by_outcome(eps: float) -> None:
    """A geometric noise has a constant loss, here 2107.2: almost all gives the input away."""
    found = product_divergence([NB(1.0, 0.9)], [20_000], eps=eps, gap=1e-3)
    with mp.workdps(50):
        truth = 1 - mp.exp(mp.mpf(eps) + 20_000 * mp.log(mp.mpf(0.9)))
        assert mp.mpf(found.lower) <= truth <= mp.mpf(found.upper)


@pytest.mark.parametrize("eps", [650.0, 700.0, 758.85, 759.84, 759.86])
def test_lower_bounds_hold_where_the_mass_of_the_other_input_underflows(eps: float) -> None:
    """A geometric noise has a constant loss, here 759.85: below it, d = 1 - e^(eps - loss)."""
    try:
        found = product_divergence([NB(1.0, 1e-30)], [11], eps=eps, gap=0.01)
    except Undecided:  # close to the loss, where d is small next to what may underflow
        assert eps > 759
        return
    with mp.workdps(50):
        truth = max(mp.mpf(0), 1 - mp.exp(mp.mpf(eps) + 11 * mp.log(mp.mpf(1e-30))))
        assert mp.mpf(found.lower) <= truth <= mp.mpf(found.upper)
