"""Who is let in, and how long they would wait.

The queue is bounded twice. The bound in requests keeps waits short enough to be worth it; the bound in
bytes keeps a burst of large bodies from eating the machine. A request that starts at once waits for
nobody and holds no place, so neither bound touches it.
"""

from dataclasses import dataclass

from autoscaler.domain import DropReason, Request


@dataclass(frozen=True, slots=True)
class QueueOptions:
    """Bounds of the central queue. Requests that start at once count against neither."""

    requests_max: int = 1000
    """So many may wait [requests]; 0 lets nobody wait. Lower it when clients would rather be refused early
    than wait; raise it when a burst shall be held while replicas start."""
    bytes_max: int = 256 * 2**20
    """So much memory may the bodies of those who wait hold [bytes]. Raise it for large inputs (images,
    audio), within the memory of this machine."""

    def __post_init__(self) -> None:
        if self.requests_max < 0:
            raise ValueError(f"need requests_max >= 0 (0 lets nobody wait), got {self.requests_max}")
        if self.bytes_max < 0:
            raise ValueError(f"need bytes_max >= 0, got {self.bytes_max}")


class Admission:
    """Lets a request in, or names the reason why not."""

    def __init__(self, options: QueueOptions) -> None:
        self._options = options
        self._closed = False

    @property
    def closed(self) -> bool:
        """Whether nothing new is let in any more."""
        return self._closed

    def close(self) -> None:
        """Let nothing new in from now on; for good."""
        self._closed = True

    def refusal(
        self, request: Request, *, starts_at_once: bool, waiting: int, waiting_bytes: int
    ) -> DropReason | None:
        """Return why `request` is not let in, or None if it is.

        Parameters
        ----------
        request : Request
            At the door.
        starts_at_once : bool
            Whether a slot is free for it now.
        waiting, waiting_bytes : int
            What waits already [requests], and the memory it holds [bytes].
        """
        if self._closed:
            return DropReason.CLOSING
        if starts_at_once:
            return None
        if waiting >= self._options.requests_max:
            return DropReason.QUEUE_FULL
        if waiting_bytes + request.body_bytes > self._options.bytes_max:
            return DropReason.QUEUE_BYTES_FULL
        return None


def wait_behind(waiting: int, servers: int, service_time_mean: float) -> float:
    """Return the mean wait of an arrival that finds every server busy and `waiting` requests before it.

    Parameters
    ----------
    waiting : int
        n >= 0, those who are served before it [requests].
    servers : int
        c >= 1 slots, all busy.
    service_time_mean : float
        E[S] >= 0 [s].

    Returns
    -------
    float
        W = (n + 1) E[S] / c [s].

    Raises
    ------
    ValueError
        If an argument is outside its range.

    Notes
    -----
    A fluid estimate: c busy servers complete c / E[S] requests a second, and n + 1 must complete before
    this one starts. Exact in the mean for exponential service (Erlang's M/M/c given the state on arrival).
    For less variable service it errs on the long side, by less than E[S] / c.

    Examples
    --------
    >>> wait_behind(waiting=7, servers=4, service_time_mean=10.0)
    20.0
    """
    if waiting < 0 or servers < 1 or not service_time_mean >= 0:
        raise ValueError(
            "need waiting >= 0, servers >= 1, service_time_mean >= 0, "
            f"got {waiting}, {servers}, {service_time_mean}"
        )
    return (waiting + 1) * service_time_mean / servers
