"""The connections to the replicas of one pool: those that idle are used again, the one used last first.

There is no limit of connections: slots are the only limit. One that has idled for as long as its server may
take it for abandoned is closed, and so is one that says something although nobody asked.
"""

import asyncio
import base64
import socket
import ssl
from collections.abc import Sequence

import aiohappyeyeballs
from aiohappyeyeballs import AddrInfoType
from yarl import URL

from autoscaler.proxy.call import CallBroke
from autoscaler.proxy.descriptors import OUT_OF_DESCRIPTORS
from autoscaler.proxy.options import ProxyOptions, RouteOptions
from autoscaler.proxy.upstream_connection import Home, UpstreamConnection

_ADDRESSES_KEPT = 10.0
"""So long the addresses of a name are not asked for again [s]."""

_NEXT_ADDRESS_AFTER = 0.25
"""When the next address of a name is tried beside one that does not accept [s] (RFC 8305)."""

_HANDSHAKE_MAX = 10.0
"""So long TLS may take to begin [s]."""

_REPLICAS_MAX = 1000
"""So many replicas are remembered [1]: they come and go. Then those are forgotten that nothing idles with."""

_NO_CONNECTION = "The model server does not accept connections."


class ReplicaConnections:
    """The way to one replica: what its URL says, and the connections that idle."""

    def __init__(self, base_url: str, pool: "UpstreamPool") -> None:
        url = URL(base_url)
        self._pool = pool
        self._name = (url.raw_host or "").rstrip(".")
        self._port = url.port or 80
        self._is_tls = url.scheme == "https"
        self._addresses: Sequence[AddrInfoType] = ()
        self._asked_at = -_ADDRESSES_KEPT
        self._idle: dict[UpstreamConnection, None] = {}
        self._timer: asyncio.TimerHandle | None = None
        self.host = url.host_port_subcomponent or ""
        """What the `Host` header says."""
        self.prefix = url.raw_path.rstrip("/")
        """Stands before the path of every request."""
        self.authorization: str | None = None
        """What its URL says of who we are, in the form of the header."""
        if url.user is not None:
            secret = f"{url.user}:{url.password or ''}".encode("latin-1", "replace")
            self.authorization = f"Basic {base64.b64encode(secret).decode()}"

    def idle(self) -> UpstreamConnection | None:
        """Return the connection that was used last, if one may be used again."""
        oldest_allowed = self._pool.loop.time() - self._pool.keepalive
        while self._idle:
            connection, _ = self._idle.popitem()
            if connection.transport is None or connection.transport.is_closing():
                continue
            if connection.idle_since > oldest_allowed:
                return connection
            connection.close()
        return None

    async def connect(self, *, for_one_call: bool = False) -> UpstreamConnection:
        """Make a new one; raises `CallBroke`."""
        try:
            async with asyncio.timeout(self._pool.connect_timeout):
                sock = await self._connected_socket()
        except TimeoutError as late:
            raise CallBroke("connect", "no", _NO_CONNECTION) from late
        except OSError as error:
            if error.errno in OUT_OF_DESCRIPTORS:
                text = "The proxy has no room for another connection now."
                raise CallBroke("local", "no", text) from error
            raise CallBroke("connect", "no", _NO_CONNECTION) from error
        home = None if for_one_call else self
        try:
            _, connection = await self._pool.loop.create_connection(
                lambda: self._pool.make(home),
                sock=sock,
                ssl=self._pool.context() if self._is_tls else None,
                server_hostname=self._name if self._is_tls else None,
                ssl_handshake_timeout=_HANDSHAKE_MAX if self._is_tls else None,
            )
        except OSError as error:  # of TLS too
            sock.close()
            raise CallBroke("connect", "no", _NO_CONNECTION) from error
        except BaseException:
            sock.close()
            raise
        return connection

    def close(self) -> None:
        """Close those that idle."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        for connection in tuple(self._idle):
            connection.close()
        self._idle.clear()

    @property
    def is_empty(self) -> bool:
        """Whether nothing idles."""
        return not self._idle

    # -- for the connections: `Home`

    def take_back(self, connection: UpstreamConnection) -> None:
        """It is free."""
        pool = self._pool
        if pool.is_closed:
            connection.close()
            return
        connection.idle_since = pool.loop.time()
        self._idle[connection] = None
        if self._timer is None:
            self._timer = pool.loop.call_later(pool.keepalive, self._close_abandoned)

    def forget(self, connection: UpstreamConnection) -> None:
        """It is lost."""
        self._idle.pop(connection, None)

    def _close_abandoned(self) -> None:
        self._timer = None
        pool = self._pool
        now = pool.loop.time()
        for connection in tuple(self._idle):  # those that were free first come first
            over_at = connection.idle_since + pool.keepalive
            if over_at > now:
                self._timer = pool.loop.call_at(over_at, self._close_abandoned)
                return
            del self._idle[connection]
            connection.close()

    async def _connected_socket(self) -> socket.socket:
        loop = self._pool.loop
        if loop.time() - self._asked_at >= _ADDRESSES_KEPT:
            self._addresses = await loop.getaddrinfo(
                self._name, self._port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP
            )
            self._asked_at = loop.time()
        try:
            return await aiohappyeyeballs.start_connection(
                self._addresses, happy_eyeballs_delay=_NEXT_ADDRESS_AFTER
            )
        except OSError:
            self._asked_at = -_ADDRESSES_KEPT  # it may have moved
            raise


class UpstreamPool:
    """All connections to the replicas of one pool that idle, by replica."""

    def __init__(self, options: ProxyOptions, route: RouteOptions, context: ssl.SSLContext | None) -> None:
        self.loop = asyncio.get_running_loop()
        self.keepalive = options.upstream_keepalive
        self.connect_timeout = options.connect_timeout
        self.is_closed = False
        self._read_buffer = options.read_buffer_bytes
        self._route = route
        self._context = context
        self._replicas: dict[str, ReplicaConnections] = {}

    def replica(self, base_url: str) -> ReplicaConnections:
        """Return the way to the replica at this URL."""
        replica = self._replicas.get(base_url)
        if replica is None:
            if len(self._replicas) >= _REPLICAS_MAX:
                self._replicas = {url: each for url, each in self._replicas.items() if not each.is_empty}
            replica = self._replicas[base_url] = ReplicaConnections(base_url, self)
        return replica

    def make(self, home: Home | None) -> UpstreamConnection:
        """Make a connection that is not connected yet."""
        route = self._route
        return UpstreamConnection(home, self._read_buffer, route.first_byte_timeout, route.idle_timeout)

    def context(self) -> ssl.SSLContext:
        """Return by what servers are checked; what is usual on this machine where nothing was said."""
        if self._context is None:
            self._context = ssl.create_default_context()
        return self._context

    def close(self) -> None:
        """Close those that idle, and those that become free."""
        self.is_closed = True
        for replica in self._replicas.values():
            replica.close()
