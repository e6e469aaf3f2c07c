"""What can be set about the proxy, and about the way to one pool."""

from dataclasses import dataclass, field

from autoscaler.domain import STANDARD
from autoscaler.proxy.access_log import AccessLogOptions
from autoscaler.proxy.affinity_key import AffinityKeyOptions
from autoscaler.proxy.idempotency_options import IdempotencyOptions
from autoscaler.tls import ClientTls, ServerTls

MIB = 2**20


@dataclass(frozen=True, slots=True)
class ProxyOptions:
    """The data listener: addresses, bounds of memory and time, drain."""

    host: str = "127.0.0.1"
    """Address to listen at. Set it empty, for every interface, to serve other machines."""
    port: int = 8080
    """Port to listen at; 0 lets the system choose one."""
    head_timeout: float = 10.0
    """So long may the head of a request take from its first byte to its last [s]; also the time until a new
    connection must have sent one. Raise it only for clients on very bad lines."""
    target_bytes_max: int = 8 * 1024
    """A longer request target is refused with 414 [bytes]."""
    header_bytes_max: int = 8 * 1024
    """A larger header, name and value together, is refused with 431 [bytes]. Raise it for large tokens."""
    headers_max: int = 128
    """More headers in one request are refused with 431 [1]."""
    connections_max: int | None = None
    """So many clients may be connected; more are told 503 [1]. None for as many as there are descriptors for,
    with one more each for a connection to a replica; the limit of open files is raised as far as it goes."""
    connections_per_client_max: int | None = None
    """So many of them from one address; more are told 503 [1]. None for no such bound. Set it where clients
    connect themselves and are not trusted; behind a load balancer all have the same address."""
    client_keepalive: float = 75.0
    """How long a client's connection may idle between two requests [s]. Longer than the idle time of whatever
    load balancer stands in front, or that one will now and then send into a connection just closed."""
    body_bytes_max: int = 64 * MIB
    """Larger request bodies are refused with 413 [bytes]. Triton takes 64 MiB unless told otherwise."""
    body_spool_bytes: int = MIB
    """So much of a body is read before its request asks for a slot [bytes]. A body that fits holds no slot
    while it comes in, can be sent again when a replica refuses the connection, and lets the proxy notice at
    once that the client left. What is beyond is streamed."""
    body_spool_bytes_total: int = 256 * MIB
    """So much memory may all bodies hold that were read ahead [bytes]. Beyond it requests queue with what
    was read, and the rest is read when they have a slot."""
    body_timeout: float = 10.0
    """Patience with a client that sends its body slowly [s]: it may fall so far behind `body_rate_min`
    before it is told 408."""
    body_rate_min: float = 4096.0
    """The slowest upload that is still served [bytes/s]."""
    linger: float = 1.0
    """After an early answer, so long the rest of a body is read and thrown away before the connection closes
    [s], so that the client gets to see the answer."""
    send_timeout: float = 60.0
    """A client that has taken no byte of its answer for so long is cut off [s]. A slow reader is none."""
    read_buffer_bytes: int = 32 * 1024
    """What is read ahead of a slow receiver, each way of each stream, is held to twice this [bytes]."""
    connect_timeout: float = 2.0
    """A replica must accept a connection within this [s]; else another is tried."""
    upstream_keepalive: float = 4.0
    """How long a connection to a replica may idle and be used again [s]. Shorter than the server's own limit
    (uvicorn: 5 s), so that it does not close what is being written to."""
    retries_max: int = 2
    """A request that provably did not execute is tried again so often [1]. It waits for its slot first in the
    queue, and a replica that refused a connection is left alone for a moment."""
    idempotency: IdempotencyOptions = field(default_factory=IdempotencyOptions)
    """What is kept of the answers to requests with an `Idempotency-Key`."""
    access_log: AccessLogOptions = field(default_factory=AccessLogOptions)
    """What is written of each request, and where."""
    share_port: bool = False
    """Let another process listen at the same address, for a restart without a gap: start the new one, wait
    until it is ready, then end the old one. Both must have it set. It hides that the port is taken."""
    drain_grace: float = 0.0
    """On SIGTERM, keep accepting for so long while saying not ready [s]. Behind a load balancer that polls
    readiness, set it to two of its polls."""
    drain_max: float = 60.0
    """So long may requests in flight go on after that [s]; then they are ended with an error. Longer than
    the longest answer that shall survive a restart."""
    tls: ServerTls | None = None
    """Certificate of the listener; None for plain text."""

    def __post_init__(self) -> None:
        for name in ("head_timeout", "client_keepalive", "body_rate_min", "connect_timeout", "send_timeout"):
            if getattr(self, name) <= 0:
                raise ValueError(f"need {name} > 0, got {getattr(self, name)}")
        for name in ("body_bytes_max", "body_spool_bytes", "body_timeout", "linger", "retries_max"):
            if getattr(self, name) < 0:
                raise ValueError(f"need {name} >= 0, got {getattr(self, name)}")
        for name in (
            "target_bytes_max",
            "header_bytes_max",
            "headers_max",
            "connections_max",
            "connections_per_client_max",
        ):
            if (value := getattr(self, name)) is not None and value < 1:
                raise ValueError(f"need {name} >= 1, got {value}")
        if self.read_buffer_bytes < 1024:
            raise ValueError(f"need read_buffer_bytes >= 1024, got {self.read_buffer_bytes}")
        if not 0 <= self.port <= 65535:
            raise ValueError(f"need port in 0..65535, got {self.port}")


@dataclass(frozen=True, slots=True)
class RouteOptions:
    """The way to one pool, and how long its requests may take."""

    prefix: str = "/"
    """Requests whose path is this, or lies below it, go to the pool; the longest prefix wins. The path is
    passed on whole."""
    wait_timeout: float = 60.0
    """A request that has not got a slot within this is answered 504, or 503 if there is no replica [s]."""
    first_byte_timeout: float | None = 300.0
    """After the body is sent, the head of the answer must come within this [s]; None for no limit. A server
    that answers in one piece sends its head when it is done, so this bounds the service time of those."""
    idle_timeout: float | None = 300.0
    """Between two pieces of an answer no more than this may pass [s]; None for no limit."""
    tls: ClientTls | None = None
    """How the servers are checked, where their URLs are https; None takes what is usual."""

    priority_class: str = STANDARD
    """The class of requests that say nothing of their urgency; another, or none, where the queue has none of
    that name."""
    urgency_from_clients: bool = True
    """Whether what clients say of their urgency counts (`Priority`, `Prefer`, `service_tier`). Turn it off
    where clients are not trusted to say it."""
    broadcast: tuple[str, ...] = ("/abort_request",)
    """Requests to these paths are sent to every ready replica, without a slot: they are about requests that
    run on one of them."""
    hedge: bool = False
    """Whether a short request that asks for no stream may be sent a second time, to an idle slot, when its
    answer is late. Only for models without side effects, and where the dispatcher is set to hedge."""
    affinity: AffinityKeyOptions = field(default_factory=AffinityKeyOptions)
    """By what requests are told to be alike, where the dispatcher is set to keep those together."""
    reads_tokens: bool = False
    """Whether answers are looked through for the tokens that they took; those of language models are."""

    def __post_init__(self) -> None:
        for path in (self.prefix, *self.broadcast):
            if not path.startswith("/"):
                raise ValueError(f"need paths that start with '/' as prefix and in broadcast, got {path!r}")
        for name in ("wait_timeout", "first_byte_timeout", "idle_timeout"):
            value = getattr(self, name)
            if value is not None and value <= 0:
                raise ValueError(f"need {name} > 0, got {value}")

    @property
    def stem(self) -> str:
        """The prefix as it stands before another slash; empty if all paths lie below it."""
        return self.prefix.rstrip("/")

    def covers(self, path: str) -> bool:
        """Whether `path` is the prefix or lies below it; `/v1` does not cover `/v10`."""
        return path == self.stem or path.startswith(self.stem + "/")
