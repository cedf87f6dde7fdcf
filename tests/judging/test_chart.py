"""Charts: every value at its place, round numbers at the axes, long lines thinned without losing a peak."""

from __future__ import annotations

import math
import re
from xml.etree import ElementTree

from hypothesis import given
from hypothesis import strategies as st

from judging.reports import chart
from judging.reports.chart import Area, Axis, Chart

ENDS = st.floats(-1e9, 1e9, allow_nan=False)


@given(ENDS, st.floats(1e-6, 1e9), st.integers(2, 12))
def test_round_numbers_are_few_and_lie_within(low: float, length: float, most: int) -> None:
    high = low + length
    if length < abs(low) * 1e-6:  # floating point cannot tell such numbers apart
        return
    found = chart.rounds(low, high, most)
    assert len(found) <= most + 1
    assert all(low - length * 1e-6 <= value <= high + length * 1e-6 for value in found)


def test_round_numbers_are_those_that_a_person_would_choose() -> None:
    assert chart.rounds(0, 22, 8) == [0, 5, 10, 15, 20]
    assert chart.rounds(0, 1, 5) == [0, 0.2, 0.4, 0.6, 0.8, 1]
    assert chart.rounds(0, 230, 5) == [0, 50, 100, 150, 200]
    assert chart.rounds(0.003, 0.0041, 3) == [0.003, 0.0035, 0.004]


def test_powers_have_their_multiples_where_they_are_few() -> None:
    assert chart.powers(1, 1000) == [1, 10, 100, 1000]
    assert chart.powers(3, 60) == [5, 10, 20, 50]


def area(across: Axis, up: Axis) -> Area:
    return Area(100, 0, 300, 50, across, up)


def test_values_lie_where_the_axes_say() -> None:
    here = area(Axis(low=0, high=10), Axis(low=1, high=100, logarithmic=True))
    assert (here.x(0), here.x(5), here.x(10), here.x(11)) == (100, 200, 300, 300)
    assert (here.y(1), here.y(10), here.y(100), here.y(0)) == (50, 25, 0, 50)
    assert area(Axis(), Axis(low=0, high=4, downwards=True)).y(1) == 12.5


def test_limits_follow_from_what_is_drawn() -> None:
    axis = Axis(low=0.0, margin=0.1)
    axis.see([3.0, math.nan, 20.0, math.inf])
    assert axis.limits() == (0.0, 22.0)
    assert Axis().limits() == (0.0, 1.0)
    assert Axis(low=5, high=5).limits() == (5, 6)


def test_a_line_has_a_hole_where_there_is_no_number() -> None:
    here = area(Axis(low=0, high=4), Axis(low=0, high=10))
    path = chart.route(here, [0, 1, 2, 3, 4], [0, 10, math.nan, 10, 0])
    assert path == "M100.0,50.0L150.0,0.0M250.0,0.0L300.0,50.0"


def test_a_long_line_is_thinned_and_keeps_its_peaks() -> None:
    count, here = 20_000, area(Axis(low=0, high=20_000), Axis(low=0, high=10))
    values = [5.0] * count
    values[7_001], values[7_002], values[12_345] = 10.0, 0.0, math.nan
    path = chart.route(here, list(range(count)), values)
    assert path.count("L") < 1000
    assert path.count("M") == 2
    ys = [float(y) for y in re.findall(r",([\d.]+)", path)]
    assert (min(ys), max(ys)) == (0.0, 50.0)


def test_a_chart_is_sound_xml_with_every_name() -> None:
    one = Chart(200, Axis("seconds <s>", 0, 10), Axis("rate"))
    one.band(2, 3, "#aaaaaa", 0.5, hair=1, edge="#bbbbbb")
    one.line([0, 10], [1, 2], "#123456", name="a & b")
    one.steps([0, 10], [1, 2], "#654321", name="c")
    one.dots([5], [1.5], "#abcdef")
    one.boxes([(1, 2, 0, 1)], "#fedcba")
    one.name_above(2, "fault", 0, "#000000")
    drawn = ElementTree.fromstring(chart.svg('Two "charts"', one, Chart(100)))
    said = [element.text for element in drawn.iter() if element.text]
    assert {"seconds <s>", "rate", "a & b", "c", "fault"} <= set(said)
    assert drawn.get("aria-label") == 'Two "charts"'
    colours = {element.get("stroke") for element in drawn.iter()} | {element.get("fill") for element in drawn.iter()}
    assert {"#aaaaaa", "#bbbbbb", "#123456", "#654321", "#abcdef", "#fedcba"} <= colours
