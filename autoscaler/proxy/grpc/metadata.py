"""What of the metadata of a call is passed on: everything, except what belongs to one connection.

The library keeps for itself what HTTP/2 and gRPC need on each hop (`:path`, `te`, `content-type`,
`grpc-timeout`, `grpc-encoding`, `grpc-status`, …) and speaks it anew on the other hop. What it hands on that
belongs to one hop as well, or is ours, is left out here. Binary values, whose names end in `-bin`, are bytes.
"""

from collections.abc import Container, Iterable

Metadata = tuple[tuple[str, str | bytes], ...]

_OF_ONE_HOP = frozenset(
    (
        "connection",
        "grpc-accept-encoding",
        "grpc-encoding",
        "grpc-message-type",
        "grpc-status",
        "grpc-message",
        "grpc-timeout",
        "http2-settings",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
        "user-agent",
    )
)
"""`user-agent` is that of the client's library; ours writes its own, and cannot be told not to."""


def passed_on(given: Iterable[tuple[str, str | bytes]] | None, without: Container[str] = ()) -> Metadata:
    """Return what the next hop shall see, in its order, less the names in `without`.

    A plain tuple: what the library itself hands out is a mapping that its `abort` does not take.
    """
    if not given:  # most calls say nothing beside their message
        return ()
    return tuple(
        [
            (key, value)
            for key, value in given
            if key not in _OF_ONE_HOP and key not in without and not key.startswith(":")
        ]
    )


def first(given: Iterable[tuple[str, str | bytes]] | None, name: str) -> str | None:
    """Return the first text value of `name`, or None if there is none."""
    for key, value in given or ():
        if key == name and isinstance(value, str):
            return value
    return None
