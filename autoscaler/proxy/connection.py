"""The low-level HTTP server, with what it lacks as the front door of a proxy.

- A deadline for the head of a request: the library has one limit for both an idle connection and a head that
  drips in byte by byte, and the first may be long where the second must be short.
- Telling the reader of a body that its framing broke: the library would let it wait for ever.
- Its answers to what it cannot parse: in the words of this program, in HTTP/1.1, with 414 and 431 where a
  limit was met, and without a traceback in the log.
- An end for a client that takes nothing of its answer any more (`send_watch`).
- A bound on connections (`crowd`), and on requests that are sent ahead of their answers.
- Closing connections that idle, while those at work go on.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from aiohttp import HttpVersion11, web
from aiohttp.abc import AbstractStreamWriter
from aiohttp.http import RawRequestMessage
from aiohttp.http_parser import HttpRequestParser, HttpRequestParserPy
from aiohttp.streams import StreamReader

from autoscaler.errors import UsageError
from autoscaler.proxy.answers import Refusal, answer
from autoscaler.proxy.crowd import Crowd, address_of
from autoscaler.proxy.descriptors import unread_bytes
from autoscaler.proxy.options import ProxyOptions
from autoscaler.proxy.send_watch import SendWatch
from autoscaler.proxy.unparsed import NO_ROOM, in_one_line, unparsed

_log = logging.getLogger("autoscaler.proxy")

_SOON = 0.01
"""When to look again [s]."""

_PIPELINED_MAX = 4
"""So many requests may have come that are not being served yet [1]. Of far more the library stops reading,
and a client that leaves is not noticed; so one that sends more gets the answer that is due, and the end."""

_UNPARSED = "UNKNOWN"
"""The method that the library gives to what it could not parse."""


class _Messages(list[tuple[RawRequestMessage, StreamReader]]):
    """The few requests that have come and are not served yet, in a tenth of the memory of a deque."""

    __slots__ = ()

    def popleft(self) -> tuple[RawRequestMessage, StreamReader]:
        return self.pop(0)


RequestHandling = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


def require_c_parser() -> None:
    """Raise UsageError if aiohttp runs without its C parser, which is the strict one."""
    if HttpRequestParser is HttpRequestParserPy:
        raise UsageError(
            "aiohttp runs without its C extensions, whose HTTP parser this proxy relies on; "
            "install aiohttp from a wheel and unset AIOHTTP_NO_EXTENSIONS"
        )


class Connection(web.RequestHandler):
    """One connection of a client."""

    __slots__ = ("_client", "_crowd", "_head_deadline", "_options", "_watch", "when_writable")

    def __init__(
        self,
        server: "Server",
        *,
        loop: asyncio.AbstractEventLoop,
        proxy_options: ProxyOptions,
        **kwargs: object,
    ) -> None:
        super().__init__(server, loop=loop, **kwargs)  # type: ignore[arg-type]
        self._messages = _Messages()  # type: ignore[assignment]  # it has what is asked of it
        self._crowd = server.crowd
        self._client: str | None = None  # its address, once it was let in
        self._options = proxy_options
        self._head_deadline: asyncio.TimerHandle | None = None
        self._watch = SendWatch(proxy_options.send_timeout)
        self.when_writable: Callable[[], None] | None = None
        """Told when the client takes what is written to it again."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        if (
            self._keepalive_handle is not None
        ):  # before the first answer, the deadline of the head stands for it
            self._keepalive_handle.cancel()
            self._keepalive_handle = None
        if self._task_handler is not None:
            self._task_handler.add_done_callback(self._has_ended)
        client = address_of(transport)
        if not self._crowd.enter(client):
            if self.transport is not None:
                self.transport.write(NO_ROOM)
            self.force_close()
            return
        self._client = client
        self._start_head_deadline()

    def data_received(self, data: bytes) -> None:
        requests = self._request_count
        super().data_received(data)
        if self._request_count != requests:
            self._stop_head_deadline()
        elif data and self._head_deadline is None and self.idle:
            self._start_head_deadline()
        if len(self._messages) > _PIPELINED_MAX:
            self.close()
            if self._buffer_paused:
                self._resume_reading_for_buffer()
        self._tell_reader_if_broken()

    def connection_lost(self, exc: BaseException | None) -> None:
        if self._client is not None:
            self._crowd.leave(self._client)
            self._client = None
        self._stop_head_deadline()
        self._watch.stop()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        super().pause_writing()
        if self.transport is not None:
            self._watch.start(self.transport)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._watch.stop()
        if self.when_writable is not None:
            self.when_writable()

    def _has_ended(self, handling: "asyncio.Task[None]") -> None:
        """No more requests are handled: bound the time that the close may take."""
        transport = self.transport  # None if the connection is lost already
        if transport is not None and transport.is_closing():
            self._watch.start(transport)

    @property
    def idle(self) -> bool:
        """Whether it waits for the next request, with none in progress."""
        return self._waiter is not None and not self._waiter.done()

    @property
    def ends(self) -> bool:
        """Whether it closes after the answer that is due."""
        return self._close

    @property
    def has_served(self) -> bool:
        """Whether a request has come on it."""
        return self._request_count > 0

    @property
    def has_unread(self) -> bool:
        """Whether something has come that was not read yet: perhaps the next request."""
        return self.transport is not None and unread_bytes(self.transport) > 0

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """Answer what could not be parsed (400, 414, 431), or a fault of this program (500)."""
        if request.writer.output_size > 0:
            raise ConnectionError("an answer has begun already; only the end of the connection can tell")
        if status < 500:
            refusal = unparsed(exc, message or "unreadable", self.max_line_size, self.max_headers)
        else:
            _log.error("a fault in the handling of %s %s", request.method, request.raw_path, exc_info=exc)
            refusal = Refusal(status, "internal_error", "The proxy failed; its log says why.", "maybe")
        response = answer(refusal, request.raw_path.partition("?")[0])
        response.force_close()
        return response

    def _tell_reader_if_broken(self) -> None:
        """If what cannot be parsed came while a request is in progress, it came in the middle of its body."""
        broken = getattr(self._messages[-1][0], "exc", None) if self._messages else None
        if broken is None or self.idle:
            return
        request = self._current_request
        if request is None:  # on its way to its handler, or from it
            self._loop.call_later(_SOON, self._tell_reader_if_broken)
        elif not request.content.is_eof():
            request.content.set_exception(web.RequestPayloadError(in_one_line(str(broken))))
            request.content.feed_eof()

    def _start_head_deadline(self) -> None:
        self._head_deadline = self._loop.call_later(self._options.head_timeout, self._head_is_late)

    def _stop_head_deadline(self) -> None:
        if self._head_deadline is not None:
            self._head_deadline.cancel()
            self._head_deadline = None

    def _head_is_late(self) -> None:
        self._head_deadline = None
        if self.idle:
            self.force_close()


class Server(web.Server):
    """Makes a `Connection` for every client."""

    def __init__(self, handler: RequestHandling, options: ProxyOptions) -> None:
        super().__init__(
            handler,
            request_factory=self._new_request,
            handler_cancellation=True,
            auto_decompress=False,
            access_log=None,
            logger=_log,
            keepalive_timeout=options.client_keepalive,
            lingering_time=options.linger,
            read_bufsize=options.read_buffer_bytes,
            timeout_ceil_threshold=float("inf"),
            max_line_size=options.target_bytes_max,
            # The two limits differ, for by its number alone it is known which one was met.
            max_field_size=options.header_bytes_max + (options.header_bytes_max == options.target_bytes_max),
            max_headers=options.headers_max,
        )
        self._options = options
        self.crowd = Crowd(options)
        self.accepted = 0
        """Connections so far [1]."""

    def __call__(self) -> Connection:
        self.accepted += 1
        return Connection(self, loop=self._loop, proxy_options=self._options, **self._kwargs)

    def close_idle(self, *, served: bool = False) -> int:
        """Close the connections on which nothing is going on and nothing has come.

        With `served` only those that have had an answer; return how many others idle still.
        """
        spared = 0
        for connection in self.connections:
            if not isinstance(connection, Connection) or not connection.idle or connection.has_unread:
                continue
            if served and not connection.has_served:
                spared += 1
            else:
                connection.force_close()
        return spared

    def _new_request(
        self,
        message: RawRequestMessage,
        payload: StreamReader,
        protocol: web.RequestHandler,
        writer: AbstractStreamWriter,
        task: "asyncio.Task[None]",
    ) -> web.BaseRequest:
        """Make a request; what could not be parsed is answered in the version that everybody speaks."""
        if message.method == _UNPARSED:
            message = message._replace(version=HttpVersion11)
        return self._make_request(message, payload, protocol, writer, task)
