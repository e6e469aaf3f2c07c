"""The call to a replica: messages there and back, then what the server said of it.

A status that the server sent, an error too, is its answer and is passed on as it is: code, text, every
trailer. One that the library made up because the connection broke reads UNAVAILABLE too; what tells it apart
is the channel, which is no longer connected. That shows some milliseconds after the call has ended; it is
waited for where the words are those of the library.
"""

import asyncio
from collections.abc import Awaitable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol

import grpc

from autoscaler.proxy.grpc.channels import Line
from autoscaler.proxy.grpc.metadata import Metadata, passed_on

_WORDS_OF_A_BREAK = ("Stream removed", "Socket closed", "Connection reset", "Broken pipe", "keepalive")
_NOTICED_WITHIN = 0.1
"""A connection that is lost is noticed within this [s]; 12 ms were the most that was seen."""

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


class Client(Protocol):
    """Who asked for a stream."""

    async def read(self) -> Any:
        """Return its next message, or the library's EOF."""

    async def write(self, message: bytes) -> None:
        """Give it a message."""

    async def write_first(self, metadata: Metadata) -> None:
        """Give it the metadata that stand before the first message."""


async def relay_answer(call: Any, line: Line) -> Status:
    """Return the answer of a call with one message each way, and its status.

    When this is cancelled, so is the call.
    """
    try:
        answer = await _unless_cancelled_by_server(call)
    except grpc.aio.AioRpcError:
        answer = None
    return await _status_of(call, line, initial=passed_on(await call.initial_metadata()), message=answer)


async def relay_stream(
    call: Any, line: Line, client: Client, message: bytes, idle_timeout: float | None
) -> Status:
    """Pass messages both ways as they come, beginning with `message`; return the server's status.

    A stream on which nothing comes from either side for `idle_timeout` [s] is ended, for it holds a slot.
    """
    clock = _Idle(idle_timeout)
    upload = asyncio.create_task(_send_on(call, message, client, clock))
    try:
        async with clock.limit:
            with suppress(grpc.aio.AioRpcError):
                initial = await _unless_cancelled_by_server(call.initial_metadata())
                if initial and (kept := passed_on(initial)):
                    await client.write_first(kept)
                while (answer := await _unless_cancelled_by_server(call.read())) not in (None, grpc.aio.EOF):
                    clock.something_came()
                    await client.write(answer)
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
    return await _status_of(call, line)


class _Idle:
    """Ends what it limits when nothing has come for a while."""

    def __init__(self, patience: float | None) -> None:
        self._patience = patience
        self.limit = asyncio.timeout(patience)

    def something_came(self) -> None:
        if self._patience is not None and not self.limit.expired():
            self.limit.reschedule(asyncio.get_running_loop().time() + self._patience)


async def _send_on(call: Any, message: bytes, client: Client, clock: _Idle) -> None:
    """Pass on what the client sends, to its end. That the call has ended is told to who reads from it."""
    with suppress(grpc.aio.AioRpcError, grpc.aio.UsageError, asyncio.InvalidStateError):
        await call.write(message)
        while (following := await client.read()) is not grpc.aio.EOF:
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


async def _status_of(call: Any, line: Line, initial: Metadata = (), message: bytes | None = None) -> Status:
    code, trailing = await call.code(), passed_on(await call.trailing_metadata())
    if code is grpc.StatusCode.OK:
        return Status(code, "", trailing, initial, message)
    details = await call.details() or ""
    if code is grpc.StatusCode.UNAVAILABLE and not trailing and await _has_broken(line, details):
        return Status(code, details, _BROKE_TRAILERS, initial, broke=True)
    return Status(code, details, trailing, initial, message)


async def _has_broken(line: Line, details: str) -> bool:
    patience = _NOTICED_WITHIN if any(words in details for words in _WORDS_OF_A_BREAK) else 0.0
    return await line.breaks_within(patience) if patience else not line.connected
