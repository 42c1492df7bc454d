"""Plots as files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from paramsearch.files import write_atomically

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PLOT_SUFFIXES = (".png", ".svg", ".pdf")


def save_figure(figure: Figure, path: Path) -> None:
    """Write the figure in the format that the file's name ends in."""
    from io import BytesIO

    out = BytesIO()
    figure.savefig(out, format=path.suffix.lower().removeprefix("."), dpi=150)
    write_atomically(path, out.getvalue())
