"""One connection to a replica, read to its last byte however it ends.

A server that has heard enough of an upload answers (413, 401, 429) and closes. What we still write then is
met with a reset, and the failure to write arrives before its answer has been read, or instead of it. The
answer is there all the same: the kernel keeps what was received before the reset. So a failure to write
ends nothing by itself, and when the connection is lost, what the kernel holds is read first.

Not on a connection with TLS: what the kernel holds is ciphertext there.
"""

import asyncio
import os
from collections.abc import Callable
from functools import partial
from typing import Any

import aiohttp
from aiohttp.client_proto import ResponseHandler

_LAST_WORDS_MAX = 256 * 1024
"""So much is read of a connection that is lost [bytes]: the head and the body of a refusal."""

_PIECE = 64 * 1024


class UpstreamConnection(ResponseHandler):
    """Reads what a server said last before it closed; tells when it takes what is written to it again."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(loop)
        self.when_writable: Callable[[], None] | None = None
        self.was_used = False
        """Whether a request was sent on it before."""

    def resume_writing(self) -> None:
        super().resume_writing()
        if self.when_writable is not None:
            self.when_writable()

    def set_exception(self, exc: BaseException, *cause: BaseException) -> None:
        if isinstance(exc, aiohttp.ClientConnectionError | OSError) and self._is_being_lost():
            return  # `connection_lost` follows, and says the same after what was received is read
        super().set_exception(exc, *cause)

    def connection_lost(self, exc: BaseException | None) -> None:
        if exc is not None:
            self._read_last_words()
        super().connection_lost(exc)

    def _is_being_lost(self) -> bool:
        is_closing = self.transport is not None and self.transport.is_closing()
        return is_closing and not self._connection_lost_called

    def _read_last_words(self) -> None:
        transport = self.transport
        if transport is None or self._reading_paused or transport.get_extra_info("sslcontext") is not None:
            return
        descriptor = transport.get_extra_info("socket").fileno()
        for _ in range(_LAST_WORDS_MAX // _PIECE):
            try:
                words = os.read(descriptor, _PIECE)
            except OSError:
                return
            self.data_received(words)
            if not words or self._reading_paused:
                return


def use_upstream_connections(connector: aiohttp.TCPConnector) -> None:
    """Let `connector` make connections of this kind; it has no public switch, a test holds this one to it."""
    make: Any = partial(UpstreamConnection, loop=asyncio.get_running_loop())
    connector._factory = make
