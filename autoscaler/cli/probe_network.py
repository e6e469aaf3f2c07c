"""Whether the listeners can have their addresses, and whether servers that are listed answer."""

import asyncio
import errno
import socket
from collections.abc import Sequence

from autoscaler.cli.findings import Finding, Level
from autoscaler.errors import UsageError
from autoscaler.platforms.static import StaticOptions
from autoscaler.settings import PoolSettings, model_server
from autoscaler.units import Address

_CONNECT_WITHIN = 2.0
"""Who accepts no connection within it does not listen [s]."""


def probe_address(subject: str, address: Address) -> Finding:
    """Whether this machine can listen at `address` now; every address of a host name counts."""
    try:
        found = socket.getaddrinfo(
            address.host or None, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
    except OSError as error:
        text = f"{address}: unknown host ({error.strerror}); name an address of this machine"
        return Finding(Level.PROBLEM, subject, text)
    for family, kind, protocol, _, where in found:
        try:
            with socket.socket(family, kind, protocol) as listener:
                listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                listener.bind(where)
                listener.listen()
        except OSError as error:
            if error.errno == errno.EAFNOSUPPORT and not address.host:
                continue  # every interface is one of each family that this kernel knows
            return Finding(Level.PROBLEM, subject, f"{address}: {_why(error)}")
    return Finding(Level.OK, subject, f"{address} is free")


async def probe_servers(pool: PoolSettings, platform: StaticOptions) -> list[Finding]:
    """Ask every server of the list at the same time whether it is ready, and whether it takes gRPC."""
    listens = await asyncio.gather(*map(accepts, platform.grpc_targets))
    no_grpc = [
        Finding(
            Level.WARNING,
            f"pools.{pool.name}.server.grpc_port",
            f"nobody takes gRPC at {target}; set the port, or none",
        )
        for target, accepted in zip(platform.grpc_targets, listens, strict=True)
        if not accepted
    ]
    return no_grpc + await probe_urls(pool, platform.urls)


async def probe_urls(pool: PoolSettings, urls: Sequence[str]) -> list[Finding]:
    """Ask every server at the same time whether it is ready; one that is not may come later."""
    try:
        server = model_server(pool.server, pool.route.tls, grpc_tls=pool.grpc_tls)
    except UsageError:  # a certificate cannot be used, which is told where it is named
        return []
    try:
        answers = await asyncio.gather(*map(server.ready, urls))
    finally:
        await server.close()
    return [
        Finding(Level.OK, _subject(pool, index), f"{url} is ready")
        if answer
        else Finding(Level.WARNING, _subject(pool, index), f"{url} is not ready: {_asked(pool)}")
        for index, (url, answer) in enumerate(zip(urls, answers, strict=True))
    ]


async def accepts(target: str) -> bool:
    """Whether somebody listens at `host:port`."""
    host, _, port = target.rpartition(":")
    try:
        async with asyncio.timeout(_CONNECT_WITHIN):
            _, writer = await asyncio.open_connection(host.strip("[]"), int(port))
    except OSError:  # TimeoutError is one
        return False
    writer.close()
    return True


def _subject(pool: PoolSettings, index: int) -> str:
    return f"pools.{pool.name}.platform.urls[{index}]"


def _asked(pool: PoolSettings) -> str:
    """Say what was asked, so that the user can ask it by hand."""
    match pool.server.kind:
        case "plain_http":
            return f"no 2xx from GET {pool.server.ready_path}; start it, or set server.ready_path"
        case "triton" if pool.server.probe_over == "grpc":
            return "ServerReady over gRPC was not answered with yes; start it, or set server.grpc_port"
        case "triton":
            of_model = f" and /v2/models/{pool.server.model}/ready" if pool.server.model else ""
            remedy = "start it, or set server.kind"
            if pool.server.load_model:
                remedy += "; a model that is not loaded yet is, once the program runs"
            return f"no 2xx from GET /v2/health/ready{of_model}; {remedy}"
        case "openai":
            of_model = f", or {pool.server.model} is not in /v1/models" if pool.server.model else ""
            return f"no 2xx from GET /health{of_model}; start it, or set server.kind"


def _why(error: OSError) -> str:
    match error.errno:
        case errno.EADDRINUSE:
            return "in use by another program; stop that program, or choose another port"
        case errno.EACCES:
            return "this user may not listen there; choose a port of 1024 or more"
        case errno.EADDRNOTAVAIL:
            return "no address of this machine; listen at 127.0.0.1, or at :PORT for every interface"
        case _:
            return f"cannot listen there ({error.strerror})"
