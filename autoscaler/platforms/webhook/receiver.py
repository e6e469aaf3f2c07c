"""The receiver, as it is asked over HTTP: one attempt at a time, and what came of it.

Redirects are not followed: the signature would go to somebody whom nobody named.
"""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any

import aiohttp
import structlog

from autoscaler import __version__
from autoscaler.errors import PlatformUnavailable
from autoscaler.no_answer import why_no_answer
from autoscaler.platforms.webhook.options import WebhookOptions
from autoscaler.remote_fleet import REPORT_BYTES_MAX, FleetReport, read_report
from autoscaler.tls import client_context

CONTENT_TYPE = "application/cloudevents+json; charset=utf-8"
_COME_LATER = {401, 403, 404, 408, 409, 425, 429}
"""Client errors that pass without a change of the event: a key, a route or a quota is seen to."""
_NOT_BELIEVED = {401, 403}
"""Answers of a receiver that does not take a call for ours."""
_RETRY_AFTER_MAX = 3600.0
"""A receiver that asks for more patience is not believed [s]."""

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Accepted:
    """It was taken; perhaps with word of the fleet."""

    report: FleetReport | None


@dataclass(frozen=True, slots=True)
class Failed:
    """It may not have arrived, or cannot be taken now; it is sent again."""

    why: str
    retry_after: float = 0.0
    """No sooner than this [s]."""


@dataclass(frozen=True, slots=True)
class Declined:
    """It will never be taken as it is."""

    why: str


Outcome = Accepted | Failed | Declined


class Receiver:
    """Whoever acts on events. Open until `close`."""

    def __init__(self, options: WebhookOptions) -> None:
        self._options = options
        self._tls = None if options.tls is None else client_context(options.tls)
        self._session: aiohttp.ClientSession | None = None

    async def post(self, body: bytes, headers: dict[str, str]) -> Outcome:
        """Send an event once."""
        sent = {"Content-Type": CONTENT_TYPE, **headers}
        try:
            status, answer, retry_after = await self._ask("POST", self._options.url, body, sent)
        except PlatformUnavailable as error:
            return Failed(str(error))
        if 200 <= status < 300:
            return self._accepted(answer)
        why = _what_was_answered(self._options.url, status, answer)
        if status in _NOT_BELIEVED:
            why += self._who_signs()
        if status >= 500 or status in _COME_LATER:
            return Failed(why, retry_after)
        return Declined(why)

    async def status(self) -> FleetReport:
        """Ask which replicas there are. Raises PlatformUnavailable if nobody tells."""
        url = self._options.status_url or self._options.url
        status, answer, _ = await self._ask("GET", url, None, {"Accept": "application/json"})
        if status != 200:
            why = _what_was_answered(url, status, answer)
            if status in _NOT_BELIEVED:
                why += "; this question is not signed: let the receiver answer it to whoever can reach it"
            raise PlatformUnavailable(why)
        try:
            return read_report(answer, self._options.fleet.grpc_target)
        except ValueError as error:
            raise PlatformUnavailable(f"{url}: {error}") from error

    def _who_signs(self) -> str:
        """Say what to look at where a receiver does not believe that an event is ours."""
        file = self._options.secret_file
        if file is None:
            return "; events are not signed: name the receiver's secret in secret_file"
        return (
            f"; is its secret one of those in {file}, with whsec_ before it if the receiver reads it "
            "as base64, and are the clocks of both right?"
        )

    async def close(self) -> None:
        """Let go of the connections."""
        if self._session is not None:
            await self._session.close()

    def _accepted(self, answer: bytes) -> Outcome:
        """Take in an answer that accepts; it may tell of the fleet, or say what it likes."""
        if b'"ready"' not in answer:
            return Accepted(None)
        try:
            return Accepted(read_report(answer, self._options.fleet.grpc_target))
        except ValueError as error:
            log.warning("the fleet in an answer is not understood", url=self._options.url, why=str(error))
            return Accepted(None)

    async def _ask(
        self, method: str, url: str, body: bytes | None, headers: dict[str, str]
    ) -> tuple[int, bytes, float]:
        """Return status, body and Retry-After [s] of an answer. Raises PlatformUnavailable if none comes."""
        session = self._session = self._session or aiohttp.ClientSession(
            timeout=aiohttp.ClientTimeout(total=self._options.timeout),
            headers={"User-Agent": f"inference-autoscaler/{__version__}"},
        )
        more: dict[str, Any] = {} if self._tls is None else {"ssl": self._tls}
        try:
            async with session.request(
                method, url, data=body, headers=headers, allow_redirects=False, **more
            ) as answer:
                content = await answer.content.read(REPORT_BYTES_MAX + 1)
                while len(content) <= REPORT_BYTES_MAX and (piece := await answer.content.read(65_536)):
                    content += piece
                return answer.status, content, _retry_after(answer.headers)
        except TimeoutError as error:
            raise PlatformUnavailable(f"{url} gave no answer within {self._options.timeout:g} s") from error
        except (aiohttp.ClientError, OSError) as error:
            raise PlatformUnavailable(f"{url} cannot be reached: {why_no_answer(error)}") from error


def _retry_after(headers: Mapping[str, str]) -> float:
    """Return the seconds for which an answer asks for patience; nonsense asks for none.

    A date is held against the date of the answer, so nobody's clock need be right.
    """
    asked = headers.get("Retry-After", "")
    seconds = 0.0
    if asked.isascii() and asked.isdigit():
        seconds = float(asked)
    elif asked:
        with suppress(KeyError, TypeError, ValueError, OverflowError):
            until, now = (parsedate_to_datetime(text) for text in (asked, headers["Date"]))
            seconds = (until - now).total_seconds()
    return min(max(seconds, 0.0), _RETRY_AFTER_MAX)


def _what_was_answered(url: str, status: int, answer: bytes) -> str:
    why = f"{url} answered {status} {_first_line(answer)}".rstrip()
    return f"{why}; redirects are not followed: name where it leads" if 300 <= status < 400 else why


def _first_line(answer: bytes) -> str:
    return answer[:200].decode("utf-8", "replace").strip().split("\n", 1)[0]
