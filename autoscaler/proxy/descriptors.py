"""Open files, of which every connection is one, and what the kernel knows of a connection.

A process that has run out of descriptors cannot accept, and whoever connects then is closed without a word.
So the limit is raised as far as this process may, and connections are bounded below it.
"""

import asyncio
import errno
import struct
import sys

if sys.platform != "win32":
    import fcntl
    import resource
    import termios

_DESCRIPTORS_MAX = 65_536
"""As many descriptors are asked for, at most [1]."""

_RESERVE = 128
"""Descriptors for everything that is no connection: files, pipes of replicas, the admin listener [1]."""

_WITHOUT_A_LIMIT = 16_384
"""Connections where the system cannot be asked [1]."""

OUT_OF_DESCRIPTORS = (errno.EMFILE, errno.ENFILE)


def raise_limit() -> None:
    """Ask for as many descriptors as may be had."""
    if sys.platform == "win32":
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _DESCRIPTORS_MAX if hard == resource.RLIM_INFINITY else min(_DESCRIPTORS_MAX, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def connections_that_fit() -> int:
    """Return how many clients may be connected [1], if each has a connection to a replica beside its own."""
    if sys.platform == "win32":
        return _WITHOUT_A_LIMIT
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return _WITHOUT_A_LIMIT
    return max(1, (soft - _RESERVE) // 2)


def unread_bytes(transport: asyncio.BaseTransport) -> int:
    """Return how much the kernel holds that was not read yet [bytes]; 0 where it cannot be asked."""
    sock = transport.get_extra_info("socket")
    if sys.platform == "win32" or sock is None or sock.fileno() < 0:
        return 0
    count: int = struct.unpack("i", fcntl.ioctl(sock.fileno(), termios.FIONREAD, bytes(4)))[0]
    return count


def unsent_bytes(transport: asyncio.WriteTransport) -> int:
    """Return what has not reached the peer [bytes]: of this process, and where it can tell, of the kernel."""
    unsent = transport.get_write_buffer_size()
    sock = transport.get_extra_info("socket")
    if sys.platform == "linux" and sock is not None and sock.fileno() >= 0:
        unsent += struct.unpack("i", fcntl.ioctl(sock.fileno(), termios.TIOCOUTQ, bytes(4)))[0]
    return unsent
