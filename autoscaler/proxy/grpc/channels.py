"""One channel to each replica, made at its first call and closed when the replica is gone.

A channel is one HTTP/2 connection that carries any number of calls; slots are the only limit. It is opened
before a call is given to it, so that a replica that does not accept connections is found out while the call
has provably not left. Retries of the library are left on only for calls that the server has provably not
seen: no retry policy is read from anywhere.
"""

import asyncio
from collections import Counter
from collections.abc import Container
from typing import Any

import grpc

from autoscaler.grpc_credentials import channel_credentials
from autoscaler.ports import Replica
from autoscaler.proxy.call import CallBroke
from autoscaler.proxy.grpc.metadata import Metadata
from autoscaler.proxy.grpc.options import GrpcOptions
from autoscaler.tls import ClientTls
from autoscaler.watched_files import WatchedFiles

_RECONNECT_PAUSE = 100
"""First pause of the library between two attempts to connect [ms]; the last is ten times as long. It matters
little: a replica that refused is withheld by the drive."""

_PING_PATIENCE = 20_000
"""A ping that is not answered within it means that the peer is gone [ms]."""

_LONGEST_CALL = 86_400.0
"""A call on a channel with an old certificate may go on for so long [s]."""

_REFUSED = "The model server does not accept connections."


class Line:
    """The channel to one replica; its methods are made once."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        self.channel = channel
        self._unary: dict[str, Any] = {}
        self._streams: dict[str, Any] = {}

    def ask(self, path: str, message: bytes, metadata: Metadata, limit: float | None) -> Any:
        """Begin a call with one message each way, for `limit` [s] at most."""
        method = self._unary.get(path)
        if method is None:
            method = self._unary[path] = self.channel.unary_unary(path, None, None)
        return method(message, timeout=limit, metadata=metadata)

    def open_stream(self, path: str, metadata: Metadata, limit: float | None) -> Any:
        """Begin a call with messages both ways, for `limit` [s] at most."""
        method = self._streams.get(path)
        if method is None:
            method = self._streams[path] = self.channel.stream_stream(path, None, None)
        return method(timeout=limit, metadata=metadata)

    @property
    def connected(self) -> bool:
        """Whether there is a connection now, as far as the library has noticed."""
        return self.channel.get_state() is grpc.ChannelConnectivity.READY

    async def breaks_within(self, patience: float) -> bool:
        """Whether the library notices within `patience` [s] that the connection is lost."""
        if not self.connected:
            return True
        try:
            async with asyncio.timeout(patience):
                await self.channel.wait_for_state_change(grpc.ChannelConnectivity.READY)
        except TimeoutError:
            return False
        return True


class Channels:
    """The channels of one pool. Raises UsageError if the files of `tls` cannot be used."""

    def __init__(self, options: GrpcOptions, tls: ClientTls | None) -> None:
        self._options = options
        self._tls = tls
        self._credentials = None if tls is None else channel_credentials(tls)
        self._files = WatchedFiles(() if tls is None else tls.files, self._renew)
        self._settings = _settings(options, tls)
        self._lines: dict[str, Line] = {}
        self._live: dict[object, str] = {}
        self._retired: set[asyncio.Task[None]] = set()

    async def ready(self, replica: Replica) -> Line:
        """Return the line to a replica, connected.

        Raises
        ------
        CallBroke
            If the replica has no gRPC port, or does not accept a connection in time; nothing was sent.
        """
        line = self._lines.get(replica.id) or self._open(replica)
        if line.channel.get_state(try_to_connect=True) is not grpc.ChannelConnectivity.READY:
            await self._connected(line.channel)
        return line

    def began(self, call: Any, replica_id: str) -> None:
        """Count a call as under way."""
        self._live[call] = replica_id

    def ended(self, call: Any) -> None:
        """Count it no more, as soon as the library says that it is over."""
        if call.done():
            self._over(call)
        else:
            call.add_done_callback(self._over)

    def live_calls(self) -> Counter[str]:
        """Count the calls that began and are under way, by replica id."""
        return Counter(self._live.values())

    async def keep_only(self, known: Container[str]) -> None:
        """Close the channels of replicas that are not `known` any more, and those with old certificates."""
        self._files.look()
        for replica_id in [replica_id for replica_id in self._lines if replica_id not in known]:
            await self._lines.pop(replica_id).channel.close()

    async def close(self) -> None:
        """Close every channel, now."""
        await self.keep_only(())
        for closing in tuple(self._retired):
            closing.cancel()
        await asyncio.gather(*self._retired, return_exceptions=True)

    def __len__(self) -> int:
        return len(self._lines)

    def _over(self, call: object) -> None:
        self._live.pop(call, None)

    def _open(self, replica: Replica) -> Line:
        target = replica.grpc_target
        if target is None:
            raise CallBroke("connect", "no", "The replica has no gRPC port; set server.grpc_port.")
        if self._credentials is None:
            channel = grpc.aio.insecure_channel(target, options=self._settings)
        else:
            channel = grpc.aio.secure_channel(target, self._credentials, options=self._settings)
        line = self._lines[replica.id] = Line(channel)
        return line

    async def _connected(self, channel: grpc.aio.Channel) -> None:
        state = channel.get_state(try_to_connect=True)
        try:
            async with asyncio.timeout(self._options.connect_timeout):
                while state is not grpc.ChannelConnectivity.READY:
                    if state is grpc.ChannelConnectivity.TRANSIENT_FAILURE:
                        raise CallBroke("connect", "no", _REFUSED)
                    await channel.wait_for_state_change(state)
                    state = channel.get_state(try_to_connect=True)
        except TimeoutError as late:
            raise CallBroke("connect", "no", _REFUSED) from late

    def _renew(self) -> None:
        """Open new channels from now on; those that there are end with the last call on them."""
        if self._tls is None:
            return
        self._credentials = channel_credentials(self._tls)
        for line in self._lines.values():
            closing = asyncio.create_task(line.channel.close(_LONGEST_CALL))
            self._retired.add(closing)
            closing.add_done_callback(self._retired.discard)
        self._lines.clear()


def _settings(options: GrpcOptions, tls: ClientTls | None) -> list[tuple[str, Any]]:
    limit = -1 if options.message_bytes_max is None else options.message_bytes_max
    settings: list[tuple[str, Any]] = [
        ("grpc.max_send_message_length", -1),
        ("grpc.max_receive_message_length", limit),
        ("grpc.keepalive_time_ms", int(options.keepalive * 1000)),
        ("grpc.keepalive_timeout_ms", _PING_PATIENCE),
        ("grpc.use_local_subchannel_pool", 1),  # two pools before one server do not share a connection
        ("grpc.enable_http_proxy", 0),
        ("grpc.service_config_disable_resolution", 1),
        ("grpc.initial_reconnect_backoff_ms", _RECONNECT_PAUSE),
        ("grpc.min_reconnect_backoff_ms", max(1, int(options.connect_timeout * 1000))),
        ("grpc.max_reconnect_backoff_ms", 10 * _RECONNECT_PAUSE),
    ]
    if tls is not None and tls.server_name is not None:
        settings.append(("grpc.ssl_target_name_override", tls.server_name))
        settings.append(("grpc.default_authority", tls.server_name))
    return settings
