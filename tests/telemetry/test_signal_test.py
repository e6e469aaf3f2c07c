"""Signals that are not what they are taken for, each fed for five minutes; and good ones, which must pass."""

import math
from dataclasses import replace

import numpy as np
import pytest

from autoscaler.telemetry.scrape.presets import PRESETS
from autoscaler.telemetry.scrape.reading import SignalReading
from autoscaler.telemetry.scrape.source import AddUp, Follows, Kind, SignalSource, Unit
from autoscaler.telemetry.signal_test import Diagnosis, SignalTest, Standing
from autoscaler.telemetry.signal_test_window import Circumstances

INTERVAL, FIVE_MINUTES = 10.0, 30
LEVEL = SignalSource("requests_running", ("m",))
SHARE = SignalSource("busy", ("m",), unit=Unit.FRACTION, add_up=AddUp.MEAN, follows=Follows.OCCUPANCY)
PERCENT = replace(SHARE, unit=Unit.PERCENT)
MEMORY = SignalSource("memory", ("m",), follows=Follows.NOTHING)


def a_day(seed=1, mean=6.0, intervals=FIVE_MINUTES, slots=10.0):
    """Our own measures of a pool under random load that is neither growing nor falling."""
    busy = np.random.default_rng(seed).poisson(mean * 4, intervals) / 4
    return [Circumstances(float(min(each, slots)), slots, 0.0, 5) for each in busy]


def overload(intervals=FIVE_MINUTES):
    """All slots busy, and a queue that grows by four requests an interval."""
    return [Circumstances(10.0, 10.0, 4.0 * place, 5) for place in range(intervals)]


def graded(source, circumstances, value, declared="gauge"):
    """Feed `value(number, circumstances)` for each interval; None is an exporter that says nothing."""
    test, grades, reading = SignalTest(source), [], SignalReading()
    for number, around in enumerate(circumstances):
        now = INTERVAL * number
        read = value(number, around)
        if read is None:
            reading = replace(reading, fault="no answer within 3s")
        else:
            reading = SignalReading(read * source.unit.scale, now, "", declared)
        grades.append(test.take(reading, around, now))
    return grades


def running_total(rate):
    total = [0.0]

    def value(number, around):
        total[0] += rate * around.busy_slots
        return 1000 + total[0]

    return value


# Each is fed for five minutes. What is wrong, what is said, and the remedy in the sentence.
WRONG = {
    "a counter fed as a gauge": (
        LEVEL, a_day(), running_total(1.0), Diagnosis.COUNTER_AS_GAUGE, "say type: counter",
    ),
    "a counter that starts anew": (
        LEVEL,
        a_day(),
        lambda number, around: 50.0 * (number % 15) + around.busy_slots,
        Diagnosis.COUNTER_AS_GAUGE,
        "never fell",
    ),
    "percent read as a fraction": (
        SHARE, a_day(), lambda number, around: 100 * around.occupancy, Diagnosis.WRONG_UNIT,
        "say unit: percent",
    ),
    "a fraction read as percent": (
        PERCENT, a_day(), lambda number, around: around.occupancy, Diagnosis.WRONG_UNIT, "say unit: fraction",
    ),
    "percent beyond a hundred": (
        PERCENT, a_day(), lambda number, around: 400.0, Diagnosis.WRONG_UNIT, "it is no share at all",
    ),
    "a GPU-busy figure that reads 0.95 always": (
        SHARE, a_day(), lambda number, around: 0.95, Diagnosis.CONSTANT, "it tells nothing of the load",
    ),
    "one that reads 0.95 give or take a little": (
        SHARE,
        a_day(),
        lambda number, around: 0.95 + 0.005 * (-1) ** number,
        Diagnosis.CONSTANT,
        "it tells nothing of the load",
    ),
    "a gauge that stands still": (
        LEVEL, a_day(), lambda number, around: 0.0, Diagnosis.CONSTANT, "it reads 0 all the time",
    ),
    "stuck at its top while the queue grows": (
        SHARE, overload(), lambda number, around: 0.95, Diagnosis.SATURATED, "it stays at 0.95",
    ),
    "requests running, at the slots": (
        LEVEL, overload(), lambda number, around: around.busy_slots, Diagnosis.SATURATED, "it is full",
    ),
    "an exporter that never answers": (
        LEVEL, a_day(), lambda number, around: None, Diagnosis.STALE, "no answer within 3s",
    ),
    "an exporter that falls silent": (
        LEVEL,
        a_day(),
        lambda number, around: around.busy_slots if number < 15 else None,
        Diagnosis.STALE,
        "no new value for 150 s",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_within_five_minutes_it_is_quarantined_with_its_diagnosis(name):
    source, circumstances, value, diagnosis, words = WRONG[name]
    last = graded(source, circumstances, value)[-1]
    assert (last.standing, last.diagnosis) == (Standing.QUARANTINED, diagnosis)
    assert words in last.text
    assert not last.is_usable


@pytest.mark.parametrize("name", [name for name in WRONG if name != "an exporter that falls silent"])
def test_before_that_it_was_never_used(name):
    source, circumstances, value, _, _ = WRONG[name]
    assert not any(grade.is_usable for grade in graded(source, circumstances, value))


GOOD = {
    "requests running": (LEVEL, lambda number, around: around.busy_slots),
    "requests running, as whole numbers": (LEVEL, lambda number, around: float(round(around.busy_slots))),
    "tokens per second": (replace(LEVEL, kind=Kind.COUNTER), lambda number, around: 40 * around.busy_slots),
    "a share": (SHARE, lambda number, around: around.occupancy),
    "a share that is dampened": (SHARE, lambda number, around: 0.8 + 0.15 * around.occupancy),
    "percent": (PERCENT, lambda number, around: 100 * around.occupancy),
    "memory that stays allocated": (MEMORY, lambda number, around: 7e10),
    "memory that only grows": (MEMORY, lambda number, around: 7e10 + number),
    "one that is late now and then": (
        LEVEL, lambda number, around: None if number % 4 == 3 else around.busy_slots,
    ),
}  # fmt: skip


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("name", GOOD)
def test_a_good_signal_is_never_suspected_and_soon_usable(name, seed):
    source, value = GOOD[name]
    grades = graded(source, a_day(seed, intervals=120), value)
    assert not [grade for grade in grades if grade.diagnosis]
    assert all(grade.is_usable for grade in grades[16:])


def test_a_steady_rise_of_the_load_is_not_taken_for_a_counter():
    rise = [Circumstances(1.0 + 0.3 * number, 20.0, 0.0, 5) for number in range(FIVE_MINUTES)]
    grades = graded(LEVEL, rise, lambda number, around: around.busy_slots)
    assert not [grade for grade in grades if grade.diagnosis]


def test_while_nothing_moves_nothing_is_said_and_nothing_used():
    idle = [Circumstances(0.0, 10.0, 0.0, 5)] * FIVE_MINUTES
    assert {grade.standing for grade in graded(LEVEL, idle, lambda number, around: 0.0)} == {
        Standing.LEARNING
    }


def test_a_counter_that_says_so_is_known_at_once():
    first = graded(LEVEL, a_day(intervals=1), lambda number, around: 5.0, declared="counter")[0]
    assert first.diagnosis is Diagnosis.COUNTER_AS_GAUGE
    assert "declares it a counter" in first.text


def test_a_unit_that_cannot_be_is_known_after_three_values():
    grades = graded(SHARE, a_day(intervals=3), lambda number, around: 87.0)
    assert grades[2].diagnosis is Diagnosis.WRONG_UNIT
    assert "it reads 87, and a fraction ends at 1" in grades[2].text


def replicas_added(follows):
    """Two replicas become four under the same load; the signal follows our occupancy, or does not."""
    rng, around = np.random.default_rng(3), []
    for number in range(FIVE_MINUTES):
        replicas = 2 if number < 12 else 4
        around.append(Circumstances(float(rng.normal(3.2, 0.2)), 2.0 * replicas, 0.0, replicas))
    return graded(SHARE, around, lambda number, each: follows(each, rng))


def test_a_signal_that_ignores_new_replicas_is_quarantined():
    last = replicas_added(lambda around, rng: 0.8 + float(rng.normal(0, 0.02)))[-1]
    assert last.diagnosis is Diagnosis.UNRESPONSIVE
    assert "when the replicas went from 2 to 4" in last.text


def test_a_signal_that_follows_new_replicas_is_good():
    last = replicas_added(lambda around, rng: around.occupancy + float(rng.normal(0, 0.02)))[-1]
    assert last.standing is Standing.GOOD


def test_a_total_need_not_follow_replicas():
    rng = np.random.default_rng(3)
    around = [
        Circumstances(float(rng.normal(3.2, 0.2)), 4.0 if number < 12 else 8.0, 0.0, 2 if number < 12 else 4)
        for number in range(FIVE_MINUTES)
    ]
    assert graded(LEVEL, around, lambda number, each: each.busy_slots)[-1].standing is Standing.GOOD


def test_quarantine_ends_when_a_whole_window_was_without_fault():
    circumstances = a_day(intervals=100)
    grades = graded(SHARE, circumstances, lambda number, around: 87.0 if number < 5 else around.occupancy)
    usable = [number for number, grade in enumerate(grades) if grade.is_usable]
    assert grades[30].diagnosis is Diagnosis.WRONG_UNIT
    assert usable[0] >= 5 + 2 * FIVE_MINUTES - 5  # out of the window, and then a window of peace
    assert usable == list(range(usable[0], 100))


def test_an_exporter_that_is_back_is_used_again_after_a_minute():
    grades = graded(
        LEVEL, a_day(intervals=80), lambda number, around: None if 30 <= number < 45 else around.busy_slots
    )
    assert grades[44].diagnosis is Diagnosis.STALE
    assert not grades[47].is_usable
    assert grades[52].is_usable


def test_a_saturated_signal_is_used_again_when_it_moves():
    circumstances = [*a_day(intervals=30), *overload(30), *a_day(seed=2, intervals=70)]
    grades = graded(LEVEL, circumstances, lambda number, around: around.busy_slots)
    assert grades[29].is_usable
    assert grades[58].diagnosis is Diagnosis.SATURATED
    assert grades[-1].is_usable


def test_the_old_is_forgotten_and_memory_is_bounded():
    test = SignalTest(LEVEL)
    for number, around in enumerate(a_day(intervals=5000)):
        test.take(SignalReading(around.busy_slots, float(number), "", "gauge"), around, float(number) / 10)
    assert len(test._window.samples()) <= 600


@pytest.mark.parametrize(
    "source",
    [source for preset in PRESETS.values() for source in preset],
    ids=lambda source: source.metrics[0],
)
def test_every_signal_of_every_preset_passes_when_it_does_what_it_should(source):
    def own(number, around):
        return around.occupancy / source.unit.scale if source.unit.is_share else around.busy_slots

    assert graded(source, a_day(intervals=60), own)[-1].standing is Standing.GOOD


def test_a_value_that_was_never_read_is_no_sample():
    test = SignalTest(LEVEL)
    grade = test.take(SignalReading(math.nan), a_day()[0], 0.0)
    assert grade.standing is Standing.LEARNING
