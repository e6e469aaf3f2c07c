"""A WebSocket: two connections joined end to end, from the 101 until one of them closes.

Bytes pass as they are, in the turn of the loop in which they come: messages and their fragments, pings, pongs
and close frames with their codes, and whatever extensions the two ends have agreed upon. Where one end takes
no more, reading from the other pauses. No time limit holds; the slot of the handshake is held to the end.

Of the frames from the server only the boundaries are followed, so that a close frame can be added between
two of them when the program ends. Anywhere else the connection just ends, as it does when the server breaks.
"""

import asyncio
import struct
from contextlib import ExitStack

from aiohttp import hdrs, web
from multidict import CIMultiDict

from autoscaler.proxy.answers import Refusal
from autoscaler.proxy.call import Call, CallBroke
from autoscaler.proxy.connection import Connection
from autoscaler.proxy.hangup import hangup_noticed
from autoscaler.proxy.relayed_response import RelayedResponse
from autoscaler.proxy.upstream_connection import UpstreamConnection

_SERVICE_RESTART = b"\x88\x02" + struct.pack("!H", 1012)
"""The close frame of a server that ends (code 1012 of the IANA registry)."""

_BYTES_WRITTEN_AHEAD = 64 * 1024
"""While more than this waits to be taken by one end, nothing is read from the other [bytes]."""


class Frames:
    """Follows the boundaries of WebSocket frames (RFC 6455 §5.2) through a stream of bytes."""

    def __init__(self) -> None:
        self._head = b""
        self._payload_left = 0

    @property
    def between(self) -> bool:
        """Whether a frame has just ended, or none has begun."""
        return not self._head and not self._payload_left

    def follow(self, data: bytes) -> None:
        """Take in what comes next."""
        at = 0
        while at < len(data):
            if self._payload_left:
                step = min(self._payload_left, len(data) - at)
                self._payload_left -= step
                at += step
                continue
            self._head += data[at : at + 1]
            at += 1
            self._begin_payload_if_head_is_whole()

    def _begin_payload_if_head_is_whole(self) -> None:
        head = self._head
        if len(head) < 2:
            return
        masked, length = head[1] & 0x80, head[1] & 0x7F
        width = {126: 2, 127: 8}.get(length, 0)
        if len(head) < 2 + width + (4 if masked else 0):
            return
        self._payload_left = int.from_bytes(head[2 : 2 + width], "big") if width else length
        self._head = b""


class _Way:
    """One direction; takes the place of a parser in the connection that it reads from."""

    def __init__(
        self,
        source: Connection | UpstreamConnection,
        sink: Connection | UpstreamConnection,
        frames: Frames | None = None,
    ) -> None:
        self._source = source
        self._sink = sink
        self._frames = frames
        self._while_paused = ExitStack()
        self.over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        sink.when_writable = self._go_on

    def feed_data(self, data: bytes) -> tuple[bool, bytes]:
        transport = self._sink.transport
        if transport is None:
            return False, b""
        if self._frames is not None:
            self._frames.follow(data)
        transport.write(data)
        if transport.get_write_buffer_size() > _BYTES_WRITTEN_AHEAD and self._sink.writing_paused:
            self._pause()
        return False, b""

    def feed_eof(self) -> None:
        if not self.over.done():
            self.over.set_result(None)

    def end(self) -> None:
        """Have no part in the two connections any more."""
        self._sink.when_writable = None
        self._while_paused.close()

    def _pause(self) -> None:
        """Read no more; an end that leaves meanwhile is noticed all the same."""
        self._while_paused.enter_context(hangup_noticed(self._source.transport))
        self._source.pause_reading()

    def _go_on(self) -> None:
        self._while_paused.close()
        if self._source.transport is not None:
            self._source.resume_reading()


class Tunnel:
    """The WebSocket of one client with the server of `call`."""

    def __init__(self, request: web.BaseRequest, call: Call, story: CIMultiDict[str]) -> None:
        self._request = request
        self._call = call
        self._frames = Frames()
        headers = call.headers
        headers.extend({hdrs.CONNECTION: "Upgrade", hdrs.UPGRADE: "websocket"})
        headers.extend(story)
        self.response = RelayedResponse(call.status, call.reason, headers)

    @property
    def begun(self) -> bool:
        """Whether the client was told that the protocol is another now."""
        return self.response.prepared

    async def run(self) -> None:
        """Join the two until the server closes. A client that leaves cancels this, as ever.

        Raises
        ------
        CallBroke
            If the connection to the server broke; the client's was closed.
        """
        client, server = self._request.protocol, self._call.protocol
        if not isinstance(client, Connection) or not isinstance(server, UpstreamConnection):
            raise TypeError(f"need connections of this proxy, got {client!r}, {server!r}")
        self.response.begin(self._request)
        self.response.say()
        to_server, to_client = _Way(client, server), _Way(server, client, self._frames)
        server.join(to_client)
        client.set_parser(to_server)  # type: ignore[arg-type]  # any object with its two methods serves
        try:
            await to_client.over
        finally:
            to_server.end()
            to_client.end()
        client.force_close()
        if server.broken is not None:
            raise CallBroke("reset", "maybe", "The connection to the model server broke.")

    def break_off(self, refusal: Refusal) -> None:
        """Close before either end has; with a frame that says it is the proxy, if it cuts none in two."""
        transport = self._request.transport
        if transport is not None and self._frames.between:
            transport.write(_SERVICE_RESTART)
        self._request.protocol.force_close()
