"""The assumptions and lemmas of floating_point.md, measured; kernels against obvious twins."""

from __future__ import annotations

import math
import random

import mpmath as mp
import numpy as np
import pytest

from accounting import NegativeBinomial, NoiseSum
from accounting.base.arrays import UNIT_ROUNDOFF
from accounting.evaluator import bounding_functions, kernels
from accounting.evaluator.noise_tables import noise_table
from accounting.evaluator.spectra import twiddles


@pytest.mark.parametrize("name", ["exp", "log", "log1p", "expm1", "sin", "cos"])
def test_elementary_functions_are_within_4_ulp(name: str) -> None:
    rng = random.Random(3)
    low, high = {"log": (1e-300, 1e300), "log1p": (-0.999, 50.0)}.get(name, (-700.0, 700.0))
    if name in ("sin", "cos"):
        low, high = 0.0, math.pi
    x = np.array([rng.uniform(low, high) for _ in range(2000)])
    if name == "log":
        x = np.exp(np.array([rng.uniform(-690, 690) for _ in range(2000)]))
    vector = getattr(np, name)(x)
    with mp.workdps(50):
        for value, fast in zip(x, vector, strict=True):
            truth = getattr(mp, name)(mp.mpf(value))
            for found in (fast, getattr(math, name)(value)):
                assert abs(mp.mpf(float(found)) - truth) <= 8 * UNIT_ROUNDOFF * abs(truth)


@pytest.mark.parametrize("n", [256, 1024, 8192])
def test_transform_is_within_its_bound(n: int) -> None:
    rng = np.random.default_rng(n)
    rows = rng.random((3, n)) ** 8
    re, im = np.empty((3, n // 2 + 1)), np.empty((3, n // 2 + 1))
    kernels.rfft_rows(rows, np.ones(3), *twiddles(n), re, im)
    exact = np.fft.rfft(rows.astype(np.longdouble), axis=1)
    error = np.abs((re + 1j * im) - exact)
    bound = 28 * math.log2(n) * UNIT_ROUNDOFF * np.linalg.norm(rows, axis=1) * math.sqrt(n)
    assert np.all(np.sqrt(2 * (error.astype(float) ** 2).sum(axis=1)) <= bound)


def dots(mass: list[float], loss: list[float], step: float, first: int, last: int) -> np.ndarray:
    """The obvious twin of connect_the_dots, in mpmath."""
    cells = [mp.mpf(0)] * (last - first + 1)
    for m, value in zip(mass, loss, strict=True):
        i = math.floor(value / step)
        if first <= i and value / step < last:
            theta = mp.expm1(i * mp.mpf(step) - mp.mpf(value)) / mp.expm1(-mp.mpf(step))
            cells[i - first] += mp.mpf(m) * (1 - theta)
            cells[i - first + 1] += mp.mpf(m) * theta
    return np.array([float(c) for c in cells])


@pytest.mark.parametrize("shift", [-3, -1, 1, 2])
def test_connect_the_dots_keeps_both_masses(shift: int) -> None:
    table = noise_table(NoiseSum.of(NegativeBinomial(4.0, 0.8)), 300)
    step, first, last = 0.01, -200, 400
    cells, out = np.empty(last - first + 1), np.empty(5)
    kernels.connect_the_dots(table.mass, table.log_mass, shift, step, first, last, cells, out)
    z = np.arange(max(0, -shift), min(300, 300 - shift))
    loss = table.log_mass[z] - table.log_mass[z + shift]
    twin = dots(list(table.mass[z]), list(loss), step, first, last)
    assert np.all(np.abs(cells - twin) <= 1e-9 * step + 1e-9 * twin)
    inside = (loss >= first * step) & (loss < last * step)
    grid = np.arange(first, last + 1) * step
    p_mass, q_mass = table.mass[z][inside].sum(), table.mass[z + shift][inside].sum()
    assert abs(cells.sum() - p_mass) <= 1e-13
    assert abs((cells * np.exp(-grid)).sum() - q_mass) <= 1e-11 * q_mass
    assert abs(cells.sum() + out[0] + out[1] + out[3] + out[4] - table.mass.sum()) <= 1e-13


@pytest.mark.parametrize(("splits", "step"), [(1, 0.05), (4, 0.01), (7, 1e-3), (10, 1 / 16)])
def test_the_lower_bounding_function_is_below_on_average(splits: int, step: float) -> None:
    """discretisation.md, Theorem 2: E psi(y) <= (1 - x)_+ for random positions inside the cells, by
    enumeration."""
    rng = random.Random(splits)
    eps = 0.7
    # at the kink and with the largest variance both sides are nearly equal
    check_lower(eps, eps, [math.log((math.exp(step) + 1) / 2)] * splits, step, rounding=1e-13)
    for _ in range(300 if splits < 10 else 10):
        loss = eps + rng.uniform(-2.5, 2.5) * splits * step
        check_lower(eps, loss, [rng.uniform(0, step) for _ in range(splits)], step)


def check_lower(
    eps: float, loss: float, offsets: list[float], step: float, rounding: float = 1e-14
) -> None:
    splits = len(offsets)
    weights, gridded = np.ones(1), np.full(1, loss)
    for d in offsets:
        theta = math.expm1(-d) / math.expm1(-step)
        weights = np.concatenate([weights * (1 - theta), weights * theta])
        gridded = np.concatenate([gridded - d, gridded + step - d])
    total = weights @ bounding_functions.lower(gridded, eps, 0.0, splits, step)
    assert total <= max(-math.expm1(eps - loss), 0.0) + rounding


@pytest.mark.parametrize(
    ("eps", "step", "tilt", "splits"),
    [
        (0.7, 0.01, 12.0, 3),
        (20.0, 1 / 16, 0.05, 3),
        (200.0, 1 / 16, 0.01, 1),
        (5161.173868318323, 0.0014553729199276275, 0.0113, 3),
        (8458.453511785372, 1e-4, 210.0, 1),
        (3000.0, 0.03, 0.2, 40),
        (0.003, 1e-5, 3e4, 7),
    ],
)
def test_rounding_errors_of_both_bounding_functions(
    eps: float, step: float, tilt: float, splits: int
) -> None:
    """Lemma F6, at grid points around eps, where a rounding of the loss is felt most."""
    first = math.floor(eps / step)
    index = first + np.unique(np.linspace(-3 * splits - 2, 3 * splits + 3, 60).astype(int))
    loss = index * step
    found = (
        bounding_functions.upper(loss, eps, tilt),
        bounding_functions.lower(loss, eps, tilt, splits, step),
    )
    v = mp.mpf(bounding_functions.split_variance(splits, step))
    c = mp.mpf(bounding_functions._CURVATURE / math.sqrt(float(v)))
    peaks = [max(math.exp(bounding_functions.log_peak(tilt)), float(abs(f).max())) for f in found]
    bound = bounding_functions.rounding(tilt, float(abs(loss).max()) + eps)
    with mp.workdps(50):
        for i, upper, lower in zip(index.tolist(), *(f.tolist() for f in found), strict=True):
            d, edge = i * mp.mpf(step) - mp.mpf(eps), 2 * splits * mp.mpf(step)
            if abs(abs(d) - edge) < step / 1000:
                continue  # rounding decides whether such a point is near eps
            w = -mp.expm1(-d)
            psi = max(w, mp.mpf(0))
            assert abs(upper - mp.exp(-tilt * d) * psi) <= bound * peaks[0]
            if abs(d) < edge:
                inner = abs(w) <= mp.sqrt(v + 1 / c**2)
                psi = (w + (c * (w**2 - v) if inner else mp.sqrt(w**2 - v))) / 2
            assert abs(lower - mp.exp(-tilt * d) * psi) <= bound * peaks[1]
    assert bound < 1e-6


def test_the_upper_bounding_function_and_its_peak() -> None:
    loss = np.linspace(-1, 8, 200_001)
    for tilt in (0.05, 1.0, 30.0):
        values = bounding_functions.upper(loss, 0.5, tilt)
        peak = math.exp(bounding_functions.log_peak(tilt))
        assert values.min() >= 0
        assert values.max() <= peak * (1 + 1e-12)
        assert values.max() >= peak * (1 - 1e-6)
