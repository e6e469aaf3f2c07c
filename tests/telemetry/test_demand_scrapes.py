"""For how long Prometheus has scraped, by the times of its samples; the window is the last minute."""

import pytest

from autoscaler.telemetry.demand.scrapes import scraped_for

REGULAR = list(range(2, 60, 5))


@pytest.mark.parametrize(
    "series, seen",
    [
        ([], None),
        ([[50.0]], None),
        ([[50.0], [51.0]], None),  # no series has two
        ([REGULAR], 60.0),
        ([REGULAR, [57.0]], 60.0),  # a door that has just come
        ([REGULAR, [2.0, 7.0]], 60.0),  # and one that has gone
        ([[2.0, 7.0, 12.0, 22.0, 27.0, 32.0, 37.0, 47.0, 52.0, 57.0]], 60.0),  # two scrapes failed
        ([[30.0, 35.0, 40.0, 45.0, 50.0, 55.0]], 30.0),  # away before
        ([[2.0, 7.0, 42.0, 47.0, 52.0, 57.0]], 18.0),  # away amid
        ([[7.0, 42.0, 47.0, 52.0, 57.0], [43.0, 48.0, 53.0, 58.0]], 18.0),  # one has a sample of before
        ([[2.0, 7.0, 12.0], [42.0, 47.0, 52.0, 57.0]], 18.0),
        ([[42.0, 47.0, 52.0]], 18.0),
        ([[47.0, 52.0, 57.0]], None),  # too short
        ([[5.0, 10.0, 15.0]], None),  # away still
        ([[10.0, 40.0]], 60.0),  # seldom, and as often as ever
    ],
)
def test_it_is_known_since_when_there_are_samples_without_a_gap(series, seen):
    assert scraped_for(series, now=60.0, window=60.0) == seen
