"""A pool whose platform never delivers, and one that stands in for it: the program, as its users run it."""

import asyncio
from collections import Counter
from math import isnan

import aiohttp
import pytest
import yaml

from autoscaler.app.status import pool_status
from autoscaler.telemetry.history_reader import HistoryReader
from autoscaler.telemetry.verification import verify
from tests.fakes.pools import a_pool
from tests.fakes.program import Program, post

NOTHING_COMES = {
    "kind": "exec",
    "scale": ["true", "{replicas}"],
    "status": ["echo", '{"ready": []}'],
    "status_interval": "100ms",
    "start_timeout": "1s",
    "cold_start_initial": "1s",
}
ASLEEP = {"replicas_min": 0, "replicas_max": 3, "scale_down_hold": "2s"}


@pytest.fixture
def program(tmp_path):
    """`spare` with real servers stands in for `wanted`, which gets none; both are asleep."""
    made = Program(tmp_path, scaling=ASLEEP, route={"prefix": "/spare"})
    plain = yaml.safe_load(made.config.read_text())
    wanted = {"platform": NOTHING_COMES, "scaling": ASLEEP, "substitute": "spare"}
    plain["pools"] = {"spare": plain["pools"]["pool"], "wanted": wanted}
    made.config.write_text(yaml.safe_dump(plain))
    yield made
    made.sweep()


async def pools(running):
    return {pool["name"]: pool for pool in (await running.get("/api/status"))["pools"]}


async def metrics(running):
    url = f"http://127.0.0.1:{running.admin}/metrics"
    async with aiohttp.ClientSession() as session, session.get(url) as answer:
        return await answer.text()


async def test_requests_that_wait_for_what_never_comes_are_served_by_the_second_pool(program):
    running = await program.start(ready=0)
    async with aiohttp.ClientSession() as session:
        statuses = await asyncio.gather(*[post(session, running.url) for _ in range(4)])
        assert Counter(statuses) == {200: 4}
        assert await post(session, running.url) == 200  # the shortage is known now: it goes there at once
    there = await pools(running)
    assert there["wanted"]["requests"]["completed"] == 0
    assert there["spare"]["requests"]["completed"] == 5
    (pair,) = there["wanted"]["substitutions"]
    assert (pair["pool"], pair["substitute"], pair["handed_over"]) == ("wanted", "spare", 5)
    said = await metrics(running)
    assert 'autoscaler_substituted_requests_total{by="spare",pool="wanted"} 5.0' in said
    decisions = (await running.get("/api/decisions"))["decisions"]
    told = {
        each["pool"]: " ".join(d["sentence"] for d in decisions if d["pool"] == each["pool"])
        for each in decisions
    }
    assert "another pool stands in for 100% of the demand" in told["wanted"]
    assert "it stands in for" in told["spare"]
    await running.until(lambda pool: pool["replicas"]["desired"] == pool["replicas"]["ready"] == 0)
    there = await pools(running)
    assert there["wanted"]["replicas"]["desired"] == 0
    assert [pool["slots_leaked"] + pool["ledger_difference"] for pool in there.values()] == [0, 0]
    assert await running.end() == 0
    assert running.replicas() == []
    with HistoryReader(running.folder / "history.db") as reader:  # what the pools say of each other included
        verdicts = [verify(reader, pool) for pool in ("wanted", "spare")]
    assert all(verdict.holds and verdict.executed for verdict in verdicts)


async def test_a_pool_without_a_substitute_neither_gives_away_nor_says_a_word_of_it(tmp_path):
    async with a_pool(tmp_path, NOTHING_COMES, scaling={"replicas_min": 2}) as pool:
        await pool.start()
        async with asyncio.timeout(20):
            while (state := pool.control.state) is None or not state.decision.numbers.replicas_late:
                await asyncio.sleep(0.1)
                await pool.control.tick()
        numbers = state.decision.numbers
        assert isnan(numbers.substituted_share)
        assert isnan(numbers.standing_in_rate)
        pool.drive.give_away(wanted=True)
        assert (pool.drive.gives_away, pool_status(pool, 1.0).substitutions) == (False, ())
