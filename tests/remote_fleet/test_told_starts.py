"""Starts that somebody tells of, who may tell of them for ever."""

from autoscaler.remote_fleet import FleetReport, Member
from autoscaler.remote_fleet.told_starts import ToldStarts


def told(starts, now, starting, ready=0):
    members = tuple(Member(f"job-{each}", f"http://10.0.0.{each}:80") for each in range(ready))
    judged = starts.judge(FleetReport(members, starting), now)
    assert judged.members == members
    return judged.starting, judged.overdue


def test_who_is_said_to_be_starting_for_too_long_is_overdue():
    starts = ToldStarts(patience=100.0)
    assert told(starts, now=0.0, starting=3) == (3, 0)
    assert told(starts, now=60.0, starting=5) == (5, 0)
    assert told(starts, now=100.0, starting=5) == (2, 3)
    assert told(starts, now=110.0, starting=0) == (0, 0)
    assert told(starts, now=120.0, starting=1) == (1, 0)


def test_while_one_after_the_other_comes_those_that_start_are_counted_on():
    starts = ToldStarts(patience=100.0)
    for number in range(10):
        assert told(starts, now=50.0 * number, starting=2, ready=number) == (2, 0)


def test_one_that_hangs_is_found_although_others_come():
    starts = ToldStarts(patience=100.0)
    assert told(starts, now=0.0, starting=1) == (1, 0)
    for number in range(1, 4):
        assert told(starts, now=200.0 * number, starting=2, ready=number - 1) == (1, 1)


def test_where_starts_are_not_told_nothing_is_judged():
    assert told(ToldStarts(patience=100.0), now=0.0, starting=None) == (None, 0)
