"""The listening sockets, and how they are left to another process without losing anybody.

Two processes may listen at one address if both say so beforehand (`SO_REUSEPORT`): the kernel deals new
connections out between them. A restart without a gap is then: the new process starts and is ready, the old
one drains. One thing can be lost on the way: connections that the kernel has dealt to the old process, and
that it has not accepted when it closes its socket, are reset. So before it closes, the old process has the
kernel deal everything to the other one (a filter of one instruction, which names a socket by its place in
the row; Linux), and goes on accepting meanwhile.
"""

import asyncio
import ctypes
import errno
import socket
import ssl
import struct
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from autoscaler.errors import PortTaken, UsageError

_BACKLOG = 1024
"""Connections that the kernel holds for us while we are busy [1]."""

_TAKES_EFFECT = 0.05
"""So long a change of how the kernel deals out connections is given to take effect [s]."""

_SO_ATTACH_REUSEPORT_CBPF = 51
_BPF_RETURN_CONSTANT = 0x06


class Listener:
    """One address that is listened at; `shared` lets other processes do the same."""

    def __init__(self, *, shared: bool) -> None:
        self._shared = shared
        self._sockets: list[socket.socket] = []
        self._servers: list[asyncio.Server] = []
        self.port = 0
        """The one that the system chose if 0 was asked for; 0 before it is open."""

    async def open(
        self, make: Callable[[], asyncio.Protocol], host: str, port: int, context: ssl.SSLContext | None
    ) -> None:
        """Listen at every address of `host`; if that is empty, at all of this machine.

        Raises
        ------
        PortTaken
            If somebody else listens there.
        UsageError
            If the address cannot be listened at.
        """
        loop = asyncio.get_running_loop()
        try:
            addresses = await loop.getaddrinfo(
                host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
            )
            for family, *_, address in _had(addresses):
                self._sockets.append(_listening(family, address, self._shared))
        except OSError as error:
            for each in self._sockets:
                each.close()
            raise _said_of(error, host, port) from error
        self._servers = [await loop.create_server(make, sock=each, ssl=context) for each in self._sockets]
        self.port = self._sockets[0].getsockname()[1]

    async def hand_over(self, accepted: Callable[[], int]) -> None:
        """Close, and lose none of the connections that the kernel has dealt to us already.

        `accepted` counts the connections that have come in so far.
        """
        if self._shared:
            for place in (1, 0):  # we stand in one of the two
                _deal_to(place, self._sockets)
                await asyncio.sleep(_TAKES_EFFECT)  # for what was dealt before
                before = accepted()
                await asyncio.sleep(_TAKES_EFFECT)
                if accepted() == before:
                    break
        self.close()

    def close(self) -> None:
        """Listen no more."""
        for server in self._servers:
            server.close()
        self._servers = []


def _deal_to(place: int, listening: list[socket.socket]) -> None:
    """Have the kernel deal new connections to the socket at this place in the row of those that share.

    The first that listened stands at 0. Where there is no such socket, or the kernel knows no such filter,
    it deals as before.
    """
    if sys.platform != "linux":
        return
    instruction = ctypes.create_string_buffer(struct.pack("HBBI", _BPF_RETURN_CONSTANT, 0, 0, place))
    program = struct.pack("HP", 1, ctypes.addressof(instruction))
    for each in listening:
        with suppress(OSError):
            each.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_REUSEPORT_CBPF, program)


def _listening(family: int, address: object, shared: bool) -> socket.socket:
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if shared:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        if family == socket.AF_INET6:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        sock.bind(address)  # type: ignore[arg-type]  # as getaddrinfo gave it
        sock.listen(_BACKLOG)
        sock.setblocking(False)
    except BaseException:
        sock.close()
        raise
    return sock


def _had(addresses: Sequence[Any]) -> list[Any]:
    """Return those whose family this kernel knows, where it knows any: every interface is one of each."""
    return [each for each in addresses if _is_known(each[0])] or list(addresses)


def _is_known(family: int) -> bool:
    try:
        socket.socket(family, socket.SOCK_STREAM).close()
    except OSError:
        return False
    return True


def _said_of(error: OSError, host: str, port: int) -> UsageError:
    if error.errno == errno.EADDRINUSE:
        return PortTaken(
            f"port {port} of {host or 'this machine'} is taken; "
            "stop what listens there, or set another `listen`"
        )
    return UsageError(
        f"cannot listen at {host or 'every interface'}, port {port}: {error.strerror or error}; "
        "set a host of this machine and a port that this user may use"
    )
