"""The whole program, with what its file says of queue and dispatch, before servers that the test scripts."""

import asyncio

import pytest
import yaml

from tests.fakes.client import Answer, Client
from tests.fakes.program import Program
from tests.fakes.upstream import Received, Upstream, UpstreamWire, says


class StaticProgram(Program):
    """The program before servers that run already."""

    def __init__(self, folder, *servers: Upstream, slots: int = 1, **pool) -> None:
        super().__init__(folder, **pool)
        settings = yaml.safe_load(self.config.read_text())
        urls = [f"http://127.0.0.1:{server.port}" for server in servers]
        settings["pools"]["pool"] |= {
            "slots_per_replica": slots,
            "platform": {"kind": "static", "urls": urls, "probe_interval": "100ms"},
        }
        self.config.write_text(yaml.safe_dump(settings))

    async def ask(self, target: str, *fields: str, body: bytes = b"{}") -> Answer:
        client = await Client.connect(self.data)
        try:
            client.ask(target, body, *fields)
            return await client.answer()
        finally:
            client.close()


class Model:
    """Is ready whenever it is asked; says its name, and nothing to those whom it is told to keep waiting."""

    def __init__(self, name: bytes) -> None:
        self.name = name
        self.keeps_waiting = 0
        self.asked: list[str] = []

    async def __call__(self, wire: UpstreamWire, request: Received) -> None:
        if request.head.method == "GET":
            return await says()(wire, request)
        self.asked.append(request.head.target)
        if self.keeps_waiting:
            self.keeps_waiting -= 1
            return await wire.closed.wait()
        return await says(self.name)(wire, request)


@pytest.fixture
def programs(tmp_path):
    """Make programs in this test's folder; leave nothing of them behind."""
    made = []

    def make(*servers: Upstream, **settings) -> StaticProgram:
        made.append(StaticProgram(tmp_path, *servers, **settings))
        return made[-1]

    yield make
    for each in made:
        each.sweep()


async def test_an_urgent_request_takes_the_slot_of_one_that_can_wait(programs):
    """Classes, their order, and preemption, from the file to the wire."""
    model = Model(b"ok")
    async with Upstream(model) as server:
        running = await programs(
            server,
            queue={
                "classes": {
                    "people": {"priority": 1, "preempts": True},
                    "batch": {"priority": 2, "preemptible": True},
                }
            },
            route={"priority_class": "batch"},
        ).start()
        model.keeps_waiting = 1
        batch = asyncio.create_task(running.ask("/batch"))
        async with asyncio.timeout(10):
            while model.asked != ["/batch"]:
                await asyncio.sleep(0.01)
        assert (await running.ask("/urgent", "Priority: u=0")).status == 200
        assert (await batch).status == 200
        assert model.asked == ["/batch", "/urgent", "/batch"]
        assert await running.end() == 0


async def test_a_class_waits_as_long_as_its_own_time_and_a_broadcast_needs_no_slot(programs):
    model = Model(b"ok")
    async with Upstream(model) as server:
        running = await programs(
            server,
            queue={"classes": {"people": {"priority": 1}, "batch": {"priority": 2, "wait_max": "200ms"}}},
            route={"priority_class": "people", "broadcast": ["/flush"]},
        ).start()
        model.keeps_waiting = 1
        holding = await Client.connect(running.data)
        holding.ask("/long", b"{}")
        await running.until(lambda pool: pool["slots"]["busy"] == 1)
        late = await running.ask("/batch", "Priority: u=7")
        assert (late.status, late.json["code"]) == (504, "deadline_passed")
        assert (await running.ask("/flush")).status == 200
        holding.close()
        assert await running.end() == 0


async def test_sessions_stay_together_and_a_late_request_is_sent_again_elsewhere(programs):
    a, b = Model(b"a"), Model(b"b")
    async with Upstream(a) as first, Upstream(b) as second:
        running = await programs(
            first,
            second,
            slots=4,
            route={"hedge": True},
            dispatch={
                "affinity": {"session_header": "X-Session", "load_bound": 8},
                "hedging": {"delay_min": "20ms", "quantile": 0.5, "share": 1},
            },
        ).start()
        homes = {
            session: {(await running.ask("/x", f"X-Session: s{session}")).body for _ in range(3)}
            for session in range(10)
        }
        assert all(len(bodies) == 1 for bodies in homes.values())
        assert set.union(*homes.values()) == {b"a", b"b"}
        a.keeps_waiting = b.keeps_waiting = 1
        (home,) = homes[0]
        late = asyncio.create_task(running.ask("/x", "X-Session: s0"))
        await asyncio.sleep(0)
        if home == b"a":
            b.keeps_waiting = 0
        else:
            a.keeps_waiting = 0
        answer = await late
        assert (answer.status, answer.body) == (200, b"b" if home == b"a" else b"a")
        assert await running.end() == 0


async def test_f11_a_request_wakes_the_pool_at_once_and_not_at_the_next_decision(tmp_path):
    running = Program(tmp_path, scaling={"replicas_min": 0, "replicas_max": 1})
    settings = yaml.safe_load(running.config.read_text()) | {"control_interval": "5m"}
    running.config.write_text(yaml.safe_dump(settings))
    try:
        await running.start(ready=0)
        client = await Client.connect(running.data)
        for _ in range(3):  # a burst, of which the first wakes the pool
            client.ask("/x", b"{}")
        for _ in range(3):
            assert (await client.answer()).status == 200
        client.close()
        assert len((await running.get("/api/decisions"))["decisions"]) == 1
        assert await running.end() == 0
    finally:
        running.sweep()


async def test_f11_while_the_pool_sleeps_the_hasty_are_told_and_the_patient_are_served(tmp_path):
    running = Program(
        tmp_path,
        scaling={"replicas_min": 0, "replicas_max": 1},
        queue={"wait_max": "5s", "cold_wait_max": "3h"},
    )
    settings = yaml.safe_load(running.config.read_text())
    settings["pools"]["pool"]["platform"] |= {"cold_start_initial": "1h", "ready_timeout": "2h"}
    running.config.write_text(yaml.safe_dump(settings))
    try:
        await running.start(ready=0)
        client = await Client.connect(running.data)
        client.ask("/x", b"{}", "X-Request-Timeout-Ms: 20000")
        hasty = await client.answer()
        assert (hasty.status, hasty.json["code"]) == (503, "no_replica_in_time")
        assert int(hasty.head.get("Retry-After") or 0) > 3000
        client.ask("/x", b"{}")
        assert (await client.answer()).status == 200
        client.close()
        assert await running.end() == 0
    finally:
        running.sweep()


async def test_servers_of_others_are_shown_before_the_first_decision_and_left_as_they_are(programs):
    async with Upstream(Model(b"ok")) as server:
        running = programs(server)
        running.log_level = "info"
        text = running.config.read_text()
        running.config.write_text(text.replace("control_interval: 1s", "control_interval: 1m"))
        await running.start()
        pool = (await running.get("/api/status"))["pools"][0]
        assert pool["last_decision"] is None
        assert (pool["replicas"]["ready"], pool["replicas"]["desired"]) == (1, 1)
        assert await running.end() == 0
    assert "drained; the fleet stays as it is" in running.complaint()
