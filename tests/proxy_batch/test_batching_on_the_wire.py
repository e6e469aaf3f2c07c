"""Requests that share a call, on the wire: clients, the proxy, and a server that the test holds in hand."""

import asyncio
import json
import random

import pytest

from autoscaler.kserve.infer import InferAnswer
from autoscaler.kserve.tensor import Tensor
from autoscaler.proxy.batch.options import BatchingOptions
from tests.fakes.batching import Describer, World, body, numbers, rows_of, same, world
from tests.fakes.client import Client
from tests.fakes.upstream import Received, Upstream, UpstreamWire, says


async def answers(*clients: Client) -> list[list[int]]:
    got = []
    for client in clients:
        answer = await client.answer("POST")
        assert answer.status == 200, answer
        got.append(numbers(answer))
    return got


async def test_what_waits_together_is_served_together_and_each_gets_its_own():
    async with world() as it:
        first = await it.occupy()
        others = await it.wait(body(1), body(2, 3), body(4))
        it.server.go(2)
        assert await answers(first, *others) == [[0], [1], [2, 3], [4]]
        assert it.server.calls == [[0], [1, 2, 3, 4]]


async def test_one_who_finds_a_slot_goes_through_as_it_came():
    async with world() as it:
        it.server.go()
        sent = body(7, id="seven")
        client = await it.send(sent, "X-Own: 1")
        [answer] = [await client.answer("POST")]
        received = it.server.upstream.requests[0]
        assert (received.body, received.head.get("X-Own")) == (sent, "1")
        assert "batch" not in answer.head.get("Server-Timing")


async def test_the_answer_tells_of_the_batch():
    rows: list[int] = []
    async with world(batched=rows.append) as it:
        await it.occupy()
        client, _ = await it.wait(body(1, id="one"), body(2, 3))
        it.server.go(2)
        answer = await client.answer("POST")
        assert 'desc="3 rows"' in answer.head.get("Server-Timing")
        assert json.loads(answer.body)["id"] == "one"
        assert rows == [3]


async def test_a_batch_has_no_more_rows_than_the_model_takes():
    async with world() as it:
        await it.occupy()
        await it.wait(*(body(n, n) for n in range(1, 6)))
        it.server.go(2)
        assert (await it.calls(3))[1:] == [[1, 1, 2, 2, 3, 3, 4, 4], [5, 5]]


async def test_a14_a15_one_who_leaves_disturbs_nobody():
    async with world() as it:
        await it.occupy()
        one, leaves, two, three = await it.wait(*(body(n) for n in (1, 2, 3, 4)))
        it.server.go()
        await it.calls(2)
        leaves.close()
        await it.proxy.until(busy=3)
        it.server.go()
        assert await answers(one, two, three) == [[1], [3], [4]]
        assert len(it.server.calls) == 2


async def test_the_last_one_to_leave_ends_the_call():
    async with world() as it:
        await it.occupy()
        clients = await it.wait(body(1), body(2))
        it.server.go()
        await it.calls(2)
        for client in clients:
            client.close()
        async with asyncio.timeout(5):
            await it.server.upstream.wires[-1].closed.wait()
        await it.proxy.until(busy=0)


async def test_r6_who_has_left_by_then_is_not_executed():
    async with world() as it:
        first = await it.occupy()
        one, leaves, two = await it.wait(body(1), body(2), body(3))
        leaves.close()
        await it.proxy.until(waiting=2)
        it.server.go(2)
        assert await answers(first, one, two) == [[0], [1], [3]]
        assert it.server.calls[1] == [1, 3]


async def test_a32_a_deadline_ends_its_own_request_only():
    async with world() as it:
        await it.occupy()
        one = (await it.wait(body(1)))[0]
        hurried = (await it.wait(body(2), fields=("X-Request-Timeout-Ms: 300",)))[0]
        two = (await it.wait(body(3)))[0]
        it.server.go()
        await it.calls(2)
        assert (await hurried.answer("POST")).status == 504
        it.server.go()
        assert await answers(one, two) == [[1], [3]]
        assert it.server.calls == [[0], [1, 2, 3]]


def poisoned(request):
    return 500 if 13 in rows_of(request) else same(request)


async def test_r5_one_bad_item_does_not_fail_its_mates():
    async with world(poisoned) as it:
        first = await it.occupy()
        one, bad, two = await it.wait(body(1), body(13), body(2))
        it.server.go(5)
        assert await answers(first, one, two) == [[0], [1], [2]]
        answer = await bad.answer("POST")
        assert (answer.status, answer.body) == (500, b'{"error":"no"}')
        assert it.server.calls[1] == [1, 13, 2]
        assert sorted(it.server.calls[2:]) == [[1], [2], [13]]


def forgets_rows(request):
    answer = same(request)
    [output] = answer.outputs
    return InferAnswer("m", "1", (Tensor("y", output.datatype, (1, 1), bytes(output.data)[:8]),))


async def test_t13_a10_a_model_that_ignores_rows_is_found_out_and_left_unmerged():
    async with world(forgets_rows) as it:
        await it.occupy()
        clients = await it.wait(body(1), body(2))
        it.server.go(4)
        assert await answers(*clients) == [[1], [2]]
        assert it.server.calls[1:] == [[1, 2], [1], [2]] or it.server.calls[1:] == [[1, 2], [2], [1]]
        assert it.batching.rows_per_call == 0
        assert it.proxy.drive.snapshot().slots == 1


async def test_r10_a_connection_that_breaks_ends_its_batch_and_no_other():
    async with world() as it:
        await it.occupy()
        clients = await it.wait(body(1), body(2))
        it.server.go()
        await it.calls(2)
        await asyncio.sleep(0.3)  # sooner it would look like an idle connection that had been closed before
        it.server.upstream.wires[-1].transport.abort()
        for client in clients:
            answer = await client.answer("POST")
            assert (answer.status, answer.head.get("X-Request-Executed")) == (502, "maybe")
        it.server.holds = False
        assert await answers(await it.send(body(3))) == [[3]]


async def test_a_server_that_has_too_much_to_do_is_asked_for_each_alone():
    refusals = iter([None, 503])

    def busy_once(request):
        return next(refusals, None) or same(request)

    async with world(busy_once) as it:
        await it.occupy()
        clients = await it.wait(body(1), body(2))
        it.server.go(4)
        assert await answers(*clients) == [[1], [2]]


# What must not be merged, beside the bodies that tests/kserve knows.
@pytest.mark.parametrize(
    "requests",
    [
        pytest.param([(body(1), ()), (body(2), ("Authorization: Bearer x",))], id="a field for the model"),
        pytest.param([(body(1), ()), (body(2, parameters={"priority": 1}), ())], id="T18 a parameter"),
        pytest.param([(body(1), ()), (body(2, name="z"), ())], id="another input"),
        pytest.param([(body(1), ()), (body(2, parameters={"sequence_id": 1}), ())], id="a sequence"),
        pytest.param(
            [(body(1), ()), (body(2), ("Content-Encoding: identity", "X-A: 1"))], id="another field"
        ),
    ],
)
async def test_t18_only_equals_are_merged(requests):
    async with world() as it:
        await it.occupy()
        for data, fields in requests:
            await it.wait(data, fields=fields)
        it.server.go(1)
        await it.calls(2)
        it.server.go(1)
        assert (await it.calls(3))[1:] == [[1], [2]]


async def test_fields_that_mean_nothing_to_a_model_do_not_separate():
    async with world() as it:
        await it.occupy()
        await it.wait(body(1), fields=("X-Request-Id: a", "User-Agent: one"))
        await it.wait(body(2), fields=("X-Request-Id: b", "User-Agent: other", "Traceparent: x"))
        it.server.go(1)
        assert (await it.calls(2))[1] == [1, 2]


async def test_fields_that_all_have_in_common_go_with_the_batch():
    async with world() as it:
        await it.occupy()
        await it.wait(body(1), body(2), fields=("X-Own: 5",))
        it.server.go(1)
        await it.calls(2)
        assert it.server.upstream.requests[1].head.get("X-Own") == "5"


@pytest.mark.parametrize(
    "describer, options, merges",
    [
        (Describer(), BatchingOptions(), True),
        (Describer(is_batched_by_server=True), BatchingOptions(), False),
        (Describer(is_batched_by_server=True), BatchingOptions("on"), True),
        (Describer(has_sequences=True), BatchingOptions("on"), False),
        (Describer(is_decoupled=True), BatchingOptions("on"), False),
        (Describer(batch_size_max=0), BatchingOptions(), False),
        (Describer(batch_size_max=0), BatchingOptions(rows_max=4), True),
        (Describer(batch_size_max=8), BatchingOptions(rows_max=1), False),
    ],
)
async def test_whether_requests_are_merged(describer: Describer, options: BatchingOptions, merges: bool):
    async with world(describer=describer, options=options) as it:
        await it.occupy()
        await it.wait(body(1), body(2))
        it.server.go(1)
        assert (await it.calls(2))[1] == ([1, 2] if merges else [1])


async def test_a_slot_is_a_row_so_occupancy_says_how_full_batches_are():
    async with world() as it:
        assert it.proxy.drive.snapshot().slots == 8
        await it.occupy()
        await it.wait(body(1, 2), body(3))
        it.server.go(1)
        await it.calls(2)
        snapshot = it.proxy.drive.snapshot()
        assert (snapshot.busy, snapshot.running) == (3, 2)


async def test_a_model_that_nobody_can_describe_is_not_merged():
    describer = Describer()
    describer.description = None
    async with world(describer=describer) as it:
        await it.occupy()
        await it.wait(body(1), body(2))
        it.server.go(1)
        assert (await it.calls(2))[1] == [1]
        assert describer.asked == 1


async def test_long_json_is_read_in_another_process_and_merged_all_the_same():
    async with world(describer=Describer(batch_size_max=100_000)) as it:
        await it.occupy()
        long = list(range(20_000))
        clients = [await it.send(body(*long)), await it.send(body(5))]
        async with asyncio.timeout(20):
            await it.proxy.until(waiting=2)
        it.server.go(2)
        assert sorted(await answers(*clients), key=len) == [[5], long]
        assert len(it.server.calls) == 2


async def test_a_check_tells_of_a_model_that_mixes_rows():
    def mixes(request):
        answer = same(request)
        if request.rows == 1:
            return answer
        [output] = answer.outputs
        moved = bytes(output.data)[8:] + bytes(output.data)[:8]
        return InferAnswer("m", "1", (Tensor("y", output.datatype, output.shape, moved),))

    async with world(mixes, options=BatchingOptions(check_ratio=1.0)) as it:
        await it.occupy()
        clients = await it.wait(body(1), body(2))
        it.server.go(3)
        await answers(*clients)
        assert (it.batching.check.compared, it.batching.check.difference_max) == (1, 0.5)
        assert it.server.calls == [[0], [1, 2], [1]]


async def test_clients_that_leave_at_any_time_leave_nothing_behind():
    """300 requests in turn before four slots, of which a half leaves; the ledger is exact in the end."""
    random.seed(7)
    async with world(slots=4) as it:
        it.server.holds = False

        async def one(number: int) -> None:
            client = await it.send(body(number))
            if random.random() < 0.5:
                await asyncio.sleep(random.expovariate(200))
                client.close()
            else:
                assert numbers(await client.answer("POST")) == [number]
                client.close()

        for _ in range(10):
            await asyncio.gather(*(one(number) for number in range(30)))
        await it.proxy.check_nothing_is_left()


async def test_a_drain_waits_for_a_batch(it: World | None = None):
    async with world() as it:
        await it.occupy()
        clients = await it.wait(body(1), body(2))
        it.server.go()
        await it.calls(2)
        draining = asyncio.create_task(it.proxy.server.drain())
        await asyncio.sleep(0.01)
        it.server.go()
        assert await answers(*clients) == [[1], [2]]
        await draining


@pytest.mark.parametrize("shape", [[2147483648, 1], [2, 1], [2**62, 2**62, 1]])
async def test_t9_a_shape_that_is_larger_than_its_data_is_refused_before_a_server_reserves_memory_for_it(
    shape,
):
    async with world() as it:
        first = await it.occupy()
        one = {"name": "x", "shape": shape, "datatype": "INT64", "data": [1]}
        bad = await it.send(json.dumps({"inputs": [one]}).encode())
        answer = await bad.answer("POST")
        assert answer.status == 400
        assert "its data is shorter" in json.loads(answer.body)["error"]
        it.server.go()
        assert await answers(first) == [[0]]


async def test_an_output_that_there_is_not_concerns_who_asked_for_it_and_merging_goes_on():
    def named(request):
        return 400 if any(output.name == "nope" for output in request.outputs) else same(request)

    async with world(named) as it:
        await it.occupy()
        good, other, bad = await it.wait(body(1), body(2), body(3, outputs=[{"name": "nope"}]))
        it.server.go(5)
        assert await answers(good, other) == [[1], [2]]
        assert (await bad.answer("POST")).status == 400
        assert it.batching.rows_per_call == 8


@pytest.mark.parametrize(
    "mistake",
    [b'{"inputs":[', body(1, id=5), body(1).replace(b"[1]", b"[1.5]"), b"[" * 5000],
    ids=["JSON that is none", "a numeric id", "a fraction for an integer", "lists in lists in lists"],
)
async def test_a_mistake_of_a_client_to_which_a_server_says_500_ejects_no_replica(mistake):
    async def script(wire: UpstreamWire, received: Received) -> None:
        wire.send_head("Content-Length: 2", status="500 No")
        wire.send(b"{}")

    async with world() as it:
        second = Upstream(says())
        async with second:
            it.proxy.drive.replica_ready(second.replica())
            it.server.upstream.script = second.script = script
            for _ in range(8):
                client = await it.send(mistake)
                assert (await client.answer("POST")).status == 500
            assert it.proxy.drive.replicas_ejected == 0
            for _ in range(8):
                client = await it.send(body(1))
                assert (await client.answer("POST")).status == 500
            assert it.proxy.drive.replicas_ejected == 1
            it.proxy.drive.replica_lost(second.replica().id)
