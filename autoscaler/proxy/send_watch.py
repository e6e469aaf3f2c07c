"""Notices a client that takes nothing of its answer any more.

While it does not read, its stream holds a slot (the server is held back with it), and later its connection
holds a descriptor: a close waits until everything is sent. A client that reads slowly is none of this. So
what counts is whether bytes leave at all: those that wait in this process and those that the kernel holds
and the peer has not acknowledged, together. The time runs only while more waits than a write may leave
behind, and after the connection was told to close.
"""

import asyncio

from autoscaler.proxy.descriptors import unsent_bytes

_CHECKS = 4
"""How often within the limit it is looked whether bytes have left [1]."""


class SendWatch:
    """Watches one connection of a client; aborts it when nothing has left for `limit` [s]."""

    __slots__ = ("_best", "_limit", "_quiet_since", "_timer")

    def __init__(self, limit: float) -> None:
        self._limit = limit
        self._timer: asyncio.TimerHandle | None = None
        self._best = 0
        self._quiet_since = 0.0

    def start(self, transport: asyncio.WriteTransport) -> None:
        """Watch from now on, until `stop`, or until nothing is left to send."""
        self.stop()
        self._best, self._quiet_since = unsent_bytes(transport), asyncio.get_running_loop().time()
        self._look_again_later(transport)

    def stop(self) -> None:
        """Watch no longer."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look_again_later(self, transport: asyncio.WriteTransport) -> None:
        delay = self._limit / _CHECKS
        self._timer = asyncio.get_running_loop().call_later(delay, self._look, transport)

    def _look(self, transport: asyncio.WriteTransport) -> None:
        self._timer = None
        if not transport.get_write_buffer_size():
            return
        unsent, now = unsent_bytes(transport), asyncio.get_running_loop().time()
        if unsent < self._best:
            self._quiet_since = now
        self._best = unsent  # it may also have grown
        if now - self._quiet_since >= self._limit:
            transport.abort()
        else:
            self._look_again_later(transport)
