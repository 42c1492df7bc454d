"""Plots as files."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from accounting.base.enclosure import Enclosure
from paramsearch.files import write_atomically

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

PLOT_SUFFIXES = (".png", ".svg", ".pdf")
PROFILE_SUFFIXES = (".png", ".svg")
PROFILE_FLOOR = 1e-30
"""The plot of a profile does not resolve delta below this."""
_MOST_TICKS = 6
"""Largest number of labels on an axis, so that they do not touch."""
_PLAIN = (1e-3, 1e6)
"""Numbers that are written without an exponent."""


def label_log_axes(axes: Axes) -> None:
    """Label both logarithmic axes with a few plain numbers, which do not touch as the usual ones
    may where an axis spans about one power of ten."""
    _label(axes.xaxis, *axes.get_xlim())
    _label(axes.yaxis, *axes.get_ylim())


def _label(axis: Axis, low: float, high: float) -> None:
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullFormatter

    axis.set_major_locator(FixedLocator(log_ticks(low, high)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: _in_words(value)))
    axis.set_minor_formatter(NullFormatter())


def log_ticks(low: float, high: float) -> list[float]:
    """A few round numbers between two positive ones: powers of ten, with 2 and 5 times these, or
    all multiples, as many as there is room for.

    >>> log_ticks(2.8, 65)
    [5.0, 10.0, 20.0, 50.0]
    >>> log_ticks(3.1, 5.9)
    [4.0, 5.0]
    """
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    steps = [(1.0,), (1.0, 3.0), (1.0, 2.0, 5.0), tuple(map(float, range(1, 10)))]
    steps.append(tuple(k / 10 for k in range(10, 100)))
    found: list[float] = []
    for factors in steps:
        every = (
            float(f"{factor}e{power}") for power in range(first, last + 1) for factor in factors
        )
        inside = [value for value in every if low <= value <= high]
        if len(inside) > _MOST_TICKS:
            break
        found = inside
    if len(found) > 1:
        return found
    return inside[:: math.ceil(len(inside) / _MOST_TICKS)]


def _in_words(value: float) -> str:
    if _PLAIN[0] <= value < _PLAIN[1]:
        return f"{value:,.10g}"
    power = math.floor(math.log10(value) + 1e-9)
    factor = f"{value / 10.0**power:.3g}"
    return rf"$10^{{{power}}}$" if factor == "1" else rf"${factor}\times10^{{{power}}}$"


def save_figure(figure: Figure, path: Path) -> None:
    """Write the figure in the format that the file's name ends in."""
    from io import BytesIO

    out = BytesIO()
    figure.savefig(out, format=path.suffix.lower().removeprefix("."), dpi=150)
    write_atomically(path, out.getvalue())


def draw_profile(
    path: Path,
    curve: Sequence[tuple[float, Enclosure]],
    *,
    evaluated: tuple[float, float],
    claim: tuple[float, float] | None = None,
) -> None:
    """Both bounds of delta(eps), the point that was asked about, and the claim if there is one."""
    import numpy as np
    from matplotlib.figure import Figure

    x = [point for point, _ in curve]
    lower = np.array([e.lower for _, e in curve])
    upper = np.array([e.upper for _, e in curve])
    visible = upper > PROFILE_FLOOR
    figure = Figure(figsize=(6.4, 4.0), layout="constrained")
    axes = figure.add_subplot()
    floor = max(float(upper[visible].min(initial=1.0)) / 3, PROFILE_FLOOR)
    axes.fill_between(
        x,
        np.maximum(lower, floor),
        np.maximum(upper, floor),
        color="#0072b2",
        alpha=0.35,
        label="between both bounds",
    )
    axes.plot(x, np.where(visible, upper, np.nan), color="#0072b2", label="upper bound")
    eps, delta = evaluated
    axes.plot([eps], [max(delta, floor)], "o", color="#d55e00", label="evaluated")
    if claim is not None:
        axes.plot(*([value] for value in claim), "x", color="black", ms=8, mew=2, label="claim")
    axes.set_yscale("log")
    axes.set_ylim(bottom=floor)
    axes.set_xlabel("ε")
    axes.set_ylabel("δ(ε)")
    axes.grid(alpha=0.3)
    axes.legend()
    save_figure(figure, path)
