"""Requests that carry an `Idempotency-Key`: however often they are sent, they are executed once.

    a new key           the request is executed, and its answer recorded while it comes in
    the key of one that runs, or has ended     its answer, from the beginning
    the same key with another request          422

A key belongs to the credentials, the method and the pool with which it came: nobody is given the answer of
another. What can be sent again with profit is not kept: refusals of this proxy, broken answers, and answers
that say that the server failed or was busy. Neither is an answer larger than the bound; who joins such a one
in its course is told 409.

A client that leaves may come back, that is what its key is for. So the request is executed to its end as
long as somebody reads its answer, and for a stated time after that. What is kept is bounded in number, in
bytes and in time; the oldest goes first.
"""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from hashlib import blake2b

from aiohttp import hdrs, web

from autoscaler.proxy.answers import Refusal, Refused
from autoscaler.proxy.idempotency_options import IdempotencyOptions
from autoscaler.proxy.recording import Playback, Recording

_log = logging.getLogger("autoscaler.proxy")

_CREDENTIALS = (hdrs.AUTHORIZATION, "X-API-Key", "Api-Key", hdrs.COOKIE)

_KEEPS = frozenset(range(200, 500)) - {408, 425, 429}
"""Answers with other statuses are worth another execution."""

REUSED = Refusal(
    422,
    "idempotency_key_reused",
    "This Idempotency-Key came before with another request; take a new key for each request.",
)
_TOO_LARGE = Refusal(
    409,
    "idempotent_answer_too_large",
    "The answer of the request with this Idempotency-Key is under way and too large to be given twice.",
    "maybe",
)
_ABANDONED = Refusal(
    503, "abandoned", "Everybody who waited for the answer has left.", "maybe", retry_after=1
)

_FAULT = Refusal(500, "internal_error", "The proxy failed; its log says why.", "maybe")

Execute = Callable[[Recording], Awaitable[None]]
"""Serves the request and records its answer; says itself how that failed. What it needs of the client that
asked first it takes before it returns its awaitable."""


class Run:
    """One execution for one key."""

    def __init__(self, fingerprint: bytes, execute: Execute, options: IdempotencyOptions) -> None:
        self.fingerprint = fingerprint
        self.recording = Recording(options.answer_bytes_max)
        self._patience = options.patience
        self._leaving: asyncio.TimerHandle | None = None
        self.task = asyncio.create_task(self._run(execute(self.recording)))

    @property
    def worth_keeping(self) -> bool:
        """Whether its answer, now that it has ended, is the answer for good."""
        recording = self.recording
        return recording.is_whole and recording.is_kept and recording.status in _KEEPS

    @contextmanager
    def joined(self) -> Iterator[Playback]:
        """Read its answer. When the last reader has left, it goes on for a while."""
        if self._leaving is not None:
            self._leaving.cancel()
            self._leaving = None
        try:
            with self.recording.read() as playback:
                yield playback
        finally:
            if not self.recording.readers and not self.task.done():
                self._leaving = asyncio.get_running_loop().call_later(self._patience, self.task.cancel)

    async def _run(self, serving: Awaitable[None]) -> None:
        recording = self.recording
        try:
            await serving
        except Exception:
            _log.exception("a fault in the handling of a request with an Idempotency-Key")
            recording.fail(_FAULT)
        finally:
            if not recording.is_whole and recording.refusal is None:
                recording.fail(_ABANDONED)


class Idempotency:
    """Remembers the runs of all keys."""

    def __init__(self, options: IdempotencyOptions) -> None:
        self._options = options
        self._under_way: dict[bytes, Run] = {}
        self._kept: OrderedDict[bytes, Run] = OrderedDict()
        self.kept_bytes = 0
        """Size of the answers that are kept [bytes]."""

    @property
    def kept(self) -> int:
        """Answers that are kept [1]."""
        return len(self._kept)

    def run_of(self, name: bytes, fingerprint: bytes, execute: Execute) -> tuple[Run, bool]:
        """Return the run for a key, and whether it was there before; begin it if it was not.

        Raises
        ------
        Refused
            With 422 if the key came with another request, with 409 if its answer cannot be given twice.
        """
        run = self._under_way.get(name) or self._kept.get(name)
        if run is not None:
            if run.fingerprint != fingerprint:
                raise Refused(REUSED)
            if not run.recording.is_kept:
                raise Refused(_TOO_LARGE)
            return run, True
        run = self._under_way[name] = Run(fingerprint, execute, self._options)
        run.task.add_done_callback(lambda _: self._ended(name, run))
        return run, False

    def _ended(self, name: bytes, run: Run) -> None:
        del self._under_way[name]
        if not run.worth_keeping:
            return
        self._kept[name] = run
        self.kept_bytes += run.recording.size
        asyncio.get_running_loop().call_later(self._options.keep, self._forget, name, run)
        while len(self._kept) > self._options.answers_max or self.kept_bytes > self._options.bytes_total:
            self._forget(*next(iter(self._kept.items())))

    def _forget(self, name: bytes, run: Run) -> None:
        if self._kept.get(name) is run:
            del self._kept[name]
            self.kept_bytes -= run.recording.size


def name_of(key: str, request: web.BaseRequest, pool: str, tenant: str) -> bytes:
    """Return what a key stands for: it is one client's own, for one method and one pool."""
    return _digest(
        key, pool, tenant, request.method, *(request.headers.get(name, "") for name in _CREDENTIALS)
    )


def fingerprint_of(target: str, request: web.BaseRequest, body: bytes) -> bytes:
    """Return by what two requests are told apart that came with the same key."""
    return _digest(target, request.headers.get(hdrs.CONTENT_TYPE, ""), body)


def _digest(*parts: str | bytes) -> bytes:
    digest = blake2b(digest_size=16)
    for part in parts:
        raw = part.encode("utf-8", "surrogateescape") if isinstance(part, str) else part
        digest.update(len(raw).to_bytes(8, "big"))
        digest.update(raw)
    return digest.digest()
