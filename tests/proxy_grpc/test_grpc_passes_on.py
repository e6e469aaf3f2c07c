"""What goes through the gRPC listener comes out the same: bytes, metadata, status, trailers."""

import asyncio
import os

import grpc
import pytest

from tests.fakes.kserve import INFER, SERVICE, STREAM, KServe, asks_for, grpc_front

REQUEST = asks_for("embed", b"\x00\xff" * 50)
OURS = ("x-request-id", "server-timing")


def of_the_server(trailing) -> tuple:
    """Trailers less those that the proxy adds to every call."""
    return tuple((key, value) for key, value in trailing if key not in OURS)


async def test_a_request_and_its_answer_pass_as_the_bytes_that_they_are():
    async with KServe() as server, grpc_front(server.replica()) as front:
        assert await front.call(REQUEST) == REQUEST
        assert server.calls[0].path == INFER
        assert front.facts.outcomes == {"completed": 1}


async def test_eight_mebibytes_pass_though_the_library_would_stop_at_four():
    message = asks_for("embed", os.urandom(8 * 2**20))
    async with KServe() as server, grpc_front(server.replica()) as front:
        assert await front.call(message) == message


async def test_an_empty_message_passes():
    async def answers_nothing(received, context):
        return b""

    async with KServe(answers_nothing) as server, grpc_front(server.replica()) as front:
        assert await front.call(b"") == b""


async def test_metadata_passes_with_duplicates_and_binary_values_less_what_belongs_to_the_hop():
    given = (
        ("x-a", "1"),
        ("x-a", "2"),
        ("blob-bin", bytes(range(256))),
        ("connection", "close"),
        ("proxy-authorization", "secret"),
        ("x-request-id", "abc"),
        ("traceparent", "00-1-2-3"),
    )
    async with KServe() as server, grpc_front(server.replica()) as front:
        await front.call(REQUEST, metadata=given)
        received = server.calls[0]
    assert received.all("x-a") == ["1", "2"]
    assert received.all("blob-bin") == [bytes(range(256))]
    assert received.all("x-request-id") == ["abc"]
    assert received.all("traceparent") == ["00-1-2-3"]
    assert received.all("connection") == received.all("proxy-authorization") == []
    assert len(received.all("user-agent")) == 1


async def test_what_the_server_says_before_and_after_its_answer_passes():
    async def talks(received, context):
        await context.send_initial_metadata((("x-first", "1"), ("first-bin", b"\x00")))
        context.set_trailing_metadata((("x-last", "1"), ("x-last", "2"), ("last-bin", b"\xfe")))
        return b"ok"

    async with KServe(talks) as server, grpc_front(server.replica()) as front:
        call = front.call(REQUEST)
        assert await call == b"ok"
        initial, trailing = await call.initial_metadata(), await call.trailing_metadata()
    assert tuple(initial) == (("x-first", "1"), ("first-bin", b"\x00"))
    assert of_the_server(trailing) == (("x-last", "1"), ("x-last", "2"), ("last-bin", b"\xfe"))


FAILURES = [code for code in grpc.StatusCode if code is not grpc.StatusCode.OK]


@pytest.mark.parametrize("code", FAILURES, ids=lambda code: code.name)
@pytest.mark.parametrize("path", [INFER, STREAM], ids=["unary", "stream"])
async def test_a30_every_status_of_the_server_is_told_word_for_word(code, path):
    trailers = (
        ("x-why", "full: 9 of 8"),
        ("why-bin", b"\x00\x01\xff"),
        ("grpc-status-details-bin", b"\x08\x08"),
    )

    async def refuses(received, context):
        await context.abort(code, "die Schlange ist voll ✗", trailers)

    async with KServe(refuses, refuses) as server, grpc_front(server.replica()) as front:
        if path == INFER:
            call = front.call(REQUEST)
        else:
            call = front.stream()
            await call.write(REQUEST)
        assert await call.code() is code
        assert await call.details() == "die Schlange ist voll ✗"
        assert set(of_the_server(await call.trailing_metadata())) == set(trailers)
        await front.check_nothing_is_left()
        # Its status is the server's answer, and no fault of the transport: the replica goes on at once.
        assert front.drive.snapshot().slots == 1
        assert front.facts.outcomes["failed"] == 0


async def test_a_stream_passes_both_ways_and_holds_one_slot_for_its_life():
    async with KServe() as server, grpc_front(server.replica()) as front:
        call = front.stream()
        for number in range(5):
            message = asks_for("embed", bytes([number]))
            await call.write(message)
            assert await call.read() == message
            assert front.drive.snapshot().busy == 1
        await call.done_writing()
        assert await call.read() is grpc.aio.EOF
        assert await call.code() is grpc.StatusCode.OK
        await front.until(busy=0)
    assert [received.message[-1] for received in server.calls] == [0, 1, 2, 3, 4]


async def test_k10_small_messages_of_a_stream_are_not_held_back():
    gaps = []

    async def drips(received, context):
        for _ in range(10):
            await context.write(b"0123456789")
            await asyncio.sleep(0.03)

    async with KServe(stream_script=drips) as server, grpc_front(server.replica()) as front:
        call = front.stream()
        await call.write(REQUEST)
        loop = asyncio.get_running_loop()
        await call.read()
        last = loop.time()
        for _ in range(9):
            assert await call.read() == b"0123456789"
            gaps.append(loop.time() - last)
            last = loop.time()
        assert await call.read() is grpc.aio.EOF
    assert sorted(gaps)[4] == pytest.approx(0.03, abs=0.01)  # the median: one that waits is no clump


async def test_a_server_may_end_a_stream_before_its_client_does():
    async def one_is_enough(received, context):
        await context.write(b"enough")

    async with KServe(stream_script=one_is_enough) as server, grpc_front(server.replica()) as front:
        call = front.stream()
        await call.write(REQUEST)
        assert await call.read() == b"enough"
        assert await call.read() is grpc.aio.EOF
        assert await call.code() is grpc.StatusCode.OK


async def test_a_stream_without_a_message_asks_nothing_and_takes_no_slot():
    async with KServe() as server, grpc_front(server.replica()) as front:
        call = front.stream()
        await call.done_writing()
        assert await call.read() is grpc.aio.EOF
        assert await call.code() is grpc.StatusCode.OK
    assert server.calls == []
    assert front.facts.told == []


@pytest.mark.parametrize("path", ["/inference.GRPCInferenceService/ModelGuess", "/other.Service/Call"])
async def test_a_method_that_there_is_not_is_told(path):
    async with grpc_front() as front:
        call = front.call(b"", path)
        assert await call.code() is grpc.StatusCode.UNIMPLEMENTED


@pytest.mark.parametrize(
    "method", ["ServerMetadata", "ModelMetadata", "ModelConfig", "ModelStatistics", "RepositoryIndex"]
)
async def test_questions_are_answered_while_every_slot_is_busy(method):
    async def script(received, context):
        if received.path == INFER:
            await asyncio.Event().wait()
        return b"an answer"

    async with KServe(script) as server, grpc_front(server.replica()) as front:
        busy = front.call(REQUEST)
        await server.got(1)
        assert await front.call(asks_for("embed"), SERVICE + method) == b"an answer"
        assert front.drive.snapshot().busy == 1
        busy.cancel()


async def test_a_change_goes_to_every_replica_and_the_error_of_one_is_told():
    async def refuses(received, context):
        await context.abort(grpc.StatusCode.NOT_FOUND, "no such file")

    load = SERVICE + "RepositoryModelLoad"
    async with KServe() as one, KServe() as other, grpc_front(one.replica(), other.replica()) as front:
        assert await front.call(b"\x12\x05embed", load) == b"\x12\x05embed"
        assert [len(server.calls) for server in (one, other)] == [1, 1]
        other.script = refuses
        call = front.call(b"\x12\x05embed", load)
        assert (await call.code(), await call.details()) == (grpc.StatusCode.NOT_FOUND, "no such file")


@pytest.mark.parametrize(
    "path, answer",
    [
        (f"{SERVICE}ServerLive", b"\x08\x01"),
        (f"{SERVICE}ServerReady", b""),
        (f"{SERVICE}ModelReady", b""),
        ("/grpc.health.v1.Health/Check", b"\x08\x02"),
    ],
)
async def test_without_a_replica_it_lives_and_is_not_ready(path, answer):
    async with grpc_front() as front:
        assert await front.call(b"", path) == answer


async def test_without_a_replica_other_questions_have_no_answer():
    async with grpc_front() as front:
        call = front.call(b"", f"{SERVICE}ServerMetadata")
        assert await call.code() is grpc.StatusCode.UNAVAILABLE
        assert dict(await call.trailing_metadata())["retry-after"] == "5"
