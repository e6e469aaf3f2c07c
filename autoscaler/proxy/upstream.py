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
from contextvars import ContextVar
from http import HTTPStatus
from typing import Any
from weakref import WeakSet

import aiohttp
from aiohttp.client_proto import ResponseHandler
from aiohttp.client_reqrep import ClientRequest
from aiohttp.connector import Connection
from aiohttp.typedefs import LooseHeaders
from multidict import CIMultiDict
from yarl import URL

from autoscaler.proxy.answers import Executed
from autoscaler.proxy.body import RequestBody
from autoscaler.proxy.call import Call, CallBroke, Wire
from autoscaler.proxy.headers import RESPONSE_FIELDS_REPLACED, BadHead, end_to_end
from autoscaler.proxy.options import ProxyOptions, RouteOptions

_STALE_WINDOW = 0.25
"""A reused connection that breaks within this after the request was written had been closed before [s]."""

_HEAD_LINE_MAX, _HEAD_FIELDS_MAX = 32 * 1024, 256
"""What a server may send as a header line [bytes], and how many [1]; more than clients may send us."""

_NEVER_ROUND_UP = 3600.0
"""Time limits below this are kept to the millisecond, not rounded up to seconds [s]."""


_wire_of_this_call: ContextVar[Wire] = ContextVar("_wire_of_this_call")
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


class Upstream:
    """Makes the calls of one route."""

    def __init__(self, options: ProxyOptions, route: RouteOptions) -> None:
        self._route = route
        self._session = self._new_session(options, keepalive_timeout=options.upstream_keepalive)
        self._session_of_fresh_connections = self._new_session(options, force_close=True)

    def _new_session(self, options: ProxyOptions, **reuse: Any) -> aiohttp.ClientSession:
        session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(
                limit=0,
                limit_per_host=0,
                ttl_dns_cache=10,
                timeout_ceil_threshold=_NEVER_ROUND_UP,
                **reuse,
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
        session._retry_connection = False
        return session

    async def close(self) -> None:
        """Close every connection."""
        await self._session.close()
        await self._session_of_fresh_connections.close()

    async def call(
        self,
        method: str,
        url: str,
        headers: CIMultiDict[str],
        body: RequestBody,
        *,
        fresh_connection: bool = False,
    ) -> Call:
        """Send the request; return when the head of the answer is here.

        Connections that idle are used again, unless a `fresh_connection` is asked for. The caller owns the
        `Call` from then on. When this is cancelled, the connection is closed at once.

        Raises
        ------
        CallBroke
            If no answer began.
        """
        session = self._session_of_fresh_connections if fresh_connection else self._session
        wire = Wire(headers)
        _wire_of_this_call.set(wire)
        try:
            async with self._first_byte_limit(body):
                response = await session.request(
                    method,
                    URL(url, encoded=True),
                    data=body.payload(),
                    allow_redirects=False,
                )
        except BaseException as broken:
            wire.abort()
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
        return end_to_end(response.raw_headers, without=RESPONSE_FIELDS_REPLACED)
    except BadHead as bad:
        text = f"The model server's answer cannot be passed on: {bad}."
        raise CallBroke("protocol", "maybe", text) from bad


def _translate(broken: BaseException, wire: Wire, now: float) -> CallBroke | None:
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
