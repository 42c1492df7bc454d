"""Labels of plots can be read."""

from __future__ import annotations

from itertools import pairwise

import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from paramsearch.cli.plots import label_log_axes, log_ticks

LOWEST, SPANS = (2e-7, 0.03, 2.7, 34.0, 7e5), (1.05, 2, 21, 900, 1e9)
RANGES = [(low, low * span) for low in LOWEST for span in SPANS]


@pytest.mark.parametrize(("low", "high"), RANGES)
def test_labels_of_logarithmic_axes_do_not_touch(low: float, high: float) -> None:
    """Was: 3 x 10^0 next to 4 x 10^0, as one word."""
    figure = Figure(figsize=(6.4, 4.4), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    axes.loglog([low, high], [low, high], marker="o")
    label_log_axes(axes)
    figure.canvas.draw()
    for axis, side in ((axes.xaxis, "x"), (axes.yaxis, "y")):
        shown = [label for label in axis.get_ticklabels(which="both") if label.get_text()]
        assert 2 <= len(shown) <= 7
        boxes = [label.get_window_extent() for label in shown]
        ends = sorted((getattr(box, f"{side}0"), getattr(box, f"{side}1")) for box in boxes)
        assert all(before[1] + 3 < after[0] for before, after in pairwise(ends))


@pytest.mark.parametrize(("low", "high"), RANGES)
def test_ticks_lie_inside_and_are_round(low: float, high: float) -> None:
    ticks = log_ticks(low, high)
    assert ticks == sorted(set(ticks))
    assert all(low <= tick <= high and float(f"{tick:.2g}") == tick for tick in ticks)
