"""The whole program, as its users run it: real processes, real sockets, real kills."""

import asyncio
import signal
from collections import Counter

import aiohttp
import pytest

from tests.fakes.program import Program, post


@pytest.fixture
def program(tmp_path):
    """Make programs in this test's folder; leave nothing of them behind."""
    made = []

    def make(**settings) -> Program:
        made.append(Program(tmp_path, **settings))
        return made[-1]

    yield make
    for each in made:
        each.sweep()


async def test_a_request_goes_through_and_the_admin_listener_tells(program):
    running = await program().start()
    async with aiohttp.ClientSession() as session:
        async with session.post(f"{running.url}/any/path", data=b"hello") as answer:
            assert answer.status == 200
            assert "queue;dur=" in answer.headers["Server-Timing"]
            assert (await answer.json())["bytes"] == 5
        async with session.get(f"http://127.0.0.1:{running.admin}/metrics") as answer:
            assert 'autoscaler_requests_total{class="standard",outcome="completed",pool="pool"} 1.0' in (
                await answer.text()
            )
    assert (await running.get("/readyz"))["ready"]
    await running.until(lambda pool: pool["last_decision"] is not None)
    decisions = (await running.get("/api/decisions"))["decisions"]
    assert decisions[-1]["pool"] == "pool"
    assert await running.end() == 0
    assert running.replicas() == []


async def test_the_fleet_grows_with_the_load_and_shrinks_without_losing_a_request(program):
    running = await program(
        service_time=0.2,
        scaling={"replicas_min": 1, "replicas_max": 6, "scale_down_hold": "3s"},
    ).start()
    async with aiohttp.ClientSession() as session:
        sent = []
        for _ in range(80):  # 10/s of 0.2 s for 8 s
            sent.append(asyncio.create_task(post(session, running.url)))
            await asyncio.sleep(0.1)
        statuses = Counter(await asyncio.gather(*sent))
    assert statuses == {200: 80}
    grown = await running.until(lambda pool: pool["replicas"]["ready"] >= 3)
    assert grown["slots_leaked"] == 0
    await running.until(lambda pool: pool["replicas"]["ready"] == 1 and not pool["replicas"]["draining"])
    assert await running.end() == 0


async def test_killing_a_replica_under_load_loses_only_what_was_in_flight_on_it(program):
    running = await program(service_time=0.3, scaling={"replicas_min": 3, "replicas_max": 3}).start(ready=3)
    async with aiohttp.ClientSession() as session:
        sent = [asyncio.create_task(post(session, running.url)) for _ in range(24)]
        await running.until(lambda pool: pool["slots"]["busy"] == 3)
        victim = running.replicas()[0]
        victim.kill()
        statuses = Counter(await asyncio.gather(*sent))
        # one slot a replica: one request at most was on it, and it ends with a clear error
        assert statuses[200] >= 23
        assert statuses[200] + statuses[502] == 24
        healed = await running.until(lambda pool: pool["replicas"]["ready"] == 3)
        assert await post(session, running.url) == 200
    assert healed["slots_leaked"] == 0
    assert await running.end() == 0


async def test_f15_a_program_killed_at_peak_is_followed_by_one_that_adopts_its_fleet(program):
    first = await program(service_time=0.3, scaling={"replicas_min": 2, "replicas_max": 4}).start(ready=2)
    before = {each.pid for each in first.replicas()}
    await first.end(signal.SIGKILL)
    second = await program(service_time=0.3, scaling={"replicas_min": 2, "replicas_max": 4}).start(ready=2)
    assert {each.pid for each in second.replicas()} == before
    async with aiohttp.ClientSession() as session:
        assert await post(session, second.url) == 200
    assert await second.end() == 0
    assert second.replicas() == []


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGHUP])
async def test_a_drain_ends_what_is_in_flight_and_refuses_what_is_new(program, how):
    running = program(service_time=1.0)
    running.log_level = "info"
    await running.start()
    async with aiohttp.ClientSession() as session:
        sent = [asyncio.create_task(post(session, running.url)) for _ in range(2)]
        await running.until(lambda pool: pool["slots"]["busy"] == 1 and pool["queue_depth"] == 1)
        ended = asyncio.create_task(running.end(how))
        assert await asyncio.gather(*sent) == [200, 200]
        assert await ended == 0
    assert running.replicas() == []
    assert "drained; ending the replicas" in running.complaint()


async def test_a_second_instance_on_the_same_history_refuses_and_disturbs_nothing(program):
    running = await program().start()
    second = program()
    second.launch()
    assert await second.end(None) == 2
    assert "history.db" in second.complaint()
    assert "Traceback" not in second.complaint()
    async with aiohttp.ClientSession() as session:
        assert await post(session, running.url) == 200
    assert await running.end() == 0


async def test_a_taken_port_is_a_clear_error_and_starts_nothing(program):
    running = program()
    taken = await asyncio.start_server(lambda reader, writer: None, "127.0.0.1", running.data)
    async with taken:
        running.launch()
        assert await running.end(None) == 2
    assert str(running.data) in running.complaint()
    assert "Traceback" not in running.complaint()
    assert running.replicas() == []


async def test_a_state_folder_that_cannot_be_is_a_clear_error(program):
    running = program()
    running.config.write_text(running.config.read_text() + "state: /proc/nowhere\n")
    running.launch()
    assert await running.end(None) == 2
    assert "/proc/nowhere" in running.complaint()
    assert "Traceback" not in running.complaint()


async def test_a_replica_that_cannot_start_is_told_and_the_client_gets_503(program):
    running = program(
        command=["/bin/false", "{port}"],
        queue={"wait_max": "1s"},
    )
    await running.start(ready=0)
    async with aiohttp.ClientSession() as session, session.post(running.url, data=b"x") as answer:
        assert answer.status == 503
        assert "Retry-After" in answer.headers
    assert await running.end() == 0
