"""Rigorous bounds for every pair of a workload: the heart of the package.

One pass does the following; discretisation.md and floating_point.md prove that the result is an
enclosure whatever the plan, so the plan may be chosen by rules of thumb.

1. Tabulate every noise; put the loss of every factor on the grid (connect_the_dots).
2. Tilt by e^{tilt * loss}, wrap to the window, transform.  What is tilted has total mass one, so
   the absolute error of the transform is a relative error of the result, at any delta.
3. Multiply the spectra of a pair and take the inner product with two test functions.
4. Add what was set aside: infinite and capped losses, tails, mass outside the window, rounding.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np

from accounting import testfunctions
from accounting.arrays import FloatArray, IntArray
from accounting.errors import TooLarge
from accounting.noise import UNIT_ROUNDOFF, NoiseTable
from accounting.parallel import in_chunks
from accounting.survey import (
    Outlook,
    Plan,
    Survey,
    Surveyor,
    choose,
    mixture,
    outlook,
    shift_groups,
)
from accounting.workload import Workload

MEMORY_LIMIT = 2 << 30
"""Bytes that the spectra of one evaluation may take."""
LARGEST_GRID = 1 << 22
_ATTEMPTS = 8
_NEGLIGIBLE = 1e-4
"""Pairs whose bound is this small relative to the worst keep the cheap Chernoff bound."""


@dataclass(frozen=True)
class Bounds:
    """``lower[q] <= divergence of pair q <= upper[q]``."""

    lower: FloatArray
    upper: FloatArray

    @property
    def worst(self) -> int:
        return int(np.argmax(self.upper))

    @property
    def gap(self) -> float:
        """Relative gap of the enclosure of the largest divergence."""
        top = float(self.upper.max(initial=0.0))
        return (top - float(self.lower.max(initial=0.0))) / top if top > 0 else 0.0


@dataclass(frozen=True)
class Factors:
    """Per factor: tilted log-moments (first the tilt of the plan, then the others), mass set
    aside [infinite or capped P, capped Q, unknown P, share of tilted mass below the grid], error exponent,
    index of the last grid point with mass."""

    log_moment: FloatArray
    aside: FloatArray
    eta: FloatArray
    last: IntArray


def evaluate(
    workload: Workload,
    eps: float,
    *,
    gap: float = 0.01,
    absolute: float = 0.0,
    report: Callable[[str], None] | None = None,
) -> Bounds:
    """Enclosures of the divergence of every pair at ``eps``.

    The grid is refined until the enclosure of the largest one has relative gap ``gap`` or width
    ``absolute``; the others may be wider, and their upper bounds are below the largest.  The
    caller looks at ``Bounds.gap`` to learn whether that was reached.
    """
    lower = np.zeros(workload.pairs)
    upper = np.where(workload.largest_loss <= eps, 0.0, 1.0)
    left = np.flatnonzero(upper > 0)
    tail, finer, estimate = 1e-25, 1.0, 0.0
    for attempt in range(_ATTEMPTS):
        if not len(left):
            break
        part = workload if len(left) == workload.pairs else workload.subset(left)
        tables, seen, look, tail = look_closely(
            part, eps, tail, 0.1 * finer * gap, 0.3**attempt, estimate, absolute
        )
        delta = max(estimate or look.total, absolute)
        largest = min(LARGEST_GRID, _power_of_two(MEMORY_LIMIT // (16 * (part.factors + 64))))
        if largest < 256:
            raise TooLarge(
                f"{part.factors:,} distinct factors leave no room for a grid in "
                f"{MEMORY_LIMIT >> 20} MiB; evaluate fewer pairs at a time"
            )
        plan = choose(
            seen, look, eps=eps, gap=gap, finer=finer, delta=delta, largest_size=largest
        )
        if report is not None:
            report(
                f"{len(left):,} pairs, {part.factors:,} factors, grid of {plan.size:,} points "
                f"{plan.step:.3g} apart, tilt {plan.tilt:.4g}"
            )
        got = run(part, tables, plan)
        lower[left] = np.maximum(lower[left], got.lower)
        upper[left] = np.minimum(upper[left], got.upper)
        best = float(lower.max())
        width = float(upper.max()) - best
        if width <= max(gap * float(upper.max()), absolute) or float(upper.max()) < 1e-280:
            break
        left = np.flatnonzero(upper > max(best, absolute / 2))
        ratio = gap * max(best, absolute) / width if best > 0 or absolute > 0 else 0.25
        finer *= max(0.1, min(0.6, 0.8 * math.sqrt(ratio)))
        estimate = best
        tail = min(tail, 1e-6 * gap * max(estimate, absolute, 1e-280))
        if plan.size == largest and attempt > 1:
            break
    return Bounds(lower, upper)


def look_closely(
    workload: Workload, eps: float, tail: float, share: float, finer: float, estimate: float,
    absolute: float,
) -> tuple[list[NoiseTable], Survey, Outlook, float]:
    """Tables, survey and outlook whose tails and caps are small next to the divergence they show.

    How much may be cut depends on the divergence, and how large it looks on what was cut.
    """
    for _ in range(8):
        tables = tabulate(workload, tail)
        surveyor = Surveyor(workload, tables, eps, finer=finer)
        budget = 1e-3
        for _ in range(80):
            seen = surveyor.capped(budget)
            look = outlook(workload, seen, eps)
            delta = max(estimate or look.total, absolute)
            wanted = share * delta * math.exp(-eps) / look.splits
            if budget <= 1.5 * wanted:
                break
            budget = wanted
        if tail <= max(1e-3 * share * delta, 1e-290):
            break
        tail = max(1e-6 * share * delta, 1e-290)
    return tables, seen, look, tail


def _power_of_two(n: int) -> int:
    return 1 << max(0, n.bit_length() - 1)


def tabulate(workload: Workload, tail: float) -> list[NoiseTable]:
    used = {int(noise) for noise in workload.plain[:, 0]}
    if workload.central is not None:
        used.add(workload.central.noise)
    tables: list[NoiseTable | None] = [None] * len(workload.noises)
    for i in sorted(used):
        n = workload.noises[i].length(tail) + int(workload.largest_shift[i])
        tables[i] = workload.noises[i].table(n)
    return tables  # type: ignore[return-value]  # unused noises stay None and are never read


def run(workload: Workload, tables: list[NoiseTable], plan: Plan) -> Bounds:
    """One rigorous pass (Theorem 6: the enclosure holds for any plan)."""
    rows, central_rows, factors = tilt_factors(workload, tables, plan)
    terms = PairTerms.of(workload, factors, plan)
    keep = np.flatnonzero(terms.chernoff > _NEGLIGIBLE * terms.chernoff.max())
    sums = np.zeros((workload.pairs, 2))
    error = np.zeros((workload.pairs, 2))
    if len(keep):
        spectra = transform(workload, rows, central_rows, plan, keep)
        sums[keep], error[keep] = correlate(workload, spectra, terms, plan, keep)
    return terms.bounds(sums, error, keep)


def tilt_factors(
    workload: Workload, tables: list[NoiseTable], plan: Plan
) -> tuple[FloatArray, FloatArray, Factors]:
    """Tilted rows of the plain factors and of the shifts of W, and what Factors records.

    A row is scaled by e^{-tilt * reference * step}; so are the moments until they become logarithms.
    """
    from accounting.kernels import tilted_rows

    tilts = np.append(plan.tilt, plan.others)
    n_plain = len(workload.plain)
    last_plain, last_central = (
        np.clip(np.ceil(top / plan.step).astype(np.int64), plan.first + 2, LARGEST_GRID)
        for top in (plan.top[:n_plain], plan.central_top)
    )
    highest = max(int(last_plain.max(initial=0)), int(last_central.max(initial=0)))
    cells = highest - plan.first + 1
    decay = np.exp(-np.outer(tilts, np.arange(cells) * plan.step))
    rows = np.empty((n_plain, plan.size))
    central_rows = np.empty((0, plan.size))
    log_moment = np.empty((workload.factors, len(tilts)))
    aside, eta = np.empty((workload.factors, 4)), np.empty(workload.factors)
    ends = np.empty(workload.factors, np.int64)
    for noise, where, shifts in shift_groups(workload):
        table = tables[noise]
        n = len(shifts)
        last = last_central if where is None else last_plain[where]
        reference = np.full(n, last.max()) if where is None else last
        target = np.empty((n, plan.size))
        moments, out = np.empty((n, len(tilts))), np.empty((n, 5))

        def work(a: int, b: int) -> None:
            tilted_rows(
                table.mass, table.log_mass, shifts[a:b], last[a:b], reference[a:b], plan.step,
                plan.first, decay, target[a:b], moments[a:b], out[a:b],
            )

        in_chunks(work, n, smallest=max(1, 20_000 // len(table.mass)))
        # below the grid, and what underflowed: less than 2^-1021 of the unit that a row is scaled to
        floor = np.exp(-plan.tilt * (reference - plan.first) * plan.step) * (1 + 1e-9)
        kept = np.stack(
            [out[:, 0] + out[:, 1], out[:, 2], out[:, 3] + table.tail, out[:, 4] * floor + 2.0**-1021],
            axis=1,
        )
        exponent = plan.tilt * (cells + abs(highest)) * plan.step
        error = table.relative_error + table.loss_error + 2e-12
        error += (3 * len(table.mass) + 2 * cells + 8 * min(exponent, 1500.0) + 100) * UNIT_ROUNDOFF
        top = reference[:, None] * plan.step * tilts
        if where is None:
            central = workload.central
            assert central is not None
            central_rows = target
            mixed, below = _mix_moments(workload, moments, kept[:, 3], tilts, plan.step)
            log_moment[n_plain:] = mixed + top[0]
            aside[n_plain:, :3] = mixture(central, kept[:, :3], np.array([0.0, -1.0, 0.0]))
            aside[n_plain:, 3] = below
            reach = central.step * central.mix[:, 0]
            eta[n_plain:] = error + 2e-12
            eta[n_plain:] += (2 * central.mix[:, 0] + 16 * plan.tilt * reach + 64) * UNIT_ROUNDOFF
            ends[n_plain:] = [
                (last[b : b + m + 1] + _split(central.offsets(m), plan.step)[0]).max() + 1
                for m, b in (central.mix - [0, central.shifts[0]]).tolist()
            ]
        else:
            rows[where] = target
            with np.errstate(divide="ignore", invalid="ignore"):
                log_moment[where] = np.log(moments) + top
                kept[:, 3] /= moments[:, 0]
            aside[where] = np.where(np.isfinite(kept), kept, 1.0)
            eta[where] = error
            ends[where] = last
    return rows, central_rows, Factors(log_moment, aside, eta, ends)


def _split(offset: FloatArray, step: float) -> tuple[IntArray, FloatArray]:
    """Connect the dots for a constant loss: index of its left neighbour, share of the right one."""
    index = np.floor(offset / step)
    d = np.clip(offset - index * step, 0.0, step)
    return index.astype(np.int64), np.minimum(np.expm1(-d) / math.expm1(-step), 1.0)


def _offset_weights(
    workload: Workload, m: int, tilts: FloatArray, step: float
) -> tuple[IntArray, FloatArray, FloatArray]:
    """For the offsets of m: grid index, and tilted weights of the left and the right neighbour,
    both scaled by e^{-tilt * (index of the first offset) * step}."""
    central = workload.central
    assert central is not None
    index, share = _split(central.offsets(m), step)
    weight = central.weights(m)[:, None] * np.exp(np.outer((index - index[0]) * step, tilts))
    share = share[:, None]
    return index, weight * (1 - share), weight * share * np.exp(step * tilts)


def _mix_moments(
    workload: Workload, moments: FloatArray, below: FloatArray, tilts: FloatArray, step: float
) -> tuple[FloatArray, FloatArray]:
    """Log-moments of the gridded central factors, and the share of tilted mass below the grid."""
    central = workload.central
    assert central is not None
    low = int(central.shifts[0])
    out, lost = np.empty((len(central.mix), len(tilts))), np.empty(len(central.mix))
    known: dict[int, tuple[FloatArray, FloatArray]] = {}
    for row, (m, b) in enumerate(central.mix.tolist()):
        if m not in known:
            index, left, right = _offset_weights(workload, m, tilts, step)
            known[m] = left + right, index[0] * step * tilts
        weight, top = known[m]
        of = slice(b - low, b - low + m + 1)
        total = (weight * moments[of]).sum(axis=0)
        with np.errstate(divide="ignore", invalid="ignore"):
            out[row] = np.log(total) + top
            lost[row] = (weight[:, 0] * below[of]).sum() / total[0] * (1 + 1e-9)
    return out, np.where(np.isfinite(lost), lost, 1.0)


def mixed_row(workload: Workload, central_rows: FloatArray, factor: int, plan: Plan) -> FloatArray:
    """The tilted row of a central factor, from those of the shifts of W."""
    from accounting.kernels import mix_rows

    central = workload.central
    assert central is not None
    m, b = central.mix[factor - len(workload.plain)].tolist()
    index, left, right = _offset_weights(workload, m, np.array([plan.tilt]), plan.step)
    take = np.arange(m + 1) + (b - int(central.shifts[0]))
    out = np.empty(plan.size)
    mix_rows(
        central_rows, take, index, np.ascontiguousarray(left[:, 0]),
        np.ascontiguousarray(right[:, 0]), out,
    )
    return out


@dataclass(frozen=True)
class Spectra:
    re: FloatArray
    im: FloatArray
    row_of: IntArray
    norm: FloatArray


def transform(
    workload: Workload, rows: FloatArray, central_rows: FloatArray, plan: Plan, pairs: IntArray
) -> Spectra:
    """Spectra of the factors that ``pairs`` use, each normalised to total mass one."""
    from accounting.kernels import rfft_rows

    picks = _positions(workload, pairs)
    used = np.unique(workload.factor[picks])
    row_of = np.full(workload.factors, -1, np.int64)
    row_of[used] = np.arange(len(used))
    n_plain = len(workload.plain)
    width = plan.size // 2 + 1
    re, im = np.empty((len(used), width)), np.empty((len(used), width))
    norm = np.empty(len(used))
    cos, sin = twiddles(plan.size)

    def work(a: int, b: int) -> None:
        for begin in range(a, b, 64):
            end = min(begin + 64, b)
            real = np.empty((end - begin, plan.size))
            for i, f in enumerate(used[begin:end]):
                real[i] = rows[f] if f < n_plain else mixed_row(workload, central_rows, int(f), plan)
            with np.errstate(divide="ignore"):
                scale = 1 / real.sum(axis=1)
            scale[~np.isfinite(scale)] = 0.0
            norm[begin:end] = np.linalg.norm(real * scale[:, None], axis=1) * (1 + 1e-9)
            rfft_rows(real, scale, cos, sin, re[begin:end], im[begin:end])

    in_chunks(work, len(used), smallest=8)
    return Spectra(re, im, row_of, np.minimum(norm, 1.0))


def _positions(workload: Workload, pairs: IntArray) -> IntArray:
    if len(pairs) == workload.pairs:
        return np.arange(len(workload.factor))
    marks = np.zeros(len(workload.factor) + 1, np.int64)
    np.add.at(marks, workload.start[pairs], 1)
    np.add.at(marks, workload.start[pairs + 1], -1)
    return np.flatnonzero(np.cumsum(marks)[:-1] > 0)


@cache
def twiddles(size: int) -> tuple[FloatArray, FloatArray]:
    angle = 2 * math.pi * np.arange(size // 2) / size
    return np.cos(angle), np.sin(angle)


@dataclass(frozen=True)
class PairTerms:
    """Everything about the pairs that does not need a transform."""

    workload: Workload
    plan: Plan
    eta: FloatArray
    eps_up: float
    eps_low: float
    scale_up: FloatArray
    scale_low: FloatArray
    outside: FloatArray
    splits: IntArray
    given_away: FloatArray
    not_kept: FloatArray
    chernoff: FloatArray

    @staticmethod
    def of(workload: Workload, factors: Factors, plan: Plan) -> PairTerms:
        t = workload.releases
        eta = workload.sum_over_pairs(factors.eta[:, None])[:, 0] * t
        shift = 2 * float(eta.max(initial=0.0))
        eps_up, eps_low = plan.eps - shift, plan.eps + shift
        log_moment = workload.sum_over_pairs(factors.log_moment) * t
        size = workload.sum_over_pairs(np.abs(factors.log_moment[:, :1]))[:, 0] * t
        slack = 16 * UNIT_ROUNDOFF * (size + plan.tilt * abs(plan.eps) + 64)
        base = log_moment[:, 0]
        with np.errstate(over="ignore", invalid="ignore"):
            scale_up = np.exp(base - plan.tilt * eps_up + slack + eta)
            scale_low = np.exp(base - plan.tilt * eps_low - slack - eta)
        # Markov's inequality for the tilted loss at both ends of the window
        low = plan.origin * plan.step
        high = (plan.origin + plan.size) * plan.step
        outside = np.zeros(workload.pairs)
        ends = workload.sum_over_pairs(factors.last[:, None].astype(np.float64))[:, 0] * t
        for side in (-1, 1):
            bound = np.ones(workload.pairs)
            for j, other in enumerate(plan.others, start=1):
                gap = other - plan.tilt
                if gap * side > 0:
                    with np.errstate(invalid="ignore", over="ignore"):
                        value = np.exp(
                            log_moment[:, j] - base - gap * (high if side > 0 else low) + 2 * slack
                        )
                    bound = np.minimum(bound, np.where(np.isnan(value), 1.0, value))
            if side > 0:
                bound[ends < plan.origin + plan.size] = 0.0
            outside += bound
        aside = factors.aside
        up = np.minimum((aside[:, 0] + aside[:, 2]) * np.exp(factors.eta) * (1 + 1e-12), 1.0)
        down = np.minimum(aside[:, 0] * np.exp(-factors.eta) * (1 - 1e-12), 1.0)
        with np.errstate(divide="ignore"):
            logs = np.stack([np.log1p(-up), np.log1p(-down)], axis=1)
        lost = -np.expm1(workload.sum_over_pairs(logs) * t)
        capped = workload.sum_over_pairs(aside[:, [1, 3]]) * t
        q_capped = capped[:, 0] * np.exp(eta) * math.exp(plan.eps) * (1 + 1e-12)
        given_away = np.maximum(lost[:, 1] * (1 - 1e-12) - q_capped, 0.0)
        not_kept = np.minimum(lost[:, 0] * (1 + 1e-12), 1.0)
        outside = np.minimum(outside + capped[:, 1], 1.0)
        splits = workload.sum_over_pairs(workload.splits[:, None].astype(np.float64))[:, 0] * t
        chernoff = scale_up * math.exp(testfunctions.log_peak(plan.tilt)) * (1 + 1e-9)
        return PairTerms(
            workload, plan, eta, eps_up, eps_low, scale_up, scale_low, outside,
            splits.astype(np.int64), given_away, not_kept, chernoff,
        )

    def bounds(self, sums: FloatArray, error: FloatArray, keep: IntArray) -> Bounds:
        """Theorem 6, put together."""
        upper = self.chernoff.copy()
        upper[keep] = self.scale_up[keep] * (np.maximum(sums[keep, 0], 0.0) + error[keep, 0])
        upper = np.minimum(upper, self.chernoff)
        upper = np.where(np.isnan(upper), 0.0, upper)  # a factor that keeps no mass: 0 * inf
        upper = np.minimum((upper + self.not_kept) * (1 + 1e-12) + 5e-324, 1.0)
        lower = np.zeros(len(upper))
        lower[keep] = np.maximum(self.scale_low[keep] * (sums[keep, 1] - error[keep, 1]), 0.0)
        lower = np.where(np.isfinite(lower), lower, 0.0)
        lower = np.maximum((lower + self.given_away) * (1 - 1e-12), 0.0)
        return Bounds(np.minimum(lower, upper), upper)


def correlate(
    workload: Workload, spectra: Spectra, terms: PairTerms, plan: Plan, pairs: IntArray
) -> tuple[FloatArray, FloatArray]:
    """Inner products of both test functions with each pair, and bounds of their errors."""
    from accounting.kernels import pair_sums, rfft_rows

    n = plan.size
    kinds, test = np.unique(terms.splits, return_inverse=True)
    loss = (plan.origin + np.arange(n)) * plan.step
    functions = np.empty((2 * len(kinds), n))
    for i, splits in enumerate(kinds):
        functions[2 * i] = testfunctions.upper(loss, terms.eps_up, plan.tilt)
        functions[2 * i + 1] = testfunctions.lower(
            loss, terms.eps_low, plan.tilt, max(1, int(splits)), plan.step
        )
    peak = np.maximum(np.abs(functions).max(axis=1), math.exp(testfunctions.log_peak(plan.tilt)))
    norm = peak * np.linalg.norm(functions / peak[:, None], axis=1) * (1 + 1e-9)
    functions = np.ascontiguousarray(np.roll(functions, plan.origin % n, axis=1))
    test_re, test_im = np.empty((len(functions), n // 2 + 1)), np.empty((len(functions), n // 2 + 1))
    rfft_rows(functions, np.ones(len(functions)), *twiddles(n), test_re, test_im)
    for spectrum in (test_re, test_im):
        spectrum *= 2.0 / n
        spectrum[:, 0] *= 0.5
        spectrum[:, -1] *= 0.5
    out = np.empty((len(pairs), 2))
    factor = np.maximum(spectra.row_of, 0)[workload.factor]

    def work(a: int, b: int) -> None:
        pair_sums(
            spectra.re, spectra.im, workload.start, factor, workload.releases,
            test.astype(np.int64), test_re, test_im, pairs[a:b], out[a:b],
        )

    in_chunks(work, len(pairs), smallest=16)
    # Lemma F5: the transform, the products and the inner product, in the 2-norm
    norms = np.ones(workload.factors)
    norms[spectra.row_of >= 0] = spectra.norm[spectra.row_of[spectra.row_of >= 0]]
    total = workload.sum_over_pairs(norms[:, None])[pairs, 0] * workload.releases
    count = np.diff(workload.start)[pairs] * workload.releases
    fourier = 8 * math.log2(n) * (total + 1) + 6 * count + n + 64
    error = np.empty((len(pairs), 2))
    for side in (0, 1):
        row = 2 * test[pairs] + side
        error[:, side] = 1.01 * UNIT_ROUNDOFF * fourier * norm[row]
        error[:, side] += peak[row] * (terms.outside[pairs] * (1 + 1e-9) + 1e-11)
    return out, error
