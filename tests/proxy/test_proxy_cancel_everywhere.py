"""The handling is cancelled at its k-th await, for every k there is: the ledger is exact each time."""

import asyncio

import pytest

from autoscaler.proxy.handler import Handling
from autoscaler.proxy.idempotency_options import IdempotencyOptions
from autoscaler.proxy.options import ProxyOptions, RouteOptions
from tests.fakes.client import Client
from tests.fakes.front import Front, front
from tests.fakes.stepper import Stepper
from tests.fakes.upstream import Received, Upstream, UpstreamWire

KIB = 1024
OPTIONS = ProxyOptions(
    port=0, body_spool_bytes=16 * KIB, read_buffer_bytes=8 * KIB, linger=0.05,
    idempotency=IdempotencyOptions(patience=0.0),
)  # fmt: skip


async def answers_in_pieces(wire: UpstreamWire, request: Received) -> None:
    if wire.server.reads_bodies is False:
        await wire.exactly(int(request.head.get("Content-Length") or 0))
    wire.send_head("Content-Type: text/event-stream", "Transfer-Encoding: chunked")
    for _ in range(3):
        wire.send_chunk(b"data: x\n\n")
        await asyncio.sleep(0.002)
    wire.send_chunk(b"")


def asks(client: Client, kind: str) -> None:
    match kind:
        case "plain":
            client.ask("/v1/x", b"{}")
        case "large":
            client.ask("/v1/x", bytes(64 * KIB))
        case "expects":
            client.ask("/v1/x", bytes(100), "Expect: 100-continue")
        case "keyed":
            client.ask("/v1/x", b"{}", "Idempotency-Key: k")
        case "informed":
            client.ask("/v1/x", b"{}", "X-Want-Queue-Info: 1")


async def conversation(proxy: Front, kind: str) -> None:
    """One request while another holds the only slot for a moment, so that it waits."""
    first, client = await proxy.client(), await proxy.client()
    first.ask("/v1/first", b"{}")
    asks(client, kind)
    for each in (first, client):
        try:
            async with asyncio.timeout(2):
                await each.answer()
        except (EOFError, TimeoutError, ValueError, AssertionError):
            pass
        each.close()


@pytest.mark.parametrize("cut", [False, True])
@pytest.mark.parametrize("kind", ["plain", "large", "expects", "keyed", "informed"])
async def test_s9_r1_r3_t5_t6_cancelled_at_every_await_the_ledger_is_exact(monkeypatch, kind, cut):
    original, stepper = Handling.run, Stepper(0, cut=cut)

    async def stepped(self: Handling) -> object:
        if self.path == "/v1/first":
            return await original(self)
        return await stepper.run(self, original(self))

    monkeypatch.setattr(Handling, "run", stepped)
    at, reads = 1, kind not in ("large", "expects")
    model = Upstream(answers_in_pieces, reads_bodies=reads)
    async with model, front(model.replica(), options=OPTIONS, route=RouteOptions(wait_timeout=5)) as proxy:
        while True:
            stepper.at, stepper.steps = at, 0
            await conversation(proxy, kind)
            await proxy.check_nothing_is_left()
            proxy.server.reconcile()
            snapshot = proxy.drive.snapshot()
            assert (snapshot.busy, snapshot.waiting, snapshot.slots_leaked) == (0, 0, 0), f"at await {at}"
            assert snapshot.ledger_difference == 0, f"at await {at}"
            if stepper.steps < at:
                break
            at += 1
    assert at > 2, "it was cancelled at several places"
