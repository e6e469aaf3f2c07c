"""Notices that a client left although nothing reads from it.

The event loop learns that a peer is gone by reading from it. While a large upload waits for its slot, or for
a server that does not take it, nothing is read and the news sits behind the unread bytes. The kernel knows,
and can be asked: of a reset at once, of an orderly close as soon as all that was sent before it has come.
"""

import asyncio
import select
from collections.abc import Iterator
from contextlib import contextmanager

_INTERVAL = 0.05
"""How often the kernel is asked [s]."""


@contextmanager
def hangup_noticed(transport: asyncio.Transport | None) -> Iterator[None]:
    """Close the connection as soon as the peer has closed its end, as reading from it would.

    Does nothing where the kernel cannot be asked (it can on Linux).
    """
    sock = None if transport is None else transport.get_extra_info("socket")
    if transport is None or sock is None or not hasattr(select, "POLLRDHUP"):
        yield
        return
    watch = asyncio.create_task(_ask_until_hangup(transport, sock.fileno()))
    try:
        yield
    finally:
        watch.cancel()


async def _ask_until_hangup(transport: asyncio.Transport, descriptor: int) -> None:
    poll = select.poll()
    poll.register(descriptor, select.POLLRDHUP)  # POLLERR and POLLHUP are told unasked
    while not transport.is_closing():
        if poll.poll(0):
            transport.abort()
            return
        await asyncio.sleep(_INTERVAL)
