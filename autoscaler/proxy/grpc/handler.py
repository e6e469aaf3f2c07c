"""One call, from its first message to its status: let in, served, and told how it ended.

An inference is read whole by the library before it is here; of a stream the first message is read here,
because it says for which model the stream is.

A client that leaves, and a deadline that passes, cancel the handling wherever it stands, and with it the call
to the replica. So does the end of a drain; then the client is still there, and is told.
"""

import asyncio
from dataclasses import replace
from typing import Any

import grpc

from autoscaler.proxy.answers import DRAINING, Refusal, Refused
from autoscaler.proxy.grpc.answers import code_of, trailers_of
from autoscaler.proxy.grpc.front import Front
from autoscaler.proxy.grpc.inference import Asked, Inference, time_limit
from autoscaler.proxy.grpc.metadata import Metadata, first, passed_on
from autoscaler.proxy.grpc.methods import METHODS, Kind, Method
from autoscaler.proxy.grpc.model_name import NotAMessage, text_field
from autoscaler.proxy.grpc.question import Question
from autoscaler.proxy.grpc.relay import Status
from autoscaler.proxy.grpc.routes import POOL_KEY, GrpcRoute

Context = Any  # the library hands out a class of its own, which it does not name


class Handler(grpc.GenericRpcHandler):
    """Handles every call of the listener; messages are bytes."""

    def __init__(self, front: Front) -> None:
        self._front = front
        self._by_path = {path: self._handler_of(method) for path, method in METHODS.items()}

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler | None:
        """Return how the method is handled; None if there is no such method."""
        return self._by_path.get(handler_call_details.method)

    def _handler_of(self, method: Method) -> grpc.RpcMethodHandler:
        async def unary(message: bytes, context: Context) -> bytes | None:
            return await _Handling(self._front, method, context).run(message)

        async def stream(messages: object, context: Context) -> None:
            await _Handling(self._front, method, context).run(None)

        if method.kind is Kind.STREAM:
            return grpc.stream_stream_rpc_method_handler(stream)
        return grpc.unary_unary_rpc_method_handler(unary)


class _Handling:
    """One call and its ending."""

    def __init__(self, front: Front, method: Method, context: Context) -> None:
        self._front = front
        self._method = method
        self._context = context
        self._metadata = context.invocation_metadata()
        self._task = asyncio.current_task()
        self._inference: Inference | None = None
        self._is_cut = False

    async def run(self, message: bytes | None) -> bytes | None:
        """Serve the call; of a stream there is no `message` yet, and no answer here."""
        with self._front.entered(self):
            try:
                return await self._serve(message)
            except Refused as refused:
                await self._refuse(refused.refusal)
            except asyncio.CancelledError:
                if self._task is None or not self._is_cut or self._context.cancelled():
                    raise
                self._task.uncancel()
                has_slot = self._inference is not None and self._inference.grant is not None
                await self._refuse(replace(DRAINING, executed="maybe") if has_slot else DRAINING)
        return None

    def cut(self) -> None:
        """End it before it is done, because the program ends."""
        if self._task is not None and not self._is_cut:
            self._is_cut = True
            if self._inference is not None:
                self._inference.may_be_cut = True
            self._task.cancel()

    # -- serving

    async def _serve(self, message: bytes | None) -> bytes | None:
        if message is None:
            message = await self._context.read()
            if message is grpc.aio.EOF:
                return None  # nothing was asked
        route = self._route(message)
        if self._method.kind in (Kind.QUESTION, Kind.CHANGE):
            return await self._end(await self._ask(route, message))
        with self._front.gate.entered(self._text, route.drive.name, None) as entry:
            asked = Asked(self._method, message, self._onward(entry.own_names), entry.tenant)
            with Inference(self._front, route, self._context, asked) as self._inference:
                status = await self._inference.run()
            return await self._end(status)

    async def _ask(self, route: GrpcRoute, message: bytes) -> Status:
        """Serve a call that takes no slot."""
        own_names: frozenset[str] = frozenset()
        if not self._method.is_probe:
            own_names = self._front.gate.check(self._text, route.drive.name)
        question = Question(self._front, route, self._method, self._onward(own_names))
        return await question.put(message, time_limit(self._context, route.options.first_byte_timeout))

    def _route(self, message: bytes) -> GrpcRoute:
        model = None
        if self._method.model_field is not None:
            try:
                model = text_field(message, self._method.model_field)
            except NotAMessage as bad:
                text = f"The message is not one of {self._method.path}: {bad}."
                raise Refused(Refusal(400, "bad_message", text)) from bad
        return self._front.routes.find(model or None, first(self._metadata, POOL_KEY))

    # -- on the way out

    async def _end(self, status: Status) -> bytes | None:
        """Tell the client what the server said, word for word."""
        if status.initial:
            await self._context.send_initial_metadata(status.initial)
        if status.code is not grpc.StatusCode.OK:
            await self._context.abort(status.code, status.details, status.trailing)
        self._context.set_trailing_metadata(status.trailing)
        return status.message

    async def _refuse(self, refusal: Refusal) -> None:
        await self._context.abort(code_of(refusal), refusal.text, trailers_of(refusal))

    # -- small things

    def _text(self, name: str) -> str | None:
        return first(self._metadata, name.lower())

    def _onward(self, without: frozenset[str]) -> Metadata:
        return passed_on(self._metadata, without | {POOL_KEY})
