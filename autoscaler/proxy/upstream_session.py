"""The client library, set up to add nothing and to change nothing.

No cookies, redirects, decompression, default headers, pool limits (slots are the only limit), and no replay
of its own, which would be an execution that nobody counts. Time limits are ours, by phase.
"""

import ssl
from contextvars import ContextVar
from typing import Any
from weakref import WeakSet

import aiohttp
from aiohttp.client_proto import ResponseHandler
from aiohttp.client_reqrep import ClientRequest
from aiohttp.connector import Connection
from aiohttp.typedefs import LooseHeaders
from multidict import CIMultiDict

from autoscaler.proxy.call import Wire
from autoscaler.proxy.options import ProxyOptions
from autoscaler.proxy.upstream_connection import use_upstream_connections

_HEAD_LINE_MAX, _HEAD_FIELDS_MAX = 32 * 1024, 256
"""What a server may send as a header line [bytes], and how many [1]; more than clients may send us."""

_NEVER_ROUND_UP = 3600.0
"""Time limits below this are kept to the millisecond, not rounded up to seconds [s]."""

_NEVER_ADDED = CIMultiDict[None]({"Content-Type": None})
"""What the library would take from a body, were it not in this list."""

wire_of_this_call: ContextVar[Wire] = ContextVar("wire_of_this_call")
"""Set it before a request is made with a session."""

_used_before: "WeakSet[ResponseHandler]" = WeakSet()


class _WireRequest(ClientRequest):
    """Sends the fields as they are, and notes which connection carries them.

    The session merges fields whose names differ in case only, and does not tell of the connection before
    the answer has begun, when it may have to be closed.
    """

    def update_headers(self, headers: LooseHeaders | None) -> None:
        super().update_headers(headers)  # there are none; this writes Host
        self.headers.extend(wire_of_this_call.get().headers)

    def update_auto_headers(self, skip_auto_headers: object) -> None:
        self._skip_auto_headers = _NEVER_ADDED

    async def send(self, conn: Connection) -> aiohttp.ClientResponse:
        wire = wire_of_this_call.get()
        wire.transport = conn.transport
        wire.written_at = self.loop.time()
        protocol = conn.protocol
        if protocol is not None:
            wire.reused = protocol in _used_before
            _used_before.add(protocol)
        return await super().send(conn)


def new_session(options: ProxyOptions, context: ssl.SSLContext | bool, **reuse: Any) -> aiohttp.ClientSession:
    """Return a session whose connector treats idle connections as `reuse` says."""
    connector = aiohttp.TCPConnector(
        limit=0,
        limit_per_host=0,
        ttl_dns_cache=10,
        timeout_ceil_threshold=_NEVER_ROUND_UP,
        ssl=context,
        **reuse,
    )
    use_upstream_connections(connector)
    session = aiohttp.ClientSession(
        connector=connector,
        timeout=aiohttp.ClientTimeout(
            total=None,
            connect=None,
            sock_connect=options.connect_timeout,
            sock_read=None,
            ceil_threshold=_NEVER_ROUND_UP,
        ),
        request_class=_WireRequest,
        cookie_jar=aiohttp.DummyCookieJar(),
        auto_decompress=False,
        read_bufsize=options.read_buffer_bytes,
        max_line_size=_HEAD_LINE_MAX,
        max_field_size=_HEAD_LINE_MAX,
        max_headers=_HEAD_FIELDS_MAX,
    )
    # The session has no public switch for its replay of idempotent methods; a test holds this one to it.
    session._retry_connection = False
    return session
