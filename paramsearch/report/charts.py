"""The drawings of the report, as SVG: the privacy profile and the map of all changes of input.

Colors that differ between light and dark mode come from the style sheet, by class.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from accounting.base.arrays import FloatArray
from accounting.base.enclosure import Enclosure
from accounting.model.change import Change
from paramsearch.report.html import Html, element, join, label, power

_WIDTH, _HEIGHT = 496, 410
"""Size of a drawing, in units of its view box, as are the next two."""
_LEFT, _TOP = 64, 14
"""Position of the plot in its drawing."""
_SIDE = 340
"""Height of both plots; the map is square."""
_FLOOR = 1e-30
"""Smallest delta that the profile resolves."""
LARGEST_MAP = 64
"""Largest number of cells per side; with more inputs, blocks of changes share a cell."""
_HOVER = 32
"""Largest number of cells per side at which each has a title."""
_WRITTEN = 5
"""Largest number of cells per side at which the bound is written into each."""
_DECADES = 6
"""Largest number of decades that the colors span; much smaller bounds are loose anyway."""
_VIRIDIS = bytes.fromhex("440154472d7b3b528b2c728e21918c28ae805ec962addc30fde725")
"""Nine colors of the palette viridis, from small to large."""
_LEVELS = 32
"""Number of different colors in the map."""


def _drawing(name: str, title: str, description: str, *parts: str) -> Html:
    return element(
        "svg",
        element("title", title, id=f"{name}-title"),
        element("desc", description, id=f"{name}-desc"),
        *parts,
        viewBox=f"0 0 {_WIDTH} {_HEIGHT}",
        role="img",
        aria_labelledby=f"{name}-title {name}-desc",
    )


def _text(x: float, y: float, content: str, anchor: str = "middle", **more: object) -> Html:
    return element("text", content, x=f"{x:.1f}", y=f"{y:.1f}", text_anchor=anchor, **more)


def _upright(content: str) -> Html:
    """The label of the vertical axis."""
    middle = _TOP + _SIDE / 2
    return _text(16, middle, content, transform=f"rotate(-90 16 {middle})")


def _line(x1: float, y1: float, x2: float, y2: float, kind: str) -> Html:
    ends = {"x1": x1, "y1": y1, "x2": x2, "y2": y2}
    return element("line", class_=kind, **{key: f"{value:.1f}" for key, value in ends.items()})


def _points(points: Sequence[tuple[float, float]]) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in points)


def ticks(span: float, most: int) -> list[float]:
    """Round numbers from 0 to ``span`` in at most ``most`` equal steps."""
    rough = span / most
    size = 10.0 ** math.floor(math.log10(rough))
    step = next(size * k for k in (1, 2, 5, 10) if size * k >= rough * (1 - 1e-9))
    return [i * step for i in range(int(span / step * (1 + 1e-9)) + 1)]


def profile_chart(
    curve: Sequence[tuple[float, Enclosure]],
    *,
    eps: float,
    delta: float,
    proved: Enclosure | None,
) -> Html:
    """Bounds on delta(eps) on a logarithmic axis, the claim, and the proved bound at its eps."""
    width = _WIDTH - _LEFT - 14
    last = curve[-1][0]
    seen = [bound.upper for _, bound in curve if bound.upper > 0] + [delta]
    bottom = math.floor(math.log10(max(min(seen), min(_FLOOR, delta / 10))) - 0.05)

    def x(value: float) -> float:
        return _LEFT + width * value / last

    def y(value: float) -> float:
        down = math.log10(value) / bottom if value > 0 else 1.0
        return _TOP + _SIDE * min(max(down, 0.0), 1.0)

    upper = [(x(at), y(bound.upper)) for at, bound in curve]
    lower = [(x(at), y(bound.lower)) for at, bound in curve]
    foot = _TOP + _SIDE
    step = -math.ceil(-bottom / 7)
    grid = [
        join(
            [
                _line(_LEFT, y(10.0**e), _LEFT + width, y(10.0**e), "grid"),
                _text(_LEFT - 8, y(10.0**e) + 4.5, power(e) if e else "1", "end"),
            ]
        )
        for e in range(0, bottom - 1, step)
    ]
    for tick in ticks(last, 5):
        grid += [_line(x(tick), foot, x(tick), foot + 5, "axis")]
        grid += [_text(x(tick), foot + 22, f"{tick:.6g}")]
    dots = [
        element(
            "circle",
            element("title", _between(at, bound)),
            cx=f"{x(at):.1f}",
            cy=f"{y(bound.upper):.1f}",
            r=2.4,
            class_="dot",
        )
        for at, bound in curve
    ]
    marks = [_line(x(eps), _TOP, x(eps), foot, "guide")]
    marks += [_line(_LEFT, y(delta), _LEFT + width, y(delta), "guide")]
    if proved is not None:
        words = element("title", _between(eps, proved))
        place = {"cx": f"{x(eps):.1f}", "cy": f"{y(proved.upper):.1f}"}
        marks += [element("circle", words, class_="proved", r=5, **place)]
    words = element("title", f"the claim: ε = {eps!r}, δ = {delta!r}")
    marks += [element("path", words, class_="claim", d=_diamond(x(eps), y(delta), 7))]
    return _drawing(
        "profile",
        "Privacy profile: δ as a function of ε",
        f"Upper and lower bounds of δ for ε from 0 to {label(last)}, on a logarithmic scale; the "
        f"claim is ε = {label(eps)}, δ = {label(delta)}.",
        *grid,
        _line(_LEFT, foot, _LEFT + width, foot, "axis"),
        _text(_LEFT + width / 2, foot + 46, "ε"),
        _upright("δ(ε)"),
        element("polygon", points=_points([*upper, *lower[::-1]]), class_="band"),
        element("polyline", points=_points(upper), class_="upper"),
        element("polyline", points=_points(lower), class_="lower"),
        *dots,
        *marks,
    )


def _between(eps: float, bound: Enclosure) -> str:
    low, high = label(bound.lower, 4, "lower"), label(bound.upper, 4, "upper")
    return f"ε = {label(eps)}: δ between {low} and {high}"


def _diamond(x: float, y: float, size: float) -> str:
    return f"M{x:.1f} {y - size:.1f}l{size} {size}l{-size} {size}l{-size} {-size}z"


def swatch(kind: str) -> Html:
    """The mark of one kind, for the legend of the profile."""
    drawn = {
        "upper": _line(0, 8, 28, 8, "upper"),
        "lower": _line(0, 8, 28, 8, "lower"),
        "proved": element("circle", cx=14, cy=8, r=5, class_="proved"),
        "claim": element("path", d=_diamond(14, 8, 6.5), class_="claim"),
    }[kind]
    return element(
        "svg", drawn, viewBox="0 0 28 16", width=28, height=16, class_="swatch", aria_hidden="true"
    )


def block_size(inputs: int) -> int:
    """Number of neighboring inputs that share a row of the map."""
    return -(-inputs // LARGEST_MAP)


def block_maximum(bounds: FloatArray, size: int) -> FloatArray:
    """The largest bound in every block of size x size changes; NaN where there is none."""
    starts = np.arange(0, len(bounds), size)
    rows = np.fmax.reduceat(bounds, starts, axis=0)  # fmax ignores NaN, the diagonal
    found: FloatArray = np.fmax.reduceat(rows, starts, axis=1)
    return found


def pair_map(bounds: FloatArray, *, worst: Change | None) -> Html:
    """Upper bounds on delta for input j (rows) becoming k (columns), by color."""
    inputs = len(bounds)
    size = block_size(inputs)
    cells = block_maximum(bounds, size)
    n = len(cells)
    width = _SIDE / n
    scale = ColorScale.of(cells)
    if n > _HOVER:
        parts = _merged(cells, width, scale)
    else:
        parts = [_cell(cells, j, k, width, scale) for j, k in np.argwhere(~np.isnan(cells))]
    for tick in ticks(inputs - 1, min(inputs - 1, 10)):
        at = (tick / size + 0.5) * width if size == 1 else tick / size * width
        parts += [_text(_LEFT + at, _TOP + _SIDE + 20, f"{tick:.0f}")]
        parts += [_text(_LEFT - 8, _TOP + at + 4.5, f"{tick:.0f}", "end")]
    parts += [
        element("rect", x=_LEFT, y=_TOP, width=_SIDE, height=_SIDE, class_="frame"),
        _text(_LEFT + _SIDE / 2, _TOP + _SIDE + 44, "input after"),
        _upright("input before"),
    ]
    if worst is not None:
        parts += _outline(worst.before // size, worst.after // size, width)
    shared = (
        f" in blocks of {size} by {size} inputs, each with its largest bound" if size > 1 else ""
    )
    return _drawing(
        "pairs",
        "Upper bounds of δ for every change of one input",
        f"A map of {n} by {n} cells{shared}; its largest bounds are in the table that follows.",
        *parts,
        _legend(scale, zero=bool((cells == 0).any())),
    )


@dataclass(frozen=True)
class ColorScale:
    """The decimal logarithms of the bounds that have the darkest and the brightest color."""

    low: float
    high: float

    @staticmethod
    def of(cells: FloatArray) -> ColorScale:
        """The scale of a map; a few bounds may lie below it."""
        visible = np.log10(cells[cells > 0])
        if not len(visible):
            return ColorScale(-1.0, 0.0)
        high = float(visible.max())
        low = max(float(np.quantile(visible, 0.05, method="higher")), high - _DECADES)
        return ColorScale(min(low, math.floor(high) - 1.0), high)  # at least two decades to label

    def level(self, bound: float) -> int:
        """The color of a bound, one of 0.._LEVELS - 1; -1 for a bound of 0."""
        if bound <= 0:
            return -1
        share = (math.log10(bound) - self.low) / (self.high - self.low)
        return min(max(int(share * _LEVELS), 0), _LEVELS - 1)


def _rgb(level: int) -> tuple[int, ...]:
    steps = len(_VIRIDIS) // 3 - 1
    at = level * steps / (_LEVELS - 1)
    i = 3 * min(int(at), steps - 1)
    pairs = zip(_VIRIDIS[i : i + 3], _VIRIDIS[i + 3 : i + 6], strict=True)
    return tuple(round(a + (b - a) * (at - i / 3)) for a, b in pairs)


def _paint(level: int) -> dict[str, str]:
    if level < 0:
        return {"class_": "zero"}
    return {"fill": "#" + bytes(_rgb(level)).hex()}


def _edge(index: int, width: float) -> float:
    """Return where a cell begins and its neighbor ends, from the corner of the map.

    A multiple of 1/8 is exact in the arithmetic of a browser, so that neighbors share their edge
    however the page is scaled, and no line of the page's color shows between them.
    """
    return round(8 * index * width) / 8


def _cell(cells: FloatArray, j: int, k: int, width: float, scale: ColorScale) -> Html:
    left, top = _edge(k, width), _edge(j, width)
    x, y = _LEFT + left, _TOP + top
    bound = float(cells[j, k])
    level = scale.level(bound)
    place = {
        "x": f"{x:g}",
        "y": f"{y:g}",
        "width": f"{_edge(k + 1, width) - left:g}",
        "height": f"{_edge(j + 1, width) - top:g}",
        "shape_rendering": "crispEdges",
    }
    words = f"input {j} becomes {k}: δ ≤ {label(bound, 3, 'upper')}"
    drawn = element("rect", element("title", words), **place, **_paint(level))
    if len(cells) > _WRITTEN:
        return drawn
    red, green, blue = _rgb(max(level, 0))
    bright = 0.3 * red + 0.59 * green + 0.11 * blue > 120
    ink = "" if level < 0 else "on-bright" if bright else "on-dark"
    value = _text(x + width / 2, y + width / 2 + 4.5, label(bound, 2, "upper"), class_=ink)
    return join([drawn, value])


def _merged(cells: FloatArray, width: float, scale: ColorScale) -> list[Html]:
    """All cells as one path per color, which keeps a page with thousands of cells small."""
    paths: dict[int, list[str]] = {}
    for j, row in enumerate(cells.tolist()):
        levels = [None if math.isnan(bound) else scale.level(bound) for bound in row]
        edges = [0, *(k for k in range(1, len(row)) if levels[k] != levels[k - 1]), len(row)]
        for begin, end in pairwise(edges):
            level = levels[begin]
            if level is not None:
                left, right = (_LEFT + _edge(k, width) for k in (begin, end))
                top, bottom = (_TOP + _edge(row_index, width) for row_index in (j, j + 1))
                paths.setdefault(level, []).append(
                    f"M{left:g} {top:g}H{right:g}V{bottom:g}H{left:g}"
                )
    return [
        element("path", d="".join(d), shape_rendering="crispEdges", **_paint(level))
        for level, d in sorted(paths.items())
    ]


def _outline(j: int, k: int, width: float) -> list[Html]:
    """A dark frame around a light one, visible on every color."""
    side = max(width, 10.0)
    x, y = _LEFT + (k + 0.5) * width - side / 2, _TOP + (j + 0.5) * width - side / 2
    place = {"width": f"{side:.1f}", "height": f"{side:.1f}", "x": f"{x:.1f}", "y": f"{y:.1f}"}
    return [element("rect", class_=kind, **place) for kind in ("outer", "inner")]


def _legend(scale: ColorScale, *, zero: bool) -> Html:
    """The colors with the decades they stand for."""
    x, height = _LEFT + _SIDE + 13, _SIDE - 40
    part = height / _LEVELS
    bar = [
        element(
            "rect",
            x=x,
            y=f"{_TOP + (_LEVELS - 1 - level) * part:.2f}",
            width=14,
            height=f"{part + 0.5:.2f}",
            **_paint(level),
        )
        for level in range(_LEVELS)
    ]
    for exponent in range(math.ceil(scale.low), math.floor(scale.high) + 1):
        y = _TOP + height * (scale.high - exponent) / (scale.high - scale.low)
        bar += [
            _line(x + 14, y, x + 18, y, "axis"),
            _text(x + 21, y + 4.5, power(exponent), "start"),
        ]
    if zero:
        y = _TOP + _SIDE - 16
        bar += [element("rect", x=x, y=y, width=14, height=14, class_="zero")]
        bar += [_text(x + 21, y + 12, "0", "start")]
    return element("g", *bar)
