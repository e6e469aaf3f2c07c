"""Replicas behind one name: every address that it has now is a replica (a headless service, round-robin DNS).

A name without an address is an answer: there is nobody. A name server that does not answer says nothing, and
what was known stays.
"""

import asyncio
import socket
from urllib.parse import urlsplit

from autoscaler.remote_fleet.member import Member

_NOBODY = {socket.EAI_NONAME, getattr(socket, "EAI_NODATA", socket.EAI_NONAME)}
_DEFAULT_PORTS = {"http": 80, "https": 443}


async def look_up(url: str) -> tuple[Member, ...] | None:
    """Return who is behind base URL `url` now; None if nobody can tell."""
    parts = urlsplit(url)
    port = parts.port or _DEFAULT_PORTS[parts.scheme]
    try:
        found = await asyncio.get_running_loop().getaddrinfo(
            parts.hostname or "", port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP
        )
    except socket.gaierror as error:
        return () if error.errno in _NOBODY else None
    hosts = sorted({str(address[0]) for *_, address in found})
    return tuple(_member(parts.scheme, host, port, parts.path.rstrip("/")) for host in hosts)


def _member(scheme: str, host: str, port: int, path: str) -> Member:
    shown = f"[{host}]" if ":" in host else host
    url = f"{scheme}://{shown}:{port}{path}"
    return Member(url, url)
