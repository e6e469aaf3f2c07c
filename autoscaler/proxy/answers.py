"""How the proxy says no: one `Refusal`, worded for a person, in the dialect that the route's clients parse.

OpenAI clients expect `{"error": {"message", "type", "code"}}`, KServe clients `{"error": "…"}`, everybody
else gets problem details (RFC 9457). The status contract, and who may be the cause:

    the client   400 malformed, 404 no such route, 408 body too slow, 413 body too large, 417, 501
    the queue    429 full, 503 no capacity or draining, 504 deadline while waiting
    the server   502 broke (`X-Proxy-Reason: connect|reset|truncated|protocol`), 504 no answer in time

`X-Request-Executed: no` says that the request provably did not reach a model, `maybe` that nobody can tell.
"""

from dataclasses import dataclass
from http import HTTPStatus
from math import ceil
from typing import Literal

import msgspec
from aiohttp import web
from multidict import CIMultiDict

from autoscaler.domain import DropReason

Executed = Literal["no", "maybe"]

_RETRY_AFTER_UNKNOWN = 5.0
"""What to say when nobody can tell how long the wait would be [s]."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """An answer that the proxy gives itself."""

    status: int
    code: str
    """One word for a machine."""
    text: str
    """A sentence or two for a person: what happened, and the remedy."""
    executed: Executed = "no"
    proxy_reason: str | None = None
    """How the server broke: connect, reset, truncated, protocol."""
    retry_after: float | None = None
    """When it may be worth another try [s]."""


class Refused(Exception):
    """Ends the handling of one request with this answer."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.text)
        self.refusal = refusal


DEADLINE = Refusal(504, "deadline", "The request was not answered within the time that it gave.")
DRAINING = Refusal(
    503,
    "draining",
    "This proxy is shutting down; send the request again, and another one will take it.",
    retry_after=1.0,
)


_DROPPED: dict[DropReason, tuple[int, str]] = {
    DropReason.QUEUE_FULL: (429, "Too many requests are waiting; send this one again later."),
    DropReason.QUEUE_BYTES_FULL: (
        429,
        "The bodies of those who wait fill the memory set aside; send this request again later.",
    ),
    DropReason.QUEUE_SECONDS_FULL: (429, "As much work waits as may; send this request again later."),
    DropReason.PREDICTED_LATE: (
        503,
        "All replicas are busy, and this request would not start in time; send it again later.",
    ),
    DropReason.RETRIES_SPENT: (
        503,
        "The replica did not take the request, and too many others are being tried again already.",
    ),
    DropReason.NO_CAPACITY: (
        503,
        "No replica of the model was ready within {waited:.3g} s; send the request again later.",
    ),
    DropReason.NO_REPLICA_IN_TIME: (
        503,
        "No replica of the model is ready, and the next one will come too late for this request; "
        "send it again then.",
    ),
    DropReason.DEADLINE_PASSED: (
        504,
        "All replicas were busy for {waited:.3g} s, as long as this request may wait.",
    ),
}


def dropped(reason: DropReason, expected_wait: float | None, waited: float) -> Refusal:
    """Return what to tell a client whose request the queue let go of after `waited` [s]."""
    if reason is DropReason.CLOSING:
        return DRAINING
    status, text = _DROPPED[reason]
    retry_after = None
    if reason is not DropReason.DEADLINE_PASSED:
        retry_after = _RETRY_AFTER_UNKNOWN if expected_wait is None else expected_wait
    return Refusal(status, reason.value, text.format(waited=waited), retry_after=retry_after)


def answer(refusal: Refusal, path: str) -> web.Response:
    """Build the response, with the body in the dialect of `path`."""
    headers: CIMultiDict[str] = CIMultiDict()
    if refusal.proxy_reason is not None:
        headers["X-Proxy-Reason"] = refusal.proxy_reason
    if refusal.retry_after is not None:
        headers["Retry-After"] = str(max(1, ceil(refusal.retry_after)))
    if refusal.status == HTTPStatus.UNAUTHORIZED:
        headers["WWW-Authenticate"] = "Bearer"
    headers["X-Request-Executed"] = refusal.executed
    if _below(path, "/v1"):
        body, content_type = msgspec.json.encode(_openai(refusal)), "application/json"
    elif _below(path, "/v2"):
        body, content_type = msgspec.json.encode({"error": refusal.text}), "application/json"
    else:
        body, content_type = msgspec.json.encode(_problem(refusal)), "application/problem+json"
    return web.Response(status=refusal.status, body=body, content_type=content_type, headers=headers)


def error_event(refusal: Refusal) -> bytes:
    """Return the server-sent event that tells the reader of a stream why it ends here."""
    return b"data: " + msgspec.json.encode(_openai(refusal)) + b"\n\n"


def _below(path: str, prefix: str) -> bool:
    return path == prefix or path.startswith(prefix + "/")


def _openai(refusal: Refusal) -> dict[str, dict[str, str | None]]:
    if refusal.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        kind = "server_error"
    elif refusal.status == HTTPStatus.TOO_MANY_REQUESTS:
        kind = "rate_limit_error"
    else:
        kind = "invalid_request_error"
    return {"error": {"message": refusal.text, "type": kind, "param": None, "code": refusal.code}}


def _problem(refusal: Refusal) -> dict[str, str | int]:
    return {
        "type": "about:blank",
        "title": HTTPStatus(refusal.status).phrase,
        "status": refusal.status,
        "detail": refusal.text,
        "code": refusal.code,
    }
