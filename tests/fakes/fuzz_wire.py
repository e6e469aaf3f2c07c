"""The proxy before a server that writes down what it gets, in a thread; before it a client of plain sockets.

The client says bytes, and reads what comes back as strictly as RFC 9112 is written. The server parses on its
own, strictly too, and tags each answer with the serial number of the request that it answers. So it can be
told who saw how many requests, and which answer belongs to which.
"""

import asyncio
import hashlib
import re
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

import uvloop

from autoscaler.proxy.options import ProxyOptions, RouteOptions
from tests.fakes.front import front
from tests.fakes.upstream import Received, Upstream, UpstreamWire

SHORT = 0.25
"""Every limit of the proxy [s]; whoever says half a request is answered by then."""

HANGS_AFTER = 10.0
"""Nothing that a client says may leave it without an end for longer [s]."""

START = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+ /[!-~]* HTTP/1\.1")
FIELD = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
STATUS = re.compile(rb"HTTP/1\.1 (\d{3}) [^\x00-\x08\x0a-\x1f\x7f]*")
HOP_BY_HOP = {"keep-alive", "te", "trailer", "proxy-connection", "expect"}


@dataclass(frozen=True)
class Answer:
    status: int
    fields: dict[str, str]
    body: bytes

    @property
    def serial(self) -> int:
        """Of the request at the server; -1 if the proxy said it."""
        return int(self.fields.get("x-serial", "-1"))


@dataclass
class FuzzWire:
    """What the tests use."""

    port: int = 0
    seen: list[Received] = field(default_factory=list, repr=False)
    """What the server has got, in order."""
    reply: bytes | None = None
    """What the server says to a request for `/fuzz`, before it closes."""

    def exchange(self, pieces: list[bytes]) -> bytes:
        """Say `pieces`; return everything that comes back until the proxy closes."""
        came = b""
        with socket.create_connection(("127.0.0.1", self.port), timeout=HANGS_AFTER) as sock:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with suppress(
                ConnectionError
            ):  # it closed while we spoke; what it said before is here all the same
                for piece in pieces:
                    sock.sendall(piece)
            with suppress(ConnectionError):
                while data := sock.recv(65536):
                    came += data
        return came

    async def script(self, wire: UpstreamWire, request: Received) -> None:
        check_request(request)
        if request.head.target == "/fuzz" and self.reply is not None:
            wire.send(self.reply)
            wire.close()
            return
        serial = len(self.seen)
        self.seen.append(request)
        body = b"" if request.head.method == "HEAD" else digest(request.body)
        length = len(digest(request.body))
        wire.send(
            b"HTTP/1.1 200 OK\r\nX-Serial: %d\r\nX-Method: %s\r\nContent-Length: %d\r\n\r\n%s"
            % (serial, request.head.method.encode(), length, body)
        )


def digest(body: bytes) -> bytes:
    return b"%d %s" % (len(body), hashlib.sha256(body).hexdigest().encode())


def check_request(request: Received) -> None:
    """A request as it may be passed on: one framing, one host, tokens for names, nothing of one hop only."""
    head = request.head
    assert START.fullmatch(head.start), head.start
    names = [name.lower() for name, _ in head.fields]
    assert all(FIELD.fullmatch(name) for name in names), names
    assert names.count("host") == 1
    framings = names.count("content-length") + names.count("transfer-encoding")
    assert framings <= 1
    assert not HOP_BY_HOP & set(names), names
    assert (head.get("Connection") or "close").lower() in ("close", "upgrade"), "of the client's own hop"


def answers_in(stream: bytes) -> list[Answer]:
    """Every answer of a connection. Raises AssertionError at the first byte that belongs to none."""
    answers = []
    while stream:
        head, end, stream = stream.partition(b"\r\n\r\n")
        assert end, f"an answer breaks off in its head: {head!r}"
        start, *lines = head.split(b"\r\n")
        match = STATUS.fullmatch(start)
        assert match, f"this is no start of an answer: {start[:80]!r}"
        pairs = [line.partition(b":") for line in lines]
        assert all(colon and FIELD.fullmatch(name.decode("latin-1")) for name, colon, _ in pairs), lines
        fields = {name.decode().lower(): value.strip().decode("latin-1") for name, _, value in pairs}
        assert len([1 for name, _, _ in pairs if name.lower() == b"content-length"]) <= 1
        status = int(match[1])
        if status < 200:
            assert status == 100
            continue
        body, stream = _body(fields, stream, bodyless=fields.get("x-method") == "HEAD")
        answers.append(Answer(status, fields, body))
    return answers


def _body(fields: dict[str, str], stream: bytes, *, bodyless: bool) -> tuple[bytes, bytes]:
    if bodyless or (not fields.get("x-serial") and (not stream or stream.startswith(b"HTTP/1.1 "))):
        return b"", stream  # to a HEAD
    assert "transfer-encoding" not in fields
    length = int(fields["content-length"])
    assert len(stream) >= length, f"an answer of {length} bytes breaks off after {len(stream)}"
    return stream[:length], stream[length:]


@contextmanager
def fuzz_wire() -> Iterator[FuzzWire]:
    """Everything runs inside; checked for leaks at the end."""
    wire, ready, over = FuzzWire(), threading.Event(), threading.Event()
    broken: list[BaseException] = []

    async def serve() -> None:
        options = ProxyOptions(port=0, head_timeout=SHORT, body_timeout=SHORT, linger=0.05)
        route = RouteOptions(first_byte_timeout=SHORT, idle_timeout=SHORT)
        async with Upstream(wire.script) as model:
            replica = model.replica(slots=64)
            async with front(replica, options=options, route=route) as proxy:
                wire.port = proxy.port
                ready.set()
                await asyncio.to_thread(over.wait)
            for each in model.wires:  # what the server could not parse shows here
                if each.task.done() and not each.task.cancelled() and (error := each.task.exception()):
                    raise error

    def work() -> None:
        try:
            uvloop.run(serve())
        except BaseException as error:
            broken.append(error)
        finally:
            ready.set()

    thread = threading.Thread(target=work)
    thread.start()
    ready.wait()
    try:
        yield wire
    finally:
        over.set()
        thread.join()
    if broken:
        raise broken[0]
