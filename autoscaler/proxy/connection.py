"""The low-level HTTP server, with what it lacks as the front door of a proxy.

- A deadline for the head of a request: the library has one limit for both an idle connection and a head that
  drips in byte by byte, and the first may be long where the second must be short.
- Telling the reader of a body that its framing broke: the library would let it wait for ever.
- Its answers to what it cannot parse, in the words of this program, without a traceback in the log.
- Closing connections that idle, while those at work go on.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from aiohttp import web
from aiohttp.http_parser import HttpRequestParser, HttpRequestParserPy

from autoscaler.errors import UsageError
from autoscaler.proxy.answers import Refusal, answer
from autoscaler.proxy.options import ProxyOptions

_log = logging.getLogger("autoscaler.proxy")

_SOON = 0.01
"""When to look again [s]."""

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

    __slots__ = ("_head_deadline", "_head_timeout")

    def __init__(
        self, server: web.Server, *, loop: asyncio.AbstractEventLoop, head_timeout: float, **kwargs: object
    ) -> None:
        super().__init__(server, loop=loop, **kwargs)  # type: ignore[arg-type]
        self._head_timeout = head_timeout
        self._head_deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._start_head_deadline()

    def data_received(self, data: bytes) -> None:
        requests = self._request_count
        super().data_received(data)
        if self._request_count != requests:
            self._stop_head_deadline()
        elif data and self._head_deadline is None and self.idle:
            self._start_head_deadline()
        self._tell_reader_if_broken()

    def connection_lost(self, exc: BaseException | None) -> None:
        self._stop_head_deadline()
        super().connection_lost(exc)

    @property
    def idle(self) -> bool:
        """Whether it waits for the next request, with none in progress."""
        return self._waiter is not None and not self._waiter.done()

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """Answer what could not be parsed (400), or a fault of this program (500)."""
        if request.writer.output_size > 0:
            raise ConnectionError("an answer has begun already; only the end of the connection can tell")
        if status < 500:
            text = _in_one_line(message or "unreadable")
            refusal = Refusal(status, "bad_request", f"The request is not valid HTTP: {text}")
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
            request.content.set_exception(web.RequestPayloadError(_in_one_line(str(broken))))
            request.content.feed_eof()

    def _start_head_deadline(self) -> None:
        self._head_deadline = self._loop.call_later(self._head_timeout, self._head_is_late)

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
            handler_cancellation=True,
            auto_decompress=False,
            access_log=None,
            logger=_log,
            keepalive_timeout=options.client_keepalive,
            lingering_time=options.linger,
            read_bufsize=options.read_buffer_bytes,
            timeout_ceil_threshold=float("inf"),
        )
        self._head_timeout = options.head_timeout

    def __call__(self) -> Connection:
        return Connection(self, loop=self._loop, head_timeout=self._head_timeout, **self._kwargs)

    def close_idle(self) -> None:
        """Close the connections on which nothing is going on."""
        for connection in self.connections:
            if isinstance(connection, Connection) and connection.idle:
                connection.force_close()


def _in_one_line(text: str) -> str:
    """Make what the parser says of foreign bytes fit for a sentence."""
    return " ".join(text.encode("ascii", "backslashreplace").decode().split())
