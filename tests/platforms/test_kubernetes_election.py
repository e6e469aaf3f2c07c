"""Who leads: as a conversation, and as a law over candidates whose clocks differ and whose calls are slow."""

import heapq
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoscaler.platforms.kubernetes.election import Election, ElectionTimes, LeaseRecord

TIMES = ElectionTimes(duration=10.0, renew_deadline=7.0, renew_interval=2.0)


def a_record(holder="other", renewed="1", version="5", duration=10.0):
    return LeaseRecord(holder, duration, renewed, acquired="0", transitions=0, version=version)


def a_leader(asked_at=0.0):
    election = Election("me", TIMES)
    election.saw(None, asked_at)
    election.wrote(a_record("me"), asked_at, asked_at + 0.1)
    return election


def test_nobody_leads_who_has_not_looked():
    election = Election("me", TIMES)
    assert not election.leads(0.0)
    assert election.holder is None


def test_a_lease_that_is_not_there_is_free_and_who_wrote_it_leads():
    election = Election("me", TIMES)
    election.saw(None, 1.0)
    assert election.may_write(1.0)
    election.wrote(a_record("me"), asked_at=1.0, now=1.5)
    assert election.leads(1.5)
    assert election.holder == "me"


def test_a_leader_leads_until_its_deadline_counted_from_before_it_asked():
    election = a_leader(asked_at=1.0)
    assert election.leads(7.99)
    assert not election.leads(8.0)


def test_another_ones_lease_gets_free_when_it_was_not_seen_to_change_for_its_duration():
    election = Election("me", TIMES)
    election.saw(a_record(renewed="1"), 0.0)
    assert not election.may_write(0.0)
    election.saw(a_record(renewed="2", version="6"), 2.0)
    election.saw(a_record(renewed="2", version="6"), 4.0)
    assert not election.may_write(11.99)
    assert election.may_write(12.0)


def test_what_others_note_on_the_object_is_no_sign_of_life():
    election = Election("me", TIMES)
    election.saw(a_record(version="5"), 0.0)
    election.saw(a_record(version="6"), 9.0)
    assert election.may_write(10.0)


def test_the_times_in_the_lease_are_never_compared_with_a_clock():
    election = Election("me", TIMES)
    election.saw(a_record(renewed="1970-01-01T00:00:00.000000Z"), 0.0)
    assert not election.may_write(5.0)


def test_the_holder_says_how_patient_others_have_to_be():
    election = Election("me", TIMES)
    election.saw(a_record(duration=60.0), 0.0)
    assert not election.may_write(59.0)


def test_a_lease_that_was_given_up_is_free_at_once():
    election = Election("me", TIMES)
    election.saw(a_record(holder=""), 0.0)
    assert election.may_write(0.0)


def test_who_finds_another_holder_leads_no_more():
    election = a_leader()
    election.saw(a_record("other"), 1.0)
    assert not election.leads(1.0)


def test_who_was_late_but_not_replaced_may_go_on():
    election = a_leader()
    election.saw(a_record("me"), 20.0)
    assert not election.leads(20.0)
    assert election.may_write(20.0)


def test_the_next_look_comes_when_the_lease_gets_free():
    election = Election("me", TIMES)
    election.saw(a_record(), 0.0)
    assert election.next_look(1.0) == 3.0
    assert election.next_look(9.5) == 10.0
    assert election.next_look(10.0) == 12.0  # it is free, but could not be written


@pytest.mark.parametrize("wrong", [{"renew_deadline": 10.0}, {"renew_interval": 7.0}, {"duration": 9.5}])
def test_times_that_would_let_two_lead_are_refused(wrong):
    with pytest.raises(ValueError, match="need"):
        replace(TIMES, **wrong)


class World:
    """A Lease, and candidates that look at it in turns; calls take time, and clocks are far apart."""

    def __init__(self, offsets, delays):
        self.offsets, self.delays = offsets, delays
        self.candidates = [Election(f"c{i}", TIMES) for i in range(len(offsets))]
        self.record, self.version, self.calls = None, 0, 0
        self.dead, self.reigns = {}, []

    def delay(self):
        self.calls += 1
        return self.delays[self.calls % len(self.delays)]

    def turn(self, i, at):
        """Candidate `i` looks at time `at`, and writes if it may; returns when it looks again."""
        election, offset = self.candidates[i], self.offsets[i]
        read_at = at + self.delay()
        election.saw(self.record, read_at + offset)
        if not election.may_write(read_at + offset):
            return election.next_look(read_at + offset) - offset
        seen = election.seen
        yield_at = read_at + self.delay()  # when the write reaches the server
        return (yield_at, seen, read_at)

    def run(self, until):
        """Play until then; the times of each reign go to `reigns`, as the world's clock has them."""
        events = [(0.01 * i, i, None) for i in range(len(self.candidates))]
        heapq.heapify(events)
        while events and events[0][0] < until:
            at, i, write = heapq.heappop(events)
            if at >= self.dead.get(i, until):
                continue
            election, offset = self.candidates[i], self.offsets[i]
            if write is None:
                again = self.turn(i, at)
                if isinstance(again, tuple):
                    heapq.heappush(events, (again[0], i, again[1:]))
                else:
                    heapq.heappush(events, (max(again, at + 0.01), i, None))
                continue
            seen, asked_at = write
            if (seen.version if seen else None) == (self.record.version if self.record else None):
                self.version += 1
                self.record = LeaseRecord(election.identity, 10.0, str(at), "0", 0, str(self.version))
                heard_at = at + self.delay()
                election.wrote(self.record, asked_at + offset, heard_at + offset)
                self.reigns.append((heard_at, asked_at + TIMES.renew_deadline, i))
            heapq.heappush(events, (election.next_look(at + offset) - offset, i, None))


@given(
    offsets=st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=4),
    delays=st.lists(st.floats(0.0, 4.0), min_size=1, max_size=12),
)
def test_never_do_two_lead_however_slow_the_calls_and_far_apart_the_clocks(offsets, delays):
    world = World(offsets, delays)
    world.run(until=120.0)
    reigns = [reign for reign in world.reigns if reign[0] < reign[1]]
    for begin, end, who in reigns:
        for other_begin, other_end, other in reigns:
            assert who == other or end <= other_begin + 1e-6 or other_end <= begin + 1e-6


@given(offsets=st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=3), died=st.floats(20.0, 40.0))
def test_who_dies_is_replaced_within_fifteen_seconds(offsets, died):
    world = World(offsets, delays=[0.1])
    world.dead[0] = died
    world.run(until=80.0)
    first = min(begin for begin, _, who in world.reigns if who != 0)
    assert died < first <= died + 15.0
