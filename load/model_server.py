"""A plain HTTP model server on an emulated accelerator: what is posted waits for a slot, then takes its time.

`python -m load.model_server --port 9001 --slots 1 --service-time 0.5 --scv 0.5` answers any POST with what
it did, and `GET /healthz` with 200 once it is ready (after `--start-delay`). SIGTERM and Ctrl-C: takes no
new connections, answers what it has, ends.
"""

import argparse
import asyncio
import os
import signal
import socket
import sys
from collections.abc import Callable
from contextlib import suppress

import numpy as np
from aiohttp import web

from load.services import ServiceLaw, lognormal

DAY = 86_400.0  # [s]
PORT_MAX = 65_535
SLOTS_MAX = 1_000_000
SEED_MAX = 2**64 - 1
SCV_MAX = 100.0
BODY_MAX = 64 * 2**20  # [bytes]
DRAIN_MAX = 60.0  # [s]
CAN_BE_MENDED = 2  # exit code of what the user can mend


class EmulatedAccelerator:
    """`slots` requests are served at a time, first come, first served; each takes a time drawn from `law`."""

    def __init__(self, slots: int, law: ServiceLaw, rng: np.random.Generator) -> None:
        self._slots = asyncio.Semaphore(slots)
        self._law = law
        self._rng = rng
        self.served = 0

    async def serve(self) -> float:
        """Wait for a slot and serve one request; return its service time [s]."""
        async with self._slots:
            service_time = self._law(self._rng)
            await asyncio.sleep(service_time)
            self.served += 1
            return service_time


def application(accelerator: EmulatedAccelerator, start_delay: float = 0.0) -> web.Application:
    """Return the routes; for `start_delay` [s] from now it answers 503, as if it loaded its weights."""
    ready_at = asyncio.get_running_loop().time() + start_delay

    def ready() -> bool:
        return asyncio.get_running_loop().time() >= ready_at

    async def healthz(request: web.Request) -> web.Response:
        return web.Response(status=200 if ready() else 503, text="ready\n" if ready() else "loading\n")

    async def infer(request: web.Request) -> web.Response:
        body = await request.read()
        if not ready():
            return web.json_response({"error": "loading"}, status=503)
        service_time = await accelerator.serve()
        return web.json_response({"bytes": len(body), "service_time": round(service_time, 6)})

    app = web.Application(client_max_size=BODY_MAX)
    app.router.add_get("/healthz", healthz)
    app.router.add_post("/{anything:.*}", infer)
    return app


async def serve(arguments: argparse.Namespace) -> None:
    """Listen until SIGTERM or Ctrl-C, then finish what runs."""
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    law = lognormal(arguments.service_time, arguments.scv)
    accelerator = EmulatedAccelerator(arguments.slots, law, np.random.default_rng(arguments.seed))
    runner = web.AppRunner(
        application(accelerator, arguments.start_delay), access_log=None, shutdown_timeout=DRAIN_MAX
    )
    await runner.setup()
    try:
        await web.TCPSite(runner, arguments.host, arguments.port).start()
        await stop.wait()
    finally:
        await runner.cleanup()


def parse(arguments: list[str]) -> argparse.Namespace:
    """Return what the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m load.model_server", description=__doc__.splitlines()[0])
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on [%(default)s]")
    parser.add_argument("--port", type=_whole(1, PORT_MAX), required=True, help="port to listen on")
    parser.add_argument(
        "--slots", type=_whole(1, SLOTS_MAX), default=1, help="requests served at a time [%(default)s]"
    )
    parser.add_argument(
        "--service-time", type=_number(DAY), default=0.5, help="mean service time [s, %(default)s]"
    )
    parser.add_argument(
        "--scv", type=_number(SCV_MAX), default=0.5, help="variance / mean² of it [%(default)s]"
    )
    parser.add_argument(
        "--start-delay", type=_number(DAY), default=0.0, help="time until ready [s, %(default)s]"
    )
    parser.add_argument(
        "--seed",
        type=_whole(0, SEED_MAX),
        default=None,
        help="of the service times; without it every run differs",
    )
    return parser.parse_args(arguments)


def _number(most: float) -> Callable[[str], float]:
    """Return a reader of numbers from 0 to `most`."""

    def read(text: str) -> float:
        with suppress(ValueError):
            if 0 <= (number := float(text)) <= most:
                return number
        raise argparse.ArgumentTypeError(f"{text!r}: write a number between 0 and {most:,g}")

    return read


def _whole(least: int, most: int) -> Callable[[str], int]:
    """Return a reader of whole numbers from `least` to `most`."""

    def read(text: str) -> int:
        with suppress(ValueError):
            if least <= (number := int(text)) <= most:
                return number
        raise argparse.ArgumentTypeError(f"{text!r}: write a whole number between {least} and {most}")

    return read


def main() -> int:
    """Serve; return the exit code."""
    arguments = parse(sys.argv[1:])
    with suppress(KeyboardInterrupt):
        try:
            asyncio.run(serve(arguments))
        except (OSError, UnicodeError) as error:  # of a host name that is none
            at = f"{arguments.host}:{arguments.port}"
            print(f"cannot listen on {at}: {_reason(error)}; give another --host or --port", file=sys.stderr)
            return CAN_BE_MENDED
    return 0


def _reason(error: OSError | UnicodeError) -> str:
    """Say what broke; asyncio wraps the words of the system in its own, those of the resolver are fine."""
    if isinstance(error, OSError) and not isinstance(error, socket.gaierror):
        return os.strerror(error.errno or 0)
    return error.strerror or "unknown host" if isinstance(error, socket.gaierror) else "no name of a host"


if __name__ == "__main__":
    sys.exit(main())
