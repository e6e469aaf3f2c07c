"""Ports for programs that are started a while later."""

import socket
from itertools import count
from pathlib import Path

from load import free_port as free_ports
from load.free_port import free_address, free_port

RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")


def test_none_is_given_twice_and_none_is_one_that_the_kernel_gives_to_connections():
    found = [free_port() for _ in range(50)]
    assert len(set(found)) == 50
    lowest = int(RANGE.read_text().split()[0]) if RANGE.exists() else 32768
    assert max(found) < max(lowest, 32768)


def test_one_that_somebody_has_is_passed_over(monkeypatch):
    with socket.create_server(("127.0.0.1", free_port())) as taken:
        port = taken.getsockname()[1]
        monkeypatch.setattr(free_ports, "_places", count(port - free_ports._FIRST))
        assert free_address() != f"127.0.0.1:{port}"
