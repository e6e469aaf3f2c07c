"""Which pods go, and how far the number is lowered now."""

from hypothesis import given
from hypothesis import strategies as st

from autoscaler.platforms.kubernetes.scale_down import Departure, Place, plan_departure


def place(name, busy=0, ready=True, since=None, answers=True):
    return Place(uid=name, name=name, is_ready=ready, busy=busy, answers=answers, leaving_since=since)


def planned(places, wanted, replicas=None, now=0.0, drain_max=60.0, is_ordered=False):
    count = len(places) if replicas is None else replicas
    return plan_departure(places, count, wanted, now, drain_max, is_ordered)


def test_idle_replicas_go_first_and_at_once():
    places = [place("a", busy=2), place("b"), place("c", busy=1), place("d")]
    assert planned(places, wanted=2) == Departure(leaving=("b", "d"), gone=("b", "d"), replicas=2)


def test_pods_that_are_not_ready_go_before_any_that_is():
    places = [place("a"), place("b", ready=False), place("c")]
    assert planned(places, wanted=2) == Departure(leaving=(), gone=("b",), replicas=2)


def test_one_that_hangs_goes_before_any_that_answers_and_in_place_of_one_that_was_chosen():
    places = [place("a"), place("b", since=0.0), place("c", busy=1, answers=False)]
    assert planned(places, wanted=2, now=9.0) == Departure(leaving=("c",), gone=(), replicas=3)


def test_a_busy_replica_leaves_first_and_is_let_go_once_it_holds_nothing():
    first = planned([place("a", busy=1), place("b", busy=3)], wanted=1)
    assert first == Departure(leaving=("a",), gone=(), replicas=2)
    then = planned([place("a", busy=0, since=0.0), place("b", busy=3)], wanted=1, now=9.0)
    assert then == Departure(leaving=("a",), gone=("a",), replicas=1)


def test_who_was_chosen_stays_chosen_although_another_is_less_busy_now():
    places = [place("a", busy=2, since=0.0), place("b", busy=1)]
    assert planned(places, wanted=1, now=9.0).leaving == ("a",)


def test_who_had_its_time_goes_whatever_it_holds():
    places = [place("a", busy=2, since=0.0), place("b", busy=1)]
    assert planned(places, wanted=1, now=60.0) == Departure(("a",), ("a",), 1)


def test_what_was_never_made_is_taken_back_first():
    assert planned([place("a"), place("b")], wanted=2, replicas=5) == Departure((), (), 2)
    assert planned([place("a", busy=1), place("b", busy=1)], wanted=1, replicas=5) == Departure(("a",), (), 2)


def test_pods_that_were_let_go_and_are_not_deleted_yet_are_not_let_go_twice():
    places = [place("a", ready=False), place("b", ready=False), place("c", busy=1), place("d", busy=2)]
    assert planned(places, wanted=1, replicas=2) == Departure(leaving=("c",), gone=(), replicas=2)


def test_a_stateful_set_goes_from_the_top_down_only():
    places = [place("m-0"), place("m-9", busy=1), place("m-10"), place("m-11", busy=1, since=0.0)]
    assert planned(places, wanted=1, is_ordered=True, now=1.0) == Departure(("m-11", "m-10", "m-9"), (), 4)
    assert planned(places, wanted=1, is_ordered=True, now=60.0) == Departure(
        ("m-11", "m-10", "m-9"), ("m-11", "m-10"), 2
    )


some_place = st.builds(
    Place,
    uid=st.uuids().map(str),
    name=st.integers(0, 99).map("m-{}".format),
    is_ready=st.booleans(),
    busy=st.integers(0, 3),
    leaving_since=st.none() | st.floats(0, 100),
)


@given(
    places=st.lists(some_place, max_size=12),
    more=st.integers(-3, 3),
    wanted=st.integers(0, 15),
    now=st.floats(100, 300),
    is_ordered=st.booleans(),
)
def test_nobody_is_let_go_who_holds_something_and_the_number_never_passes_what_is_wanted(
    places, more, wanted, now, is_ordered
):
    replicas = max(0, len(places) + more)
    departure = plan_departure(places, replicas, wanted, now, 60.0, is_ordered)
    by_uid = {each.uid: each for each in places}
    assert min(replicas, wanted) <= departure.replicas <= replicas
    assert len(departure.gone) <= replicas - departure.replicas
    for uid in departure.gone:
        gone = by_uid[uid]
        had_its_time = gone.leaving_since is not None and now - gone.leaving_since >= 60.0
        assert not gone.is_ready or not gone.busy or had_its_time
    assert len(departure.leaving) <= max(0, replicas - wanted)
