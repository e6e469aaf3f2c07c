"""One call, from its first message to its status: let in, served, and told how it ended.

An inference is read whole by the library before it is here; of a stream the first message is read here,
because it says for which model the stream is.

A client that leaves, and a deadline that passes, cancel the handling wherever it stands, and with it the call
to the replica. So does the end of a drain; then the client is still there, and is told.
"""

import asyncio
from collections.abc import Awaitable
from dataclasses import replace

import grpc

from autoscaler.proxy.answers import DRAINING, Refusal, Refused
from autoscaler.proxy.grpc.answers import code_of, trailers_of
from autoscaler.proxy.grpc.conversation import Context, Conversation
from autoscaler.proxy.grpc.front import Front
from autoscaler.proxy.grpc.inference import Asked, Inference, time_limit
from autoscaler.proxy.grpc.metadata import Metadata
from autoscaler.proxy.grpc.methods import METHODS, Kind, Method
from autoscaler.proxy.grpc.model_name import NotAMessage, text_field
from autoscaler.proxy.grpc.question import Question
from autoscaler.proxy.grpc.relay import Status
from autoscaler.proxy.grpc.routes import POOL_KEY, GrpcRoute

_NOTHING_ASKED = Status(grpc.StatusCode.OK, "", ())


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
            return await self._handle(Handling(self._front, method, context), message)

        async def stream(messages: object, context: Context) -> None:
            await self._handle(Handling(self._front, method, context), None)

        if method.kind is Kind.STREAM:
            return grpc.stream_stream_rpc_method_handler(stream)
        return grpc.unary_unary_rpc_method_handler(unary)

    async def _handle(self, handling: "Handling", message: bytes | None) -> bytes | None:
        front = self._front
        front.enter(handling)
        try:
            return await handling.run(message)
        finally:
            front.leave(handling)
            if front.access_log.is_on:
                line = handling.line()
                if front.access_log.wants(line.status):
                    front.access_log.note(line)


class Handling(Conversation):
    """The way of one call; ends with its status."""

    def __init__(self, front: Front, method: Method, context: Context) -> None:
        super().__init__(front, method, context)
        self._task = asyncio.current_task()
        self._is_cut = False
        self._is_telling = False
        """Whether the library sends something: a status can be told only after that, and only once."""

    async def run(self, message: bytes | None) -> bytes | None:
        """Serve the call; of a stream there is no `message` yet, and no answer here."""
        try:
            return await self._serve(message)
        except Refused as refused:
            await self._refuse(refused.refusal)
        except asyncio.CancelledError:
            if self._task is None or not self._is_cut or self.context.cancelled():
                self.note_gone()
                raise
            self._task.uncancel()
            has_slot = self.inference is not None and self.inference.grant is not None
            await self._refuse(replace(DRAINING, executed="maybe") if has_slot else DRAINING)
        return None

    def cut(self) -> None:
        """End it before it is done, because the program ends."""
        if self._task is not None and not self._is_cut:
            self._is_cut = True
            if self.inference is not None:
                self.inference.may_be_cut = True
            if not self._is_telling:
                self._task.cancel()

    async def write(self, message: bytes) -> None:
        """Give the client a message."""
        await self._tell(super().write(message))

    async def write_first(self, metadata: Metadata) -> None:
        """Give the client the metadata that stand before the first message."""
        await self._tell(super().write_first(metadata))

    # -- serving

    async def _serve(self, message: bytes | None) -> bytes | None:
        if message is None:
            message = await self.read()
            if message is None or message is grpc.aio.EOF:
                return await self._end(_NOTHING_ASKED)
        route = self._route(message)
        self.pool = route.drive.name
        if self.method.kind in (Kind.QUESTION, Kind.CHANGE):
            return await self._end(await self._ask(route, message))
        with self.front.gate.entered(self.text, self.pool, None) as self.entry:
            asked = Asked(self.method, message, self.onward(self.entry.own_names), self.entry.tenant)
            with Inference(self.front, route, self.context, self, asked) as self.inference:
                status = await self.inference.run()
            return await self._end(status)

    async def _ask(self, route: GrpcRoute, message: bytes) -> Status:
        """Serve a call that takes no slot."""
        own_names: frozenset[str] = frozenset()
        if not self.method.is_probe:
            own_names = self.front.gate.check(self.text, self.pool)
        question = Question(self.front, route, self.method, self.onward(own_names))
        return await question.put(message, time_limit(self.context, route.options.first_byte_timeout))

    def _route(self, message: bytes) -> GrpcRoute:
        model = None
        if self.method.model_field is not None:
            try:
                model = text_field(message, self.method.model_field)
            except NotAMessage as bad:
                text = f"The message is not one of {self.method.path}: {bad}."
                raise Refused(Refusal(400, "bad_message", text)) from bad
        return self.front.routes.find(model or None, self.text(POOL_KEY))

    # -- on the way out

    async def _end(self, status: Status) -> bytes | None:
        """Tell the client what the server said, word for word, and then what there is to say of it."""
        self._is_telling = True
        self.note_end(status)
        trailing = (*status.trailing, *self.story(status.trailing))
        if status.initial:
            await self.context.send_initial_metadata(status.initial)
        if status.code is not grpc.StatusCode.OK:
            await self._abort(status.code, status.details, trailing)
        self.context.set_trailing_metadata(trailing)
        return status.message

    async def _tell(self, sending: Awaitable[None]) -> None:
        """Send it, without being cut in the middle of it."""
        self._is_telling = True
        try:
            await sending
        finally:
            self._is_telling = False
        if self._is_cut and self._task is not None:
            self._task.cancel()

    async def _refuse(self, refusal: Refusal) -> None:
        self._is_telling = True
        self.note_refusal(refusal)
        await self._abort(code_of(refusal), refusal.text, (*trailers_of(refusal), *self.story()))

    async def _abort(self, code: grpc.StatusCode, text: str, trailing: Metadata) -> None:
        """End the call with an error; as cancelled if it is over already and nobody can be told."""
        try:
            await self.context.abort(code, text, trailing)
        except grpc.aio.InternalError as over:
            self.note_gone()
            raise asyncio.CancelledError from over
