"""One request, from the moment its head is read to the last byte of its answer.

    check the head ─▶ find the pool ─▶ read the body ahead ─▶ wait for a slot ─▶ call a replica ─▶ stream back
       400 417 501          404             400 408 413         429 503 504          502 504

Whoever has a slot gives it back as soon as the server has said its last byte or the connection to it is
closed, and in any case when the handling ends, however it ends. Nothing is awaited for that.

A client that leaves cancels the handling, wherever it stands. So does the end of a drain; then the client
is still there, and is told.
"""

import asyncio
import secrets
from contextlib import nullcontext
from dataclasses import dataclass, replace

from aiohttp import hdrs, web
from multidict import CIMultiDict

from autoscaler.domain import Outcome, Request
from autoscaler.proxy.answers import DRAINING, Refusal, Refused, answer, dropped
from autoscaler.proxy.body import RequestBody
from autoscaler.proxy.call import Call, CallBroke
from autoscaler.proxy.door import Door, Route
from autoscaler.proxy.grant import Dropped, Grant
from autoscaler.proxy.hangup import hangup_noticed
from autoscaler.proxy.head_check import check_head, expects_continue
from autoscaler.proxy.headers import REQUEST_FIELDS_REPLACED, BadHead, end_to_end, origin_form, request_id
from autoscaler.proxy.relay import Relay

_REQUEST_ID = "X-Request-Id"

_OUT_OF_STEP = (400, 408, 413)
"""After these nobody can say where the next request on the connection would begin."""


class Handler:
    """Handles every request of the listener."""

    def __init__(self, door: Door) -> None:
        self._door = door

    async def __call__(self, request: web.BaseRequest) -> web.StreamResponse:
        handling = _Handling(self._door, request)
        with self._door.entered(handling):
            return await handling.run()


@dataclass(frozen=True, slots=True)
class _Onward:
    """What a replica gets to see of a request."""

    target: str
    headers: CIMultiDict[str]
    body: RequestBody


class _Handling:
    """One request and its answer."""

    def __init__(self, door: Door, request: web.BaseRequest) -> None:
        self._door = door
        self._request = request
        self._task = asyncio.current_task()
        self._path = request.raw_path.partition("?")[0]
        self._id = request_id(request.headers.get(_REQUEST_ID), secrets.token_hex(8))
        self._expects_continue = expects_continue(request)
        self._arrived_at = door.clock.now()
        self._grant: Grant | None = None
        self._outcome = Outcome.FAILED
        self._relay: Relay | None = None
        self._is_cut = False

    async def run(self) -> web.StreamResponse:
        try:
            return await self._serve()
        except Refused as refused:
            return self._refuse(refused.refusal)
        except asyncio.CancelledError:
            if self._task is None or not self._is_cut or self._request.transport is None:
                raise
            self._task.uncancel()
            return self._tell_of_cut()

    def cut(self) -> None:
        """End it before it is done, because the program ends."""
        if self._task is not None and not self._is_cut:
            self._is_cut = True
            self._task.cancel()

    # -- on the way in

    async def _serve(self) -> web.StreamResponse:
        check_head(self._request)
        target = self._target()
        self._path = target.partition("?")[0]
        route = self._door.route(self._path)
        body = RequestBody(self._request, self._door.options, self._door.budget)
        onward = _Onward(target, self._head_for_server(body), body)
        try:
            if not self._expects_continue:
                await body.spool()
            with nullcontext() if body.complete else hangup_noticed(self._request.transport):
                return await self._with_slot(route, onward)
        finally:
            body.release()

    # -- with a slot

    async def _with_slot(self, route: Route, onward: _Onward) -> web.StreamResponse:
        """Wait for a slot, use it, give it back."""
        now = self._door.clock.now()
        request = Request(
            id=str(next(self._door.serials)),
            arrived_at=now,
            deadline=now + route.options.wait_timeout,
            body_bytes=onward.body.spooled,
        )
        self._arrived_at = now
        self._grant = self._granted(await route.drive.acquire(request))
        try:
            return await self._answer(route, onward)
        except asyncio.CancelledError:
            if not self._is_cut:
                self._outcome = Outcome.CANCELLED
            raise
        finally:
            if self._grant is not None:
                route.drive.release(self._grant, self._outcome)

    def _granted(self, ending: Grant | Dropped) -> Grant:
        if isinstance(ending, Grant):
            return ending
        self._grant = None
        waited = self._door.clock.now() - self._arrived_at
        raise Refused(dropped(ending.reason, ending.expected_wait, waited))

    async def _answer(self, route: Route, onward: _Onward) -> web.StreamResponse:
        body = onward.body
        if self._expects_continue and not body.complete:
            await self._say_continue()
            await body.spool()
        call = await self._call(route, onward)
        if body.complete:
            body.release()  # a long answer need not hold it
        try:
            return await self._stream_back(route, call)
        finally:
            call.end()

    async def _call(self, route: Route, onward: _Onward) -> Call:
        """Call the replica of the slot; try again when that provably executed nothing."""
        body = onward.body
        tries = 0
        while True:
            url = self._slot.replica.url + onward.target
            try:
                return await route.upstream.call(
                    self._request.method, url, onward.headers, body, fresh_connection=tries > 0
                )
            except CallBroke as broken:
                if body.failure is not None:
                    self._outcome = Outcome.REJECTED
                    raise Refused(replace(body.failure, executed="maybe")) from broken
                tries += 1
                if tries > self._door.options.retries_max or broken.executed != "no" or body.consumed:
                    raise Refused(self._broke(route, broken)) from broken
                self._grant = self._granted(
                    await route.drive.retry(self._slot, refused=broken.how == "connect")
                )

    async def _stream_back(self, route: Route, call: Call) -> web.StreamResponse:
        grant = self._slot
        call.when_received(lambda: route.drive.release(grant, Outcome.COMPLETED))
        relay = self._relay = Relay(self._request, call, self._story(), self._door.options.linger)
        if self._door.draining:
            relay.response.force_close()
        try:
            await relay.run()
        except CallBroke as broken:
            refusal = self._broke(route, broken)
            if not relay.begun:
                raise Refused(refusal) from broken
            relay.break_off(refusal)
        except ConnectionError:
            self._outcome = Outcome.CANCELLED  # the client is gone; its connection ends the handling
        return relay.response

    # -- answers of our own

    def _refuse(self, refusal: Refusal) -> web.Response:
        response = answer(refusal, self._path)
        response.headers.extend(self._story())
        if self._door.draining or refusal.status in _OUT_OF_STEP:
            response.force_close()
        return response

    def _tell_of_cut(self) -> web.StreamResponse:
        refusal = DRAINING if self._grant is None else replace(DRAINING, executed="maybe")
        if self._relay is None or not self._relay.begun:
            return self._refuse(refusal)
        self._relay.break_off(refusal)
        return self._relay.response

    def _broke(self, route: Route, broken: CallBroke) -> Refusal:
        if broken.how == "late":
            self._outcome = Outcome.EXPIRED
            return Refusal(504, "upstream_timeout", str(broken), executed=broken.executed)
        self._outcome = Outcome.FAILED
        route.drive.spare(self._slot)
        return Refusal(502, f"upstream_{broken.how}", str(broken), broken.executed, proxy_reason=broken.how)

    # -- small things

    def _target(self) -> str:
        try:
            return origin_form(self._request.raw_path, self._request.headers.get(hdrs.HOST))
        except BadHead as bad:
            raise Refused(Refusal(400, "bad_request", f"The request cannot be passed on: {bad}.")) from bad

    @property
    def _slot(self) -> Grant:
        if self._grant is None:
            raise RuntimeError("no slot was granted yet")
        return self._grant

    async def _say_continue(self) -> None:
        writer = self._request.writer
        await writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        writer.output_size = 0  # aiohttp takes it for the beginning of the answer

    def _head_for_server(self, body: RequestBody) -> CIMultiDict[str]:
        try:
            headers = end_to_end(self._request.raw_headers, without=REQUEST_FIELDS_REPLACED)
        except BadHead as bad:
            raise Refused(Refusal(400, "bad_request", f"The request cannot be passed on: {bad}.")) from bad
        if body.declared is not None:
            headers[hdrs.CONTENT_LENGTH] = str(body.declared)
        if headers.get(_REQUEST_ID) != self._id:
            headers[_REQUEST_ID] = self._id
        return headers

    def _story(self) -> CIMultiDict[str]:
        """Tell whose answer this is and where its time went: Server-Timing, in milliseconds."""
        now = self._door.clock.now()
        started = now if self._grant is None else self._grant.started_at
        timing = f"queue;dur={(started - self._arrived_at) * 1000:.1f}"
        if self._grant is not None:
            timing += f", service;dur={(now - started) * 1000:.1f}"
        return CIMultiDict({_REQUEST_ID: self._id, "Server-Timing": timing})
