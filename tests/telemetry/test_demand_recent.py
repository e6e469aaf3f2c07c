"""What a door keeps of its demand, and tells."""

import asyncio
import re
from dataclasses import replace

import pytest

from autoscaler.clock import SystemClock, VirtualClock
from autoscaler.domain import Observation
from autoscaler.telemetry.demand import recent
from autoscaler.telemetry.demand.recent import PoolNow, PoolSource, RecentDemand
from autoscaler.telemetry.demand.report import DemandReport, read_report
from autoscaler.telemetry.plain import encode

SEEN = Observation(1.0, 4, 3, 1.5, 0.9, 2.0, 3, 1, 0.25, 0.0, rejected=1, tokens_in=7, tokens_out=9)


class Door:
    """A door of one pool at which four requests arrive in each interval."""

    def __init__(self, clock=None, incarnation="this", length=1.0):
        self.clock = clock or VirtualClock(wall_time=1e6)
        self.leaving, self.reasons = False, []
        source = PoolSource(
            lambda now, wall: replace(SEEN, wall_time=wall, interval=length), lambda: PoolNow(1, 8, 2)
        )
        self.demand = RecentDemand(
            {"chat": source}, self.clock, lambda: self.reasons, lambda: self.leaving, incarnation
        )

    def run(self, intervals: int) -> None:
        for _ in range(intervals):
            self.clock.move_to(self.clock.now() + 1.0)
            self.demand.close()

    def sequences(self, **asked) -> list[int]:
        return [each.sequence for each in self.demand.report(**asked).pools["chat"].intervals]


def test_intervals_are_numbered_and_told_with_their_age():
    door = Door()
    door.run(3)
    door.clock.move_to(door.clock.now() + 0.5)
    report = door.demand.report()
    assert (report.incarnation, report.sequence, report.interval) == ("this", 3, 1.0)
    chat = report.pools["chat"]
    assert [(each.sequence, each.age) for each in chat.intervals] == [(1, 2.5), (2, 1.5), (3, 0.5)]
    assert (chat.replicas_ready, chat.slots, chat.busy) == (1, 8, 2)
    assert chat.intervals[0].observation.arrivals == 4


def test_who_has_seen_some_gets_what_came_after():
    door = Door()
    door.run(5)
    assert door.sequences(since=3, incarnation="this") == [4, 5]
    assert door.sequences(since=5) == []


def test_who_knows_another_incarnation_gets_everything():
    door = Door()
    door.run(2)
    assert door.sequences(since=700, incarnation="the one before") == [1, 2]


def test_only_the_last_ten_minutes_are_kept_and_the_gap_can_be_seen():
    door = Door()
    door.run(recent.KEPT_MAX + 5)
    assert door.sequences(since=1)[0] == 6
    assert len(door.sequences()) == recent.KEPT_MAX


def test_what_is_told_can_be_read_back_field_for_field():
    door = Door()
    door.run(2)
    door.reasons, door.leaving = ["draining"], True
    report = door.demand.report()
    assert (report.ready, report.leaving, report.not_ready) == (False, True, ("draining",))
    read = read_report(encode(report))
    assert isinstance(read, DemandReport)
    assert read == report


@pytest.mark.parametrize(
    "what, values",
    [
        ("interval", ["0", "-1.0", "null", "5e-324"]),
        ("arrivals", ["-5", "1" + "0" * 400]),
        ("service_time_sum", ["null", '"inf"', "-1.5"]),
        ("age", ["-1e9", "null", '"inf"']),
        ("sequence", ["-1", "1" + "0" * 30]),
        ("slots", ["-4"]),
        ("busy", ["-1", "1" + "0" * 400]),
        ("incarnation", ['""']),
    ],
)
def test_what_cannot_be_is_no_report(what, values):
    door = Door()
    door.run(1)
    text = encode(door.demand.report()).decode()
    for value in values:
        bent, count = re.subn(rf'"{what}":("this"|[0-9.]+)(?=[,}}][^{{]*)', f'"{what}":{value}', text)
        assert count
        with pytest.raises(ValueError, match=what):
            read_report(bent.encode())


def test_the_counters_add_everything_up():
    door = Door()
    door.run(3)
    total = door.demand.totals["chat"]
    assert (total.arrivals, total.service_squares, total.busy_time) == (12, 2.7, 6.0)


def test_two_processes_have_different_incarnations():
    one, other = (Door(incarnation=None).demand.incarnation for _ in range(2))
    assert one != other


async def test_the_last_word_is_waited_for_as_long_as_its_readers_usually_take():
    door = Door(SystemClock())
    await door.demand.last_word()  # nobody reads
    for _ in range(2):
        door.demand.report(reader="a controller")
        await asyncio.sleep(0.05)
    ending = asyncio.create_task(door.demand.last_word())
    await asyncio.sleep(0.01)
    assert not ending.done()
    assert door.demand.report(reader="a controller").sequence >= 2
    async with asyncio.timeout(1.0):
        await ending


async def test_a_reader_that_is_gone_is_not_waited_for():
    door = Door(SystemClock())
    for _ in range(2):
        door.demand.report(reader="a controller")
        await asyncio.sleep(0.02)
    await asyncio.sleep(0.1)
    async with asyncio.timeout(1.0):
        await door.demand.last_word()
