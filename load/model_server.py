"""A plain HTTP model server on an emulated accelerator: what is posted waits for a slot, then takes its time.

`python -m load.model_server --port 9001 --slots 1 --service-time 0.5 --scv 0.5` answers any POST with what
it did, and `GET /healthz` with 200 once it is ready (after `--start-delay`). SIGTERM and Ctrl-C: takes no
new connections, answers what it has, ends.
"""

import argparse
import asyncio
import os
import signal
import sys
from contextlib import suppress

import numpy as np
from aiohttp import web

from load.services import ServiceLaw, lognormal

BODY_MAX = 64 * 2**20  # [bytes]
DRAIN_MAX = 60.0  # [s]


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
    parser.add_argument("--port", type=int, required=True, help="port to listen on")
    parser.add_argument(
        "--slots", type=_at_least_one, default=1, help="requests served at a time [%(default)s]"
    )
    parser.add_argument(
        "--service-time", type=_at_least_zero, default=0.5, help="mean service time [s, %(default)s]"
    )
    parser.add_argument(
        "--scv", type=_at_least_zero, default=0.5, help="variance / mean² of it [%(default)s]"
    )
    parser.add_argument(
        "--start-delay", type=_at_least_zero, default=0.0, help="time until ready [s, %(default)s]"
    )
    parser.add_argument(
        "--seed", type=int, default=None, help="of the service times; without it every run differs"
    )
    return parser.parse_args(arguments)


def _at_least_zero(text: str) -> float:
    number = float(text)
    if not 0 <= number < float("inf"):
        raise argparse.ArgumentTypeError(f"{text}: needs a number >= 0")
    return number


def _at_least_one(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text}: needs a whole number >= 1")
    return number


def main() -> int:
    """Serve; return the exit code."""
    arguments = parse(sys.argv[1:])
    with suppress(KeyboardInterrupt):
        try:
            asyncio.run(serve(arguments))
        except OSError as error:
            reason = os.strerror(error.errno or 0)
            print(f"cannot listen on {arguments.host}:{arguments.port}: {reason}", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
