"""One request that is in flight, for those who look at what is going on right now."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LiveRequest:
    """Where one request stands."""

    id: str
    """As its answer says in `X-Request-Id`."""
    method: str
    path: str
    """Without its query, which may hold secrets."""
    state: str
    """reading, waiting, calling, answering, websocket; joined: waits for the execution of its key."""
    age: float
    """Since its head was read [s]."""
    pool: str = ""
    """Empty while it is not known."""
    priority_class: str = ""
    tenant: str = ""
    replica: str = ""
    """Whose slot it has, or had last; empty for none."""
