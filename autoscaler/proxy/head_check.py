"""What no server shall see: heads that are wrong, ambiguous, or ask for what this proxy does not do.

The parser has refused most of what is malformed before (RFC 9112); what it lets through is refused here.
"""

from aiohttp import HttpVersion10, HttpVersion11, hdrs, web

from autoscaler.proxy.answers import Refusal, Refused


def check_head(request: web.BaseRequest) -> None:
    """Raise `Refused` if the request shall go no further."""
    if request.version < HttpVersion10:
        raise Refused(Refusal(400, "bad_request", "HTTP/0.9 is not spoken here; send HTTP/1.1."))
    if request.method in (hdrs.METH_CONNECT, hdrs.METH_TRACE):
        raise Refused(Refusal(501, "method", f"The method {request.method} is not supported."))
    _check_transfer_coding(request)
    expectation = request.headers.get(hdrs.EXPECT, "100-continue")
    if expectation.lower() != "100-continue":
        text = f"The expectation {expectation!r} cannot be met; only 100-continue can."
        raise Refused(Refusal(417, "expectation", text))


def expects_continue(request: web.BaseRequest) -> bool:
    """Whether the client sends its body only when it is asked to (RFC 9110 §10.1.1)."""
    return hdrs.EXPECT in request.headers and request.version >= HttpVersion11


def asks_for_websocket(request: web.BaseRequest) -> bool:
    """Whether the client wants to go on in WebSocket (RFC 6455 §4.1); another upgrade is not taken up."""
    return (
        request.method == hdrs.METH_GET
        and request.version >= HttpVersion11
        and request.headers.get(hdrs.UPGRADE, "").strip().lower() == "websocket"
        and "upgrade" in _tokens(request.headers.get(hdrs.CONNECTION, ""))
    )


def _tokens(listed: str) -> list[str]:
    return [token.strip() for token in listed.lower().split(",")]


def _check_transfer_coding(request: web.BaseRequest) -> None:
    coding = request.headers.get(hdrs.TRANSFER_ENCODING)
    if coding is None:
        return
    if request.version < HttpVersion11:
        text = "Transfer-Encoding needs HTTP/1.1; send Content-Length."
        raise Refused(Refusal(400, "bad_request", text))
    if coding.strip().lower() != "chunked":
        text = f"The transfer coding {coding!r} is not supported; only chunked is."
        raise Refused(Refusal(501, "transfer_coding", text))
