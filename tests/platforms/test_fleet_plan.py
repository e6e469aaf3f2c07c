"""Which replicas start, come back and end."""

from hypothesis import given
from hypothesis import strategies as st

from autoscaler.platforms.local_process.fleet_plan import (
    ORDERED,
    FleetPlan,
    Member,
    State,
    free_place,
    plan_fleet,
)


def ready(place, busy=0, age=100.0):
    return Member(place, State.READY, busy, age)


def test_an_empty_fleet_starts_what_is_wanted():
    assert plan_fleet([], desired=3, places=None) == FleetPlan(start=3)


def test_what_is_as_wanted_stays():
    members = [ready(0), Member(1, State.STARTING), Member(2, State.BACKING_OFF)]
    assert plan_fleet(members, desired=3, places=None) == FleetPlan()


def test_no_more_start_than_there_is_room():
    assert plan_fleet([ready(0)], desired=8, places=4) == FleetPlan(start=3)


def test_a_replica_that_ends_keeps_its_place_until_it_is_gone():
    members = [ready(0), Member(1, State.STOPPING)]
    assert plan_fleet(members, desired=2, places=2) == FleetPlan()
    assert plan_fleet(members, desired=2, places=3) == FleetPlan(start=1)


def test_draining_replicas_come_back_before_new_ones_start_the_busiest_first():
    members = [ready(0), Member(1, State.DRAINING, busy=1), Member(2, State.DRAINING, busy=4)]
    assert plan_fleet(members, desired=2, places=None) == FleetPlan(take_back=(2,))
    assert plan_fleet(members, desired=5, places=None) == FleetPlan(take_back=(2, 1), start=2)


def test_sleepers_are_woken_after_draining_ones_came_back_and_before_new_ones_start():
    members = [Member(0, State.ASLEEP), Member(1, State.DRAINING), Member(2, State.ASLEEP)]
    assert plan_fleet(members, desired=1, places=4) == FleetPlan(take_back=(1,))
    assert plan_fleet(members, desired=2, places=4) == FleetPlan(take_back=(1,), wake=(0,))
    assert plan_fleet(members, desired=9, places=4) == FleetPlan(take_back=(1,), wake=(0, 2), start=1)


def test_sleepers_are_none_of_those_that_are_ordered_and_do_not_end():
    assert plan_fleet([ready(0), Member(1, State.ASLEEP)], desired=1, places=None) == FleetPlan()


def test_draining_replicas_are_not_drained_again():
    assert plan_fleet([ready(0), Member(1, State.DRAINING)], desired=1, places=None) == FleetPlan()


def test_what_serves_least_ends_first():
    members = [
        ready(0, busy=2),
        ready(1, busy=0, age=500.0),
        ready(2, busy=0, age=20.0),
        ready(3, busy=1),
        Member(4, State.STARTING, age=90.0),
        Member(5, State.STARTING, age=10.0),
        Member(6, State.BACKING_OFF, age=900.0),
    ]
    ends = plan_fleet(members, desired=0, places=None).end
    assert ends == (6, 5, 4, 2, 1, 3, 0)
    assert plan_fleet(members, desired=4, places=None).end == ends[:3]


def test_neighbouring_places_are_on_different_gpus_and_a_gpu_is_shared_last():
    taken = []
    while (place := free_place(taken, gpus=2, replicas_per_gpu=2)) is not None:
        taken.append(place)
    assert [place % 2 for place in taken] == [0, 1, 0, 1]


def test_a_gpu_that_lost_its_replica_is_filled_before_another_is_shared():
    assert free_place({0, 2}, gpus=2, replicas_per_gpu=2) == 1


def test_without_gpus_the_lowest_free_place_is_taken():
    assert free_place({0, 2}, gpus=0, replicas_per_gpu=1) == 1
    assert free_place({0, 1}, gpus=0, replicas_per_gpu=1) == 2


members = st.lists(
    st.builds(Member, st.integers(0, 30), st.sampled_from(State), st.integers(0, 9), st.floats(0, 1e6)),
    unique_by=lambda member: member.place,
)


@given(members=members, desired=st.integers(0, 40), places=st.none() | st.integers(0, 40))
def test_a_plan_never_overshoots_and_is_done_once_carried_out(members, desired, places):
    plan = plan_fleet(members, desired, places)
    after = carried_out(members, plan)
    ordered = sum(member.state in ORDERED for member in after)
    assert ordered <= desired
    assert places is None or plan.start == 0 or len(after) <= places
    assert ordered == desired or (places is not None and len(after) >= places)
    assert plan_fleet(after, desired, places) == FleetPlan()


def carried_out(members, plan):
    states = dict.fromkeys(plan.take_back, State.READY) | dict.fromkeys(plan.end, State.STOPPING)
    states |= dict.fromkeys(plan.wake, State.STARTING)
    after = [Member(each.place, states.get(each.place, each.state), each.busy) for each in members]
    return after + [Member(100 + number, State.STARTING) for number in range(plan.start)]
