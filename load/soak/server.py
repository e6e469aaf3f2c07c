"""The model server of the soak: answers so that a client can check every byte.

`python -m load.soak.server --port P`
"""

import argparse
import asyncio
import hashlib
import random

from aiohttp import WSMsgType, web

LARGE = bytes(range(256)) * 4096
"""A body of 1 MiB."""

EVENTS = 12
_PAUSE = 0.02
"""Between two events [s]."""

_WORK_MAX = 0.02
"""A short request takes up to this [s]."""


def digest(body: bytes) -> str:
    """Return what the server says of a body that it received."""
    return f"{len(body)} {hashlib.sha256(body).hexdigest()}"


async def echo(request: web.Request) -> web.Response:
    """Take a body, and say which it was."""
    body = await request.read()
    await asyncio.sleep(random.uniform(0.0, _WORK_MAX))
    return web.Response(text=digest(body))


async def stream(request: web.Request) -> web.StreamResponse:
    """Say `EVENTS` numbers as server-sent events, and that they were all."""
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
    await response.prepare(request)
    for number in range(EVENTS):
        await response.write(b"data: %d\n\n" % number)
        await asyncio.sleep(_PAUSE)
    await response.write(b"data: [DONE]\n\n")
    await response.write_eof()
    return response


async def large(request: web.Request) -> web.Response:
    """Say `LARGE`."""
    return web.Response(body=LARGE)


async def websocket(request: web.Request) -> web.WebSocketResponse:
    """Send back what comes."""
    socket = web.WebSocketResponse()
    await socket.prepare(request)
    async for message in socket:
        if message.type == WSMsgType.TEXT:
            await socket.send_str(message.data)
    return socket


async def healthz(request: web.Request) -> web.Response:
    """Say that it is ready."""
    return web.Response()


def main() -> None:
    """Serve until ended."""
    parser = argparse.ArgumentParser(prog="python -m load.soak.server", description=__doc__.splitlines()[0])
    parser.add_argument("--port", type=int, required=True)
    app = web.Application(client_max_size=2**26)
    app.router.add_get("/healthz", healthz)
    app.router.add_post("/echo", echo)
    app.router.add_get("/stream", stream)
    app.router.add_get("/large", large)
    app.router.add_get("/ws", websocket)
    web.run_app(app, host="127.0.0.1", port=parser.parse_args().port, print=None, access_log=None)


if __name__ == "__main__":
    main()
