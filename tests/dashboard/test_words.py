"""Numbers as people say them."""

import pytest

from autoscaler.dashboard.words import count, duration, percent, rate

NAN = float("nan")


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.0, "0 ms"),
        (0.0204, "20 ms"),
        (0.9996, "1 s"),
        (2.41, "2.4 s"),
        (5.0, "5 s"),
        (34.4, "34 s"),
        (754.0, "13 min"),
        (3 * 3600.0, "3 h"),
        (9000.0, "2.5 h"),
        (NAN, "–"),
    ],
)
def test_a_length_of_time(seconds, words):
    assert duration(seconds) == words


@pytest.mark.parametrize(
    ("per_second", "words"),
    [
        (0.0, "0/s"),
        (4.86e-06, "<0.01/s"),
        (0.0123, "0.0123/s"),
        (8.254, "8.25/s"),
        (1234.5, "1234/s"),
        (NAN, "–"),
    ],
)
def test_a_rate(per_second, words):
    assert rate(per_second) == words


@pytest.mark.parametrize(
    ("fraction", "digits", "words"),
    [
        (0.6875, 0, "69 %"),
        (0.99, 1, "99 %"),
        (0.999, 1, "99.9 %"),
        (0.9975, 2, "99.75 %"),
        (0.0, 2, "0 %"),
        (1.0, 2, "100 %"),
        (NAN, 2, "–"),
    ],
)
def test_a_fraction(fraction, digits, words):
    assert percent(fraction, digits) == words


def test_less_than_all_is_never_said_to_be_all():
    assert percent(0.999999, 2) == "99.99 %"
    assert percent(0.999) == "99 %"


def test_things_are_counted_in_the_right_number():
    assert [count(n, "replica") for n in (0, 1, 2)] == ["0 replicas", "1 replica", "2 replicas"]
