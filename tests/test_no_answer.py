"""What people read when nobody answers: the address and the reason, and nothing of the library's insides."""

import asyncio
import errno
import socket

import aiohttp
import pytest
from aiohttp.client_reqrep import ConnectionKey

from autoscaler.no_answer import why_no_answer
from autoscaler.tls import ServerTls, server_context
from tests.fakes.certificates import Authority


async def asked(url: str, **more) -> str:
    """Ask for `url` and return why there is no answer."""
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=5.0)) as session:
        with pytest.raises((aiohttp.ClientError, OSError)) as caught:
            async with session.get(url, **more) as answer:
                await answer.read()
    return why_no_answer(caught.value)


async def said_by(answer: bytes, url: str = "http://127.0.0.1:{port}/", **more) -> str:
    """Return why there is no answer from a server that says `answer` and closes."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1000)
        writer.write(answer)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        return await asked(url.format(port=server.sockets[0].getsockname()[1]), **more)


def key(host: str = "10.0.0.5", port: int = 8082) -> ConnectionKey:
    return ConnectionKey(host, port, False, True, None, None, None)


async def test_where_nobody_listens_the_connection_is_refused():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        assert await asked(f"http://127.0.0.1:{port}/") == f"127.0.0.1:{port}: connection refused"


async def test_a_server_in_plain_text_speaks_no_tls():
    said = await said_by(b"HTTP/1.1 400 Bad Request\r\n\r\n", "https://127.0.0.1:{port}/")
    assert said.startswith("127.0.0.1:")
    assert said.partition(": ")[2] in ("no TLS: wrong version number", "no TLS: record layer failure")


async def test_a_certificate_of_an_authority_that_is_not_known_is_not_trusted(tmp_path):
    pair = Authority(tmp_path).issues("127.0.0.1")
    shown = server_context(ServerTls(pair.certificate, pair.key))
    server = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0, ssl=shown)
    async with server:
        port = server.sockets[0].getsockname()[1]
        said = await asked(f"https://127.0.0.1:{port}/")
    assert said.startswith(f"127.0.0.1:{port}: its certificate is not trusted: unable to get local issuer")


async def test_an_answer_that_does_not_come_or_breaks_off():
    assert await said_by(b"") == "the connection was closed before the answer"
    assert await said_by(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nab") == "the answer broke off"


REFUSED, NO_ROUTE = OSError(errno.ECONNREFUSED, "x"), OSError(errno.EHOSTUNREACH, "x")
BOTH, UNKNOWN = OSError("one said this, one that"), socket.gaierror(-2, "Name or service not known")


@pytest.mark.parametrize(
    "error, said",
    [
        (aiohttp.ClientConnectorError(key(), NO_ROUTE), "10.0.0.5:8082: no route to host"),
        (aiohttp.ClientConnectorError(key("fd00::1"), REFUSED), "[fd00::1]:8082: connection refused"),
        (aiohttp.ClientConnectorError(key(), BOTH), "10.0.0.5:8082: one said this, one that"),
        (aiohttp.ClientConnectorDNSError(key("a"), UNKNOWN), "a: no address is known for this name"),
        (aiohttp.ClientOSError(errno.ECONNRESET, "x"), "connection reset by peer"),
        (aiohttp.ConnectionTimeoutError("to host http://10.0.0.5"), "no answer in time"),
        (TimeoutError(), "no answer in time"),
        (OSError(errno.EMFILE, "x"), "too many open files"),
        (ValueError("answered 404"), "answered 404"),
        (ValueError(), "ValueError"),
    ],
)
def test_each_reason_is_told_in_words(error, said):
    assert why_no_answer(error) == said
