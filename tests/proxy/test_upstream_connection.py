"""The connection to a server, on a transport that does nothing: what it asks of its socket, and when."""

import asyncio

import pytest

from autoscaler.proxy.call import Call, CallBroke
from autoscaler.proxy.upstream_connection import UpstreamConnection

KIB = 1024
HEAD = b"GET /x HTTP/1.1\r\nHost: a\r\n\r\n"
BEGINS = b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n"
WHOLE = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


class FakeTransport(asyncio.Transport):
    def __init__(self) -> None:
        super().__init__()
        self.written = b""
        self.unsent = 0
        self.reads = True
        self.end = ""

    def write(self, data: bytes) -> None:
        self.written += data

    def get_write_buffer_size(self) -> int:
        return self.unsent

    def pause_reading(self) -> None:
        self.reads = False

    def resume_reading(self) -> None:
        self.reads = True

    def is_closing(self) -> bool:
        return self.end != ""

    def close(self) -> None:
        self.end = self.end or "closed"

    def abort(self) -> None:
        self.end = "aborted"

    def get_extra_info(self, name: str, default: object = None) -> object:
        return "no plain text" if name == "sslcontext" else default


class FakeHome:
    def __init__(self) -> None:
        self.free: list[UpstreamConnection] = []
        self.lost: list[UpstreamConnection] = []

    def take_back(self, connection: UpstreamConnection) -> None:
        self.free.append(connection)

    def forget(self, connection: UpstreamConnection) -> None:
        self.lost.append(connection)


def connected(
    *, idle_timeout: float | None = None, first_byte_timeout: float | None = None
) -> tuple[UpstreamConnection, FakeTransport, FakeHome]:
    home, transport = FakeHome(), FakeTransport()
    connection = UpstreamConnection(home, 16 * KIB, first_byte_timeout, idle_timeout)
    connection.connection_made(transport)
    return connection, transport, home


def asked(connection: UpstreamConnection, body: bytes | None = None) -> Call:
    call = Call(lambda call: None)
    connection.ask(call, HEAD, body, chunked=False)
    return call


async def test_a_short_body_is_written_with_its_head():
    connection, transport, _ = connected()
    asked(connection, b"body")
    assert transport.written == HEAD + b"body"


async def test_it_is_free_again_before_anybody_is_told_that_the_answer_is_here():
    """Whoever is told may send the next request at once, and shall find it."""
    connection, _, home = connected()
    call, free = asked(connection), []
    call.when_received(lambda: free.extend(home.free))
    connection.data_received(WHOLE)
    assert free == [connection]


async def test_it_is_not_used_again_while_a_part_of_the_request_is_unsent():
    connection, transport, home = connected()
    call = asked(connection, bytes(100 * KIB))
    transport.unsent = 1
    connection.data_received(WHOLE)
    assert (call.whole, call.received, home.free, transport.end) == (False, True, [], "aborted")
    assert await call.next_piece() == b"ok"


async def test_what_is_held_for_a_slow_reader_is_bounded():
    connection, transport, _ = connected()
    call = asked(connection)
    connection.data_received(BEGINS)
    received = 0
    while transport.reads:
        connection.data_received(bytes(8 * KIB))
        received += 8 * KIB
    assert 32 * KIB < received <= 40 * KIB
    assert len(await call.next_piece()) == received
    assert transport.reads


async def test_the_silence_of_a_server_that_is_not_read_counts_for_nothing():
    connection, transport, _ = connected(idle_timeout=0.02)
    call = asked(connection)
    connection.data_received(BEGINS + bytes(64 * KIB))
    assert not transport.reads
    await asyncio.sleep(0.05)
    assert transport.end == ""
    await call.next_piece()
    with pytest.raises(CallBroke) as broken:
        await call.next_piece()
    assert broken.value.how == "late"


async def test_a_sink_gets_what_comes_in_the_turn_in_which_it_comes_if_it_is_ready():
    class Sink:
        ready = True
        got = b""

        def take(self, piece: bytes) -> None:
            self.got += piece

    connection, _, _ = connected()
    call, sink = asked(connection), Sink()
    connection.data_received(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n")
    pouring = asyncio.create_task(call.pour(sink))
    await asyncio.sleep(0)
    connection.data_received(b"one")
    assert sink.got == b"one"
    sink.ready = False
    connection.data_received(b"two")
    assert sink.got == b"one"
    sink.ready = True
    call.flow()
    assert sink.got == b"onetwo"
    connection.data_received(b"end")
    assert (await pouring, sink.got) == (b"end", b"onetwo")


async def test_a_sink_that_breaks_ends_the_pouring():
    class Gone:
        ready = True

        def take(self, piece: bytes) -> None:
            raise ConnectionResetError

    connection, _, _ = connected()
    call = asked(connection)
    connection.data_received(BEGINS)
    pouring = asyncio.create_task(call.pour(Gone()))
    await asyncio.sleep(0)
    connection.data_received(b"one")
    with pytest.raises(ConnectionResetError):
        await pouring


@pytest.mark.parametrize("came, executed", [(b"", "no"), (b"HTTP/1.1 1", "maybe")])
@pytest.mark.parametrize("error", [None, ConnectionResetError()])
async def test_a_used_connection_found_closed_executed_nothing_unless_something_came(came, executed, error):
    connection, _, _ = connected()
    asked(connection)
    connection.data_received(WHOLE)
    call = asked(connection)
    if came:
        connection.data_received(came)
    connection.connection_lost(error)
    with pytest.raises(CallBroke) as broken:
        await call.head()
    assert broken.value.executed == executed


async def test_a_request_is_not_written_on_a_connection_that_is_closing():
    connection, transport, _ = connected()
    transport.close()
    with pytest.raises(CallBroke) as broken:
        asked(connection)
    assert (broken.value.can_be_repeated, transport.written) == (True, b"")


async def test_after_its_loss_its_home_forgets_it_and_no_timer_holds_it():
    connection, _, home = connected(first_byte_timeout=300.0)
    asked(connection)
    connection.connection_lost(None)
    assert home.lost == [connection]
    assert connection._silence._timer is None
