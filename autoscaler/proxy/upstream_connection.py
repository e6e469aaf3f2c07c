"""One connection to a replica: one call at a time goes out on it, and comes in.

A server that has heard enough of an upload answers (413, 401, 429) and closes. What we still write then is
met with a reset, and the failure to write arrives before its answer has been read, or instead of it. The
answer is there all the same: the kernel keeps what was received before the reset. So when the connection is
lost, what the kernel holds is read first. Not with TLS: what the kernel holds is ciphertext there.
"""

import asyncio
import os
from collections.abc import Callable
from typing import Protocol

from autoscaler.proxy.answer_parser import AnswerParser, Unreadable
from autoscaler.proxy.answers import Executed
from autoscaler.proxy.body import Payload, Pieces
from autoscaler.proxy.call import Call, CallBroke
from autoscaler.proxy.silence import Silence

_LAST_WORDS_MAX = 256 * 1024
"""So much is read of a connection that is lost [bytes]: the head and the body of a refusal."""

_PIECE = 64 * 1024

_AT_ONCE = 64 * 1024
"""A body up to this is joined to its head [bytes]: one write for both."""

_STALE_WINDOW = 0.25
"""A reused connection that breaks within this after the request was written had been closed before [s]."""


class Home(Protocol):
    """Where a connection waits for its next call."""

    def take_back(self, connection: "UpstreamConnection") -> None:
        """It is free."""

    def forget(self, connection: "UpstreamConnection") -> None:
        """It is lost."""


class Way(Protocol):
    """Takes what comes on a connection that has switched protocols."""

    def feed_data(self, data: bytes) -> object:
        """Take in what has come."""

    def feed_eof(self) -> None:
        """Nothing more comes."""


class UpstreamConnection(asyncio.Protocol):
    """Carries calls, one after the other.

    Parameters
    ----------
    home : Home or None
        Takes it back after each call; None: it closes after its first.
    read_buffer : int
        What is held for a reader who is slow is bounded by twice this [bytes].
    first_byte_timeout, idle_timeout : float or None
        How long the server may be silent before its answer begins, and while it comes [s].
    """

    __slots__ = (
        "_call", "_first_byte_timeout", "_held_max", "_home", "_idle_timeout", "_loop", "_parser",
        "_reading_paused", "_silence", "_tail", "_upload", "_was_reused", "_way", "_writable", "_written_at",
        "broken", "idle_since", "transport", "was_used", "when_writable", "writing_paused",
    )  # fmt: skip

    def __init__(
        self,
        home: Home | None,
        read_buffer: int,
        first_byte_timeout: float | None,
        idle_timeout: float | None,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._home = home
        self._held_max = 2 * read_buffer
        self._first_byte_timeout = first_byte_timeout
        self._idle_timeout = idle_timeout
        self._parser = AnswerParser()
        self._silence = Silence(self._loop, self._is_late)
        self._call: Call | None = None
        self._written_at = 0.0
        self._was_reused = False
        self._upload: asyncio.Task[None] | None = None
        self._writable: asyncio.Future[None] | None = None
        self._reading_paused = False
        self._way: Way | None = None
        self._tail = b""
        self.transport: asyncio.Transport | None = None
        self.writing_paused = False
        self.when_writable: Callable[[], None] | None = None
        """Told when the server takes what is written to it again."""
        self.was_used = False
        """Whether a request was sent on it before."""
        self.idle_since = 0.0
        """Since when it has been free [s]; its home notes it."""
        self.broken: BaseException | None = None
        """With what it was lost, if not in an orderly way."""

    # -- calls

    def ask(self, call: Call, head: bytes, body: Payload, *, chunked: bool) -> None:
        """Send a request; what comes back is fed to `call`. Raises `CallBroke` if it is closed already."""
        transport = self.transport
        if transport is None or transport.is_closing():
            raise CallBroke("reset", "no", "The connection to the model server broke.")
        self._was_reused, self.was_used = self.was_used, True
        self._written_at = self._loop.time()
        self._call = call
        self._parser.expect(call)
        call.carried_by(self)
        if body is None:
            transport.write(head)
        elif not isinstance(body, bytes):
            transport.write(head)
            self._upload = self._loop.create_task(self._send(body, chunked=chunked))
        elif len(body) <= _AT_ONCE:
            transport.write(head + body)
        else:
            transport.write(head)
            transport.write(body)
        self._silence.expect(self._first_byte_timeout)

    def heard(self) -> None:
        """Count the silence of the server anew: it has taken something, or its client has sent something."""
        self._silence.heard()

    def read_on(self) -> None:
        """The reader of the call has caught up: read again."""
        if self._reading_paused:
            self.resume_reading()
            self._silence.expect(self._idle_timeout)

    def close(self) -> None:
        """Close when all is sent that was written."""
        if self.transport is not None:
            self.transport.close()

    def abort(self) -> None:
        """Close without waiting for what is still to be written."""
        self._cancel_upload()
        if self.transport is not None:
            self.transport.abort()

    # -- what the event loop says

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport  # type: ignore[assignment]  # one that reads and writes, as all of TCP do

    def data_received(self, data: bytes) -> None:
        call, parser = self._call, self._parser
        if call is None:
            self._receive_uncalled(data)
            return
        had_head = call.has_head
        try:
            parser.feed(data)
        except Unreadable as unreadable:
            self._refuse(call, unreadable, had_head=had_head)
            return
        if parser.complete:
            self._finish(call)
            return
        if parser.switched:
            self._switch()
            call.wake()
            return
        call.wake()
        if call.held > self._held_max:
            self.pause_reading()
            self._silence.expect(None)  # the clock stands while the client is the slow one
        elif had_head:
            self._silence.heard()
        elif call.has_head:
            self._silence.expect(self._idle_timeout)

    def eof_received(self) -> None:
        self._end(None)

    def connection_lost(self, exc: BaseException | None) -> None:
        if exc is not None:
            self._read_last_words()
        self._end(exc)
        self.broken, self.transport = exc, None
        self._silence.close()
        self._cancel_upload()
        if self._way is not None:
            self._way.feed_eof()
        if self._home is not None:
            self._home.forget(self)

    def pause_writing(self) -> None:
        self.writing_paused = True

    def resume_writing(self) -> None:
        self.writing_paused = False
        if self._writable is not None and not self._writable.done():
            self._writable.set_result(None)
        if self.when_writable is not None:
            self.when_writable()

    # -- reading

    def pause_reading(self) -> None:
        """Read no more for the time being."""
        if not self._reading_paused and self.transport is not None and not self.transport.is_closing():
            self._reading_paused = True
            self.transport.pause_reading()

    def resume_reading(self) -> None:
        """Read again."""
        if self._reading_paused and self.transport is not None and not self.transport.is_closing():
            self._reading_paused = False
            self.transport.resume_reading()

    def join(self, way: Way) -> None:
        """Give all that comes to `way` from now on, in the protocol that was switched to."""
        self._way = way
        tail, self._tail = self._tail, b""
        self.resume_reading()
        if tail:
            way.feed_data(tail)

    def _receive_uncalled(self, data: bytes) -> None:
        if self._way is not None:
            self._way.feed_data(data)
        elif self._parser.switched:
            self._tail += data
            if len(self._tail) > self._held_max:
                self.pause_reading()
        else:
            self.abort()  # nobody asked it anything

    def _switch(self) -> None:
        self._call = None
        self._silence.expect(None)
        self._tail = self._parser.tail

    def _read_last_words(self) -> None:
        transport = self.transport
        if transport is None or self._reading_paused or transport.get_extra_info("sslcontext") is not None:
            return
        descriptor = transport.get_extra_info("socket").fileno()
        for _ in range(_LAST_WORDS_MAX // _PIECE):
            try:
                words = os.read(descriptor, _PIECE)
            except OSError:
                return
            if not words or (self._call is None and self._way is None):
                return
            self.data_received(words)

    # -- how a call ends

    def _finish(self, call: Call) -> None:
        """The answer is here in full."""
        transport = self.transport
        self._call = None
        self._silence.expect(None)
        call.carried_by(None)
        if transport is not None and not transport.is_closing():
            is_sent = self._upload is None and not transport.get_write_buffer_size()
            if is_sent and self._parser.stays and self._home is not None:
                self.resume_reading()
                self._home.take_back(self)
            elif is_sent:
                transport.close()
            else:
                self.abort()
        call.complete()

    def _fail(self, call: Call, failure: CallBroke) -> None:
        self._call = None
        self._silence.expect(None)
        call.carried_by(None)
        self.abort()
        call.fail(failure)

    def _refuse(self, call: Call, unreadable: Unreadable, *, had_head: bool) -> None:
        if not had_head:
            failure = CallBroke("protocol", "maybe", "The model server did not answer in HTTP.")
        elif (
            self._parser.complete
        ):  # what comes behind an answer that has begun to be passed on is thrown away
            self._parser.stays = False
            self._finish(call)
            return
        else:
            failure = CallBroke("truncated", "maybe", "The model server broke off its answer.")
        failure.__cause__ = unreadable
        self._fail(call, failure)

    def _end(self, error: BaseException | None) -> None:
        """Nothing more comes."""
        call = self._call
        if call is None:
            return
        if error is None and self._parser.feed_eof():
            self._finish(call)
        else:
            self._fail(call, self._broken_off(call, error))

    def _broken_off(self, call: Call, error: BaseException | None) -> CallBroke:
        if call.has_head:
            return CallBroke("truncated", "maybe", "The model server broke off its answer.")
        if self._parser.overhead and error is None:
            return CallBroke("truncated", "maybe", "The model server broke off in the head of its answer.")
        since = self._loop.time() - self._written_at
        was_stale = self._was_reused and not self._parser.overhead and since < _STALE_WINDOW
        executed: Executed = "no" if was_stale else "maybe"
        return CallBroke("reset", executed, "The connection to the model server broke.")

    def _is_late(self) -> None:
        if (call := self._call) is None:
            return
        if call.has_head:
            text = "The model server fell silent in mid-answer."
        else:
            text = "The model server did not answer in time."
        self._fail(call, CallBroke("late", "maybe", text))

    # -- uploads

    async def _send(self, pieces: Pieces, *, chunked: bool) -> None:
        """Send a body as it comes in, no faster than the server takes it."""
        try:
            async for piece in pieces:
                if (transport := self.transport) is None or transport.is_closing():
                    return
                if chunked and piece:
                    transport.writelines((b"%x\r\n" % len(piece), piece, b"\r\n"))
                else:
                    transport.write(piece)
                if self.writing_paused:
                    await self._until_writable()
            if chunked and self.transport is not None:
                self.transport.write(b"0\r\n\r\n")
            self._upload = None
        except Exception as error:
            self._upload = None
            if self._call is not None:
                failure = CallBroke("reset", "maybe", "The request could not be sent to its end.")
                failure.__cause__ = error
                self._fail(self._call, failure)
        finally:
            await pieces.aclose()

    async def _until_writable(self) -> None:
        self._writable = self._loop.create_future()
        try:
            await self._writable
        finally:
            self._writable = None

    def _cancel_upload(self) -> None:
        upload, self._upload = self._upload, None
        if upload is not None:
            upload.cancel()
