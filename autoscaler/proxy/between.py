"""Informational answers of a server (1xx), which come before its final one: passed on to the client.

100 is not: it answers an `Expect` that was ours to answer. To HTTP/1.0 nothing is said before the answer, and
nothing after one has begun, which may be that of another server.
"""

from collections.abc import Iterable
from http import HTTPStatus

from aiohttp import HttpVersion11, web

from autoscaler.proxy.headers import RESPONSE_FIELDS_REPLACED, BadHead, end_to_end

_DROPPED = RESPONSE_FIELDS_REPLACED | {b"content-length"}


def pass_on_between(request: web.BaseRequest, status: int, fields: Iterable[tuple[bytes, bytes]]) -> None:
    """Send it on, if it may be sent and can be written; else it is left out."""
    transport = request.transport
    if status == HTTPStatus.CONTINUE or request.version < HttpVersion11:
        return
    if transport is None or transport.is_closing() or request.writer.output_size:
        return
    try:
        headers = end_to_end(fields, without=_DROPPED)
    except BadHead:
        return
    try:
        phrase = HTTPStatus(status).phrase
    except ValueError:
        phrase = ""
    lines = "".join([f"{name}: {value}\r\n" for name, value in headers.items()])
    transport.write(f"HTTP/1.1 {status} {phrase}\r\n{lines}\r\n".encode())
