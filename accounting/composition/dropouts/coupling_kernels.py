"""Numba kernels of the coupling of dropouts.md; error budgets are in section 3 there."""

from __future__ import annotations

from accounting.base.arrays import FloatArray, IntArray
from accounting.base.jit import kernel


@kernel
def _fill_survival(masses: FloatArray, x: int, out: FloatArray) -> None:
    """out[m] = P[M >= m | D = x], where M has masses in proportion to f(m) f(m + x)."""
    total = 0.0
    for m in range(out.size - 2, -1, -1):
        total += masses[m] * masses[m + x]
        out[m] = total
    out[out.size - 1] = 0.0
    scale = 1 / total
    out[0] = 1.0
    for m in range(1, out.size - 1):
        out[m] = min(out[m] * scale, 1.0)


@kernel
def quantile_couplings(
    masses: FloatArray,
    before: IntArray,
    after: IntArray,
    cut: float,
    scratch: FloatArray,
    out: FloatArray,
    missed: FloatArray,
) -> None:
    """Couple the smaller noise M for D = before[i] with that for D = after[i] by quantiles.

    out[i, j] is the probability that the first exceeds the second by j - reach, where
    2 reach + 1 = out.shape[1]; missed[i] is that of larger differences and of quantiles above
    1 - ``cut``.  ``scratch`` has two rows of size + 1, size the bound of M.
    """
    reach = (out.shape[1] - 1) // 2
    first, second = scratch[0], scratch[1]
    for i in range(before.size):
        _fill_survival(masses, before[i], first)
        _fill_survival(masses, after[i], second)
        out[i] = 0.0
        missed[i] = cut
        m = k = 0
        at = 1.0
        while at > cut:
            down = max(first[m + 1], second[k + 1], cut)
            j = m - k + reach
            if 0 <= j < out.shape[1]:
                out[i, j] += at - down
            else:
                missed[i] += at - down
            if down == first[m + 1]:
                m += 1
            if down == second[k + 1]:
                k += 1
            at = down


@kernel
def add_shifted_profiles(
    row: IntArray, cell: IntArray, weight: FloatArray, profiles: FloatArray, out: FloatArray
) -> None:
    """Add to out[i] the sum of weight[e] * profiles[row[e], i - cell[e]], cell[e] >= 0.

    Before its first entry a profile counts as 1, and after its last one it is constant.
    """
    width = profiles.shape[1]
    for e in range(row.size):
        c, w = cell[e], weight[e]
        profile = profiles[row[e]]
        for i in range(min(c, out.size)):
            out[i] += w
        for i in range(c, min(c + width, out.size)):
            out[i] += w * profile[i - c]
        for i in range(c + width, out.size):
            out[i] += w * profile[width - 1]
