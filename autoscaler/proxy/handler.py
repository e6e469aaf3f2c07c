"""One request, from the moment its head is read to the last byte of its answer.

    check the head ─▶ find the pool ─▶ whose is it? ─▶ read the body ahead ─▶ wait for a slot ─▶ call, stream
     400 417 501          404           401 403 429        400 408 413          429 503 504       502 504

Whoever has a slot gives it back as soon as the server has said its last byte or the connection to it is
closed, and in any case when the handling ends, however it ends. Nothing is awaited for that.

A client that leaves cancels the handling, wherever it stands. So does the end of a drain; then the client
is still there, and is told.
"""

import asyncio

from aiohttp import web

from autoscaler.domain import Outcome
from autoscaler.proxy.access_log import CLIENT_LEFT
from autoscaler.proxy.answers import DEADLINE, DRAINING, Refused
from autoscaler.proxy.body import RequestBody
from autoscaler.proxy.broadcast import broadcast
from autoscaler.proxy.call import Call, CallBroke
from autoscaler.proxy.conversation import Conversation
from autoscaler.proxy.door import Door, Route
from autoscaler.proxy.execution import Execution
from autoscaler.proxy.hangup import hangup_noticed
from autoscaler.proxy.head_check import check_head
from autoscaler.proxy.keyed_handling import execute_once
from autoscaler.proxy.model_choice import chosen_by_model
from autoscaler.proxy.model_listing import models_listed
from autoscaler.proxy.onward import Onward, onward_of, target_of
from autoscaler.proxy.part_answer import PartAnswer
from autoscaler.proxy.queue_info import queue_info_told
from autoscaler.proxy.relay import Relay
from autoscaler.proxy.time_limit import TimeLimit
from autoscaler.proxy.tunnel import Tunnel
from autoscaler.proxy.wishes import Wishes, wishes_of


class Handler:
    """Handles every request of the listener."""

    def __init__(self, door: Door) -> None:
        self._door = door

    async def __call__(self, request: web.BaseRequest) -> web.StreamResponse:
        handling = Handling(self._door, request)
        door, status = self._door, CLIENT_LEFT
        door.enter(handling)
        try:
            response = await handling.run()
            status = response.status
            return response
        finally:
            door.leave(handling)
            if door.access_log.wants(status):
                door.access_log.note(handling.line(status))


class Handling(Conversation):
    """The way of one request; ends with its answer."""

    __slots__ = ("_is_cut", "_task")

    def __init__(self, door: Door, request: web.BaseRequest) -> None:
        super().__init__(door, request)
        self._task = asyncio.current_task()
        self._is_cut = False

    async def run(self) -> web.StreamResponse:
        """Return the answer, which may have been sent already; raises if the client left."""
        try:
            return await self._serve()
        except Refused as refused:
            return self.refuse(refused.refusal)
        except asyncio.CancelledError:
            if self._task is None or not self._is_cut or self.request.transport is None:
                raise
            self._task.uncancel()
            return self.break_off(DRAINING)

    def cut(self) -> None:
        """End it before it is done, because the program ends."""
        if self._task is not None and not self._is_cut:
            self._is_cut = True
            if self.execution is not None:
                self.execution.may_be_cut = True
            self._task.cancel()

    # -- on the way in

    async def _serve(self) -> web.StreamResponse:
        request = self.request
        check_head(request)
        target = target_of(request)
        self.path = target.partition("?")[0]
        if (models := models_listed(self)) is not None:
            return models
        routes = self.door.routes(self.path)
        body = RequestBody(request, self.door.options, self.door.budget)
        try:
            route = routes[0] if len(routes) == 1 else await chosen_by_model(self, routes, body)
            self.pool = route.drive.name
            wishes = wishes_of(request.headers)
            with self.door.gate.entered(
                request.headers.get, self.pool, request.content_length or 0
            ) as self.entry:
                onward = onward_of(request, target, body, self.id, self.entry.own_names)
                if not self.expects_continue:
                    await body.spool()
                if body.complete:
                    return await self._execute(route, onward, wishes)
                with hangup_noticed(request.transport):
                    return await self._execute(route, onward, wishes)
        finally:
            body.release()

    async def _execute(self, route: Route, onward: Onward, wishes: Wishes) -> web.StreamResponse:
        if self.path in route.options.broadcast:
            return await broadcast(self, onward)
        if wishes.key is not None and not onward.upgrade:
            return await execute_once(self, route, onward, wishes)
        with Execution(self.door, route, onward, wishes.timeout, self.entry.tenant) as execution:
            self.execution = execution
            try:
                with TimeLimit(wishes.timeout):
                    if wishes.queue_info:
                        with queue_info_told(self, route, execution):
                            await execution.wait_for_slot()
                    else:
                        await execution.wait_for_slot()
                    return await self._answer(execution, onward)
            except TimeoutError:
                execution.outcome = Outcome.EXPIRED
                return self.break_off(DEADLINE)

    # -- with a slot

    async def _answer(self, execution: Execution, onward: Onward) -> web.StreamResponse:
        body = onward.body
        if self.expects_continue and not body.complete:
            await self.say_continue()
            await body.spool()
        call = await execution.call()
        if body.complete:
            body.release()  # a long answer need not hold it
        try:
            if isinstance(call, Call) and call.switched:
                return await self._join(execution, call)
            return await self._stream_back(execution, call)
        finally:
            call.end()

    async def _stream_back(self, execution: Execution, call: Call | PartAnswer) -> web.StreamResponse:
        relay = self.streaming = Relay(
            self.request, call, self.story(), self.door.options.linger, execution.read_by(self.entry.answer)
        )
        if self.is_last:
            relay.response.force_close()
        try:
            await relay.run()
        except CallBroke as broken:
            return self.break_off(execution.broke(broken))
        except ConnectionError:
            execution.outcome = Outcome.CANCELLED  # the client is gone; its connection ends the handling
        return relay.response

    async def _join(self, execution: Execution, call: Call) -> web.StreamResponse:
        tunnel = self.streaming = Tunnel(self.request, call, self.story())
        try:
            await tunnel.run()
            execution.outcome = Outcome.COMPLETED
        except CallBroke as broken:
            execution.broke(broken)  # its client was told by the end of the connection
        return tunnel.response
