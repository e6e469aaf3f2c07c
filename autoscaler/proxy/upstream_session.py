"""The client library, set up to add nothing and to change nothing.

Of the library its connections, parser and writer are used, not its session, which does much for each request
that a proxy must not do: default headers, cookies, redirects, a replay of its own (an execution that nobody
counts), and merging fields whose names differ in case only. There is no limit of connections either: slots
are the only limit. Time limits are ours, by phase.
"""

import asyncio
import ssl
from dataclasses import dataclass
from typing import Any

import aiohttp
from aiohttp import hdrs
from aiohttp.client_reqrep import ClientRequest, ConnectionKey
from aiohttp.connector import Connection
from aiohttp.helpers import EMPTY_BODY_METHODS, TimerNoop
from aiohttp.typedefs import LooseHeaders
from multidict import CIMultiDict, CIMultiDictProxy
from yarl import URL

from autoscaler.proxy.body import Payload
from autoscaler.proxy.call import Wire
from autoscaler.proxy.options import ProxyOptions
from autoscaler.proxy.upstream_connection import UpstreamConnection, use_upstream_connections

_HEAD_LINE_MAX, _HEAD_FIELDS_MAX = 32 * 1024, 256
"""What a server may send as a header line [bytes], and how many [1]; more than clients may send us."""

_NEVER_ROUND_UP = 3600.0
"""Time limits below this are kept to the millisecond, not rounded up to seconds [s]."""

_NEVER_ADDED = CIMultiDict[None]({"Content-Type": None})
"""What the library would take from a body, were it not in this list."""

_AT_ONCE = 64 * 1024
"""A body up to this is written together with its head [bytes]; a longer one by a task, as it is taken."""

_ORIGINS_MAX = 1000
"""So many replicas are remembered, and then all are forgotten [1]: replicas come and go."""

_NOT_KEPT = CIMultiDictProxy[str](CIMultiDict())
"""In the place of the fields that were sent, which a long answer need not hold."""

_NO_TIME_LIMIT = TimerNoop()


class UpstreamSession:
    """Connections to the replicas of one pool; those that idle are treated as `reuse` says."""

    def __init__(self, options: ProxyOptions, context: ssl.SSLContext | bool, **reuse: Any) -> None:
        self._ssl = context
        self._origins: dict[str, _Origin] = {}
        self._read_buffer = options.read_buffer_bytes
        self._connector = aiohttp.TCPConnector(
            limit=0,
            limit_per_host=0,
            ttl_dns_cache=10,
            timeout_ceil_threshold=_NEVER_ROUND_UP,
            ssl=context,
            **reuse,
        )
        use_upstream_connections(self._connector)
        self._timeout = aiohttp.ClientTimeout(
            sock_connect=options.connect_timeout, ceil_threshold=_NEVER_ROUND_UP
        )

    async def close(self) -> None:
        """Close every connection."""
        await self._connector.close()

    async def ask(
        self, method: str, base_url: str, target: str, wire: Wire, body: Payload
    ) -> aiohttp.ClientResponse:
        """Send a request with the fields of `wire`; return when the head of its answer is here.

        Raises what the library raises: aiohttp.ClientError, OSError, TimeoutError.
        """
        url = URL(base_url + target, encoded=True)
        request = _WireRequest(method, url, wire, body, self._origin(base_url))
        try:
            connection = await self._connector.connect(request, traces=[], timeout=self._timeout)
        except TimeoutError as late:
            raise aiohttp.ConnectionTimeoutError(f"no connection to {url.host} in time") from late
        try:
            self._expect_answer(connection, method)
            response = await request.send(connection)
            try:
                await response.start(connection)
            except BaseException:
                response.close()
                raise
        except BaseException:
            connection.close()
            raise
        return response

    def _origin(self, base_url: str) -> "_Origin":
        origin = self._origins.get(base_url)
        if origin is None:
            if len(self._origins) >= _ORIGINS_MAX:
                self._origins.clear()
            origin = self._origins[base_url] = _Origin(self._ssl, self._connector.force_close)
        return origin

    def _expect_answer(self, connection: Connection, method: str) -> None:
        if connection.protocol is None:
            raise aiohttp.ServerDisconnectedError
        connection.protocol.set_response_params(
            timer=_NO_TIME_LIMIT,
            skip_payload=method in EMPTY_BODY_METHODS,
            read_until_eof=True,
            auto_decompress=False,
            read_bufsize=self._read_buffer,
            timeout_ceil_threshold=_NEVER_ROUND_UP,
            max_line_size=_HEAD_LINE_MAX,
            max_field_size=_HEAD_LINE_MAX,
            max_headers=_HEAD_FIELDS_MAX,
        )


class _Written:
    """What a response asks of the writer of its request: how much it wrote. Nobody asks the response."""

    output_size = 0


class _WireRequest(ClientRequest):
    """Sends the fields as they are, and notes which connection carries them."""

    def __init__(self, method: str, url: URL, wire: Wire, body: Payload, to: "_Origin") -> None:
        self._wire = wire
        self._to = to
        self._at_once = b"" if body is None else body if isinstance(body, bytes) else None
        if self._at_once is not None and len(self._at_once) > _AT_ONCE:
            self._at_once = None
        elif self._at_once:
            wire.headers[hdrs.CONTENT_LENGTH] = str(len(self._at_once))
            body = None
        super().__init__(method, url, data=body, loop=asyncio.get_running_loop(), ssl=to.context)

    def update_headers(self, headers: LooseHeaders | None) -> None:
        super().update_headers(None)  # this writes Host
        self.headers.extend(self._wire.headers)

    def update_auto_headers(self, skip_auto_headers: object) -> None:
        self._skip_auto_headers = _NEVER_ADDED

    @property
    def connection_key(self) -> ConnectionKey:
        if self._to.key is None:
            self._to.key = super().connection_key
        return self._to.key

    async def send(self, conn: Connection) -> aiohttp.ClientResponse:
        wire, protocol = self._wire, conn.protocol
        wire.transport = conn.transport
        wire.written_at = self.loop.time()
        if isinstance(protocol, UpstreamConnection):
            wire.reused, protocol.was_used = protocol.was_used, True
            if self._at_once is not None and not protocol.writing_paused:
                return self._send_at_once(self._at_once, protocol)
        if self._at_once:
            self.update_body_from_data(self._at_once)
        return await super().send(conn)

    def _send_at_once(self, body: bytes, protocol: UpstreamConnection) -> aiohttp.ClientResponse:
        if self._to.force_close and hdrs.CONNECTION not in self.headers:
            self.headers[hdrs.CONNECTION] = "close"
        fields = "".join([f"{name}: {value}\r\n" for name, value in self.headers.items()])
        head = f"{self.method} {self.url.raw_path_qs} HTTP/1.1\r\n{fields}\r\n".encode()
        if protocol.transport is None or protocol.transport.is_closing():
            raise aiohttp.ClientConnectionResetError("the connection is closing")
        protocol.transport.write(head + body)
        protocol.start_timeout()
        return self.response_class(
            self.method,
            self.url,
            writer=None,
            continue100=None,
            timer=_NO_TIME_LIMIT,
            request_info=aiohttp.RequestInfo(self.url, self.method, _NOT_KEPT, self.url),
            traces=[],
            loop=self.loop,
            session=None,  # type: ignore[arg-type]  # it is asked for cookies and charsets, and may be missing
            stream_writer=_Written(),  # type: ignore[arg-type]
        )


@dataclass(slots=True)
class _Origin:
    """What all requests to one replica have in common."""

    context: ssl.SSLContext | bool
    force_close: bool
    key: ConnectionKey | None = None
    """By which the library finds idle connections."""
