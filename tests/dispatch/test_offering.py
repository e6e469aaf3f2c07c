"""What each replica is offered with, when many of them change."""

from hypothesis import given
from hypothesis import strategies as st

from autoscaler.dispatch.concurrency_limit import ConcurrencyOptions
from autoscaler.dispatch.events import CallEnd
from autoscaler.dispatch.health import HealthOptions
from autoscaler.dispatch.learned_slots import SlotOptions
from autoscaler.dispatch.offering import Offering

REPLICAS = ("a", "b", "c")


def happens(offering: Offering, what: str, replica_id: str, now: float) -> None:
    match what:
        case "drains":
            offering.drain(replica_id, now)
        case "vanishes":
            offering.vanish(replica_id, now)
        case "is busy":
            offering.backpressure(replica_id, 2.0, now)
        case "fails":
            offering.call_ended(replica_id, CallEnd.SERVER_FAILED, now, now)
        case "refuses":
            offering.call_ended(replica_id, CallEnd.REFUSED, now, now)
        case "is mute":
            offering.probed(replica_id, False, now)
        case "answers":
            offering.probed(replica_id, True, now)


@given(
    steps=st.lists(
        st.tuples(
            st.sampled_from(
                [
                    "appears",
                    "drains",
                    "vanishes",
                    "is busy",
                    "fails",
                    "refuses",
                    "is mute",
                    "answers",
                    "waits",
                ]
            ),
            st.sampled_from(REPLICAS),
            st.integers(1, 8),
            st.sampled_from([0.0, 0.1, 1.0, 20.0]),
        ),
        max_size=30,
    ),
    slow_start=st.sampled_from([0.0, 5.0]),
)
def test_to_look_at_the_one_that_appeared_misses_nothing_that_a_look_at_all_tells(steps, slow_start):
    one, all_of_them = (
        Offering(
            ConcurrencyOptions(slow_start=slow_start, recovery=1.0),
            HealthOptions(failures_max=2, probe_failures_max=2, ejection=3.0),
            SlotOptions(),
        )
        for _ in range(2)
    )
    now = 0.0
    for what, replica_id, slots, passed in steps:
        now += passed
        if what == "appears":
            for offering in (one, all_of_them):
                offering.appear(replica_id, slots, now)
            assert sorted(one.changes_of(replica_id, now)) == sorted(all_of_them.changes(now))
        else:
            for offering in (one, all_of_them):
                happens(offering, what, replica_id, now)
            assert sorted(one.changes(now)) == sorted(all_of_them.changes(now))
        assert one.next_change <= all_of_them.next_change  # it looks again sooner, perhaps, and never later
