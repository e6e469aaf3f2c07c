"""On the wire: calls that are stopped for more urgent requests, and calls that are made twice."""

import asyncio
from contextlib import asynccontextmanager

import pytest

from autoscaler.dispatch import DispatchOptions, PriorityClass, QueueOptions
from autoscaler.dispatch.hedge import HedgeOptions
from autoscaler.domain import Outcome
from autoscaler.proxy.options import RouteOptions
from tests.fakes.front import front
from tests.fakes.upstream import Received, Upstream, UpstreamWire, says, says_nothing


@asynccontextmanager
async def hedging_front(*models: Upstream):
    """A proxy that sends late requests twice, and knows already what late is: longer than a few ms."""
    replicas = [model.replica(slots=2) for model in models]
    dispatch = DispatchOptions(hedging=HedgeOptions())
    async with front(*replicas, route=RouteOptions(hedge=True), dispatch=dispatch) as proxy:
        for _ in range(60):
            assert (await proxy.ask()).status == 200
        yield proxy


class Slow:
    """Answers at once, until it is told to be slow about the next request."""

    def __init__(self, name: bytes) -> None:
        self.name = name
        self.slow = 0
        self.gate = asyncio.Event()

    async def __call__(self, wire: UpstreamWire, request: Received) -> None:
        if self.slow:
            self.slow -= 1
            await self.gate.wait()
        await says(self.name)(wire, request)


@pytest.mark.parametrize("first", [0, 1])
async def test_a_late_request_is_sent_again_and_the_first_answer_counts(first):
    slow = [Slow(b"a"), Slow(b"b")]
    async with Upstream(slow[0]) as a, Upstream(slow[1]) as b, hedging_front(a, b) as proxy:
        before = len(a.requests) + len(b.requests)
        slow[0].slow = slow[1].slow = 1  # whichever is asked first is slow, and so is the other, once
        asked = asyncio.create_task(proxy.ask())
        async with asyncio.timeout(10):
            while len(a.requests) + len(b.requests) < before + 2:
                await asyncio.sleep(0.002)
        assert proxy.drive.snapshot().busy == 2
        slow[first].gate.set()
        assert (await asked).body == slow[first].name
        await proxy.until(busy=0)
        loser = (a, b)[1 - first]
        await asyncio.gather(*(wire.wait_closed() for wire in loser.wires[-1:]))
        assert proxy.facts.outcomes[Outcome.COMPLETED] == 61
        slow[1 - first].gate.set()


async def test_what_asks_for_a_stream_is_never_sent_twice():
    slow = [Slow(b"a"), Slow(b"b")]
    async with Upstream(slow[0]) as a, Upstream(slow[1]) as b, hedging_front(a, b) as proxy:
        before = len(a.requests) + len(b.requests)
        slow[0].slow = slow[1].slow = 1
        asked = asyncio.create_task(proxy.ask("/v1/x", b'{"stream": true}'))
        await asyncio.sleep(0.15)
        assert len(a.requests) + len(b.requests) == before + 1
        for each in slow:
            each.gate.set()
        assert (await asked).status == 200


async def test_a_client_that_leaves_takes_both_calls_with_it():
    slow = [Slow(b"a"), Slow(b"b")]
    async with Upstream(slow[0]) as a, Upstream(slow[1]) as b, hedging_front(a, b) as proxy:
        slow[0].slow = slow[1].slow = 1
        client = await proxy.client()
        client.ask("/v1/x", b"{}")
        await proxy.until(busy=2)
        client.reset()
        await proxy.until(busy=0)
        await asyncio.gather(a.wires[-1].wait_closed(), b.wires[-1].wait_closed())
        for each in slow:
            each.gate.set()


PREEMPTING = QueueOptions(
    classes=(PriorityClass("people", 1, preempts=True), PriorityClass("batch", 2, preemptible=True))
)
BATCH = RouteOptions(priority_class="batch")


def preempting_front(model: Upstream):
    """A proxy whose requests can wait, unless they say that they are urgent."""
    return front(model.replica(), queue=PREEMPTING, route=BATCH)


async def test_a_call_without_an_answer_is_stopped_for_a_more_urgent_request_and_made_again():
    async with Upstream(says_nothing) as model, preempting_front(model) as proxy:
        batch = asyncio.create_task(proxy.ask("/batch"))
        await model.got(1)
        model.script = says()
        assert (await proxy.ask("/people", b"{}", "Priority: u=0")).status == 200
        await model.wires[0].wait_closed()
        assert (await batch).status == 200
        assert [request.head.target for request in model.requests] == ["/batch", "/people", "/batch"]
        assert proxy.facts.outcomes == {Outcome.COMPLETED: 2}


async def test_a_call_whose_answer_has_begun_is_not_stopped_for_anybody():
    async def begins(wire: UpstreamWire, request: Received) -> None:
        wire.send_head("Transfer-Encoding: chunked")
        await gate.wait()
        wire.send(b"0\r\n\r\n")

    gate = asyncio.Event()
    async with Upstream(begins) as model, preempting_front(model) as proxy:
        client = await proxy.client()
        client.ask("/batch", b"{}")
        head = await client.head()
        urgent = asyncio.create_task(proxy.ask("/people", b"{}", "Priority: u=0"))
        await proxy.until(waiting=1)
        await asyncio.sleep(0.05)
        gate.set()
        assert await client.body(head) == b""
        assert (await urgent).status == 200
        assert len(model.requests) == 2
        client.close()


@pytest.mark.parametrize("leaves", ["batch", "people"])
async def test_who_leaves_while_slots_change_hands_leaves_nothing_behind(leaves):
    async with Upstream(says_nothing) as model, preempting_front(model) as proxy:
        batch, people = await proxy.client(), await proxy.client()
        batch.ask("/batch", b"{}")
        await model.got(1)
        people.ask("/people", b"{}", "Priority: u=0")
        await model.got(2)
        await proxy.until(waiting=1, busy=1)
        stays = people if leaves == "batch" else batch
        (batch if leaves == "batch" else people).reset()
        await proxy.until(waiting=0)
        await model.got(2 if leaves == "batch" else 3)
        stays.reset()


@pytest.mark.parametrize("status", ["503 Busy", "429 Slow down"])
async def test_s2_a_server_that_is_busy_gets_less_and_is_never_shut_out(status):
    busy = says(b"busy", "Retry-After: 1", status=status)
    async with Upstream(busy) as model, front(model.replica(slots=8)) as proxy:
        for _ in range(10):
            answer = await proxy.ask()
            assert (answer.head.start.endswith(status), answer.body) == (True, b"busy")
        assert 1 <= proxy.drive.snapshot().slots < 8
        model.script = says(b"well again")
        assert (await proxy.ask()).body == b"well again"


async def test_l4_t7_a_server_that_fails_again_and_again_is_left_out_while_others_are_well():
    fails = says(b"no", status="500 Internal Server Error")
    async with Upstream(fails) as ill, Upstream() as well, front(ill.replica(), well.replica()) as proxy:
        for _ in range(40):
            await proxy.ask()
        assert len(ill.requests) < 10
        assert len(well.requests) > 30


async def test_s1_what_clients_do_wrong_touches_no_health():
    refuses = says(b"no", status="400 Bad Request")
    async with Upstream(refuses) as model, front(model.replica(), model.replica(id="twin")) as proxy:
        for _ in range(20):
            assert (await proxy.ask("/v1/x", b"{")).status == 400
        assert proxy.drive.snapshot().slots == 2


async def test_s2_the_only_replica_is_never_left_out():
    fails = says(b"no", status="500 Internal Server Error")
    async with Upstream(fails) as model, front(model.replica()) as proxy:
        for _ in range(10):
            assert (await proxy.ask()).status == 500
        model.script = says(b"well")
        assert (await proxy.ask()).body == b"well"
