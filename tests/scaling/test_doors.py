"""What is known of demand that is counted at several doors: each interval once, and missing is not zero."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoscaler.domain import Observation
from autoscaler.scaling.doors import DoorInterval, DoorReading, Doors, MergeOptions

OPTIONS = MergeOptions(carry=30.0, forget=300.0)
RATE = 5


def second(sequence: int, ended_at: float, arrivals: int = RATE) -> DoorInterval:
    """One second of a door at which `arrivals` come and are served in half a second."""
    seen = Observation(1.0, arrivals, arrivals, arrivals * 0.5, arrivals * 0.25, 2.5, 3, 1, 0.2, ended_at)
    return DoorInterval(sequence, ended_at, seen)


class World:
    """Doors that tell one interval a second, read every second, merged every ten."""

    def __init__(self, *addresses: str, options: MergeOptions = OPTIONS):
        self.doors = Doors(options, 0.0)
        self.now = 0.0
        self.born = dict.fromkeys(addresses, 0.0)
        self.incarnation = dict.fromkeys(addresses, "first")
        self.silent: set[str] = set()
        self.refusing: set[str] = set()
        self.leaving: set[str] = set()
        self.doors.listed(addresses, 0.0)

    def restart(self, address: str) -> None:
        self.born[address], self.incarnation[address] = self.now, "second"

    def read(self, address: str) -> None:
        if address in self.silent | self.refusing:
            self.doors.unanswered(address, self.now, refused=address in self.refusing)
            return
        incarnation, known = self.doors.cursor(address)
        known = known if incarnation == f"{address} {self.incarnation[address]}" else 0
        born = self.born[address]
        told = [second(n, born + n) for n in range(known + 1, int(self.now - born) + 1)]
        self.doors.answered(
            address,
            DoorReading(f"{address} {self.incarnation[address]}", tuple(told), 4, 2, address in self.leaving),
            self.now,
        )

    def run(self, seconds: int = 10) -> Observation | None:
        """Go on; return the observation at the end."""
        for _ in range(seconds):
            self.now += 1.0
            for address in self.doors.addresses:
                self.read(address)
        return self.doors.close(self.now, self.now)


def test_doors_that_answer_add_up():
    seen = World("a", "b", "c").run()
    assert seen == Observation(10.0, 150, 150, 75.0, 37.5, 7.5, 9, 3, 0.2, 10.0)


def test_an_interval_that_comes_after_the_close_counts_in_the_next_one():
    world = World("a")
    assert world.run().arrivals == 50
    world.now += 9.0
    late = world.doors.close(world.now, world.now)  # nothing was read since
    world.now += 1.0
    world.read("a")
    world.now += 9.0
    world.read("a")
    after = world.doors.close(world.now, world.now)
    assert late.arrivals + after.arrivals == 19 * RATE


def test_who_does_not_answer_is_not_zero_but_goes_on_as_before_and_nothing_is_counted_twice():
    world = World("a", "b")
    world.run()
    world.silent.add("b")
    missing = world.run()
    assert (missing.arrivals, missing.busy_slots_mean, missing.is_partial) == (100, 5.0, False)
    world.silent.clear()
    assert world.run().arrivals == 100


def test_after_a_while_the_sum_is_said_to_be_partial_and_its_last_rates_still_stand():
    world = World("a", "b")
    world.run()
    world.silent.add("b")
    assert [world.run().is_partial for _ in range(4)] == [False, False, True, True]
    assert world.run().arrivals == 100
    assert world.doors.counts.blind == 1
    world.silent.clear()
    assert not world.run().is_partial


def test_who_said_that_it_leaves_and_is_gone_is_zero_at_once():
    world = World("a", "b")
    world.run()
    world.leaving.add("b")
    world.run(5)
    world.silent.add("b")
    seen = world.run()
    assert (seen.arrivals, seen.in_flight, seen.is_partial) == (50, 3, False)
    assert not world.run(60).is_partial


def test_a_restart_is_the_same_door_and_its_intervals_count_once():
    world = World("a", "b")
    world.run()
    world.restart("b")
    assert world.run().arrivals == 100
    assert world.doors.counts.restarts == 1
    assert world.run().arrivals == 100


def test_a_door_whose_machine_says_that_nobody_listens_is_given_up_in_the_end():
    world = World("a", "b")
    world.run()
    world.refusing.add("b")
    seen = [world.run() for _ in range(31)]
    assert seen[10].is_partial
    assert not seen[-1].is_partial and seen[-1].arrivals == 50
    world.refusing.clear()
    assert world.run().arrivals == 105  # and one that was under way
    assert world.run().arrivals == 100


def test_one_that_is_silent_for_ever_is_never_given_up_while_it_is_listed():
    world = World("a", "b")
    world.run()
    world.silent.add("b")
    assert world.run(3600).is_partial
    world.doors.listed(["a"], world.now)
    assert not world.run().is_partial


def test_one_that_is_listed_and_never_answered_makes_it_partial():
    world = World("a", "b")
    world.silent.add("b")
    assert [world.run().is_partial for _ in range(3)] == [False, False, True]


def test_one_that_is_not_listed_any_more_is_asked_until_it_does_not_answer():
    world = World("a", "b")
    world.run()
    world.doors.listed(["a"], world.now)
    assert world.run().arrivals == 100
    world.silent.add("b")
    world.run(40)
    assert world.doors.addresses == ["a"]


def test_if_nobody_is_heard_of_there_is_no_observation():
    world = World("a", "b")
    world.run()
    world.silent.update("ab")
    assert [world.run() is None for _ in range(4)] == [False, False, True, True]
    assert Doors(OPTIONS, 0.0).close(10.0, 10.0) is None


def test_two_addresses_of_one_door_count_once():
    world = World("a", "b")
    world.incarnation["b"] = "first"
    doors = Doors(OPTIONS, 0.0)
    doors.listed(["a", "b"], 0.0)
    for now in range(1, 11):
        for address in ("a", "b"):
            doors.answered(address, DoorReading("same", (second(now, float(now)),)), float(now))
    seen = doors.close(10.0, 10.0)
    assert (seen.arrivals, seen.is_partial) == (50, False)


class TwoAddresses:
    """One process that answers at `a` and at `b`, and tells an interval a second."""

    def __init__(self):
        self.doors, self.now, self.born, self.incarnation = Doors(OPTIONS, 0.0), 0, 0, "first"
        self.order, self.silent, self.is_leaving = ["a", "b"], set(), False
        self.doors.listed(["a", "b"], 0.0)

    def run(self, seconds: int = 10, arrivals: int = RATE) -> Observation | None:
        for _ in range(seconds):
            self.now += 1
            for address in self.order:
                if address in self.silent:
                    self.doors.unanswered(address, self.now)
                    continue
                incarnation, known = self.doors.cursor(address)
                first = (known if incarnation == self.incarnation else 0) + 1
                numbers = range(first, self.now - self.born + 1)
                told = tuple(second(n, float(self.born + n), arrivals) for n in numbers)
                reading = DoorReading(self.incarnation, told, 4, 2, self.is_leaving)
                self.doors.answered(address, reading, self.now)
        return self.doors.close(self.now, self.now)


@pytest.mark.parametrize("silent", ["a", "b"])
def test_a_door_that_did_not_answer_at_one_of_its_addresses_counts_once_all_the_same(silent):
    world = TwoAddresses()
    world.run()
    world.silent = {silent}
    assert (world.run(1).arrivals, world.doors.counts.heard) == (RATE, 1)
    world.silent = set()
    assert (world.run(9).arrivals, world.doors.counts.heard) == (45, 1)
    quiet = world.run(arrivals=0)
    assert (quiet.arrivals, quiet.is_partial) == (0, False)


def test_a_door_of_two_addresses_that_was_restarted_counts_once_whichever_answers_first():
    world = TwoAddresses()
    world.run(5)
    world.born, world.incarnation, world.order = world.now, "second", ["b", "a"]
    assert (world.run(5).arrivals, world.doors.counts.restarts) == (50 - 5 * RATE, 1)
    assert world.run().arrivals == 50
    world.born, world.incarnation, world.order = world.now, "third", ["a", "b"]
    assert (world.run().arrivals, world.doors.counts.restarts) == (50, 2)
    assert world.run(arrivals=0).arrivals == 0


@pytest.mark.parametrize("silent", ["a", "b"])
def test_a_door_that_is_heard_at_one_of_its_addresses_is_not_missing(silent):
    world = TwoAddresses()
    world.run()
    world.silent = {silent}
    seen = world.run(120)
    assert (seen.arrivals, seen.is_partial) == (120 * RATE, False)
    assert (world.doors.counts.heard, world.doors.counts.blind) == (1, 0)


def test_a_door_that_left_is_gone_at_all_of_its_addresses():
    world = TwoAddresses()
    world.doors.listed(["a", "b", "other"], 0.0)
    world.doors.answered("other", DoorReading("other", (second(1, 1.0),)), 1.0)
    world.run()
    world.is_leaving, world.order = True, ["a"]  # nobody asked at the other one
    world.run(1)
    world.silent, world.order = {"a", "b"}, ["a", "b"]
    world.doors.unanswered("other", world.now)
    assert world.run(1).arrivals == 2 * RATE  # two seconds of the other one
    assert world.doors.counts.carried == 1


def test_a_door_of_two_addresses_is_as_busy_at_the_one_that_does_not_answer():
    doors = Doors(MergeOptions(), 0.0)
    doors.listed(["a", "b"], 0.0)
    reading = DoorReading("one", (), slots=4, busy=3)
    for address in ("a", "b"):
        doors.answered(address, reading, 1.0)
    doors.unanswered("a", 2.0)
    doors.answered("b", reading, 2.0)
    assert (doors.busy(), doors.slots()) == ({"a": 3, "b": 3}, [4])


def test_a_door_of_two_addresses_stays_known_when_one_is_not_listed_any_more():
    world = TwoAddresses()
    world.run()
    world.doors.listed(["b"], world.now)
    world.silent = {"a"}
    assert world.run(60).arrivals == 300
    assert world.doors.addresses == ["b"]
    world.silent = {"a", "b"}
    world.doors.listed(["b", "c"], world.now)
    world.run(40)
    assert world.doors.counts.blind == 2


def test_intervals_from_before_the_first_look_are_not_of_this_interval():
    doors = Doors(OPTIONS, 100.0)
    doors.listed(["a"], 100.0)
    old = tuple(second(n, float(n)) for n in range(1, 111))
    doors.answered("a", DoorReading("x", old), 110.0)
    assert doors.close(110.0, 110.0).arrivals == 55  # one was under way


def test_intervals_longer_than_those_of_the_reader_are_counted_once_each():
    doors = Doors(OPTIONS, 0.0)
    doors.listed(["a"], 0.0)
    counted = 0
    for tick in range(1, 81):  # a quarter of a second each; one close in two
        now = tick / 4
        told = tuple(second(n, n + 0.2) for n in range(1, int(now - 0.2) + 1))
        doors.answered("a", DoorReading("x", told), now)
        if tick % 2 == 0:
            seen = doors.close(now, now)
            counted += seen.arrivals
    assert counted == 19 * RATE


def test_busy_slots_and_slots_are_those_last_told():
    world = World("a", "b")
    world.run()
    assert (world.doors.busy(), world.doors.slots()) == ({"a": 2, "b": 2}, [4, 4])


@given(st.lists(st.booleans(), min_size=1, max_size=40))
def test_whatever_is_missed_in_between_no_second_is_counted_twice_or_lost(answers):
    world = World("a")
    seen = []
    for each in answers:
        world.silent = set() if each else {"a"}
        seen.append(world.run(4))
    first = answers.index(True) if True in answers else len(answers)
    assert all(each is None or not each.arrivals for each in seen[:first])
    assert {each.arrivals for each in seen[first : first + 1]} <= {4 * RATE, 5 * RATE}
    assert {each.arrivals for each in seen[first + 1 :] if each is not None} <= {4 * RATE}


def test_an_interval_needs_length():
    with pytest.raises(ValueError, match="length"):
        Doors(OPTIONS, 5.0).close(5.0, 5.0)


@pytest.mark.parametrize("carry, forget", [(0.0, 10.0), (20.0, 10.0)])
def test_options_that_cannot_be_are_refused(carry, forget):
    with pytest.raises(ValueError, match="need 0 < carry <= forget"):
        MergeOptions(carry, forget)
