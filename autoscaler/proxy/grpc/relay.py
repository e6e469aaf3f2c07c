"""The call to a replica: messages there and back, then what the server said of it.

A status that the server sent, an error too, is its answer and is passed on as it is: code, text, every
trailer. One that the library made up because the connection broke reads UNAVAILABLE too; what tells it apart
is the channel, which is no longer connected.
"""

import asyncio
from collections.abc import Awaitable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import grpc

from autoscaler.proxy.grpc.metadata import Metadata, passed_on

_BROKE_TRAILERS: Metadata = (("x-request-executed", "maybe"), ("x-proxy-reason", "reset"))


@dataclass(frozen=True, slots=True)
class Status:
    """How a call to a replica ended."""

    code: grpc.StatusCode
    details: str
    trailing: Metadata
    initial: Metadata = ()
    """What has not been passed on yet of the metadata before the first message."""
    message: bytes | None = None
    """The answer, of a call that has one."""
    broke: bool = False
    """Whether the connection broke, so that this is not the server's word."""


async def relay_inference(
    channel: grpc.aio.Channel, path: str, message: bytes, metadata: Metadata, limit: float | None
) -> Status:
    """Send one message; return the answer and the status. When this is cancelled, so is the call."""
    ask: Any = channel.unary_unary(path, None, None)
    call = ask(message, timeout=limit, metadata=metadata)
    answer = None
    with suppress(grpc.aio.AioRpcError):
        answer = await _unless_cancelled_by_server(call)
    return await _status_of(call, channel, initial=passed_on(await call.initial_metadata()), message=answer)


async def relay_stream(
    context: Any,
    channel: grpc.aio.Channel,
    path: str,
    message: bytes,
    metadata: Metadata,
    limit: float | None,
    idle_timeout: float | None,
) -> Status:
    """Pass messages both ways as they come, beginning with `message`; return the server's status.

    A stream on which nothing comes from either side for `idle_timeout` [s] is ended, for it holds a slot.
    """
    call: Any = channel.stream_stream(path, None, None)(timeout=limit, metadata=metadata)
    clock = _Idle(idle_timeout)
    upload = asyncio.create_task(_send_on(call, message, context, clock))
    try:
        async with clock.limit:
            with suppress(grpc.aio.AioRpcError):
                initial = await _unless_cancelled_by_server(call.initial_metadata())
                if initial and (kept := passed_on(initial)):
                    await context.send_initial_metadata(kept)
                while (answer := await _unless_cancelled_by_server(call.read())) not in (None, grpc.aio.EOF):
                    clock.something_came()
                    await context.write(answer)
                    clock.something_came()
    except TimeoutError:
        return Status(
            grpc.StatusCode.DEADLINE_EXCEEDED,
            f"Nothing came on the stream for {idle_timeout:g} s.",
            (("x-request-executed", "maybe"),),
        )
    finally:
        upload.cancel()
        call.cancel()  # does nothing to a call that has ended
    return await _status_of(call, channel)


class _Idle:
    """Ends what it limits when nothing has come for a while."""

    def __init__(self, patience: float | None) -> None:
        self._patience = patience
        self.limit = asyncio.timeout(patience)

    def something_came(self) -> None:
        if self._patience is not None and not self.limit.expired():
            self.limit.reschedule(asyncio.get_running_loop().time() + self._patience)


async def _send_on(call: Any, message: bytes, context: Any, clock: _Idle) -> None:
    """Pass on what the client sends, to its end. That the call has ended is told to who reads from it."""
    with suppress(grpc.aio.AioRpcError, grpc.aio.UsageError, asyncio.InvalidStateError):
        await call.write(message)
        while (following := await context.read()) is not grpc.aio.EOF:
            clock.something_came()
            await call.write(following)
        await call.done_writing()


async def _unless_cancelled_by_server(result: Awaitable[Any]) -> Any:
    """Await; None if the server ended the call as cancelled, which the library raises as if it were we."""
    try:
        return await result
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        return None


async def _status_of(
    call: Any, channel: grpc.aio.Channel, initial: Metadata = (), message: bytes | None = None
) -> Status:
    code, details = await call.code(), await call.details()
    trailing = passed_on(await call.trailing_metadata())
    connected = channel.get_state() is grpc.ChannelConnectivity.READY
    if code is grpc.StatusCode.UNAVAILABLE and not trailing and not connected:
        return Status(code, details or "", _BROKE_TRAILERS, initial, broke=True)
    return Status(code, details or "", trailing, initial, message)
