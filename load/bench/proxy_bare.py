"""A bare pass-through: what aiohttp and uvloop cost when they do nothing but pass on. The yardstick of ours.

No queue, no slots, no limits, no metrics, no checks. `python -m load.bench.proxy_bare --port P --upstream U`
"""

import argparse
import asyncio
from collections.abc import Iterable

import aiohttp
import uvloop
from aiohttp import hdrs, web
from multidict import CIMultiDict
from yarl import URL

_HOP_BY_HOP = frozenset(("connection", "host", "keep-alive", "transfer-encoding", "upgrade"))
_BUFFER = 32 * 1024


class PassThrough:
    """Sends every request on, and its answer back."""

    def __init__(self, upstream: str) -> None:
        self._upstream = upstream
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0),
            timeout=aiohttp.ClientTimeout(total=None),
            auto_decompress=False,
            cookie_jar=aiohttp.DummyCookieJar(),
            skip_auto_headers=("User-Agent", "Accept", "Accept-Encoding", "Content-Type"),
            read_bufsize=_BUFFER,
        )

    async def __call__(self, request: web.BaseRequest) -> web.StreamResponse:
        body = await request.content.read()
        async with self._session.request(
            request.method,
            URL(self._upstream + request.raw_path, encoded=True),
            headers=_end_to_end(request.headers.items()),
            data=body or None,
            allow_redirects=False,
        ) as answer:
            response = web.StreamResponse(
                status=answer.status, reason=answer.reason, headers=_end_to_end(answer.headers.items())
            )
            await response.prepare(request)
            async for piece in answer.content.iter_any():
                await response.write(piece)
            await response.write_eof()
            return response


def _end_to_end(items: Iterable[tuple[str, str]]) -> CIMultiDict[str]:
    return CIMultiDict((name, value) for name, value in items if name.lower() not in _HOP_BY_HOP)


async def listen(port: int, upstream: str) -> None:
    """Serve until ended."""
    server = web.Server(
        PassThrough(upstream),
        handler_cancellation=True,
        auto_decompress=False,
        access_log=None,
        read_bufsize=_BUFFER,
    )
    listener = await asyncio.get_running_loop().create_server(server, "127.0.0.1", port, backlog=4096)
    await listener.serve_forever()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m load.bench.proxy_bare")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--upstream", required=True, help=f"base URL; {hdrs.HOST} is written anew")
    arguments = parser.parse_args()
    uvloop.run(listen(arguments.port, arguments.upstream))
