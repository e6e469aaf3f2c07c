"""A KServe v2 server over HTTP whose one model, `same`, gives back what it gets, up to 8 rows at a time."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiohttp import web

from autoscaler.kserve.read_http import HEADER_LENGTH, read_http
from autoscaler.kserve.write_http import write_http
from tests.fakes.batching import same

_TENSOR = {"data_type": "TYPE_INT64", "dims": [1]}
_CONFIG = {
    "name": "same",
    "max_batch_size": 8,
    "input": [{"name": "x", **_TENSOR}],
    "output": [{"name": "y", **_TENSOR}],
    "instance_group": [{"name": "one", "kind": "KIND_CPU", "count": 1}],
}


async def _ready(request: web.Request) -> web.Response:
    return web.Response()


async def _config(request: web.Request) -> web.Response:
    return web.json_response(_CONFIG)


async def _stats(request: web.Request) -> web.Response:
    return web.json_response({"model_stats": []})


async def _infer(request: web.Request) -> web.Response:
    length = request.headers.get(HEADER_LENGTH)
    asked = read_http("same", "", await request.read(), None if length is None else int(length))
    await asyncio.sleep(0.05)
    fields, body = write_http(same(asked), asked)
    return web.Response(body=body, headers=fields)


@asynccontextmanager
async def serving_batches() -> AsyncIterator[str]:
    """Serve on loopback; yields the URL."""
    application = web.Application()
    for path in ("/v2/health/ready", "/v2/models/same/ready"):
        application.router.add_get(path, _ready)
    application.router.add_get("/v2/models/same/config", _config)
    application.router.add_get("/v2/models/same/stats", _stats)
    application.router.add_post("/v2/models/same/infer", _infer)
    runner = web.AppRunner(application, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()
