"""Figures as people read them."""

from math import inf, nan

import pytest

from autoscaler.replay.output.words import Price, count, hours, multiple, share, span, wait


@pytest.mark.parametrize(
    "seconds, said",
    [
        (0.0, "0"),
        (0.2284, "228 ms"),
        (0.9999, "1 s"),
        (4.56, "4.6 s"),
        (12.4, "12 s"),
        (99.6, "1.7 min"),
        (7200.0, "2 h"),
        (inf, "no end"),
    ],
)
def test_a_wait_is_said_in_the_unit_that_fits(seconds, said):
    assert wait(seconds) == said


@pytest.mark.parametrize(
    "fraction, said",
    [
        (0.0, "0 %"),
        (1.0, "100 %"),
        (0.67, "67 %"),
        (0.031, "3.1 %"),
        (0.02, "2 %"),
        (0.99, "99 %"),
        (0.9897, "98.97 %"),
        (0.9993, "99.93 %"),
        (0.999999, ">99.99 %"),
        (0.000001, "<0.01 %"),
        (nan, "–"),
    ],
)
def test_a_share_is_told_finely_where_it_decides(fraction, said):
    """Almost all is not all: 98.97 % of a wanted 99 % must not read as 99 %."""
    assert share(fraction) == said


def test_lengths_hours_and_multiples():
    assert [span(seconds) for seconds in (40.0, 1500.0, 129_600.0, 604_800.0)] == [
        "40 s",
        "25 min",
        "36 h",
        "7 days",
    ]
    assert [hours(number) for number in (0.423, 8.71, 1052.4)] == ["0.42", "8.7", "1,052"]
    assert (multiple(1.388), multiple(nan)) == ("1.39", "–")
    assert (count(1, "replica"), count(1200, "request")) == ("1 replica", "1,200 requests")


def test_money_is_said_with_its_currency_where_people_put_it():
    assert Price(2.5, "$").of(15.0) == "$37.50"
    assert Price(2.5, "EUR").of(420.8) == "1,052 EUR"
    assert Price(2.5, "").of(2.0).strip() == "5.00"
