"""Numba kernels of the estimates: no bound depends on them."""

from __future__ import annotations

import math

import numpy as np

from accounting.base.arrays import FloatArray, IntArray
from accounting.base.jit import kernel

ComplexArray = np.ndarray[tuple[int, ...], np.dtype[np.complex128]]


@kernel
def burst_tables(
    mean: FloatArray, r: FloatArray, sizes: IntArray, start: IntArray, table: FloatArray
) -> None:
    """As ``noise_tables``, for the bursts of ``Burst.from_mean`` with m = sizes[i].

    With s_j = f / (1 - p x)^j, as generating functions, and b = (1 - p)^m,

        d f(z) / d rate = b s_m(z - 1) - f(z),
        d f(z) / d p = rate m (b s_{m+1}(z - 2) - b s_m(z - 1) / (1 - p)).
    """
    big = 2.0**400
    sums = np.empty(sizes.max() + 1)
    for i in range(mean.size):
        m = sizes[i]
        rho = r[i] * (m + 1) / m
        rate = mean[i] * rho / (mean[i] + rho)
        p = mean[i] / (mean[i] + rho * m)
        b = (1.0 - p) ** m
        first, second = rate * b, rate * b * (m - 1) * p
        sums[:] = 0.0
        f, log_scale = 1.0, -rate
        for z in range(start[i + 1] - start[i]):
            of_rate, of_p = -1.0, 0.0
            if z:
                before = sums[m]
                carried = f
                for j in range(m + 1):
                    carried += p * sums[j]
                    sums[j] = carried
                f = (first * sums[m] + second * before) / z
                of_rate = b * sums[m - 1] / f - 1.0
                of_p = rate * m * b * (before - sums[m - 1] / (1.0 - p)) / f
                if f > big or f < 1.0 / big:
                    scale = 1.0 / f
                    log_scale -= math.log(scale)
                    f = 1.0
                    sums *= scale
            at = start[i] + z
            of_mean = of_rate * rate * rho / (mean[i] + rho) + of_p * p * (1.0 - p)
            of_r = of_rate * rate * mean[i] / (mean[i] + rho) - of_p * p * (1.0 - p)
            table[0, at], table[1, at], table[2, at] = math.log(f) + log_scale, of_mean, of_r


@kernel
def add_geometric(g: float, table: FloatArray) -> None:
    """Add an independent geometric(g) to the noise of a table.

    f_W(z) = (1 - g) f(z) + g f_W(z - 1), so scores are averages.
    """
    log_w, mean_w, r_w = -math.inf, 0.0, 0.0
    for z in range(table.shape[1]):
        fresh, kept = math.log1p(-g) + table[0, z], math.log(g) + log_w
        top = max(fresh, kept)
        log_w = top + math.log(math.exp(fresh - top) + math.exp(kept - top))
        new, old = math.exp(fresh - log_w), math.exp(kept - log_w)
        mean_w, r_w = new * table[1, z] + old * mean_w, new * table[2, z] + old * r_w
        table[0, z], table[1, z], table[2, z] = log_w, mean_w, r_w


@kernel
def noise_tables(mean: FloatArray, r: FloatArray, start: IntArray, table: FloatArray) -> None:
    """Per noise, table[0] = log f(z), table[1:] = d log f(z) / d(log mean, log r), z = 0, 1, ...,
    where f is NB(r, mean)."""
    for i in range(mean.size):
        share = mean[i] / (mean[i] + r[i])
        log_f = -r[i] * math.log1p(mean[i] / r[i])
        harmonic = math.log1p(-share) + 1.0
        for z in range(start[i + 1] - start[i]):
            if z:
                log_f += math.log(share * (z - 1 + r[i]) / z)
                harmonic += 1.0 / (r[i] + z - 1)
            at = start[i] + z
            table[0, at] = log_f
            table[1, at] = (z - mean[i]) * (1.0 - share)
            table[2, at] = r[i] * (harmonic - (z + r[i]) / (r[i] + mean[i]))


@kernel
def loss_rows(
    table: FloatArray,
    start: IntArray,
    middle: IntArray,
    width: FloatArray,
    cell_start: IntArray,
    noise: IntArray,
    shift: IntArray,
    step: float,
    tilt: float,
    cap: float,
    bin_width: float,
    slopes: bool,
    rows: FloatArray,
    outliers: FloatArray,
) -> None:
    """The tilted loss of each factor (noise, shift) on a periodic grid, by cubic interpolation.

    rows[i, 0] is the measure e^{tilt l} f; with ``slopes``, rows[i, 1 + t] is that times its score
    for parameter t, and rows[i, 3 + t] that times the derivative of the loss.  Losses above ``cap``
    go to bins of ``outliers[i]``: [P-mass, Q-mass, two derivatives of the P-mass, two of the
    Q-mass]; the last bin is infinite loss.
    """
    n = rows.shape[2]
    last = outliers.shape[1] - 1
    weight = np.empty(4)
    for i in range(noise.size):
        rows[i] = 0.0
        outliers[i] = 0.0
        base = start[noise[i]]
        a = shift[i]
        for k in range(cell_start[noise[i]], cell_start[noise[i] + 1]):
            z = base + middle[k]
            mass = width[k] * math.exp(table[0, z])
            if middle[k] + a < 0:
                outliers[i, last, 0] += mass
                for t in range(2):
                    outliers[i, last, 2 + t] += mass * table[1 + t, z]
                continue
            loss = table[0, z] - table[0, z + a]
            if loss > cap:
                other = mass * math.exp(-loss)
                bins = (loss - cap) / bin_width  # may be more than any integer
                b = int(bins) if bins < last - 1 else last - 1
                outliers[i, b, 0] += mass
                outliers[i, b, 1] += other
                for t in range(2):
                    outliers[i, b, 2 + t] += mass * table[1 + t, z]
                    outliers[i, b, 4 + t] += other * table[1 + t, z + a]
                continue
            x = loss / step
            cell = math.floor(x)
            u = x - cell
            weight[0] = -u * (u - 1.0) * (u - 2.0) / 6.0
            weight[1] = (u + 1.0) * (u - 1.0) * (u - 2.0) / 2.0
            weight[2] = -(u + 1.0) * u * (u - 2.0) / 2.0
            weight[3] = (u + 1.0) * u * (u - 1.0) / 6.0
            mass *= math.exp(tilt * loss)
            for c in range(4):
                at = (int(cell) + c - 1) % n
                part = mass * weight[c]
                rows[i, 0, at] += part
                if slopes:
                    for t in range(2):
                        score = table[1 + t, z]
                        rows[i, 1 + t, at] += part * score
                        rows[i, 3 + t, at] += part * (score - table[1 + t, z + a])


@kernel
def mix_spectra(
    spectra: ComplexArray,
    lowest: int,
    mix: IntArray,
    last_case: IntArray,
    step: float,
    stride: int,
    exponents: ComplexArray,
    of_offsets: ComplexArray,
    out: ComplexArray,
) -> None:
    """The central factors (m, b), sorted by b and then m, from the spectra of the shifts of W.

    ``spectra[t, j]`` belongs to the shift lowest + j, and out[t, i] to row i of ``mix``, of which
    only the cases 0..last_case[i], those with the largest losses, are kept.  Moments are those at
    ``exponents``; the largest offset, m * step, enters with the exponents ``of_offsets``.
    exact_view.md, Theorem 2: w_0 = 1 / (1 + q), w_i = q^i (1 - q) / (1 + q), w_m = q^m / (1 + q).
    Of ``stride`` cases in a row, an odd number, the one in the middle stands for all.
    """
    kinds, width = spectra.shape[0], spectra.shape[2]
    q = math.exp(-step)
    first, between = 1.0 / (1.0 + q), (1.0 - q) / (1.0 + q)
    ratio, jump, group = np.empty((3, width), np.complex128)
    for k in range(width):
        ratio[k] = q * np.exp(-2.0 * step * exponents[k])
        jump[k], group[k] = 1.0, 0.0
        for _ in range(stride):
            jump[k] *= ratio[k]
            group[k] += jump[k]
        group[k] *= between
    total, partial = np.empty((2, kinds, width), np.complex128)
    factor, ahead = np.empty((2, width), np.complex128)
    done = 0  # cases 0..done are in ``total``, and ``factor`` is ratio^done
    for i in range(mix.shape[0]):
        m, b = mix[i]
        last = min(last_case[i], m - 1)
        if i == 0 or mix[i - 1, 1] != b or last < done:
            for k in range(width):
                factor[k] = 1.0
                for t in range(kinds):
                    total[t, k] = first * spectra[t, b - lowest, k]
            done = 0
        while done + stride <= last:
            row = b + done + (stride + 1) // 2 - lowest
            for k in range(width):
                for t in range(kinds):
                    total[t, k] += group[k] * factor[k] * spectra[t, row, k]
                factor[k] *= jump[k]
            done += stride
        partial[:] = total
        ahead[:] = factor
        for case in range(done + 1, last + 1):
            for k in range(width):
                ahead[k] *= ratio[k]
                for t in range(kinds):
                    partial[t, k] += between * ahead[k] * spectra[t, b + case - lowest, k]
        for k in range(width):
            scale = np.exp(m * step * of_offsets[k])
            end = first * ahead[k] * ratio[k] if last_case[i] >= m else 0.0
            for t in range(kinds):
                out[t, i, k] = scale * partial[t, k]
                if last_case[i] >= m:
                    out[t, i, k] += scale * end * spectra[t, b + m - lowest, k]


@kernel
def outlier_mass(
    p: float, q: float, dp: FloatArray, dq: FloatArray, m: int, step: float, eps: float,
    slope: FloatArray,
) -> float:  # fmt: skip
    """Sum over i of w_i (p - e^{eps - (m - 2i) step} q)_+; adds its derivatives to ``slope``."""
    if p <= 0.0:
        return 0.0
    ratio = math.exp(-step)
    top = math.exp(eps - m * step)
    count = m
    if q > 0.0:
        room = math.log(p) - math.log(q) - eps + m * step
        if room <= 0.0:
            return 0.0
        count = min(m, int(room / (2.0 * step)))
    here, there = 1.0 / (1.0 + ratio), 1.0 / (1.0 + ratio)
    inner = min(count, m - 1)
    if inner > 0:
        share = (1.0 - ratio) / (1.0 + ratio)
        here += share * ratio * (1.0 - ratio**inner) / (1.0 - ratio)
        there += share * (math.exp(step * inner) - 1.0) / (1.0 - ratio)
    if count == m:
        here += ratio**m / (1.0 + ratio)
        there += math.exp(step * m) / (1.0 + ratio)
    for t in range(2):
        slope[t] += here * dp[t] - top * there * dq[t]
    return here * p - top * there * q


@kernel
def mixed_outliers(
    outliers: FloatArray,
    lowest: int,
    mix: IntArray,
    step: float,
    eps: float,
    out: FloatArray,
) -> None:
    """Compute what the outliers of W add to the divergence of central factor i: out[i, k] is the
    value and its two derivatives where k other such factors have their largest loss."""
    q = math.exp(-step)
    for i in range(mix.shape[0]):
        m, b = mix[i]
        out[i] = 0.0
        for c in range(m + 1):
            weight = q**c / (1.0 + q)
            if 0 < c < m:
                weight *= 1.0 - q
            row = outliers[b + c - lowest]
            for other in range(out.shape[1]):
                scale = math.exp(eps - ((1 + other) * m - 2 * c) * step)
                for k in range(row.shape[0]):
                    if row[k, 0] > scale * row[k, 1]:
                        out[i, other, 0] += weight * (row[k, 0] - scale * row[k, 1])
                        for t in range(2):
                            more = row[k, 2 + t] - scale * row[k, 4 + t]
                            out[i, other, 1 + t] += weight * more


@kernel
def pair_estimates(
    spectra: ComplexArray,
    outliers: FloatArray,
    central_outliers: FloatArray,
    start: IntArray,
    factor: IntArray,
    mix: IntArray,
    step: float,
    eps: float,
    releases: int,
    weights: ComplexArray,
    log_unit: FloatArray,
    log_weight_unit: float,
    out: FloatArray,
    slope: FloatArray,
) -> None:
    """Estimates for pairs q, the products of the rows factor[start[q]:start[q + 1]] of spectra[0].

    The first rows are plain factors with ``outliers``, the others the central factors of ``mix``.
    ``weights`` are those of the moments, in units of e^log_weight_unit, and row i of the spectra is
    in units of e^log_unit[i].  Where there are derivative spectra (kinds 1 and 2),
    slope[i, t] is the derivative by parameter t of factor[i].
    """
    kinds, width = spectra.shape[0], spectra.shape[2]
    n = outliers.shape[0]
    longest = 1
    for i in range(out.size):
        longest = max(longest, start[i + 1] - start[i])
    before = np.empty((longest + 1, width), np.complex128)
    after = np.empty(width, np.complex128)
    gradient = np.zeros(2)
    for i in range(out.size):
        lo, count = start[i], start[i + 1] - start[i]
        m, centrals, log_units = 0, 0, 0.0
        before[0] = 1.0
        for f in range(count):
            at = factor[lo + f]
            log_units += log_unit[at]
            if at >= n:
                m += mix[at - n, 0]
                centrals += 1
            for k in range(width):
                before[f + 1, k] = before[f, k] * spectra[0, at, k]
        total = 0.0
        unit = math.exp(releases * log_units + log_weight_unit)
        for k in range(width):
            whole = before[count, k]
            after[k] = weights[k] * unit
            if releases > 1:
                after[k] *= releases * whole ** (releases - 1)
            total += (whole * after[k]).real
        total /= releases
        for f in range(count - 1, -1, -1):
            at = factor[lo + f]
            gradient[:] = 0.0
            if at >= n:
                row = central_outliers[at - n, centrals - 1]
                total += releases * row[0]
                gradient[:] = row[1:]
            else:
                for b in range(outliers.shape[1]):
                    p, q = outliers[at, b, 0], outliers[at, b, 1]
                    if p > 0.0:
                        dp, dq = outliers[at, b, 2:4], outliers[at, b, 4:6]
                        more = outlier_mass(p, q, dp, dq, m, step, eps, gradient)
                        total += releases * more
            if kinds > 1:
                for t in range(2):
                    s = releases * gradient[t]
                    for k in range(width):
                        s += (before[f, k] * spectra[1 + t, at, k] * after[k]).real
                    slope[lo + f, t] = s
                for k in range(width):
                    after[k] *= spectra[0, at, k]
        out[i] = total


@kernel
def outcome_cells(
    length: IntArray, widest: FloatArray, middle: IntArray, width: FloatArray, start: IntArray
) -> None:
    """Put the outcomes 0..length - 1 of each noise into cells of odd width, narrow near 0.

    ``start`` is where the cells of each noise begin.  With empty ``middle`` the cells are only
    counted.
    """
    at = 0
    for i in range(length.size):
        start[i] = at
        z = 0
        while z < length[i]:
            half = int(min(z / 48.0, widest[i]))
            if middle.size:
                # the last cell may reach beyond the table
                middle[at] = min(z + half, length[i] - 1)
                width[at] = 2 * half + 1
            at += 1
            z += 2 * half + 1
    start[length.size] = at
