"""What a controller tells a proxy of the replicas of a pool, and what the proxy answers; both as JSON.

    PUT /api/shares/chat    {"replicas": {"pod-1": {"url": "http://10.0.0.11:8000", "share": 8}}}
    If-Match: "5f0c…-17"

    200                     {"is_told": true, "waiting": 2, "is_leaving": false, "replicas": {"pod-1":
    ETag: "5f0c…-18"         {"url": "http://10.0.0.11:8000", "share": 8, "busy": 9, "is_ready": true}}}

The tag names one state of one process: it changes with every order that is taken in, and with a restart. An
order that was thought out for another state is refused (412), with the state that there is; so what comes
late, or twice, or from one who does not lead any more and has not seen what happened since, does no harm.
`GET` tells the state and changes nothing. Fields may be added, none will change its meaning.
"""

from dataclasses import dataclass, field
from urllib.parse import urlsplit

from autoscaler.telemetry.plain import decode

PATH = "/api/shares/"
"""The name of the pool follows."""
MESSAGE_BYTES_MAX = 2**20
"""A longer message is not read [bytes]; a thousand replicas take about a sixth of it."""

_SHARE_MAX = 1_000_000
"""No server serves so many requests at a time [1]; what is more is a mistake."""
_WAITING_MAX = 1_000_000_000
"""No proxy has so many requests in its queue [1]; what is more is a mistake."""


@dataclass(frozen=True, slots=True)
class ReplicaTold:
    """One replica, and how much of it is the proxy's."""

    url: str
    """Base URL of its HTTP port."""
    share: int
    """Slots that the proxy may use [1]; 0: none, it finishes what it holds."""
    grpc_target: str | None = None
    """Its gRPC port as `host:port`; None if it has none."""

    def __post_init__(self) -> None:
        _check_count("share", self.share, _SHARE_MAX)
        _check_url(self.url)


@dataclass(frozen=True, slots=True)
class SharesTold:
    """Every replica that there is, by its id; one that is absent is gone."""

    replicas: dict[str, ReplicaTold] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ReplicaHeld:
    """One replica, as the proxy knows it."""

    url: str
    share: int
    """Slots that it may use [1]."""
    busy: int
    """Slots that it uses [1]."""
    is_ready: bool
    """Whether the replica answers to it, and does well."""
    grpc_target: str | None = None

    def __post_init__(self) -> None:
        for count in (self.share, self.busy):
            _check_count("share, busy", count, _SHARE_MAX)
        _check_url(self.url)


@dataclass(frozen=True, slots=True)
class SharesHeld:
    """What a proxy has and uses, and who waits there."""

    is_told: bool = False
    """Whether a controller has told this process anything."""
    waiting: int = 0
    """Requests in its queue [1]."""
    is_leaving: bool = False
    """Whether it takes nothing new and will end."""
    replicas: dict[str, ReplicaHeld] = field(default_factory=dict)
    """By id."""
    gone: dict[str, int] = field(default_factory=dict)
    """Slots that it uses still of replicas that it was told are gone, by id [1]: they might come back."""

    def __post_init__(self) -> None:
        _check_count("waiting", self.waiting, _WAITING_MAX)
        for count in self.gone.values():
            _check_count("gone", count, _SHARE_MAX)


def _check_count(name: str, count: int, most: int) -> None:
    if not 0 <= count <= most:
        raise ValueError(f"need 0 <= {name} <= {most}, got {str(count)[:20]}")


def _check_url(url: str) -> None:
    if urlsplit(url).scheme not in ("http", "https") or not urlsplit(url).netloc:
        raise ValueError(f"url: {url!r} is no base URL; write it as http://HOST:PORT")


def read_told(raw: bytes) -> SharesTold:
    """Read an order. Raises ValueError if it is none; the text says what is wrong with it."""
    return decode(raw, SharesTold)


def read_held(raw: bytes) -> SharesHeld:
    """Read an answer. Raises ValueError if it is none; the text says what is wrong with it."""
    return decode(raw, SharesHeld)
