"""One replica, as whoever runs it lists it."""

from contextlib import suppress
from dataclasses import dataclass
from urllib.parse import urlsplit


@dataclass(frozen=True, slots=True)
class Member:
    """One replica of a list; whether it answers is for the roster to find out."""

    id: str
    """Tells one incarnation from the next, where the list can; else its URL."""
    url: str
    """Base URL of its HTTP port, without a trailing slash."""
    grpc_target: str | None = None
    """Its gRPC port as `host:port`; None if it has none."""
    is_draining: bool = False
    """Whether it is going away and shall get nothing new."""


def names_a_host(url: str) -> bool:
    """Whether `url` is one of HTTP, of a host that can be looked for: `http://a..b` is of none."""
    with suppress(ValueError):  # UnicodeError is one
        parts = urlsplit(url)
        if parts.scheme in ("http", "https") and parts.hostname and parts.port != 0:
            return bool(parts.hostname.encode("idna"))
    return False
