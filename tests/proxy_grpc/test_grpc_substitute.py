"""A call over gRPC goes to the pool that stands in for its own, over the channels of that one."""

from tests.fakes.kserve import KServe, asks_for, grpc_front

REQUEST = asks_for("embed", b"x" * 100)
POOLS = {"short": "embed", "spare": "other"}


async def test_a_call_that_waits_is_answered_by_the_second_pool():
    async with KServe() as server, grpc_front(pools=POOLS) as front:
        short, spare = front.drives
        short.substitute_by(spare)
        call = front.call(REQUEST)
        await front.until(waiting=1)
        short.give_away(wanted=True)
        spare.replica_ready(server.replica())
        await call
        assert (len(server.calls), short.handed_over) == (1, 1)
        await front.call(REQUEST)  # and at once, while the shortage lasts
        assert short.handed_over == 2


async def test_a_call_that_is_cancelled_there_frees_its_slot():
    async with KServe() as server, grpc_front(pools=POOLS) as front:
        short, spare = front.drives
        short.substitute_by(spare)
        short.give_away(wanted=True)
        call = front.call(REQUEST)
        await front.until(waiting=1)
        call.cancel()
        await front.until(waiting=0)
        spare.replica_ready(server.replica())
        await front.call(REQUEST)
