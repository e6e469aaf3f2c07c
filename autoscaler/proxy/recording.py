"""One answer that is kept while it comes in, for any number of clients that read it, each from its beginning.

What is kept has a bound. An answer that grows beyond it is kept no longer: those who read it already get it
to its end, and the slowest of them holds the server back; nobody new can join.
"""

import asyncio
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

from multidict import CIMultiDict

from autoscaler.proxy.answers import Refusal, Refused
from autoscaler.proxy.call import Call, CallBroke
from autoscaler.proxy.part_answer import PartAnswer
from autoscaler.proxy.tenants.tokens import TokenCount


class Recording:
    """An answer as it comes in: head, pieces, end. Holds up to `bytes_max`."""

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._pieces: deque[bytes] = deque()
        self._first = 0
        """How many pieces were let go of, before the first that is held [1]."""
        self._news = asyncio.Event()
        self._readers: set[Playback] = set()
        self.status = 0
        self.reason: str | None = None
        self.headers: CIMultiDict[str] | None = None
        """What of the head is passed on; None while it is not here."""
        self.size = 0
        """What is held now [bytes]."""
        self.is_whole = False
        """Whether the last byte is here."""
        self.is_kept = True
        """Whether it is here from its beginning."""
        self.refusal: Refusal | None = None
        """What to tell those whom it fails."""
        self.broken: CallBroke | None = None

    @property
    def readers(self) -> int:
        """Clients that read it now [1]."""
        return len(self._readers)

    async def record(self, call: Call | PartAnswer, tokens: TokenCount | None = None) -> None:
        """Take in the answer of `call` to its end, shown to `tokens`; raises `CallBroke` if it has none."""
        self.status, self.reason, self.headers = call.status, call.reason, call.headers
        self.tell()
        while not call.whole:
            if piece := await call.next_piece():
                if tokens is not None:
                    tokens.note(piece)
                await self._add(piece)
        self.is_whole = True
        self.tell()

    def fail(self, refusal: Refusal, broken: CallBroke | None = None) -> None:
        """End it before it is whole."""
        self.refusal = refusal
        self.broken = broken or CallBroke("reset", refusal.executed, refusal.text)
        self.tell()

    @contextmanager
    def read(self) -> Iterator["Playback"]:
        """Read it from its beginning."""
        playback = Playback(self)
        self._readers.add(playback)
        try:
            yield playback
        finally:
            self._readers.discard(playback)
            self.tell()

    async def changes(self) -> None:
        """Return when something has happened."""
        await self._news.wait()

    async def _add(self, piece: bytes) -> None:
        self._pieces.append(piece)
        self.size += len(piece)
        self.tell()
        while self.size > self._bytes_max:
            self.is_kept = False
            self._let_go_of_what_all_have_read()
            if self.size > self._bytes_max and self._readers:
                await self.changes()

    def _let_go_of_what_all_have_read(self) -> None:
        slowest = min((reader.at for reader in self._readers), default=self._first + len(self._pieces))
        while self._first < slowest:
            self.size -= len(self._pieces.popleft())
            self._first += 1

    def piece(self, at: int) -> bytes | None:
        """Return the piece with this number; None if it is not here yet."""
        index = at - self._first
        return self._pieces[index] if index < len(self._pieces) else None

    def end_at(self) -> int:
        """Return the number of the piece that comes next."""
        return self._first + len(self._pieces)

    def tell(self) -> None:
        """Wake all who wait for `changes`."""
        self._news.set()
        self._news = asyncio.Event()


class Playback:
    """A recording as one client reads it; what a `Call` is to a relay."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self.at = 0
        """The number of the piece to read next."""

    async def begin(self) -> None:
        """Wait for the head; raises `Refused` if there will be none."""
        recording = self._recording
        while recording.headers is None:
            if recording.refusal is not None:
                raise Refused(recording.refusal)
            await recording.changes()

    @property
    def refusal(self) -> Refusal:
        """What to tell its client when it broke."""
        if self._recording.refusal is None:
            raise RuntimeError("nothing has failed yet")
        return self._recording.refusal

    @property
    def status(self) -> int:
        return self._recording.status

    @property
    def reason(self) -> str | None:
        return self._recording.reason

    @property
    def headers(self) -> CIMultiDict[str]:
        headers = self._recording.headers
        return CIMultiDict() if headers is None else headers.copy()

    @property
    def begun(self) -> bool:
        return self._recording.piece(self.at) is not None or self.whole

    @property
    def whole(self) -> bool:
        return self._recording.is_whole and self.at == self._recording.end_at()

    async def next_piece(self) -> bytes:
        recording = self._recording
        while (piece := recording.piece(self.at)) is None:
            if recording.broken is not None:
                raise recording.broken
            if recording.is_whole:
                return b""
            await recording.changes()
        self.at += 1
        if not recording.is_kept:
            recording.tell()
        return piece
