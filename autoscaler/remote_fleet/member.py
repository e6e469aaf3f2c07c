"""One replica, as whoever runs it lists it."""

from dataclasses import dataclass


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
