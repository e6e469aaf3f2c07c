"""Replicas that are listed somewhere, probed here, and told to the request path."""

import asyncio
import socket

import pytest

from autoscaler.clock import VirtualClock
from autoscaler.errors import UsageError
from autoscaler.remote_fleet import FleetReport, Member, RemoteFleet, RemoteFleetOptions, Roster
from autoscaler.remote_fleet.dns import look_up
from load.free_port import free_port
from tests.fakes.listed_servers import ScriptedServers
from tests.fakes.replica_listener import FakeReplicaListener

A, B = "http://127.0.0.1:9001", "http://127.0.0.1:9002"


def options(tmp_path, **given):
    given = {"probe_interval": 0.001, "look_interval": 0.001, **given}
    return RemoteFleetOptions(state_dir=tmp_path / "state", **given)


def listed(*members):
    return FleetReport(tuple(Member(each, each) if isinstance(each, str) else each for each in members))


async def test_who_answers_at_a_fixed_url_is_ready_before_start_returns(tmp_path):
    fleet = RemoteFleet(options(tmp_path, urls=(A, B)), ScriptedServers(A), VirtualClock())
    listener = FakeReplicaListener()
    await fleet.start(listener)
    assert (fleet.count().ready, fleet.count().starting) == (1, 0)
    await fleet.stop()
    assert listener.calls == [("ready", A)]


async def test_a_start_is_measured_from_the_wish_to_the_first_answer(tmp_path):
    clock, servers, listener = VirtualClock(), ScriptedServers(A), FakeReplicaListener()
    fleet = RemoteFleet(options(tmp_path, urls=(A, B)), servers, clock)
    await fleet.start(listener)
    fleet.wanted(2)
    assert fleet.count().starting == 1
    clock.move_to(42.0)
    servers.up.add(B)
    await listener.until(lambda: B in listener.ready)
    seen = fleet.count()
    await fleet.stop()
    assert (seen.ready, seen.starting, seen.cold_start_mean, seen.cold_start_p90) == (2, 0, 42.0, 42.0)
    again = RemoteFleet(options(tmp_path, urls=(A,)), servers, clock)
    assert again.count().cold_start_mean == 42.0


async def test_a_replica_that_comes_back_under_its_own_name_has_not_been_started(tmp_path):
    clock, servers, listener = VirtualClock(), ScriptedServers(A), FakeReplicaListener()
    fleet = RemoteFleet(options(tmp_path), servers, clock)
    fleet.told(listed(Member("job-17", A)))
    await fleet.start(listener)
    fleet.wanted(1)
    fleet.told(listed())  # its container is made anew
    clock.move_to(3.0)
    assert fleet.count().ready == 0
    fleet.told(listed(Member("job-17", A)))
    await listener.until(lambda: "job-17" in listener.ready)
    assert (fleet.count().ready, fleet.count().starting) == (1, 0)
    assert fleet.count().cold_start_mean == 60.0  # as before
    servers.up.clear()
    fleet.told(listed())
    clock.move_to(50.0)
    fleet.count()
    fleet.told(listed(Member("job-18", A)))
    clock.move_to(93.0)
    servers.up.add(A)
    await listener.until(lambda: "job-18" in listener.ready)
    assert fleet.count().cold_start_mean == 43.0
    await fleet.stop()


async def test_who_is_on_the_first_list_was_there_before_however_late_it_is_told(tmp_path):
    clock, servers, listener = VirtualClock(), ScriptedServers(), FakeReplicaListener()
    fleet = RemoteFleet(options(tmp_path), servers, clock)
    await fleet.start(listener)  # while nobody tells
    fleet.told(listed(Member("job-17", A)))
    fleet.wanted(2)
    clock.move_to(3.0)
    servers.up.add(A)
    await listener.until(lambda: "job-17" in listener.ready)
    assert fleet.count().cold_start_mean == 60.0
    fleet.told(listed(Member("job-17", A), Member("job-18", B)))
    clock.move_to(43.0)
    servers.up.add(B)
    await listener.until(lambda: "job-18" in listener.ready)
    assert fleet.count().cold_start_mean == 43.0
    await fleet.stop()


async def test_what_should_have_come_long_ago_is_overdue_and_not_starting(tmp_path):
    clock = VirtualClock()
    fleet = RemoteFleet(options(tmp_path, urls=(A, B), start_timeout=100.0), ScriptedServers(A), clock)
    await fleet.start(FakeReplicaListener())
    fleet.wanted(3)
    clock.move_to(100.0)
    seen = fleet.count()
    await fleet.stop()
    assert (seen.ready, seen.starting, seen.overdue) == (1, 0, 2)


async def test_who_stands_by_counts_on_nothing_that_it_asked_for(tmp_path):
    clock = VirtualClock()
    fleet = RemoteFleet(options(tmp_path, urls=(A, B), start_timeout=100.0), ScriptedServers(A), clock)
    await fleet.start(FakeReplicaListener())
    fleet.wanted(9)
    ordered = fleet.count()
    fleet.stand_by()
    clock.move_to(200.0)
    late = fleet.count()
    fleet.wanted(0)
    let_go = fleet.count()
    fleet.stand_by()
    kept = fleet.count()
    await fleet.stop()
    assert (ordered.ready, ordered.starting) == (1, 8)
    assert (late.ready, late.starting, late.overdue) == (1, 0, 0)
    assert (let_go.ready, let_go.draining) == (0, 1)
    assert (kept.ready, kept.draining) == (1, 0)


async def test_a_second_program_that_looks_after_the_same_pool_is_refused(tmp_path):
    first, second, third = (
        RemoteFleet(options(tmp_path, urls=(A,)), ScriptedServers(A), VirtualClock()) for _ in range(3)
    )
    await first.start(FakeReplicaListener())
    with pytest.raises(UsageError, match="state is in use by another instance; end it or name another"):
        await second.start(FakeReplicaListener())
    await second.stop()
    await first.stop()
    await third.start(FakeReplicaListener())
    await third.stop()


async def test_what_is_let_go_is_not_counted_on_any_more(tmp_path):
    fleet = RemoteFleet(options(tmp_path, urls=(A, B)), ScriptedServers(A, B), VirtualClock())
    await fleet.start(FakeReplicaListener())
    fleet.wanted(1)
    seen = fleet.count()
    await fleet.stop()
    assert (seen.ready, seen.draining, seen.ordered) == (1, 1, 1)


async def test_replicas_that_were_there_before_us_measure_nothing(tmp_path):
    fleet = RemoteFleet(options(tmp_path, urls=(A,)), ScriptedServers(A), VirtualClock())
    fleet.wanted(1)
    await fleet.start(FakeReplicaListener())
    assert fleet.count().cold_start_mean == 60.0
    await fleet.stop()


async def test_who_is_told_is_used_once_it_answers_and_lost_once_it_is_not_told(tmp_path):
    servers, listener = ScriptedServers(), FakeReplicaListener()
    fleet = RemoteFleet(options(tmp_path), servers, VirtualClock())
    fleet.told(listed(A))
    await fleet.start(listener)
    assert (listener.calls, fleet.count().ready) == ([], 0)
    servers.up = {A, B}
    fleet.told(listed(A, B))
    await listener.until(lambda: set(listener.ready) == {A, B})
    fleet.told(listed(B))
    assert listener.calls[-1] == ("lost", A)
    await fleet.stop()


async def test_a_told_count_of_starting_ones_is_believed_with_those_that_do_not_answer_yet(tmp_path):
    clock = VirtualClock()
    fleet = RemoteFleet(options(tmp_path, start_timeout=100.0), ScriptedServers(A), clock)
    fleet.told(FleetReport((Member(A, A), Member(B, B)), starting=3))
    await fleet.start(FakeReplicaListener())
    fleet.wanted(9)
    assert (fleet.count().ready, fleet.count().starting) == (1, 4)
    clock.move_to(100.0)
    assert fleet.count().starting == 3  # who is listed for so long and never answered will not
    await fleet.stop()


async def test_a_draining_replica_gets_nothing_new_and_can_be_taken_back(tmp_path):
    listener = FakeReplicaListener()
    fleet = RemoteFleet(options(tmp_path), ScriptedServers(A), VirtualClock())
    fleet.told(listed(A))
    await fleet.start(listener)
    fleet.told(listed(Member(A, A, is_draining=True)))
    assert (fleet.count().ready, fleet.count().draining) == (0, 1)
    fleet.told(listed(A))
    assert (fleet.count().ready, fleet.count().draining) == (1, 0)
    fleet.told(listed(Member(A, A, is_draining=True)))
    fleet.told(listed())
    await fleet.stop()
    assert [verb for verb, _ in listener.calls] == ["ready", "draining", "ready", "draining", "lost"]


async def test_a_name_that_moves_to_another_address_is_another_replica(tmp_path):
    listener = FakeReplicaListener()
    fleet = RemoteFleet(options(tmp_path), ScriptedServers(A, B), VirtualClock())
    fleet.told(listed(Member("job", A)))
    await fleet.start(listener)
    fleet.told(listed(Member("job", B)))
    await listener.until(lambda: len(listener.calls) == 3)
    assert listener.calls == [("ready", "job"), ("lost", "job"), ("ready", "job")]
    assert listener.ready["job"].url == B
    await fleet.stop()


async def test_a_ready_replica_is_lost_after_failures_in_a_row_only(tmp_path):
    servers, listener = ScriptedServers(A), FakeReplicaListener()
    roster = Roster(options(tmp_path, probe_failures=3), servers, VirtualClock(), came=lambda: None)
    roster.start(listener)
    roster.told([Member(A, A)])
    await roster.adopted()
    watched = roster._watched[A]
    for answers in (False, False, True, False, False):
        roster._take_in(watched, answers)
    assert listener.calls == [("ready", A)]
    roster._take_in(watched, False)
    assert listener.calls == [("ready", A), ("lost", A)]
    await roster.stop()


async def test_every_address_of_a_name_is_a_replica():
    found = await look_up("http://localhost:9001/base")
    assert found is not None
    assert "http://127.0.0.1:9001/base" in {member.url for member in found}


@pytest.mark.parametrize(
    ("failure", "answer"), [(socket.EAI_NONAME, ()), (socket.EAI_AGAIN, None), (socket.EAI_FAIL, None)]
)
async def test_no_address_is_an_answer_and_no_answer_is_none(failure, answer, monkeypatch):
    async def fails(*given, **named):
        raise socket.gaierror(failure, "as the test wants")

    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", fails)
    assert await look_up("http://chat.default.svc:8000") == answer


async def test_a_name_server_that_is_away_changes_nothing_and_an_empty_name_empties_the_fleet(
    tmp_path, monkeypatch
):
    answers = [[A], "away", "away", [A, B], []]

    async def scripted(url):
        found = answers.pop(0) if answers else []
        return None if found == "away" else tuple(Member(each, each) for each in found)

    monkeypatch.setattr("autoscaler.remote_fleet.fleet.look_up", scripted)
    listener = FakeReplicaListener()
    fleet = RemoteFleet(options(tmp_path, dns="http://chat:8000"), ScriptedServers(A, B), VirtualClock())
    await fleet.start(listener)
    await listener.until(lambda: ("lost", A) in listener.calls)
    await fleet.stop()
    assert ("lost", A) not in listener.calls[:1]
    assert listener.calls[0] == ("ready", A)


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ({"urls": (A,), "dns": A}, "give one of them"),
        ({"dns": "chat:8000"}, "'chat:8000' is no base URL"),
        ({"dns": "http://a..b:8000"}, "'http://a..b:8000' is no base URL"),
        ({"urls": (A, "http://a:0")}, "'http://a:0' is no base URL"),
        ({"urls": (A, A + "/")}, "is listed twice"),
        ({"urls": (A,), "probe_failures": 0}, "need probe_failures >= 1"),
        ({"urls": (A,), "start_timeout": 0.0}, "need start_timeout > 0 s"),
    ],
)
def test_what_cannot_work_is_refused(tmp_path, given, complaint):
    with pytest.raises(ValueError) as refusal:
        options(tmp_path, **given)
    assert complaint in str(refusal.value)


class TestWhatIsThereAndNotReady:
    """A server whose port takes connections and whose probe is not answered, as with a wrong path of it."""

    @pytest.fixture
    async def listening(self):
        async def ignore(reader, writer):
            writer.close()

        servers = [await asyncio.start_server(ignore, "127.0.0.1", 0) for _ in range(2)]
        yield [f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}" for server in servers]
        for server in servers:
            server.close()

    async def test_at_fixed_urls_it_counts_as_starting_and_who_does_not_listen_does_not(
        self, tmp_path, listening, capsys
    ):
        clock = VirtualClock()
        fleet = RemoteFleet(
            options(tmp_path, urls=(*listening, f"http://127.0.0.1:{free_port()}")), ScriptedServers(), clock
        )
        await fleet.start(FakeReplicaListener())
        seen = fleet.count()
        assert (seen.ready, seen.starting, seen.ordered) == (0, 2, 2)
        assert capsys.readouterr().out.count("is the path of it right?") == 2
        clock.move_to(601.0)  # later than any start
        assert fleet.count().starting == 0
        await fleet.stop()

    async def test_those_that_were_ordered_and_listen_by_now_count_once(self, tmp_path, listening):
        fleet = RemoteFleet(options(tmp_path, urls=tuple(listening)), ScriptedServers(), VirtualClock())
        await fleet.start(FakeReplicaListener())
        fleet.wanted(2)
        assert fleet.count().starting == 2
        await fleet.stop()

    async def test_those_that_are_told_as_ready_and_do_not_answer_count_as_starting(self, tmp_path):
        fleet = RemoteFleet(options(tmp_path), ScriptedServers(), VirtualClock())
        fleet.told(FleetReport((Member("a", A), Member("b", B)), starting=None))
        await fleet.start(FakeReplicaListener())
        assert fleet.count().starting == 2
        await fleet.stop()


async def test_what_is_refused_again_and_again_is_overdue_and_not_counted_on(tmp_path):
    fleet = RemoteFleet(options(tmp_path, urls=(A, B)), ScriptedServers(A), VirtualClock())
    await fleet.start(FakeReplicaListener())
    fleet.wanted(3)
    fleet.refused(is_so=True)
    seen = fleet.count()
    assert (seen.ready, seen.starting, seen.overdue, fleet.overdue) == (1, 0, 2, 2)
    fleet.refused(is_so=False)
    assert (fleet.count().starting, fleet.overdue) == (2, 0)
    await fleet.stop()
