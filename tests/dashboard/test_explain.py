"""Decisions as a person reads them."""

from dataclasses import replace
from datetime import UTC

from autoscaler.dashboard.explain import sentences
from autoscaler.domain import Binding, Fleet, Hold, Numbers, Reason, ScaleTo
from autoscaler.telemetry.decision_codec import DecisionRecord

FLEET = Fleet(4, 0, 0, 1, 5.0, 9.0)
UP = ScaleTo(6, 4, Reason.DEMAND_RISES, Binding.WAIT)
WALL_TIME = 1_796_047_510.0  # 2026-11-30 14:05:10 UTC


def record(decision, after=0.0, pool="chat"):
    return DecisionRecord(pool, WALL_TIME + after, after, None, FLEET, decision)


def hold(replicas=5, reason=Reason.WITHIN_BAND, rate=1.0):
    return Hold(replicas, reason, Binding.NONE, Numbers(arrival_rate=rate))


def test_a_decision_is_its_time_its_pool_and_its_sentence():
    assert sentences([record(UP)], UTC) == [f"2026-11-30 14:05:10 chat  {UP}"]


def test_what_was_held_for_long_is_told_once():
    records = [record(hold(rate=tenth / 10), 10.0 * tenth) for tenth in range(12)]
    assert sentences([*records, record(UP, 120.0)], UTC) == [
        "2026-11-30 14:05:10 chat  Hold 5 replicas: utilization stays within the band. "
        "(held 12 times until 14:07:00)",
        f"2026-11-30 14:07:10 chat  {UP}",
    ]


def test_a_hold_past_midnight_says_the_day():
    (line,) = sentences([record(hold()), record(hold(), 12 * 3600.0)], UTC)
    assert line.endswith("(held 2 times until 2026-12-01 02:05:10)")


def test_holds_of_another_number_or_reason_are_told_apart():
    records = [record(hold(5)), record(hold(6), 10.0), record(hold(6, Reason.SOON_NEEDED), 20.0)]
    assert len(sentences(records, UTC)) == 3


def test_changes_are_never_collapsed():
    assert len(sentences([record(UP), record(UP, 10.0)], UTC)) == 2


def test_pools_that_take_turns_are_each_told_once():
    records = [record(hold(), 10.0 * step, pool) for step in range(3) for pool in ("chat", "embed")]
    lines = sentences(records, UTC)
    assert ["embed" in line for line in lines] == [False, True]
    assert all("held 3 times" in line for line in lines)


def test_other_slots_of_a_replica_are_said_where_they_begin():
    slots = [1, 1, 8, 8, 8]
    records = [
        DecisionRecord(
            "chat", WALL_TIME + 10.0 * i, 10.0 * i, None, replace(FLEET, slots_per_replica=n), hold()
        )
        for i, n in enumerate(slots)
    ]
    first, second = sentences(records, UTC)
    assert "slots a replica" not in first
    assert second.endswith("[8 slots a replica now, 1 before] (held 3 times until 14:05:50)")
