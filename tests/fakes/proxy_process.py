"""The proxy in a process of its own, before servers that run already; drains on SIGTERM.

Says `ready` on standard output when it takes requests, and at its end what it served and what leaked.
"""

import argparse
import asyncio
import json
import signal

import uvloop

from autoscaler.clock import SystemClock
from autoscaler.dispatch import Dispatcher, QueueOptions
from autoscaler.ports import Replica
from autoscaler.proxy.drive import PoolDrive
from autoscaler.proxy.options import ProxyOptions, RouteOptions
from autoscaler.proxy.server import PoolRoute, ProxyServer


async def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--grace", type=float, default=0.3)
    parser.add_argument("--upstream", type=int, nargs="+", required=True)
    arguments = parser.parse_args()
    clock = SystemClock()
    drive = PoolDrive("pool", Dispatcher(QueueOptions()), clock)
    options = ProxyOptions(port=arguments.port, share_port=True, drain_grace=arguments.grace, linger=0.1)
    server = ProxyServer(options, [PoolRoute(drive, RouteOptions())], clock)
    await server.start()
    for port in arguments.upstream:
        drive.replica_ready(Replica(f"r{port}", f"http://127.0.0.1:{port}", 16))
    told = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, told.set)
    print("ready", flush=True)
    await told.wait()
    await server.drain()
    await server.stop()
    drive.reconcile()
    print(json.dumps({"leaked": drive.snapshot().slots_leaked}), flush=True)


if __name__ == "__main__":
    uvloop.run(main())
