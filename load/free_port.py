"""A port for a program that is started a while later, and may be started there anew.

One that the kernel gives (port 0) is of the range from which it serves connections, so that any connection
of any program may have it by then. This one is below that range. Every process that looks begins elsewhere,
and goes on from there, so that several which look at once do not find the same.
"""

import os
import socket
from itertools import count

_FIRST, _PORTS = 15_000, 17_000
"""Linux serves connections from 32768 on; see net.ipv4.ip_local_port_range."""
_APART = 997
"""Ports between where two processes begin whose ids follow each other [1]."""

_places = count(os.getpid() * _APART)


def free_port() -> int:
    """Return a port of 127.0.0.1 that nobody has now, and that this process was not given before."""
    while True:
        port = _FIRST + next(_places) % _PORTS
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        return port


def free_address() -> str:
    """Return an address of this machine at which nobody listens now."""
    return f"127.0.0.1:{free_port()}"
