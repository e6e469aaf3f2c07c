"""Servers given as a list."""

import pytest

from autoscaler.platforms.static import Static, StaticOptions
from tests.fakes.replica_listener import FakeReplicaListener

A, B = "http://127.0.0.1:9001", "http://127.0.0.1:9002"


class ScriptedServer:
    """Answers probes as the test wants, and counts them."""

    def __init__(self, up):
        self.up, self.asked = set(up), []

    async def ready(self, url):
        self.asked.append(url)
        return url in self.up


async def started(server, listener, **given):
    platform = Static(StaticOptions(urls=(A, B + "/"), probe_interval=0.001, **given), server)
    await platform.start(listener)
    return platform


async def test_the_first_look_reports_who_answers_before_start_returns():
    listener, server = FakeReplicaListener(), ScriptedServer({A})
    platform = await started(server, listener, slots_per_replica=4)
    fleet = await platform.fleet()
    await platform.stop()
    assert [(replica.url, replica.slots) for replica in listener.ready.values()] == [(A, 4)]
    assert (fleet.ready, fleet.starting, fleet.draining, fleet.slots_per_replica) == (1, 0, 0, 4)


async def test_one_success_makes_a_server_ready():
    listener, server = FakeReplicaListener(), ScriptedServer({A})
    platform = await started(server, listener)
    server.up.add(B)
    await listener.until(lambda: B in listener.ready)
    await platform.stop()
    assert listener.calls == [("ready", A), ("ready", B)]


async def test_a_ready_server_is_lost_after_failures_in_a_row_only():
    listener, server = FakeReplicaListener(), ScriptedServer({A, B})
    platform = Static(StaticOptions(urls=(A, B), probe_failures=3), server)
    replica = platform._replicas[0]
    for up in (True, False, False, True, False, False):
        server.up = {A} if up else set()
        await platform._probe(replica, listener)
    assert listener.calls == [("ready", A)]
    await platform._probe(replica, listener)
    await platform._probe(replica, listener)
    assert listener.calls == [("ready", A), ("lost", A)]
    server.up = {A}
    await platform._probe(replica, listener)
    assert listener.calls[2:] == [("ready", A)]


async def test_a_wish_is_remembered_and_changes_nothing():
    listener = FakeReplicaListener()
    platform = await started(ScriptedServer({A, B}), listener)
    assert platform.recommended is None
    await platform.scale_to(7)
    fleet = await platform.fleet()
    await platform.stop()
    assert (platform.recommended, fleet.ready) == (7, 2)


async def test_nobody_is_probed_after_stop():
    server = ScriptedServer({A})
    platform = await started(server, FakeReplicaListener())
    await platform.stop()
    assert all(watch.done() for watch in platform._watches)


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ({"urls": ()}, "urls is empty"),
        ({"urls": ("localhost:80",)}, "'localhost:80' is no base URL"),
        ({"urls": (A, A + "/")}, f"'{A}' is listed twice"),
        ({"urls": (A,), "probe_failures": 0}, "got 1, 0"),
        ({"urls": (A,), "probe_interval": 0.0}, "got 0.0, 60.0"),
    ],
)
def test_what_cannot_work_is_refused(given, complaint):
    with pytest.raises(ValueError) as refusal:
        StaticOptions(**given)
    assert complaint in str(refusal.value)
