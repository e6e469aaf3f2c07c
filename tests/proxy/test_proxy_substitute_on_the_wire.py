"""On the wire: a request goes to the pool that stands in for its own, and all that is owed is owed there."""

import asyncio
from contextlib import asynccontextmanager

import pytest

from autoscaler.clock import SystemClock
from autoscaler.dispatch import Dispatcher, QueueOptions
from autoscaler.dispatch.hedge import HedgeOptions
from autoscaler.dispatch.options import DispatchOptions
from autoscaler.domain import Outcome
from autoscaler.proxy.drive import PoolDrive
from autoscaler.proxy.options import ProxyOptions, RouteOptions
from autoscaler.proxy.server import PoolRoute, ProxyServer
from tests.fakes.client import Client
from tests.fakes.front import Facts
from tests.fakes.upstream import Upstream, says, says_nothing


class TwoPools:
    """`short` has the path, and no replica; `spare` stands in for it."""

    def __init__(self, hedging: HedgeOptions | None) -> None:
        clock, self.facts = SystemClock(), Facts()
        self.short, self.spare = (
            PoolDrive(name, Dispatcher(QueueOptions(), DispatchOptions(hedging=hedging)), clock, [self.facts])
            for name in ("short", "spare")
        )
        self.short.substitute_by(self.spare)
        routes = [
            PoolRoute(drive, RouteOptions(prefix=prefix, hedge=hedging is not None))
            for drive, prefix in ((self.short, "/"), (self.spare, "/spare"))
        ]
        self.server = ProxyServer(ProxyOptions(port=0, linger=0.1), routes, clock)

    async def asks(self) -> Client:
        client = await Client.connect(self.server.port)
        client.ask("/v1/x", b"{}")
        return client

    async def waits(self, count: int) -> None:
        async with asyncio.timeout(10):
            while self.short.snapshot().waiting != count:
                await asyncio.sleep(0.002)

    async def check_nothing_is_left(self) -> None:
        async with asyncio.timeout(10):
            while self.server.in_flight or not (self.short.idle and self.spare.idle):
                await asyncio.sleep(0.002)
        self.facts.check_all_has_ended()
        self.server.reconcile()
        for drive in (self.short, self.spare):
            assert (drive.snapshot().slots_leaked, drive.snapshot().ledger_difference) == (0, 0)


@asynccontextmanager
async def two_pools(hedging: HedgeOptions | None = None):
    pools = TwoPools(hedging)
    await pools.server.start()
    try:
        yield pools
        await pools.check_nothing_is_left()
    finally:
        await pools.server.stop()


async def test_a_request_that_waits_is_answered_by_the_second_pool_as_soon_as_that_has_a_slot():
    async with Upstream(says(b"from spare")) as model, two_pools() as pools:
        client = await pools.asks()
        await pools.waits(1)
        pools.short.give_away(wanted=True)
        assert pools.short.snapshot().waiting == 1
        pools.spare.replica_ready(model.replica())
        answer = await client.answer("POST")
        assert (answer.status, answer.body) == (200, b"from spare")
        assert pools.facts.outcomes == {Outcome.COMPLETED: 1}
        client.close()


async def test_the_ledger_agrees_with_the_calls_while_it_is_served():
    async with Upstream(says_nothing) as model, two_pools() as pools:
        pools.spare.replica_ready(model.replica())
        pools.short.give_away(wanted=True)
        client = await pools.asks()
        await model.got(1)
        assert (pools.spare.in_flight_for("short"), pools.spare.snapshot().busy) == (1, 1)
        pools.server.reconcile()
        assert [drive.snapshot().ledger_difference for drive in (pools.short, pools.spare)] == [0, 0]
        client.reset()
        await model.wires[0].wait_closed()


async def test_a_client_that_leaves_in_the_queue_or_in_service_frees_all():
    async with Upstream(says_nothing) as model, two_pools() as pools:
        pools.short.give_away(wanted=True)
        first, second = await pools.asks(), await pools.asks()
        await pools.waits(2)
        pools.spare.replica_ready(model.replica())
        await model.got(1)
        second.reset()
        first.reset()
        await pools.check_nothing_is_left()
        assert pools.facts.outcomes == {Outcome.CANCELLED: 2}


@pytest.mark.parametrize("hedging", [None, HedgeOptions()])
async def test_a_replica_that_refuses_is_tried_elsewhere_in_the_second_pool(hedging):
    async with Upstream() as gone:
        nobody = gone.replica(id="gone")
    async with Upstream(says(b"from spare")) as model, two_pools(hedging) as pools:
        pools.short.give_away(wanted=True)
        pools.spare.replica_ready(nobody)
        pools.spare.replica_ready(model.replica(id="there"))
        for _ in range(2):
            client = await pools.asks()
            answer = await client.answer("POST")
            assert (answer.status, answer.body) == (200, b"from spare")
            client.close()


async def test_a_drain_lets_those_who_wait_go_over():
    async with Upstream(says()) as model, two_pools() as pools:
        pools.short.give_away(wanted=True)
        client = await pools.asks()
        await pools.waits(1)
        draining = asyncio.create_task(pools.server.drain())
        async with asyncio.timeout(10):
            while not pools.spare._dispatcher.closing:
                await asyncio.sleep(0.01)
        pools.spare.replica_ready(model.replica())
        assert (await client.answer("POST")).status == 200
        await draining
        client.close()
