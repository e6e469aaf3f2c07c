"""Where the proxy listens: at every interface if no host is named, of both kinds."""

import asyncio
import socket

import pytest

from autoscaler.errors import PortTaken, UsageError
from autoscaler.proxy import listener
from autoscaler.proxy.listener import Listener
from load.free_port import free_port


async def connects(host: str, port: int) -> bool:
    try:
        _, writer = await asyncio.open_connection(host, port)
    except OSError:
        return False
    writer.close()
    return True


def has_ipv6_loopback() -> bool:
    """Whether there is one: where IPv6 is known and switched off, there is not."""
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        return False
    return True


async def test_no_host_is_every_interface_of_both_kinds():
    port, listening = free_port(), Listener(shared=False)
    await listening.open(asyncio.Protocol, "", port, None)
    try:
        assert listening.port == port
        assert await connects("127.0.0.1", port)
        if has_ipv6_loopback():
            assert await connects("::1", port)
    finally:
        listening.close()


async def test_a_kind_that_the_kernel_does_not_know_is_left_out(monkeypatch):
    monkeypatch.setattr(listener, "_is_known", lambda family: family == socket.AF_INET)
    port, listening = free_port(), Listener(shared=False)
    await listening.open(asyncio.Protocol, "", port, None)
    try:
        assert await connects("127.0.0.1", port)
        assert not await connects("::1", port)
    finally:
        listening.close()


async def test_a_port_that_is_taken_at_some_interface_is_said():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(PortTaken, match=f"port {port} of this machine is taken; .* set another `listen`"):
            await Listener(shared=False).open(asyncio.Protocol, "", port, None)


async def test_a_host_of_another_machine_is_refused():
    with pytest.raises(UsageError, match="set a host of this machine"):
        await Listener(shared=False).open(asyncio.Protocol, "192.0.2.1", free_port(), None)
