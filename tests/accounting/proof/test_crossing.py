"""The crossing of a function known by bounds: ends that are proved, width, number of calls."""

import math

from hypothesis import given
from hypothesis import strategies as st

from accounting.base.deadline import OutOfTime
from accounting.base.enclosure import Enclosure
from accounting.proof.crossing import crossing

LEVEL, GAP = 1e-6, 1e-3


class Bounds:
    """exp(-slope (x - root) - bend (x^2 - root^2)) times the level, at most 1, known up to a factor
    of 1 +- width."""

    def __init__(self, root: float, slope: float, bend: float, width: float) -> None:
        self.root, self.slope, self.bend, self.width = root, slope, bend, width
        self.calls = 0

    def __call__(self, x: float) -> Enclosure:
        self.calls += 1
        exponent = self.slope * (x - self.root) + self.bend * (x * x - self.root * self.root)
        value = min(1.0, LEVEL * math.exp(min(-exponent, -math.log(LEVEL))))
        return Enclosure(value * (1 - self.width), min(1.0, value * (1 + self.width)))


@given(
    root=st.floats(0.0, 3.0) | st.floats(0.0, 100.0),
    slope=st.floats(0.1, 100.0),
    bend=st.sampled_from((0.0, 1.0, 5.0)),
    width=st.sampled_from((0.0, 0.01, 0.3)),
    near=st.floats(0.1, 10.0),
)
def test_ends_are_proved_and_close(
    root: float, slope: float, bend: float, width: float, near: float
) -> None:
    bounds = Bounds(root, slope, bend, width)
    found = crossing(bounds, LEVEL, near=near, largest=500.0, gap=GAP)
    assert found is not None
    assert bounds(found.upper).upper <= LEVEL
    assert found.lower == 0.0 or bounds(found.lower).lower > LEVEL
    assert found.lower <= root + 1e-9
    # either end is within the gap of where its bound crosses, which the width moves
    moved = -math.log1p(-width) / (slope + bend * root)
    allowed = GAP * max(1.0, found.upper)
    assert found.upper <= root + moved + allowed + 1e-9
    assert found.lower >= root - moved - allowed - 1e-9


@given(root=st.floats(1.0, 2.0), slope=st.floats(5.0, 14.0), bend=st.floats(0.0, 3.0))
def test_few_calls_where_the_logarithm_is_nearly_straight(
    root: float, slope: float, bend: float
) -> None:
    bounds = Bounds(root, slope, bend, 0.0)
    crossing(bounds, LEVEL, near=1.0, largest=500.0, gap=GAP)
    assert bounds.calls <= 10  # halving from a bracket of width 1 takes that many alone


@given(calls=st.integers(0, 12), root=st.floats(1.0, 3.0), width=st.sampled_from((0.0, 0.3)))
def test_where_time_runs_out_what_is_known_stands(calls: int, root: float, width: float) -> None:
    bounds = Bounds(root, 5.0, 1.0, width)

    def timed(x: float) -> Enclosure:
        if bounds.calls == calls:
            raise OutOfTime
        return bounds(x)

    try:
        found = crossing(timed, LEVEL, near=1.0, largest=500.0, gap=GAP)
    except OutOfTime:
        assert calls < 8  # the first steps outwards
        return
    assert found is not None
    assert bounds(found.upper).upper <= LEVEL
    assert found.lower == 0.0 or bounds(found.lower).lower > LEVEL


def test_no_crossing_within_the_range() -> None:
    assert crossing(lambda x: Enclosure(0.1, 0.2), LEVEL, near=1.0, largest=500.0, gap=GAP) is None
    bounds = Bounds(600.0, 1.0, 0.0, 0.0)
    assert crossing(bounds, LEVEL, near=1.0, largest=500.0, gap=GAP) is None


def test_below_the_level_everywhere() -> None:
    found = crossing(lambda x: Enclosure(1e-9, 1e-8), LEVEL, near=1.0, largest=500.0, gap=GAP)
    assert found == Enclosure(0.0, 0.0)
