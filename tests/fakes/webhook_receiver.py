"""A receiver of events that behaves: checks signatures by the specification, does nothing twice, keeps order.

`answers` scripts what the next attempts get: a status (also with headers), `"hang"`, `"drip"` (an answer that
begins, and does not end), or `"cut"` (the event is taken, and the connection breaks before the answer). Once
it is empty, everything is accepted; `said` is then the answer, if it is not about the fleet.
"""

import asyncio
import base64
import hashlib
import hmac
import json
from typing import Any

from aiohttp import web
from aiohttp.test_utils import TestServer


class FakeReceiver:
    """Listens on the loopback within `async with`."""

    def __init__(self, secret: bytes | None = None):
        self.secret = secret
        self.answers: list[Any] = []
        self.said: bytes | None = None
        self.fleet: dict[str, Any] | None = None
        self.fleet_status = 503
        self.attempts: list[dict[str, Any]] = []
        self.applied: list[int] = []
        self.at_once_max = 0
        self.headers: list[dict[str, str]] = []
        self._seen: set[str] = set()
        self._at_once = 0

    async def __aenter__(self) -> "FakeReceiver":
        application = web.Application()
        application.router.add_post("/scale", self._scale)
        application.router.add_get("/fleet", self._fleet)
        self._server = TestServer(application, host="127.0.0.1")
        await self._server.start_server()
        return self

    async def __aexit__(self, *exception) -> None:
        await self._server.close()

    @property
    def url(self) -> str:
        return str(self._server.make_url("/scale"))

    @property
    def status_url(self) -> str:
        return str(self._server.make_url("/fleet"))

    async def until(self, condition, timeout: float = 20.0) -> None:
        async with asyncio.timeout(timeout):
            while not condition():
                await asyncio.sleep(0.001)

    async def _scale(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        self._at_once += 1
        self.at_once_max = max(self.at_once_max, self._at_once)
        try:
            return await self._answer(request, body)
        finally:
            self._at_once -= 1

    async def _answer(self, request: web.Request, body: bytes) -> web.StreamResponse:
        self.headers.append(dict(request.headers))
        if self.secret is not None and not self._is_signed(request, body):
            return web.Response(status=401, text="not signed by us")
        event = json.loads(body)
        self.attempts.append(event)
        answer = self.answers.pop(0) if self.answers else 202
        if answer == "hang":
            await asyncio.sleep(3600)
        if answer == "drip":
            return await self._drip(request)
        status, headers = answer if isinstance(answer, tuple) else (answer, {})
        if isinstance(status, int) and status >= 300:
            headers = {"Location": "/elsewhere", **headers}
            return web.Response(status=status, text="as the test wants", headers=headers)
        if event["id"] not in self._seen:
            self._seen.add(event["id"])
            self.applied.append(event["data"]["desired"])
        if answer == "cut":
            assert request.transport is not None
            request.transport.abort()
        if self.said is not None:
            return web.Response(body=self.said, status=202)
        return web.json_response(self.fleet or {"ok": True}, status=202)

    async def _drip(self, request: web.Request) -> web.StreamResponse:
        answer = web.StreamResponse()
        await answer.prepare(request)
        while True:
            await answer.write(b".")
            await asyncio.sleep(0.01)

    def _is_signed(self, request: web.Request, body: bytes) -> bool:
        signed = f"{request.headers['Webhook-Id']}.{request.headers['Webhook-Timestamp']}.".encode() + body
        assert self.secret is not None
        right = "v1," + base64.b64encode(hmac.new(self.secret, signed, hashlib.sha256).digest()).decode()
        return right in request.headers.get("Webhook-Signature", "").split()

    async def _fleet(self, request: web.Request) -> web.Response:
        return web.Response(status=self.fleet_status) if self.fleet is None else web.json_response(self.fleet)
