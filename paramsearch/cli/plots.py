"""Plots as files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from accounting.base.enclosure import Enclosure
from paramsearch.files import write_atomically

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PLOT_SUFFIXES = (".png", ".svg", ".pdf")
PROFILE_SUFFIXES = (".png", ".svg")
PROFILE_FLOOR = 1e-30
"""The plot of a profile does not resolve delta below this."""


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
