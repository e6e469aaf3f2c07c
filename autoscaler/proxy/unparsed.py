"""What is said to clients whose request never came to be one: it could not be parsed, or not even be read."""

from aiohttp.http_exceptions import LineTooLong

from autoscaler.proxy.answers import Refusal

NO_ROOM = (
    b"HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/problem+json\r\nContent-Length: 95\r\n"
    b"Retry-After: 1\r\nX-Request-Executed: no\r\nConnection: close\r\n\r\n"
    b'{"type":"about:blank","title":"Service Unavailable","status":503,"code":"too_many_connections"}'
)
"""To a client for whose connection there is no room, before it has said anything."""


def unparsed(exc: BaseException | None, message: str, target_max: int, headers_max: int) -> Refusal:
    """Tell apart what is malformed from what is too large; the parser knows it only by its numbers."""
    if isinstance(exc, LineTooLong):
        limit = exc.args[1]
        if limit == target_max:
            return Refusal(414, "target_too_long", f"The request target is longer than {limit} bytes.")
        return Refusal(431, "header_too_large", f"A header is larger than {limit} bytes.")
    if message.startswith("Too many headers"):
        return Refusal(431, "too_many_headers", f"The request has more than {headers_max} headers.")
    return Refusal(400, "bad_request", f"The request is not valid HTTP: {in_one_line(message)}")


def in_one_line(text: str) -> str:
    """Make what the parser says of foreign bytes fit for a sentence."""
    return " ".join(text.encode("ascii", "backslashreplace").decode().split())
