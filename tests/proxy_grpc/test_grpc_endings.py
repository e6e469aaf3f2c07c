"""However a call ends, its slot is given back once, its server learns of it, and its client is told why."""

import asyncio
import gc
import random
from contextlib import suppress

import grpc
import pytest

from autoscaler.clock import SystemClock
from autoscaler.dispatch import DispatchOptions, QueueOptions
from autoscaler.dispatch.affinity import AffinityOptions
from autoscaler.dispatch.priority_class import PriorityClass
from autoscaler.domain import Outcome
from autoscaler.errors import PortTaken
from autoscaler.ports import Replica
from autoscaler.proxy.affinity_key import AffinityKeyOptions
from autoscaler.proxy.grpc.options import GrpcOptions
from autoscaler.proxy.options import RouteOptions
from tests.fakes.kserve import KServe, asks_for, echoes, grpc_front, works_for_ever

REQUEST = asks_for("embed", b"x" * 100)


async def trailers(call) -> dict[str, str]:
    return dict(await call.trailing_metadata())


# -- clients that leave


async def test_s4_a_call_that_is_cancelled_is_cancelled_upstream_within_100_ms_and_its_slot_is_free():
    async with KServe(works_for_ever) as server, grpc_front(server.replica()) as front:
        call = front.call(REQUEST)
        received = await server.got(1)
        loop = asyncio.get_running_loop()
        began = loop.time()
        call.cancel()
        await asyncio.wait_for(received.ended.wait(), 5)
        assert received.was_cancelled
        assert loop.time() - began < 0.1
        await front.until(busy=0)
        assert front.facts.outcomes == {Outcome.CANCELLED: 1}


async def test_s4_a_client_whose_connection_is_gone_has_left_too():
    async with KServe(works_for_ever) as server, grpc_front(server.replica()) as front:
        call = front.call(REQUEST)
        received = await server.got(1)
        await front.channel.close()
        await asyncio.wait_for(received.ended.wait(), 5)
        assert received.was_cancelled
        await front.until(busy=0)
        assert call.cancelled()


async def test_s4_a_stream_that_is_cancelled_is_cancelled_upstream():
    async with KServe(stream_script=works_for_ever) as server, grpc_front(server.replica()) as front:
        call = front.stream()
        await call.write(REQUEST)
        received = await server.got(1)
        call.cancel()
        await asyncio.wait_for(received.ended.wait(), 5)
        assert received.was_cancelled
        await front.until(busy=0)
        assert front.facts.outcomes == {Outcome.CANCELLED: 1}


async def test_who_leaves_the_queue_is_never_sent():
    async with KServe(works_for_ever) as server, grpc_front(server.replica()) as front:
        first = front.call(REQUEST)
        await front.until(busy=1)
        second = front.call(REQUEST)
        await front.until(busy=1, waiting=1)
        second.cancel()
        await front.until(busy=1, waiting=0)
        first.cancel()
        await front.until(busy=0)
        assert len(server.calls) == 1


async def test_t5_a_thousand_cancels_at_random_leave_the_ledger_exact():
    chance = random.Random(5)

    async def takes_a_moment(received, context):
        await asyncio.sleep(chance.uniform(0, 0.02))
        return received.message

    async def one_client(front) -> None:
        if chance.random() < 0.3:
            call = front.stream()
            work = asyncio.ensure_future(_ask_stream(call))
        else:
            call = front.call(REQUEST)
            work = asyncio.ensure_future(call.code())
        await asyncio.wait([work], timeout=chance.uniform(0, 0.04))
        call.cancel()
        work.cancel()
        await asyncio.gather(work, return_exceptions=True)

    async with KServe(takes_a_moment) as one, KServe(takes_a_moment) as other:
        replicas = (one.replica(slots=4), other.replica(slots=4))
        async with grpc_front(*replicas, queue=QueueOptions(requests_max=10)) as front:
            for _ in range(50):
                await asyncio.gather(*(one_client(front) for _ in range(20)))
            await front.check_nothing_is_left()
            await _until(lambda: one.running == other.running == 0)
            outcomes = front.facts.outcomes
            assert sum(outcomes.values()) > 300  # many are cancelled before they are here
            assert outcomes[Outcome.CANCELLED] > 100
            assert outcomes[Outcome.COMPLETED] > 100
            assert outcomes[Outcome.FAILED] == 0
            assert await front.call(REQUEST) == REQUEST  # and it goes on as before


async def _ask_stream(call) -> None:
    await call.write(REQUEST)
    await call.read()
    await call.read()


async def _until(holds) -> None:
    async with asyncio.timeout(10):
        while not holds():
            await asyncio.sleep(0.005)


# -- deadlines


async def test_a_deadline_travels_to_the_server_less_what_the_queue_took():
    async with KServe() as server, grpc_front(server.replica()) as front:
        await front.call(REQUEST, timeout=30)
        await front.call(REQUEST)
        first, second = server.calls
        assert 25 < first.time_left < 31
        assert 250 < second.time_left < 302  # rounded up on the wire; the pool's own limit for an answer


async def test_a_deadline_that_passes_upstream_frees_the_slot_and_is_told():
    async with KServe(works_for_ever) as server, grpc_front(server.replica()) as front:
        call = front.call(REQUEST, timeout=0.3)
        assert await call.code() is grpc.StatusCode.DEADLINE_EXCEEDED
        await asyncio.wait_for(server.calls[0].ended.wait(), 5)
        await front.until(busy=0)
        assert front.facts.outcomes == {Outcome.EXPIRED: 1}


async def test_a_deadline_that_passes_in_the_queue_takes_the_call_out_unsent():
    async with KServe(works_for_ever) as server, grpc_front(server.replica()) as front:
        running = front.call(REQUEST)
        await front.until(busy=1)
        call = front.call(REQUEST, timeout=0.2)
        assert await call.code() is grpc.StatusCode.DEADLINE_EXCEEDED
        await front.until(waiting=0)
        assert len(server.calls) == 1
        running.cancel()


async def test_a_deadline_that_passes_while_it_is_told_is_no_error_of_ours():
    """The queue lets go of a call in the very moment in which the library ends it."""
    async with KServe(works_for_ever) as server, grpc_front(server.replica()) as front:
        running = front.call(REQUEST)
        await front.until(busy=1)
        for _ in range(20):
            late = [front.call(REQUEST, timeout=0.02) for _ in range(5)]
            codes = {await call.code() for call in late}
            assert codes == {grpc.StatusCode.DEADLINE_EXCEEDED}
        running.cancel()


async def test_who_has_no_deadline_waits_no_longer_than_the_queue_allows():
    async with (
        KServe(works_for_ever) as server,
        grpc_front(server.replica(), route=RouteOptions(wait_timeout=0.1)) as front,
    ):
        running = front.call(REQUEST)
        await front.until(busy=1)
        call = front.call(REQUEST)
        assert await call.code() is grpc.StatusCode.DEADLINE_EXCEEDED
        assert "busy" in await call.details()
        assert (await trailers(call))["x-request-executed"] == "no"
        running.cancel()


async def test_a_server_has_no_longer_for_an_answer_than_the_pool_allows():
    async with (
        KServe(works_for_ever) as server,
        grpc_front(server.replica(), route=RouteOptions(first_byte_timeout=0.1)) as front,
    ):
        call = front.call(REQUEST)
        assert await call.code() is grpc.StatusCode.DEADLINE_EXCEEDED
        await asyncio.wait_for(server.calls[0].ended.wait(), 5)


async def test_a_stream_on_which_nothing_comes_does_not_hold_its_slot_for_ever():
    async with (
        KServe() as server,
        grpc_front(server.replica(), route=RouteOptions(idle_timeout=0.2)) as front,
    ):
        call = front.stream()
        await call.write(REQUEST)
        assert await call.read() == REQUEST
        assert await call.code() is grpc.StatusCode.DEADLINE_EXCEEDED
        assert "Nothing came" in await call.details()


# -- the queue says no


async def test_a_full_queue_is_resource_exhausted_and_says_when_to_come_back():
    async with (
        KServe(works_for_ever) as server,
        grpc_front(server.replica(), queue=QueueOptions(requests_max=0)) as front,
    ):
        running = front.call(REQUEST)
        await front.until(busy=1)
        call = front.call(REQUEST)
        assert await call.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        told = await trailers(call)
        assert int(told["retry-after"]) >= 1
        assert (told["x-refusal"], told["x-request-executed"]) == ("queue_full", "no")
        running.cancel()


async def test_messages_that_wait_are_bounded_in_bytes_too():
    async with (
        KServe(works_for_ever) as server,
        grpc_front(server.replica(), queue=QueueOptions(bytes_max=1000)) as front,
    ):
        running = front.call(REQUEST)
        await front.until(busy=1)
        call = front.call(asks_for("embed", b"x" * 1000))
        assert await call.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert (await trailers(call))["x-refusal"] == "queue_bytes_full"
        running.cancel()


async def test_without_a_replica_it_is_unavailable():
    queue = QueueOptions(clock_stops_max=0)
    async with grpc_front(route=RouteOptions(wait_timeout=0.05), queue=queue) as front:
        call = front.call(REQUEST)
        assert await call.code() is grpc.StatusCode.UNAVAILABLE
        assert (await trailers(call))["x-refusal"] == "no_capacity"


async def test_f11_a_deadline_before_the_next_replica_is_told_at_once_and_a_later_one_is_held():
    async with KServe() as server, grpc_front(queue=QueueOptions(clock_stops_max=300.0)) as front:
        front.drive.replica_expected(SystemClock().now() + 150.0)
        hasty = front.call(REQUEST, timeout=30.0)
        assert await hasty.code() is grpc.StatusCode.UNAVAILABLE
        told = await trailers(hasty)
        assert (told["x-refusal"], told["x-request-executed"]) == ("no_replica_in_time", "no")
        assert 145 <= int(told["retry-after"]) <= 150
        patient = front.call(REQUEST, timeout=300.0)
        await front.until(waiting=1)
        front.drive.replica_ready(server.replica())
        assert await patient == REQUEST


async def test_calls_of_one_session_stay_with_one_replica():
    route = RouteOptions(affinity=AffinityKeyOptions(session_header="X-Session-Id"))
    dispatch = DispatchOptions(affinity=AffinityOptions(load_bound=8.0))
    async with (
        KServe() as a,
        KServe() as b,
        grpc_front(a.replica(), b.replica(), route=route, dispatch=dispatch) as front,
    ):
        for session in range(12):
            before = len(a.calls)
            for _ in range(3):
                await front.call(REQUEST, metadata=(("x-session-id", f"s{session}"),))
            assert len(a.calls) - before in (0, 3)
    assert a.calls
    assert b.calls


@pytest.mark.parametrize("message", [b"\x0a\xff\xff", b"\x0f", b"\x0a\x02\xff\xfe", b"\x08" + b"\xff" * 11])
async def test_what_is_no_message_is_an_invalid_argument(message):
    async with KServe() as server, grpc_front(server.replica()) as front:
        call = front.call(message)
        assert await call.code() is grpc.StatusCode.INVALID_ARGUMENT
        assert server.calls == []


async def test_each_model_goes_to_its_pool_and_one_that_nobody_has_is_not_found():
    pools = {"text": "embed", "images": "vision"}
    async with KServe() as text, KServe() as images, grpc_front(text.replica(), pools=pools) as front:
        front.drives[1].replica_ready(images.replica())
        await front.call(asks_for("embed"))
        await front.call(asks_for("vision"))
        await front.call(asks_for("whatever"), metadata=(("x-pool", "images"),))
        assert [len(server.calls) for server in (text, images)] == [1, 2]
        assert images.calls[-1].all("x-pool") == []
        for model, metadata in [("whatever", ()), ("embed", (("x-pool", "sound"),))]:
            call = front.call(asks_for(model), metadata=metadata)
            assert await call.code() is grpc.StatusCode.NOT_FOUND


async def test_a_pool_that_is_for_no_model_takes_what_no_other_pool_is_for():
    async with (
        KServe() as text,
        KServe() as rest,
        grpc_front(text.replica(), pools={"text": "embed", "rest": None}) as front,
    ):
        front.drives[1].replica_ready(rest.replica())
        await front.call(asks_for("whatever"))
        await front.call(asks_for("embed"))
        assert [len(server.calls) for server in (text, rest)] == [1, 1]


# -- servers that break


async def test_a_replica_that_refuses_is_left_alone_and_another_serves():
    async with KServe() as dead, KServe() as alive:
        await dead.server.stop(0)
        async with grpc_front(dead.replica(id="dead"), alive.replica(id="alive")) as front:
            answers = await asyncio.gather(*(front.call(REQUEST) for _ in range(4)))
            assert answers == [REQUEST] * 4
            assert front.facts.outcomes == {Outcome.COMPLETED: 4}


async def test_a_replica_that_never_accepts_does_not_hang_its_caller():
    options = GrpcOptions(port=0, retries_max=0, connect_timeout=0.3)
    replica = Replica("hole", "http://192.0.2.1:1", 1, "192.0.2.1:1")  # TEST-NET: packets go nowhere
    async with grpc_front(replica, options=options) as front:
        call = front.call(REQUEST)
        assert await asyncio.wait_for(call.code(), 5) is grpc.StatusCode.UNAVAILABLE
        told = await trailers(call)
        assert (told["x-proxy-reason"], told["x-request-executed"]) == ("connect", "no")


async def test_a_replica_without_a_grpc_port_is_an_error_with_a_remedy():
    async with grpc_front(Replica("r", "http://127.0.0.1:1", 1)) as front:
        call = front.call(REQUEST)
        assert await call.code() is grpc.StatusCode.UNAVAILABLE
        assert "server.grpc_port" in await call.details()


async def test_a_server_that_dies_in_mid_call_is_unavailable_and_may_have_executed():
    async with KServe(works_for_ever) as server, grpc_front(server.replica()) as front:
        call = front.call(REQUEST)
        await server.got(1)
        await server.server.stop(0)
        assert await call.code() in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED)
        await front.until(busy=0)


class Cable:
    """What lies between the proxy and a server, until it is cut."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._ends: list[asyncio.StreamWriter] = []

    async def __aenter__(self) -> int:
        self._listener = await asyncio.start_server(self._join, "127.0.0.1", 0)
        return self._listener.sockets[0].getsockname()[1]

    async def __aexit__(self, *_: object) -> None:
        self._listener.close()
        self.cut()

    def cut(self) -> None:
        for end in self._ends:
            end.transport.abort()

    async def _join(self, near: asyncio.StreamReader, near_end: asyncio.StreamWriter) -> None:
        far, far_end = await asyncio.open_connection("127.0.0.1", self._port)
        self._ends += [near_end, far_end]
        await asyncio.gather(self._carry(near, far_end), self._carry(far, near_end))

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            while data := await reader.read(65536):
                writer.write(data)
        writer.transport.abort()


async def test_a_connection_that_breaks_is_never_taken_for_the_word_of_the_server():
    async with KServe(works_for_ever) as server:
        cable = Cable(server.port)
        async with cable as port:
            target = f"127.0.0.1:{port}"
            async with grpc_front(Replica("r", f"http://{target}", 8, target)) as front:
                calls = [front.call(REQUEST) for _ in range(8)]
                await server.got(8)
                cable.cut()
                for call in calls:
                    assert await call.code() is grpc.StatusCode.UNAVAILABLE
                    told = await trailers(call)
                    assert (told["x-proxy-reason"], told["x-request-executed"]) == ("reset", "maybe")
                assert front.facts.outcomes == {Outcome.FAILED: 8}


async def test_a_server_that_comes_back_at_its_address_is_found_again():
    async with KServe() as server, grpc_front(server.replica()) as front:
        await front.call(REQUEST)
        await server.server.stop(0)
        await server.listen(server.port)
        assert await front.call(REQUEST) == REQUEST


# -- the program ends


async def test_a_drain_waits_for_what_runs_denies_readiness_and_takes_nothing_new():
    release = asyncio.Event()

    async def waits(received, context):
        await release.wait()
        return received.message

    options = GrpcOptions(port=0, drain_grace=0.1, drain_max=5)
    async with KServe(waits) as server, grpc_front(server.replica(), options=options) as front:
        running = front.call(REQUEST)
        await server.got(1)
        draining = asyncio.create_task(front.server.drain())
        await asyncio.sleep(0.03)
        assert await front.call(b"", "/grpc.health.v1.Health/Check") == b"\x08\x02"
        await asyncio.sleep(0.2)
        late = front.call(REQUEST)
        assert await late.code() is grpc.StatusCode.UNAVAILABLE
        release.set()
        assert await running == REQUEST
        await asyncio.wait_for(draining, 5)


@pytest.mark.parametrize("kind", ["unary", "stream"])
async def test_what_outlives_the_drain_is_told(kind):
    options = GrpcOptions(port=0, drain_max=0.1)
    async with (
        KServe(works_for_ever, works_for_ever) as server,
        grpc_front(server.replica(), options=options) as front,
    ):
        if kind == "unary":
            call = front.call(REQUEST)
        else:
            call = front.stream()
            await call.write(REQUEST)
        received = await server.got(1)
        await asyncio.wait_for(front.server.drain(), 5)
        assert await call.code() is grpc.StatusCode.UNAVAILABLE
        assert (await trailers(call))["x-refusal"] == "draining"
        assert (await trailers(call))["x-request-executed"] == "maybe"
        await asyncio.wait_for(received.ended.wait(), 5)
        assert received.was_cancelled


async def test_the_channel_of_a_replica_that_is_gone_is_closed():
    async with KServe() as server, grpc_front(server.replica(id="r")) as front:
        await front.call(REQUEST)
        (channels,) = front.server._front._channels.values()  # nothing else shows how many there are
        assert len(channels) == 1
        front.drive.replica_lost("r")
        await _until(lambda: len(channels) == 0)


async def test_a31_pings_are_never_closer_than_servers_allow():
    with pytest.raises(ValueError, match="keepalive >= 300"):
        GrpcOptions(keepalive=299)


async def test_a_taken_port_is_named():
    async with grpc_front() as front:
        with pytest.raises(PortTaken, match=str(front.server.port)):
            async with grpc_front(options=GrpcOptions(port=front.server.port)):
                pass


# -- what a status tells of the replica


async def test_a_server_that_is_busy_is_left_alone_and_one_that_fails_is_ejected():
    async def is_busy(received, context):
        await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "full", (("retry-after", "30"),))

    async def fails(received, context):
        await context.abort(grpc.StatusCode.INTERNAL, "broken")

    for script in (is_busy, fails):
        async with (
            KServe(script) as one,
            KServe() as other,
            grpc_front(one.replica(id="one"), other.replica(id="other")) as front,
        ):
            for _ in range(30):
                await front.call(REQUEST).code()
            assert len(other.calls) > len(one.calls)


async def test_metadata_says_how_urgent_a_call_is():
    order = []

    async def notes(received, context):
        order.append(received.message[-1:])
        await asyncio.sleep(0.05)
        return b""

    async with KServe(notes) as server, grpc_front(server.replica()) as front:
        calls = [front.call(asks_for("m", b"0"))]
        await front.until(busy=1)
        for urgency, name in ((7, b"7"), (3, b"3"), (0, b"a")):
            calls.append(front.call(asks_for("m", name), metadata=(("priority", f"u={urgency}"),)))
            await front.until(waiting=len(calls) - 1)
        await asyncio.gather(*calls)
    assert order == [b"0", b"a", b"3", b"7"]


# -- stopped for a more urgent call

PREEMPTING = QueueOptions(
    classes=(PriorityClass("people", 1, preempts=True), PriorityClass("batch", 2, preemptible=True))
)
BATCH = RouteOptions(priority_class="batch")
URGENT = (("priority", "u=0"),)


async def test_a_call_without_an_answer_is_stopped_for_a_more_urgent_one_and_made_again():
    async with (
        KServe(works_for_ever) as server,
        grpc_front(server.replica(), queue=PREEMPTING, route=BATCH) as front,
    ):
        batch = front.call(asks_for("m", b"batch"))
        stopped = await server.got(1)
        server.script = echoes
        assert await front.call(asks_for("m", b"people"), metadata=URGENT) == asks_for("m", b"people")
        assert await batch == asks_for("m", b"batch")
        assert stopped.was_cancelled
        told = [call.message[-5:] for call in server.calls]
        assert told == [b"batch", b"eople", b"batch"]
        assert front.facts.outcomes == {Outcome.COMPLETED: 2}


async def test_a_stream_is_not_stopped_for_anybody():
    async with KServe() as server, grpc_front(server.replica(), queue=PREEMPTING, route=BATCH) as front:
        stream = front.stream()
        await stream.write(REQUEST)
        assert await stream.read() == REQUEST
        urgent = front.call(REQUEST, metadata=URGENT)
        await front.until(waiting=1, busy=1)
        await stream.write(REQUEST)
        assert await stream.read() == REQUEST
        await stream.done_writing()
        assert await urgent == REQUEST


@pytest.mark.parametrize("leaves", ["batch", "people"])
async def test_who_leaves_while_slots_change_hands_leaves_nothing_behind(leaves):
    async with (
        KServe(works_for_ever) as server,
        grpc_front(server.replica(), queue=PREEMPTING, route=BATCH) as front,
    ):
        batch = front.call(REQUEST)
        await server.got(1)
        people = front.call(REQUEST, metadata=URGENT)
        await server.got(2)
        await front.until(waiting=1, busy=1)
        stays = people if leaves == "batch" else batch
        (batch if leaves == "batch" else people).cancel()
        await front.until(waiting=0)
        await server.got(2 if leaves == "batch" else 3)
        stays.cancel()


async def test_t17_thousands_of_calls_leave_nothing_behind():
    async with KServe() as server, grpc_front(server.replica(slots=8)) as front:

        async def some(count: int) -> int:
            for _ in range(count // 8):
                await asyncio.gather(*(front.call(REQUEST) for _ in range(8)))
            server.calls.clear()
            front.facts.told.clear()
            front.facts.service_times.clear()
            gc.collect()
            return len(gc.get_objects())

        before = await some(400)
        after = await some(1600)
        assert after - before < 400  # a quarter of an object a call would be a leak
