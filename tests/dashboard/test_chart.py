"""The chart of characters, cell by cell."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoscaler.dashboard.chart import Chart, Line, nice_top, sampled

NAN = math.nan


def drawn(height, **parts):
    chart = Chart(**{"area": [NAN], "area_style": "blue", "lines": [], "top": 1.0} | parts)
    return [row.plain for row in chart.rows(height)]


def test_an_area_is_filled_in_eighths():
    assert drawn(2, area=[0.0, 0.25, 0.5, 0.75, 1.0]) == ["   ▄█", " ▄███"]


def test_what_is_not_known_is_left_out():
    assert drawn(1, area=[NAN, 1.0, NAN]) == [" █ "]


def test_a_line_stands_on_one_of_four_heights_of_a_cell():
    heights = [(quarter + 0.5) / 4 for quarter in range(4) for _ in range(2)]
    assert drawn(1, area=[NAN] * 4, lines=[Line(heights, "red")]) == ["⣀⠤⠒⠉"]


def test_the_top_value_of_a_line_is_inside():
    assert drawn(2, lines=[Line([1.0, 1.0], "red")]) == ["⠉", " "]


def test_of_two_lines_in_a_cell_the_first_is_seen():
    lines = [Line([0.9, 0.9], "red"), Line([0.1, 0.1], "blue")]
    assert drawn(1, lines=lines) == ["⠉"]


def test_a_line_is_seen_through_the_area():
    chart = Chart(area=[1.0], area_style="blue", lines=[Line([0.1, 0.1], "red")], top=1.0)
    (row,) = chart.rows(1)
    assert row.plain == "⣀"
    assert str(row.spans[0].style) == "red on blue"


def test_a_fan_is_shaded_where_nothing_else_is():
    assert drawn(4, area=[NAN, 1.0], fan_low=[0.25] * 2, fan_high=[0.5] * 2) == [" █", " █", "░█", " █"]


@pytest.mark.parametrize(
    ("highest", "top"),
    [(0.0, 1.0), (1.0, 1.0), (1.01, 1.5), (7.2, 8.0), (24.0, 25.0), (81.0, 100.0), (1000.0, 1000.0)],
)
def test_the_upper_edge_is_a_round_number(highest, top):
    assert nice_top([0.0, highest, NAN]) == pytest.approx(top)


@given(st.lists(st.floats(0, 1e9), min_size=1))
def test_the_upper_edge_is_above_everything_and_not_far(values):
    top = nice_top(values)
    assert top >= max(values) * (1 - 1e-9)
    assert top <= max(1.0, *values) * 2


def test_points_are_averaged_by_column_and_held_until_the_next():
    points = [(0.5, 1.0), (0.6, 3.0), (3.5, 8.0)]
    assert sampled(points, [0, 1, 2, 3, 4, 5]) == pytest.approx([2.0, 3.0, 3.0, 8.0, NAN], nan_ok=True)


def test_a_point_before_the_first_column_is_held_into_it():
    assert sampled([(-9.0, 4.0), (1.5, 6.0)], [0, 1, 2]) == [4.0, 6.0]


def test_a_column_of_unknowns_is_unknown():
    assert sampled([(0.5, NAN), (1.5, 2.0)], [0, 1, 2]) == pytest.approx([NAN, 2.0], nan_ok=True)
