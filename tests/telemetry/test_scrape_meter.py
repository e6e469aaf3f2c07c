"""From samples to the value of a signal, and of many exporters to one."""

from math import isnan

import pytest

from autoscaler.telemetry.scrape.exposition_text import Family, Series
from autoscaler.telemetry.scrape.meter import SignalMeter
from autoscaler.telemetry.scrape.reading import SignalReading
from autoscaler.telemetry.scrape.several import combined
from autoscaler.telemetry.scrape.source import AddUp, Kind, SignalSource, Unit

WALL = 1.7e9


def families(*values, name="m", declared="gauge", time=None):
    """A family with a series for each value; pairs name their series."""
    pairs = [value if isinstance(value, tuple) else (str(place), value) for place, value in enumerate(values)]
    return {name: Family(declared, tuple(Series((("instance", who),), value, time) for who, value in pairs))}


def a_meter(**more):
    return SignalMeter(SignalSource("signal", ("m", "old_m"), **more))


def test_the_series_of_a_gauge_are_added_up_as_told():
    for how, value in ((AddUp.SUM, 6), (AddUp.MEAN, 2), (AddUp.MAX, 3)):
        meter = a_meter(add_up=how)
        meter.take(families(1, 2, 3), now=5.0, wall_time=WALL)
        assert meter.reading == SignalReading(value, 5.0, "", "gauge")


def test_percent_becomes_a_fraction():
    meter = a_meter(unit=Unit.PERCENT, add_up=AddUp.MEAN)
    meter.take(families(50, 100), now=0.0, wall_time=WALL)
    assert meter.reading.value == 0.75


def test_an_older_name_is_read_where_the_newer_is_not_there():
    meter = a_meter()
    meter.take(families(4, name="old_m"), now=0.0, wall_time=WALL)
    assert meter.reading.value == 4


def test_only_series_with_the_labels_wanted_count():
    meter = a_meter(labels={"instance": "a"})
    meter.take(families(("a", 1), ("b", 10)), now=0.0, wall_time=WALL)
    assert meter.reading.value == 1


def test_a_counter_gives_its_rise_per_second_each_series_alone():
    meter = a_meter(kind=Kind.COUNTER)
    meter.take(families(("a", 1000), ("b", 50)), now=0.0, wall_time=WALL)
    assert isnan(meter.reading.value)
    meter.take(families(("a", 1100), ("b", 70)), now=10.0, wall_time=WALL)
    assert meter.reading.value == 12.0


def test_a_counter_that_falls_began_anew_at_zero():
    meter = a_meter(kind=Kind.COUNTER)
    meter.take(families(("a", 1000), ("b", 50)), now=0.0, wall_time=WALL)
    meter.take(families(("a", 30), ("b", 70)), now=10.0, wall_time=WALL)
    assert meter.reading.value == 5.0


def test_a_counter_that_is_new_tells_nothing_yet():
    meter = a_meter(kind=Kind.COUNTER)
    meter.take(families(("a", 0)), now=0.0, wall_time=WALL)
    meter.take(families(("a", 10), ("b", 1e9)), now=10.0, wall_time=WALL)
    assert meter.reading.value == 1.0


def test_a_rise_over_a_silence_is_spread_over_it():
    meter = a_meter(kind=Kind.COUNTER)
    meter.take(families(("a", 0)), now=0.0, wall_time=WALL)
    meter.fail("no answer")
    meter.take(families(("a", 60)), now=30.0, wall_time=WALL)
    assert meter.reading.value == 2.0


def test_a_fault_keeps_the_last_value_with_its_age():
    meter = a_meter()
    meter.take(families(3), now=10.0, wall_time=WALL)
    meter.fail("no answer within 3s")
    assert (meter.reading.value, meter.reading.age(25.0), meter.reading.fault) == (
        3,
        15.0,
        "no answer within 3s",
    )
    assert meter.reading.is_fresh(25.0, age_max=20.0)
    assert not meter.reading.is_fresh(31.0, age_max=20.0)


def test_a_metric_that_is_not_there_is_named():
    meter = a_meter()
    meter.take({}, now=0.0, wall_time=WALL)
    assert meter.reading.fault == "has no metric m or old_m"


def test_samples_whose_own_time_stands_still_are_no_reading():
    meter = a_meter()
    meter.take(families(3, time=WALL - 400), now=0.0, wall_time=WALL)
    assert meter.reading.fault == "repeats samples that are 400 s old"


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_what_is_no_number_is_no_value(value):
    meter = a_meter()
    meter.take(families(value), now=0.0, wall_time=WALL)
    assert "no series with a value" in meter.reading.fault


def test_a_counter_cannot_count_shares():
    with pytest.raises(ValueError, match="a counter cannot count in percent"):
        SignalSource("x", ("m",), kind=Kind.COUNTER, unit=Unit.PERCENT)


HEARD, OLD, SILENT = (
    SignalReading(4.0, 100.0),
    SignalReading(9.0, 10.0, "reset"),
    SignalReading(fault="no answer"),
)


def test_one_silent_exporter_of_ten_is_taken_to_read_as_the_others():
    reading = combined([HEARD] * 9 + [SILENT], AddUp.SUM, now=101.0, age_max=30.0)
    assert (reading.value, reading.fault) == (40.0, "no answer")
    assert combined([HEARD] * 9 + [SILENT], AddUp.MEAN, now=101.0, age_max=30.0).value == 4.0


def test_what_was_read_long_ago_counts_as_silence():
    assert combined([HEARD, OLD], AddUp.MAX, now=101.0, age_max=30.0).value == 4.0


def test_fewer_than_half_are_no_reading():
    reading = combined([HEARD, OLD, SILENT], AddUp.SUM, now=101.0, age_max=30.0)
    assert isnan(reading.value)
    assert reading.fault == "1 of 3 exporters heard; reset"


def test_no_exporter_at_all_is_no_reading():
    assert isnan(combined([], AddUp.SUM, now=0.0, age_max=30.0).value)
