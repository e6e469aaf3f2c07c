"""One call to a replica: the request out, the answer in.

The client session is set up to add nothing and to change nothing: no cookies, redirects, decompression,
default headers, pool limits (slots are the only limit), and no replay of its own, which would be an
execution that nobody counts. Time limits are ours, by phase.

A call that breaks says how (`connect`, `reset`, `truncated`, `protocol`, or `late`) and whether the request
may have executed. It provably did not when the connection was refused, or when one that had idled was found
closed: the server had closed it, the news and our request crossed on the way. That shows within a round
trip; a connection that breaks later may have broken at work.
"""

import asyncio
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass
from http import HTTPStatus
from weakref import WeakSet

import aiohttp
from aiohttp import hdrs
from aiohttp.client_proto import ResponseHandler
from aiohttp.client_reqrep import ClientRequest
from aiohttp.connector import Connection
from aiohttp.typedefs import LooseHeaders
from multidict import CIMultiDict
from yarl import URL

from autoscaler.proxy.answers import Executed
from autoscaler.proxy.body import RequestBody
from autoscaler.proxy.headers import RESPONSE_FIELDS_REPLACED, BadHead, end_to_end
from autoscaler.proxy.options import ProxyOptions, RouteOptions

_STALE_WINDOW = 0.25
"""A reused connection that breaks within this after the request was written had been closed before [s]."""

_HEAD_LINE_MAX, _HEAD_FIELDS_MAX = 32 * 1024, 256
"""What a server may send as a header line [bytes], and how many [1]; more than clients may send us."""

_NEVER_ROUND_UP = 3600.0
"""Time limits below this are kept to the millisecond, not rounded up to seconds [s]."""


class CallBroke(Exception):
    """A call ended without a whole answer."""

    def __init__(self, how: str, executed: Executed, text: str) -> None:
        super().__init__(text)
        self.how = how
        self.executed = executed


@dataclass(slots=True)
class _Wire:
    """What one call gives to its connection, and what it learns of it."""

    headers: CIMultiDict[str]
    transport: asyncio.Transport | None = None
    reused: bool = False
    written_at: float = 0.0


_wire_of_this_call: ContextVar[_Wire] = ContextVar("_wire_of_this_call")
_used_before: "WeakSet[ResponseHandler]" = WeakSet()


class _WireRequest(ClientRequest):
    """Sends the fields as they are, and notes which connection carries them.

    The session merges fields whose names differ in case only, and does not tell of the connection before
    the answer has begun, when it may have to be closed.
    """

    def update_headers(self, headers: LooseHeaders | None) -> None:
        super().update_headers(headers)  # there are none; this writes Host
        self.headers.extend(_wire_of_this_call.get().headers)

    async def send(self, conn: Connection) -> aiohttp.ClientResponse:
        wire = _wire_of_this_call.get()
        wire.transport = conn.transport
        wire.written_at = self.loop.time()
        protocol = conn.protocol
        if protocol is not None:
            wire.reused = protocol in _used_before
            _used_before.add(protocol)
        return await super().send(conn)


class Call:
    """A call whose answer has begun. Ends by `end`."""

    def __init__(self, response: aiohttp.ClientResponse, headers: CIMultiDict[str], wire: _Wire) -> None:
        self._response = response
        self._wire = wire
        self.status = response.status
        self.reason = response.reason
        self.headers = headers
        """What of its head is passed on."""

    @property
    def whole(self) -> bool:
        """Whether the answer has been received in full and read."""
        content = self._response.content
        return content.at_eof() and content.exception() is None

    @property
    def begun(self) -> bool:
        """Whether a part of the body is here already."""
        return self._response.content.total_bytes > 0 or self._response.content.at_eof()

    def when_received(self, tell: Callable[[], None]) -> None:
        """Call `tell` as soon as the last byte is here, although it may not have been read; now if it is."""
        self._response.content.on_eof(tell)

    async def next_piece(self) -> bytes:
        """Return what has arrived, waiting if nothing has; empty at the end. Raises `CallBroke`."""
        try:
            return await self._response.content.readany()
        except TimeoutError as late:
            raise CallBroke("late", "maybe", "The model server fell silent in mid-answer.") from late
        except (aiohttp.ClientError, OSError) as broken:
            raise CallBroke("truncated", "maybe", "The model server broke off its answer.") from broken

    def end(self) -> None:
        """Let go of the connection: back to the pool if the answer is whole, else closed at once."""
        if self.whole:
            self._response.release()
            return
        self._response.close()
        _abort(self._wire)


class Upstream:
    """Makes the calls of one route."""

    def __init__(self, options: ProxyOptions, route: RouteOptions) -> None:
        self._route = route
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(
                limit=0,
                limit_per_host=0,
                keepalive_timeout=options.upstream_keepalive,
                ttl_dns_cache=10,
                timeout_ceil_threshold=_NEVER_ROUND_UP,
            ),
            timeout=aiohttp.ClientTimeout(
                total=None,
                connect=None,
                sock_connect=options.connect_timeout,
                sock_read=None,
                ceil_threshold=_NEVER_ROUND_UP,
            ),
            request_class=_WireRequest,
            cookie_jar=aiohttp.DummyCookieJar(),
            skip_auto_headers=("User-Agent", "Accept", "Accept-Encoding", "Content-Type"),
            auto_decompress=False,
            read_bufsize=options.read_buffer_bytes,
            max_line_size=_HEAD_LINE_MAX,
            max_field_size=_HEAD_LINE_MAX,
            max_headers=_HEAD_FIELDS_MAX,
        )
        # The session has no public switch for its replay of idempotent methods; a test holds this one to it.
        self._session._retry_connection = False

    async def close(self) -> None:
        """Close every connection."""
        await self._session.close()

    async def call(self, method: str, url: str, headers: CIMultiDict[str], body: RequestBody) -> Call:
        """Send the request; return when the head of the answer is here.

        The caller owns the `Call` from then on. When this is cancelled, the connection is closed at once.

        Raises
        ------
        CallBroke
            If no answer began.
        """
        wire = _Wire(headers)
        _wire_of_this_call.set(wire)
        try:
            async with self._first_byte_limit(body):
                response = await self._session.request(
                    method,
                    URL(url, encoded=True),
                    data=body.payload(),
                    allow_redirects=False,
                )
        except BaseException as broken:
            _abort(wire)
            if (translated := _translate(broken, wire, asyncio.get_running_loop().time())) is None:
                raise
            raise translated from broken
        finally:
            body.on_progress = None
        try:
            headers = _check_head(response)
        except CallBroke:
            response.close()
            raise
        self._limit_silence(response)
        return Call(response, headers, wire)

    def _first_byte_limit(self, body: RequestBody) -> asyncio.Timeout:
        """Limit the wait for the head, counted from the last progress of the upload."""
        patience = self._route.first_byte_timeout
        limit = asyncio.timeout(patience)
        if patience is not None and not body.complete:
            loop = asyncio.get_running_loop()
            body.on_progress = lambda: None if limit.expired() else limit.reschedule(loop.time() + patience)
        return limit

    def _limit_silence(self, response: aiohttp.ClientResponse) -> None:
        """Limit the pauses of the answer; the clock stands while the client is the slow one."""
        connection = response.connection
        if connection is not None and connection.protocol is not None:
            connection.protocol.read_timeout = self._route.idle_timeout
            connection.protocol.start_timeout()


def _check_head(response: aiohttp.ClientResponse) -> CIMultiDict[str]:
    """Return the fields to pass on; raise `CallBroke` if there is no way to pass the answer on."""
    if response.status == HTTPStatus.SWITCHING_PROTOCOLS:
        raise CallBroke("protocol", "maybe", "The model server switched protocols, unasked.")
    try:
        headers = end_to_end(response.raw_headers, without=RESPONSE_FIELDS_REPLACED)
    except BadHead as bad:
        text = f"The model server's answer cannot be passed on: {bad}."
        raise CallBroke("protocol", "maybe", text) from bad
    if hdrs.TRANSFER_ENCODING in response.headers:
        headers.popall(hdrs.CONTENT_LENGTH, None)  # the chunks were the framing, whatever it said
    return headers


def _abort(wire: _Wire) -> None:
    """Close the connection without waiting for what is still to be written."""
    if wire.transport is not None:
        wire.transport.abort()


def _translate(broken: BaseException, wire: _Wire, now: float) -> CallBroke | None:
    """Say what an exception of the client means for the request; None if it is none of the client's."""
    executed: Executed = "maybe"
    how, text = "reset", "The connection to the model server broke."
    match broken:
        case aiohttp.ConnectionTimeoutError() | aiohttp.ClientConnectorError():
            how, executed, text = "connect", "no", "The model server does not accept connections."
        case TimeoutError():
            how, text = "late", "The model server did not answer in time."
        case aiohttp.ServerDisconnectedError() if not isinstance(broken.message, str):
            how, text = "truncated", "The model server broke off in the head of its answer."
        case aiohttp.ServerDisconnectedError() | aiohttp.ClientOSError():
            if wire.reused and now - wire.written_at < _STALE_WINDOW:
                executed = "no"
        case aiohttp.ClientResponseError():
            how, text = "protocol", "The model server did not answer in HTTP."
        case aiohttp.ClientError() | OSError():
            pass
        case _:
            return None
    return CallBroke(how, executed, text)
