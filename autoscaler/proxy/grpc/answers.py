"""The codes of gRPC and the statuses of HTTP that say the same, for refusals and for logs.

One `Refusal` has one meaning on both listeners; here it becomes a status and trailers:

    400 INVALID_ARGUMENT · 401 UNAUTHENTICATED · 403 PERMISSION_DENIED · 404 NOT_FOUND · 413, 429
    RESOURCE_EXHAUSTED · 499 CANCELLED · 501 UNIMPLEMENTED · 502, 503 UNAVAILABLE · 504 DEADLINE_EXCEEDED
"""

from math import ceil

import grpc

from autoscaler.proxy.answers import Refusal
from autoscaler.proxy.grpc.metadata import Metadata

_CODES = {
    400: grpc.StatusCode.INVALID_ARGUMENT,
    401: grpc.StatusCode.UNAUTHENTICATED,
    403: grpc.StatusCode.PERMISSION_DENIED,
    404: grpc.StatusCode.NOT_FOUND,
    408: grpc.StatusCode.DEADLINE_EXCEEDED,
    413: grpc.StatusCode.RESOURCE_EXHAUSTED,
    429: grpc.StatusCode.RESOURCE_EXHAUSTED,
    499: grpc.StatusCode.CANCELLED,
    501: grpc.StatusCode.UNIMPLEMENTED,
    502: grpc.StatusCode.UNAVAILABLE,
    503: grpc.StatusCode.UNAVAILABLE,
    504: grpc.StatusCode.DEADLINE_EXCEEDED,
}
_STATUSES = {
    grpc.StatusCode.OK: 200,
    grpc.StatusCode.CANCELLED: 499,
    grpc.StatusCode.INVALID_ARGUMENT: 400,
    grpc.StatusCode.DEADLINE_EXCEEDED: 504,
    grpc.StatusCode.NOT_FOUND: 404,
    grpc.StatusCode.ALREADY_EXISTS: 409,
    grpc.StatusCode.PERMISSION_DENIED: 403,
    grpc.StatusCode.UNAUTHENTICATED: 401,
    grpc.StatusCode.RESOURCE_EXHAUSTED: 429,
    grpc.StatusCode.FAILED_PRECONDITION: 400,
    grpc.StatusCode.ABORTED: 409,
    grpc.StatusCode.OUT_OF_RANGE: 400,
    grpc.StatusCode.UNIMPLEMENTED: 501,
    grpc.StatusCode.UNAVAILABLE: 503,
}
"""As `google.rpc.Code` has them; those that are not here are 500."""


def http_status_of(code: grpc.StatusCode) -> int:
    """Return the HTTP status that says the same as a code."""
    return _STATUSES.get(code, 500)


def code_of(refusal: Refusal) -> grpc.StatusCode:
    """Return the status code that says the same as the HTTP status."""
    return _CODES.get(refusal.status, grpc.StatusCode.INTERNAL)


def trailers_of(refusal: Refusal) -> Metadata:
    """Return what a client can read from the end of the call, beside code and text."""
    trailers = [("x-request-executed", refusal.executed), ("x-refusal", refusal.code)]
    if refusal.retry_after is not None:
        trailers.append(("retry-after", str(max(1, ceil(refusal.retry_after)))))
    if refusal.proxy_reason is not None:
        trailers.append(("x-proxy-reason", refusal.proxy_reason))
    return tuple(trailers)
